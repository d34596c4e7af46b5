"""An op with numbers for its dims, and the points at which times and estimates are taken."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.loops import IndicesAttr
from ait_mlir.dialects.ait.types import Induction, IterationsAttr, ShapeAttr, TensorType
from ait_mlir.dims import Dim, Expr, Scope

Point = tuple[int, ...]
"""A value for each dim of a task, in the order of its scope."""
MAX_POINTS = 6
STRATEGIES = ("hints", "min", "max")
STEPS = 5
"""Points between the smallest and the largest size."""


@dataclass(frozen=True)
class Standalone:
    """An op in its own graph, which declares exactly the dims that the op depends on."""

    graph: GraphOp
    op: Operation

    @property
    def scope(self) -> Scope:
        return self.graph.scope

    def environment(self, point: Point) -> dict[str, int]:
        return {d.name: n for d, n in zip(self.scope.dims, point, strict=True)}

    def at(self, point: Point) -> Operation:
        """The op with numbers for dims, in its own graph."""
        return self._in(substituted(self.graph, self.environment(point), Scope()))

    def hinted(self, point: Point) -> Operation:
        """The op with its dims, in its own graph; the numbers of the point are the only hints of the dims."""
        dims = [replace(d, hints=(min(n, d.hi),)) for d, n in zip(self.scope.dims, point, strict=True)]
        return self._in(substituted(self.graph, {}, Scope(dims)))

    def _in(self, graph: GraphOp) -> Operation:
        """The op at the same position in a copy of the graph."""
        return next(new for old, new in zip(self.graph.block.ops, graph.block.ops, strict=True) if old is self.op)


def points_of(scope: Scope, strategies: Sequence[str] = ("hints",)) -> list[Point]:
    """The points to measure: all combinations of the values of each dim, or `MAX_POINTS` of them, evenly spaced.

    `strategies` selects the values of a dim: `hints` (without hints, its smallest and largest value), `min` and `max`.
    """
    choices = [_values(d, strategies) for d in scope.dims]
    points = sorted(itertools.product(*choices))
    if len(points) <= MAX_POINTS:
        return points
    return [points[round(i * (len(points) - 1) / (MAX_POINTS - 1))] for i in range(MAX_POINTS)]


def _values(dim: Dim, strategies: Sequence[str]) -> list[int]:
    low = max(1, dim.lo) if dim.hi >= 1 else dim.lo
    values: set[int] = set()
    if "hints" in strategies:
        values.update(dim.hints or (low, dim.hi))
    if "min" in strategies:
        values.add(low)
    if "max" in strategies:
        values.add(dim.hi)
    return sorted(values)


def points_between(scope: Scope) -> Sequence[Point]:
    """The points for comparisons: the hints, and points in between, with all dims growing from smallest to largest.

    With hints, the smallest and the largest hint of a dim are the ends.
    """
    hinted = points_of(scope)
    low, high = [min(column) for column in zip(*hinted, strict=True)], [max(c) for c in zip(*hinted, strict=True)]
    between = {
        tuple(round(max(a, 1) ** (1 - i / STEPS) * max(b, 1) ** (i / STEPS)) for a, b in zip(low, high, strict=True))
        for i in range(STEPS + 1)
    }
    return sorted({*hinted, *between}, key=lambda point: (math.prod(point), point))


def symbols_of(op: Operation) -> frozenset[str]:
    """The dims in the properties of an op and of the ops in its regions; iteration dims of nests among them."""
    found: set[str] = set()
    for attr in (a for inner in op.walk() for a in inner.properties.values()):
        if isinstance(attr, ShapeAttr | IndicesAttr):
            found.update(*(e.symbols for e in attr.data if e is not None))
        elif isinstance(attr, IterationsAttr):
            found.update(*(loop.count.symbols for loop in attr.data))
    return frozenset(found)


def _regions(region: Region) -> Iterator[Region]:
    """A region and those inside of it."""
    yield region
    for op in region.walk():
        yield from op.regions


def substituted(graph: GraphOp, values: Mapping[str, Expr | int], scope: Scope) -> GraphOp:
    """A copy of the graph with other expressions for its dims, which `scope` declares."""

    def placed(attr: Attribute) -> Attribute:
        if isinstance(attr, TensorType):
            return TensorType.get([e.substitute(values) for e in attr.dims], attr.element_type)
        if isinstance(attr, ShapeAttr):
            return ShapeAttr(tuple(e.substitute(values) for e in attr.data))
        if isinstance(attr, IterationsAttr):
            return IterationsAttr(tuple(Induction(loop.name, loop.count.substitute(values)) for loop in attr.data))
        if isinstance(attr, IndicesAttr):
            return IndicesAttr(tuple(None if e is None else e.substitute(values) for e in attr.data))
        return attr

    def replaced(region: Region) -> Region:
        made = region.clone()
        for inner in made.walk():
            inner.properties = {k: placed(a) for k, a in inner.properties.items()}
        for block in (block for around in _regions(made) for block in around.blocks):
            for argument in block.args:
                Rewriter.replace_value_with_new_type(argument, placed(argument.type))
        return made

    inputs = [(name, cast(TensorType, placed(value.type))) for name, value in graph.inputs()]
    strides = {name: tuple(e.substitute(values) for e in given) for name, given in graph.strides().items()}
    new = GraphOp(graph.sym_name.data, inputs, scope, strides=strides)
    mapping: dict[SSAValue, SSAValue] = dict(zip(graph.block.args, new.block.args, strict=True))
    for op in graph.block.ops:
        made = type(op).create(
            operands=[mapping[v] for v in op.operands],
            result_types=[placed(t) for t in op.result_types],
            properties={k: placed(a) for k, a in op.properties.items()},
            attributes=dict(op.attributes),
            regions=[replaced(r) for r in op.regions],
        )
        mapping.update(zip(op.results, made.results, strict=True))
        new.block.add_op(made)
    return new
