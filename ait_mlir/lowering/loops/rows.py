"""Divides a nest into rows: values that a row computes once, and steps over the elements of a row.

A row is an index along the axes on which long folds depend. Each step walks other axes: those of folds, or, in the last
step, the remaining axes of the results. Folds that use results of other folds are in a later step. Folds of segments of
a row, such as the largest magnitude of each 128 numbers of a normalised row, are computed in the walk over the results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from xdsl.ir import SSAValue

from ait_mlir.dims import Expr, const, product
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.loops.nest import Axis, Fold, Nest, Node, operands_of, step, walk

SERIAL = 32
"""Folds of at most so many values are computed by one thread, where there is a choice."""
LONGEST_SEGMENT = 256
"""The most elements of a segment: a warp with 8 neighbours for each thread computes its folds together."""


@dataclass(frozen=True)
class Walk:
    """One pass over the points of some axes: it computes folds of these sizes, or, without folds, the results."""

    axes: tuple[Axis, ...]
    folds: tuple[Fold, ...] = ()

    @property
    def points(self) -> Expr:
        return product(axis.count for axis in self.axes)


@dataclass(frozen=True)
class Step:
    """Nodes that a row computes once, then walks that are independent of each other."""

    nodes: tuple[Node, ...]
    walks: tuple[Walk, ...]


@dataclass(frozen=True)
class Rows:
    """A nest divided into rows along the axes `group`. `rest` are the other axes of the results, and `nodes` are
    computed for each result of a row. `segments` are folds over the elements along the last axis, for each index along
    the others; neighbouring threads that walk over the results compute them together, before `nodes`.
    """

    group: tuple[Axis, ...]
    rest: tuple[Axis, ...]
    steps: tuple[Step, ...]
    once: tuple[Node, ...]
    """What a row computes once after the last step."""
    nodes: tuple[Node, ...]
    segments: tuple[Fold, ...] = ()

    @property
    def count(self) -> Expr:
        return product(axis.count for axis in self.group)

    @property
    def last(self) -> Walk:
        """The walk over the results of a row."""
        return Walk(self.rest)

    def folds(self) -> list[Fold]:
        """All folds of the steps; several threads compute one together."""
        return [fold for s in self.steps for w in s.walks for fold in w.folds]

    def walks(self) -> list[Walk]:
        return [*(w for s in self.steps for w in s.walks), *([self.last] if self.rest else [])]

    @property
    def are_short(self) -> bool:
        """Whether one thread can keep a row: its folds and its results are at most `SERIAL` elements each."""
        return bool(self.steps) and all((w.points.as_int() or SERIAL + 1) <= SERIAL for w in self.walks())


def is_serial(fold: Fold, most: int) -> bool:
    """Whether a fold is so short that one thread computes it."""
    points = fold.points.as_int()
    return points is not None and points <= most


def rows_of(nest: Nest, serial: bool = False, most: int = SERIAL) -> Rows:
    """The rows of a nest. If all folds have at most `most` values, or with `serial`, each result is its own row."""
    return _divided(nest, [] if serial else [fold for fold in nest.folds() if not is_serial(fold, most)])


def rows_of_gpu(nest: Nest) -> Rows:
    """The rows of the long folds of a nest. If it has none, the rows of the short folds that several results share: a
    softmax over 16 channels. If these rows are not short, or nothing is shared, each result is its own row.
    """
    rows = _with_segments(nest) or rows_of(nest)
    if rows.steps:
        return rows
    users, names = nest.users(), {axis.name for axis in nest.axes}
    shared = [f for f in nest.folds() if not is_serial(f, 1) and not names <= users[f.results[0]]]
    found = _divided(nest, shared)
    return found if found.rest and found.are_short else rows


def _with_segments(nest: Nest) -> Rows | None:
    """The rows of a nest in which one fold reduces equal segments of a row and another fold uses the results.

    A segment has a power of two elements. None if the nest has no segments, or if their folds need values that are
    computed for each element of a row.
    """
    users, last = nest.users(), nest.axes[-1] if nest.axes else None
    long = [fold for fold in nest.folds() if not is_serial(fold, SERIAL)]
    segments = [fold for fold in long if last is not None and _is_segment(fold, last, users[fold.results[0]])]
    others = [fold for fold in long if fold not in segments]
    if not segments or not others:
        return None
    rows = _divided(nest, others)
    names = {axis.name for axis in rows.rest[:-1]}
    inside = {v for node in rows.nodes if node not in segments for v in node.results}
    before = (v for fold in segments for node in walk([fold]) for v in operands_of(node))
    if not all(fold in rows.nodes and users[fold.results[0]] & names for fold in segments) or inside & {*before}:
        return None
    return replace(rows, nodes=tuple(n for n in rows.nodes if n not in segments), segments=tuple(segments))


def _is_segment(fold: Fold, last: Axis, of: frozenset[str]) -> bool:
    """Whether a fold is over a segment of a row: as many elements as the last axis of the results, without depending on
    it.

    The number is a power of two.
    """
    points = fold.points.as_int()
    is_short = points is not None and points <= LONGEST_SEGMENT and points & (points - 1) == 0
    return is_short and len(fold.axes) == 1 and last.count.as_int() == points and last.name not in of


def _divided(nest: Nest, long: Sequence[Fold]) -> Rows:
    """A nest divided into rows along the axes on which the folds `long` depend; these folds become its steps."""
    users = nest.users()
    names = frozenset[str]().union(*(users[fold.results[0]] for fold in long)) if long else None
    group = tuple(a for a in nest.axes if names is None or a.name in names)
    rest = tuple(a for a in nest.axes if a not in group)
    inner = {a.name for a in rest}
    level: dict[SSAValue, int] = {}
    levels: dict[int, list[Node]] = {}
    folds: dict[int, list[Fold]] = {}
    nodes: list[Node] = []
    for node in nest.nodes:
        before = max((level.get(v, 0) for n in walk([node]) for v in n.operands), default=0)
        if node in long:
            before += 1
            folds.setdefault(before, []).append(node)  # pyright: ignore[reportArgumentType]
        elif users[node.results[0]] & inner:
            nodes.append(node)
        else:
            levels.setdefault(before, []).append(node)
        level.update(dict.fromkeys(node.results, before))
    steps = [Step(tuple(levels.get(n - 1, ())), _walks(nest, folds[n])) for n in sorted(folds)]
    once = levels.get(len(steps), ())
    return Rows(group, rest, tuple(steps), tuple(once), tuple(nodes))


def _walks(nest: Nest, folds: Sequence[Fold]) -> tuple[Walk, ...]:
    """One walk for all folds over equal sizes."""
    found: list[Walk] = []
    for fold in folds:
        counts = [a.count for a in fold.axes]
        place = next((i for i, w in enumerate(found) if [a.count for a in w.axes] == counts), None)
        if place is None:
            found.append(Walk(fold.axes, (fold,)))
        else:
            found[place] = Walk(found[place].axes, (*found[place].folds, fold))
    return tuple(found)


def results_of_rows(nest: Nest, rows: Rows) -> tuple[int, ...]:
    """The results that have one element for each row, which a row stores once."""
    if not rows.rest:
        return ()
    return tuple(i for i in range(len(nest.yields)) if set(rows.rest) <= set(nest.once_along(i)))


# ** which axis is contiguous **


@lru_cache(maxsize=256)
def best_lane(nest: Nest, axes: tuple[Axis, ...]) -> Axis | None:
    """The axis along which most accesses are contiguous, of equal axes the last. None if no access is."""
    env = estimate_env(nest.around)
    counts = {dim.name: dim.upper for dim in nest.scope.dims if dim.name not in nest.around}
    found: Axis | None = None
    most = 0
    for axis in axes:
        weight = 0
        for e in [*(read.offset for read in nest.reads()), *nest.offsets]:
            by = step(e, axis.name)
            if by is not None and by.as_int() == 1:
                lasts = [last for name in e.symbols if (last := counts.get(name)) is not None]
                weight += math.prod(last.evaluate(env) + 1 for last in lasts)
        if weight >= max(most, 1):
            found, most = axis, weight
    return found


def lane_along(nest: Nest, rows: Rows, walk_: Walk) -> Axis | None:
    """The axis of a walk along which a thread has neighbours: the one along which most accesses are contiguous. A short
    row has one even if none is: its thread reads all elements of the row.
    """
    lane = best_lane(nest, walk_.axes)
    return walk_.axes[-1] if lane is None and rows.are_short else lane


def later_values(nest: Nest, nodes: Sequence[Node]) -> frozenset[SSAValue]:
    """The values of nodes that the rest of the nest or its results use."""
    inside = set(nodes)
    outside = (node for node in nest.nodes if node not in inside)
    return frozenset(nest.yields).union(*(operands_of(node) for node in outside))


def nodes_of(walk_: Walk, rows: Rows) -> list[tuple[tuple[Axis, ...], tuple[Node, ...]]]:
    """The axes and nodes that a walk runs: those of each of its folds; in the last walk, of the segments and the
    results.
    """
    if walk_.folds:
        return [(fold.axes, fold.nodes) for fold in walk_.folds]
    segments = [((*walk_.axes[:-1], *fold.axes), fold.nodes) for fold in rows.segments]
    return [*segments, (walk_.axes, rows.nodes)]


def row_lanes(nest: Nest, rows: Rows, lanes: int) -> int:
    """The number of neighbours in one access along a row: the largest divisor of a contiguous axis, at most `lanes`.

    A row with an odd number of elements has 1.
    """
    axes = [axis for each in rows.walks() if (axis := lane_along(nest, rows, each)) is not None]
    return max((fitting(axis.count, lanes) for axis in axes), default=lanes)


def lies_in_rows(nest: Nest, rows: Rows, axes: Sequence[Axis], offset: Expr) -> bool:
    """Whether rows follow each other in memory, with their elements in the order of `axes`, the first one at 0."""
    apart = const(1)
    for axis in reversed((*rows.group, *axes)):
        by = step(offset, axis.name)
        if by is None or not nest.around.equal(by, apart):
            return False
        apart = apart * axis.count
    return offset.substitute({axis.name: const(0) for axis in (*rows.group, *axes)}).as_int() == 0


def fitting(count: Expr, lanes: int) -> int:
    """The largest number of lanes, at most `lanes`, that divides a count. If the count is unknown, the kernel checks it
    when it runs.
    """
    known = count.as_int()
    return lanes if known is None else math.gcd(known, lanes)
