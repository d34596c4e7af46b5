"""Reductions, prefix sums, and the functions of rotary embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.elementwise import SubOp, WhereOp
from ait_mlir.dialects.ait.reduce import ArgmaxOp, ReduceOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.known import Affine, Mask, Value
from ait_mlir.importers.torch.rows.common import lower_triangle
from ait_mlir.importers.torch.rows.view import cut, joined


def reduce(kind: str) -> Row:
    """Over `dim`, one or several or all, in the result's type; `keepdim` is a reshape."""

    def row(c: Call) -> Value:
        x = c.tensor("self")
        t = tensor_type(x)
        correction = None
        if kind == "var":
            correction = int(1 if c["correction"] is None else c["correction"])
        elif is_float(c.element) or kind == "sum":
            x = c.w.cast(x, c.element)
        return reduced(c, kind, x, axes_of(c, t.rank), correction)

    return row


def reduced(c: Call, kind: str, x: SSAValue, axes: Sequence[int], correction: int | None = None) -> SSAValue:
    """`x` reduced, in the result's dims."""
    return c.w.reshape(c.w.add(ReduceOp(kind, x, axes, correction)), c.dims)


def axes_of(c: Call, rank: int) -> list[int]:
    """The argument `dim`, one or several or all, as axes from the front."""
    given = c["dim"]
    if given is None or given == []:
        return list(range(rank))
    return sorted({axis % rank for axis in ([given] if isinstance(given, int) else given)})


def any_or_all(kind: str) -> Row:
    """The largest or smallest of booleans, as numbers."""

    def row(c: Call) -> Value:
        x = c.w.cast(c.w.cast(c.tensor("self"), i1), i64)
        found = c.w.add(ReduceOp(kind, x, axes_of(c, tensor_type(x).rank)))
        return Mask(c.dims, (), (c.w.reshape(c.w.cast(found, i1), c.dims),))

    return row


def argmax(c: Call) -> Value:
    """The place of the largest element; without a dim, of the flattened tensor."""
    x = c.tensor("self")
    if c["dim"] is None:
        raise NotSupported("argmax needs a dim")
    axis = c.axis("dim")
    dims = [d for a, d in enumerate(tensor_type(x).dims) if a != axis]
    found = c.w.op(ArgmaxOp, x, properties={"dim": IntegerAttr(axis, i64)}, results=[TensorType.get(dims, c.element)])
    return c.w.reshape(found, c.dims)


def prefix_sum(c: Call) -> Value:
    """cumsum: for each place the sum over the lower triangle, which is short for lengths of sequences."""
    axis = c.axis("dim")
    if (known := _known_sums(c, c.value("self"), axis)) is not None:
        return known
    x = c.w.cast(c.tensor("self"), c.element)
    rank = len(c.dims)
    order = [*(a for a in range(rank) if a != axis), axis]
    rows = c.w.permute(x, order)
    *outer, length = tensor_type(rows).dims
    triangle = Mask((length, length), (lower_triangle((length, length), 0),))
    terms = c.w.op(
        WhereOp, c.w.natural(triangle), c.w.reshape(rows, (*outer, const(1), length)), c.w.scalar(0, c.element)
    )
    sums: SSAValue = c.w.add(ReduceOp("sum", terms, [rank]))
    return c.w.permute(sums, [order.index(a) for a in range(rank)])


def _known_sums(c: Call, value: Value, axis: int) -> Affine | None:
    """The sums of one number over and over, or of a mask that is true everywhere or nowhere: they count."""
    if isinstance(value, Mask) and (always := value.everywhere()) is not None:
        value = Affine.filled(value.dims, int(always))
    if not isinstance(value, Affine) or value.moving_axes():
        return None
    steps = tuple(value.offset if a == axis else const(0) for a in range(len(value.dims)))
    return Affine(value.dims, steps, value.offset, c.element)


def differences(c: Call) -> Value:
    """Each element along a dim less the one before it, `prepend` and `append` beside them."""
    axis = c.axis("dim")
    if c["n"] != 1:
        raise NotSupported("diff is supported once; call it again for the next difference")
    parts = [c.value(name) for name in ("prepend", "self", "append") if c[name] is not None]
    whole = joined(c, parts, axis)
    size = c.dims[axis]
    after, before = (cut(c, whole, axis, const(start), size) for start in (1, 0))
    if isinstance(after, Affine) and isinstance(before, Affine):
        return after.plus(before, -1, c.dims)
    return c.w.op(SubOp, c.w.full(after), c.w.full(before))


ROWS: dict[str, Row] = {
    "aten.sum.default": reduce("sum"),
    "aten.sum.dim_IntList": reduce("sum"),
    "aten.mean.default": reduce("mean"),
    "aten.mean.dim": reduce("mean"),
    "aten.amax.default": reduce("max"),
    "aten.amin.default": reduce("min"),
    "aten.max.default": reduce("max"),
    "aten.min.default": reduce("min"),
    "aten.var.correction": reduce("var"),
    "aten.any.default": any_or_all("max"),
    "aten.any.dim": any_or_all("max"),
    "aten.all.default": any_or_all("min"),
    "aten.all.dim": any_or_all("min"),
    "aten.argmax.default": argmax,
    "aten.cumsum.default": prefix_sum,
    "aten.diff.default": differences,
}
