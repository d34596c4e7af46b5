"""Chooses the elements and values of a row that stay in the registers of its threads between two walks over the row.

Two walks can share registers if a thread visits the same elements of a row in both. The axes may differ: the elements
of a group of channels are one axis for their sum, and two axes where each channel has a scale.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.traits import ScalarLike
from ait_mlir.dims import Expr, sym
from ait_mlir.lowering.loops.nest import Axis, Nest, Node, Read, Scalar, merged, operands_of
from ait_mlir.lowering.loops.rows import Rows, Walk, nodes_of

Key = tuple[Hashable, ...]
"""Equal for values that are the same at each place."""
VALUES = 2
"""The number of `kept` in a configuration that keeps values of functions, beside elements."""
LaneOf = Callable[[Walk], Axis | None]
"""The axis of a walk along which a thread has neighbours."""


@dataclass(frozen=True, eq=False)
class Slot:
    """A register for each place of a thread, in use from the walk `first` to the walk `last`. Elements that are read
    before all walks have `first` -1.
    """

    element: Attribute
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Kept:
    """The registers of a row.

    A walk reads the values `taken` from registers, and leaves the values `put` in registers. The elements `reads` are
    loaded before the first walk. `skipped` are nodes that need not be computed, because only values in `taken` use
    them.
    """

    walks: tuple[Walk, ...] = ()
    slots: tuple[Slot, ...] = ()
    reads: tuple[tuple[Walk, tuple[tuple[Read, Slot], ...]], ...] = ()
    taken: dict[SSAValue, Slot] = field(default_factory=dict[SSAValue, Slot])
    put: dict[SSAValue, Slot] = field(default_factory=dict[SSAValue, Slot])
    skipped: frozenset[Node] = frozenset()

    def left(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes that are computed or taken from registers."""
        return tuple(node for node in nodes if node not in self.skipped)

    def bytes(self, least: int) -> int:
        """The most bytes of registers in use at once for one element of a thread; each register counts at least `least`
        bytes.
        """
        return max(
            (
                sum(max(BY_IR[s.element].bytes, least) for s in self.slots if s.first < walk <= s.last)
                for walk in range(len(self.walks))
            ),
            default=0,
        )


def kept_of(
    nest: Nest,
    rows: Rows,
    lane_of: LaneOf,
    values: bool = False,
    may_load: Callable[[Read, Axis | None], bool] = lambda read, lane: True,
    form: Callable[[Operation], Hashable] = lambda op: None,
) -> Kept:
    """The registers for elements that several walks over a row read; with `values`, also for values that they compute.

    `may_load` says whether the elements of a read may be loaded into registers, for an axis of lanes. `form` tells
    apart the C++ functions that one op may be.
    """
    found = _Numbered(nest, rows, lane_of, may_load, form)
    return _Choice(found, values).made()


# ** equal values **


@dataclass(eq=False)
class _Numbered:
    """The walks that visit the same places, and a key for each value that depends on the place."""

    nest: Nest
    rows: Rows
    lane_of: LaneOf
    may_load: Callable[[Read, Axis | None], bool]
    form: Callable[[Operation], Hashable]
    walks: list[Walk] = field(default_factory=list[Walk])
    keys: dict[SSAValue, Key] = field(default_factory=dict[SSAValue, Key])
    moving: set[SSAValue] = field(default_factory=set[SSAValue])
    """The values that depend on the place."""

    def __post_init__(self) -> None:
        by_places: dict[Hashable, list[Walk]] = {}
        for walk in self.rows.walks():
            by_places.setdefault(self._places(walk), []).append(walk)
        for walks in by_places.values():
            self.keys, self.moving = {}, set()
            for walk in walks:
                for axes, nodes in nodes_of(walk, self.rows):
                    self._number(walk, axes, nodes)
            if any(len(users) > 1 for users in self.readers(walks).values()):
                self.walks = walks
                return

    def readers(self, walks: Sequence[Walk]) -> dict[Key, dict[int, Read]]:
        """The reads that depend on the place: for each key, the walks that have one by their number."""
        found: dict[Key, dict[int, Read]] = {}
        for number, walk in enumerate(walks):
            for _, nodes in nodes_of(walk, self.rows):
                for node in nodes:
                    if isinstance(node, Read) and node.result in self.moving:
                        found.setdefault(self.keys[node.result], {}).setdefault(number, node)
        return found

    def _is_flat(self, walk: Walk) -> bool:
        """Whether the places of a thread are neighbours in the order of the axes."""
        lane = self.lane_of(walk)
        return lane is None or lane is walk.axes[-1]

    def _places(self, walk: Walk) -> Hashable:
        """A key that is equal for walks in which a thread visits the same elements of a row."""
        has_lanes = self.lane_of(walk) is not None
        return (has_lanes, walk.points) if self._is_flat(walk) else tuple(axis.count for axis in walk.axes)

    def _number(self, walk: Walk, axes: Sequence[Axis], nodes: Sequence[Node]) -> None:
        inside = {value for node in nodes for value in node.results}
        names = {axis.name for axis in axes}
        lane = self.lane_of(walk)
        own = None if lane is None else axes[walk.axes.index(lane)]
        for node in nodes:
            if isinstance(node, Read):
                if names & node.offset.symbols and not node.gathers and not node.guards and self.may_load(node, own):
                    self.keys[node.result] = (node.tensor, *self._place(walk, axes, node.offset))
                    self.moving.add(node.result)
            elif isinstance(node, Scalar) and all(v in self.keys for v in node.operands if v in inside):
                (result,) = node.results
                operands = tuple(self.keys.get(v, v) for v in node.operands)
                properties = tuple(sorted(node.op.properties.items(), key=lambda item: item[0]))
                self.keys[result] = (type(node.op), properties, self.form(node.op), result.type, operands)
                if any(v in self.moving for v in node.operands):
                    self.moving.add(result)

    def _place(self, walk: Walk, axes: Sequence[Axis], offset: Expr) -> Key:
        """A key for the elements that a walk reads at an offset: the offset with numbered axes, and the sizes of the
        axes.
        """
        if flat := self._is_flat(walk):
            axes, put = merged(axes, [offset], [], self.nest.scope)
            offset = offset.substitute(put)
        offset = offset.substitute({axis.name: sym(f"walked_{i}") for i, axis in enumerate(axes)})
        return flat, offset, tuple(axis.count for axis in axes)


# ** which of them stay in registers **


@dataclass(eq=False)
class _Choice:
    """Goes through the walks in their order, and through what each needs, from the results to the elements."""

    found: _Numbered
    values: bool
    shared: dict[Key, dict[int, Read]] = field(default_factory=dict[Key, dict[int, Read]])
    """The reads of several walks."""
    computed: dict[Key, tuple[int, SSAValue]] = field(default_factory=dict[Key, tuple[int, SSAValue]])
    """The first walk that computes a value."""
    owners: dict[SSAValue, Node] = field(default_factory=dict[SSAValue, Node])
    needed: set[Node] = field(default_factory=set[Node])
    taken: dict[SSAValue, Key] = field(default_factory=dict[SSAValue, Key])
    last: dict[Key, int] = field(default_factory=dict[Key, int])
    """The last walk that takes a value from registers."""

    def made(self) -> Kept:
        walks, rows, keys = self.found.walks, self.found.rows, self.found.keys
        self.shared = {key: users for key, users in self.found.readers(walks).items() if len(users) > 1}
        if not self.shared:
            return Kept()
        for number, walk in enumerate(walks):
            here = [node for _, nodes in nodes_of(walk, rows) for node in nodes]
            self.owners.update((v, node) for node in here for v in node.results)
            results = (*(fold.value for fold in rows.segments), *self.found.nest.yields)
            for value in [fold.value for fold in walk.folds] or results:
                self._need(value, number)
            for value in (v for node in here if node in self.needed for v in node.results):
                if value in self.found.moving:
                    self.computed.setdefault(keys[value], (number, value))
        slots = {key: self._slot(key) for key in self.last}
        loads: dict[Walk, list[tuple[Read, Slot]]] = {}
        for key, slot in slots.items():
            if key in self.shared:
                number, read = next(iter(self.shared[key].items()))
                loads.setdefault(walks[number], []).append((read, slot))
        return Kept(
            tuple(walks),
            tuple(slots.values()),
            tuple((walk, tuple(reads)) for walk, reads in loads.items()),
            {value: slots[key] for value, key in self.taken.items()},
            {self.computed[key][1]: slot for key, slot in slots.items() if key not in self.shared},
            frozenset(self.owners.values()) - self.needed,
        )

    def _need(self, value: SSAValue, number: int) -> None:
        """Note that a walk needs a value: it takes it from registers, or computes it."""
        node = self.owners.get(value)
        if node is None or node in self.needed:
            return
        self.needed.add(node)
        if value in self.found.moving:
            key = self.found.keys[value]
            is_known = key in self.computed and self.computed[key][0] < number
            if key in self.shared or (self.values and is_known and self._is_costly(value)):
                self.taken[value] = key
                self.last[key] = number
                return
        for operand in operands_of(node):
            self._need(operand, number)

    def _is_costly(self, value: SSAValue) -> bool:
        """Whether a float is computed from elements by a function that takes many instructions."""
        node = self.owners.get(value)
        if not isinstance(node, Scalar) or value not in self.found.moving or not BY_IR[value.type].is_float:
            return False
        is_function = isinstance(node.op, ScalarLike) and not node.op.CHEAP
        return is_function or any(self._is_costly(v) for v in node.operands)

    def _slot(self, key: Key) -> Slot:
        if key in self.shared:
            return Slot(next(iter(self.shared[key].values())).element, -1, self.last[key])
        first, value = self.computed[key]
        return Slot(value.type, first, self.last[key])
