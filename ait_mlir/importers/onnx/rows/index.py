"""Reading and writing by index."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Value, masked_or_spread
from ait_mlir.compositions.index import gathered, picked, scattered, scattered_along, slices_at
from ait_mlir.compositions.rearrange import as_strided
from ait_mlir.compositions.sorting import true_places
from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.dims import Expr, const, product
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Row
from ait_mlir.importers.onnx.known import Known
from ait_mlir.importers.onnx.rows.common import formula

ONE, ZERO = const(1), const(0)


def gather(c: Call) -> SSAValue:
    """Slices along an axis by index. Of a table of weights rows are read, at indices that do not count from the end."""
    x, axis, ids = c.tensor(0), c.axis(), c.value(1)
    dims, places = tensor_type(x).dims, c.shape(1)
    result = (*dims[:axis], *places, *dims[axis + 1 :])
    if isinstance(ids, Known) and not ids.has_dims and (found := _run(ids, dims[axis])) is not None:
        return c.w.reshape(c.w.slice(x, axis, *found), result)
    if len(dims) == 1 and isinstance(ids, Affine) and _within(c, ids, dims[0]):
        return c.w.full(as_strided(c.w, x, ids.dims, ids.steps, ids.offset))
    source = c.value(0)
    if isinstance(source, Known) and source.is_weight and axis == 0:
        ids = ids if isinstance(ids, Affine) else c.tensor(1)
        return c.w.full(slices_at(c.w, x, 0, ids))
    flat = c.w.reshape(c.tensor(1), (product(places),))
    return c.w.reshape(c.w.full(slices_at(c.w, x, axis, flat, from_end=True)), result)


def _within(c: Call, ids: Affine, extent: Expr) -> bool:
    """Whether all indices of a formula are proved to be from 0 on and below an extent."""
    behind = Affine(ids.dims, tuple(-s for s in ids.steps), extent - 1 - ids.offset)
    return ids.never_negative(c.w.scope) and behind.never_negative(c.w.scope)


def _run(ids: Known, extent: Expr) -> tuple[Expr, Expr] | None:
    """The first index and the number of consecutive indices; None for others."""
    numbers = [int(n) for n in ids.array.reshape(-1).tolist()]
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    if numbers[0] < 0 <= numbers[-1]:
        return None
    return (extent + numbers[0] if numbers[0] < 0 else const(numbers[0])), const(len(numbers))


def gather_elements(c: Call) -> Result:
    """Elements along an axis; at consecutive positions a slice."""
    axis, index, dims = c.axis(), formula(c.value(1)), c.shape(0)
    if index is None or not set(index.moving_axes()) <= {axis} or index.steps[axis] is not ONE:
        return gathered(c.w, c.tensor(0), axis, c.tensor(1))
    if not _within(c, index, dims[axis]) or not all(map(c.w.scope.le, index.dims, dims)):
        return gathered(c.w, c.tensor(0), axis, c.tensor(1))
    numbers, x = formula(c.value(0)), None
    for a, size in enumerate(index.dims):
        start = index.offset if a == axis else ZERO
        if numbers is not None:
            numbers = numbers.sliced(a, start, 1, size)
        else:
            x = c.w.slice(c.tensor(0) if x is None else x, a, start, size)
    return x if numbers is None else numbers


def gather_nd(c: Call) -> Result:
    """Slices at places that the last dim of the indices gives."""
    batch = c.attr("batch_dims", 0)
    if batch == 0 and (view := _moved_view(c)) is not None:
        return view
    x, ids = c.tensor(0), c.tensor(1)
    dims, outer = tensor_type(x).dims, tensor_type(ids).dims[:-1]
    indices = _columns(c, ids, len(dims) - batch)
    count = len(indices)
    rest = len(dims) - batch - count
    rank = len(outer)
    found = [_batch_index(c, outer, axis) for axis in range(batch)] + indices
    result = (*outer, *dims[batch + count :])
    at = [c.w.reshape(i, (*tensor_type(i).dims, *(ONE for _ in range(rest)))) for i in found]
    if not found:
        return c.w.expand(c.w.reshape(x, (*(ONE for _ in outer), *dims)), result)
    kept = [rank + i for i in range(rest)]
    return c.w.full(picked(c.w, x, at, list(range(batch + count)), kept, result))


def _moved_view(c: Call) -> Value | None:
    """The first input as slices and a broadcast, where the indices are ranges, such as start, start + 1, ...; else
    None.

    Each index must count along one dim of the result, in the order of the indexed dims. Exporters use such indices for
    masks that a model computes for each element, and for rows of a table of positions.
    """
    columns, dims, outer = _formulas(c), c.shape(0), c.shape(1)[:-1]
    if not 0 < len(columns) <= len(dims):
        return None
    shape, last, starts = [ONE] * len(outer), -1, list[tuple[Expr, Expr]]()
    for index, extent in zip(columns, dims, strict=False):
        moving = index.moving_axes()
        if len(moving) != 1 or moving[0] <= last or index.steps[moving[0]] is not ONE or not _within(c, index, extent):
            return None
        last = moving[0]
        shape[last] = outer[last]
        starts.append((index.offset, outer[last]))
    x, rest = c.tensor(0), dims[len(columns) :]
    for axis, (start, size) in enumerate(starts):
        x = x if size is dims[axis] else c.w.slice(x, axis, start, size)
    return masked_or_spread(c.w.reshape(x, (*shape, *rest)), (*outer, *rest))


def _formulas(c: Call) -> tuple[Affine, ...]:
    """The columns of the last dim of the indices, if these are formulas."""
    ids = formula(c.value(1))
    if ids is None:
        return c.w.columns.get(c.tensor(1), ())
    if not ids.dims or ids.dims[-1] is not ONE:
        return ()
    return (ids.without(len(ids.dims) - 1),)


def _columns(c: Call, ids: SSAValue, most: int) -> list[SSAValue]:
    """The columns of the last dim of indices, which has an index for each of `most` dims at most."""
    *outer, count = tensor_type(ids).dims
    last, number = len(outer), count.as_int()
    if number is None:
        raise NotSupported(f"the last dim of the indices is {count}, expected a number")
    if number > most:
        raise NotSupported(f"the last dim of the indices is {number}, but there are {most} dims to index")
    return [c.w.reshape(c.w.slice(ids, last, i, 1), outer) for i in range(number)]


def _batch_index(c: Call, outer: Shape, axis: int) -> SSAValue:
    only = tuple(d if a == axis else ONE for a, d in enumerate(outer))
    steps = tuple(const(int(a == axis)) for a in range(len(outer)))
    return c.w.full(Affine(only, steps, ZERO))


KINDS = {"none": "set", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _kind(c: Call) -> str:
    if (name := c.attr("reduction", "none")) not in KINDS:
        raise NotSupported(f"reduction is {name!r}, expected one of {', '.join(KINDS)}")
    return KINDS[name]


def scatter_elements(c: Call) -> SSAValue:
    return scattered_along(c.w, _kind(c), c.tensor(0), c.axis(), c.tensor(1), c.tensor(2))


def scatter_nd(c: Call) -> SSAValue:
    """Slices written or combined at places that the last dim of the indices gives."""
    x, ids, values = c.tensor(0), c.tensor(1), c.tensor(2)
    rank = tensor_type(x).rank
    indices = _columns(c, ids, rank)
    count, outer = len(indices), tensor_type(ids).rank - 1
    rest = rank - count
    at = [c.w.reshape(i, (*tensor_type(i).dims, *(ONE for _ in range(rest)))) for i in indices]
    return scattered(c.w, _kind(c), x, values, at, list(range(count)), [outer + i for i in range(rest)])


def one_hot(c: Call) -> SSAValue:
    """Values at the index and elsewhere, along a new axis."""
    ids, values = c.tensor(0), c.tensor(2)
    depth = c.exprs(1)[0]
    dims = tensor_type(ids).dims
    axis = c.placed(c.attr("axis", -1), len(dims) + 1)
    index = c.w.cast(ids, i64)
    size = c.w.number(depth, i64)
    index = c.w.where(c.w.compare("lt", index, 0), c.w.add(index, size), index)
    index = c.w.reshape(index, (*dims[:axis], ONE, *dims[axis:]))
    only = tuple(depth if a == axis else ONE for a in range(len(dims) + 1))
    steps = tuple(const(int(a == axis)) for a in range(len(dims) + 1))
    hot = c.w.compare("eq", index, c.w.full(Affine(only, steps, ZERO)))
    off, on = (c.w.reshape(c.w.slice(values, 0, i, 1), ()) for i in (0, 1))
    return c.w.where(hot, on, off)


def compress(c: Call) -> SSAValue:
    """Slices along an axis, or elements, where a condition holds; a missing condition does not hold."""
    x, mask = c.tensor(0), c.tensor(1)
    if c.attr("axis") is None:
        x, axis = c.w.reshape(x, [product(tensor_type(x).dims)]), 0
    else:
        axis = c.axis()
    length = tensor_type(mask).dims[0]
    bound = c.w.bind("count", length)
    (places,) = true_places(c.w, mask, bound)
    return c.w.full(slices_at(c.w, x, axis, places))


def nonzero(c: Call) -> SSAValue:
    """The indices of the nonzero elements, one element in each column."""
    x = c.w.cast(c.tensor(0), i1)
    if not tensor_type(x).dims:
        x = c.w.reshape(x, (ONE,))
    bound = c.w.bind("count", product(tensor_type(x).dims))
    rows = [c.w.reshape(index, [ONE, bound]) for index in true_places(c.w, x, bound)]
    return c.w.concat(rows, 0)


def tensor_scatter(c: Call) -> SSAValue:
    """A cache with new rows along an axis, from an index on for each element of the batch; `circular` wraps around."""
    cache, rows = c.tensor(0), c.tensor(1)
    axis = c.axis(-2)
    dims, new = tensor_type(cache).dims, tensor_type(rows).dims
    rank = len(dims)
    steps = c.w.full(Affine(_only(new, axis), tuple(const(int(a == axis)) for a in range(rank)), ZERO))
    at = steps
    if c.has(2):
        start = c.w.reshape(c.w.cast(c.tensor(2), i64), (dims[0], *(ONE for _ in range(rank - 1))))
        at = c.w.add(steps, start)
    if c.attr("mode", "linear") == "circular":
        at = c.w.rem(at, c.w.number(dims[axis], i64))
    return scattered_along(c.w, "set", cache, axis, c.w.expand(at, new), rows)


def _only(dims: Sequence[Expr], axis: int) -> Shape:
    return tuple(d if a == axis else ONE for a, d in enumerate(dims))


ROWS: dict[str, Row] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Scatter ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "OneHot": one_hot,
    "Compress": compress,
    "NonZero": nonzero,
    "TensorScatter": tensor_scatter,
}
