"""Decides which results may overwrite an older value: a donated input, or an operand that an op updates.

An op may overwrite a buffer if no later op reads the old value. Only the ops that compute the output in place of a
donated input may write the input's buffer, so that it contains this output at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.data import GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.traits import UpdatesOperand, ViewLike
from ait_mlir.dialects.ait.view import ConcatOp


@dataclass
class Donation:
    """A donated input, the output in its place, and the updates between them."""

    name: str
    value: SSAValue
    output: OutputOp
    updates: set[Operation] = field(default_factory=set[Operation])
    problem: str = ""
    """The reason why the output cannot use the input's buffer, if there is one."""

    @property
    def allows_copy(self) -> bool:
        return self.output.or_copy is not None

    def refusal(self) -> str:
        """The error message if the output cannot be computed in place and a copy is not allowed."""
        output, reason = self.output.output_name.data, self.problem or self._made_elsewhere()
        return (
            f"output {output!r} cannot take the place of input {self.name!r}: {reason}; "
            f"write 'in place of %{self.value.name_hint or self.name} or copy' to allow a copy"
        )

    def _made_elsewhere(self) -> str:
        maker = self.output.value.owner
        if not isinstance(maker, Operation):
            return "its value is another input"
        if isinstance(maker, ParamOp):
            return f"its value is param {maker.param_name.data!r}"
        if isinstance(maker, ViewLike):
            return f"its value is made by {maker.name}, which moves the elements of others"
        return f"its value is made by {maker.name} in a buffer of its own"


def donations_of(graph: GraphOp) -> list[Donation]:
    """The donations of a graph, in the order of its outputs."""
    names = {value: name for name, value in graph.inputs()}
    found: list[Donation] = []
    for op in graph.outputs():
        if (place := op.in_place_of) is not None:
            found.append(Donation(names[place], place, op, _updates_between(place, op.value)))
    return found


def _updates_between(source: SSAValue, value: SSAValue) -> set[Operation]:
    """The updates that compute `value` from `source`, through views; empty if other ops are between them."""
    updates: set[Operation] = set()
    while value is not source:
        owner = value.owner
        if not isinstance(owner, Operation) or isinstance(owner, ConcatOp):
            return set()
        if isinstance(owner, UpdatesOperand):
            updates.add(owner)
        elif not isinstance(owner, ViewLike):
            return set()
        value = owner.operands[0]
    return updates


def later_reader(op: Operation, values: Iterable[SSAValue], order: Mapping[Operation, int]) -> Operation | None:
    """An op after `op` that reads one of the values."""
    for value in values:
        for use in value.uses:
            reader = use.operation
            names_a_place = isinstance(reader, OutputOp) and use.index == 1
            if order[reader] > order[op] and not names_a_place:
                return reader
    return None


def line_of(op: Operation) -> str:
    """The text for an op in a message: its name and its first result's name."""
    if isinstance(op, OutputOp):
        return f"output {op.output_name.data!r}"
    hint = op.results[0].name_hint if op.results else None
    return f"{op.name} (%{hint})" if hint else op.name
