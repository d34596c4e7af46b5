"""How a block computes a box of results whose operands lie in other orders of dims.

A box has some neighbours along each axis. Operands that are not contiguous along the axis of the results are read in
their own order, and turn in shared memory; results are stored in theirs. The neighbours of each order fill sectors of
memory: along its innermost axis, and where the box has all of that axis, along the next one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dims import Expr, const, product
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.loops.nest import (
    Axis,
    Count,
    Fold,
    Nest,
    Node,
    Read,
    best_lane_of_results,
    continues,
    is_stored,
    operands_of,
    step,
    that_follow,
)

ENOUGH = 512
"""Bytes of neighbours beyond which a box does not grow along an order."""
WASTE = 1.15
"""The most elements that boxes have, over those of an axis, before these are cut into equal parts."""
FULL = 1.5
"""A box has all of an axis that is at most so many times as long as the box would be."""


@dataclass(frozen=True)
class Side:
    """Nodes that a block computes in the order in which their reads lie, `axes`, the innermost last; `values` of them
    turn, stored as `types`.
    """

    axes: tuple[Axis, ...]
    nodes: tuple[Node, ...]
    values: tuple[SSAValue, ...]
    types: tuple[Attribute, ...]

    @property
    def width(self) -> int:
        """The bytes that turn of an element."""
        return sum(BY_IR[t].bytes for t in self.types)

    @property
    def reads(self) -> list[Read]:
        return [node for node in self.nodes if isinstance(node, Read)]


@dataclass(frozen=True, eq=False)
class Boxes:
    """The boxes of a nest without folds. `order` are the axes as the results lie, the innermost last; `extents` the
    neighbours of a box along each axis, 1 for those that are left out.
    """

    nest: Nest
    order: tuple[Axis, ...]
    sides: tuple[Side, ...]
    extents: Mapping[str, int]
    run: tuple[Axis, ...]
    """The innermost axes of the results through which everything that does not turn steps as through one; the box has
    all of each but the outermost.
    """

    @cached_property
    def turned(self) -> frozenset[Node]:
        return frozenset(node for side in self.sides for node in side.nodes)

    def left(self, nest: Nest) -> list[Node]:
        """The nodes of the nest, or of the joined one, that a thread computes where it stores results."""
        needed, found = set(nest.yields), list[Node]()
        turned = {value for side in self.sides for value in side.values}
        for node in reversed(nest.nodes):
            if needed.intersection(node.results) - turned:
                found.append(node)
                needed.update(operands_of(node))
        return found[::-1]

    @property
    def elements(self) -> int:
        return math.prod(self.extents.values())

    @property
    def run_elements(self) -> int:
        return math.prod(self.extents[axis.name] for axis in self.run)

    def elements_of(self, side: Side) -> int:
        return math.prod(self.extents[axis.name] for axis in side.axes)

    def pitches(self, side: Side, lanes: int) -> tuple[dict[str, int], int]:
        """The distance of neighbours along each axis in the tile of a side, and the size of the tile, in elements. The
        results lie side by side. Neighbours of the side are an odd number of accesses apart, in different banks.
        """
        inner, found, pitch = side.axes[-1], dict[str, int](), 1
        access = max(lanes, 4 // max(1, min((BY_IR[t].bytes for t in side.types), default=4)))
        for axis in reversed([axis for axis in self.order if axis in side.axes]):
            if axis is inner and axis not in self.run:
                accesses = -(-pitch // access)
                pitch = (accesses + 1 - accesses % 2) * access
            found[axis.name] = pitch
            pitch *= self.extents[axis.name]
        return found, -(-pitch // lanes) * lanes

    def bytes(self, lanes: int) -> int:
        """The shared memory of all tiles."""
        sizes = [self.pitches(side, lanes)[1] * BY_IR[t].bytes for side in self.sides for t in side.types]
        return sum(-(-size // 16) * 16 for size in sizes)

    def joined(self) -> tuple[Nest, Axis]:
        """The nest with the axes of `run` as one, for all that does not turn, and that axis."""
        put: dict[str, Expr] = {axis.name: const(0) for axis in self.run[1:]}
        lane = Axis(self.run[0].name, product(axis.count for axis in self.run))
        left = set(self.left(self.nest))
        nodes = tuple(_put(node, put) if node in left else node for node in self.nest.nodes)
        offsets = tuple(offset.substitute(put) for offset in self.nest.offsets)
        axes = tuple(lane if a is self.run[0] else a for a in self.nest.axes if a not in self.run[1:])
        return replace(self.nest, axes=axes, nodes=nodes, offsets=offsets), lane


def _put(node: Node, put: Mapping[str, Expr]) -> Node:
    return replace(node, offset=node.offset.substitute(put)) if isinstance(node, Read) else node


@lru_cache(maxsize=256)
def boxes_of(nest: Nest, most: int, lanes: int) -> Boxes | None:
    """The boxes of about `most` elements, whose results are stored `lanes` at a time; None if nothing is to be turned,
    or if a result or a read that would turn is no plain step along an axis.
    """
    lane, env = best_lane_of_results(nest), estimate_env(nest.around)
    if lane is None or any(isinstance(node, Fold) for node in nest.nodes):
        return None
    if any(_steps(offset, nest.axes, env) is None for offset in nest.offsets):
        return None
    if any(axis.name not in offset.symbols for offset in nest.offsets for axis in nest.axes):
        return None
    order = _order(nest.offsets[0], nest.axes, env)
    if order[-1] is not lane or any(_order(offset, nest.axes, env) != order for offset in nest.offsets):
        return None
    sides = _sides(nest, lane, env)
    if not sides:
        return None
    return _fitted(nest, order, sides, most, lanes)


def _steps(e: Expr, axes: Sequence[Axis], env: Mapping[str, int]) -> dict[str, int] | None:
    """How far apart neighbours along each axis are."""
    found: dict[str, int] = {}
    for axis in axes:
        by = step(e, axis.name)
        if by is None or not by.symbols <= env.keys():
            return None
        found[axis.name] = abs(by.evaluate(env))
    return found


def _order(e: Expr, axes: Sequence[Axis], env: Mapping[str, int]) -> tuple[Axis, ...]:
    """The axes that an offset depends on, the innermost last."""
    steps = _steps(e, axes, env) or {}
    return tuple(sorted((a for a in axes if steps.get(a.name)), key=lambda a: steps[a.name], reverse=True))


def _sides(nest: Nest, lane: Axis, env: Mapping[str, int]) -> tuple[Side, ...]:
    """The sides of a nest, one for each order in which reads lie that are not contiguous along `lane`."""
    found: dict[tuple[Axis, ...], list[Read]] = {}
    for node in nest.nodes:
        if not isinstance(node, Read) or node.gathers or lane.name not in node.offset.symbols:
            continue
        steps = _steps(node.offset, nest.axes, env)
        axes = _order(node.offset, nest.axes, env)
        if steps is None or not axes or steps[axes[-1].name] > 1 or steps[lane.name] <= 1:
            continue
        if any(index.symbols - {a.name for a in axes} - env.keys() for index, _ in node.guards):
            continue
        found.setdefault(axes, []).append(node)
    return tuple(_side(nest, axes, reads) for axes, reads in found.items())


def _side(nest: Nest, axes: tuple[Axis, ...], reads: list[Read]) -> Side:
    """The side of some reads: these turn as they are stored, or what follows from them alone, if that has fewer
    bytes.
    """
    as_read = tuple(r.element if is_stored(r) else r.result.type for r in reads)
    plain = Side(axes, tuple(reads), tuple(r.result for r in reads), as_read)
    names, inner = {axis.name for axis in nest.axes}, {axis.name for axis in axes}
    nodes = that_follow(nest.nodes, reads, lambda count: count.value.symbols & names <= inner)
    used = {v for node in nest.nodes if node not in nodes for v in operands_of(node)}
    stored = {v: t for v, t in zip(nest.yields, nest.elements, strict=True)}
    results = tuple(v for node in nodes for v in node.results if v in used or v in stored)
    types = tuple(stored[v] if v in stored and v not in used and nest.yields.count(v) == 1 else v.type for v in results)
    derived = Side(axes, tuple(nodes), results, types)
    return derived if derived.width < plain.width else plain


@dataclass
class _Line:
    """An order that a box grows along: its axes, the innermost first, and the bytes of an element."""

    axes: list[Axis]
    width: int

    def bytes(self, extents: Mapping[str, int]) -> int:
        """The bytes of neighbours that a box has."""
        return self.width * math.prod(extents[axis.name] for axis in self.reached(extents))

    def reached(self, extents: Mapping[str, int]) -> list[Axis]:
        """The axes up to the first of which the box has a part."""
        found: list[Axis] = []
        for axis in self.axes:
            found.append(axis)
            if axis.count.as_int() != extents[axis.name]:
                break
        return found


def _fitted(nest: Nest, order: tuple[Axis, ...], sides: tuple[Side, ...], most: int, lanes: int) -> Boxes:
    """The box that grows along the order with the fewest bytes of neighbours, until it has `most` elements."""
    env = estimate_env(nest.around)
    counts = {axis.name: max(1, axis.count.evaluate(env)) for axis in nest.axes}
    extents = dict.fromkeys(counts, 1)
    lines = [_Line(_neighbours(nest.offsets[0], order, counts, env), min(BY_IR[t].bytes for t in nest.elements))]
    for side in sides:
        read = side.reads[0]
        lines.append(_Line(_neighbours(read.offset, side.axes, counts, env), BY_IR[read.element].bytes))
    while True:
        grown = None
        for line in sorted(lines, key=lambda each: each.bytes(extents)):
            axis = line.reached(extents)[-1]
            if line.bytes(extents) >= ENOUGH or extents[axis.name] >= counts[axis.name]:
                continue
            wanted = 2 * extents[axis.name]
            if counts[axis.name] <= FULL * wanted:
                wanted = counts[axis.name]
            if math.prod(extents.values()) // extents[axis.name] * wanted <= most:
                grown = axis.name, wanted
                break
        if grown is None:
            break
        extents[grown[0]] = grown[1]
    for name, extent in extents.items():  # parts of equal size, where others would leave threads without elements
        parts = -(-counts[name] // extent)
        if parts * extent > WASTE * counts[name]:
            extents[name] = -(-counts[name] // parts)
    boxes = Boxes(nest, order, sides, extents, order[-1:])
    found = replace(boxes, run=_run(boxes, lanes))
    run = found.run
    outer, inner = run[-1].name, found.run_elements // extents[run[-1].name]
    whole = lanes // math.gcd(lanes, inner)
    extents[outer] = -(-extents[outer] // whole) * whole
    return found


def _neighbours(e: Expr, order: Sequence[Axis], counts: Mapping[str, int], env: Mapping[str, int]) -> list[Axis]:
    """The innermost axes that continue each other in memory, but for small gaps, the innermost first."""
    steps = _steps(e, order, env) or {}
    found = [order[-1]]
    for axis in reversed(order[:-1]):
        inner = found[-1].name
        if steps[axis.name] > steps[inner] * counts[inner]:
            break
        found.append(axis)
    return found


def _run(boxes: Boxes, lanes: int) -> tuple[Axis, ...]:
    """The axes of `Boxes.run`, no more than fill accesses of `lanes` elements."""
    nest, left = boxes.nest, boxes.left(boxes.nest)
    walked = [*nest.offsets, *(node.offset for node in left if isinstance(node, Read))]
    fixed = {s for node in left if isinstance(node, Read) for index, _ in node.guards for s in index.symbols}
    fixed |= {s for node in left if isinstance(node, Count) for s in node.value.symbols}
    run = [boxes.order[-1]]
    joined = run[0]
    for axis in reversed(boxes.order[:-1]):
        is_whole = boxes.extents[run[-1].name] == run[-1].count.as_int()
        if not is_whole or math.prod(boxes.extents[a.name] for a in run) % lanes == 0:
            break
        if fixed & {axis.name, joined.name} or not all(axis in side.axes for side in boxes.sides):
            break
        if not continues(axis, joined, walked, nest.scope):
            break
        run.append(axis)
        joined = Axis(joined.name, joined.count * axis.count)
    return tuple(run)
