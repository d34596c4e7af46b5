"""Attention: the operator, and the products and the softmax as which exporters write it."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from ait_mlir.building.formulas import Mask
from ait_mlir.compositions.attention import hiding
from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.elementwise import AddOp, CompareOp, MulOp, WhereOp
from ait_mlir.dialects.ait.gemm import BmmOp
from ait_mlir.dialects.ait.norm import SoftmaxOp
from ait_mlir.dialects.ait.numbers import literal_values
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp
from ait_mlir.importers.onnx.call import Call, Result, Row
from ait_mlir.rewrites.attention import MAX_HEAD_SIZE

OTHERS = ("softcap", "qk_matmul_output_mode", "softmax_precision", "left_window_size", "right_window_size")
"""Attributes with which the operator is written as onnx defines it."""


def attention(c: Call) -> Result:
    """softmax(scale * q @ k^T + mask) @ v; None for uses that are written as onnx defines the operator."""
    if len(c.inputs) > 4 and any(v is not None for v in c.inputs[4:]):
        return None
    if any(c.node.output[1:]) or any(c.attr(name) not in (None, 0, -1) for name in OTHERS):
        return None
    q, k, v = (c.tensor(i) for i in range(3))
    flat = tensor_type(q).rank == 3
    if flat:
        heads = c.attr("q_num_heads", 0), c.attr("kv_num_heads", 0)
        q, k, v = (_heads(c, x, n) for x, n in ((q, heads[0]), (k, heads[1]), (v, heads[1])))
    if not tensor_type(q).rank == tensor_type(k).rank == tensor_type(v).rank == 4:
        return None
    (*_, rows, size), columns = tensor_type(q).dims, tensor_type(k).dims[2]
    width = tensor_type(v).dims[3].as_int()
    if size.as_int() is None or width is None or max(size.as_int() or 0, width) > MAX_HEAD_SIZE:
        return None
    mask = None
    if c.has(3):
        mask = c.natural(3)
        if tensor_type(mask).element_type == i1:
            mask = hiding(c.w, Mask(tensor_type(mask).dims, (), (mask,)), tensor_type(q).element_type)
        if tensor_type(mask).rank < 2 or not c.w.scope.equal(tensor_type(mask).dims[-1], columns):
            return None
    causal = bool(c.attr("is_causal", 0))
    top_left = causal and not c.w.scope.equal(rows, columns)
    scale = float(c.attr("scale", 1 / math.sqrt(size.as_int() or 1)))
    y = c.w.put(AttentionOp(q, k, v, scale, mask, causal, top_left=top_left))
    if not flat:
        return y
    batch, count, _, _ = tensor_type(y).dims
    return c.w.reshape(c.w.permute(y, [0, 2, 1, 3]), (batch, rows, count * width))


def _heads(c: Call, x: SSAValue, heads: int) -> SSAValue:
    """[batch, rows, heads * size] as [batch, heads, rows, size]."""
    batch, rows, whole = tensor_type(x).dims
    return c.w.permute(c.w.reshape(x, (batch, rows, heads, whole // max(heads, 1))), [0, 2, 1, 3])


# ** attention as exporters write it **


def recognised(c: Call, p: SSAValue, v: SSAValue) -> SSAValue | None:
    """`p @ v` as attention, if p is the softmax of scaled and masked products of four dims; else None.

    PyTorch's exporter scales q and k each by the root of the scale, and replaces the NaN of rows that see no column.
    """
    if tensor_type(p).rank != 4 or tensor_type(v).rank != 4:
        return None
    softmax = _softmax(p)
    if softmax is None or softmax.dim.value.data != 3:
        return None
    scores, mask = softmax.input, None
    if isinstance(add := scores.owner, AddOp):
        scores, mask = (add.lhs, add.rhs) if isinstance(add.lhs.owner, BmmOp) else (add.rhs, add.lhs)
    product = scores.owner
    if not isinstance(product, BmmOp) or product.layout.data != "rrr" or len(product.operands) != 2:
        return None
    (q, first), (turned, second) = (_unscaled(x) for x in product.operands)
    k = _turned(turned)
    if k is None or tensor_type(q).rank != 4 or tensor_type(k).rank != 4:
        return None
    dims, others = tensor_type(q).dims, tensor_type(v).dims
    sizes = dims[3].as_int(), others[3].as_int()
    if None in sizes or max(n or 0 for n in sizes) > MAX_HEAD_SIZE:
        return None
    same = all(c.w.scope.equal(a, b) for x in (k, v) for a, b in zip(tensor_type(x).dims[:2], dims[:2], strict=True))
    if not same or (mask is not None and (tensor_type(mask).rank < 2 or _is_one(mask, tensor_type(k).dims[2]))):
        return None
    return c.w.put(AttentionOp(q, k, v, first * second, mask))


def _softmax(p: SSAValue) -> SoftmaxOp | None:
    """The softmax that p is, or p with zeros for NaN."""
    op = p.owner
    if isinstance(op, WhereOp) and isinstance(test := op.condition.owner, CompareOp):
        if test.predicate.data != "ne" or test.lhs is not test.rhs or test.lhs is not op.b or _number(op.a) != 0:
            return None
        op = op.b.owner
    return op if isinstance(op, SoftmaxOp) else None


def _number(value: SSAValue) -> float | None:
    """The number of a constant of one element."""
    op: Operation | object = value.owner
    if not isinstance(op, ConstantOp) or tensor_type(value).num_elements().as_int() != 1:
        return None
    return float(literal_values(op.value)[0])


def _unscaled(x: SSAValue) -> tuple[SSAValue, float]:
    """A value without the number that it is multiplied by, and this number."""
    if isinstance(op := x.owner, MulOp):
        for value, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if (number := _number(factor)) is not None:
                return value, number
    return x, 1.0


def _turned(x: SSAValue) -> SSAValue | None:
    """The value whose last two dims x has swapped."""
    op = x.owner
    if isinstance(op, PermuteOp):
        return op.input if list(op.order()) == [0, 1, 3, 2] else None
    # exporters turn it as a tensor of three dims
    if not isinstance(op, ReshapeOp) or not isinstance(inner := op.input.owner, PermuteOp):
        return None
    if list(inner.order()) != [0, 2, 1] or not isinstance(first := inner.input.owner, ReshapeOp):
        return None
    k, wanted = first.input, tensor_type(x).dims
    own = tensor_type(k).dims
    swapped = len(own) == 4 and (own[0], own[1], own[3], own[2]) == wanted
    kept = tensor_type(inner.input).dims[1:] == own[2:] if swapped else False
    return k if kept else None


def _is_one(mask: SSAValue, columns: object) -> bool:
    return tensor_type(mask).dims[-1] is not columns


ROWS: dict[str, Row] = {"Attention": attention}
