"""Reference semantics of loops: the region runs once on grids of indices, one axis for each iteration dim."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce as reduce_all
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait.loops import PLACES, AtOp, FoldOp, IndexOp, LoopsOp, Nested
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dims import Expr
from ait_mlir.reference.core import Array, Arrays, Evaluation, EvaluationError, element_type_of, reference, value_dtype
from ait_mlir.reference.reduce import nothing, reduce

OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "min": np.minimum,
    "max": np.maximum,
}


def on_grid(e: Expr, grids: Mapping[str, Any]) -> Any:
    """The values of an expression on grids of indices, which broadcast."""
    found: Any = np.int64(0)
    for coefficient, atoms in e.terms():
        factors = (
            grids[a.name]
            if a.op is None
            else reduce_all(OPERATORS[a.op.name], [on_grid(part, grids) for part in a.args])
            for a in atoms
        )
        found = found + math.prod(factors, start=np.int64(coefficient))
    return found


@dataclass
class Nest:
    """One run of the region. A value is an array with one axis for each iteration dim around it; an axis has size 1 if
    the value does not depend on the dim.
    """

    evaluation: Evaluation
    grids: dict[str, Any]
    """The dims of the run and the indices, by name."""
    tensors: Mapping[SSAValue, Array]
    """The operands, by block argument."""
    values: dict[SSAValue, Array] = field(default_factory=dict[SSAValue, Array])

    def enter(self, names: Sequence[str], sizes: Sequence[int], depth: int) -> dict[str, Any]:
        """The grids of all dims, by name, inside loops over new dims `names`. `depth` is the number of loops around
        these.
        """
        rank = depth + len(sizes)
        lifted = {name: lift(grid, rank) for name, grid in self.grids.items()}
        for axis, (name, size) in enumerate(zip(names, sizes, strict=True), depth):
            shape = [1] * rank
            shape[axis] = size
            lifted[name] = np.arange(size, dtype=np.int64).reshape(shape)
        return lifted

    def run(self, block: Block, depth: int) -> tuple[Array, ...]:
        """The values that a block yields, `depth` axes each."""
        for op in block.ops:
            operands = [lift(self.values[v], depth) for v in op.operands if v in self.values]
            if isinstance(op, YieldOp):
                return tuple(operands)
            for result, array in zip(op.results, self.results(op, operands, depth), strict=True):
                self.values[result] = array
        raise EvaluationError("the region of ait.loops ends without ait.yield")

    def results(self, op: Operation, operands: list[Array], depth: int) -> Sequence[Array]:
        if isinstance(op, FoldOp):
            return self.fold(op, depth)
        if isinstance(op, IndexOp):
            return [np.asarray(on_grid(op.value, self.grids))]
        if isinstance(op, AtOp):
            return [self.read(op, operands)]
        return self.evaluation.run_op(op, operands)

    def read(self, op: AtOp, operands: list[Array]) -> Array:
        tensor = self.tensors[op.tensor]
        values, texts = iter(operands), iter(op.texts)
        inside: Any = np.True_
        places: list[Any] = []
        for dim, (e, size) in enumerate(zip(op.indices.data, tensor.shape, strict=True)):
            index = next(values).astype(np.int64) if e is None else on_grid(e, self.grids)
            text = next(texts) if e is None else ""
            within = (index >= 0) & (index < size)
            if op.otherwise is None and not np.all(within):
                bad = index[~within].flat[0] if np.ndim(index) else index
                usual = f"ait.at: index {bad} for dim {dim}, which has {size}"
                raise EvaluationError(said(text, int(bad), size) if text else usual)
            inside = inside & within
            places.append(np.clip(index, 0, max(size - 1, 0)))
        if op.otherwise is None:
            return np.asarray(tensor[tuple(places)])
        other = np.asarray(op.number).astype(tensor.dtype)
        shape = np.broadcast_shapes(np.shape(inside), *map(np.shape, places))
        read = tensor[tuple(places)] if tensor.size else np.broadcast_to(other, shape)
        return np.asarray(np.where(inside, read, other))

    def fold(self, op: FoldOp, depth: int) -> Sequence[Array]:
        kind, dtype = op.kind.data, value_dtype(op.results[0].type)
        sizes = [size.evaluate(self.evaluation.dims) for size in op.sizes]
        if 0 in sizes:
            return [np.full((1,) * depth, nothing(NAMES.get(kind, kind), dtype), dtype)]
        outside = self.grids
        self.grids = self.enter([loop.name for loop in op.iterations.data], sizes, depth)
        (found,) = self.run(op.block, depth + len(sizes))
        self.grids = outside
        found = np.broadcast_to(found, (*found.shape[:depth], *sizes))
        if kind not in PLACES:
            return [reduce(NAMES.get(kind, kind), found, tuple(range(depth, found.ndim)))]
        rows = found.reshape(*found.shape[:depth], -1)
        places = np.asarray((np.argmax if kind == "argmax" else np.argmin)(rows, axis=-1))
        return [np.take_along_axis(rows, places[..., None], axis=-1)[..., 0], places.astype(np.int64)]


def said(text: str, index: int, size: int) -> str:
    """The error of an index outside of its dim."""
    stored = index - size if index < 0 else index
    for word, number in (("{index}", index), ("{stored}", stored), ("{size}", size)):
        text = text.replace(word, str(number))
    return text


NAMES = {"add": "sum", "mul": "prod"}
"""The kinds of folds that reductions call otherwise."""


def lift(array: Any, rank: int) -> Any:
    """An array with `rank` axes: its own, then axes of size 1."""
    shape = np.shape(array)
    return np.reshape(array, (*shape, *[1] * (rank - len(shape))))


def run_nest(op: Nested, arrays: Arrays, ev: Evaluation) -> tuple[Array, ...]:
    """The values that a region yields on the grid of its iteration dims, none of which has size 0."""
    operands: dict[SSAValue, Array] = dict(zip(op.block.args, arrays, strict=True))
    nest = Nest(ev, {name: np.int64(value) for name, value in ev.dims.items()}, operands)
    sizes = [size.evaluate(ev.dims) for size in op.sizes]
    nest.grids = nest.enter([loop.name for loop in op.iterations.data], sizes, 0)
    with np.errstate(all="ignore"):
        return nest.run(op.block, len(sizes))


@reference(LoopsOp)
def _(loops: LoopsOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    if 0 in [size.evaluate(ev.dims) for size in loops.sizes]:
        return [np.empty(ev.shape(r.type), value_dtype(element_type_of(r.type))) for r in loops.results]
    return ev.whole(run_nest(loops, arrays, ev), loops)
