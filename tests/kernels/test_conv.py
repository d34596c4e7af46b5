"""The kernels of convolutions without a card: what each is offered for, and which strides it takes."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import parse
from ait_mlir.lowering.candidates import candidates_of
from ait_mlir.lowering.kernels import Target, kernel_of, kernels_for
from ait_mlir.lowering.kernels.gemm_hopper import HopperTile
from ait_mlir.lowering.kernels.gemm_tiles import GemmTile
from ait_mlir.selection.shortlist import best_by_estimate
from tests.kernels.harness import Case
from tests.kernels.library_gemm import on_kernel
from tests.specs.draw import draw

CUDA = Target("cuda", "sm_90a")
DRAWN = {name: found.case for name, found in draw("gpu", ["conv"]).items()}


def offered(case: Case, target: Target = CUDA) -> set[str]:
    return {kernel.provider for kernel in kernels_for(case.op, target)}


def test_mma_is_for_groups_that_are_not_spread() -> None:
    for name, on_cards in (
        ("conv-same-f16", True),
        ("conv-wide-bf16", True),
        ("conv-deep_volume-f16", True),
        ("conv-long_line-bf16", True),
        ("conv-same-f32", False),
        ("conv-point-f16", True),
        ("conv-steps-f16", True),
        ("conv-groups-f16", True),
        ("conv-depthwise-f16", False),
        ("conv-spread-f16", False),
    ):
        assert ("mma" in offered(DRAWN[name])) is on_cards, name
    assert "mma" in offered(DRAWN["conv-same-f16"], Target("cuda", "sm_80"))
    assert "mma" not in offered(DRAWN["conv-same-f16"], Target("rocm", "gfx90a"))


@pytest.mark.parametrize(
    ("position", "strides", "accepted"),
    [(0, ("h*88", "88", "8", "1"), True), (0, ("h*176", "176", "16", "1"), True), (0, ("h*99", "99", "9", "1"), False),
     (0, ("88*h", "8", "8*h", "1"), True), (0, ("88*h", "1", "h", "11*h"), False), (1, ("72", "24", "8", "1"), True),
     (1, ("73", "24", "8", "1"), False), (1, ("1", "72", "24", "9"), False), (2, ("h*500", "500", "40", "1"), True)],
)  # fmt: skip
def test_mma_strides(position: int, strides: tuple[str, ...], accepted: bool) -> None:
    op = DRAWN["conv-same-f16"].op
    kernel = kernel_of("mma", op, CUDA)
    assert kernel.accepts(op, position, tuple(parse(s) for s in strides), scope_of(op)) is accepted


def test_mma_reads_few_channels_with_any_strides() -> None:
    op = DRAWN["conv-steps-f16"].op
    kernel = kernel_of("mma", op, CUDA)
    channels_first = tuple(parse(s) for s in ("51*h", "17", "1", "17*h"))
    assert kernel.accepts(op, 0, channels_first, scope_of(op))
    spread = tuple(parse(s) for s in ("294", "42", "6", "2"))
    assert not kernel.accepts(op, 1, spread, scope_of(op))


def test_mma_configurations() -> None:
    op = DRAWN["conv-wide-f16"].op
    kernel = kernel_of("mma", op, CUDA)
    configs = kernel.configs(op, CUDA)
    assert 1 < len(configs) <= 8
    assert all(config not in configs[:i] for i, config in enumerate(configs))
    few = {config["tile_m"] * config["tile_n"] for config in configs}
    assert min(few) < max(few), "tiles for few places and for many"
    assert all(GemmTile.of(config).config() == config for config in configs)
    assert kernel.config_problem(op, {"tile_m": 48}, CUDA) is not None
    assert kernel.seconds(op, CUDA) < kernel_of("native", op, CUDA).seconds(op, CUDA)


def test_hopper_is_for_whole_pieces() -> None:
    for name, on_cards in (
        ("conv-same-f16", True),
        ("conv-wide-bf16", True),
        ("conv-wide_steps-f16", True),
        ("conv-long_line-bf16", True),
        ("conv-same-f32", False),
        ("conv-point-f16", False),  # 3 channels
        ("conv-deep_volume-f16", True),
        ("conv-volume-f16", False),  # 5 channels
        ("conv-groups-f16", False),  # 8 channels in a group
        ("conv-wide_groups-bf16", True),
        ("conv-spread-f16", False),
    ):
        assert ("hopper" in offered(DRAWN[name])) is on_cards, name
    for target in (Target("cuda", "sm_80"), Target("rocm", "gfx90a")):
        assert "hopper" not in offered(DRAWN["conv-same-f16"], target)


@pytest.mark.parametrize(
    ("clauses", "taps", "places", "taken"),
    [
        ("pad [64, 1]", 3, "(h + 126) x 11", True),
        ("pad [65, 1]", 3, "(h + 128) x 11", False),
        ("stride [8, 8] pad [1, 1]", 3, "((h - 1) floordiv 8 + 1) x 2", True),
        ("stride [9, 1] pad [1, 1]", 3, "((h - 1) floordiv 9 + 1) x 11", False),
        ("pad [63, 63] dilation [63, 63]", 3, "h x 11", True),
        ("pad [64, 64] dilation [64, 64]", 3, "h x 11", False),
    ],
)
def test_hopper_keeps_within_what_the_copy_engine_takes(clauses: str, taps: int, places: str, taken: bool) -> None:
    x, w, y = "b x h x 11 x 8 x f16", f"24 x {taps} x {taps} x 8 x f16", f"b x {places} x 24 x f16"
    text = (
        f"ait.graph @g(%x: !ait.tensor<{x}>, %w: !ait.tensor<{w}>) dims {{b = 1 to 8, h = 1 to 64}} {{\n"
        f'  %y = ait.conv %x, %w {clauses} : !ait.tensor<{y}>\n  ait.output "y" %y : !ait.tensor<{y}>\n}}'
    )
    assert ("hopper" in offered(Case(text, []))) is taken


@pytest.mark.parametrize(
    ("stride", "pad", "dilation", "taken"),
    [(1, 15, 1, True), (1, 16, 1, False), (1, 1, 7, True), (1, 1, 8, False), (8, 1, 4, True), (8, 1, 5, False)],
)
def test_hopper_takes_smaller_windows_of_volumes(stride: int, pad: int, dilation: int, taken: bool) -> None:
    places = (40 + 2 * pad - 2 * dilation - 1) // stride + 1
    clauses = f"stride [{stride}, 1, 1] pad [{pad}, 1, 1] dilation [{dilation}, 1, 1]"
    case = conv("2 x 40 x 9 x 9 x 16", "24 x 3 x 3 x 3 x 16", f"2 x {places} x 9 x 9 x 24", clauses)
    assert ("hopper" in offered(case)) is taken


@pytest.mark.parametrize(
    ("position", "strides", "accepted"),
    [
        (0, ("h*176", "176", "16", "1"), True),
        (0, ("h*99", "99", "9", "1"), False),  # a piece of 16 bytes begins anywhere
        (0, ("88*h", "1", "h", "11*h"), False),  # channels are apart
        (1, ("72", "24", "8", "1"), True),
        (1, ("73", "24", "8", "1"), False),
        (2, ("h*11*48", "11*48", "48", "1"), True),  # a part of wider rows
        (2, ("h*500", "500", "40", "1"), True),  # a batch for each row of each image
        (2, ("h*11*24", "1", "24*h", "h"), False),
    ],
)
def test_hopper_strides(position: int, strides: tuple[str, ...], accepted: bool) -> None:
    op = DRAWN["conv-same-f16"].op
    kernel = kernel_of("hopper", op, CUDA)
    assert kernel.accepts(op, position, tuple(parse(s) for s in strides), scope_of(op)) is accepted


def test_hopper_takes_operands_with_contiguous_channels() -> None:
    text = (
        "ait.graph @g(%x: !ait.tensor<b x 9 x 9 x 8 x f16>, %w: !ait.tensor<16 x 3 x 3 x 8 x f16>, "
        "%e: !ait.tensor<E x f16>) dims {b = 1 to 8} {\n"
        "  %y = ait.conv %x, %w pad [1, 1] epilogue(%e) {\n  ^bb0(%a: f32, %c: f32):\n    %s = ait.add %a, %c : f32\n"
        "    ait.yield %s : f32\n  } : !ait.tensor<b x 9 x 9 x 16 x f16>\n"
        '  ait.output "y" %y : !ait.tensor<b x 9 x 9 x 16 x f16>\n}'
    )
    for extra, taken in (("16", True), ("b x 9 x 9 x 16", True), ("b x 1 x 1 x 16", True), ("b x 9 x 9 x 1", False)):
        assert ("hopper" in offered(Case(text.replace("E x f16", f"{extra} x f16"), []))) is taken, extra


def test_hopper_configurations() -> None:
    op = DRAWN["conv-wide-f16"].op
    kernel = kernel_of("hopper", op, CUDA)
    configs = kernel.configs(op, CUDA)
    assert 1 < len(configs) <= 8 and len(kernel.every_config(op, CUDA)) > len(configs)
    assert all(HopperTile.of(config).config() == config for config in configs)
    assert kernel.config_problem(op, {"tile_m": 48}, CUDA) is not None
    assert kernel.seconds(op, CUDA) < kernel_of("mma", op, CUDA).seconds(op, CUDA)


def test_hopper_tiles_are_of_one_group() -> None:
    op = DRAWN["conv-wide_groups-f16"].op  # 32 channels of the result in a group
    kernel = kernel_of("hopper", op, CUDA)
    assert {config["tile_n"] for config in kernel.every_config(op, CUDA)} == {32}
    problem = kernel.config_problem(op, HopperTile(64, 64, 8, 1, 1, 1).config(), CUDA)
    assert problem is not None and "does not divide the channels of a group, 32" in problem


def conv(x: str, w: str, y: str, clauses: str = "pad [1, 1]", t: str = "f16", dims: str = "") -> Case:
    result = f"!ait.tensor<{y} x {t}>"
    text = (
        f"ait.graph @g(%x: !ait.tensor<{x} x {t}>, %w: !ait.tensor<{w} x {t}>) {dims} {{\n"
        f'  %y = ait.conv %x, %w {clauses} : {result}\n  ait.output "y" %y : {result}\n}}'
    )
    return Case(text, [{}])


def grouped_conv(
    x: int, w: str, y: int, groups: int, clauses: str = "", t: str = "f16", places: str = "56 x 56"
) -> Case:
    """32 images of `places` with `x` channels; weights of `w`, to as many places of `y` channels."""
    return conv(f"32 x {places} x {x}", w, f"32 x {places} x {y}", f"{clauses} groups {groups}", t)


@pytest.mark.parametrize(
    ("case", "taken"),
    [
        (grouped_conv(128, "128 x 3 x 3 x 4", 128, 32, "pad [1, 1]"), True),
        (grouped_conv(128, "64 x 3 x 3 x 64", 64, 2, "pad [1, 1]"), True),
        (grouped_conv(128, "128 x 3 x 3 x 4", 128, 32, "pad [1, 1]", t="f32"), False),
        (grouped_conv(128, "128 x 3 x 3 x 128", 128, 1, "pad [1, 1]"), False),
        (grouped_conv(128, "128 x 3 x 3 x 1", 128, 128, "pad [1, 1]"), False),  # depthwise
        (grouped_conv(128, "128 x 3 x 3 x 2", 128, 64, "pad [1, 1]"), False),  # two channels in a group
        (grouped_conv(12, "12 x 3 x 3 x 4", 12, 3, "pad [1, 1]"), False),  # 12 channels are not whole pieces
        (grouped_conv(136, "136 x 3 x 3 x 68", 136, 2, "pad [1, 1]"), False),  # more than 64 channels in a group
        (grouped_conv(128, "136 x 3 x 3 x 64", 136, 2, "pad [1, 1]"), False),  # more than 64 of the result
        (grouped_conv(128, "128 x 3 x 3 x 4", 128, 32, "pad [16, 16] dilation [16, 16]"), True),
        (grouped_conv(128, "128 x 3 x 3 x 4", 128, 32, "pad [60, 60] dilation [60, 60]"), False),  # 128 x 128 pixels
        (grouped_conv(128, "128 x 3 x 3 x 4", 128, 32, "transposed pad [1, 1]"), False),
    ],
)
def test_grouped_is_for_few_channels(case: Case, taken: bool) -> None:
    assert ("grouped" in offered(case)) is taken
    assert ("grouped" in offered(case, Target("cuda", "sm_80"))) is taken
    assert "grouped" not in offered(case, Target("rocm", "gfx90a"))


def test_grouped_is_not_for_volumes() -> None:
    text = (
        "ait.graph @g(%x: !ait.tensor<2 x 5 x 5 x 5 x 16 x f16>, %w: !ait.tensor<16 x 3 x 3 x 3 x 8 x f16>) {\n"
        "  %y = ait.conv %x, %w groups 2 : !ait.tensor<2 x 3 x 3 x 3 x 16 x f16>\n"
        '  ait.output "y" %y : !ait.tensor<2 x 3 x 3 x 3 x 16 x f16>\n}'
    )
    assert "grouped" not in offered(Case(text, [{}]))


@pytest.mark.parametrize(
    ("position", "strides", "accepted"),
    [
        (0, ("h*432", "432", "48", "1"), True),
        (0, ("h*396", "396", "44", "1"), False),  # a piece of 16 bytes begins anywhere
        (0, ("h*360", "1", "h", "9*h"), False),  # channels are apart
        (1, ("36", "12", "4", "1"), True),
        (1, ("37", "12", "4", "1"), True),
        (1, ("1", "120", "40", "360"), False),
        (2, ("h*9*41", "9*41", "41", "1"), True),
    ],
)
def test_grouped_strides(position: int, strides: tuple[str, ...], accepted: bool) -> None:
    op = DRAWN["conv-groups_of_four-f16"].op
    kernel = kernel_of("grouped", op, CUDA)
    assert kernel.accepts(op, position, tuple(parse(s) for s in strides), scope_of(op)) is accepted


@pytest.mark.parametrize(("channels", "size", "provider"), [(4, 56, "grouped"), (8, 28, "grouped"), (32, 7, "mma")])
def test_grouped_is_chosen_for_few_channels(channels: int, size: int, provider: str) -> None:
    """Convolutions of ResNeXt-50, without a card; with 32 channels, `mma` took 16 us where `grouped` took 39."""
    count = 32 * channels
    weight = f"{count} x 3 x 3 x {channels}"
    case = grouped_conv(count, weight, count, 32, "pad [1, 1]", places=f"{size} x {size}")
    assert best_by_estimate(list(candidates_of(case.op, CUDA))).describe().startswith(provider)


def test_cudnn_takes_groups() -> None:
    for name, on_cards in (
        ("conv-same-f16", True),
        ("conv-groups-f32", True),
        ("conv-groups-f16", False),  # 36 channels are not whole pieces of 16 bytes
        ("conv-wide_groups-bf16", True),
        ("conv-deep-f16", True),
        ("conv-depthwise-f32", False),  # 5 channels
        ("conv-depthwise_spread-f32", False),  # transposed
        ("conv-long_line-f16", True),
        ("conv-line-f32", False),
        ("conv-deep_volume-f16", False),  # three dims
    ):
        assert ("cudnn" in offered(DRAWN[name])) is on_cards, name
    for name, groups in (("conv-same-f16", 1), ("conv-groups-f32", 3), ("conv-deep-f16", 40)):
        _, code = on_kernel(DRAWN[name], "cudnn").code(0, CUDA)
        assert f"args.groups = {groups};" in code, code


def test_cudnn_takes_a_line_as_an_image_of_one_row() -> None:
    _, code = on_kernel(DRAWN["conv-long_line-f16"], "cudnn").code(0, CUDA)
    for field in (
        "in_height = 1",
        "in_width = dim_1",
        "out_height = 1",
        "kernel[0] = 1",
        "kernel[1] = 9",
        "stride[1] = 2",
    ):
        assert f"args.{field};" in code, code
    for field in ("pad_before[0] = 0", "pad_before[1] = 4", "strides_x[0] = (32 * dim_1)", "strides_x[1] = (32 * dim_1)"):
        assert f"args.{field};" in code, code
    assert "args.strides_x[2] = 32;" in code and "args.strides_y[2] = 16;" in code, code


@pytest.mark.parametrize(
    ("case", "taken"),
    [
        (conv("8 x 64 x 64 x 16", "16 x 3 x 3 x 16", "8 x 64 x 64 x 16"), True),
        (conv("8 x 64 x 64 x 3", "16 x 7 x 7 x 3", "8 x 32 x 32 x 16", "stride [2, 2] pad [3, 3]"), True),
        (conv("8 x 64 x 64 x 16", "300 x 3 x 3 x 16", "8 x 64 x 64 x 300"), True),
        (conv("8 x 64 x 16", "16 x 3 x 16", "8 x 64 x 16", "pad [1]"), True),
        (conv("8 x 64 x 64 x 16", "16 x 3 x 3 x 16", "8 x 64 x 64 x 16", t="f32"), False),
        (conv("8 x 64 x 64 x 136", "16 x 3 x 3 x 136", "8 x 64 x 64 x 16"), False),  # many channels
        (conv("8 x 64 x 64 x 16", "16 x 3 x 3 x 8", "8 x 64 x 64 x 16", "pad [1, 1] groups 2"), False),
        (conv("8 x 32 x 32 x 16", "16 x 3 x 3 x 16", "8 x 34 x 34 x 16", "transposed"), False),
        (conv("8 x 6 x 6 x 6 x 8", "8 x 3 x 3 x 3 x 8", "8 x 6 x 6 x 6 x 8", "pad [1, 1, 1]"), False),  # volumes
        (
            conv("2 x 299 x 299 x 32", "16 x 3 x 3 x 32", "2 x 101 x 101 x 16", "dilation [99, 99]"),
            False,
        ),  # a wide window
        (
            conv("8 x 9 x 9 x c", "16 x 3 x 3 x c", "8 x 9 x 9 x 16", dims="dims {c = 8 to 16}"),
            False,
        ),  # channels that only a run knows
    ],
)
def test_patch_is_for_few_channels(case: Case, taken: bool) -> None:
    assert ("patch" in offered(case)) is taken
    assert ("patch" in offered(case, Target("cuda", "sm_80"))) is taken
    assert "patch" not in offered(case, Target("rocm", "gfx90a"))


def test_patch_tiles_have_no_columns_to_spare() -> None:
    op = conv("8 x 64 x 64 x 16", "24 x 3 x 3 x 16", "8 x 64 x 64 x 24").op
    kernel = kernel_of("patch", op, CUDA)
    assert {c["tiles"] for c in kernel.every_config(op, CUDA)} == {2, 4}
    assert len(kernel.configs(op, CUDA)) == 4
    problem = kernel.config_problem(op, {"rows": 4, "tiles": 8, "warps": 4}, CUDA)
    assert problem is not None and "no tile has rows x tiles x warps 4 x 8 x 4; there are 1 x 2 x 4" in problem


@pytest.mark.parametrize(
    ("channels", "position", "strides", "accepted"),
    [
        (16, 0, ("8192", "1024", "16", "1"), True),
        (16, 0, ("8200", "1032", "24", "1"), True),
        (16, 0, ("8192", "1024", "20", "1"), False),  # a chunk begins anywhere
        (16, 0, ("1024", "128", "16", "2"), False),  # channels are apart
        (3, 0, ("1000", "100", "5", "1"), True),  # read one by one
        (16, 1, ("150", "48", "16", "1"), True),
        (16, 1, ("1", "160", "48", "3"), False),
        (16, 2, ("1024", "1", "8", "64"), True),
    ],
)
def test_patch_strides(channels: int, position: int, strides: tuple[str, ...], accepted: bool) -> None:
    op = conv(f"2 x 8 x 8 x {channels}", f"16 x 3 x 3 x {channels}", "2 x 8 x 8 x 16").op
    kernel = kernel_of("patch", op, CUDA)
    assert kernel.accepts(op, position, tuple(parse(s) for s in strides), scope_of(op)) is accepted


@pytest.mark.parametrize(
    ("case", "provider"),
    [
        (conv("8 x 64 x 64 x 16", "16 x 3 x 3 x 16", "8 x 64 x 64 x 16"), "patch"),
        (conv("1 x 64 x 64 x 3", "16 x 3 x 3 x 3", "1 x 64 x 64 x 16"), "patch"),
        (conv("32 x 14 x 14 x 128", "128 x 3 x 3 x 128", "32 x 14 x 14 x 128"), "hopper"),
    ],
)
def test_patch_is_chosen_for_few_channels(case: Case, provider: str) -> None:
    """Without a card. Of 8 x 64 x 64 x 16 to 16 channels `patch` took 5.3 us in a row of equal ones, `mma` 10.4 and
    `hopper` 19.3."""
    assert best_by_estimate(list(candidates_of(case.op, CUDA))).describe().startswith(provider)


@pytest.mark.parametrize(
    ("name", "strides", "accepted"),
    [
        ("conv-deep-f16", ("h*7*40", "7*40", "40", "1"), True),
        ("conv-deep-f16", ("h*7*48", "7*48", "48", "1"), True),
        ("conv-deep-f16", ("40*h*7", "7", "1", "h*7"), False),  # channels first
        ("conv-deep-f16", ("h*7*42", "7*42", "42", "1"), False),  # off 16-byte boundaries
        ("conv-depthwise-f16", ("h*7*6", "7*6", "6", "1"), True),  # five channels never lie on them
        ("conv-depthwise-f16", ("5*h*7", "7", "1", "h*7"), False),
    ],
)
def test_depthwise_strides(name: str, strides: tuple[str, ...], accepted: bool) -> None:
    op = DRAWN[name].op
    for target in (CUDA, Target("cpu", "native")):
        kernel = kernel_of("native", op, target)
        assert kernel.accepts(op, 0, tuple(parse(s) for s in strides), scope_of(op)) is accepted
        assert [k.provider for k in kernels_for(op, target)].count("native") == 1


@pytest.mark.parametrize(
    ("case", "taken"),
    [
        (grouped_conv(64, "64 x 3 x 3 x 1", 64, 64, "pad [1, 1]"), True),
        (grouped_conv(64, "64 x 3 x 3 x 1", 64, 64, "pad [1, 1]", t="f32"), True),
        (grouped_conv(64, "16 x 3 x 3 x 16", 16, 4, "pad [1, 1]", t="f32"), True),
        (grouped_conv(64, "64 x 9 x 9 x 1", 64, 64, "pad [4, 4]"), True),
        (grouped_conv(64, "64 x 11 x 11 x 1", 64, 64, "pad [5, 5]"), False),  # a window above 9 x 9
        (grouped_conv(64, "64 x 3 x 3 x 1", 64, 64, "pad [2, 2] dilation [2, 2]"), False),
        (grouped_conv(64, "64 x 3 x 3 x 1", 64, 64, "transposed pad [1, 1]"), False),
        (grouped_conv(128, "128 x 3 x 3 x 64", 128, 2, "pad [1, 1]"), False),  # more than 32 channels in a group
        (grouped_conv(16, "16 x 3 x 3 x 16", 16, 1, "pad [1, 1]"), False),
        (conv("2 x 50 x 16", "16 x 3 x 1", "2 x 50 x 16", "pad [1] groups 16"), False),  # a line
        (conv("2 x 50 x 50 x 16", "16 x 3 x 3 x 1", "2 x 17 x 17 x 16", "stride [3, 3] pad [1, 1] groups 16"), False),
    ],
)
def test_planes_are_for_groups_of_few_channels(case: Case, taken: bool) -> None:
    assert ("planes" in offered(case)) is taken
    assert ("planes" in offered(case, Target("rocm", "gfx90a"))) is taken
    assert "planes" not in offered(case, Target("cpu", "native"))
