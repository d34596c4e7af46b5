"""Prints the nodes of a nest for a CPU, whose compiler makes vectors of loops over lanes.

It makes none of a loop that also reads lane by lane. Therefore such reads have a loop of their own, and a read that may
lie outside of its tensor is an access of all lanes where all of them lie inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.dtypes import compute_type, is_float
from ait_mlir.dialects.ait.traits import ScalarLike
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.loops.body import Body
from ait_mlir.lowering.loops.nest import Axis, Fold, Node, Read, Scalar, operands_of, step

RUN = 32
"""The least values that are summed in order, where a sum has many: long chains of additions lose more."""
FEW_SCALARS = 2
"""Cheap scalar ops that share a loop with reads lane by lane; more of them pay a loop of their own."""


@dataclass
class CpuBody(Body):
    """Prints nodes into `lines`, for a CPU."""

    ahead: dict[Read, tuple[str, Sequence[Axis]]] = field(default_factory=dict[Read, "tuple[str, Sequence[Axis]]"])
    """The array with the elements of a read for all points of axes, which a row reads before its first step."""

    def lane_type(self, element: Attribute) -> str:
        """Compilers make no vectors of arrays of `bool`."""
        return "uint8_t" if element == i1 else element_type(element)

    def run_of(self, fold: Fold) -> int:
        most = self.nest.around.bounds(fold.points)[1]
        if fold.kind != "add" or not is_float(fold.results[0].type) or most <= 2 * RUN:
            return 0
        return max(RUN, math.isqrt(fold.axes[-1].count.as_int() or 0))

    # ** loops over lanes **

    def print_group(
        self,
        nodes: Sequence[Node],
        finish: Callable[[], Sequence[str]],
        later: frozenset[SSAValue],
        always: bool = False,
    ) -> None:
        """Print up to two loops over lanes: first the reads that need one access for each lane, then the other nodes.
        """
        first = self.apart(nodes)
        if first:
            own = {v.owner for node in first for v in node.results}
            used = [v for node in first for v in node.results if any(u.operation not in own for u in v.uses)]
            super().print_group(first, lambda: (), later.union(used))
        super().print_group([node for node in nodes if node not in first], finish, later, always)

    def apart(self, nodes: Sequence[Node]) -> list[Node]:
        """The reads lane by lane and what their indices need, if the other nodes are worth vectors."""
        reads = [node for node in nodes if isinstance(node, Read) and self.is_lane_by_lane(node)]
        first = set[Node](reads)
        needed = {v for read in reads for v in read.operands}
        for node in reversed(nodes):
            if node in first or not needed.isdisjoint(node.results):
                first.add(node)
                needed.update(operands_of(node))
        ops = [node.op for node in nodes if isinstance(node, Scalar) and node not in first]
        scalars = [op for op in ops if isinstance(op, ScalarLike)]
        if not reads or (len(scalars) <= FEW_SCALARS and all(op.CHEAP for op in scalars)):
            return []
        return [node for node in nodes if node in first]

    def is_lane_by_lane(self, read: Read) -> bool:
        known = read in self.ahead or self.is_vector(read) or self.is_vector_inside(read)
        return not known and self.in_lanes(read.result)

    # ** reads **

    def is_vector_inside(self, read: Read) -> bool:
        """Whether the lanes of a read are neighbours in memory where all of them lie in the tensor."""
        if self.lane is None or read.gathers or read in self.ahead:
            return False
        by = step(read.offset, self.lane)
        guards = [step(index, self.lane) for index, _ in read.guards if self.lane in index.symbols]
        is_one = by is not None and by.as_int() == 1
        return is_one and bool(guards) and all(g is not None and g.as_int() is not None for g in guards)

    def print_vector_read(self, read: Read) -> None:
        if read in self.ahead:
            return
        if not self.is_vector_inside(read):
            super().print_vector_read(read)
            return
        assert self.lane is not None
        name, t = self.name(read.result), self.lane_type(compute_type(read.element))
        before = self.index.variables[self.lane]
        lines = self.lines
        lines.add(f"{t} {name}_lanes[kLanes];")
        ends = [self.inside_at(read, lane) for lane in (before, f"({before} + kLanes - 1)")]
        with lines.braces(f"if ({' && '.join(dict.fromkeys(ends))})"):
            lines.add(f"ait::cpu::load_lanes({self.pointer(read)}, {name}_lanes);")
        with lines.braces("else"):
            with self.lanes_by_name() as (before, here):
                text = f"{name}_lanes[j] = {self.element(read)};"
            self.each_lane([text], before, here)

    def element(self, read: Read) -> str:
        """The value of a read of one element."""
        value = f"ait::convert<{element_type(compute_type(read.element))}>(input{read.tensor}[{self.offset(read)}])"
        inside = self.inside(read)
        return f"{inside} ? {value} : {self.fill(read)}" if inside else value

    @contextmanager
    def lanes_by_name(self) -> Generator[tuple[str, str]]:
        """A context in which the axis of lanes has a variable for lane `j`; yields its names outside and inside of the
        loop.
        """
        assert self.lane is not None
        before = self.index.variables[self.lane]
        self.index.variables[self.lane] = f"{before}_j"
        try:
            yield before, f"{before}_j"
        finally:
            self.index.variables[self.lane] = before

    def inside_at(self, read: Read, lane: str) -> str:
        """The condition under which a read is in its tensor at a lane."""
        assert self.lane is not None
        before = self.index.variables[self.lane]
        self.index.variables[self.lane] = lane
        found = self.inside(read)
        self.index.variables[self.lane] = before
        return found

    def read_value(self, read: Read, name: str) -> list[str]:
        compute = element_type(compute_type(read.element))
        if (known := self.ahead.get(read)) is not None:
            return [f"{compute} {name} = {known[0]}[{self.point(known[1])}][j];"]
        if self.is_vector_inside(read):
            return [f"{compute} {name} = {self.names[read.result]}_lanes[j];"]
        return super().read_value(read, name)

    # ** elements that are read before the first step **

    def read_ahead(self, read: Read, axes: Sequence[Axis], most: int) -> str:
        """Read the elements of all points of axes, at most so many, for each lane; the name of their array."""
        name, t = self.new("row"), self.lane_type(compute_type(read.element))
        self.lines.add(f"{t} {name}[{most}][kLanes];")
        with self.lanes_by_name() as (before, here), self.lines.braces("for (int j = 0; j < kLanes; ++j)"):
            self.lines.add(f"const Index {here} = {before} + j;")
            for axis in axes:
                variable, count = self.variable(axis), self.index.numbers.text(axis.count)
                self.lines.add(f"for (Index {variable} = 0; {variable} < {count}; ++{variable})")
            self.lines.add(f"  {name}[{self.point(axes)}][j] = {self.element(read)};")
        return name

    def point(self, axes: Sequence[Axis]) -> str:
        """The number of a point along these axes, in row-major order."""
        text = ""
        for axis in axes:
            variable = self.index.variables[axis.name]
            text = f"({text}) * {self.index.numbers.text(axis.count)} + {variable}" if text else variable
        return text
