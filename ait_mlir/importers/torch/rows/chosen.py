"""Results whose size depends on values: the places of elements that are not 0, and elements that differ from those
before them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from ait_mlir.building.known import Affine, Value
from ait_mlir.dialects.ait import elementwise as ait
from ait_mlir.dialects.ait.cumulative import CumulativeOp
from ait_mlir.dialects.ait.index import EmbeddingOp, MaskedSelectOp
from ait_mlir.dialects.ait.order import SortOp
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dims import Expr, const, product
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.scan import write_scan


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
    return c.w.once(("bound", bound), lambda: c.w.put(MaskedSelectOp(places, mask, TensorType.get([bound], i64))))


def _at(c: Call, values: SSAValue, places: SSAValue) -> SSAValue:
    """Elements of a flat tensor, by place."""
    (count,) = tensor_type(values).dims
    return c.w.reshape(c.w.put(EmbeddingOp(c.w.reshape(values, [count, const(1)]), places)), tensor_type(places).dims)


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


def _runs(c: Call, x: SSAValue, bound: Expr) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Of the rows of x [n, m]: the place where each run of equal ones starts, the number of the run of each row, and
    the runs' lengths; the number of runs is the dim `bound`.
    """
    count, width = tensor_type(x).dims
    nothing = c.w.expand(c.w.scalar(0, tensor_type(x).element_type), [const(1), width])
    before = c.w.slice(c.w.concat([nothing, x], 0), 0, const(0), count)
    first = c.w.put(ait.CompareOp("eq", _places(c, count), c.w.scalar(0, i64)))
    differs = c.w.put(ait.CompareOp("ne", x, before))
    any_differs = c.w.reshape(differs, [count]) if width.as_int() == 1 else c.w.put(ReduceOp("max", differs, [1]))
    starts = c.w.op(ait.WhereOp, first, first, any_differs)
    places = _selected(c, starts, bound)
    run = c.w.op(ait.SubOp, c.w.put(CumulativeOp("sum", c.w.cast(starts, i64), 0)), c.w.scalar(1, i64))
    own = c.w.op(ait.WhereOp, starts, _places(c, count), _number(c, count), results=[TensorType.get([count], i64)])
    after = c.w.put(CumulativeOp("min", own, 0, exclusive=True, reverse=True))
    ends = c.w.op(ait.MinOp, after, _number(c, count))
    return places, run, c.w.op(ait.SubOp, _at(c, ends, places), places)


def _order_of_rows(c: Call, x: SSAValue) -> SSAValue:
    """The places of the rows of x [n, m] in ascending order: sorted by the last column, then stably by those before."""
    count, width = tensor_type(x).dims

    def order(keys: SSAValue) -> SSAValue:
        return c.w.put_all(SortOp(keys, 0))[1]

    if width.as_int() == 1:
        return order(c.w.reshape(x, [count]))

    def step(arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        before, column = arguments
        return [_at(c, before, order(_at(c, column, before)))]

    start = _places(c, count)
    columns = c.w.permute(x, [1, 0])
    return write_scan(c.w, [[start], [columns], []], [tensor_type(start)], step, reverse=True)[0]


def unique(in_order: bool) -> Row:
    """The distinct elements, or slices along a dim, of runs or of all in ascending order; the place of each among them,
    and how often each occurs.
    """

    def row(c: Call) -> Sequence[Value]:
        x = c.tensor("self")
        own = tensor_type(x).dims
        axis = None if c["dim"] is None or not own else c.axis("dim")
        if axis is None:
            rows = c.w.reshape(x, [product(own), const(1)])
            bound = c.type(0).dims[0]
        else:
            moved = [axis, *(a for a in range(len(own)) if a != axis)]
            others = [own[a] for a in moved[1:]]
            rows = c.w.reshape(c.w.permute(x, moved), [own[axis], product(others)])
            bound = c.type(0).dims[axis]
            if bound.as_int() == 0:
                return [x, *(c.w.full(Affine.filled((bound,), 0)) for _ in range(2))]
        order = None
        if not in_order:
            order = _order_of_rows(c, rows)
            rows = c.w.put(EmbeddingOp(rows, order))
        places, run, counts = _runs(c, rows, bound)
        values = c.w.put(EmbeddingOp(rows, places))
        if order is not None:
            back = c.w.put_all(SortOp(order, 0))[1]  # the inverse of a permutation
            run = _at(c, run, back)
        if axis is None:
            return [c.w.reshape(values, [bound]), c.w.reshape(run, own), counts]
        values = c.w.reshape(values, [bound, *(own[a] for a in range(len(own)) if a != axis)])
        return [c.w.permute(values, [*range(1, axis + 1), 0, *range(axis + 1, len(own))]), run, counts]

    return row


ROWS: dict[str, Row] = {
    "aten.nonzero.default": nonzero,
    "aten.unique_consecutive.default": unique(in_order=True),
    "aten.unique_dim.default": unique(in_order=False),
    "aten._unique2.default": unique(in_order=False),
}
