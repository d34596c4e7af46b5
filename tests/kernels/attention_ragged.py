"""Cases of ragged attention on Hopper's kernel: padded and packed sequences, with NaN in all rows that belong to none."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from ait_mlir.dialects.ait.attention import RaggedAttentionOp
from ait_mlir.lowering.kernels.attention_hopper import TILES
from tests.kernels.harness import Case, Library, assert_close, random_inputs, reference
from tests.kernels.library_gemm import ConfiguredCase, on_kernel

SIZES = "b = 0 to 8, l = 0 to 800"
LONGEST = 130
"""Rows and columns of a sequence."""
PADDED = (
    {"b": 2, "s": 130, "l": 140}, {"b": 4, "s": 260, "l": 300}, {"b": 1, "s": 131, "l": 130}, {"b": 0, "s": 130, "l": 130},
    {"b": 8, "s": 130, "l": 200},
)  # fmt: skip
PACKED = ({"b": 3, "l": 300}, {"b": 1, "l": 40}, {"b": 8, "l": 700}, {"b": 0, "l": 9}, {"b": 2, "l": 0})


def padded(t: str, flags: str = "", heads: int = 3, depth: int = 64, width: int = 0, rows: bool = True) -> Case:
    """Lengths of keys, and with `rows` of queries."""
    q, k = f"!ait.tensor<b x {heads} x s x {depth} x {t}>", f"!ait.tensor<b x 3 x l x {depth} x {t}>"
    v, y = (f"!ait.tensor<b x {h} x {n} x {width or depth} x {t}>" for h, n in ((3, "l"), (heads, "s")))
    more = (", %m: !ait.tensor<b x i32>", " rows %m") if rows else ("", "")
    text = (
        f"ait.graph @g(%q: {q}, %k: {k}, %v: {v}, %n: !ait.tensor<b x i32>{more[0]}) dims {{{SIZES}, s = 0 to 400}} {{\n"
        f"  %y = ait.ragged_attention %q, %k, %v columns %n{more[1]} scale 0.25 {flags} : {y}\n"
        f'  ait.output "y" %y : {y}\n}}'
    )
    return Case(text, PADDED, below={3: LONGEST + 1, 4: LONGEST + 1})


def packed(t: str, flags: str = "", heads: int = 3, depth: int = 64) -> Case:
    """Rows of all sequences one after the other, with heads along the rows of one product."""
    q, k = f"!ait.tensor<1 x {heads} x l x {depth} x {t}>", f"!ait.tensor<1 x 3 x l x {depth} x {t}>"
    text = (
        f"ait.graph @g(%q: {q}, %k: {k}, %v: {k}, %o: !ait.tensor<(b + 1) x i64>) dims {{{SIZES}}} {{\n"
        f"  %y = ait.ragged_attention %q, %k, %v segments %o scale 0.25 {flags} : {q}\n"
        f'  ait.output "y" %y : {q}\n}}'
    )
    rows = {at: (f"{h}*l*{depth}", f"{depth}", f"{h}*{depth}", "1") for at, h in ((0, heads), (1, 9), (2, 9))}
    return Case(text, PACKED, rows, offsets={3: ("l", LONGEST)})


def hopper_cases() -> dict[str, ConfiguredCase]:
    """By name, which ends with the element type; each on one of the tiles, and each tile on one."""
    cases: dict[str, Case] = {}
    for t in ("f16", "bf16"):
        for flags in ("", "causal", "window 20", "causal window 50"):
            name = flags.replace(" ", "-") or "plain"
            cases[f"padded-{name}-{t}"] = padded(t, flags, heads=6 if "causal" in flags else 3)
            cases[f"packed-{name}-{t}"] = packed(t, flags, heads=6 if flags == "" else 3)
        cases[f"all-rows-{t}"] = padded(t, "causal", rows=False)
        cases[f"widths-{t}"] = padded(t, "causal", depth=40, width=56)
        cases[f"wide-{t}"] = packed(t, "causal", depth=128)
    found: dict[str, ConfiguredCase] = {}
    for i, (name, case) in enumerate(cases.items()):
        tiles = TILES[128 if name.startswith("wide") else 64]
        found[name] = on_kernel(case, "hopper", tiles[i % len(tiles)].config())
    for i, tile in enumerate(itertools.chain(*TILES.values())):
        make = (padded, packed)[i % 2]
        name = f"{tile.depth}-{'x'.join(map(str, tile.config().values()))}-f16"
        found[name] = on_kernel(make("f16", "causal", depth=tile.depth), "hopper", tile.config())
    return found


def poison(case: Case, inputs: list[np.ndarray]) -> None:
    """Fill the rows that belong to no sequence with NaN."""
    assert isinstance(case.op, RaggedAttentionOp)
    q, k, v = inputs[:3]
    if case.op.segments is not None:
        first, last = inputs[3][0], inputs[3][-1]
        for x in (q, k, v):
            x[:, :, :first] = x[:, :, last:] = np.nan
        return
    for b in range(len(q)):
        k[b, :, inputs[3][b] :] = v[b, :, inputs[3][b] :] = np.nan
        if case.op.rows is not None:
            q[b, :, inputs[4][b] :] = np.nan


def check_poisoned(
    library: Library, case: Case, ulps: float, floor: float, envs: tuple[Mapping[str, int], ...] = ()
) -> None:
    """Run a case and compare with the reference."""
    for env in envs or case.envs:
        inputs = random_inputs(case, env)
        poison(case, inputs)
        (got,), (want,) = library.run(case, env, inputs), reference(case, env, inputs)
        assert_close(got, want, ulps, floor)
