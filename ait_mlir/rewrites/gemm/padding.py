"""Products of odd sizes as products of even sizes, with zeros: kernels then read and write several elements at once."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, bf16, f16
from xdsl.ir import Operation, Region, SSAValue

from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType, tensor_type
from ait_mlir.dialects.ait.view import SliceOp
from ait_mlir.dims import Expr, const
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native


@pattern(over=("gemm", "bmm"))
def even_product(p: PatternBuilder, mnemonic: str) -> None:
    """x @ y = slice(pad(x) @ pad(y)), where two-byte rows of an odd number of elements get a zero at the end"""
    root = p.op(f"ait.{mnemonic}", p.values(2))
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.require("has_odd_rows", root)
    p.replace(root, "even_rows", root)


PADDING = patterns(even_product)


# ** constraints and natives **


def odd_sizes(op: ContractionOp) -> list[bool]:
    """Whether M, N and K are the length of the rows of an operand or of the result, known, odd and not 1."""
    a, b, c = op.layout.data
    _, m, k = op.split_a()
    _, _, n = op.split_b()
    long = ("c" in (a, c), b == "r" or c == "r", a == "r" or b == "c")
    return [rows and _is_odd(size) for rows, size in zip(long, (m, n, k), strict=True)]


def _is_odd(size: Expr) -> bool:
    number = size.as_int()
    return number is not None and number > 1 and number % 2 == 1


@constraint
def has_odd_rows(op: ContractionOp) -> bool:
    """Rows of two-byte elements, of an operand or of the result, have an odd number of elements, more than 1."""
    return tensor_type(op.a).element_type in (f16, bf16) and any(odd_sizes(op))


@native
def even_rows(r: Rewriter, op: ContractionOp) -> Operation:
    """The product with one more row, column or addend of zeros where their number is odd; the result is cut."""
    m, n, k = odd_sizes(op)
    a_axes, b_axes, c_axes = (op.matrix_axes(i) for i in range(3))
    a = _padded(r, op.a, [axis for axis, odd in zip(a_axes, (m, k), strict=True) if odd])
    b = _padded(r, op.b, [axis for axis, odd in zip(b_axes, (k, n), strict=True) if odd])
    result = tensor_type(op.output)
    enlarged = _grown(result, [axis for axis, odd in zip(c_axes, (m, n), strict=True) if odd])
    layout = {"layout": StringAttr(op.layout.data)}
    whole = r.create(type(op), [a, b], [enlarged], layout, [Region()])
    if enlarged == result:
        return whole
    starts = ShapeAttr((const(0),) * result.rank)
    return r.create(SliceOp, [whole.results[0]], [result], {"offsets": starts})


def _grown(t: TensorType, axes: list[int]) -> TensorType:
    dims = list(t.dims)
    for axis in axes:
        dims[axis] = dims[axis] + 1
    return TensorType.get(dims, t.element_type)


def _padded(r: Rewriter, value: SSAValue, axes: list[int]) -> SSAValue:
    if not axes:
        return value
    t = _grown(tensor_type(value), axes)
    return r.insert(PadOp("constant", value, [0] * t.rank, t.dims)).results[0]
