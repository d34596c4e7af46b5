"""The kernels of convolutions without a card: what each is offered for, and which strides it takes."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import parse
from ait_mlir.lowering.kernels import Target, kernel_of, kernels_for
from ait_mlir.lowering.kernels.gemm_tiles import GemmTile
from tests.kernels.harness import Case
from tests.specs.draw import draw

CUDA = Target("cuda", "sm_90a")
DRAWN = {name: found.case for name, found in draw("gpu", ["conv"]).items()}


def offered(case: Case, target: Target = CUDA) -> set[str]:
    return {kernel.provider for kernel in kernels_for(case.op, target)}


def test_mma_is_for_one_group_that_is_not_spread() -> None:
    for name, on_cards in (
        ("conv-same-f16", True),
        ("conv-wide-bf16", True),
        ("conv-deep_volume-f16", True),
        ("conv-long_line-bf16", True),
        ("conv-same-f32", False),
        ("conv-point-f16", True),
        ("conv-steps-f16", True),
        ("conv-groups-f16", False),
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
