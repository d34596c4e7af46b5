"""Convolutions in groups on images whose channels are planes, [N, C, H, W] in memory, without turning them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dialects.ait.view import PermuteOp
from ait_mlir.dims import Scope
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import Matrix, Problem
from ait_mlir.lowering.kernels.conv import ConvKernel, call_conv, is_counted, weight_steps
from ait_mlir.lowering.kernels.gemm_tiles import CLOCK
from ait_mlir.lowering.kernels.loops import ONE, ZERO, broadcast_strides

__all__ = ["KERNELS", "PlanesConv"]

MOST_TAPS, MOST_STEP = 9, 2
"""The largest window along a dim, whose code has no loop, and its largest step."""
MOST_CHANNELS = 32
"""The most channels of x in a group."""
LINES = 8
"""The places of a thread, as `kPlaneLines` of the template."""
MOST_OWN, MOST_UNROLLED = 4, 128
"""The most channels of the result of a thread, and the most of its multiply-adds at a place, which are unrolled."""
START_SECONDS = 3e-6


class PlanesConv(ConvKernel):
    """Sums of f32 from planes in shared memory, for two spatial dims and groups of few channels. It takes any strides,
    and is fast where neighbours along a line lie side by side.

    Chosen only by time, because estimates do not know strides, and timed only where the input is an image in
    channels-first order: other kernels would need a copy of it.
    """

    provider = "planes"
    gpu_only = True
    only_timed = True
    any_order = True

    def matches(self, op: ConvOp, target: Target) -> bool:
        depth = tensor_type(op.weight).dims[-1].as_int()
        return (
            target.is_gpu
            and is_counted(op)
            and is_float(tensor_type(op.x).element_type)
            and op.num_groups() > 1
            and op.spatial == 2
            and not op.is_transposed()
            and depth is not None
            and 1 <= depth <= MOST_CHANNELS
            and max(op.kernel()) <= MOST_TAPS
            and max(op.strides()) <= MOST_STEP
            and max(op.dilations()) == 1
            and scope_of(op).positive(tensor_type(op.output).dims[-1])
        )

    def suits(self, op: ConvOp) -> bool:
        x = op.x.owner
        return isinstance(x, PermuteOp) and x.order()[-2] == len(x.order()) - 1

    def accepts(self, op: ConvOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position != 1 or weight_steps(tensor_type(op.weight), strides, scope) is not None

    def seconds(self, op: ConvOp, target: Target) -> float:
        return START_SECONDS + max(_work(op, target).values())

    def terms(self, op: ConvOp, config: Config, target: Target) -> Terms:
        return Terms({"start": START_SECONDS}, _work(op, target))

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        op = launch.op
        (down, across), (step, _) = op.kernel(), op.strides()
        template = f"conv_planes<{down}, {across}, {step}, {_own(op)}, {{epilogue}}>"
        return call_conv(launch, "conv_planes", template, solved=_by_planes(op, launch.ins, launch.outs))


def _own(op: ConvOp) -> int:
    """The number of result channels that a thread computes from each element of x that it reads."""
    channels = op.extents().n.as_int() or MOST_OWN
    fitting = MOST_OWN if MOST_OWN * math.prod(op.kernel()) <= MOST_UNROLLED else MOST_OWN // 2
    return min(fitting, channels)


def _by_planes(op: ConvOp, ins: Sequence[Arg], outs: Sequence[Arg]) -> Problem:
    """The convolution as a product whose result is a matrix [places of a line, lines] for each image and channel."""
    out, *further = outs
    images, lines, places, channels = out.type.dims

    def matrix(arg: Arg) -> Matrix:
        image, line, place, channel = broadcast_strides(arg, out.type.dims)
        return Matrix(arg, place, line, (image, channel))

    along = weight_steps(ins[1].type, ins[1].strides, scope_of(op))
    assert along is not None, "accepts was asked"
    return Problem(
        places,
        lines,
        op.extents().k,
        (images, channels),
        Matrix(ins[0], ZERO, ONE, ()),  # addressed by `input_cpp`
        Matrix(ins[1], along, ins[1].strides[0], ()),
        matrix(out),
        tuple(map(matrix, ins[2:])),
        tuple(map(matrix, further)),
    )


def _work(op: ConvOp, target: Target) -> dict[str, float]:
    """Seconds for memory, and for the reads of shared memory: a column of the window for each tap of a line, and the
    weights."""
    env, scope = estimate_env(scope_of(op)), scope_of(op)
    (down, across), (step, _) = op.kernel(), op.strides()
    depth = tensor_type(op.weight).dims[-1].evaluate(env)
    own = _own(op)
    warps = tensor_type(op.output).num_elements().evaluate(env) / (32 * LINES * own)
    reads = across * ((LINES - 1) * step + (1 + own) * down) * depth
    return {
        "bytes": bytes_moved(op, scope) / target.bandwidth,
        "reads": warps * reads / target.multiprocessors / CLOCK,
    }


KERNELS = (PlanesConv(),)
