"""Converts a graph of builder tensors to a module and back, so that passes on IR can transform it.

`Emission` is the module of a list of tensors, with the tensor and the operator from which each value and op came.
`lift` makes tensors and operators from a module. An unchanged operator keeps its class, its arguments and its `_attrs`;
a changed operator gets its documented name, which follows from layout and epilogue.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.types import ShapeAttr, tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.dims import Dim
from ait_mlir.frontend.documented_name import FUNC_OF, alpha_of, documented_name
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.graph import GraphBuilder
from ait_mlir.frontend.intvar import Symbol, with_parts
from ait_mlir.frontend.operator import Operator, mark_operator, operator_of
from ait_mlir.frontend.ops.elementwise import elementwise
from ait_mlir.frontend.ops.view import ViewOperator, concatenate, dynamic_slice, split
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort


class GraphOperator(Operator):
    """An operator that a transformation made. `_attrs` has its documented name, `op`, and its properties."""

    def __init__(self, op: Operation):
        self._attrs["op"] = documented_name(op)
        self._attrs["has_profiler"] = isinstance(op, ContractionOp) or op.name == "ait.conv"
        for key, attribute in op.properties.items():
            if key != "operandSegmentSizes" and (value := _plain(attribute)) is not None:
                self._attrs[key] = value
        if type(op) in FUNC_OF:
            self._attrs["func"] = FUNC_OF[type(op)]
            self.label = f"elementwise({FUNC_OF[type(op)].name})"
        if (alpha := alpha_of(op)) is not None:
            self._attrs["alpha"] = alpha
        if isinstance(op, FusedElementwiseOp):
            inner = [i for i in op.body.block.ops if i.name not in ("ait.yield", "ait.constant")]
            self._attrs["elementwise_ops"] = [
                elementwise(FUNC_OF[type(i)]) if type(i) in FUNC_OF else GraphOperator(i) for i in inner
            ]


@dataclass
class _Snapshot:
    """The state of an op before a pass; a changed op no longer belongs to the operator that it came from."""

    op: Operation
    operands: tuple[SSAValue, ...]
    signature: tuple[object, ...]

    @classmethod
    def of(cls, op: Operation) -> _Snapshot:
        return cls(op, tuple(op.operands), _signature(op))


@dataclass
class Emission:
    """The module of a list of tensors. `marked` says whether outputs were marked or follow from the list."""

    module: ModuleOp
    values: dict[Tensor, SSAValue]
    symbols: dict[str, Symbol]
    marked: bool
    groups: dict[Operator, list[_Snapshot]] = field(default_factory=dict[Operator, list[_Snapshot]])
    views: dict[str, str] = field(default_factory=dict[str, str])
    """The documented names of operators that only move elements to make an output, by the output's name."""

    @property
    def graph(self) -> GraphOp:
        (graph,) = self.module.ops
        assert isinstance(graph, GraphOp)
        return graph


def emit(tensors: Sequence[Tensor]) -> Emission:
    """The module of a sorted list of tensors; `BuildError` for a list that is not sorted, or not closed."""
    check_sorted(tensors)
    marked = [t for t in tensors if t.is_output]
    read = {t for tensor in tensors for op in tensor.src_ops() for t in op.inputs}
    outputs = marked or [t for t in tensors if t not in read]
    builder = GraphBuilder(outputs, "graph")
    module = builder.build()
    values = {t: builder.values[v] for t in tensors if (v := builder.wiring.value(t.value)) in builder.values}
    symbols = {builder.dims[s]: d for t in tensors for s, d in t.symbols.items() if s in builder.dims}
    made = Emission(module, values, symbols, bool(marked))
    for tensor in marked:
        for op in tensor.src_ops():
            if tensor.name and isinstance(op, ViewOperator | dynamic_slice | split | concatenate):
                made.views[tensor.name] = op.attrs["op"]
    for op in builder.ops:
        operator = operator_of(op)
        if operator is not None and op.results:
            made.groups.setdefault(operator, []).append(_Snapshot.of(builder.values[op.results[0]].owner))  # pyright: ignore[reportArgumentType]
    return made


def check_sorted(tensors: Sequence[Tensor]) -> None:
    """Raise `BuildError` unless each tensor occurs once, after all tensors that its operators read."""
    if isinstance(tensors, str) or not isinstance(tensors, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BuildError(f"a sorted graph is a list of Tensors; found {tensors!r}")
    place: dict[Tensor, int] = {}
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BuildError(f"a sorted graph is a list of Tensors; found {tensor!r} at {i}")
        if place.setdefault(tensor, i) != i:
            raise BuildError(f"the list is not sorted: {tensor.describe()} stands at {place[tensor]} and again at {i}")
    if not tensors:
        raise BuildError("the list of tensors is empty; pass toposort(outputs)")
    for i, tensor in enumerate(tensors):
        for op in tensor.src_ops():
            for read in op.inputs:
                if read not in place:
                    raise BuildError(
                        f"the list is not closed: {op.name} reads {read.describe()}, which is not in it; "
                        "pass toposort(outputs)"
                    )
                if place[read] > i:
                    raise BuildError(
                        f"the list is not sorted: {read.describe()} at {place[read]} is read for "
                        f"{tensor.describe()} at {i}; pass toposort(outputs)"
                    )


def lift(emission: Emission) -> list[Tensor]:
    """The sorted tensors of a module that passes may have changed."""
    return _Lift(emission).run()


class _Lift:
    """The conversion of one graph to tensors."""

    def __init__(self, emission: Emission):
        self.emission = emission
        self.graph = emission.graph
        self.symbols = {d.name: _symbol(d, emission.symbols.get(d.name)) for d in self.graph.scope}
        self.values: dict[SSAValue, SSAValue] = {}
        self.tensors: dict[SSAValue, Tensor] = {}
        self.origin = {v: t for t, v in emission.values.items()}
        self.named = {v.name_hint: t for t, v in emission.values.items() if v.name_hint is not None}
        self.given = {t: tensor_type(v) for t, v in emission.values.items()}

    def run(self) -> list[Tensor]:
        for name, argument in self.graph.inputs():
            fresh = Block(arg_types=[argument.type]).args[0]
            self.values[argument] = fresh
            self.define(argument, fresh).name = name
        kept = self.kept()
        last = {snapshots[-1].op: operator for operator, snapshots in kept.items()}
        grouped = {s.op: operator for operator, snapshots in kept.items() for s in snapshots}
        twins = {operator: copy.copy(operator) for operator in kept}
        outputs: list[Tensor] = []
        for op in self.graph.block.ops:
            if isinstance(op, OutputOp):
                outputs.append(self.output(op))
                continue
            clone = op.clone(self.values)
            for old, new in zip(op.results, clone.results, strict=True):
                self.define(old, new)
            if isinstance(op, ParamOp | ConstantOp):
                self.leaf(op)
            elif op not in grouped:
                operator = GraphOperator(op)
                mark_operator(clone, operator)
                operator.inputs = [self.tensors[v] for v in op.operands]
                operator.outputs = [self.tensors[r] for r in op.results]
                operator.record()
            else:
                mark_operator(clone, twins[grouped[op]])
                if op in last:
                    self.group(last[op], kept[last[op]], twins[last[op]])
        for symbol in self.symbols.values():
            symbol.offsets = tuple(self.tensors[self.emission.values[t]] for t in symbol.offsets)
        return toposort(outputs)

    def define(self, old: SSAValue, new: SSAValue) -> Tensor:
        """The tensor for a value of the graph, with the name and the attributes of the original tensor."""
        names = [s for dim in tensor_type(old).dims for s in dim.symbols]
        tensor = Tensor.of(new, {s: self.symbols[s] for s in with_parts(names, self.symbols)})
        if (before := self.origin.get(old)) is not None:
            tensor.name = before.name
            tensor.extra = dict(before.extra)
        elif (before := self.named.get(old.name_hint or "")) is not None and self.given[before] == tensor.type:
            tensor.name = before.name  # a pattern computes this tensor by another op
        self.tensors[old] = tensor
        return tensor

    def leaf(self, op: ParamOp | ConstantOp) -> None:
        tensor = self.tensors[op.results[0]]
        before = self.origin.get(op.results[0])
        if isinstance(op, ParamOp):
            tensor.name = op.param_name.data
            if before is not None:
                tensor.data, tensor.constant_data = before.data, before.constant_data

    def output(self, op: OutputOp) -> Tensor:
        """The tensor of an output; a copy if the value already has another name, which an elementwise operator makes as
        a further output."""
        value = op.operands[0]
        tensor = self.tensors[value]
        if tensor.is_output or not tensor.sources:
            same = ReshapeOp(self.values[value], tensor_type(value).dims)
            maker = next(iter(tensor.sources), None)
            if maker is not None and maker.attrs["op"] in ("elementwise", "fused_elementwise"):
                operator, read, made_before = maker, maker.inputs, maker.outputs
            else:
                operator, read, made_before = GraphOperator(same), [tensor], []
                operator.attrs["op"] = self.emission.views.get(op.output_name.data, operator.attrs["op"])
            mark_operator(same, operator)
            made = Tensor.of(same.results[0], tensor.symbols)
            operator.inputs, operator.outputs = read, [*made_before, made]
            operator.record()
            tensor = made
        if self.emission.marked:
            tensor.is_output, tensor.name = True, op.output_name.data
            tensor.in_place_of = None if op.in_place_of is None else self.tensors[op.in_place_of]
            tensor.or_copy = op.or_copy is not None
        return tensor

    def kept(self) -> dict[Operator, list[_Snapshot]]:
        """The unchanged operators, with their ops in order."""
        here = set(self.graph.block.ops)
        same = {
            operator: snapshots
            for operator, snapshots in self.emission.groups.items()
            if all(s.op in here and _signature(s.op) == s.signature for s in snapshots)
        }
        position = self.gathered([{s.op for s in snapshots} for snapshots in same.values()])
        found: dict[Operator, list[_Snapshot]] = {}
        for operator, snapshots in same.items():
            snapshots = sorted(snapshots, key=lambda s: position[s.op])
            if self.is_whole(operator, snapshots, position):
                found[operator] = snapshots
        return found

    def gathered(self, operators: Sequence[Collection[Operation]]) -> dict[Operation, int]:
        """The position of each op after moving users of an operator's ops after all of them, where possible."""
        block = self.graph.block
        ops = list(block.ops)
        position = {op: i for i, op in enumerate(ops)}
        for inside in operators:
            first, last = min(position[op] for op in inside), max(position[op] for op in inside)
            behind = _readers(ops[first : last + 1], inside) if last - first >= len(inside) else []
            for before, op in zip([ops[last], *behind], behind, strict=False):
                op.detach()
                block.insert_op_after(op, before)
            if behind:
                ops = list(block.ops)
                position = {op: i for i, op in enumerate(ops)}
        return position

    def is_whole(self, operator: Operator, snapshots: list[_Snapshot], position: Mapping[Operation, int]) -> bool:
        """Whether an operator's ops still read each other as before, and other ops read only its results, after its
        last op.
        """
        inside = {s.op for s in snapshots}
        visible = {self.emission.values.get(t) for t in operator.outputs}
        last = position[snapshots[-1].op]
        for s in snapshots:
            for before, now in zip(s.operands, s.op.operands, strict=True):
                if (before.owner in inside or now.owner in inside) and before is not now:
                    return False
            for result in s.op.results:
                for use in result.uses:
                    if use.operation not in inside and (result not in visible or position[use.operation] < last):
                        return False
        return all(self.emission.values.get(t) in {r for op in inside for r in op.results} for t in operator.outputs)

    def group(self, operator: Operator, snapshots: list[_Snapshot], twin: Operator) -> None:
        """Make `twin` the operator for its ops: with its attributes, on the tensors that the ops read now."""
        now = {b: n for s in snapshots for b, n in zip(s.operands, s.op.operands, strict=True)}
        twin.take_attrs(operator)
        read = [self.emission.values.get(t) for t in operator.inputs]
        current = [now.get(v, v) for v in read if v is not None]
        twin.inputs = [self.tensors[v] for v in current if v in self.tensors]
        twin.outputs = [self.tensors[self.emission.values[t]] for t in operator.outputs]
        twin.record()


def _readers(ops: Sequence[Operation], inside: Collection[Operation]) -> list[Operation]:
    """The other ops of the list that depend on the ops inside; empty if an op inside depends on one of them."""
    found: dict[Operation, None] = {}
    for op in ops:
        read = {operand.owner for part in op.walk() for operand in part.operands}
        if op in inside:
            if not read.isdisjoint(found):
                return []
        elif not read.isdisjoint(found) or not read.isdisjoint(inside):
            found[op] = None
    return list(found)


def _signature(op: Operation) -> tuple[object, ...]:
    inner = tuple((id(i), *i.operands) for region in op.regions for block in region.blocks for i in block.ops)
    return (*sorted(op.properties.items()), len(op.operands), *op.result_types, inner)


def _symbol(dim: Dim, before: Symbol | None) -> Symbol:
    kind, offsets = (None, ()) if before is None else (before.kind, before.offsets)
    return Symbol(dim.name, dim.name, dim.lo, dim.hi, dim.hints, dim.upper, dim.jagged, kind, offsets)


def _plain(attribute: Attribute) -> Any:
    """The value of a property for `_attrs`; None if it has no plain Python value."""
    if isinstance(attribute, IntegerAttr | FloatAttr):
        return attribute.value.data
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, ShapeAttr):
        return [str(dim) for dim in attribute.data]
    if isinstance(attribute, ArrayAttr):
        return [_plain(item) for item in attribute]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return None
