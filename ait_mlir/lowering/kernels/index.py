"""Ops that move elements by index."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.dialects.ait.index import EmbeddingOp, MaskedSelectOp, UpdateSliceOp
from ait_mlir.dialects.ait.strided import is_contiguous
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, Scope, const, product
from ait_mlir.lowering.kernels.base import Config, Emission, Kernel, Launch, Strides
from ait_mlir.lowering.kernels.loops import Loop, collapse, nest, sizes, steps


class GatherKernel(Kernel[EmbeddingOp]):
    """`ait.embedding`: copies rows of the table.

    An id outside of the table never reads outside of it: the CPU fails with a message that names the id, a GPU writes
    NaN to the row of a float table and 0 to that of another.
    """

    name = "gather"
    ops = (EmbeddingOp,)

    def accepts(self, op: EmbeddingOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position == 1 or strides[-1].as_int() == 1

    def emit(self, launch: Launch[EmbeddingOp]) -> Emission:
        (table, ids), (out,) = launch.ins, launch.outs
        rows, width = table.type.dims
        loops = collapse(nest(ids.type.dims, [ids.strides, out.strides[:-1]]), launch.scope)
        return launch.call(
            "gather",
            f"gather(ctx, {sizes(loops, launch.dims)}, {table.name}, {launch.cpp(rows, width, table.strides[0])}, "
            f"{ids.name}, {steps(loops, 0, launch.dims)}, {out.name}, {steps(loops, 1, launch.dims)})",
        )


class UpdateKernel(Kernel[UpdateSliceOp]):
    """`ait.update_slice`: writes the rows alone, over the buffer of the tensor, which is operand 0 and the result."""

    name = "update"
    ops = (UpdateSliceOp,)

    def accepts(self, op: UpdateSliceOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position != 2 or all(stride.as_int() == 1 for stride in strides)

    def emit(self, launch: Launch[UpdateSliceOp]) -> Emission:
        (_, rows, position), (out,), dims = launch.ins, launch.outs, launch.dims
        axis, scope = launch.op.axis, launch.scope
        loops = nest(rows.type.dims, [rows.strides, out.strides])
        before, inner = (_merged(part, scope) for part in (loops[:axis], loops[axis + 1 :]))
        width = const(1)
        if inner and all(stride.as_int() == 1 for stride in inner[-1].strides):
            width = inner.pop().size
        loops = [*before, loops[axis], *inner]
        space = (
            f"ait::update_space({sizes(loops, dims)}, {steps(loops, 0, dims)}, {steps(loops, 1, dims)}, "
            f"{launch.cpp(width)}, {len(before)}, {launch.cpp(out.type.dims[axis], out.strides[axis])}, "
            f"{position.type.rank})"
        )
        return launch.call("update", f"update_slice(ctx, {space}, {rows.name}, {position.name}, {out.name})")


def _merged(loops: Sequence[Loop], scope: Scope) -> list[Loop]:
    """The same iteration space with fewer loops, none where there is a single element."""
    return [loop for loop in collapse(loops, scope) if loop.size.as_int() != 1] if loops else []


class CompactKernel(Kernel[MaskedSelectOp]):
    """`ait.masked_select`: on a GPU the blocks count first, then each moves what is selected of its rows."""

    name = "compact"
    ops = (MaskedSelectOp,)

    def workspace(self, op: MaskedSelectOp, config: Config) -> Expr:
        """A count for each block, which only a GPU has."""
        return const(8 * 1024)

    def accepts(self, op: MaskedSelectOp, position: int, strides: Strides, scope: Scope) -> bool:
        return is_contiguous(tensor_type((*op.operands, *op.results)[position]).dims, strides, scope)

    def emit(self, launch: Launch[MaskedSelectOp]) -> Emission:
        (x, mask), outs = launch.ins, launch.outs
        rows, width = mask.type.num_elements(), product(x.type.dims[mask.type.rank :])
        buffers = ", ".join(arg.name for arg in (x, mask, *outs))
        if launch.target.is_gpu:
            buffers += ", static_cast<int64_t*>(ws)"
        return launch.call("compact", f"compact(ctx, {launch.cpp(rows, width)}, {buffers})")


KERNELS = (GatherKernel(), UpdateKernel(), CompactKernel())
