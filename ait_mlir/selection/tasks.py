"""The unit of selection: one op in its own graph, with the views around it.

The views belong to the task because they determine the strides of the op's operands and results. A kernel that accepts
these strides saves a copy; the time of another kernel includes the copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp, declared_strides, stored
from ait_mlir.dialects.ait.strided import Strided
from ait_mlir.dialects.ait.structure import op_key
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, PermuteOp, ReshapeOp
from ait_mlir.dims import Scope, sym, total
from ait_mlir.lowering.points import Point, Standalone, symbols_of
from ait_mlir.selection.structures import at_point, structure_of


@dataclass(frozen=True)
class Task(Standalone):
    """One op to choose a kernel for. An operand computed only from params is a param of the task's graph."""

    @cached_property
    def key(self) -> str:
        """The structure of the task, with numbered dims and without their ranges. Equal tasks have equal keys."""
        return structure_of(self.graph, {d.name: sym(f"d{i}") for i, d in enumerate(self.scope.dims)})

    def key_at(self, point: Point) -> str:
        """The key of the task with numbers for dims."""
        return at_point(self.key, point)


@dataclass(frozen=True)
class Surroundings:
    """An op with the views around it, in a graph: the part that its task copies."""

    op: Operation
    bases: tuple[SSAValue, ...]
    """The sources of the views before the op, and its other operands."""
    inside: tuple[Operation, ...]
    """The op and the views around it, in order."""
    ends: tuple[SSAValue, ...]
    """The value after the views of each result."""

    def key(self) -> object:
        """A key, equal for equal tasks in one scope; cheaper than the key of the task."""
        number = count()
        numbers = {value: next(number) for value in self.bases}
        ops: list[object] = []
        for op in self.inside:
            ops.append((op is self.op, op_key(op), *[numbers[v] for v in op.operands]))
            for result in op.results:
                numbers[result] = next(number)
        bases = [(v.type, _is_weight(v), declared_strides(v)) for v in self.bases]
        return scope_of(self.op), tuple(bases), tuple(ops), tuple(numbers[v] for v in self.ends)

    def task(self) -> Task:
        """The task of choosing a kernel for the op."""
        return _build(self.op, self.bases, self.inside, self.ends)


def make_task(op: Operation) -> Task:
    """The task of choosing a kernel for `op`; `op` is not modified."""
    return surroundings(op).task()


def surroundings(op: Operation) -> Surroundings:
    """The ops and values of the task of `op`."""
    bases: dict[SSAValue, None] = {}
    chain: dict[Operation, None] = {}
    for value in op.operands:
        _collect(value, bases, chain)
    inside: list[Operation] = [*chain, op]
    ends: list[SSAValue] = []
    for result in op.results:
        after = _views_after(result)
        if not after and (whole := _concat_after(result)) is not None:
            after = [whole]
            bases |= dict.fromkeys(v for v in whole.operands if v is not result)
        inside += after
        ends.append(after[-1].results[0] if after else result)
    return Surroundings(op, tuple(bases), tuple(inside), tuple(ends))


def _build(op: Operation, bases: Sequence[SSAValue], inside: Sequence[Operation], ends: Sequence[SSAValue]) -> Task:
    symbols: set[str] = set()
    for value in (*bases, *(r for o in inside for r in o.results)):
        symbols.update(*(e.symbols for e in tensor_type(value).dims))
    laid_out = {v: strides for v in bases if (strides := declared_strides(v)) is not None}
    symbols.update(*(e.symbols for strides in laid_out.values() for e in strides))
    symbols.update(*(symbols_of(o) for o in inside))
    scope = Scope(replace(d, upper=None) for d in scope_of(op).dims if d.name in symbols)
    inputs = [v for v in bases if not _is_weight(v)]
    strides = {f"x{i}": laid_out[v] for i, v in enumerate(inputs) if v in laid_out}
    graph = GraphOp("task", [(f"x{i}", tensor_type(v)) for i, v in enumerate(inputs)], scope, strides=strides)
    mapping: dict[SSAValue, SSAValue] = dict(zip(inputs, graph.block.args, strict=True))
    for i, value in enumerate(v for v in bases if _is_weight(v)):
        param = ParamOp(f"w{i}", tensor_type(value))
        graph.block.add_op(param)
        mapping[value] = param.output
    copy = op
    for old in inside:
        new = old.clone(mapping)
        for result in (*new.results, *(v for o in new.walk() for v in o.results)):
            result.name_hint = None
        for region in new.regions:
            for block in region.blocks:
                for argument in block.args:
                    argument.name_hint = None
        graph.block.add_op(new)
        copy = new if old is op else copy
    for i, end in enumerate(ends):
        graph.block.add_op(OutputOp(f"y{i}", mapping[end]))
    return Task(graph, copy)


def _collect(value: SSAValue, bases: dict[SSAValue, None], chain: dict[Operation, None]) -> None:
    """Follow the views that produce `value` to their source; collects the view ops in order.

    A view that strides cannot describe is a copy; it belongs to the task of its source's op.
    """
    owner = value.owner
    if isinstance(owner, ConstantOp):
        chain[owner] = None
    elif isinstance(owner, Operation) and _is_view(owner) and _strided(value, scope_of(owner)) is not None:
        for operand in owner.operands:
            _collect(operand, bases, chain)
        chain[owner] = None
    else:
        bases[value] = None


def _is_view(op: Operation) -> bool:
    return isinstance(op, ViewLike) and not isinstance(op, ConcatOp)


def _strided(value: SSAValue, scope: Scope) -> Strided | None:
    """`value` as a view of its source; None if it can only be a copy."""
    owner = value.owner
    if not isinstance(owner, ViewLike) or isinstance(owner, ConcatOp):
        return stored(value)
    inner = _strided(owner.operands[0], scope)
    assert isinstance(value, OpResult)
    return None if inner is None else owner.result_view(value.index, inner, scope)


def _views_after(value: SSAValue) -> list[Operation]:
    """The chain of views after the op, each the only use of its source, if together they can only be a copy.

    A kernel that writes its result in their order saves this copy.
    """
    found: list[Operation] = []
    view: Strided | None = Strided.whole(tensor_type(value).dims)
    while len(uses := list(value.uses)) == 1:
        user = uses[0].operation
        if not isinstance(user, ReshapeOp | PermuteOp):
            break
        found.append(user)
        value = user.results[0]
        view = user.result_view(0, view, scope_of(user))
        if view is None:
            return found
    return []


def _concat_after(value: SSAValue) -> ConcatOp | None:
    """The concatenation that is the only user of `value`, if it changes the strides of `value`'s rows.

    A kernel writes its result there, in the batches that the concatenation creates. The copies of the other pieces are
    not part of the task, so these pieces are kept small.
    """
    if len(uses := list(value.uses)) != 1 or not isinstance(user := uses[0].operation, ConcatOp):
        return None
    kind = tensor_type(value)
    others = total(tensor_type(v).num_elements() for v in user.operands if v is not value)
    scattered = user.dim.value.data > 0  # also for batch 1, so that a task with dims covers a task with numbers
    return user if scattered and scope_of(user).le(others, kind.num_elements()) else None


def _is_weight(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, ParamOp):
        return True
    if tensor_type(value).static_shape() is None or (isinstance(owner, ConcatOp) and owner.dim.value.data != 0):
        return False  # every run computes it
    return isinstance(owner, ViewLike) and all(_is_weight(v) for v in owner.operands)


def with_task(task: Task) -> tuple[ModuleOp, Operation]:
    """A module that holds a copy of the task's graph, and the op in it."""
    graph = task.graph.clone()
    op = next(n for o, n in zip(task.graph.block.ops, graph.block.ops, strict=True) if o is task.op)
    return ModuleOp([graph]), op


__all__ = ["Surroundings", "Task", "make_task", "surroundings", "with_task"]
