"""Scalars whose numbers are constants of the code, or arguments of it: `epsilon` and `attn_scale`.

A positive FLOAT number is an argument: a dim of the module holds its bits, so another number needs no compilation. Any
other number is a constant of the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ait_mlir.dialects.ait.bits import bits_of, number_dim
from ait_mlir.dims import Expr, Scope, sym
from ait_mlir.graph.enums import data_type
from ait_mlir.graph.nodes import Node
from ait_mlir.graph.tensor import tensor

PORTS = ("epsilon", "attn_scale")
"""Inputs of nodes that take such scalars."""


class Scalars(Protocol):
    """The parts of a graph's interface that concern its scalars."""

    nodes: list[Node]
    tensors: list[tensor]

    def usual_numbers(self, is_constant: bool = False) -> dict[tensor, float]: ...


@dataclass(frozen=True)
class Numbers:
    """The scalars of a graph, in order, with their numbers."""

    constants: Mapping[tensor, float] = field(default_factory=dict[tensor, float])
    arguments: Mapping[tensor, float] = field(default_factory=dict[tensor, float])
    usual: Mapping[tensor, float] = field(default_factory=dict[tensor, float])
    """The number that each argument usually has."""

    @property
    def key(self) -> tuple[float | None, ...]:
        """The key of the code: the constants, and the number of scalars that are arguments."""
        return (*self.constants.values(), None, *(None for _ in self.arguments))

    @property
    def bits(self) -> tuple[int, ...]:
        """The bits of the arguments' numbers, which are the values of the module's dims for them."""
        found = [bits_of(number) for number in self.arguments.values()]
        return tuple(bits for bits in found if bits is not None)

    def of(self, copy: Scalars, graph: Scalars) -> Numbers:
        """The same numbers for the tensors of a copy of the graph."""
        twin = dict(zip(graph.tensors, copy.tensors, strict=True))
        return Numbers(*({twin[t]: n for t, n in m.items()} for m in (self.constants, self.arguments, self.usual)))

    def declare(self, scope: Scope) -> tuple[Scope, dict[tensor, Expr]]:
        """The scope with a new dim for each argument, and the dim of each argument."""
        dims = [number_dim(f"n{i}", self.usual[t]) for i, t in enumerate(self.arguments)]
        return Scope([*scope.dims, *dims]), {t: sym(d.name) for t, d in zip(self.arguments, dims, strict=True)}


def numbers_of(graph: Scalars, given: Mapping[tensor, float]) -> Numbers:
    """The scalars of a graph with these numbers, divided into arguments and constants of the code."""
    candidates = graph.usual_numbers() | graph.usual_numbers(is_constant=True)
    usual = {t: n for t, n in candidates.items() if bits_of(n) is not None and _may_be_argument(graph, t)}
    known = {t: n if t.value is None else float(t.value) for t, n in candidates.items() if t.is_constant} | {**given}
    arguments = {t: n for t, n in known.items() if t in usual and bits_of(n) is not None}
    return Numbers({t: n for t, n in given.items() if t not in arguments}, arguments, usual)


def _may_be_argument(graph: Scalars, t: tensor) -> bool:
    """Whether all nodes that read a scalar pass it to kernels as a number; no node computes with it as a tensor."""
    if t.dtype is data_type.DOUBLE:
        return False
    for node in graph.nodes:
        for port, read in (*node.inputs.items(), *(("", x) for several in node.lists.values() for x in several)):
            takes = node.operation.takes_number
            if read is t and (port not in PORTS or takes is None or not takes(node)):
                return False
    return True
