"""The Hopper gemm without a card: what it is offered for, which strides and tiles it takes, that its code compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import parse
from ait_mlir.errors import AitError
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target, kernel_of, kernels_for
from ait_mlir.lowering.kernels.gemm_hopper import TILES, HopperTile
from ait_mlir.lowering.kernels.gemm_padded import padded_type
from ait_mlir.lowering.toolchain import find_nvcc
from tests.kernels.contractions import BIAS, BIAS_GELU, BIAS_RESIDUAL, SILU_MUL, contraction, resized
from tests.kernels.harness import Case, sources_of
from tests.kernels.hopper import SIZES, hopper_cases, in_eights, made, rotated
from tests.kernels.library_gemm import on_kernel

CUDA = Target("cuda", "sm_90a")


def offered(case: Case, target: Target = CUDA) -> bool:
    return "hopper" in {k.provider for k in kernels_for(case.op, target)}


def test_matches() -> None:
    plain = made("gemm", "rcr", "f16")
    assert offered(plain) and offered(made("gemm", "rrr", "bf16"))
    assert not any(
        offered(plain, t) for t in (Target("cuda", "sm_80"), Target("rocm", "gfx90a"), Target("cpu", "native"))
    )
    assert not offered(made("gemm", "rcr", "f32"))
    assert offered(made("gemm", "rcr", "f16", names="k"))  # rows of the result start anywhere
    assert not offered(made("gemm", "rcr", "f16", names="n"))  # rows of the operands do
    assert not offered(made("gemm", "rrr", "f16", names="k"))  # n is the contiguous dim of b
    assert not offered(made("gemm", "crr", "f16"))  # m is the contiguous dim of a
    assert offered(made("gemm", "crr", "f16", names="mnk"))
    sizes = "dims {m = 1 to 9, n = 1 to 9, k = 0 to 9}"
    assert not offered(contraction("gemm", "rcr", "f16", [], sizes=sizes))


@pytest.mark.parametrize(
    ("extra", "t"),
    [("n", "f16"), ("m x n", "f32"), ("1 x n", "f16"), ("m x 1", "f16"), ("", "f32"), ("m x n", "i1"), ("m x 1", "i1")],
)
def test_extra_operands_have_contiguous_columns_or_one(extra: str, t: str) -> None:
    body = BIAS if t != "i1" else "    %y = ait.where %0, %acc, %acc : T\n"
    case = made("gemm", "rcr", "f16", extras=[(extra, t)], body=body)
    assert offered(case)
    apart = [parse(text) for text in ("16*n", "2")][-len(tensor_type(case.op.operands[2]).dims) :]
    accepted = kernel_of("hopper", case.op, CUDA).accepts(case.op, 2, tuple(apart) if extra else (), scope_of(case.op))
    assert accepted == (not extra.endswith("n"))


@pytest.mark.parametrize(
    ("position", "strides", "accepted"),
    [
        (0, ("m*8*k", "8*k", "1"), True),
        (0, ("2*m*8*k", "16*k", "1"), True),
        (0, ("8*k", "72*k", "1"), True),
        (0, ("m*(8*k + 8)", "8*k + 8", "1"), True),
        (0, ("m*(8*k + 4)", "8*k + 4", "1"), False),
        (0, ("m*16*k", "16*k", "2"), False),
        (1, ("1", "8*n"), True),
        (1, ("1", "8*n + 1"), False),
        (2, ("1",), True),
        (2, ("2",), False),
        (3, ("24*m*n", "24*n", "1"), True),
        (3, ("m*(8*n + 4)", "8*n + 4", "1"), True),
        (3, ("m*(8*n + 1)", "8*n + 1", "1"), True),
        (3, ("16*m*n", "16*n", "2"), False),
    ],
)
def test_accepts(position: int, strides: tuple[str, ...], accepted: bool) -> None:
    case = made("gemm", "rcr", "f16", batch=("b x ", "", "b x "), extras=[("n", "f16")], body=BIAS)
    kernel = kernel_of("hopper", case.op, CUDA)
    assert kernel.accepts(case.op, position, tuple(parse(s) for s in strides), scope_of(case.op)) is accepted


def test_tiles() -> None:
    for tile in TILES:
        assert HopperTile.of(tile.config()) == tile
    bad = (
        {"tile_m": 96}, {"tile_n": 40}, {"cluster": 3}, {"stages": 9}, {"teams": 3}, {"groups": 3}, {"teams": 0},
        {"tile_n": 256, "stages": 3}, {"split": 3}, {"split": 2}, {"teams": 1, "split": 2, "cluster": 2},
        {"teams": 1, "tile_n": 96, "split": 8, "stages": 2, "groups": 2},
    )  # fmt: skip
    for config in bad:
        with pytest.raises(ValueError, match="no Hopper gemm has the tile"):
            HopperTile.of(HopperTile(128, 128, 4, 1, 2, 1).config() | config)


def test_constants_are_read_early() -> None:
    case = made("gemm", "rcr", "f16", extras=[("n", "f16"), ("m x n", "f16")], body=BIAS_RESIDUAL)
    swapped = made("gemm", "rcc", "f16", names="mnk")
    for chosen, constants, flags in (
        (case, (), "false, false"),
        (case, (1,), "false, true"),
        (swapped, (1,), "true, false"),
    ):
        _, code = on_kernel(chosen, "hopper", {}, constants).code(0, CUDA)
        assert f"), {flags});" in code
    assert "true, true, true, 1, " in on_kernel(case, "hopper").code(0, CUDA)[1]  # operand 0 is one row for all rows


@pytest.mark.parametrize(
    ("names", "strides", "aligned"),
    [("nk", {}, "true"), ("k", {}, "false"), ("nk", {3: ("8*n + 8", "1")}, "true"), ("nk", {3: ("8*n + 1", "1")}, "false"),
     ("nk", {4: ("8*n + 4", "1")}, "false")],
)  # fmt: skip
def test_rows_that_start_anywhere(names: str, strides: dict[int, tuple[str, ...]], aligned: str) -> None:
    extras = [("n", "f16"), ("m x n", "f16")]
    case = in_eights(contraction("gemm", "rcr", "f16", [], extras=extras, body=BIAS_RESIDUAL, sizes=SIZES), names)
    case = Case(case.text, [], {at: tuple(steps) for at, steps in strides.items()})
    _, code = on_kernel(case, "hopper").code(0, CUDA)
    assert f"true, true, {aligned}, 1, " in code


def test_gated_products() -> None:
    """Tiles that are not split and have whole pieces of both halves; estimates count the columns of both."""
    for layout, pieces in (("rcr", 32), ("rrr", 128)):
        case = made("gated_gemm", layout, "f16", batch=("b x ", "", "b x "), body=SILU_MUL)
        native = {"native"} if layout == "rcr" else set[str]()  # halves of b lie one below the other
        assert {k.provider for k in kernels_for(case.op, CUDA)} == {"hopper"} | native
        assert {k.provider for k in kernels_for(case.op, Target("cuda", "sm_80"))} == native
        assert not kernels_for(case.op, Target("cpu", "native")) and not kernels_for(case.op, Target("rocm", "gfx90a"))
        kernel = kernel_of("hopper", case.op, CUDA)
        tiles = [HopperTile.of(c) for c in kernel.configs(case.op, CUDA)]
        assert tiles and all(t.split == 1 and t.n % pieces == 0 for t in tiles)
        plain = made("gemm", layout, "f16", batch=("b x ", "", "b x "))
        assert kernel.seconds(case.op, CUDA) > kernel.seconds(plain.op, CUDA)
    problem = made("gated_gemm", "rcr", "f16", body=SILU_MUL)
    wrong = (
        (HopperTile(64, 64, 6, 1, 1, 1, 2), "is split"),
        (HopperTile(64, 96, 6, 4, 1, 1), "no multiple of 64"),
    )
    for tile, what in wrong:
        assert what in (kernel_of("hopper", problem.op, CUDA).config_problem(problem.op, tile.config(), CUDA) or "")
    code = on_kernel(problem, "hopper", HopperTile(128, 224, 4, 2, 1, 2).config()).code(0, CUDA)[1]
    assert "HopperTile<128, 224, 4, 2, 1, 2, 1, true>" in code and "apply(float in0, float in1, float& out0)" in code


def test_rotated_products() -> None:
    """Tiles of whole heads that are not split, on sm_90a alone; its terms are those of the gemm with a residual."""
    case = rotated("f16", 96, 4, "b x m x ", [])
    (kernel,) = kernels_for(case.op, CUDA)
    assert not kernels_for(case.op, Target("cuda", "sm_80")) and not kernels_for(case.op, Target("rocm", "gfx90a"))
    for odd in (
        rotated("f16", 24, 4, "b x m x ", []),
        rotated("f16", 512, 1, "b x m x ", []),
        rotated("f32", 64, 4, "", []),
    ):
        assert not kernels_for(odd.op, CUDA)
    tiles = [HopperTile.of(config) for config in kernel.every_config(case.op, CUDA)]
    assert {tile.n for tile in tiles} == {96, 192} and all(tile.split == 1 for tile in tiles)
    assert kernel.is_fitted(case.op, kernel.configs(case.op, CUDA)[0], CUDA)
    for wrong in (HopperTile(128, 128, 5, 1, 2, 1), HopperTile(64, 96, 6, 1, 1, 1, 2)):
        assert "whole heads of 96" in (kernel.config_problem(case.op, wrong.config(), CUDA) or "")
    code = on_kernel(case, "native", HopperTile(64, 96, 6, 1, 1, 1).config(), (1,)).code(0, CUDA)[1]
    assert "HopperTile<64, 96, 6, 1, 1, 1, 1, false, 96>, true, 0>" in code and "false, true);" in code
    one = on_kernel(rotated("f16", 96, 4, "", []), "native").code(0, CUDA)[1]
    assert "96>, true, 3>" in one  # all rows share one row of both tables


def test_configs_fit_the_layout() -> None:
    for layout in ("rcr", "rrr"):
        case = made("gemm", layout, "f16", extras=[("n", "f16")], body=BIAS_GELU)
        kernel = kernel_of("hopper", case.op, CUDA)
        configs = kernel.configs(case.op, CUDA)
        assert configs and all(layout == "rcr" or HopperTile.of(c).n % 64 == 0 for c in configs)
        assert isinstance(case.op, ContractionOp) and 1e-6 < kernel.seconds(case.op, CUDA) < 1e-3


def test_compiles(tmp_path: Path) -> None:
    try:
        find_nvcc()
    except AitError as e:
        pytest.skip(str(e))
    cases = hopper_cases()
    chosen = [
        cases[name]
        for name in (
            "gemm-rcr-f16",
            "bmm-ccc-bf16",
            "gated-wide-bf16",
            "gated-rrr-f16",
            "rotated-rows-f16",
            "gelu-f16",
            "wide-bf16",
            "split2-128x128-rcr-f16",
            "odd-rows-f16",
            "odd-wide-bf16",
            "odd-mask-f16",
        )
    ]
    assert build_library(sources_of(chosen, CUDA), CUDA, tmp_path).exists()


@pytest.mark.parametrize(
    ("layout", "t", "m", "n", "k", "positions"),
    [
        ("rrr", "f16", "m", "818", "859", (0, 1)),
        ("rrr", "bf16", "m", "634", "352", (1,)),
        ("rcr", "f16", "m", "n", "859", (0, 1)),
        ("rcr", "f16", "m", "818", "864", None),  # rows of the result may start anywhere
        ("rrr", "f16", "m", "n", "864", None),  # n may be a multiple of 8
        ("rrr", "f32", "m", "818", "859", None),
    ],
)
def test_rows_that_are_copied(layout: str, t: str, m: str, n: str, k: str, positions: tuple[int, ...] | None) -> None:
    case = contraction("gemm", layout, t, [], m=m, n=n)
    op = Case(resized(case.text, n, k), []).op
    found = [kernel for kernel in kernels_for(op, CUDA) if kernel.provider == "padded"]
    assert [kernel.between(op, {}, CUDA) for kernel in found] == (
        [] if positions is None else [tuple(padded_type(tensor_type(op.operands[i])) for i in positions)]
    )
    assert not [kernel for kernel in kernels_for(op, Target("cuda", "sm_80")) if kernel.provider == "padded"]
