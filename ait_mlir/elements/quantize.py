"""Elements of numbers with a scale: each reads the number of its block."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, f64, i32
from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR, compute_type, i4, is_float, ui8
from ait_mlir.dialects.ait.elementwise import (
    AddOp,
    BitAndOp,
    BitXorOp,
    ClampOp,
    DivOp,
    MulOp,
    RoundOp,
    ShiftRightOp,
    SubOp,
)
from ait_mlir.dialects.ait.quantize import DequantizeOp, QuantizeOp, ScaledOp, UnpackOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import Expr, const
from ait_mlir.elements.elementwise import broadcast
from ait_mlir.elements.table import elements_of
from ait_mlir.elements.writer import ElementWriter, Index, NoElements


@elements_of(QuantizeOp)
def _(op: QuantizeOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    source, target = tensor_type(op.input).element_type, tensor_type(op.output).element_type
    wide = _wide(source)
    value = w.op(DivOp, w.cast(w.element(op.input, index), source, wide), number(op, w, op.scale, index, wide))
    if is_float(target):
        largest = BY_IR[target].largest
        return w.cast(w.add(ClampOp(value, -largest, largest)), wide, target)
    value = w.op(RoundOp, value)
    if op.zero is not None:
        value = w.op(AddOp, value, number(op, w, op.zero, index, wide))
    return w.cast(value, wide, target)


@elements_of(DequantizeOp)
def _(op: DequantizeOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    source, target = tensor_type(op.input).element_type, tensor_type(op.output).element_type
    wide = _wide(target)
    value = w.cast(w.element(op.input, index), source, wide)
    scale = number(op, w, op.scale, index, wide)
    if op.zero is not None:
        value = w.op(SubOp, value, number(op, w, op.zero, index, wide))
    value = w.op(MulOp, value, scale)
    return value if wide == compute_type(target) else w.cast(value, wide, target)


def _wide(element: Attribute) -> Attribute:
    """The type in which values of a float type are scaled."""
    return f64 if element == f64 else f32


def number(op: ScaledOp, w: ElementWriter, tensor: SSAValue, index: Sequence[Index], wide: Attribute) -> SSAValue:
    """The scale or the zero point of an element."""
    if (block := op.block()) is None:
        at = broadcast(tensor, index)
    else:
        dims = tensor_type(op.input).dims
        at = [block_of(i, size, dim) for i, size, dim in zip(index, block, dims, strict=True)]
    return w.cast(w.element(tensor, at), tensor_type(tensor).element_type, wide)


def block_of(index: Index, size: Expr, dim: Expr) -> Index:
    """The block of an index along a dim."""
    if size is dim:
        return const(0)
    if size.as_int() == 1:
        return index
    if not isinstance(index, Expr):
        raise NoElements("the block of an index that is a value")
    return index // size


@elements_of(UnpackOp)
def _(op: UnpackOp, w: ElementWriter, position: int, index: Sequence[Index]) -> SSAValue:
    last, element = index[-1], tensor_type(op.output).element_type
    if not isinstance(last, Expr):
        raise NoElements("an index of packed numbers that is a value")
    byte = w.cast(w.element(op.input, [*index[:-1], last // 2]), ui8, i32)
    half = w.simplified(last % 2)
    bits = w.op(BitAndOp, w.op(ShiftRightOp, byte, w.number(4 * half, i32)), w.constant(15, i32))
    if element == i4:
        bits = w.op(SubOp, w.op(BitXorOp, bits, w.constant(8, i32)), w.constant(8, i32))
    return w.cast(bits, i32, element)
