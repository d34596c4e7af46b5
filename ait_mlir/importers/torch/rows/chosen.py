"""Results whose size depends on values: the places of elements that are not 0, and elements that differ from those
before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.dialects.ait.index import EmbeddingOp, MaskedSelectOp
from ait_mlir.dialects.ait.order import SortOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dims import Expr, const, product
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.known import Affine, Value


def _number(c: Call, value: Expr) -> SSAValue:
    return c.w.natural(Affine.filled((), value))


def _places(c: Call, count: Expr) -> SSAValue:
    """0, 1, ... up to `count` - 1."""
    return c.w.full(Affine((count,), (const(1),), const(0)))


def _selected(c: Call, mask: SSAValue, bound: Expr) -> SSAValue:
    """The places where a flat mask is true; their number is the dim `bound`.

    PyTorch gives results that select from one tensor in the same way one dim, so the places are computed once.
    """
    places = _places(c, tensor_type(mask).dims[0])
    return c.w.once(("bound", bound), lambda: c.w.add(MaskedSelectOp(places, mask, TensorType.get([bound], i64))))


def _at(c: Call, values: SSAValue, places: SSAValue) -> SSAValue:
    """Elements of a flat tensor, by place."""
    (count,) = tensor_type(values).dims
    return c.w.reshape(c.w.add(EmbeddingOp(c.w.reshape(values, [count, const(1)]), places)), tensor_type(places).dims)


def true_places(c: Call, mask: SSAValue, bound: Expr) -> list[SSAValue]:
    """The index along each dim of the elements that are true; their number is the dim `bound`."""
    dims = tensor_type(mask).dims
    places = _selected(c, c.w.reshape(mask, [product(dims)]), bound)
    found: list[SSAValue] = []
    for axis, size in enumerate(dims):
        index = places
        if axis < len(dims) - 1:
            index = c.w.op(ait.DivOp, index, _number(c, product(dims[axis + 1 :])))
        if axis > 0:
            whole = c.w.op(ait.MulOp, c.w.op(ait.DivOp, index, _number(c, size)), _number(c, size))
            index = c.w.op(ait.SubOp, index, whole)
        found.append(index)
    return found


def nonzero(c: Call) -> Value:
    """The index of each element that is not 0, one in each row."""
    x = c.w.cast(c.tensor("self"), i1)
    if not tensor_type(x).dims:
        raise NotSupported("nonzero of a single element is not supported; reshape it to one dim first")
    bound = c.dims[0]
    if bound.as_int() == 0:
        return Affine.filled(c.dims, 0)
    columns = [c.w.reshape(index, [bound, const(1)]) for index in true_places(c, x, bound)]
    return columns[0] if len(columns) == 1 else c.w.concat(columns, 1)


def _starts(c: Call, x: SSAValue) -> SSAValue:
    """Where an element of a flat tensor differs from the one before; the first one does."""
    t = tensor_type(x)
    (count,) = t.dims
    nothing = c.w.expand(c.w.scalar(0, t.element_type), [const(1)])
    before = c.w.slice(c.w.concat([nothing, x], 0), 0, const(0), count)
    first = c.w.add(ait.CompareOp("eq", _places(c, count), c.w.scalar(0, i64)))
    return c.w.op(ait.WhereOp, first, first, c.w.add(ait.CompareOp("ne", x, before)))


def _runs(c: Call, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Of a flat tensor: the first element of each run of equal ones, the number of the run of each element, and the
    runs' lengths.
    """
    (count,) = tensor_type(x).dims
    starts = _starts(c, x)
    places = _selected(c, starts, c.type(0).dims[0])
    run = c.w.op(ait.SubOp, c.w.add(CumulativeOp("sum", c.w.cast(starts, i64), 0)), c.w.scalar(1, i64))
    own = c.w.op(ait.WhereOp, starts, _places(c, count), _number(c, count), results=[TensorType.get([count], i64)])
    after = c.w.add(CumulativeOp("min", own, 0, exclusive=True, reverse=True))
    ends = c.w.op(ait.MinOp, after, _number(c, count))
    return _at(c, x, places), run, c.w.op(ait.SubOp, _at(c, ends, places), places)


def unique(in_order: bool) -> Row:
    """The distinct elements, of runs or of all in ascending order; the place of each element among them, and how often
    each occurs.
    """

    def row(c: Call) -> Sequence[Value]:
        if c["dim"] is not None:
            raise NotSupported("unique is supported without a dim, for the elements of the whole tensor")
        x = c.w.reshape(c.tensor("self"), [product(tensor_type(c.tensor("self")).dims)])
        order = None
        if not in_order:
            x, order = cast(Operation, c.w.add(SortOp(x, 0)).owner).results
        values, run, counts = _runs(c, x)
        if order is not None:
            back = cast(Operation, c.w.add(SortOp(order, 0)).owner).results[1]  # the inverse of a permutation
            run = _at(c, run, back)
        return [values, c.w.reshape(run, tensor_type(c.tensor("self")).dims), counts]

    return row


ROWS: dict[str, Row] = {
    "aten.nonzero.default": nonzero,
    "aten.unique_consecutive.default": unique(in_order=True),
    "aten._unique2.default": unique(in_order=False),
}
