"""Products with weights that stay as they are stored, in 4 or 8 bits."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ait_mlir.compositions.contraction import stored_product
from ait_mlir.dialects.ait.data import ParamOp
from ait_mlir.dialects.ait.dtypes import BY_IR, is_byte
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.quantize import DequantizeOp, UnpackOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.reference.folds import LARGEST_COPY
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native

MOST_ROWS = {2: 64, 4: 16}
"""The most rows of x, by the bytes of an element: with more, converting the weight once and multiplying floats is
faster."""


@pattern(over=("packed", "bytes"))
def product_with_stored_weight(p: PatternBuilder, kind: str) -> None:
    """x @ dequantize(w)^T reads w as it is stored: a large weight with scales by row or by groups along k, and few rows
    of x"""
    x, w, weight, root = product_of_stored_weight(p, kind)
    p.require("has_few_rows", root)
    p.replace(root, "product_as_stored", x, w, weight)


@pattern(over=("packed", "bytes"))
def rows_with_stored_weight(p: PatternBuilder, kind: str) -> None:
    """x @ dequantize(w)^T reads w as it is stored: a large weight with scales by row or by groups along k"""
    x, w, weight, root = product_of_stored_weight(p, kind)
    p.require("multiplies_short_floats", root)
    p.replace(root, "product_as_stored", x, w, weight)


def product_of_stored_weight(p: PatternBuilder, kind: str) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
    """Match x @ dequantize(w)^T with a large weight; returns x, w, the operation that dequantises, and the product."""
    x, w = p.value(), p.value()
    numbers = p.result(p.op("ait.unpack", [w])) if kind == "packed" else w
    weight = p.op("ait.dequantize", [numbers, p.rest()])
    root = p.op("ait.gemm", [x, p.result(weight)], {"layout": "rcr"})
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.require("is_large_param", w, p.result(weight))
    p.require("scales_groups_of_rows", weight)
    return x, w, weight, root


WEIGHTS = patterns(product_with_stored_weight)
ROWS = patterns(rows_with_stored_weight)


# ** constraints and natives **


@constraint
def is_large_param(stored: SSAValue, weight: SSAValue) -> bool:
    """The stored numbers are a param of bytes, and the weight is too large to be computed before the run."""
    size = tensor_type(weight).byte_size().as_int()
    is_param = isinstance(stored.owner, ParamOp) and is_byte(tensor_type(stored).element_type)
    return is_param and size is not None and size > LARGEST_COPY


@constraint
def scales_groups_of_rows(weight: DequantizeOp) -> bool:
    """The scale and the zero point are numbers for each row of a matrix, or for groups along its rows."""
    group = group_of(weight)
    numbers = tensor_type(weight.input)
    even = isinstance(weight.input.owner, UnpackOp) and group is not None and group % 2 == 1
    return group is not None and (not even or group >= (numbers.dims[1].as_int() or 0))


@constraint
def multiplies_short_floats(root: GemmOp) -> bool:
    """x has floats of 2 or 4 bytes."""
    return BY_IR[tensor_type(root.a).element_type].bytes in MOST_ROWS


@constraint
def has_few_rows(root: GemmOp) -> bool:
    """x has at most 64 rows of f16 or bf16, or 16 of f32."""
    most = MOST_ROWS.get(BY_IR[tensor_type(root.a).element_type].bytes, 0)
    return scope_of(root).bounds(root.extents().m)[1] <= most


@native
def product_as_stored(r: Rewriter, x: SSAValue, stored: SSAValue, weight: DequantizeOp) -> Operation:
    """The product with the stored numbers."""
    group, signed = group_of(weight), "u" not in str(tensor_type(weight.input).element_type)
    assert group is not None
    packed = isinstance(weight.input.owner, UnpackOp)
    owner = stored_product(r, x, stored, weight.scale, weight.zero, group, packed and signed).owner
    assert isinstance(owner, Operation)
    return owner


def group_of(weight: DequantizeOp) -> int | None:
    """The size of the groups along the rows of a weight; None for other scales."""
    numbers = tensor_type(weight.input)
    given = [tensor_type(v) for v in (weight.scale, weight.zero) if v is not None]
    if numbers.rank != 2 or any(t.rank != 2 for t in given) or any(t.dims != given[0].dims for t in given):
        return None
    if weight.zero is not None and not is_byte(given[1].element_type):
        return None
    if str(given[0].element_type) not in ("f16", "bf16", "f32"):
        return None
    rows, columns = numbers.dims
    block = weight.block()
    if block is None:
        return columns.as_int() if given[0].dims[0] is rows and given[0].dims[1].as_int() == 1 else None
    return min(block[1].as_int() or 0, columns.as_int() or 0) or None if block[0].as_int() == 1 else None
