"""Convolutions of f16 and bf16 on Hopper's own matrix instruction; the copy engine gathers the windows."""

from __future__ import annotations

import math
from collections.abc import Callable

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import Problem, contiguous_args, is_narrow
from ait_mlir.lowering.kernels.conv import ConvKernel, call_conv, problem
from ait_mlir.lowering.kernels.gemm_hopper import (
    MAX_CONFIGS,
    SPAN,
    STAGE_K,
    Finish,
    HopperTile,
    best_tiles,
    has_aligned_rows,
)

__all__ = ["KERNELS", "HopperConv"]

MOST_STEP = 8
"""The largest step of the window."""
MOST_PAD = {1: 64, 2: 64, 3: 15}
"""The largest padding of the input, by the number of spatial dims."""
MOST_REACH = {1: 127, 2: 127, 3: 15}
"""The most elements along a dim from the first tap of a window to the last, and to the next window less one. The copy
engine accepts corners from -128 to 127 and offsets up to 255, for three dims from -16 to 15 and up to 31."""


class HopperConv(ConvKernel):
    """wgmma and bulk tensor copies of windows (im2col), for sm_90a: not transposed. A tile has columns of one group;
    several groups need input channels in whole steps.

    A step along K is one tap and 64 of its channels, so fewer channels than 64 waste the rest of a step.
    """

    provider = "hopper"

    def matches(self, op: ConvOp, target: Target) -> bool:
        scope, channels = scope_of(op), tensor_type(op.x).dims[-1]
        numbers = zip(op.kernel(), op.dilations(), op.strides(), strict=True)
        reach = ((taps - 1) * dilation + step - 1 for taps, dilation, step in numbers)
        return (
            super().matches(op, target)
            and target.kind == "cuda"
            and target.has("wgmma", "bulk_copies")
            and is_narrow(tensor_type(op.x).element_type)
            and (
                op.num_groups() == 1
                or (scope.divisible(tensor_type(op.weight).dims[-1], STAGE_K) and bool(self._tiles(op)))
            )
            and not op.is_transposed()
            and scope.positive(channels)
            and scope.divisible(channels, SPAN)
            and max(op.strides()) <= MOST_STEP
            and all(0 <= pad <= MOST_PAD[op.spatial] for pad in op.pads())
            and max(reach) <= MOST_REACH[op.spatial]
            and self._steps_well(_contiguous(op))
        )

    def accepts(self, op: ConvOp, position: int, strides: Strides, scope: Scope) -> bool:
        if not super().accepts(op, position, strides, scope):
            return False
        if position <= 1:
            # `ConvKernel.accepts` wants contiguous windows of a weight; the map needs aligned steps between them.
            return strides[-1].as_int() == 1 and all(
                scope.divisible(s, SPAN) for s in (strides[:-1] if position == 0 else strides[:1])
            )
        return self._steps_well(_contiguous(op, position, strides))

    def _steps_well(self, p: Problem) -> bool:
        """Whether results and extra operands have contiguous columns."""
        return all(x.col.as_int() == 1 for x in (*p.results(), *p.extras))

    def _sizes(self, op: ConvOp) -> tuple[int, int, int, int]:
        """Rows and columns of the product, its depth in whole steps, and the number of batches."""
        scope = scope_of(op)
        m, n, _, batches = _contiguous(op).sizes(scope)
        env = estimate_env(scope)
        *rest, taps, channels = (d.evaluate(env) for d in tensor_type(op.weight).dims[1:])
        steps = min(taps * -(-channels // STAGE_K), -(-taps * channels // STAGE_K) if _reads_lines(op) else math.inf)
        return m, n, int(steps) * STAGE_K * math.prod(rest), batches

    def _tiles(self, op: ConvOp) -> list[HopperTile]:
        """The tiles that fit, the best estimate first."""
        return [tile for tile in best_tiles(*self._sizes(op), Finish.of(op)) if _fits(tile, op)]

    def configs(self, op: ConvOp, target: Target) -> list[dict[str, int]]:
        return [tile.config() for tile in self._tiles(op)][:MAX_CONFIGS]

    def every_config(self, op: ConvOp, target: Target) -> list[dict[str, int]]:
        return [tile.config() for tile in self._tiles(op)]

    def check(self, op: ConvOp, config: Config, target: Target) -> None:
        if not _fits(HopperTile.of(config), op):
            raise ValueError(f"tile_n does not divide the channels of a group, {op.extents().n}")

    def seconds(self, op: ConvOp, target: Target) -> float:
        return self._tiles(op)[0].seconds(*self._sizes(op), Finish.of(op))

    def terms(self, op: ConvOp, config: Config, target: Target) -> Terms:
        return self.terms_of(op, target)(config)

    def terms_of(self, op: ConvOp, target: Target) -> Callable[[Config], Terms]:
        sizes, finish = self._sizes(op), Finish.of(op)
        return lambda config: HopperTile.of(config).terms(*sizes, finish, target)

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        op, tile = launch.op, HopperTile.of(launch.config)
        p = problem(op, launch.ins, launch.outs)
        aligned = str(has_aligned_rows(p, launch.scope)).lower()
        vectors = sum(1 << i for i, x in enumerate(p.extras) if x.row.as_int() == 0)
        template = f"conv_wgmma<{tile.cpp()}, {aligned}, {vectors}, {{epilogue}}>"
        return call_conv(launch, "conv_wgmma", template, ", true" if launch.ins[1].constant else "")


def _fits(tile: HopperTile, op: ConvOp) -> bool:
    """Whether every column tile lies in one group."""
    return op.num_groups() == 1 or (op.extents().n.as_int() or 0) % tile.n == 0


def _reads_lines(op: ConvOp) -> bool:
    """Whether each line of the window is contiguous and inside the input: the template then reads it as the channels
    of one element."""
    before, after = op.pads()[op.spatial - 1], op.pads()[-1]
    return op.num_groups() == 1 and op.dilations()[-1] == 1 and before == after == 0


def _contiguous(op: ConvOp, position: int | None = None, strides: Strides = ()) -> Problem:
    """The product with row-major buffers; the buffer at `position` (the result follows the operands) has `strides`."""
    return problem(op, *contiguous_args(op, position, strides))


KERNELS = (HopperConv(),)
