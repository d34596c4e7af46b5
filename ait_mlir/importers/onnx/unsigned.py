"""Tensors of uint16, uint32 and uint64, which the dialect lacks: signed integers hold their bits.

Integers of more bits hold the numbers of uint16 and uint32. An i64 holds the bits of a uint64: sums and products are
the same, and comparisons are those of the numbers with the highest bit inverted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute

from ait_mlir.compositions import functions
from ait_mlir.dialects.ait.elementwise import BitXorOp
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Tensor, full
from ait_mlir.importers.onnx.known import Known, onnx_type
from ait_mlir.importers.onnx.library import onnx


@dataclass(frozen=True)
class Holder:
    """The element type that holds the numbers of an unsigned type, and its dtypes outside and inside of the module."""

    element: Attribute
    outside: np.dtype[Any]
    inside: np.dtype[Any]

    @property
    def has_numbers(self) -> bool:
        """Whether the numbers are held, and not the bits alone."""
        return self.inside.itemsize > self.outside.itemsize

    @property
    def mask(self) -> int:
        return (1 << 8 * self.outside.itemsize) - 1

    def held(self, array: Any) -> NDArray[Any]:
        return np.asarray(array).astype(self.inside)


HOLDERS: dict[int, Holder] = {
    int(onnx.TensorProto.UINT16): Holder(i32, np.dtype(np.uint16), np.dtype(np.int32)),
    int(onnx.TensorProto.UINT32): Holder(i64, np.dtype(np.uint32), np.dtype(np.int64)),
    int(onnx.TensorProto.UINT64): Holder(i64, np.dtype(np.uint64), np.dtype(np.int64)),
}
"""By the `TensorProto.DataType`."""

CUT = frozenset(("Add", "Sub", "Mul", "BitShift", "BitwiseNot"))
"""Operators whose results may have more bits, which are cut off."""
SAME = frozenset(("Div", "Mod", "Max", "Min", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Concat"))
"""Operators with results of the type of all inputs."""
BITS = frozenset(("Add", "Sub", "Mul", "BitwiseNot", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Concat"))
"""Operators that give the right bits if the bits alone are held."""
ORDERED = frozenset(("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Max", "Min"))
"""Operators that need the order of the numbers alone."""
COMPARED = frozenset(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"))
MOVED = frozenset(
    ("Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Expand", "Slice", "Tile", "Gather")
)
"""Operators whose first input alone has the type of the result."""


@dataclass(frozen=True)
class Unsigned:
    """A tensor of an unsigned type that the dialect lacks."""

    value: Tensor
    """Its numbers or bits, in the type of the holder."""
    kind: int
    """The `TensorProto.DataType`."""


def is_unsigned(c: Call) -> bool:
    """Whether a node takes or makes tensors of an unsigned type that the dialect lacks."""
    return any(isinstance(v, Unsigned) for v in c.inputs) or (c.node.op_type == "Cast" and c.attr("to") in HOLDERS)


def translated(c: Call, row: Callable[[Call], Result]) -> Result:
    """A node with unsigned tensors, by the row for their holders; `NotSupported` for operators that would give other
    numbers.
    """
    kinds = [v.kind if isinstance(v, Unsigned) else None for v in c.inputs if v is not None]
    op = c.node.op_type if c.node.domain in ("", "ai.onnx") else ""
    wide = replace(c, inputs=[v.value if isinstance(v, Unsigned) else v for v in c.inputs])
    kind = int(next((k for k in kinds if k is not None), c.attr("to", 0)))
    refusal = NotSupported(
        f"tensors of {onnx.TensorProto.DataType.Name(kind)} are not supported by it; cast them to INT64 before"
    )
    if not HOLDERS[kind].has_numbers or (op == "Cast" and c.attr("to") == onnx.TensorProto.UINT64):
        if op in ORDERED and all(k == kind for k in kinds):
            made = row(replace(wide, inputs=[_flipped(c, v) for v in wide.inputs]))
            return made if op in COMPARED else Unsigned(_flipped(c, _first(made)), kind)
        left = op == "BitShift" and c.attr("direction") == "LEFT"
        if op not in BITS | MOVED | {"Shape", "Size"} and not left:
            raise refusal
    if op == "Cast":
        to = c.attr("to")
        if to not in HOLDERS:
            return row(wide)
        node = onnx.NodeProto()
        node.CopyFrom(c.node)
        next(a for a in node.attribute if a.name == "to").i = onnx_type(HOLDERS[to].element)
        return Unsigned(_cut(c, row(replace(wide, node=node)), HOLDERS[to]), to)
    alike = all(k == kind for k in kinds)
    if op in ("Shape", "Size") or (op in COMPARED and alike) or (op == "Pow" and kinds[0] is None):
        return row(wide)
    if (op in CUT | SAME and alike) or (op in MOVED and kinds[0] is not None and not any(kinds[1:])):
        made = row(wide)
        return Unsigned(_cut(c, made, HOLDERS[kind]) if op in CUT else _first(made), kind)
    if op == "DequantizeLinear" and kind == onnx.TensorProto.UINT16:
        return row(wide)
    raise refusal


def _first(made: Result) -> Tensor:
    return cast(Tensor, made[0] if isinstance(made, tuple) else made)


def _cut(c: Call, made: Result, holder: Holder) -> Tensor:
    """The lowest bits of a result."""
    value = _first(made)
    if not holder.has_numbers:
        return value
    if isinstance(value, Known) and not value.has_dims:
        return Known(holder.held(value.array.astype(np.int64) & holder.mask), holder.element)
    return functions.bit_and(c.w, full(c.w, value), c.w.scalar(holder.mask, holder.element))


def _flipped(c: Call, value: Tensor) -> Tensor:
    """The bits of a uint64 with the highest one inverted: their order as signed numbers is that of the numbers."""
    least = np.iinfo(np.int64).min
    if isinstance(value, Known) and not value.has_dims:
        return Known(value.array ^ least, i64)
    return c.w.pointwise(BitXorOp, full(c.w, value), c.w.scalar(int(least), i64))
