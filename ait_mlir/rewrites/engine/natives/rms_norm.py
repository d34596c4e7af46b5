"""A root mean square norm from its parts."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, f64, i32, i64
from xdsl.ir import Operation, Region, SSAValue

from ait_mlir.dialects.ait.base import same_shape as same_dims
from ait_mlir.dialects.ait.norm import RmsNormOp
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import const
from ait_mlir.rewrites.engine.constraints import CONSTRAINTS
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.natives.regions import take_region
from ait_mlir.rewrites.engine.natives.table import NATIVES
from ait_mlir.rewrites.engine.numbers import splat


@CONSTRAINTS
def reduces_last_dim(op: ReduceOp) -> bool:
    """A reduction over the last dim alone."""
    return op.axes() == (tensor_type(op.input).rank - 1,)


@CONSTRAINTS
def is_row_factor(value: SSAValue, rows: SSAValue) -> bool:
    """The value has one element for each row of the other: its shape with 1 for the last dim."""
    scope = scope_of(value.owner if isinstance(value.owner, Operation) else None)
    return same_dims(tensor_type(value).dims, (*tensor_type(rows).dims[:-1], const(1)), scope)


@CONSTRAINTS
def is_row_of(value: SSAValue, rows: SSAValue) -> bool:
    """The value is one row of the other: its last dim."""
    scope = scope_of(rows.owner if isinstance(rows.owner, Operation) else None)
    return same_dims(tensor_type(value).dims, tensor_type(rows).dims[-1:], scope)


@CONSTRAINTS
def is_nonnegative_splat(value: SSAValue) -> bool:
    """The value is an `ait.constant` with one number, at least 0, for all elements."""
    number = splat(value)
    return number is not None and number >= 0


@NATIVES
def rms_norm(r: Rewriter, x: SSAValue, eps: SSAValue) -> Operation:
    """The norm of x over its last dim, with the number of a splat constant added to the mean of the squares."""
    number = splat(eps)
    assert number is not None, "rms_norm needs is_nonnegative_splat"
    properties = {
        "axes": IntegerAttr(1, i64),
        "eps": FloatAttr(float(number), f64),
        "operandSegmentSizes": DenseArrayBase.from_list(i32, [1, 0, 0, 0]),
    }
    return r.create(RmsNormOp, [x], [x.type], properties, [Region()])


@NATIVES
def scale_norm(r: Rewriter, norm: RmsNormOp, weight: SSAValue) -> Operation:
    """The norm with a scale."""
    sizes = DenseArrayBase.from_list(i32, [1, 1, 0, 0])
    attributes = norm.properties | norm.attributes | {"operandSegmentSizes": sizes}
    return r.create(RmsNormOp, [norm.input, weight], list(norm.result_types), attributes, [take_region(norm)])
