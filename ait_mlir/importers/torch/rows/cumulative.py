"""Prefix sums along a dim."""

from __future__ import annotations

from ait_mlir.dialects.ait.cumulative import CumsumOp
from ait_mlir.dims import const
from ait_mlir.importers.torch.call import Call, Row
from ait_mlir.importers.torch.known import Affine, Mask, Value


def cumsum(c: Call) -> Value:
    """In the type of the result, i64 for booleans and narrow integers; sums of one number over and over are known."""
    axis = c.axis("dim")
    if (known := _known_sums(c, c.value("self"), axis)) is not None:
        return known
    return c.w.add(CumsumOp(c.w.cast(c.tensor("self"), c.element), axis))


def _known_sums(c: Call, value: Value, axis: int) -> Affine | None:
    """The sums of one number over and over, or of a mask that is true everywhere or nowhere: they count."""
    if isinstance(value, Mask) and (always := value.everywhere()) is not None:
        value = Affine.filled(value.dims, int(always))
    if not isinstance(value, Affine) or value.moving_axes():
        return None
    steps = tuple(value.offset if a == axis else const(0) for a in range(len(value.dims)))
    return Affine(value.dims, steps, value.offset, c.element)


ROWS: dict[str, Row] = {"aten.cumsum.default": cumsum}
