"""The graph of tensors after a user's changes of `_attrs`: the values that compute tensors, and the order
of tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from ait_mlir.frontend.emit import make_constant, make_param
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.external_ops import materialize
from ait_mlir.frontend.operator import Operator, operator_of
from ait_mlir.frontend.tensor import Tensor, handle_of


def toposort(nodes: Tensor | Sequence[Tensor]) -> list[Tensor]:
    """The tensors that `nodes` depend on, each after the inputs of its operator, and all results of these operators.
    The order is depth first from the outputs, deepest inputs of an operator first, as AITemplate numbers the inputs of
    a model. Raises `BuildError` for anything but tensors.
    """
    tensors: list[Any] = [nodes] if isinstance(nodes, Tensor) or not hasattr(nodes, "__iter__") else list(nodes)
    for node in tensors:
        if not isinstance(node, Tensor):
            raise BuildError(f"toposort takes tensors, found {node!r}")
    order: list[Tensor] = []
    visited: set[Tensor] = set()
    stack = [(tensor, False) for tensor in reversed(tensors)]
    while stack:
        tensor, expanded = stack.pop()
        if expanded:
            order.append(tensor)
            stack += [(other, False) for op in tensor.src_ops() for other in op.outputs]
        elif tensor not in visited:
            visited.add(tensor)
            stack.append((tensor, True))
            for op in tensor.src_ops():
                deepest_first = sorted(op.inputs, key=lambda t: t.depth, reverse=True)
                stack += [(read, False) for read in reversed(deepest_first)]
    return order


class Wiring:
    """The values behind tensors and operands after a user has changed `src_ops`, inputs and outputs."""

    def __init__(self) -> None:
        self._leaves: dict[Tensor, SSAValue] = {}
        self._substitutes: dict[Operator, Mapping[SSAValue, SSAValue]] = {}

    def value(self, value: SSAValue) -> SSAValue:
        """The value that now computes the tensor for which `value` was made."""
        tensor = handle_of(value)
        if tensor is None or tensor.sources == ({tensor.made_by} - {None}):
            return value
        return self._result(tensor) if tensor.sources else self._leaf(tensor)

    def operand(self, op: Operation, operand: SSAValue) -> SSAValue:
        """The value that `op` now reads in place of `operand`."""
        operator = operator_of(op)
        if operator is None or operator.called_with == operator.inputs:
            return self.value(operand)
        if operator not in self._substitutes:
            self._substitutes[operator] = substitutes(operator)
        return self.value(self._substitutes[operator].get(operand, operand))

    def _leaf(self, tensor: Tensor) -> SSAValue:
        """The weight for a tensor whose `src_ops` the user has emptied."""
        if tensor not in self._leaves:
            leaf = self._leaves[tensor] = make_param(tensor.type)
            Tensor.of(leaf, tensor.symbols).name = tensor.name
        return self._leaves[tensor]

    def _result(self, tensor: Tensor) -> SSAValue:
        """The value computed by the operator in a tensor's `src_ops`, if this operator did not make the tensor."""
        if len(tensor.sources) > 1:
            names = ", ".join(op.name for op in tensor.sources)
            raise BuildError(f"{tensor.describe()} has {len(tensor.sources)} source operators, {names}; expected one")
        (operator,) = tensor.sources
        place = next((i for i, output in enumerate(operator.outputs) if output is tensor), None)
        if place is None:
            raise BuildError(
                f"{operator.name} is in src_ops of {tensor.describe()}, but the tensor is not in the operator's outputs"
            )
        made = operator.made or materialize(operator)
        if place >= len(made):
            raise BuildError(f"{operator.name} has {len(operator.outputs)} outputs, but computes {len(made)}")
        _check_same_type(f"output {place} of {operator.name}", made[place], tensor)
        return made[place].value


def substitutes(operator: Operator) -> dict[SSAValue, SSAValue]:
    """For each input that an operator was called with and the user replaced, the new input."""
    old, new = operator.called_with, operator.inputs
    masks: Sequence[bool] = operator.attrs.get("input_masks") or ()
    if len(masks) == len(old) and sum(map(bool, masks)) == len(new) < len(old):
        rest = iter(new)
        left_out = [t for t, reads in zip(old, masks, strict=True) if not reads]
        zeros = {t: Tensor.of(make_constant(t.type, 0), t.symbols) for t in left_out}
        new = [next(rest) if reads else zeros[t] for t, reads in zip(old, masks, strict=True)]
    if len(old) != len(new):
        raise BuildError(f"{operator.name} was called with {len(old)} inputs and has {len(new)} now; call it again")
    found: dict[SSAValue, SSAValue] = {}
    for i, (before, after) in enumerate(zip(old, new, strict=True)):
        _check_same_type(f"input {i} of {operator.name}", before, after)
        if found.setdefault(before.value, after.value) is not after.value:
            raise BuildError(
                f"{operator.name} was called with {before.describe()} twice, "
                "and has two different tensors in its places now; call the operator again"
            )
    return found


def _check_same_type(what: str, before: Tensor, after: Tensor) -> None:
    if before.type != after.type:
        raise BuildError(
            f"{what} was {before.describe()} and is {after.describe()} now; shape and dtype must stay the same, "
            "else call the operator again"
        )


def reachable(outputs: Iterable[SSAValue], wiring: Wiring | None = None) -> tuple[list[Operation], list[BlockArgument]]:
    """The ops that `outputs` depend on, each after those it uses, and the inputs; without recursion."""
    wired = wiring or Wiring()
    ops: list[Operation] = []
    inputs: list[BlockArgument] = []
    done: set[Operation | BlockArgument] = set()
    active: set[Operation] = set()
    for output in outputs:
        stack: list[tuple[SSAValue, bool]] = [(wired.value(output), False)]
        while stack:
            value, expanded = stack.pop()
            source = value.op if isinstance(value, OpResult) else cast(BlockArgument, value)
            if source in done:
                continue
            if isinstance(source, BlockArgument):
                done.add(source)
                inputs.append(source)
            elif expanded:
                done.add(source)
                active.discard(source)
                ops.append(source)
            elif source in active:
                operator = operator_of(source)
                raise BuildError(f"{operator.name if operator else source.name} depends on its own result")
            else:
                active.add(source)
                stack.append((value, True))
                stack += [(wired.operand(source, operand), False) for operand in reversed(source.operands)]
    return ops, inputs
