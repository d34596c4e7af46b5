"""Reading elements and rows by index tensors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Value, dims_of, masked_or_spread, spread
from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.index import EmbeddingOp, GatherOp
from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.dims import Expr, const

ONE = const(1)


def padded(w: Writer, value: SSAValue, rank: int, behind: int = 0) -> SSAValue:
    """A value that broadcasts to a shape of `rank` dims, reshaped to `rank` dims and `behind` further dims of 1."""
    dims = tensor_type(value).dims
    return w.reshape(value, (*(ONE for _ in range(rank - len(dims))), *dims, *(ONE for _ in range(behind))))


def alike(w: Writer, indices: Sequence[SSAValue]) -> list[SSAValue]:
    """The index tensors, converted to one element type."""
    types = {tensor_type(i).element_type for i in indices}
    return list(indices) if types in ({i32}, {i64}) else [w.cast(i, i64) for i in indices]


def picked(
    w: Writer, x: SSAValue, indices: Sequence[SSAValue], dims: Sequence[int], kept: Sequence[int], result: Shape
) -> Value:
    """The result of `ait.gather`, broadcast to `result`."""
    y = w.put(GatherOp(x, alike(w, indices), dims, kept))
    assert tensor_type(y).rank == len(result)
    return masked_or_spread(y, result)


def rows_of(w: Writer, table: SSAValue, ids: Value) -> Value:
    """`table[ids]`, for a table of two dims; for consecutive ids within the table, a slice."""
    height, width = tensor_type(table).dims
    placed = in_order(w, ids) if isinstance(ids, Affine) else None
    if isinstance(ids, Affine) and placed is not None and w.scope.le(placed[1] + placed[2], height):
        axis, start, size = placed
        rows = w.slice(table, 0, start, size)
        small = [ONE] * len(ids.dims)
        if axis is not None:
            small[axis] = size
        while small and small[0] is ONE:
            small.pop(0)
        return spread(w.reshape(rows, (*small, width)), (*ids.dims, width))
    found = w.op(EmbeddingOp, table, w.natural(ids))
    return spread(found, (*dims_of(ids), width))


def in_order(w: Writer, ids: Affine) -> tuple[int | None, Expr, Expr] | None:
    """The only axis along which the indices count up by 1, their first value and their number; the axis is None for a
    single index. None for other indices.
    """
    axes = ids.moving_axes()
    if len(axes) > 1 or not w.scope.le(0, ids.offset):
        return None
    if not axes:
        return None, ids.offset, ONE
    if ids.steps[axes[0]].as_int() != 1:
        return None
    return axes[0], ids.offset, ids.dims[axes[0]]
