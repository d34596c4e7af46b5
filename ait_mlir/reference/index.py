"""Reference semantics of ops that take indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ait_mlir.dialects.ait.index import (
    EmbeddingOp,
    GatherOp,
    GroupedEmbeddingOp,
    IndexedOp,
    MaskedSelectOp,
    ScatterOp,
    UpdateSliceOp,
)
from ait_mlir.reference.core import Array, Arrays, Evaluation, EvaluationError, reference


@reference(EmbeddingOp)
def _(op: EmbeddingOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return (rows_of(op, *arrays),)


@reference(GroupedEmbeddingOp)
def _(op: GroupedEmbeddingOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    return [rows_of(op, table, ids) for table, ids in zip(arrays[::2], arrays[1::2], strict=True)]


def rows_of(op: Operation, table: Array, ids: Array) -> Array:
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= table.shape[0]):
        raise EvaluationError(f"{op.name}: ids from {ids.min()} to {ids.max()} in a table of {table.shape[0]} rows")
    return np.take(table, ids.astype(np.int64), axis=0)


@reference(UpdateSliceOp)
def _(op: UpdateSliceOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    whole, rows, position = arrays
    axis = op.axis
    count, extent = rows.shape[axis], whole.shape[axis]
    places = [int(p) for p in position] if position.ndim else range(int(position), int(position) + count)
    if places and (min(places) < 0 or max(places) >= extent):
        raise EvaluationError(f"ait.update_slice: places from {min(places)} to {max(places)} in a dim of {extent}")
    result = whole.copy()
    for row, place in enumerate(places):
        np.moveaxis(result, axis, 0)[place] = np.moveaxis(rows, axis, 0)[row]
    return (result,)


@reference(MaskedSelectOp)
def _(op: MaskedSelectOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    x, mask = arrays
    selected = x[mask]
    ev.bind(str(op.bound_dim), len(selected))
    return selected, np.array(len(selected))


def coordinates(op: IndexedOp, whole: Array, indices: Sequence[Array], space: Sequence[int]) -> tuple[Array, ...]:
    """The coordinates in the tensor of each element of the index space: one array for each dim of the tensor."""
    dims, _ = op.places()
    found: dict[int, Array] = {}
    for dim, index in zip(dims, indices, strict=True):
        extent = whole.shape[dim]
        if min(space, default=1) and ((index < -extent) | (index >= extent)).any():
            raise EvaluationError(
                f"{op.name}: indices from {index.min()} to {index.max()} for dim {dim}, which has {extent}"
            )
        found[dim] = np.broadcast_to(np.where(index < 0, index + extent, index), space)
    for dim, at in op.kept_dims():
        shape = [1] * len(space)
        shape[at] = space[at]
        found[dim] = np.broadcast_to(np.arange(space[at]).reshape(shape), space)
    return tuple(found[d] for d in range(whole.ndim))


@reference(GatherOp)
def _(op: GatherOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    x, *indices = arrays
    try:
        return (x[coordinates(op, x, indices, ev.shape(op.results[0].type))],)
    except EvaluationError as error:
        raise error if op.says is None else EvaluationError(op.says.data) from error


COMBINE: dict[str, Callable[..., Any]] = {
    "add": np.add.at,
    "mul": np.multiply.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
}


@reference(ScatterOp)
def _(scatter: ScatterOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    x, values = arrays[:2]
    indices = arrays[2 : 2 + len(scatter.indices)]
    space = [d.evaluate(ev.dims) for d in scatter.space()]
    at = tuple(c.reshape(-1) for c in coordinates(scatter, x, indices, space))
    flat = np.broadcast_to(values, space).reshape(-1)
    if scatter.order:
        at, points = in_order(*scatter.places(), x, space, *arrays[-2:])
        flat = flat[points]
    return (combined(scatter.kind.data, x, at, flat),)


def combined(kind: str, x: Array, at: tuple[Array, ...], values: Array) -> Array:
    """A copy of x with values combined with its elements at these coordinates, one after the other."""
    result = x.copy()
    if kind == "set":
        result[at] = values
    elif values.size:
        COMBINE[kind](result, at, values)
    return result


def in_order(
    dims: Sequence[int], kept: Sequence[int], whole: Array, space: Sequence[int], keys: Array, places: Array
) -> tuple[tuple[Array, ...], Array]:
    """The coordinates in the tensor of the points of the space, and their numbers, by an order and not by indices."""
    sizes = [whole.shape[d] for d in dims]
    most = np.prod(sizes)
    if len(keys) and (min(keys.min(), places.min()) < 0 or keys.max() >= most or places.max() >= len(places)):
        raise EvaluationError(
            f"an order has keys from {keys.min()} to {keys.max()} and places from {places.min()} to {places.max()}; "
            f"there are {most} elements and {len(places)} places"
        )
    axes = [*(a for a in range(len(space)) if a not in kept), *kept]
    columns = int(np.prod([space[a] for a in kept]))
    numbers = np.arange(int(np.prod(space))).reshape(space).transpose(axes).reshape(len(places), columns)
    points = numbers[places].reshape(-1)
    found = dict(zip(dims, np.unravel_index(np.repeat(keys, columns), sizes), strict=True))
    along = np.unravel_index(points, space) if space else ()
    rest = [d for d in range(whole.ndim) if d not in dims]
    found |= {d: along[at] for d, at in zip(rest, kept, strict=True)}
    return tuple(found[d] for d in range(whole.ndim)), points
