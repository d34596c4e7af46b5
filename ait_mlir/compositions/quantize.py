"""Numbers with a scale: scales that follow from the values, and the two conversions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.compositions.functions import clamp, round_to_even
from ait_mlir.compositions.pad import pad
from ait_mlir.dialects.ait.dtypes import LARGEST, integer_range
from ait_mlir.dialects.ait.quantize import QUANTIZED, DequantizeOp, QuantizeOp, UnpackOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.dims import Expr, ceildiv, const

SMALLEST = 2.0**-100
"""The least scale: that of a block of zeros."""

Blocks = Sequence[Expr | int | None]
"""The size of a block along each dim; None is the whole dim."""


def sizes_of(x: SSAValue, blocks: Blocks) -> list[Expr | int]:
    """The size of a block along each dim of x."""
    return [dim if size is None else size for size, dim in zip(blocks, tensor_type(x).dims, strict=True)]


def dynamic_scale(w: Writer, x: SSAValue, element: Attribute, blocks: Blocks | None) -> SSAValue:
    """The scale of each block of x, so that its largest magnitude becomes the largest number of a type.

    The result is f32, or f64 for x of f64, and has a dim for each of x. Without blocks it is one number. The last block
    along a dim may be smaller, where the size of a block is a known number.
    """
    t = tensor_type(x)
    if element not in QUANTIZED:
        raise w.unsupported(f"{element} stores no quantised numbers; expected one of {', '.join(map(str, QUANTIZED))}")
    largest = LARGEST.get(element) or float((integer_range(element) or (0, 1))[1])
    x = w.pointwise("abs", w.cast(x, f64 if t.element_type == f64 else f32))
    parts: list[Expr | int] = []
    inner: list[int] = []
    kept: list[Expr | int] = []
    missing: list[Expr] = []
    if blocks is None:
        most = w.reduce("max", x, range(t.rank))
    else:
        for dim, size in zip(t.dims, sizes_of(x, blocks), strict=True):
            is_whole, number = size is dim, size if isinstance(size, int) else size.as_int()
            is_even = is_whole or number is None or w.scope.divisible(dim, number)
            count = dim // size if is_even else ceildiv(dim, size)
            parts += [dim] if is_whole or size == 1 else [count, size]
            if is_whole or size != 1:
                inner.append(len(parts) - 1)
            kept.append(1 if is_whole else dim if size == 1 else count)
            missing.append(const(0) if is_even else count * size - dim)
        if any(size.as_int() != 0 for size in missing):
            x = pad(w, x, [size for after in reversed(missing) for size in (const(0), after)])
        x = w.reshape(x, parts)
        most = w.reduce("max", x, inner, keep=True) if inner else x
    return w.reshape(w.maximum(w.div(most, largest), SMALLEST), kept)


def quantize(
    w: Writer,
    x: SSAValue,
    scale: SSAValue,
    element: Attribute,
    zero: SSAValue | None = None,
    blocks: Blocks | None = None,
) -> SSAValue:
    """x / scale, rounded to a type of quantised numbers, in the shape of x."""
    return w.put(QuantizeOp(x, scale, element, zero, None if blocks is None else sizes_of(x, blocks)))


def rounded_to_bytes(w: Writer, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """x / scale rounded to whole numbers, held as floats, and the scale, one number, as in ONNX's
    DynamicQuantizeLinear.

    256 evenly spaced numbers span the range of x and 0; 0 is exact.
    """
    axes = range(tensor_type(x).rank)
    low, high = w.minimum(w.reduce("min", x, axes), 0.0), w.maximum(w.reduce("max", x, axes), 0.0)
    width = w.sub(high, low)
    scale = w.where(w.compare("eq", width, 0), 1.0, w.div(width, 255.0))
    zero = round_to_even(w, clamp(w, w.neg(w.div(low, scale)), 0.0, 255.0))
    whole = clamp(w, w.add(round_to_even(w, w.div(x, scale)), zero), 0.0, 255.0)
    return w.sub(whole, zero), scale


def dequantize(
    w: Writer,
    x: SSAValue,
    scale: SSAValue,
    element: Attribute,
    zero: SSAValue | None = None,
    blocks: Blocks | None = None,
) -> SSAValue:
    """(x - zero) * scale in a float type, in the shape of x."""
    return w.put(DequantizeOp(x, scale, element, zero, None if blocks is None else sizes_of(x, blocks)))


def rounded(
    w: Writer, x: SSAValue, element: Attribute, group: int | None = None, scale: SSAValue | None = None
) -> SSAValue:
    """x, rounded to a type of quantised numbers and back.

    The scale is the given number, or is computed in the run, for each row or for each group of `group` numbers of a
    row. If x is a reshape that keeps the rows, its operand is quantised instead, so that the op which computes this
    operand can do so.
    """
    t, source = tensor_type(x), x
    while isinstance(op := source.owner, ReshapeOp) and _keeps_rows(op):
        source = op.input
    rows = [1 for _ in tensor_type(source).dims[:-1]]
    if scale is None:
        scale = dynamic_scale(w, source, element, [*rows, group])
        blocks = None if group is None else [*rows, group]
        numbers = quantize(w, source, scale, element, None, blocks)
        scale = w.reshape(scale, [*t.dims[:-1], tensor_type(scale).dims[-1]])
    else:
        numbers = quantize(w, source, scale, element)
    blocks = None if group is None else [*(1 for _ in t.dims[:-1]), group]
    return dequantize(w, w.reshape(numbers, t.dims), scale, t.element_type, None, blocks)


def _keeps_rows(op: ReshapeOp) -> bool:
    """Whether a reshape keeps the last dim, of at least one before it."""
    before, after = tensor_type(op.input).dims, tensor_type(op.output).dims
    return min(len(before), len(after)) > 1 and before[-1] is after[-1]


def unpack(w: Writer, x: SSAValue, size: Expr | int, element: Attribute) -> SSAValue:
    """The numbers of 4 bits in bytes, `size` along the last dim."""
    return w.put(UnpackOp(x, size, element))
