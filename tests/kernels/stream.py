"""Cases of the streaming gemm: few rows, k in eights, every tile, ends of tiles and of steps, operands of all shapes."""

from __future__ import annotations

from ait_mlir.lowering.kernels.gemm_stream import TILES
from tests.kernels.contractions import BIAS, BIAS_RESIDUAL
from tests.kernels.harness import Case
from tests.kernels.hopper import made
from tests.kernels.library_gemm import ConfiguredCase, on_kernel

# Of n and k these are the eighths, or of k alone.
ENVS = (
    {"b": 1, "m": 1, "n": 1, "k": 1},
    {"b": 3, "m": 3, "n": 9, "k": 40},
    {"b": 1, "m": 16, "n": 33, "k": 131},
    {"b": 2, "m": 13, "n": 7, "k": 17},
    {"b": 2, "m": 0, "n": 5, "k": 3},
    {"b": 2, "m": 5, "n": 0, "k": 3},
)


def stream_cases() -> dict[str, ConfiguredCase]:
    """By name, which ends with the element type; each tile, and each form on one of them."""
    found: dict[str, ConfiguredCase] = {}
    for i, tile in enumerate(TILES):
        t = ("f16", "bf16")[i % 2]
        extras = [("n", t), ("m x n", t)]
        case = made("gemm", "rcr", t, ENVS, extras=extras, body=BIAS_RESIDUAL)
        found[f"{'x'.join(map(str, tile.values()))}-{t}"] = on_kernel(case, "stream", tile.config(), (1,))
    forms: dict[str, Case] = {}
    for t in ("f16", "bf16"):
        forms[f"plain-{t}"] = made("gemm", "rcr", t, ENVS)
        forms[f"swapped-{t}"] = made("gemm", "rcc", t, [{"b": 1, "m": 40, "n": 2, "k": 33}], "mk")
        forms[f"columns-{t}"] = made("gemm", "rcr", t, ENVS, "k", extras=[("n", t)], body=BIAS)
        forms[f"lead-{t}"] = made(
            "gemm", "rcr", t, ENVS, batch=("b x ", "", "b x "), extras=[("n", t), ("b x m x n", t)], body=BIAS_RESIDUAL
        )
        forms[f"summed-{t}"] = made(
            "gemm", "rcr", t, ENVS, extras=[("n", t), ("m x n", t)], body=BIAS_RESIDUAL, further={"%s": t}
        )
        forms[f"wide-{t}"] = made("gemm", "rcr", t, ENVS, extras=[("n", "f32")], body=BIAS, result="f32")
        forms[f"offset-{t}"] = made("gemm", "rcr", t, ENVS[:4], extras=[("n", t)], body=BIAS, offset=3)
        forms[f"vector-{t}"] = made("gemm", "rcr", t, ENVS[:4], m="1", extras=[("n", t)], body=BIAS)
        columns = [{"b": 1, "m": m, "n": 1, "k": k} for m, k in ((1, 3), (77, 40), (260, 131), (0, 3))]
        forms[f"column-{t}"] = made(
            "gemm", "rrr", t, columns, "k", n="1", extras=[("1", t), ("m x 1", t)], body=BIAS_RESIDUAL
        )
        forms[f"score-{t}"] = made(
            "gemm",
            "rcr",
            t,
            columns,
            "k",
            batch=("b x ", "", "b x "),
            n="1",
            extras=[("1", "f32")],
            body=BIAS,
            result="f32",
        )
        forms[f"part-{t}"] = made(
            "gemm", "rcr", t, ENVS, offset=8, strides={0: ("3*k", "1"), 1: ("k + 8", "1"), 2: ("2*n", "1")}
        )
    for i, (name, case) in enumerate(forms.items()):
        found[name] = on_kernel(case, "stream", TILES[5 * i % len(TILES)].config())
    return found
