"""Quantised tensors of 8, 16 and 32 bits: conversions to and from floats, products and convolutions."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.compositions import functions
from ait_mlir.compositions.contraction import product_with_rows
from ait_mlir.compositions.index import slices_at
from ait_mlir.dialects.ait.dtypes import integer_range, is_float, ui8
from ait_mlir.dialects.ait.quantize import DequantizeOp, QuantizeOp
from ait_mlir.dialects.ait.types import Shape, tensor_type
from ait_mlir.importers.onnx.call import Call, NotSupported, Row, element_of
from ait_mlir.importers.onnx.known import Known
from ait_mlir.importers.onnx.rows.contraction import centred_matmul
from ait_mlir.importers.onnx.rows.conv import convolved


def _placed(c: Call, value: SSAValue, dims: Shape, axis: int, block: int) -> SSAValue:
    """A scale or zero point that broadcasts to these dims, or has a number for each block along an axis."""
    own = tensor_type(value).dims
    if block:
        return value
    if not own or (len(own) == 1 and own[0].as_int() == 1):
        return c.w.reshape(value, ())
    if len(own) == 1:
        return c.w.reshape(value, (own[0], *(1 for _ in dims[axis + 1 :])))
    raise NotSupported(f"a scale of rank {len(own)} without block_size; expected one for all or along an axis")


def _axis(c: Call, dims: Shape) -> int:
    """The attribute `axis`, which counts only if there is more than one scale."""
    return 0 if all(d.as_int() == 1 for d in c.shape(1)) and not c.attr("block_size", 0) else c.axis(1, len(dims))


def _blocks(c: Call, dims: Shape, axis: int) -> list[int] | None:
    """The sizes of blocks along all dims; None if the scale broadcasts."""
    block = c.attr("block_size", 0)
    return [block if i == axis else 1 for i in range(len(dims))] if block else None


def _check_scale(c: Call) -> None:
    """Raise for a scale of known numbers that no value can have."""
    scale = c.value(1)
    if isinstance(scale, Known) and not scale.has_dims:
        numbers = scale.array.astype(np.float64).reshape(-1)
        if bad := [n for n in numbers.tolist() if not (n > 0 and math.isfinite(n))]:
            name = c.node.input[1]
            raise NotSupported(f"the scale {name!r} has the number {bad[0]}, expected finite numbers above 0")


def _zero_of_float(c: Call) -> None:
    """Raise for a zero point of a float type that is known not to be 0."""
    zero = c.value(2) if c.has(2) else None
    if isinstance(zero, Known) and np.any(zero.array.astype(np.float64) != 0):
        raise NotSupported(f"the zero point {c.node.input[2]!r} of a float type is not 0")


def with_zero(c: Call, quotient: SSAValue, zero: SSAValue | None, ends: tuple[int, int], to: Attribute) -> SSAValue:
    """Quotients rounded to integers, a tie to the even one, moved by a zero point, within the range of a type."""
    whole = functions.round_to_even(c.w, quotient)
    if zero is not None:
        whole = c.w.add(whole, c.w.cast(zero, tensor_type(whole).element_type))
    return c.w.cast(functions.clamp(c.w, whole, float(ends[0]), float(ends[1])), to)


def _quantised(c: Call, quotient: SSAValue, zero: SSAValue) -> SSAValue:
    """Quotients as integers of the type of the zero point."""
    to = tensor_type(zero).element_type
    return with_zero(c, quotient, _one(c, zero), integer_range(to) or (0, 1), to)


def quantize(c: Call) -> SSAValue:
    x = c.tensor(0)
    dims, block = tensor_type(x).dims, c.attr("block_size", 0)
    axis = _axis(c, dims)
    named = c.element_attr("output_dtype") if c.attr("output_dtype", 0) else ui8
    to = element_of(c.value(2)) if c.has(2) else named
    _check_scale(c)
    if not is_float(tensor_type(x).element_type):
        x = c.w.cast(x, f32)
    scale, zero = _placed(c, c.tensor(1), dims, axis, block), None
    if is_float(to):
        _zero_of_float(c)
    elif c.has(2):
        zero = _placed(c, c.tensor(2), dims, axis, block)
    return c.w.put(QuantizeOp(x, scale, to, zero, _blocks(c, dims, axis)))


def dequantize(c: Call) -> SSAValue:
    """(x - zero) * scale, in the type of the scale."""
    x = c.tensor(0)
    dims, block = tensor_type(x).dims, c.attr("block_size", 0)
    axis = _axis(c, dims)
    _check_scale(c)
    scale, zero = _placed(c, c.tensor(1), dims, axis, block), None
    to = c.element_attr("output_dtype") if c.attr("output_dtype", 0) else tensor_type(scale).element_type
    if is_float(tensor_type(x).element_type):
        _zero_of_float(c)
    elif c.has(2):
        zero = _placed(c, c.tensor(2), dims, axis, block)
    return c.w.put(DequantizeOp(x, scale, to, zero, _blocks(c, dims, axis)))


# ** numbers of types that `ait.quantize` lacks, which other types hold **


def _spread(c: Call, index: int) -> SSAValue:
    """An input, a scale or a zero point, that broadcasts to the first input; a number of a block is repeated."""
    value, dims, block = c.tensor(index), c.shape(0), c.attr("block_size", 0)
    axis = _axis(c, dims)
    if not block:
        return _placed(c, value, dims, axis, 0)
    own = tensor_type(value).dims
    parted = c.w.reshape(value, (*own[: axis + 1], 1, *own[axis + 1 :]))
    repeated = c.w.expand(parted, (*own[: axis + 1], block, *own[axis + 1 :]))
    return c.w.slice(c.w.reshape(repeated, (*own[:axis], own[axis] * block, *own[axis + 1 :])), axis, 0, dims[axis])


def quantize_to(c: Call, ends: tuple[int, int] | None, to: Attribute) -> SSAValue:
    """The first input divided by its scale: rounded to integers of a range, or as it is for floats."""
    x = c.tensor(0)
    _check_scale(c)
    wide = f64 if tensor_type(x).element_type == f64 else f32
    quotient = c.w.div(c.w.cast(x, wide), c.w.cast(_spread(c, 1), wide))
    if ends is None:
        _zero_of_float(c)
        return quotient
    return with_zero(c, quotient, _spread(c, 2) if c.has(2) else None, ends, to)


def dequantize_from(c: Call) -> SSAValue:
    """(x - zero) * scale, computed in f32, or in f64 if the scale is f64."""
    x = c.tensor(0)
    _check_scale(c)
    named = c.element_attr("output_dtype") if c.attr("output_dtype", 0) else c.element(1)
    wide = f64 if c.element(1) == f64 else f32
    if is_float(tensor_type(x).element_type):
        _zero_of_float(c)
    elif c.has(2):
        x = c.w.sub(c.w.cast(x, i32), c.w.cast(_spread(c, 2), i32))
    return c.w.cast(c.w.mul(c.w.cast(x, wide), c.w.cast(_spread(c, 1), wide)), named)


def _centred(c: Call, index: int, axis_from_end: int) -> SSAValue:
    """An operand of integers minus its zero point, as i32; the zero point is one number, or one for each slice."""
    x = c.w.cast(c.tensor(index), i32)
    zero = c.w.cast(c.tensor(index + 2), i32)
    dims = tensor_type(zero).dims
    if len(dims) == 1 and dims[0].as_int() == 1:
        zero = c.w.reshape(zero, ())
    elif len(dims) == 1 and axis_from_end > 1:
        zero = c.w.reshape(zero, (*dims, *(1 for _ in range(axis_from_end - 1))))
    return c.w.sub(x, zero)


def q_linear_matmul(c: Call) -> SSAValue:
    """a @ b of quantised matrices, quantised again."""
    y = c.w.cast(centred_matmul(c, (0, 2), (3, 5)), f32)
    first, second = c.w.cast(c.tensor(1), f32), c.w.cast(c.tensor(4), f32)
    first, second = (_one(c, v) for v in (first, second))
    if len(tensor_type(first).dims) == 1:
        first = c.w.reshape(first, (*tensor_type(first).dims, 1))
    scaled = c.w.div(c.w.mul(y, c.w.mul(first, second)), _one(c, c.w.cast(c.tensor(6), f32)))
    return _quantised(c, scaled, c.tensor(7))


def _one(c: Call, value: SSAValue) -> SSAValue:
    """A tensor of one element as a scalar; others as they are."""
    dims = tensor_type(value).dims
    return c.w.reshape(value, ()) if all(d.as_int() == 1 for d in dims) else value


def q_linear_conv(c: Call) -> SSAValue:
    """A convolution of quantised tensors, quantised again; the sums are exact in f64."""
    x = c.w.cast(_centred(c, 0, 1), f64)
    weight = c.w.cast(_centred(c, 3, tensor_type(c.tensor(3)).rank), f64)
    y = convolved(c, x, weight, None)
    rank = tensor_type(y).rank
    if c.has(8):
        bias = c.w.cast(c.tensor(8), f64)
        y = c.w.add(y, c.w.reshape(bias, (*tensor_type(bias).dims, *(1 for _ in range(rank - 2)))))
    scale = _one(c, c.w.cast(c.tensor(4), f64))
    if tensor_type(scale).dims:
        scale = c.w.reshape(scale, (*tensor_type(scale).dims, *(1 for _ in range(rank - 2))))
    factor = c.w.mul(_one(c, c.w.cast(c.tensor(1), f64)), scale)
    scaled = c.w.div(c.w.mul(y, factor), _one(c, c.w.cast(c.tensor(6), f64)))
    return _quantised(c, scaled, c.tensor(7))


def matmul_n_bits(c: Call) -> SSAValue:
    """`com.microsoft.MatMulNBits`: a @ b^T + bias, with b [N, blocks, bytes] of 4 or 8 bits and a scale, maybe a zero
    point, for each block of a row; `g_idx` may give each column another block.
    """
    bits, size = c.attr("bits", 4), c.attr("block_size", 0)
    rows, columns = c.attr("N", 0), c.attr("K", 0)
    if bits not in (4, 8) or size < 16 or rows < 1 or columns < 1:
        raise NotSupported(f"bits {bits}, block_size {size}, N {rows}, K {columns}; expected 4 or 8 bits and sizes")
    x, blocks = c.tensor(0), -(-columns // size)
    element = tensor_type(x).element_type
    weight = c.w.cast(_unpacked(c, c.tensor(1), bits, (rows, blocks, size)), f32)
    scale = c.w.reshape(c.w.cast(c.tensor(2), f32), (rows, blocks, 1))
    zero = None
    if c.has(3):
        zero = c.tensor(3)
        if not is_float(tensor_type(zero).element_type):
            each = -(-blocks * bits // 8) * 8 // bits
            zero = c.w.slice(_unpacked(c, zero, bits, (rows, each)), 1, 0, blocks)
        zero = c.w.reshape(c.w.cast(zero, f32), (rows, blocks, 1))
    if c.has(4):  # the block of each column, which need not be the one that holds it
        weight = c.w.slice(c.w.reshape(weight, (rows, blocks * size, 1)), 1, 0, columns)
        ids = c.w.cast(c.w.slice(c.tensor(4), 0, 0, columns), i64)
        scale, zero = (None if v is None else c.w.full(slices_at(c.w, v, 1, ids)) for v in (scale, zero))
        assert scale is not None
    weight = c.w.sub(weight, 1 << bits - 1) if zero is None else c.w.sub(weight, zero)
    weight = c.w.mul(weight, scale)
    taken = columns if c.has(4) else blocks * size
    whole = c.w.slice(c.w.reshape(weight, (rows, taken)), 1, 0, columns)
    c.same(tensor_type(x).dims[-1], tensor_type(whole).dims[1])
    y = product_with_rows(c.w, x, c.w.cast(whole, element))
    return c.w.add(y, c.tensor(5)) if c.has(5) else y


def _unpacked(c: Call, packed: SSAValue, bits: int, dims: tuple[int, ...]) -> SSAValue:
    """The numbers of 4 or 8 bits in bytes, as i32 of a shape; the lower half of a byte comes first."""
    wide = c.w.cast(packed, i32)
    if bits == 4:
        count = tensor_type(packed).num_elements()
        flat = c.w.reshape(wide, (count, 1))
        wide = c.w.concat([c.w.pointwise("bit_and", flat, 15), c.w.pointwise("shift_right", flat, 4)], 1)
    return c.w.reshape(wide, dims)


ROWS: dict[str, Row] = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "QLinearMatMul": q_linear_matmul,
    "QLinearConv": q_linear_conv,
    "com.microsoft.MatMulNBits": matmul_n_bits,
}
