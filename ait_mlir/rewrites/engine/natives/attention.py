"""What attention needs besides new operations: scales and masks from constants, heads, and operands of 4 dims."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, UnitAttr, f64
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.elementwise import AddOp, CompareOp, DivOp, MulOp
from ait_mlir.dialects.ait.gemm import BmmOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp, SliceOp
from ait_mlir.dims import Expr, const
from ait_mlir.rewrites.engine.constraints import CONSTRAINTS
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.natives.table import NATIVES
from ait_mlir.rewrites.engine.natives.views import reshape
from ait_mlir.rewrites.engine.numbers import element_type_of, splat


@CONSTRAINTS
def is_nonzero_splat(value: SSAValue) -> bool:
    """The value is an `ait.constant` with one number, not 0, for all elements, so that dividing by it is a scale."""
    number = splat(value)
    return number is not None and number != 0


@NATIVES
def number(value: SSAValue) -> Attribute:
    """The number of a splat constant as an f64 attribute."""
    found = splat(value)
    assert found is not None, "number needs is_any_splat"
    return FloatAttr(float(found), f64)


@NATIVES
def reciprocal(value: SSAValue) -> Attribute:
    """1 / the number of a splat constant as an f64 attribute."""
    found = splat(value)
    assert found, "reciprocal needs is_nonzero_splat"
    return FloatAttr(1 / float(found), f64)


@NATIVES
def with_heads(r: Rewriter, value: SSAValue) -> SSAValue:
    """[B, S, D] as [B, 1, S, D]; a tensor of 2 dims or less broadcasts and stays."""
    dims = tensor_type(value).dims
    return reshape(r, value, (dims[0], 1, *dims[1:])).results[0] if len(dims) == 3 else value


@NATIVES
def in_pieces(r: Rewriter, root: Operation, k: SSAValue, v: SSAValue, k1: SSAValue, v1: SSAValue) -> Operation:
    """The attention with keys and values in two pieces."""
    operands = [root.operands[0], k, v, k1, v1, *root.operands[3:]]
    return r.create(type(root), operands, root.result_types, {**root.properties, **root.attributes})


@NATIVES
def like(r: Rewriter, op: Operation, root: Operation) -> Operation:
    """The result of `op` in the shape of the root's result."""
    return reshape(r, op.results[0], tensor_type(root.results[0]).dims)


# ** masks **

HIDING = -9e3
"""A score with this added has no weight beside one without: by a factor of e^9000. (bf16 has -9984 for -1e4.)"""


@CONSTRAINTS
def is_of_products(value: SSAValue) -> bool:
    """The value comes from an `ait.bmm`, or is scaled, and what is scaled comes from one."""
    owner = value.owner
    sources = [value, *owner.operands] if isinstance(owner, MulOp | DivOp) else [value]
    return any(isinstance(source.owner, BmmOp) for source in sources)


@CONSTRAINTS
def is_hiding_splat(value: SSAValue) -> bool:
    """The value is an `ait.constant` of one number so far below 0 that a score with it added has no weight."""
    number = splat(value)
    return number is not None and number <= HIDING


@CONSTRAINTS
def is_up_to_diagonal(condition: CompareOp, attention: AttentionOp) -> bool:
    """`a >= b` holds where a row of the attention sees a column if it is causal; each row sees one."""
    return _is_triangle(condition.lhs, condition.rhs, attention, const(0))


@CONSTRAINTS
def is_behind_diagonal(condition: CompareOp, attention: AttentionOp) -> bool:
    """`a >= b` holds where a row of the attention does not see a column if it is causal; each row sees one."""
    return _is_triangle(condition.rhs, condition.lhs, attention, const(1))


def _is_triangle(rows: SSAValue, columns: SSAValue, attention: AttentionOp, least: Expr) -> bool:
    """Whether `rows - columns >= least` says that the column is at most the one at which the row stands."""
    row, column = counting(rows), counting(columns)
    if row is None or column is None or (row[0], column[0]) != (-2, -1):
        return False
    scope, high, wide = scope_of(attention), tensor_type(attention.q).dims[2], tensor_type(attention.k).dims[2]
    sizes = scope.equal(tensor_type(rows).dims[-2], high) and scope.equal(tensor_type(columns).dims[-1], wide)
    return sizes and scope.equal(row[1] - column[1] - least, wide - high) and scope.le(high, wide)


def counting(value: SSAValue) -> tuple[int, Expr] | None:
    """The axis, from the end, along which integers count up by one, and the first of them; None for other values."""
    axis, first = -1, const(0)
    if tensor_type(value).rank > 1:
        dims = tensor_type(value).dims
        moving = [a - len(dims) for a, d in enumerate(dims) if d.as_int() != 1]
        if len(moving) != 1:
            return None
        axis = moving[0]
    while not isinstance(owner := value.owner, ConstantOp):
        if isinstance(owner, ReshapeOp):
            value = owner.input
        elif isinstance(owner, SliceOp) and tensor_type(value).rank == 1:
            value, first = owner.input, first + owner.offsets.data[0]
        elif isinstance(owner, AddOp) and (number := splat(owner.rhs)) is not None and owner.lhs.type == value.type:
            value, first = owner.lhs, first + int(number)
        else:
            return None
    numbers = owner.values()
    if tensor_type(value).rank != 1 or numbers != list(range(int(numbers[0]), int(numbers[0]) + len(numbers))):
        return None
    return axis, first + int(numbers[0])


@NATIVES
def zero_like(r: Rewriter, value: SSAValue) -> SSAValue:
    """A constant 0.0 of the element type of a value, without dims."""
    scalar = TensorType.get((), element_type_of(value))
    return r.create(ConstantOp, [], [scalar], {"value": FloatAttr(0.0, f64)}).results[0]


@NATIVES
def causal_attention(r: Rewriter, root: AttentionOp, mask: SSAValue) -> Operation:
    """The attention, causal, with another mask; without one where that adds 0 everywhere."""
    operands = [*root.operands[:3], *([] if splat(mask) == 0 else [mask])]
    properties = root.properties | root.attributes | {"causal": UnitAttr()}
    return r.create(AttentionOp, operands, list(root.result_types), properties)


# ** heads **


@CONSTRAINTS
def repeats_heads(value: SSAValue, single: SSAValue, several: SSAValue, merged: SSAValue) -> bool:
    """[B, G, L, D], [B, G, 1, L, D], [B, G, n, L, D], [B, G * n, L, D]: each head n times in turn."""
    own, one, many, whole = (tensor_type(x).dims for x in (value, single, several, merged))
    if len(own) != 4 or len(many) != 5:
        return False
    batch, heads, *rest = own
    return (
        one == (batch, heads, const(1), *rest)
        and many == (batch, heads, many[2], *rest)
        and (whole == (batch, heads * many[2], *rest))
    )


@NATIVES
def attention_to(r: Rewriter, root: AttentionOp, k: SSAValue, v: SSAValue) -> Operation:
    """The attention with other keys and values."""
    operands = [root.operands[0], k, v, *root.operands[3:]]
    return r.create(AttentionOp, operands, list(root.result_types), root.properties | root.attributes)
