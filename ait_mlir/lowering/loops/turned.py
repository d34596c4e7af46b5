"""The values that a block transposes in shared memory, because they are contiguous along one axis where they are read,
and along another axis where they are used.

Reads without a condition are transposed as they are stored, several neighbours at a time. Folds, reads with a
condition, and values that depend only on such reads are computed in the order of memory, and their results are
transposed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.lowering.loops.nest import (
    SHORT,
    Axis,
    Fold,
    Nest,
    Node,
    Read,
    alignment,
    best_lane_of_results,
    is_stored,
    operands_of,
    step,
    that_follow,
    walk,
)


def turned_axis(nest: Nest) -> Axis | None:
    """The axis along which most reads are contiguous, or most folds read neighbours, if the results are contiguous
    along another; else None.
    """
    lane = best_lane_of_results(nest)
    if lane is None:
        return None
    counts = {
        a: len(turned_reads(nest, lane.name, a.name))
        + len(turned_folds(nest, lane.name, a.name))
        + len(turned_values(nest, lane.name, a.name).results)
        for a in nest.axes
        if a is not lane
    }
    best = max(counts, key=lambda a: (counts[a], min(nest.around.bounds(a.count)[1], SHORT)), default=None)
    return best if best is not None and counts[best] else None


def turned_reads(nest: Nest, lane: str, axis: str) -> list[Read]:
    """The unconditional reads outside of folds that are contiguous along `axis` and depend on `lane`."""
    found: list[Read] = []
    for node in nest.nodes:
        if isinstance(node, Read) and not node.guards and _is_far(node, lane, axis):
            found.append(node)
    return found[:MAX_TILES]


def _is_far(read: Read, lane: str, axis: str) -> bool:
    """Whether a read is contiguous along `axis` and depends on `lane`, too."""
    by = step(read.offset, axis)
    return by is not None and by.as_int() == 1 and lane in read.offset.symbols and not read.gathers


@dataclass(frozen=True)
class Values:
    """Nodes that are computed where they are read, and their results that other nodes, or the results of the nest,
    use.
    """

    nodes: tuple[Node, ...] = ()
    results: tuple[SSAValue, ...] = ()

    @property
    def types(self) -> list[Attribute]:
        """The types in which the results turn: an element of a tensor as it is stored, where that is exact."""
        read = {node.result: node.element for node in self.nodes if isinstance(node, Read) and is_stored(node)}
        return [read.get(value, value.type) for value in self.results]


@lru_cache(maxsize=256)
def turned_values(nest: Nest, lane: str, axis: str, lanes: int = 1) -> Values:
    """The values that are computed in the order of memory and then transposed: reads, and scalars of only these reads
    and constants.

    These reads are outside of folds, contiguous along `axis` and not along `lane`. They have a condition, as a pad has,
    or do not begin at multiples of `lanes` elements.
    """

    def is_read(node: Node) -> bool:
        if not isinstance(node, Read) or not _is_far(node, lane, axis):
            return False
        along_lane = step(node.offset, lane)
        is_near = along_lane is not None and along_lane.as_int() == 1
        return not is_near and bool(node.guards or (lanes > 1 and alignment(nest, node, axis, lanes) is None))

    far = that_follow(nest.nodes, [node for node in nest.nodes if is_read(node)], lambda _: True)
    used = set(nest.yields).union(*(operands_of(node) for node in nest.nodes if node not in far))
    results = tuple(v for node in far for v in node.results if v in used)
    return Values(tuple(far), results) if len(results) <= MAX_TILES else Values()


def turned_types(nest: Nest, lane: str, axis: str, lanes: int) -> list[Attribute]:
    """The element types of the tiles that a block turns."""
    values = turned_values(nest, lane, axis, lanes)
    types = [read.element for read in turned_reads(nest, lane, axis) if read not in values.nodes]
    types += [fold.results[0].type for fold in turned_folds(nest, lane, axis)]
    return [*types, *values.types]


def turned_folds(nest: Nest, lane: str, axis: str) -> list[Fold]:
    """The folds whose reads are near each other along `axis` and far along `lane`, as those of a pool behind a permute.
    They use no values outside of them but constants.
    """
    users = nest.users()

    def is_turned(fold: Fold) -> bool:
        inner = {v for node in walk([fold]) for v in node.results}
        if len(fold.results) != 1 or any(users[v] for v in operands_of(fold) if v not in inner):
            return False
        reads = [node for node in walk(fold.nodes) if isinstance(node, Read) and lane in node.offset.symbols]
        return bool(reads) and all(_is_near(r, axis) and not _is_near(r, lane) and not r.gathers for r in reads)

    return [node for node in nest.nodes if isinstance(node, Fold) and is_turned(node)][:MAX_TILES]


def beside_axis(nest: Nest, lane: str, turn: str) -> Axis | None:
    """A short axis that a block computes whole, if only folds are transposed, because its indices read from the same
    sectors.

    None if there is no axis whose neighbours read elements near each other in all folds.
    """
    folds = turned_folds(nest, lane, turn)
    reads = [node for fold in folds for node in walk(fold.nodes) if isinstance(node, Read)]
    if not reads or turned_reads(nest, lane, turn) or turned_values(nest, lane, turn).nodes:
        return None
    short = (a for a in nest.axes if a.name not in (lane, turn) and (a.count.as_int() or math.inf) <= MOST_BESIDE)
    return next((a for a in short if all(_is_near(read, a.name) for read in reads)), None)


def _is_near(read: Read, axis: str) -> bool:
    """Whether neighbours along an axis are at most a sector of memory apart."""
    by = step(read.offset, axis)
    apart = None if by is None else by.as_int()
    return apart is not None and 0 < apart * BY_IR[read.element].bytes <= NEAR


NEAR = 32
"""Bytes between the neighbours of folds that a block turns."""
MOST_BESIDE = 4
"""The most elements of an axis of which a block computes all."""
MAX_TILES = 4
"""The most tensors whose tiles a block turns."""
