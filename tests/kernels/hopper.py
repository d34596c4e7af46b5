"""Cases of the Hopper gemm: every layout, sizes that are multiples of 8 where it needs them, operands of all shapes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.lowering.kernels.gemm_hopper import SHORT_SUM_TILES, TILES, HopperTile
from ait_mlir.reference.core import to_storage
from tests.kernels.contractions import (
    BIAS,
    BIAS_GELU,
    BIAS_NUMBERS,
    BIAS_RESIDUAL,
    BIAS_TANH,
    LAYOUTS,
    NUMBERS,
    SILU_MUL,
    SILU_MUL_NUMBERS,
    TANH_MUL_ADD,
    contraction,
    resized,
)
from tests.kernels.harness import Case, Library
from tests.kernels.library_gemm import ConfiguredCase, on_kernel
from tests.specs.gemm import FLOATS8, GEMM

SIZES = "dims {b = 0 to 9, m = 0 to 400, n = 0 to 400, k = 1 to 600}"
ENVS = (
    {"b": 1, "m": 1, "n": 1, "k": 1},
    {"b": 2, "m": 16, "n": 33, "k": 25},
    {"b": 3, "m": 33, "n": 5, "k": 9},
    {"b": 1, "m": 127, "n": 135, "k": 40},
    {"b": 2, "m": 0, "n": 5, "k": 3},
    {"b": 0, "m": 5, "n": 7, "k": 3},
)
ROW_ENVS = (
    *({"b": 2, "m": m, "n": 33, "k": 25} for m in (1, 3, 127, 129, 200)),
    {"b": 1, "m": 2600, "n": 257, "k": 96},
)
ODD_ENVS = (
    *({"b": 2, "m": m, "n": n, "k": 9} for m, n in ((1, 1), (3, 7), (127, 33), (129, 130), (200, 255))),
    {"b": 1, "m": 300, "n": 1001, "k": 96},
    {"b": 2, "m": 0, "n": 5, "k": 3},
)
"""n of any residue of 8."""
SUMMED_TILES = (
    HopperTile(64, 64, 6, 1, 1, 1, 2),
    HopperTile(64, 128, 4, 1, 1, 1, 8),
    HopperTile(128, 224, 4, 2, 1, 2),
    HopperTile(192, 128, 4, 1, 2, 1),
)
"""Tiles whose epilogues differ: partial sums of other blocks, boxes of 64 columns or of 32, one team or two."""
MASK = "    %z = ait.constant 0.5 : T\n    %y = ait.where %0, %acc, %z : T\n"


def in_eights(case: Case, names: str = "nk") -> Case:
    """The same case with 8 times the named dims in all types."""

    def scaled(found: re.Match[str]) -> str:
        return re.sub(rf"\b([{names}])\b(?=\)? x )", r"(8*\1)", found.group())

    strides = {
        at: tuple(re.sub(rf"\b([{names}])\b", r"(8*\1)", s) for s in steps) for at, steps in case.strides.items()
    }
    return Case(re.sub(r"!ait\.tensor<[^>]*>", scaled, case.text), case.envs, strides, case.offset)


def made(
    op: str, layout: str, t: str, envs: Sequence[Mapping[str, int]] = ENVS, names: str = "nk", **more: object
) -> Case:
    return in_eights(contraction(op, layout, t, envs, sizes=SIZES, **more), names)  # type: ignore[arg-type]


def hopper_cases() -> dict[str, ConfiguredCase]:
    """By name, which ends with the element type; each on one of the tiles."""
    cases: dict[str, Case] = {}
    lead = ("b x ", "", "b x ")
    both = [("n", "T"), ("b x m x n", "T")]
    for t in ("f16", "bf16"):
        extras = [(shape, t) for shape, _ in both]
        for layout in LAYOUTS:
            cases[f"gemm-{layout}-{t}"] = made("gemm", layout, t, names="mnk")
            cases[f"bmm-{layout}-{t}"] = made("bmm", layout, t, names="mnk", batch=("b x ", "b x ", "b x "))
        cases[f"rows-{t}"] = made("gemm", "rcr", t, ROW_ENVS, batch=lead, extras=extras, body=BIAS_RESIDUAL)
        cases[f"summed-{t}"] = made(
            "gemm", "rcr", t, ROW_ENVS, batch=lead, extras=extras, body=BIAS_RESIDUAL, further={"%s": t}
        )
        cases[f"wide-summed-{t}"] = made(
            "gemm", "rrr", t, extras=[("n", "f32")], body=BIAS_GELU, result="f32", further={"%s": t, "%acc": "f32"}
        )
        cases[f"gelu-{t}"] = made("gemm", "rrr", t, ROW_ENVS, batch=lead, extras=extras[:1], body=BIAS_GELU)
        cases[f"tanh-{t}"] = made("gemm", "rcr", t, ROW_ENVS, batch=lead, extras=extras[:1], body=BIAS_TANH)
        cases[f"wide-{t}"] = made("gemm", "rcr", t, extras=[("n", "f32")], body=BIAS, result="f32")
        numbers = {"extras": [("n", t), ("", "f32")], "body": BIAS_NUMBERS, "result": "f8E4M3FN"}
        cases[f"numbers-{t}"] = in_eights(made("gemm", "rcr", t, ENVS, batch=lead, **numbers), "n")
        cases[f"half-numbers-{t}"] = made("gemm", "rrr", t, ENVS, batch=lead, **numbers)
        columns = [("b x m x 1", t), ("", "f32")]
        cases[f"columns-{t}"] = made("gemm", "rcr", t, ENVS[:4], batch=lead, extras=columns, body=BIAS_RESIDUAL)
        cases[f"odd-columns-{t}"] = made(
            "gemm", "rcr", t, ODD_ENVS, "k", batch=lead, extras=columns, body=BIAS_RESIDUAL
        )
        shared = ("b x 3 x ", "3 x ", "b x 3 x ")
        cases[f"shared-{t}"] = made("bmm", "rcr", t, batch=shared, extras=[("3 x 1 x n", t)], body=BIAS)
        cases[f"one-{t}"] = made("bmm", "rrr", t, batch=("b x 1 x ", "1 x 2 x ", "b x 2 x "))
        cases[f"offset-{t}"] = made("gemm", "rcr", t, batch=lead, extras=extras[:1], body=BIAS, offset=3)
        cases[f"heads-{t}"] = made(
            "bmm", "rcr", t, ENVS[:4], batch=("b x 3 x ", "b x 3 x ", "b x 3 x "),
            strides={0: ("3*m*k", "k", "3*k", "1"), 1: ("3*n*k + 8", "k", "3*k", "1"),
                     2: ("3*m*n", "n", "3*n", "1")},
        )  # fmt: skip
    cases |= odd_cases()
    tiles = [tile for tile in TILES if tile.n % 64 == 0]
    found = {
        name: on_kernel(case, "hopper", tiles[i % len(tiles)].config()) for i, (name, case) in enumerate(cases.items())
    }
    for tile in TILES:
        t = "f16" if tile.cluster > 1 or tile.split > 2 else "bf16"
        case = made("gemm", "rcr", t, ROW_ENVS, extras=[("n", t), ("m x n", t)], body=BIAS_RESIDUAL)
        found[f"{'x'.join(map(str, tile.config().values()))}-{t}"] = on_kernel(case, "hopper", tile.config(), (1,))
        case = made("gemm", "rcr", t, ODD_ENVS, "k", extras=[("n", t), ("m x n", t)], body=BIAS_RESIDUAL)
        found[f"odd-{'x'.join(map(str, tile.config().values()))}-{t}"] = on_kernel(case, "hopper", tile.config(), (1,))
    few = tuple({"b": 1, "m": m, "n": n, "k": k} for m, n, k in ((1, 40, 384), (16, 96, 60), (9, 17, 1), (17, 33, 9)))
    split = [tile for tile in TILES if tile.split > 1 and tile.n % 64 == 0]
    for tile, layout in zip(split, itertools.cycle(("rcr", "rrr", "crr", "ccr")), strict=False):
        case = made("gemm", layout, "f16", few, "mnk", extras=[("n", "f16"), ("m x n", "f16")], body=BIAS_RESIDUAL)
        found[f"split{tile.split}-{tile.m}x{tile.n}-{layout}-f16"] = on_kernel(case, "hopper", tile.config(), (0, 1))
    for tile in SUMMED_TILES:
        extras, name = [("n", "f16"), ("m x n", "f16")], "x".join(map(str, tile.values()))
        case = made("gemm", "rcr", "f16", ROW_ENVS, extras=extras, body=BIAS_RESIDUAL, further={"%s": "f16"})
        found[f"summed-{name}-f16"] = on_kernel(case, "hopper", tile.config(), (1,))
        case = made("gemm", "rcr", "f16", ODD_ENVS, "k", extras=extras, body=BIAS_RESIDUAL, further={"%s": "f16"})
        found[f"summed-odd-{name}-f16"] = on_kernel(case, "hopper", tile.config(), (1,))
    return found | gated_cases() | rotated_cases()


BYTE_ENVS = (
    {"b": 1, "m": 200, "n": 17, "k": 25},
    {"b": 1, "m": 1, "n": 1, "k": 1},
    {"b": 1, "m": 129, "n": 9, "k": 72},
)
"""16 k is no multiple of a step of 128, or of 9 steps: splits of k have parts of one, two or no steps."""


def byte_cases() -> dict[str, ConfiguredCase]:
    """Products of 8-bit floats on each of their tiles, and of integers."""
    cases: dict[str, ConfiguredCase] = {}
    for i, tile in enumerate((*SHORT_SUM_TILES, *(TILES[j] for j in (0, 3, 4, 10, 12, 20, 25, 29)))):
        t = FLOATS8[i % 2] if tile.short_sums else ("i8", "ui8")[i % 2]
        case = GEMM.drawn("float8-even" if tile.short_sums else "bytes-even", t)
        case = replace(case, text=case.text.replace("k = 0 to", "k = 1 to"), envs=BYTE_ENVS)
        cases[f"{'x'.join(map(str, tile.values()))}-{t}"] = on_kernel(case, "hopper", tile.config(), (1,))
    short = [SHORT_SUM_TILES[i] for i in (0, 1, 2, 3, 5, 9, 15)]  # boxes of 64 columns, of 32, none; one team and two
    types = itertools.cycle(FLOATS8)
    for tile, t in (*zip(short, types, strict=False), *zip(TILES[:3], ("i8", "ui8", "i8"), strict=True)):
        case = GEMM.drawn("float8-numbers" if tile.short_sums else "bytes-even-numbers", t)
        case = replace(case, text=case.text.replace("k = 0 to", "k = 1 to"), envs=BYTE_ENVS)
        cases[f"numbers-{'x'.join(map(str, tile.values()))}-{t}"] = on_kernel(case, "hopper", tile.config(), (1,))
    return cases



NUMBER_ENVS = (
    *({"b": 2, "m": m, "n": n, "k": 3} for m, n in ((1, 1), (16, 2), (127, 5), (200, 17), (0, 3), (5, 0))),
    {"b": 1, "m": 130, "n": 9, "k": 40},
)
NUMBERS_OF_SUMS = NUMBERS.replace("%v", "%acc").replace("%1", "%0")


def number_cases() -> dict[str, ConfiguredCase]:
    """Products of f16 whose results are floats of 8 bits, in rows that start on 16 bytes: one scale, a scale for each row, and
    rows that lie apart; boxes of 64 and of 32 columns."""
    cases: dict[str, ConfiguredCase] = {}
    one, by_row = [("", "f32")], [("b x m x 1", "f32")]
    apart = {3: ("m*(n + 32)", "n + 32", "1")}
    for label, op, extras, body, result, strides, tile in (
        ("one", "gemm", one, NUMBERS_OF_SUMS, "f8E4M3FN", {}, HopperTile(128, 128, 5, 1, 2, 1)),
        ("rows", "gemm", by_row, NUMBERS_OF_SUMS, "f8E4M3FN", {}, HopperTile(64, 96, 6, 1, 1, 1)),
        ("apart", "gemm", by_row, NUMBERS_OF_SUMS, "f8E5M2", apart, HopperTile(128, 192, 4, 1, 1, 2)),
        ("gated", "gated_gemm", [], SILU_MUL_NUMBERS, "f8E4M3FN", {}, HopperTile(128, 128, 5, 1, 2, 1)),
    ):
        body = body.replace("448", "57344") if result == "f8E5M2" else body
        case = made(op, "rcr", "f16", NUMBER_ENVS, batch=("b x ", "", "b x "), extras=extras, body=body, result=result,
                    strides=strides)  # fmt: skip
        sixteens = {at: tuple(s.replace("8*n", "16*n") for s in steps) for at, steps in case.strides.items()}
        case = replace(case, text=case.text.replace("(8*n)", "(16*n)"), strides=sixteens)
        cases[f"{label}-numbers-in-lines-f16"] = on_kernel(case, "hopper", tile.config())
    return cases


def check_quotients(library: Library, case: Case) -> None:
    """A case of `number_cases` with a scale for each row divides numbers, ties among them, as exactly as the reference: its
    second factor is the unit matrix."""
    random, m, n = np.random.default_rng(0), 150, 64
    result = tensor_type(case.op.results[0]).element_type
    middles = np.arange(1, 32, 2) * 2.0 ** random.integers(-9, 4, (m, n, 1))
    scales = (1 + random.integers(0, 64, m) / 64) * 2.0 ** random.integers(-3, 4, m)
    near = random.choice(np.arange(16), (m, n))
    ties = np.take_along_axis(middles, near[..., None], -1)[..., 0] * scales[:, None]
    a = np.where(random.random((m, n)) < 0.8, ties, random.standard_normal((m, n)) * 100).astype(np.float16)
    scales[:7] = 0, np.inf, np.nan, 2.0**-140, 2.0**-126, 2.0**120, -2.0
    inputs = [a[None], np.eye(n, dtype=np.float16), scales.astype(np.float32).reshape(1, m, 1)]
    (found,) = library.run(case, {"b": 1, "m": m, "n": n // 16, "k": n // 8}, inputs)
    largest = BY_IR[result].largest
    with np.errstate(all="ignore"):
        want = to_storage(np.clip(a / scales.astype(np.float32).astype(np.float64)[:, None], -largest, largest), result)
    np.testing.assert_array_equal(found[0].astype(np.float32), want.astype(np.float32))


def gated_cases() -> dict[str, ConfiguredCase]:
    """Products with a gate, on each tile that can have one, and in each layout."""
    cases: dict[str, ConfiguredCase] = {}
    lead = ("b x ", "", "b x ")
    for i, tile in enumerate(tile for tile in TILES if tile.misfit(True, 2) is None):
        t, name = ("f16", "bf16")[i % 2], "x".join(map(str, tile.values()))
        case = made("gated_gemm", "rcr", t, ROW_ENVS, batch=lead, body=SILU_MUL)
        cases[f"gated-{name}-{t}"] = on_kernel(case, "hopper", tile.config(), (1,))
        extras = [("b x m x n", t)]
        case = made("gated_gemm", "rcr", t, ODD_ENVS, "k", batch=lead, extras=extras, body=TANH_MUL_ADD)
        cases[f"gated-odd-{name}-{t}"] = on_kernel(case, "hopper", tile.config(), (1,))
    pieces = HopperTile(64, 128, 4, 1, 1, 1), HopperTile(128, 256, 4, 2, 1, 2), HopperTile(128, 128, 5, 1, 2, 1)
    for layout, tile in zip(("rrr", "crr", "ccr"), pieces, strict=True):
        extras = [("n", "f16"), ("m x n", "f16")]
        body = SILU_MUL.replace("%y", "%p") + BIAS_RESIDUAL.replace("%acc", "%p").replace("%s", "%q")
        case = made("gated_gemm", layout, "f16", ENVS, "mnk", extras=extras, body=body)
        cases[f"gated-{layout}-f16"] = on_kernel(case, "hopper", tile.config())
        case = made("gated_gemm", layout, "f16", ENVS, "mnk", body=SILU_MUL, offset=3)
        cases[f"gated-offset-{layout}-f16"] = on_kernel(case, "hopper", tile.config())
    wide = made("gated_gemm", "rcr", "bf16", body=SILU_MUL, result="f32")
    cases["gated-wide-bf16"] = on_kernel(wide, "hopper", pieces[0].config())
    numbers = made("gated_gemm", "rcr", "f16", body=SILU_MUL_NUMBERS, result="f8E4M3FN")
    cases["gated-numbers-f16"] = on_kernel(numbers, "hopper", pieces[0].config())
    return cases


def rotated(
    t: str,
    size: int,
    heads: int,
    tables: str,
    envs: Sequence[Mapping[str, int]],
    offset: int = 0,
    **strides: tuple[str, ...],
) -> Case:
    """A rotated product of 8 k with `heads` heads and 8 n further columns; `tables`: the leading dims of cosines and
    sines. `strides` of x, w, c, s or y."""
    x, w = f"!ait.tensor<b x m x (8*k) x {t}>", f"!ait.tensor<(8*n + {heads * size}) x (8*k) x {t}>"
    table, y = f"!ait.tensor<{tables}{size // 2} x {t}>", f"!ait.tensor<b x m x (8*n + {heads * size}) x {t}>"
    text = (
        f"ait.graph @g(%x: {x}, %w: {w}, %c: {table}, %s: {table}) {SIZES} {{\n"
        f'  %y = ait.rotated_gemm %x, %w cosines %c sines %s heads {heads} size {size} : {y}\n  ait.output "y" %y : {y}\n}}'
    )
    return Case(text, envs, {"xwcsy".index(name): steps for name, steps in strides.items()}, offset)


def rotated_cases() -> dict[str, ConfiguredCase]:
    """Rotated products: on each tile of whole heads, tables of all rows, of some and of one, and misaligned buffers."""
    cases: dict[str, ConfiguredCase] = {}
    envs = [{**env, "n": 5} for env in ROW_ENVS]
    for i, tile in enumerate(tile for tile in TILES if tile.split == 1):
        sizes = [size for size in (256, 64, 128, 32, 96) if tile.n % size == 0]
        size, t, name = sizes[i % len(sizes)], ("f16", "bf16")[i % 2], "x".join(map(str, tile.values()))
        case = rotated(t, size, 1 + 512 // size, "b x m x ", envs)
        cases[f"rotated-{size}-{name}-{t}"] = on_kernel(case, "native", tile.config(), (1,))
    few = [env for env in ENVS if env["b"] * env["m"] > 0] + [ENVS[4]]
    tile, two = HopperTile(64, 64, 6, 1, 1, 1), HopperTile(128, 128, 5, 1, 2, 1)
    cases["rotated-rows-f16"] = on_kernel(rotated("f16", 64, 3, "m x ", few), "native", two.config())
    cases["rotated-one-bf16"] = on_kernel(rotated("bf16", 32, 3, "", few), "native", tile.config())
    cases["rotated-batch-f16"] = on_kernel(rotated("f16", 16, 3, "b x 1 x ", few), "native", tile.config())
    cases["rotated-offset-f16"] = on_kernel(rotated("f16", 64, 3, "b x m x ", few, 3), "native", tile.config())
    strided = rotated(
        "f16",
        64,
        2,
        "b x m x ",
        few,
        x=("8*m*k", "8*k", "1"),
        c=("64*m", "64", "1"),
        y=("m*(8*n + 192)", "8*n + 192", "1"),
    )
    cases["rotated-view-f16"] = on_kernel(strided, "native", tile.config())
    return cases


def odd_cases() -> dict[str, Case]:
    """Rows of the result and of extra operands that start anywhere."""
    cases: dict[str, Case] = {}
    wide = "dims {b = 0 to 9, m = 0 to 400, n = 1 to 60000, k = 1 to 600}"
    heads = ({"b": 1, "m": 5, "n": 50257, "k": 12}, {"b": 1, "m": 130, "n": 4097, "k": 12})
    for t in ("f16", "bf16"):
        both = [("n", t), ("b x m x n", t)]
        lead = ("b x ", "", "b x ")
        cases[f"odd-{t}"] = made("gemm", "rcr", t, ODD_ENVS, "k")
        cases[f"odd-rcc-{t}"] = made("gemm", "rcc", t, ODD_ENVS, "k")
        cases[f"odd-ccr-{t}"] = made("gemm", "ccr", t, ODD_ENVS, "mk")
        cases[f"odd-bmm-{t}"] = made("bmm", "rcr", t, ODD_ENVS, "k", batch=("b x ", "b x ", "b x "))
        cases[f"odd-rows-{t}"] = made("gemm", "rcr", t, ODD_ENVS, "k", batch=lead, extras=both, body=BIAS_RESIDUAL)
        cases[f"odd-summed-{t}"] = made(
            "gemm", "rcr", t, ODD_ENVS, "k", batch=lead, extras=both, body=BIAS_RESIDUAL, further={"%s": t},
            strides={4: ("m*(n + 5)", "n + 5", "1"), 5: ("n", "b*n", "1")},
        )  # fmt: skip
        cases[f"odd-gelu-{t}"] = made("gemm", "rcr", t, ODD_ENVS, "k", batch=lead, extras=both[:1], body=BIAS_GELU)
        wide_extra = [("m x n", "f32")]
        cases[f"odd-wide-{t}"] = made("gemm", "rcr", t, ODD_ENVS, "k", extras=wide_extra, body=BIAS, result="f32")
        cases[f"odd-mask-{t}"] = made("gemm", "rcr", t, ODD_ENVS, "k", extras=[("m x n", "i1")], body=MASK)
        cases[f"odd-view-{t}"] = made(
            "gemm", "rcr", t, ODD_ENVS, extras=[("m x n", t)], body=BIAS,
            strides={2: ("n + 5", "1"), 3: ("n + 3", "1")},
        )  # fmt: skip
        cases[f"odd-head-{t}"] = in_eights(contraction("gemm", "rcr", t, heads, sizes=wide), "k")
    return cases


def padded_cases() -> dict[str, ConfiguredCase]:
    """Products of factors with odd rows, each in some of the layouts: both factors, or one; batches; epilogues."""
    found: dict[str, ConfiguredCase] = {}

    def add(name: str, op: str, layout: str, t: str, n: int, k: int, *batch: str, **options: Any) -> None:
        sizes = "dims {b = 1 to 3, m = 0 to 400, n = 0 to 400, k = 1 to 600}"
        envs = [{"b": b, "m": m, "n": n, "k": k} for b, m in ((2, 67), (1, 1), (1, 0))]
        case = contraction(op, layout, t, envs, batch or ("", "", ""), sizes=sizes, **options)  # type: ignore[arg-type]
        text = resized(case.text, str(n), str(k))
        if layout[0] == "c":  # rows of the first factor have M elements
            text = re.sub(r"<[^>]*>", lambda found: re.sub(r"\bm\b", "67", found[0]), text)
        tile = HopperTile(64, (64, 128)[len(found) % 2], 4, 1, 1, 1)
        found[f"padded-{name}-{t}"] = on_kernel(replace(case, text=text), "padded", tile.config())

    for i, layout in enumerate(LAYOUTS):
        t = ("f16", "bf16")[i % 2]
        options = {"extras": [("n", t), ("m x n", t)], "body": BIAS_RESIDUAL} if layout[2] == "r" else {}
        add(layout, "gemm", layout, t, 135, 71, **options)
    add("batches", "bmm", "rrr", "f16", 69, 11, *("b x ",) * 3)
    add("shared", "bmm", "rcr", "bf16", 7, 65, "b x ", "1 x ", "b x ")
    add("columns", "gemm", "rrr", "f16", 135, 72)
    add("words", "gemm", "rcr", "f16", 134, 71)
    add("words-of-batches", "bmm", "rrr", "bf16", 98, 12, *("b x ",) * 3)
    add("sums", "gemm", "rrr", "bf16", 136, 71)
    return found
