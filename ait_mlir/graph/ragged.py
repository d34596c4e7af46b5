"""Ragged tensors: sequences of different lengths, one after the other in memory.

The tensor is declared with dims [batch, ..., length, size], where `length` is the most rows of a sequence. The element
[b, ..., s, d] lies at `ragged_offset[b] * multiplier + ... + s * stride + d`; the stride of the batch means nothing. In
the IR the memory is a block [total, ...] whose rows are those of all sequences. Views and `ait.jagged_to_padded` give
nodes the declared dims; rows after the end of a sequence are 0. `ait.padded_to_jagged` lays an output end to end.

How many rows there are, the total, is known when the graph runs, from the tensor in the variant pack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr, UnitAttr, f64
from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.jagged import JaggedToPaddedOp, MakeJaggedOp, PaddedToJaggedOp
from ait_mlir.dialects.ait.types import Shape, TensorType, tensor_type
from ait_mlir.dims import Dim, Jagged, Scope, const, jagged_dim, sym
from ait_mlir.graph.enums import data_type, ir_type
from ait_mlir.graph.errors import cudnnGraphNotSupportedError
from ait_mlir.graph.extents import expr_of
from ait_mlir.graph.layout import Layout, layout_of
from ait_mlir.graph.nodes import Node
from ait_mlir.graph.tensor import tensor

ValueOf = Callable[[tensor], SSAValue]
"""The value in the IR of a tensor."""
PORTS = {
    "sdpa": {
        *("q", "k", "v", "O", "Stats", "score_max", "score_sum_exp"),
        *("paged_attention_k_table", "paged_attention_v_table"),
    },
    "matmul": {"A", "C"},
}
"""The inputs and outputs that may be ragged, by operation: their rows are independent, or the operation
takes lengths.
"""


@dataclass(frozen=True)
class Ragged:
    """How a ragged tensor lies in memory: the block of one sequence, and the dims of the IR that it adds."""

    tensor: tensor
    number: int
    """The how many-th ragged tensor of the graph it is."""

    @property
    def total(self) -> str:
        """The dim of the number of rows in memory."""
        return f"t{self.number}"

    @property
    def rows(self) -> str:
        """The jagged dim of these rows."""
        return f"j{self.number}"

    @property
    def length(self) -> int:
        """The most rows of a sequence."""
        return int(dims_of(self.tensor)[-2])

    @property
    def layout(self) -> Layout:
        """The dims after the batch, in the order in which a sequence is stored."""
        return sequence_layout(self.tensor)

    @property
    def inner(self) -> Shape:
        """The dims of a row in memory."""
        layout, axis = self.layout, _row_axis(self.tensor)
        return tuple(expr_of(n) for n, a in zip(layout.block, layout.order, strict=True) if a != axis)

    def declare(self, scope: Scope) -> Scope:
        """The scope with the dims of this tensor."""
        batch = expr_of(dims_of(self.tensor)[0])
        _, most = scope.bounds(batch * self.length)
        hint = (batch * self.length).evaluate({dim.name: max(dim.hints, default=dim.hi) for dim in scope})
        with_total = Scope([*scope.dims, Dim(self.total, 0, most, (hint,))])
        jagged = Jagged(sym(self.total), batch, ((0, expr_of(self.length)),))
        return Scope([*with_total.dims, jagged_dim(self.rows, jagged, with_total, (hint,))])

    def memory(self, dim: str) -> TensorType:
        """The type of the memory, with `total` or `rows` as the leading dim."""
        t = self.tensor
        return TensorType.get((sym(dim), *self.inner), ir_type(t.dtype, t.label))


def dims_of(t: tensor) -> Sequence[int]:
    """The dims of a validated tensor."""
    return t.dims or ()


def strides_of(t: tensor) -> Sequence[int]:
    """The strides of a validated tensor."""
    return t.strides or ()


def most_rows(t: tensor) -> int:
    """The rows of a ragged tensor with all sequences at full length."""
    return dims_of(t)[0] * dims_of(t)[-2]


def row_stride(t: tensor) -> int:
    """Elements from one row of a sequence to the next."""
    return int(strides_of(t)[-2])


def with_batch_stride(t: tensor) -> tuple[int, ...]:
    """The strides with that of the batch, which means nothing, as if all sequences had the full length."""
    strides = tuple(strides_of(t))
    return strides if len(strides) < 3 else (int(dims_of(t)[-2]) * row_stride(t), *strides[1:])


def _row_axis(t: tensor) -> int:
    """The dim of the rows, counted without the batch."""
    return len(dims_of(t)) - 3


def sequence_layout(t: tensor) -> Layout:
    """The layout of one sequence. Raises `cudnnGraphNotSupportedError` unless its rows are the outermost dim."""
    dims, strides = list(dims_of(t)[1:]), strides_of(t)[1:]
    axis = _row_axis(t)
    inner = [n if a != axis else 1 for a, n in enumerate(dims)]
    layout = layout_of(inner, strides, t.label)
    row = math.prod(layout.block)
    if layout.step != 1 or layout.repeated or not row <= strides[axis]:
        raise cudnnGraphNotSupportedError(
            f"{t.label} is ragged, with dims {list(dims_of(t))} and strides {list(strides_of(t))}: expected rows "
            f"of at least {row} elements one after the other"
        )
    still = [a for a in layout.order if a != axis and a not in _moving(inner)]
    moving = [a for a in layout.order if a in _moving(inner)]
    block = dict(zip(layout.order, layout.block, strict=True))
    if moving:
        around = math.prod(block[a] for a in moving[1:])
        if strides[axis] % around:
            raise cudnnGraphNotSupportedError(
                f"{t.label} is ragged, and its rows are {strides[axis]} elements apart, no multiple of {around}"
            )
        block[moving[0]] = strides[axis] // around
    elif strides[axis] != 1:
        raise cudnnGraphNotSupportedError(f"{t.label} is ragged, with rows of one element {strides[axis]} apart")
    order = (axis, *still, *moving)
    return Layout(tuple(dims), order, tuple(dims[a] if a == axis else block[a] for a in order))


def _moving(dims: Sequence[int]) -> list[int]:
    return [a for a, n in enumerate(dims) if n != 1]


def check(t: tensor, node: Node, port: str) -> None:
    """Raise unless a tensor has no ragged offset, or has one at a port that accepts it."""
    offset = t.ragged_offset
    if offset is None:
        return
    if port not in PORTS.get(node.operation.name, ()):
        known = "; ".join(f"{', '.join(sorted(ports))} of {name}" for name, ports in PORTS.items())
        raise node.unsupported(f"{t.label} has a ragged offset, as {port}; it may be one of {known}")
    if node.operation.name == "sdpa" and not node["use_padding_mask"]:
        raise node.wrong(f"{t.label} has a ragged offset: set use_padding_mask, with seq_len_q and seq_len_kv")
    dims = dims_of(t)
    if len(dims) < 3:
        raise node.wrong(f"{t.label} has a ragged offset and dims {list(dims)}, expected [batch, ..., length, size]")
    if offset.dtype not in (data_type.INT32, data_type.INT64):
        raise node.wrong(f"{offset.label}, the ragged offset of {t.label}, is {offset.dtype.name}, not INT32 or INT64")
    found = dims_of(offset)
    if math.prod(found) != dims[0] + 1 or max(found, default=0) != dims[0] + 1:
        raise node.wrong(
            f"{offset.label}, the ragged offset of {t.label}, has dims {list(found)}, expected "
            f"{[dims[0] + 1, *(1 for _ in dims[1:])]}: one more than the batch"
        )
    if offset.producer is not None:
        raise node.unsupported(f"{offset.label}, the ragged offset of {t.label}, is computed by a node")
    sequence_layout(t)


def offsets_of(w: Writer, ragged: Ragged, value_of: ValueOf) -> SSAValue:
    """The row at which each sequence begins, and the end of the last one, as [batch + 1]."""
    t = ragged.tensor
    assert t.ragged_offset is not None
    value = value_of(t.ragged_offset)
    count = next(n for n in dims_of(t.ragged_offset) if n != 1)
    # in a trace, these asserts become facts on which the code relies
    assert count == dims_of(t)[0] + 1, "one more than the batch"
    value = w.reshape(value, [count])
    row = row_stride(t)
    common = math.gcd(row, t.ragged_multiplier)
    if t.ragged_multiplier != common:
        value = w.mul(value, t.ragged_multiplier // common)
    if row != common:
        value = w.div(value, row // common)
    return value


def padded(w: Writer, ragged: Ragged, memory: SSAValue, value_of: ValueOf) -> SSAValue:
    """The tensor with its declared dims, from its memory."""
    t, layout, axis = ragged.tensor, ragged.layout, _row_axis(ragged.tensor)
    value = memory
    for place, (n, a) in enumerate(zip(layout.block[1:], layout.order[1:], strict=True), 1):
        if n != layout.dims[a]:
            value = w.slice(value, place, 0, layout.dims[a])
    offsets = offsets_of(w, ragged, value_of)
    inner = tensor_type(value).dims[1:]
    element = tensor_type(value).element_type
    value = w.op(MakeJaggedOp, value, offsets, results=[TensorType.get((sym(ragged.rows), *inner), element)])
    dims = (expr_of(dims_of(t)[0]), const(ragged.length), *inner)
    zero = {"value": FloatAttr(0.0, f64)}
    value = w.op(JaggedToPaddedOp, value, offsets, properties=zero, results=[TensorType.get(dims, element)])
    order = [0, *(1 + a for a in (axis, *layout.order[1:]))]
    return w.permute(value, [order.index(a) for a in range(len(order))])


def packed(w: Writer, ragged: Ragged, value: SSAValue, value_of: ValueOf) -> SSAValue:
    """The memory of an output, from its padded value."""
    layout, axis = ragged.layout, _row_axis(ragged.tensor)
    if any(n != layout.dims[a] for n, a in zip(layout.block[1:], layout.order[1:], strict=True)):
        raise cudnnGraphNotSupportedError(f"{ragged.tensor.label} is a ragged output with rows longer than its dims")
    value = w.permute(value, [0, *(1 + a for a in (axis, *layout.order[1:]))])
    properties = {"partial": UnitAttr()}  # the rows after the last sequence keep what they have
    offsets = offsets_of(w, ragged, value_of)
    return w.op(PaddedToJaggedOp, value, offsets, properties=properties, results=[ragged.memory(ragged.rows)])
