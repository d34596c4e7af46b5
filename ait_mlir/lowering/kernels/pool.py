"""Pooling over windows of the spatial dims, any strides."""

from __future__ import annotations

from ait_mlir.dialects.ait.pool import AdaptivePoolOp, OverlapAddOp, PoolBase, PoolOp
from ait_mlir.dims import Expr, const
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Launch
from ait_mlir.lowering.kernels.loops import ONE, ZERO, collapse, nest, sizes, steps
from ait_mlir.lowering.kernels.spatial import MAX_DIMS, tensor_cpp
from ait_mlir.lowering.target import Target

MAX_TILED_DIMS = 2


class PoolKernel(Kernel[PoolBase]):
    """`ait.pool` and `ait.adaptive_pool`: each thread computes one window for some channels, or a tile of windows."""

    name = "pool"
    ops = (PoolOp, AdaptivePoolOp)

    def emit(self, launch: Launch[PoolBase]) -> Emission:
        op, x, outs = launch.op, launch.ins[0], launch.outs
        axes = [f"{{{launch.cpp(*numbers)}}}" for numbers in axis_numbers(op, x)]
        exclude = isinstance(op, PoolOp) and op.exclude_pad is not None
        divisor = op.divisor.value.data if isinstance(op, PoolOp) and op.divisor is not None else 0
        shape = (
            f"ait::PoolShape{{{launch.cpp(x.type.dims[0], x.type.dims[-1])}, {{{', '.join(axes)}}}, "
            f"{'true' if exclude else 'false'}, {divisor}}}"
        )
        channels = all(arg.strides[-1].as_int() == 1 for arg in (x, outs[0]))
        flags = ", ".join("true" if flag else "false" for flag in (op.kind.data == "max", channels))
        if launch.target.is_gpu:
            flags += f", {taps(op)}"
        tensors = [tensor_cpp(launch, x, "const "), *(tensor_cpp(launch, out) for out in outs)]
        return launch.call("pool", f"pool<{flags}>(ctx, {shape}, {', '.join(tensors)})")


def taps(op: PoolBase) -> str:
    """The C++ `PoolTaps` of the last two spatial dims; for three dims, or with dilation, of only the last dim."""
    if not isinstance(op, PoolOp):
        return "ait::gpu::PoolTaps<>"
    windows, strides = [1, *op.windows()], [1, *op.strides()]
    if len(windows) > MAX_TILED_DIMS + 1 or any(step != 1 for step in op.dilations()):
        return f"ait::gpu::PoolTaps<0, {windows[-1]}>"
    return f"ait::gpu::PoolTaps<{windows[-2]}, {windows[-1]}, {strides[-2]}, {strides[-1]}>"


def axis_numbers(op: PoolBase, x: Arg) -> list[list[Expr]]:
    """The fields of `ait::PoolAxis` for each of three spatial dims."""
    found = [[ONE, ONE, ONE, ONE, ZERO, ZERO, ONE]] * (MAX_DIMS - len(op.spatial_axes()))
    for axis, (size, places) in enumerate(zip(x.type.dims[1:-1], op.places(), strict=True)):
        numbers = [0] * 5
        if isinstance(op, PoolOp):
            numbers = [op.windows()[axis], op.strides()[axis], *op.pads()[axis], op.dilations()[axis]]
        found.append([size, places, *map(const, numbers)])
    return found


DIVIDED = 9.0
"""The slowdown on an H200, which divides by numbers that it does not know: 177 us for windows of 4 x 4, 2 apart, of
8 x 64 x 128 x 128 elements of f16."""


class OverlapAddKernel(Kernel[OverlapAddOp]):
    """`ait.overlap_add`, any strides: each element of the result sums the window elements at its position."""

    name = "overlap_add"
    ops = (OverlapAddOp,)

    def slowdown(self, op: OverlapAddOp, target: Target) -> float:
        return DIVIDED if target.is_gpu else 1.0

    def emit(self, launch: Launch[OverlapAddOp]) -> Emission:
        (x,), (y,), dims = launch.ins, launch.outs, launch.dims
        n = len(launch.op.numbers()[0])
        rank = y.type.rank - n
        loops = collapse(nest(y.type.dims[:rank], [x.strides[:rank], y.strides[:rank]]), launch.scope)
        axes: list[str] = []
        for axis, numbers in enumerate(zip(*launch.op.numbers(), strict=True)):
            window, count = rank + axis, rank + n + axis
            sizes_of = (y.type.dims[window], x.type.dims[window], x.type.dims[count])
            steps_of = (x.strides[window], x.strides[count], y.strides[window])
            axes.append(f"{{{launch.cpp(*sizes_of, *map(const, numbers), *steps_of)}}}")
        shape = (
            f"ait::OverlapShape<{len(loops)}, {n}>{{{sizes(loops, dims)}, {steps(loops, 0, dims)}, "
            f"{steps(loops, 1, dims)}, {{{', '.join(axes)}}}}}"
        )
        return launch.call("overlap_add", f"overlap_add(ctx, {shape}, {x.name}, {y.name})")


KERNELS = (PoolKernel(), OverlapAddKernel())
