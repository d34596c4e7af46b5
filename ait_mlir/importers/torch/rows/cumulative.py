"""Cumulative operations along a dim."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i64

from ait_mlir.building.known import Affine, Mask, Value
from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.elementwise import CompareOp, WhereOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.torch.call import Call, NotSupported, Row


def cumsum(c: Call) -> Value:
    """In the type of the result, i64 for booleans and narrow integers; sums of one number over and over are known."""
    if not c.dims:
        return c.w.cast(c.tensor("self"), c.element)
    axis = c.axis("dim")
    if (known := _known_sums(c, c.value("self"), axis)) is not None:
        return known
    return c.w.put(CumulativeOp("sum", c.w.cast(c.tensor("self"), c.element), axis))


def cumulative(kind: str) -> Row:
    """Products and sums of exponentials, in the type of the result."""

    def row(c: Call) -> Value:
        x = c.w.cast(c.tensor("self"), c.element)
        return c.w.put(CumulativeOp(kind, x, c.axis("dim"))) if c.dims else x

    return row


def extreme(kind: str) -> Row:
    """The largest or smallest elements so far, and the place of each; of equal elements and of NaN the last so far.

    An element that is the extreme so far gets its own place; any other gets the largest place before it.
    """

    def row(c: Call) -> list[Value]:
        x = c.tensor("self")
        t = tensor_type(x)
        if not t.dims:
            return [x, c.w.scalar(0, i64)]
        if t.element_type == i1:
            raise NotSupported(f"cumulative {kind} of booleans is not supported; convert to integers first")
        axis = c.axis("dim")
        found = c.w.put(CumulativeOp(kind, x, axis))
        own = c.w.put(CompareOp("eq", x, found))
        if is_float(t.element_type):
            own = c.w.op(WhereOp, own, own, c.w.put(CompareOp("ne", x, x)))
        steps = tuple(const(int(a == axis)) for a in range(t.rank))
        place = c.w.full(Affine(t.dims, steps, const(0)))
        own_place = c.w.op(WhereOp, own, place, c.w.scalar(0, i64), results=[tensor_type(place)])
        return [found, c.w.put(CumulativeOp("max", own_place, axis))]

    return row


def _known_sums(c: Call, value: Value, axis: int) -> Affine | None:
    """The sums of one number over and over, or of a mask that is true everywhere or nowhere: they count."""
    if isinstance(value, Mask) and (always := value.everywhere()) is not None:
        value = Affine.filled(value.dims, int(always))
    if not isinstance(value, Affine) or value.moving_axes():
        return None
    steps = tuple(value.offset if a == axis else const(0) for a in range(len(value.dims)))
    return Affine(value.dims, steps, value.offset, c.element)


ROWS: dict[str, Row] = {
    "aten.cumsum.default": cumsum,
    "aten.cumprod.default": cumulative("prod"),
    "aten.cummax.default": extreme("max"),
    "aten.cummin.default": extreme("min"),
    "aten.logcumsumexp.default": cumulative("logsumexp"),
}
