"""Resampling of the spatial dims, any strides."""

from __future__ import annotations

from xdsl.dialects.builtin import f64

from ait_mlir.dialects.ait.resize import GridSampleOp, ResizeOp
from ait_mlir.lowering.cpp import literal
from ait_mlir.lowering.kernels.base import Emission, Kernel, Launch
from ait_mlir.lowering.kernels.spatial import MAX_DIMS, tensor_cpp


class ResizeKernel(Kernel[ResizeOp]):
    """`ait.resize`: each thread computes some channels of one element."""

    name = "resize"
    ops = (ResizeOp,)

    def emit(self, launch: Launch[ResizeOp]) -> Emission:
        op, (x,), (y,) = launch.op, launch.ins, launch.outs
        corners = "true" if op.align_corners is not None else "false"
        rank = len(op.spatial_axes())
        axes = ["{1, 1, 0.0, false}"] * (MAX_DIMS - rank)
        for axis, scale in enumerate(op.factors(), 1):
            size, made = (launch.cpp(t.type.dims[axis]) for t in (x, y))
            step = literal(scale, f64)
            if scale and (counts := op.kept_by_sizes()):
                same = " || ".join(f"{made} == {n} * ({size})" for n in counts)
                step = f"{same} ? 0.0 : {step}"
            axes.append(f"{{{size}, {made}, {step}, {corners}}}")
        shape = f"ait::ResizeShape{{{launch.cpp(x.type.dims[0], x.type.dims[-1])}, {{{', '.join(axes)}}}}}"
        channels = "true" if all(arg.strides[-1].as_int() == 1 for arg in (x, y)) else "false"
        tensors = f"{tensor_cpp(launch, x, 'const ')}, {tensor_cpp(launch, y)}"
        mode = f"ait::ResizeMode::{op.mode.data}"
        return launch.call("resize", f"resize<{mode}, {rank}, {channels}>(ctx, {shape}, {tensors})")


class GridSampleKernel(Kernel[GridSampleOp]):
    """`ait.grid_sample`: each thread computes some channels of one place. Neighbouring threads have other channels, or
    other places where results have these side by side.
    """

    name = "grid_sample"
    ops = (GridSampleOp,)
    any_order = True

    def emit(self, launch: Launch[GridSampleOp]) -> Emission:
        op, (x, grid), (y,) = launch.op, launch.ins, launch.outs
        corners = "true" if op.align_corners is not None else "false"
        batch, *places, channels = y.type.dims
        axes = ", ".join(f"{{{launch.cpp(size)}, {corners}}}" for size in x.type.dims[1:3])
        shape = f"ait::GridShape{{{launch.cpp(batch)}, {{{launch.cpp(*places)}}}, {launch.cpp(channels)}, {{{axes}}}}}"
        tensors = f"{tensor_cpp(launch, x, 'const ')}, {tensor_cpp(launch, grid, 'const ')}, {tensor_cpp(launch, y)}"
        template = f"ait::ResizeMode::{op.mode.data}, ait::GridOutside::{op.outside.data}"
        return launch.call("grid_sample", f"grid_sample<{template}>(ctx, {shape}, {tensors})")


KERNELS = (ResizeKernel(), GridSampleKernel())
