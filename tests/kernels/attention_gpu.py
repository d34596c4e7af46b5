"""Cases of the attention kernels of Hopper: heads whose columns are multiples of 8, in every form that they take."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.lowering.kernels.attention_hopper import SHORT_STEPS, TILES, tiles_for
from tests.kernels.contractions import attention
from tests.kernels.harness import Case
from tests.kernels.library_gemm import ConfiguredCase, on_kernel
from tests.specs.attention import PIECES
from tests.specs.tolerance import QUANTISED_ATTENTION

ENVS = (
    {"b": 2, "s": 37, "l": 70, "d": 3},
    {"b": 1, "s": 1, "l": 1, "d": 1},
    {"b": 1, "s": 130, "l": 300, "d": 8},
    {"b": 2, "s": 64, "l": 64, "d": 2},
    {"b": 3, "s": 333, "l": 400, "d": 5},
    {"b": 2, "s": 300, "l": 40, "d": 7},
    {"b": 0, "s": 5, "l": 7, "d": 1},
    {"b": 1, "s": 0, "l": 7, "d": 1},
    {"b": 2, "s": 5, "l": 0, "d": 2},
)
FEW = (
    {"b": 2, "s": 1, "l": 70, "d": 3},
    {"b": 1, "s": 1, "l": 1, "d": 1},
    {"b": 1, "s": 3, "l": 400, "d": 8},
    {"b": 2, "s": 16, "l": 64, "d": 2},
    {"b": 3, "s": 40, "l": 333, "d": 5},
    {"b": 2, "s": 9, "l": 4, "d": 7},
    {"b": 0, "s": 5, "l": 7, "d": 1},
    {"b": 1, "s": 0, "l": 7, "d": 1},
    {"b": 2, "s": 5, "l": 0, "d": 2},
)


BLIND = ({"b": 2, "s": 9, "l": 1, "d": 3}, {"b": 2, "s": 37, "l": 2, "d": 8})
"""Sizes for which some rows see no column."""


def in_eights(case: Case, sizes: str = "d = 1 to 8") -> Case:
    """The same case with 8 times `d` columns a head."""

    def scaled(text: str) -> str:
        return re.sub(r"\bd\b", "(8*d)", text)

    strides = {at: tuple(scaled(s) for s in steps) for at, steps in case.strides.items()}
    text = re.sub(r"!ait\.tensor<[^>]*>", lambda found: scaled(found.group()), case.text)
    return Case(text.replace("d = 1 to 80", sizes), case.envs, strides, case.offset)


def made(t: str, envs: Sequence[Mapping[str, int]] = ENVS, **options: object) -> Case:
    return in_eights(attention(t, envs=envs, **options))  # type: ignore[arg-type]


def wide(case: Case, times: int = 2) -> Case:
    """The same case with heads of up to 64 columns so many times."""
    envs = [dict(env) | {"d": times * env["d"]} for env in case.envs]
    return Case(case.text.replace("d = 1 to 8", f"d = 1 to {8 * times}"), envs, case.strides, case.offset)


def changed(t: str, envs: Sequence[Mapping[str, int]]) -> dict[str, Case]:
    """Cases for both kernels that change scores: masks, regions, other positions of the rows, a second result."""
    cases: dict[str, Case] = {}
    for causal in (False, True):
        name = f"{'causal' if causal else 'plain'}-{t}"
        cases[f"mask-{name}"] = made(t, envs, mask="b x 1 x 1 x l", causal=causal)
        cases[f"full-mask-{name}"] = made(t, envs, mask="b x 6 x s x l", causal=causal, heads=6)
        cases[f"window-mask-{name}"] = made(t, envs, mask="l", causal=causal, window=50)
        cases[f"bias-{name}"] = made(t, envs, scores="bias", causal=causal)
        cases[f"cap-mask-{name}"] = made(t, envs, scores="cap", mask="b x 1 x 1 x l", causal=causal, heads=6)
        cases[f"alibi-{name}"] = made(t, envs, scores="alibi", causal=causal, flags="log_sums")
        cases[f"wide-mask-{name}"] = wide(made(t, envs, mask="1 x 3 x s x l", causal=causal))
    some = [env for env in envs if env["l"] > 0]
    cases[f"top-left-{t}"] = made(t, some, causal=True, flags="top_left log_sums")
    cases[f"log-sums-{t}"] = made(t, some, causal=True, heads=6, flags="log_sums")
    cases[f"biases-{t}"] = made(t, envs, scores="biases", heads=6)
    cases[f"groups-of-columns-{t}"] = made(t, envs, scores="groups")
    cases[f"choice-{t}"] = made(t, envs, scores="choice")
    cases[f"hidden-{t}"] = made(t, BLIND, scores="hidden", causal=True, flags="log_sums")
    cases[f"nan-rows-{t}"] = made(t, BLIND, scores="hidden", flags="nan_rows")
    cases[f"least-{t}"] = made(t, BLIND, scores="least")
    cases[f"head-mask-{t}"] = made(t, envs, mask="3 x s x 1", mask_type="f32")
    cases[f"strides-{t}"] = made(t, envs, scores="bias", strides={3: ("l + 1", "3*(l + 1)", "1")}, offset=8)
    cases[f"negative-{t}"] = made(t, envs, scale=-0.25)
    return cases


def weights(t: str, envs: Sequence[Mapping[str, int]]) -> dict[str, Case]:
    """Without a softmax: the changed scores are the weights."""
    return {
        f"weights-plain-{t}": made(t, envs, flags="no_softmax"),
        f"weights-causal-{t}": made(t, envs, scores="cap", causal=True, heads=6, flags="no_softmax"),
        f"weights-window-{t}": made(t, envs, scores="bias", window=50, flags="no_softmax"),
        f"weights-top-left-{t}": made(t, envs, scores="choice", causal=True, flags="top_left no_softmax"),
        f"wide-weights-{t}": wide(made(t, envs, scores="cap", flags="no_softmax")),
    }


def forms(t: str, envs: Sequence[Mapping[str, int]]) -> dict[str, Case]:
    """Cases for both kernels: causal or not, groups, windows, widths, parts of one tensor, addresses off a boundary."""
    qkv = {
        0: ("9*s*d", "d", "9*d", "1"), 1: ("9*l*d", "d", "9*d", "1"), 2: ("9*l*d", "d", "9*d", "1"),
        3: ("3*s*d", "d", "3*d", "1"),
    }  # fmt: skip
    cases: dict[str, Case] = {}
    for causal in (False, True):
        name = f"{'causal' if causal else 'plain'}-{t}"
        cases[name] = made(t, envs, causal=causal)
        cases[f"groups-{name}"] = made(t, envs, causal=causal, heads=6)
        cases[f"window-1-{name}"] = made(t, envs, causal=causal, window=1)
        cases[f"window-50-{name}"] = made(t, envs, causal=causal, window=50, heads=6)
        cases[f"qkv-{name}"] = made(t, envs, causal=causal, strides=qkv)
        cases[f"wide-{name}"] = wide(made(t, envs, causal=causal))
    cases[f"widths-{t}"] = made(t, envs, depth="d", width="40")
    cases[f"offset-{t}"] = made(t, envs[:3], offset=1, strides=qkv)
    return cases


def hopper_cases() -> dict[str, ConfiguredCase]:
    """By name, which ends with the element type; each on one of the tiles, and each tile on one."""
    found: dict[str, ConfiguredCase] = {}
    for t in ("f16", "bf16"):
        for i, (name, case) in enumerate((forms(t, ENVS) | changed(t, ENVS) | weights(t, ENVS)).items()):
            op = case.op
            assert isinstance(op, AttentionOp)
            tiles = tiles_for(op, 128 if name.startswith("wide") else 64)
            found[name] = on_kernel(case, "hopper", tiles[i % len(tiles)].config())
    for tile in itertools.chain(*TILES.values()):
        case = made("f16", causal=True, heads=6)
        name = f"{tile.depth}-{'x'.join(map(str, tile.config().values()))}-f16"
        found[name] = on_kernel(wide(case, tile.depth // 64), "hopper", tile.config())
    for tile in SHORT_STEPS:
        case = made("bf16", mask="3 x s x l", mask_type="f32", causal=True, heads=3)
        name = f"{tile.depth}-mask-{'x'.join(map(str, tile.config().values()))}-bf16"
        found[name] = on_kernel(wide(case, tile.depth // 64), "hopper", tile.config())
    return found


def numbers(t: str, size: int, flags: str, heads: int = 3, causal: bool = True, offset: int = 0) -> Case:
    """Attention whose result has 8 bits, of heads of `size` columns in the layout of a product; with `largest` each row
    of a head also has a scale."""
    rows, columns = f"b x {heads} x s x", f"b x 3 x l x {size} x {t}"
    dims = "dims {b = 0 to 4, s = 0 to 400, l = 0 to 400}"
    outs = [f"!ait.tensor<{rows} {size} x f8E4M3FN>", *([f"!ait.tensor<{rows[:-2]} x f32>"] * ("largest" in flags))]
    names = "os"[: len(outs)]
    text = (
        f"ait.graph @g(%q: !ait.tensor<{rows} {size} x {t}>, %k: !ait.tensor<{columns}>, %v: !ait.tensor<{columns}>) {dims} {{\n"
        f"  {', '.join(f'%{n}' for n in names)} = ait.attention %q, %k, %v scale 0.125 {'causal ' * causal}{flags} : {', '.join(outs)}\n"
        + "".join(f'  ait.output "{n}" %{n} : {out}\n' for n, out in zip(names, outs, strict=True))
        + "}"
    )
    width = heads * size
    strides: dict[int, tuple[str, ...]] = {3: (f"{width}*s", f"{size}", f"{width}", "1")}
    if "largest" in flags:
        strides[4] = (f"{heads}*s", "1", f"{heads}")
    return Case(text, [env for env in ENVS if env["d"] != 5], strides, offset)


NUMBER_ULPS = QUANTISED_ATTENTION.ulps["f16"]
BY_ROW, BY_ONE = "largest 448.0 least 1e-30", "result_scale 0.0078125"


def number_cases() -> dict[str, ConfiguredCase]:
    """By name, which ends with the element type: one scale, and scales of rows, on each depth of the tiles."""
    cases: dict[str, ConfiguredCase] = {}
    for i, (size, tiles) in enumerate((size, TILES[depth]) for depth in TILES for size in (depth, depth - 48)):
        t, flags = ("f16", "bf16")[i % 2], (BY_ROW, BY_ONE)[i // 2 % 2]
        config = tiles[i % len(tiles)].config()
        cases[f"rows-{size}-{t}"] = on_kernel(numbers(t, size, BY_ROW, 3 + i % 2 * 3, i % 3 > 0), "hopper", config)
        cases[f"{'rows' if flags == BY_ROW else 'one'}-causal-{size}-{t}"] = on_kernel(numbers(t, size, flags), "hopper", config)
    cases["offset-rows-64-f16"] = on_kernel(numbers("f16", 64, BY_ROW, offset=3), "hopper", TILES[64][0].config())
    return cases


def split_cases() -> dict[str, ConfiguredCase]:
    """By name, which ends with the element type; with masks, and any number of warps and blocks."""
    cases: dict[str, Case] = {}
    for t in ("f16", "bf16"):
        cases |= forms(t, FEW) | changed(t, FEW)
        for causal in (False, True):
            name = f"{'causal' if causal else 'plain'}-{t}"
            cases[f"pieces-{name}"] = made(t, FEW, causal=causal, then="s", heads=6)
            cases[f"pieces-mask-{name}"] = made(
                t, FEW, mask="b x 1 x 1 x (s + l)", causal=causal, then="s", strides=PIECES
            )
            cases[f"pieces-wide-{name}"] = wide(made(t, FEW, causal=causal, then="l"))
            cases[f"pieces-window-{name}"] = made(t, FEW, causal=causal, then="s", window=50)
    configs = [{"eights": e, "warps": w, "blocks": b} for w, b in ((4, 16), (1, 8), (8, 1), (2, 4)) for e in (1, 2)]
    return {name: on_kernel(case, "split", configs[i % len(configs)]) for i, (name, case) in enumerate(cases.items())}
