"""Cumulative operations along a dim."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i64

from ait_mlir.building.formulas import Affine, Mask, Value
from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.torch.call import Call, NotSupported, Row


def cumsum(c: Call) -> Value:
    """The cumulative sum in the result's type; of equal elements, a formula."""
    if not c.dims:
        return c.w.cast(c.tensor("self"), c.element)
    axis = c.axis("dim")
    if (known := _known_sums(c, c.value("self"), axis)) is not None:
        return known
    return c.w.put(CumulativeOp("sum", c.w.cast(c.tensor("self"), c.element), axis))


def cumulative(kind: str) -> Row:
    """A row for cumulative products and cumulative logarithms of sums of exponentials, computed in
    the result's type.
    """

    def row(c: Call) -> Value:
        x = c.w.cast(c.tensor("self"), c.element)
        return c.w.put(CumulativeOp(kind, x, c.axis("dim"))) if c.dims else x

    return row


def extreme(kind: str) -> Row:
    """A row for cumulative maxima or minima and their indices; among equal elements and NaN, the last index.

    An element that is the extreme so far gets its own index, other elements get 0; a cumulative maximum follows.
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
        own = c.w.compare("eq", x, found)
        if is_float(t.element_type):
            own = c.w.where(own, own, c.w.compare("ne", x, x))
        steps = tuple(const(int(a == axis)) for a in range(t.rank))
        place = c.w.full(Affine(t.dims, steps, const(0)))
        own_place = c.w.where(own, place, 0)
        return [found, c.w.put(CumulativeOp("max", own_place, axis))]

    return row


def _known_sums(c: Call, value: Value, axis: int) -> Affine | None:
    """The cumulative sums of a tensor with equal elements, or of a mask that is true everywhere or nowhere, as a
    formula; else None.
    """
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
