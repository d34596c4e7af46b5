"""Programs, the compiled form of graphs: for many graphs of one structure, or for one graph's sizes.

The process remembers the programs of each structure. A graph with new sizes uses the first program whose facts are true
for them, and compiles nothing. If kernels are faster with a known size, such as the length of a row, two programs are
compiled side by side: one for this size, one for other sizes. If the fastest kernels require a known size, such as the
channels of a convolution, the size is a constant if a program without it is estimated to be slow.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from xdsl.utils.exceptions import VerifyException

from ait_mlir.dims import sym
from ait_mlir.errors import AitError
from ait_mlir.graph import validation
from ait_mlir.graph.building import GraphBuilder
from ait_mlir.graph.copying import copy_graph
from ait_mlir.graph.extents import Facts, Group, Guard, Retrace, Trace, expr_of
from ait_mlir.graph.lowering import Lowered, lower
from ait_mlir.graph.numbers import Numbers, numbers_of
from ait_mlir.graph.operations.conv import may_round
from ait_mlir.graph.plans import Kept, Planner
from ait_mlir.graph.structure import Pattern, Structure
from ait_mlir.graph.tensor import tensor

Constants = tuple[Literal["fixed", "faster", "decisive"], ...]
"""Sizes of operations that are constants of a program, by the names of the fields of `Operation` that have them."""
FEW: Constants = ("fixed",)
KEPT = 1024
"""The number of structures whose programs the process keeps."""
SLOWER = 1.1
"""A program for many sizes is used unless its kernels are estimated to take this many times as long as kernels for
exactly these sizes."""


@dataclass(frozen=True)
class Program:
    """A planner, and the sizes for which its module is valid."""

    planner: Planner
    groups: tuple[Group, ...] = ()
    guards: tuple[Guard, ...] = ()

    @property
    def is_general(self) -> bool:
        """Whether sizes are arguments of the code."""
        return any(group.constant is None for group in self.groups)

    @property
    def known_sizes(self) -> int:
        """The number of constant sizes; of two valid programs, the one with more constants is faster."""
        return sum(len(group.members) for group in self.groups if group.constant is not None)

    def dims_for(self, sizes: Sequence[int]) -> tuple[int, ...] | None:
        """The dims of the module for these sizes, in order; None if the module is not valid for them."""
        dims: dict[str, int] = {}
        for group in self.groups:
            value = group.value(sizes)
            if value is None:
                return None
            if group.constant is None:
                dims[group.name] = value
        return tuple(dims.values()) if all(guard.holds(dims) for guard in self.guards) else None


@dataclass
class Known:
    """The programs of one structure on one device."""

    programs: list[Program] = field(default_factory=list[Program])
    """The programs, those with more constant sizes first."""
    decided: set[tuple[int, ...]] = field(default_factory=lambda: {()})
    """Decisive sizes for which the first valid program is fast enough."""
    lock: Any = field(default_factory=threading.Lock)


_known: Kept[Known] = Kept(KEPT)


def find(
    graph: GraphBuilder, structure: Structure | None, scalars: Mapping[tensor, float]
) -> tuple[Program, tuple[int, ...]]:
    """A program for a validated graph with these scalars, known or new, and the dims of its module without those of
    ragged tensors. Raises `cudnnGraphNotSupportedError` if no `ait` op computes a node."""
    if structure is None:
        return exact(graph, scalars)
    numbers = numbers_of(graph, scalars)
    key = structure.key, numbers.key, graph.kind, graph.ordinal, graph.arch, may_round()
    known = _known.get(key)
    if known is None:
        known = _known.keep(key, Known())
    decisive = _decisive(graph)
    with known.lock:
        for program in known.programs:
            dims = program.dims_for(structure.sizes)
            if dims is None:
                continue
            dims = *dims, *numbers.bits
            if program.is_general and decisive not in known.decided:
                if _is_slow(program.planner, graph.planner_of(graph.lowered(numbers)), dims):
                    continue
                known.decided.add(decisive)
            return program, dims
        general = _made(graph, structure, numbers)
        programs = [general]
        if general.is_general and any(node.operation.faster is not None for node in graph.nodes):
            fast = _made(graph, structure, numbers, (*FEW, "faster"))
            fast.planner.companion = general.planner
            programs.insert(0, fast)
        program = programs[0]
        dims = program.dims_for(structure.sizes)
        assert dims is not None, "a program is valid for the sizes that it was made with"
        if program.is_general:
            known.decided.add(decisive)
        known.programs = sorted([*programs, *known.programs], key=lambda p: -p.known_sizes)
        return program, (*dims, *numbers.bits)


def exact(graph: GraphBuilder, scalars: Mapping[tensor, float]) -> tuple[Program, tuple[int, ...]]:
    """The program for exactly a graph's sizes, and the dims that hold the bits of its scalars."""
    numbers = numbers_of(graph, scalars)
    return Program(graph.planner_of(graph.lowered(numbers))), numbers.bits


def _decisive(graph: GraphBuilder) -> tuple[int, ...]:
    """The sizes that some kernels must know (`Operation.decisive`), of all nodes."""
    if graph.kind == "cpu":
        return ()
    return tuple(size for n in graph.nodes if n.operation.decisive is not None for size in n.operation.decisive(n))


def _is_slow(planner: Planner, for_these: Planner, dims: tuple[int, ...] = ()) -> bool:
    return not planner.seconds(dims) <= SLOWER * for_these.seconds()


def _made(graph: GraphBuilder, structure: Structure, numbers: Numbers, constants: Constants = FEW) -> Program:
    """A program for many sizes, with these sizes as constants, and `decisive` sizes if it would be slow without them; a
    program for exactly the graph's sizes if there is no general program or it would be slow, too."""
    alone = tuple(Group((i,), size) for i, size in enumerate(structure.sizes))
    choices = [constants]
    if _decisive(graph):
        choices.append((*constants, "decisive"))
    for_these: Planner | None = None
    try:
        for choice in choices:
            lowered, trace = traced(graph, structure, numbers, choice)
            general = graph.planner_of(lowered)
            if graph.kind != "cpu":
                for_these = for_these or graph.planner_of(graph.lowered(numbers))
                if _is_slow(general, for_these):
                    continue
            return Program(general, tuple(trace.groups), tuple(trace.guards))
    except (AitError, VerifyException, ValueError):  # an op needs constant sizes, or it is not proved that sizes fit
        pass
    return Program(for_these or graph.planner_of(graph.lowered(numbers)), alone)


def traced(
    graph: GraphBuilder, structure: Structure, numbers: Numbers, constants: Constants = FEW
) -> tuple[Lowered, Trace]:
    """The module of a graph for many sizes, and the trace with the facts under which it is valid."""
    facts = Facts(structure.sizes, structure.aligned)
    while True:
        trace = Trace(facts)
        try:
            return _written(graph, structure, trace, numbers, constants), trace
        except Retrace:
            continue


def _written(
    graph: GraphBuilder, structure: Structure, trace: Trace, numbers: Numbers, constants: Constants
) -> Lowered:
    waiting: dict[tensor, Pattern] = {}

    def give_shape(new: tensor, t: tensor) -> None:
        if t not in structure.patterns:
            return
        pattern, first, own_strides = structure.patterns[t]
        if first is not None:
            new.dims, new.has_own_dims = pattern.dims_of(trace, first), True
        if own_strides and new.dims is not None:
            new.strides = pattern.strides_of(new.dims)
        elif own_strides:
            waiting[new] = pattern

    copy = copy_graph(graph, give_shape)
    ordered = validation.in_order(copy.nodes)
    for node in ordered:
        validation.infer(node)
        for t in node.outputs.values():
            if t in waiting and t.dims is not None:
                t.strides = waiting[t].strides_of(t.dims)
        for name in constants:
            sizes = getattr(node.operation, name)
            for size in () if sizes is None else sizes(node):
                int(size)
    lowered = lower(graph.symbol, ordered, *copy.sides(), numbers.of(copy, graph), trace)
    of_inputs = {name for slot in lowered.inputs for n in slot.layout.shape for name in expr_of(n).symbols}
    for group in trace.groups:  # the size of a dim that repeats one element is in no block of memory
        if group.constant is None and group.name not in of_inputs:
            trace.fix(sym(group.name))
    return lowered
