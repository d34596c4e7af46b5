"""What attention needs besides new operations: scales from constants, and operands of 4 dims."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.rewrites.engine.constraints import CONSTRAINTS
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.natives.table import NATIVES
from ait_mlir.rewrites.engine.natives.views import reshape
from ait_mlir.rewrites.engine.numbers import splat


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
