"""The attention kernels of Hopper without a card: what they are offered for and take, estimates, that their code compiles."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import parse
from ait_mlir.errors import AitError
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.candidates import candidates_of
from ait_mlir.lowering.kernels import Target, kernel_of, kernels_for
from ait_mlir.lowering.kernels.attention import is_changed
from ait_mlir.lowering.kernels.attention_hopper import FLOAT8_TILES, TILES, FlashTile
from ait_mlir.lowering.toolchain import find_nvcc
from ait_mlir.selection.shortlist import best_by_estimate
from tests.kernels.attention_float8 import FORMS
from tests.kernels.attention_float8 import made as float8
from tests.kernels.attention_gpu import ENVS, changed, hopper_cases, made, split_cases, wide
from tests.kernels.contractions import attention
from tests.kernels.harness import Case, sources_of
from tests.kernels.library_gemm import on_kernel

CUDA = Target("cuda", "sm_90a")
OTHERS = (Target("cuda", "sm_80"), Target("rocm", "gfx90a"), Target("cpu", "native"))


def offered(case: Case, target: Target = CUDA) -> set[str]:
    return {k.provider for k in kernels_for(case.op, target)} & {"native", "hopper", "split"}


def sized(batch: int, heads: int, rows: int, cols: int, depth: int, groups: int = 0, flags: str = "") -> Case:
    q = f"!ait.tensor<{batch} x {heads} x {rows} x {depth} x f16>"
    kv = f"!ait.tensor<{batch} x {groups or heads} x {cols} x {depth} x f16>"
    return Case(
        f"ait.graph @g(%q: {q}, %k: {kv}, %v: {kv}) {{\n"
        f"  %r = ait.attention %q, %k, %v scale 0.125{flags} : {q}\n"
        f'  ait.output "r" %r : {q}\n}}'
    )


def test_matches() -> None:
    plain = made("f16")
    assert offered(plain) == {"hopper", "split", "native"}
    assert offered(made("bf16", causal=True, window=50, heads=6)) == {"hopper", "split", "native"}
    assert all(offered(plain, target) == {"native"} for target in OTHERS)
    assert offered(made("f32")) == {"native"}
    assert offered(wide(plain)) == {"hopper", "split", "native"}


def test_declines() -> None:
    assert offered(attention("f16")) == {"native"}  # heads of any number of columns
    assert offered(attention("f16", depth="64", width="d")) == {"native"}
    assert offered(sized(1, 2, 64, 64, 264)) == {"native"}  # in parts, in ordinary arithmetic
    assert offered(sized(1, 2, 64, 64, 136)) == {"hopper", "native"}
    assert offered(made("f16", then="s")) == {"split", "native"}  # k and v in two pieces
    assert offered(sized(1, 2, 65, 64, 64)) == {"hopper", "native"}  # too many rows to be few
    assert offered(sized(1, 2, 64, 64, 64, flags=" no_softmax")) == {"hopper", "native"}
    assert offered(sized(1, 2, 64, 64, 64)) == {"hopper", "split", "native"}


@pytest.mark.parametrize(
    ("size", "options", "on_hopper"),
    [
        (64, {}, True),
        (128, {"to": "bf16", "flags": "causal window 50", "mask": "3 x s x l x f32"}, True),
        (48, {"to": "f8E4M3FN", "flags": "result_scale 0.5"}, True),
        (64, {"to": "f32"}, False),
        (56, {}, False),  # rows that do not start on 16 bytes
        (144, {}, False),
        (64, {"flags": "no_softmax"}, False),
    ],
    ids=str,
)
def test_8_bit_floats(size: int, options: dict[str, str], on_hopper: bool) -> None:
    case = float8(size, **options)  # type: ignore[arg-type]
    assert offered(case) == {"native"} | ({"hopper"} if on_hopper else set())
    assert [offered(case, target) for target in OTHERS] == [{"native"}, {"native"}, set()]


def test_a_tile_of_8_bit_floats_is_checked() -> None:
    tile = FLOAT8_TILES[128][0]
    assert FlashTile.of(tile.config(), tile) == tile
    for config in ({"cols": 160}, {"groups": 3}, {"stages": 5}):
        with pytest.raises(ValueError, match="no Hopper attention has the tile"):
            FlashTile.of(config, tile)


@pytest.mark.parametrize("t", ["f16", "bf16"])
@pytest.mark.parametrize("depth", range(16, 257, 8))
def test_every_width_of_a_head_has_a_fast_kernel(depth: int, t: str) -> None:
    case = sized(2, 12, 300, 300, depth, 4, " causal")
    assert "hopper" in offered(Case(case.text.replace("f16", t)))


@pytest.mark.parametrize("name", [name for name in changed("f16", ENVS) if name.endswith("f16")])
def test_whatever_happens_to_scores_the_fast_kernels_do_it(name: str) -> None:
    case = changed("f16", ENVS)[name]
    assert offered(case) == {"hopper", "split", "native"}
    assert isinstance(case.op, AttentionOp)
    assert "cudnn" not in {k.provider for k in kernels_for(case.op, CUDA)} or not is_changed(case.op)


def test_a_bias_with_scattered_columns_is_copied() -> None:
    """A table of [rows, columns, heads] read as [heads, rows, columns]; one column of it, or one row, is read in place."""
    for mask, strides, accepted in (
        ("3 x s x l", ("1", "3*l", "3"), False),
        ("3 x s x l", ("s*l", "l", "1"), True),
        ("3 x s x 1", ("1", "3", "3"), True),
        ("3 x 1 x l", ("1", "3*l", "3"), True),
        ("l", ("3",), True),
    ):
        case = made("f16", mask=mask)
        for provider in ("hopper", "split", "native"):
            kernel = kernel_of(provider, case.op, CUDA)
            steps = tuple(parse(s) for s in strides)
            assert kernel.accepts(case.op, 3, steps, scope_of(case.op)) is accepted, (mask, provider)


def test_a_tile_without_registers_for_the_operands_is_refused() -> None:
    case = wide(made("f16", mask="3 x s x l", mask_type="f32"))
    with pytest.raises(ValueError, match="a thread would hold 224 registers; take fewer cols"):
        kernel_of("hopper", case.op, CUDA).check(case.op, {"cols": 128}, CUDA)
    assert kernel_of("hopper", case.op, CUDA).configs(case.op, CUDA)[0]["cols"] == 64


@pytest.mark.parametrize(
    ("position", "strides", "accepted"),
    [
        (0, ("24*s*d", "8*d", "24*d", "1"), True),
        (0, ("24*s*d", "8*d", "24*d", "2"), False),
        (1, ("24*s*d", "8*d", "24*d + 4", "1"), False),
        (1, ("0", "8*d", "24*d + 8", "1"), True),
        (2, ("24*s*d", "8*d + 1", "24*d", "1"), False),
        (3, ("24*s*d", "8*d", "24*d", "1"), True),
        (3, ("12*s*d", "4*d", "12*d", "1"), False),
    ],
)
@pytest.mark.parametrize("provider", ["hopper", "split"])
def test_accepts(provider: str, position: int, strides: tuple[str, ...], accepted: bool) -> None:
    case = made("f16")
    kernel = kernel_of(provider, case.op, CUDA)
    assert kernel.accepts(case.op, position, tuple(parse(s) for s in strides), scope_of(case.op)) is accepted


def test_a_mask_may_have_any_strides() -> None:
    case = made("f16", mask="b x 1 x 1 x l")
    kernel = kernel_of("split", case.op, CUDA)
    strides = tuple(parse(s) for s in ("3*l", "0", "1", "3"))
    assert kernel.accepts(case.op, 3, strides, scope_of(case.op))


def test_tiles() -> None:
    for depth, tiles in TILES.items():
        for tile in tiles:
            assert FlashTile.of(tile.config(), TILES[depth][0]) == tile
    bad = (
        {"groups": 4},
        {"groups": 0},
        {"cols": 72},
        {"cols": 288},
        {"stages": 0},
        {"stages": 9},
        {"groups": 3, "cols": 256},
    )
    for config in bad:
        with pytest.raises(ValueError, match="no Hopper attention has the tile"):
            FlashTile.of(config, TILES[128][0])


@pytest.mark.parametrize("config", [{"eights": 3}, {"warps": 3}, {"blocks": 32}])
def test_split_configurations(config: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="no split attention has the configuration"):
        on_kernel(made("f16"), "split", config).code(0, CUDA)


@pytest.mark.parametrize(
    ("case", "provider"),
    [
        (sized(1, 12, 128, 128, 64), "hopper"),
        (sized(32, 12, 128, 128, 64), "hopper"),
        (sized(32, 12, 384, 384, 64), "hopper"),
        (sized(4, 32, 2048, 2048, 128, flags=" causal"), "hopper"),
        (sized(1, 32, 512, 512, 128, 8, " causal"), "hopper"),
        (sized(1, 32, 1, 2048, 128, 8), "split"),
        (sized(16, 32, 1, 2048, 128, 32), "split"),
        (sized(1, 32, 4, 2048, 128, 8, " causal"), "split"),
    ],
)
def test_estimates_choose(case: Case, provider: str) -> None:
    best = best_by_estimate(list(candidates_of(case.op, CUDA, configs=1, configs_cut=1)))
    assert [name for name, _ in best.kernels] == [provider]


@pytest.mark.parametrize(
    ("case", "groups", "cols"),
    [
        (sized(1, 12, 128, 128, 64), 1, 128),
        (sized(32, 12, 128, 128, 64), 2, 128),
        (sized(32, 12, 197, 197, 64), 2, 224),
        (sized(32, 12, 384, 384, 64), 3, 128),
        (sized(4, 32, 2048, 2048, 128, flags=" causal"), 2, 128),
    ],
)
def test_the_first_tile_is_the_one_that_measured_best(case: Case, groups: int, cols: int) -> None:
    first = kernel_of("hopper", case.op, CUDA).configs(case.op, CUDA)[0]
    assert (first["groups"], first["cols"]) == (groups, cols)


@pytest.mark.parametrize(
    ("sizes", "groups", "cols"),
    [
        ((1, 12, 128, 128, 64), 1, 128),
        ((32, 12, 128, 128, 64), 2, 128),
        ((32, 12, 197, 197, 64), 2, 128),
        ((32, 12, 384, 384, 64), 3, 96),
        ((1, 16, 16384, 16384, 64), 3, 96),
        ((4, 16, 2048, 2048, 128), 2, 128),
    ],
)
def test_the_first_tile_of_8_bit_floats_is_the_one_that_measured_best(
    sizes: tuple[int, int, int, int, int], groups: int, cols: int
) -> None:
    batch, heads, rows, length, size = sizes
    q, kv = (f"!ait.tensor<{batch} x {heads} x {count} x {size} x" for count in (rows, length))
    case = Case(
        f"ait.graph @g(%q: {q} f8E4M3FN>, %k: {kv} f8E4M3FN>) {{\n"
        f'  %r = ait.attention %q, %k, %k scale 0.125 : {q} f16>\n  ait.output "r" %r : {q} f16>\n}}'
    )
    first = kernel_of("hopper", case.op, CUDA).configs(case.op, CUDA)[0]
    assert (first["groups"], first["cols"]) == (groups, cols)


def test_code_names_the_template() -> None:
    _, code = on_kernel(made("f16", causal=True, window=50, heads=6), "hopper", {"groups": 3}).code(0, CUDA)
    assert "attention_hopper<ait::gpu::FlashTile<64, 3, 128, 2>, true, true>" in code
    assert "(8*d" not in code and ", 6 / 3, 50}" in code
    _, code = on_kernel(made("f16", mask="l"), "split", {"eights": 2}).code(0, CUDA)
    assert "attention_split<ait::gpu::SplitTile<64, 2, 4>, false, false>" in code and ", 16);" in code
    assert "changed_scores<ait::AddMask>(ait::gpu::ScoreOperand<ait::half, false, ait::ScoreColumns::kUnit>{" in code
    _, code = on_kernel(made("f16", then="3"), "split", {}).code(0, CUDA)
    assert "dim_2 + 3, " in code.replace("(dim_2 + 3)", "dim_2 + 3") and ", 16, ait::gpu::SecondPiece<ait::half>{" in code


def longest(instances: int, row_tiles: int, section: int, sms: int = 132) -> int:
    """What the multiprocessor with the most work does: 10 for each step of a tile of as many rows as columns, and 7."""
    load = [0] * sms
    for tile in range(instances * row_tiles):
        first = tile // (section * row_tiles) * section
        row_tile = row_tiles - 1 - tile % (section * row_tiles) // min(section, instances - first)
        turn, block = divmod(tile, sms)
        load[sms - 1 - block if turn % 2 else block] += 10 * (row_tile + 1) + 7
    return max(load)


def test_sections_are_even(tmp_path: Path) -> None:
    text = """#include "ait/kernels/attention_section.h"
extern "C" int section(int row_tiles, int instances, int most) {
  return ait::even_section({row_tiles, instances, 128, 128, 0, 128 * row_tiles, most, 132});
}
"""
    library = ctypes.CDLL(str(build_library({"section.cc": text}, Target("cpu", "native"), tmp_path)))
    for instances, row_tiles, most in ((128, 16, 32), (64, 22, 32), (64, 32, 12), (32, 16, 8)):
        loads = [longest(instances, row_tiles, section) for section in range(1, most + 1)]
        assert library.section(row_tiles, instances, most) == 1 + loads.index(min(loads))
        assert library.section(row_tiles, instances, most) == 1 + loads.index(min(loads))
    assert library.section(4, 12, 12) == 1  # everything runs at once
    assert library.section(16, 128, 0) == 1


def test_compiles(tmp_path: Path) -> None:
    try:
        find_nvcc()
    except AitError as e:
        pytest.skip(str(e))
    hopper, split = hopper_cases(), split_cases()
    names = "plain-f16", "wide-causal-bf16", "hidden-f16"
    chosen = [
        *map(hopper.__getitem__, names),
        on_kernel(FORMS["numbers-128"], "hopper", {}),
        *(split[f"{n}-f16"] for n in ("mask-causal", "pieces-causal", "nan-rows")),
    ]
    assert build_library(sources_of(chosen, CUDA), CUDA, tmp_path).exists()


@pytest.mark.parametrize(
    ("arch", "depth", "tiles"),
    [("sm_90a", "64", 4), ("sm_90a", "128", 4), ("sm_86", "128", 3), ("sm_90a", "136", 0), ("gfx90a", "64", 0)],
)
def test_f32_in_parts_where_its_tiles_fit(arch: str, depth: str, tiles: int) -> None:
    target = Target("rocm" if arch.startswith("gfx") else "cuda", arch)
    op = attention("f32", depth=depth, width=depth).op
    (native,) = (kernel for kernel in kernels_for(op, target) if kernel.provider == "native")
    configs = native.configs(op, target)
    assert configs[-1] == {} and len(configs) == tiles + 1
    assert native.configs(op, Target(target.kind, arch, "high"))[-1] != {} or tiles == 0
