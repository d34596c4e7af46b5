"""Nodes with tensors of types that the dialect lacks: other types hold their elements (`holders.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
from xdsl.dialects.builtin import f32, f64, i1, i16, i32, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.compositions import functions
from ait_mlir.compositions.bits import reinterpreted
from ait_mlir.compositions.narrow_floats import rounded
from ait_mlir.compositions.unsigned import divided, from_float, remainder, shifted_right, to_float
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.elementwise import BitXorOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Tensor, element_of, full
from ait_mlir.importers.onnx.holders import HOLDERS, Held, Holder
from ait_mlir.importers.onnx.known import Known, element_type, name_of_type
from ait_mlir.importers.onnx.rows.common import broadcast
from ait_mlir.importers.onnx.rows.elementwise import converted
from ait_mlir.importers.onnx.rows.quantized import dequantize_from, quantize_to

CUT = frozenset(("Add", "Sub", "Mul", "BitShift", "BitwiseNot"))
"""Operators whose results may have more bits, which are cut off."""
SAME = frozenset(("Div", "Mod", "Max", "Min", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Concat"))
"""Operators with results of the type of all inputs."""
BITS = frozenset(("Add", "Sub", "Mul", "BitwiseNot", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Concat"))
"""Operators that give the right bits if only the bits are held."""
ORDERED = frozenset(("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Max", "Min", "TopK"))
"""Operators that need only the order of the numbers."""
COMPARED = frozenset(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"))
MOVED = frozenset(
    ("Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Expand", "Slice", "Tile", "Gather")
)
"""Operators of whose inputs only the first has the type of the result."""
SHAPES = frozenset(("Shape", "Size"))
CONVERSIONS = {"Cast": "to", "BitCast": "to", "QuantizeLinear": "output_dtype"}
"""Operators with an attribute that names the type of the result."""
SIGNED: dict[int, Attribute] = {2: i16, 4: i32, 8: i64}
"""Integers with a sign by their bytes."""

Row = Callable[[Call], Result]


def has_held(c: Call) -> bool:
    """Whether a node takes or makes tensors of a type that the dialect lacks."""
    attribute = CONVERSIONS.get(c.node.op_type) if c.node.domain in ("", "ai.onnx") else None
    return any(isinstance(v, Held) for v in c.inputs) or (attribute is not None and c.attr(attribute) in HOLDERS)


def translated(c: Call, row: Row) -> Result:
    """A node with tensors of types that the dialect lacks, by the row for their holders; `NotSupported` for operators
    that would give other numbers.
    """
    op = c.node.op_type if c.node.domain in ("", "ai.onnx") else ""
    wide = replace(c, inputs=[v.value if isinstance(v, Held) else v for v in c.inputs])
    kinds = [v.kind if isinstance(v, Held) else None for v in c.inputs if v is not None]
    made = None
    if op in RULES:
        made = RULES[op](c, wide)
    elif kinds[0] is not None and op in MOVED and not any(kinds[1:]):
        made = Held(_first(row(wide)), kinds[0])
    elif op in SHAPES:
        made = row(wide)
    elif (kind := next(k for k in kinds if k is not None)) and not HOLDERS[kind].is_float:
        made = _computed(c, wide, op, kinds, row)
    if made is None:
        kind = next((k for k in kinds if k is not None), None)
        name = name_of_type(int(c.attr(CONVERSIONS[op]) if kind is None else kind))
        wanted = "FLOAT" if kind is not None and HOLDERS[kind].is_float else "INT64"
        raise NotSupported(f"tensors of {name} are not supported by it; cast them to {wanted} before")
    return made


def _computed(c: Call, wide: Call, op: str, kinds: list[int | None], row: Row) -> Result:
    """The result of an operator that computes with unsigned integers of 16 bits and more; None for other ones."""
    kind = next(k for k in kinds if k is not None)
    holder = HOLDERS[kind]
    if holder.outside.kind != "u":
        return None
    alike = all(k == kind for k in kinds)
    if not holder.has_numbers:
        return _of_bits(c, wide, op, kinds, row)
    if (op in COMPARED and alike) or (op == "Pow" and kinds[0] is None):
        return row(wide)
    if op == "TopK":
        values, *places = row(wide)
        return Held(values, kind), *places
    if op in CUT | SAME and alike:
        made = _first(row(wide))
        return Held(_cut(c, made, holder) if op in CUT else made, kind)
    return None


def _of_bits(c: Call, wide: Call, op: str, kinds: list[int | None], row: Row) -> Result:
    """The result of an operator that computes with numbers of uint64, whose bits are held; None for other ones."""
    kind = next(k for k in kinds if k is not None)
    if op == "TopK":
        values, *places = row(replace(wide, inputs=[_flipped(c, wide.value(0)), *wide.inputs[1:]]))
        return Held(_flipped(c, values), kind), *places
    if op == "Pow" and kinds[0] is None:
        exponent = to_float(c.w, wide.tensor(1), f64)
        return row(replace(wide, inputs=[wide.inputs[0], exponent]))
    if not all(k == kind for k in kinds):
        return None
    if op in ORDERED:
        made = row(replace(wide, inputs=[_flipped(c, v) for v in wide.inputs]))
        return made if op in COMPARED else Held(_flipped(c, _first(made)), kind)
    if op in BITS or (op == "BitShift" and c.attr("direction") == "LEFT"):
        made = row(wide)
        return made if op in COMPARED else Held(_first(made), kind)
    if op in FUNCTIONS:
        return Held(FUNCTIONS[op](c.w, *broadcast(wide)), kind)
    return None


FUNCTIONS: dict[str, Callable[..., SSAValue]] = {"Div": divided, "Mod": remainder, "BitShift": shifted_right}
"""Operators that compute with the bits of numbers of uint64."""


# ** conversions **


def _cast(c: Call, wide: Call) -> Result:
    """A tensor converted to the type that an attribute or another tensor has."""
    like = c.given(1) if c.node.op_type == "CastLike" else None
    to = like.kind if isinstance(like, Held) else c.attr("to")
    source, value = c.given(0), wide.value(0)
    holder = source.holder if isinstance(source, Held) else None
    if to not in HOLDERS:
        element = element_type(to) if like is None else element_of(cast(Tensor, like))
        x = full(c.w, value)
        if holder is not None and not holder.has_numbers and is_float(element):
            return to_float(c.w, x, element)
        return converted(wide, x, element)
    target = HOLDERS[to]
    if isinstance(value, Known) and not value.has_dims and not (target.is_float or is_float(value.element)):
        numbers = value.array if holder is None else holder.given(value.array)
        return Held(Known(target.held(target.given(numbers)), target.element), to)
    x = full(c.w, value)
    element = tensor_type(x).element_type
    if target.is_float:
        if holder is not None and not holder.has_numbers:
            x = to_float(c.w, x, f64)
        return Held(c.w.cast(_narrow(c, x, target, bool(c.attr("saturate", 1))), target.element), to)
    if is_float(element):
        if not target.has_numbers:
            return Held(from_float(c.w, x), to)
        x = c.w.cast(x, i64 if target.element == i64 else i32)
    elif element == i1 or target.element == i64:
        x = c.w.cast(x, target.element)
    return Held(_cut(c, x, target), to)


def _narrow(c: Call, x: SSAValue, target: Holder, saturates: bool) -> SSAValue:
    """Numbers rounded to those of a narrow float, as f32 or f64."""
    if not is_float(tensor_type(x).element_type):
        x = c.w.cast(x, f64 if tensor_type(x).element_type in (i32, i64) else f32)
    return rounded(c.w, x, target.outside, saturates)


def _bit_cast(c: Call, wide: Call) -> Result:
    """The memory of a tensor as elements of a type of the same width; None for types of fewer bits than 16."""
    source, to = c.given(0), c.attr("to")
    kinds = [source.kind if isinstance(source, Held) else None, to if to in HOLDERS else None]
    if any(k is not None and HOLDERS[k].outside.kind != "u" for k in kinds):
        return None
    x = wide.tensor(0)
    if isinstance(source, Held):
        x = c.w.cast(x, SIGNED[source.holder.outside.itemsize])
    if to not in HOLDERS:
        return reinterpreted(c.w, x, element_type(to), tensor_type(x).dims)
    target = HOLDERS[to]
    bits = reinterpreted(c.w, x, SIGNED[target.outside.itemsize], tensor_type(x).dims)
    return Held(_cut(c, c.w.cast(bits, target.element), target), to)


def _quantize(c: Call, wide: Call) -> Result:
    """x / scale rounded to the numbers of a type that the dialect lacks; None for a zero point of another type."""
    zero = c.inputs[2] if c.has(2) else None
    if zero is not None and not isinstance(zero, Held):
        return None
    to = c.attr("output_dtype", 0) if zero is None else zero.kind
    if to not in HOLDERS or any(isinstance(v, Held) for v in c.inputs[:2]):
        return None
    target = HOLDERS[to]
    if not target.has_numbers:
        return None
    made = quantize_to(wide, None if target.is_float else target.ends, target.element)
    if target.is_float:
        made = c.w.cast(_narrow(c, made, target, saturates=True), target.element)
    return Held(made, to)


def _dequantize(c: Call, wide: Call) -> Result:
    """(x - zero) * scale; None for numbers of which only the bits are held."""
    if any(isinstance(v, Held) and not v.holder.has_numbers for v in c.inputs) or isinstance(c.given(1), Held):
        return None
    return dequantize_from(wide)


RULES: dict[str, Callable[[Call, Call], Result]] = {
    "Cast": _cast,
    "CastLike": _cast,
    "BitCast": _bit_cast,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
}
"""Operators between types: each takes the node with the tensors as they are, and with those that hold them."""


def _first(made: Result) -> Tensor:
    return cast(Tensor, made[0] if isinstance(made, tuple) else made)


def _cut(c: Call, value: Tensor, holder: Holder) -> Tensor:
    """The lowest bits of integers, as numbers of a type."""
    if isinstance(value, Known) and not value.has_dims and holder.outside.kind == "u":
        return Known(holder.held(value.array.astype(np.int64) & holder.mask), holder.element)
    x = full(c.w, value)
    if holder.has_numbers:
        low = holder.ends[0]
        x = functions.bit_and(c.w, x, c.w.scalar_like(holder.mask, x))
        if low:
            x = c.w.sub(c.w.pointwise(BitXorOp, x, -low), -low)
    return c.w.cast(x, holder.element)


def _flipped(c: Call, value: Tensor) -> Tensor:
    """The bits of a uint64 with the highest one inverted: their order as signed numbers is that of the numbers."""
    least = np.iinfo(np.int64).min
    if isinstance(value, Known) and not value.has_dims:
        return Known(value.array ^ least, i64)
    return c.w.pointwise(BitXorOp, full(c.w, value), c.w.scalar(int(least), i64))
