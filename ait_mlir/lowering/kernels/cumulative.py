"""Cumulative ops along any dim, any strides."""

from __future__ import annotations

from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Expr, Scope, ceildiv, const, product
from ait_mlir.lowering.kernels.amounts import FEW_ELEMENTS, bytes_moved, element_bytes, estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Strides, Target
from ait_mlir.lowering.kernels.loops import collapse, nest, operand, single, sizes

REDUCTIONS = {"sum": "Sum", "prod": "Prod", "max": "Max", "min": "Min", "logsumexp": "LogSumExp"}
"""The classes of `ait/kernels/reduction.h`."""
BLOCK_RATE = 3.5e9
"""Bytes per second that one block reads and writes along a row."""
THREADS, LANES, CHUNKS = 256, 32, 8
"""Threads of a block, threads side by side over columns, and chunks of a thread along a row, as in
`gpu/scan_tile.cuh`."""


class CumulativeKernel(Kernel[CumulativeOp]):
    """A row or a few neighbouring columns belong to one thread, warp or block."""

    name = "cumulative"
    ops = (CumulativeOp,)
    function = "cumulative"
    more = ""
    """Further arguments of the C++ function, after the operands."""
    takes_length = True
    """Whether the C++ function of a GPU takes the length of a row as a parameter of its template, too."""

    def accepts(self, op: CumulativeOp, position: int, strides: Strides, scope: Scope) -> bool:
        """Whether neighbours in memory are neighbours along the last dim, for a copy costs less than elements that lie
        apart, each of which moves a sector. A few elements may lie apart."""
        if self.row_major:
            return super().accepts(op, position, strides, scope)
        dims = tensor_type(op.input).dims
        last = next((s for d, s in zip(reversed(dims), reversed(strides), strict=True) if d.as_int() != 1), const(1))
        return last.as_int() == 1 or scope.le(product(dims), FEW_ELEMENTS)

    def seconds(self, op: CumulativeOp, target: Target) -> float:
        rate = min(target.bandwidth, blocks(op) * BLOCK_RATE) if target.is_gpu else target.bandwidth
        return target.launch_seconds + bytes_moved(op, scope_of(op)) / rate

    def emit(self, launch: Launch[CumulativeOp]) -> Emission:
        op, x, y, dims = launch.op, launch.ins[0], launch.outs[0], launch.dims
        loops = nest(x.type.dims, [x.strides, y.strides])
        along = loops.pop(op.dim.value.data)
        kept = collapse(loops or [single(2)], launch.scope)
        nested = [*kept, along]
        columns = all(s.as_int() == 1 for s in kept[-1].strides) and any(s.as_int() != 1 for s in along.strides)
        flags = (op.exclusive is not None, op.reverse is not None, columns)
        template = ", ".join([f"ait::{REDUCTIONS[op.kind.data]}", *("true" if f else "false" for f in flags)])
        length = f", {along.size.as_int() or 0}" if self.takes_length and launch.target.is_gpu else ""
        return launch.call(
            self.function,
            f"{self.function}<{template}{length}>(ctx, {sizes(nested, dims)}, "
            f"{operand(x.name, nested, 0, dims)}, {operand(y.name, nested, 1, dims)}{self.more})",
        )


class ChainedCumulative(CumulativeKernel):
    """Long rows and columns on a GPU: several blocks share a row, and each passes its running total to the next."""

    provider = "chained"
    name = "cumulative_chained"
    function = "cumulative_chained"
    more = ", workspace"
    takes_length = False
    gpu_only = True
    row_major = True  # as `chained_bytes` counts

    def seconds(self, op: CumulativeOp, target: Target) -> float:
        # clearing the flags is a launch, too
        return 3 * target.launch_seconds + 1.15 * bytes_moved(op, scope_of(op)) / target.bandwidth

    def workspace(self, op: CumulativeOp, config: Config) -> Expr:
        return chained_bytes(op)


def blocks(op: CumulativeOp) -> int:
    """About how many blocks work on separate rows or columns, at the dims of estimates."""
    t, env = tensor_type(op.input), estimate_env(scope_of(op))
    shape = [d.evaluate(env) for d in t.dims]
    rows = 1
    for axis, n in enumerate(shape):
        rows *= n if axis != op.dim.value.data else 1
    last = op.dim.value.data == t.rank - 1
    return max(1, rows if last else rows // 64)


def chained_bytes(op: CumulativeOp) -> Expr:
    """Workspace of `ait::gpu::cumulative_chained`: a message for each tile and for each 32 tiles (16 for columns).

    A thread has one column, or a word of 16 bytes; the run decides, unless there are few columns.
    """
    t = tensor_type(op.input)
    axis, size = op.dim.value.data, element_bytes(t)
    rows = product([d for i, d in enumerate(t.dims) if i != axis])
    state = max(4, size) * (2 if op.kind.data == "logsumexp" else 1)  # the largest exponent and a sum
    message, vector = 2 * state, min(8, 16 // size)
    if all(d.as_int() == 1 for d in t.dims[axis + 1 :]):
        tiles = ceildiv(t.dims[axis] + vector - 1, THREADS * vector * CHUNKS)
        return rows * _entries(tiles, 32) * const(message) + const(32)
    if scope_of(op).bounds(rows)[1] < LANES * vector:
        vector = 1
    tiles = ceildiv(t.dims[axis], THREADS // LANES * (8 if vector == 4 else 16))
    columns = ceildiv(rows, LANES * vector) * const(LANES * vector)
    return columns * _entries(tiles, 16) * const(message) + const(32)


def _entries(tiles: Expr, fan: int) -> Expr:
    """The number of messages: for tiles, for groups of `fan` tiles, and for groups of groups."""
    groups = ceildiv(tiles, fan)
    return tiles + groups + ceildiv(groups, fan)


KERNELS = (CumulativeKernel(), ChainedCumulative())
