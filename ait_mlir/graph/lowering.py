"""From a graph of nodes to an `ait` graph: one function per operation writes `ait` ops."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, f16, f32, f64, i32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.compositions.rearrange import as_strided
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.index import UpdateSliceOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.types import Shape, ShapeAttr, TensorType, tensor_type
from ait_mlir.dims import Expr, Scope, const
from ait_mlir.graph.enums import FLOATS, SMALL, data_type, ir_type
from ait_mlir.graph.errors import GraphError, cudnnGraphNotSupportedError
from ait_mlir.graph.extents import Extent, Trace, expr_of
from ait_mlir.graph.layout import Layout, layout_of
from ait_mlir.graph.nodes import Node
from ait_mlir.graph.numbers import Numbers
from ait_mlir.graph.ragged import Ragged, packed, padded
from ait_mlir.graph.tensor import tensor

EXACT = 1 << 24
"""Whole numbers up to this one are exact in f32."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Slot:
    """An input or an output of the module: a tensor of the graph, and its layout in memory.

    The memory of a padded output is also an input, which the run updates (`is_donated`). The same holds for a ragged
    output, whose size in memory determines the number of rows.
    """

    tensor: tensor
    layout: Layout
    is_donated: bool = False
    ragged: Ragged | None = None


@dataclass
class Lowered:
    """A module, and the tensors of the graph that its inputs and outputs stand for, in order."""

    module: ModuleOp
    inputs: list[Slot]
    outputs: list[Slot]


@dataclass
class Lowering(Writer):
    """Writes the ops of one graph. Methods take and return values of the IR, with the dims that the graph declares.

    With a `trace` the dims are extents, so that the ops are valid for many sizes.
    """

    graph: GraphOp
    scalars: Mapping[tensor, float] = field(default_factory=dict["tensor", float])
    """Scalars passed by value whose numbers are constants of the code."""
    arguments: Mapping[tensor, Expr] = field(default_factory=dict["tensor", Expr])
    """Scalars passed by value that are arguments of the code, with the dims that hold their bits."""
    values: dict[tensor, SSAValue] = field(default_factory=dict["tensor", SSAValue])
    read: set[tensor] = field(default_factory=set["tensor"])
    """The tensors that nodes read."""
    node: Node | None = None
    trace: Trace | None = None

    def __post_init__(self) -> None:
        super().__init__(self.graph.block)

    # ** tensors **

    def value(self, t: tensor) -> SSAValue:
        """The value of a tensor, in its data type."""
        if t not in self.values and (number := self.fixed_number(t)) is not None:
            element = ir_type(t.dtype, t.label)
            if t.dtype is data_type.BOOLEAN:
                number = number != 0
            literal = float(number) if t.dtype in FLOATS else int(number)
            op = ConstantOp(literal, TensorType.get(t.dims or (), element))
            self.graph.block.add_op(op)
            self.values[t] = op.output
        return self.values[t]

    def fixed_number(self, t: tensor) -> float | None:
        """The number of a scalar that is part of the code; None if it is known only when the graph runs."""
        return t.value if t.is_constant and t.value is not None else self.scalars.get(t)

    def number_or_bits(self, t: tensor) -> float | ShapeAttr | None:
        """The number of a scalar as a property of an op; None if the scalar is in memory."""
        return ShapeAttr((self.arguments[t],)) if t in self.arguments else self.fixed_number(t)

    def wide(self, t: tensor, dtype: data_type) -> SSAValue:
        """The value of a tensor in the type that a node computes in."""
        return self.cast(self.value(t), ir_type(dtype, t.label))

    def wide_all(self, node: Node, *names: str) -> list[SSAValue]:
        """Inputs of a node in the type that it computes in."""
        return [self.wide(node.inputs[name], node.compute_type()) for name in names]

    def fail(self, message: str) -> GraphError:
        """An error of the node that is being written."""
        return GraphError(message) if self.node is None else self.node.wrong(message)

    # ** the writer **

    def invalid(self, message: str) -> Exception:
        where = f"{self.node.label}: " if self.node is not None else ""
        return cudnnGraphNotSupportedError(f"{where}{message}")

    def shape(self, dims: Sequence[Any]) -> Shape:
        """Integers, extents or expressions as the dims of a type."""
        return shape_of(dims)

    def scalar(self, number: float | Extent, element: Attribute) -> SSAValue:
        return super().scalar(int(number) if isinstance(number, Extent) else number, element)

    def index(self, size: int, axis: int, rank: int, element: Attribute) -> SSAValue:
        """0, 1, 2, ... along one axis; all other of the `rank` dims are 1."""
        return self.constant(range(size), [size if a == axis else 1 for a in range(rank)], element)

    def dims(self, value: SSAValue) -> tuple[int, ...]:
        """The dims of a value as integers or extents."""
        if self.trace is not None:
            return tuple(map(self.trace.extent, tensor_type(value).dims))
        shape = tensor_type(value).static_shape()
        assert shape is not None, "without a trace all dims are constants"
        return shape

    def type(self, dims: Sequence[Any], element: Attribute) -> TensorType:
        """The type of a tensor with these dims: integers, extents or expressions."""
        return TensorType.get(shape_of(dims), element)

    def is_wide(self, out: tensor, narrow: data_type) -> bool:
        """Whether a contraction of `narrow` operands must return its result unrounded. A contraction without an
        epilogue rounds its result when it stores it. That suits an output of this type that no node reads; any other
        tensor is rounded by a cast, or not at all.
        """
        return out.is_virtual or out.dtype is not narrow or out in self.read

    def contraction(
        self, op_class: type[AitOp], operands: Sequence[SSAValue], properties: Mapping[str, Attribute], wide: bool
    ) -> SSAValue:
        """A product or convolution; if `wide`, the result has the type of the accumulator."""
        t = tensor_type(operands[0])
        if not wide or compute_type(t.element_type) == t.element_type:
            return self.op(op_class, *operands, properties=properties, regions=[Region()])
        op = op_class.create(
            operands=operands,
            result_types=[TensorType.get(t.dims, compute_type(t.element_type))],
            properties=dict(properties),
            regions=[self.identity_region(t.element_type)],
        )
        return self.put(op)

    def whole(self, value: SSAValue) -> SSAValue:
        """The sums of products of 8-bit integers as i32, in which they wrap around."""
        is_wide = tensor_type(value).element_type == f64
        return self.cast(self.cast(value, i64) if is_wide else value, i32)

    def identity_region(self, element: Attribute) -> Region:
        """A region that yields its argument: the accumulator of a product, not rounded."""
        block = Block(arg_types=[compute_type(element)])
        block.args[0].name_hint = "acc"
        block.add_op(YieldOp(block.args[0]))
        return Region(block)

    # ** memory **

    def from_memory(self, block: SSAValue, layout: Layout) -> SSAValue:
        """The tensor stored in a block of memory."""
        value = block
        if layout.strides:
            dims, strides = self.shape(layout.dims), self.shape(layout.strides)
            return self.full(as_strided(self, block, dims, strides, const(0)))
        if layout.step > 1:
            value = self.slice(value, len(layout.block), 0, 1)
        for place, axis in enumerate(layout.order):
            if axis not in layout.repeated:
                value = self.slice(value, place, 0, layout.dims[axis])
        if layout.step > 1:
            value = self.reshape(value, self.dims(value)[:-1])
        value = self.permute(value, [layout.order.index(a) for a in range(len(layout.order))])
        return self.expand(value, layout.dims)

    def to_memory(self, value: SSAValue, layout: Layout) -> SSAValue:
        """The elements of a tensor in the order of a block without padding."""
        return self.permute(value, layout.order)

    def into_padded(self, block: SSAValue, value: SSAValue, layout: Layout) -> SSAValue:
        """The block with the elements of a tensor written into it; its padding stays."""
        kept = [layout.dims[a] for a in layout.order]
        if layout.step > 1:
            value, kept = self.reshape(value, [*kept, 1]), [*kept, 1]
        gaps = [i for i, n in enumerate(layout.shape) if n != kept[i]]
        parts = [block]
        for i in gaps[:-1]:  # the rows along one dim, in them those along the next, and so on
            parts.append(self.slice(parts[-1], i, 0, kept[i]))
        zero = self.scalar(0, i64)
        for part, i in zip(reversed(parts), reversed(gaps), strict=True):
            value = self.op(UpdateSliceOp, part, value, zero, properties={"dim": IntegerAttr(i, i64)})
        return value


def lower(
    name: str,
    nodes: Sequence[Node],
    inputs: Sequence[tensor],
    outputs: Sequence[tensor],
    numbers: Numbers,
    trace: Trace | None = None,
) -> Lowered:
    """The module of a validated graph. Its dims are the dims of the `trace`, a dim for each scalar that is an argument,
    and two for each ragged tensor. With a trace, the dims and strides of the tensors are its extents, and the module is
    valid for many sizes.

    Raises `cudnnGraphNotSupportedError`, with the node, if no `ait` op computes a node.
    """
    ins, outs = slots_of(inputs, outputs)
    types = [_memory_type(s) for s in ins]
    input_names, output_names = names_of(ins, outs)
    scope, arguments = numbers.declare(Scope() if trace is None else trace.scope)
    for ragged in ragged_of(ins):
        scope = ragged.declare(scope)
    graph = GraphOp(name, list(zip(input_names, types, strict=True)), scope, donated=_donated(input_names, ins))
    read = {t for node in nodes for t in node.reads()}
    writer = Lowering(graph, numbers.constants, arguments, read=read, trace=trace)
    memory: dict[tensor, SSAValue] = {}
    for slot, block, input_name in zip(ins, graph.block.args, input_names, strict=True):
        block.name_hint = input_name if _IDENTIFIER.fullmatch(input_name) else None
        if slot.is_donated:
            memory[slot.tensor] = block
        elif slot.ragged is None:
            writer.values[slot.tensor] = writer.from_memory(block, slot.layout)
    for slot, block in zip(ins, graph.block.args, strict=True):
        if slot.ragged is not None and not slot.is_donated:
            writer.values[slot.tensor] = padded(writer, slot.ragged, block, writer.value)
    for node in nodes:
        writer.node = node
        results = node.operation.lower(node, writer)
        for port, t in node.outputs.items():
            value = writer.cast(results[port], ir_type(t.dtype, t.label))
            if value.name_hint is None and _IDENTIFIER.fullmatch(t.name):
                value.name_hint = t.name
            writer.values[t] = value
    writer.node = None
    for slot, output_name in zip(outs, output_names, strict=True):
        if slot.ragged is not None:
            graph.block.add_op(
                OutputOp(output_name, packed(writer, slot.ragged, writer.values[slot.tensor], writer.value))
            )
            continue
        value = writer.to_memory(writer.values[slot.tensor], slot.layout)
        place = memory.get(slot.tensor)
        if place is not None:
            value = writer.into_padded(place, value, slot.layout)
        graph.block.add_op(OutputOp(output_name, value, place))
    return Lowered(ModuleOp([graph]), ins, outs)


def multiplies_integers(node: Node, a: tensor, b: tensor) -> bool:
    """Whether a product is one of 8-bit integers, with integer sums."""
    return a.dtype in SMALL and b.dtype in SMALL and node.compute_type() not in FLOATS


def product_types(node: Node, a: tensor, b: tensor, terms: int) -> tuple[data_type, Attribute, bool]:
    """The data type of the operands of a convolution, the type in which they are multiplied, and whether they are
    integers.

    Convolutions of 8-bit integers are computed in floats that hold all sums of `terms` products exactly: f16, whose
    sums are f32, or f64.
    """
    if multiplies_integers(node, a, b):
        largest = math.prod(255 if t.dtype is data_type.UINT8 else 128 for t in (a, b))
        return node.compute_type(), f16 if terms * largest <= EXACT else f64, True
    compute = node.compute_float()
    is_narrow = a.dtype is b.dtype and a.dtype in FLOATS and compute is not data_type.DOUBLE
    narrow = a.dtype if is_narrow else compute
    return narrow, ir_type(narrow, node.label), False


def slots_of(inputs: Sequence[tensor], outputs: Sequence[tensor]) -> tuple[list[Slot], list[Slot]]:
    """The slots of a module: the inputs, then the memory of padded outputs; and the outputs.

    Raises `cudnnGraphNotSupportedError` for strides that no block of memory has.
    """
    ragged = {t: Ragged(t, i) for i, t in enumerate(t for t in (*inputs, *outputs) if t.ragged_offset is not None)}

    def slot(t: tensor, is_read: bool = False) -> Slot:
        layout = layout_of(t.dims or (), t.strides or (), t.label, is_read)
        return Slot(t, layout, ragged=ragged.get(t))

    ins, outs = [slot(t, True) for t in inputs], [slot(t) for t in outputs]
    for out in outs:
        if out.layout.repeated:
            raise cudnnGraphNotSupportedError(f"{out.tensor.label} is an output with a stride of 0: {out.tensor!r}")
    memory = [replace(s, is_donated=True) for s in outs if s.layout.is_padded or s.ragged is not None]
    return [*ins, *memory], outs


def ragged_of(ins: Sequence[Slot]) -> list[Ragged]:
    """The ragged inputs and outputs of a module, in order."""
    return sorted((s.ragged for s in ins if s.ragged is not None), key=lambda ragged: ragged.number)


def _memory_type(slot: Slot) -> TensorType:
    if slot.ragged is not None:
        return slot.ragged.memory(slot.ragged.total)
    return TensorType.get(shape_of(slot.layout.shape), ir_type(slot.tensor.dtype, slot.tensor.label))


def _donated(names: Sequence[str], ins: Sequence[Slot]) -> list[str]:
    """The inputs that the run updates."""
    return [n for n, s in zip(names, ins, strict=True) if s.is_donated and s.ragged is None]


def shape_of(dims: Sequence[Any]) -> Shape:
    """Integers, extents or expressions as the dims of a type."""
    return tuple(map(expr_of, dims))


def names_of(ins: Sequence[Slot], outs: Sequence[Slot]) -> tuple[list[str], list[str]]:
    """The names of a module's inputs and outputs: the tensors' names, made unique."""
    named = [*(s.tensor for s in ins if not s.is_donated), *(s.tensor for s in outs)]
    own = dict(zip(named, _unique([t.name for t in named]), strict=True))
    return [f"{own[s.tensor]}.memory" if s.is_donated else own[s.tensor] for s in ins], [own[s.tensor] for s in outs]


def rename(module: ModuleOp, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Rename the inputs and outputs of a module that was written for another graph of the same structure."""
    inputs, outputs = names_of(ins, outs)
    for graph in module.ops:
        if not isinstance(graph, GraphOp):
            continue
        graph.input_names = ArrayAttr([StringAttr(n) for n in inputs])
        if graph.donated_names is not None:
            graph.donated_names = ArrayAttr([StringAttr(n) for n in _donated(inputs, ins)])
        for value, name in zip(graph.block.args, inputs, strict=True):
            value.name_hint = name if _IDENTIFIER.fullmatch(name) else None
        for op, name in zip(graph.outputs(), outputs, strict=True):
            op.output_name = StringAttr(name)


def _unique(names: Sequence[str]) -> list[str]:
    """The names; a repeated name gets a number as suffix."""
    found: list[str] = []
    for name in names:
        count, unique = 1, name or "t"
        while unique in found:
            count += 1
            unique = f"{name}.{count}"
        found.append(unique)
    return found


__all__ = ["Lowered", "Lowering", "Slot", "f32", "lower", "multiplies_integers", "product_types", "rename", "slots_of"]
