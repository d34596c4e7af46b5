"""Cases of attention of 8-bit floats on Hopper, and how close its results must be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace

import ml_dtypes
import numpy as np

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.lowering.kernels.attention_hopper import FLOAT8_TILES, SHORT_FLOAT8, tiles_for
from ait_mlir.reference.core import storage_dtype
from tests.kernels.attention_gpu import ENVS
from tests.kernels.harness import Case, Library, assert_close, random_inputs, reference
from tests.kernels.library_gemm import ConfiguredCase, on_kernel

SIZES: list[dict[str, int]] = [
    *({"b": 2, "s": 37, "l": 70}, {"b": 1, "s": 1, "l": 1}, {"b": 1, "s": 130, "l": 300}, {"b": 3, "s": 200, "l": 257}),
    *({name: env[name] for name in "bsl"} for env in ENVS if env["b"] * env["s"] * env["l"] == 0),
]
E4M3 = ml_dtypes.float8_e4m3fn
QUANTISED = "result_scale 0.0625"


def made(
    size: int,
    to: str = "f16",
    flags: str = "",
    heads: int = 3,
    mask: str = "",
    bias: bool = False,
    offset: int = 0,
    longest: int = 400,
) -> Case:
    """Attention of heads of `size` columns that lie in the rows of one product. Whole scores have weights that are
    powers of 2."""
    q, kv = f"b x {heads} x s x {size}", f"!ait.tensor<b x 3 x l x {size} x f8E4M3FN>"
    own = {"mask": mask} if mask else {"bias": f"{heads} x s x l x f32"} if bias else {}
    operands = "".join(f", %{name}: !ait.tensor<{t}>" for name, t in own.items())
    outs = [f"!ait.tensor<{q} x {to}>"]
    outs += [f"!ait.tensor<b x {heads} x s x f32>" for flag in ("log_sums", "largest") if flag in flags]
    names = [f"%{n}" for n in "opr"[: len(outs)]]
    clauses = ["mask %mask"] * bool(mask) + [f"scale {math.log(2)!r}", *([flags] if flags else [])]
    if bias:
        clauses.append("scores(%bias) {^bb0(%x: f32, %y: f32): %z = ait.add %x, %y : f32 ait.yield %z : f32 }")
    text = (
        f"ait.graph @g(%q: !ait.tensor<{q} x f8E4M3FN>, %k: {kv}, %v: {kv}{operands}) "
        f"dims {{b = 0 to 4, s = 0 to {longest}, l = 0 to {longest}}} {{\n"
        f"  {', '.join(names)} = ait.attention %q, %k, %v {' '.join(clauses)} : {', '.join(outs)}\n"
        + "".join(f'  ait.output "{n[1:]}" {n} : {out}\n' for n, out in zip(names, outs, strict=True))
        + "}"
    )
    rows, wide = heads * size, (heads + 6) * size
    strides = {0: (f"{wide}*s", f"{size}", f"{wide}", "1")}
    strides |= dict.fromkeys((1, 2), (f"{wide}*l", f"{size}", f"{wide}", "1"))
    strides[3 + len(own)] = (f"{rows}*s", f"{size}", f"{rows}", "1")
    return Case(text, SIZES, strides, offset)


FORMS: dict[str, Case] = {
    **{f"causal-{size}": made(size, flags="causal value_scale 2.0", heads=6) for size in (16, 48, 64, 80, 128)},
    "window-64": made(64, flags="window 50"),
    "causal-window-128": made(128, "bf16", "causal window 50"),
    "log-sums-64": made(64, flags="causal log_sums value_scale 0.5"),
    "rows-64": made(64, "f8E4M3FN", "value_scale 0.5 largest 448.0 least 1e-30"),
    "numbers-128": made(128, "f8E4M3FN", f"causal value_scale 3.0 {QUANTISED}"),
    "mask-64": made(64, mask="b x 1 x 1 x l x f16"),
    "mask-128": made(128, "bf16", mask="3 x s x l x f32"),
    "bias-64": made(64, flags="causal", bias=True),
    "offset-64": made(64, offset=3),
}


def cases() -> dict[str, ConfiguredCase]:
    """By name: each form in which attention of f16 exists, on one of the tiles, and each tile."""
    found: dict[str, ConfiguredCase] = {}
    for i, (name, case) in enumerate(FORMS.items()):
        op = case.op
        assert isinstance(op, AttentionOp)
        tiles = tiles_for(op, 128 if int(name.rpartition("-")[2]) > 64 else 64)
        found[name] = on_kernel(case, "hopper", tiles[i % len(tiles)].config())
    kinds = itertools.cycle([("f16", ""), ("bf16", "value_scale 0.25"), ("f8E4M3FN", QUANTISED)])
    for tile, (to, flags) in zip((*itertools.chain(*FLOAT8_TILES.values()), *SHORT_FLOAT8), kinds, strict=False):
        case = made(tile.depth, to, flags, heads=6)
        found[f"{tile.depth}-{'x'.join(map(str, tile.config().values()))}"] = on_kernel(case, "hopper", tile.config())
    return found


def whole(case: Case, env: Mapping[str, int]) -> list[np.ndarray]:
    """Inputs whose scores are whole, so that weights are powers of 2, which 8-bit floats represent; masks are 0 or hide."""
    rng, arrays = np.random.default_rng(1), list[np.ndarray]()
    for position, drawn in enumerate(random_inputs(case, env)):
        if position >= 3:
            arrays.append(np.where(rng.random(drawn.shape) < 0.3, -np.inf, 0).astype(drawn.dtype))
            continue
        share = 0.5 if position == 2 else min(1.0, 2 / np.sqrt(drawn.shape[-1]))
        arrays.append((rng.integers(-1, 2, drawn.shape) * (rng.random(drawn.shape) < share)).astype(drawn.dtype))
    return arrays


ROUNDED_WEIGHTS, SHORT_SUMS = 0.05, 5e-4
"""Of the largest result: what rounding weights to 4 significant bits changes, and sums of 14 bits."""


def check(library: Library, case: Case) -> None:
    """Run a case at each of its sizes, with any scores and with whole ones."""
    for env in case.envs:
        for inputs, floor in ((random_inputs(case, env), ROUNDED_WEIGHTS), (whole(case, env), SHORT_SUMS)):
            results = zip(library.run(case, env, inputs), reference(case, env, inputs), case.op.results, strict=True)
            for got, want, result in results:
                is_sum = result in case.op.results[1:] and "log_sums" in case.op.properties
                assert_close(got, want, 1.1 if got.dtype == E4M3 else 0.6, SHORT_SUMS if is_sum else floor)


LONG = {"b": 1, "s": 192, "l": 8192}


def long_case(t: str, size: int) -> ConfiguredCase:
    """Rows that see thousands of columns, of f16 or f8E4M3FN."""
    case = replace(made(size, longest=8192), envs=[LONG])
    return on_kernel(replace(case, text=case.text.replace("f8E4M3FN", t)), "hopper", {})


def long_inputs(size: int, mean: float) -> list[np.ndarray]:
    """q, k and v, which 8-bit floats represent; all columns of v have a mean."""
    rng, rows = np.random.default_rng(2), {"q": LONG["s"], "k": LONG["l"], "v": LONG["l"]}
    drawn = {name: rng.standard_normal((1, 3, count, size)) * (0.5 if name != "v" else 1) for name, count in rows.items()}
    return [(x + mean * (name == "v")).astype(E4M3).astype(np.float64) for name, x in drawn.items()]


def long_error(library: Library, case: Case, inputs: list[np.ndarray]) -> float:
    """The root mean square of the error, as a part of that of the results in f64."""
    given = [x.astype(storage_dtype(tensor_type(v).element_type)) for x, v in zip(inputs, case.op.operands, strict=True)]
    ((got,), (want,)) = library.run(case, LONG, given), reference(case, LONG, given)
    return float(np.sqrt(((got.astype(np.float64) - want) ** 2).mean() / (want**2).mean()))
