"""Convolutions in groups of few channels on the tensor cores of CUDA devices, of f16 and bf16."""

from __future__ import annotations

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope, product
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import is_narrow
from ait_mlir.lowering.kernels.conv import ConvKernel, call_conv, is_depthwise, weight_steps
from ait_mlir.lowering.kernels.gemm_tiles import CLOCK

__all__ = ["KERNELS", "GroupedConv"]

QUAD, PIECE, SPAN = 4, 8, 8
"""Channels that one product reads, channels that one copy moves, and columns of a product."""
MOST_CHANNELS = 64
"""The most channels of a group, in x and in the result."""
WARPS, COLUMNS = 8, 64
"""Warps and columns of a block, as in `gpu/conv_grouped.cuh`."""
START_SECONDS = 3e-6


class GroupedConv(ConvKernel):
    """mma.sync on windows in shared memory, loaded once for all taps; a product has columns of one group."""

    provider = "grouped"

    def matches(self, op: ConvOp, target: Target) -> bool:
        channels, columns = _of_group(op)
        return (
            super().matches(op, target)
            and target.kind == "cuda"
            and target.has("mma")
            and is_narrow(tensor_type(op.x).element_type)
            and op.num_groups() > 1
            and not is_depthwise(op)
            and not op.is_transposed()
            and op.spatial <= 2
            and 0 < channels <= MOST_CHANNELS
            and channels % QUAD == 0
            and channels * op.num_groups() % PIECE == 0
            and 0 < columns <= MOST_CHANNELS
            and _least_bytes(op) <= target.shared_bytes
        )

    def accepts(self, op: ConvOp, position: int, strides: Strides, scope: Scope) -> bool:
        if position == 0:
            return strides[-1].as_int() == 1 and all(scope.divisible(s, PIECE) for s in strides[:-1])
        if position == 1:
            along = weight_steps(tensor_type(op.weight), strides, scope)
            return along is not None and along.as_int() == 1
        return True

    def seconds(self, op: ConvOp, target: Target) -> float:
        return START_SECONDS + sum(_work(op, target).values())

    def terms(self, op: ConvOp, config: Config, target: Target) -> Terms:
        return Terms({"start": START_SECONDS}, _work(op, target))

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        tile = ", ".join(map(str, _tile(_of_group(launch.op)[1])))
        template = f"conv_grouped<ait::gpu::GroupedTile<{tile}>, {launch.target.shared_bytes}, {{epilogue}}>"
        return call_conv(launch, "conv_grouped", template, ", true" if launch.ins[1].constant else "")


def _of_group(op: ConvOp) -> tuple[int, int]:
    """Channels of x and of the result; 0 if they are not numbers."""
    return tensor_type(op.weight).dims[-1].as_int() or 0, op.extents().n.as_int() or 0


def _tile(columns: int) -> tuple[int, int, int]:
    """The groups, tiles of 8 columns in each, and units of 16 places that a warp computes at once: 32 sums a lane."""
    if columns <= SPAN // 2:
        return 4, 1, 2
    if columns <= SPAN:
        return 2, 1, 4
    return (1, 2, 4) if columns <= 2 * SPAN else (1, 4, 2)


def _steps(op: ConvOp) -> int:
    """The number of steps along K, of four quads each."""
    return -(-product(tensor_type(op.weight).dims[1:]).evaluate({}) // (4 * QUAD))


def _least_bytes(op: ConvOp) -> int:
    """Shared memory of the smallest block that the template plans: 64 positions in 8 lines, and groups of whole pieces.
    """
    channels, columns = _of_group(op)
    sets, tiles, _ = _tile(columns)
    groups = 1 if channels % PIECE == 0 else 2
    steps = _steps(op)
    places = (64,) if op.spatial == 1 else (8, 8)
    pixels = 1
    numbers = zip(places, op.kernel(), op.strides(), op.dilations(), strict=True)
    for count, taps, step, dilation in numbers:
        pixels *= (count - 1) * step + (taps - 1) * dilation + 1
    weights = groups * -(-columns // SPAN) * steps * 256
    staged = WARPS * 16 * (sets * tiles * SPAN + SPAN) * 4
    return steps * 16 + weights + staged + pixels * (groups * channels * 2 + 64)


def _work(op: ConvOp, target: Target) -> dict[str, float]:
    """Seconds for memory, and for shared memory at 128 bytes a cycle: windows, weights, and sums a second time."""
    env, scope = estimate_env(scope_of(op)), scope_of(op)
    columns = _of_group(op)[1]
    _, tiles, rows = _tile(columns)
    bands = op.extents().m.evaluate(env) / 16
    parts = op.num_groups() * -(-columns // (SPAN * tiles))
    cycles = bands * parts * (_steps(op) * (4 + (2 * tiles + 1) / rows) + 8 * tiles) / target.multiprocessors
    return {"bytes": bytes_moved(op, scope) / target.bandwidth, "windows": cycles / CLOCK}


KERNELS = (GroupedConv(),)
