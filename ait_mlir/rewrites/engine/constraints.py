"""The constraints that a pattern may require: predicates on operations, values and attributes.
A dim equals another if the graph's scope proves it; "unknown" counts as no.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.dialects.ait.base import broadcasts_to as shape_broadcasts_to
from ait_mlir.dialects.ait.base import same_shape as same_dims
from ait_mlir.dialects.ait.base import same_type as equal_types
from ait_mlir.dialects.ait.data import OutputOp
from ait_mlir.dialects.ait.dtypes import compute_type, is_computed_float
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Scope
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.numbers import element_type_of, represents, splat, stored
from ait_mlir.rewrites.engine.registry import constraint

# ** uses **


@constraint
def one_use(value: SSAValue) -> bool:
    """The value is used exactly once."""
    return value.has_one_use()


@constraint
def only_user(value: SSAValue, op: Operation) -> bool:
    """Every use of the value is an operand of `op`; outputs are uses, too."""
    return all(use.operation is op for use in value.uses)


@constraint
def reads_once(op: Operation, value: SSAValue) -> bool:
    """The only use of the value is an operand of `op`."""
    return value.get_user_of_unique_use() is op


@constraint
def not_output(value: SSAValue) -> bool:
    """The value is no output of the graph."""
    return not any(isinstance(use.operation, OutputOp) for use in value.uses)


# ** types and shapes **


@constraint
def same_type(a: SSAValue, b: SSAValue) -> bool:
    """Both have the same shape and element type."""
    return equal_types(a.type, b.type, scope_of_value(a))


@constraint
def same_types(a: Sequence[SSAValue], b: Sequence[SSAValue]) -> bool:
    """Both lists have the same number of values, with the same shape and element type at each place."""
    return len(a) == len(b) and all(same_type(x, y) for x, y in zip(a, b, strict=True))


@constraint
def same_shape(a: SSAValue, b: SSAValue) -> bool:
    """Both have the same shape, or both are scalars."""
    return _same_shape(a, b, scope_of_value(a))


@constraint
def same_element_type(a: SSAValue, b: SSAValue) -> bool:
    """Both hold elements of the same type."""
    return element_type_of(a) == element_type_of(b)


@constraint
def result_has_shape_of(op: Operation, value: SSAValue) -> bool:
    """The first result of `op` has the shape of the value: nothing was broadcast beyond it."""
    return _same_shape(op.results[0], value, scope_of(op))


@constraint
def broadcasts_to(value: SSAValue, target: SSAValue) -> bool:
    """The value broadcasts to the target's shape without enlarging it."""
    a, b = value.type, target.type
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return False
    return shape_broadcasts_to(a.dims, b.dims, scope_of_value(value))


@constraint
def has_rank(value: SSAValue, rank: IntegerAttr) -> bool:
    """The value is a tensor of this many dims."""
    return isinstance(value.type, TensorType) and value.type.rank == rank.value.data


@constraint
def rank_between(value: SSAValue, least: IntegerAttr, most: IntegerAttr) -> bool:
    """The value is a tensor of `least` to `most` dims."""
    return isinstance(value.type, TensorType) and least.value.data <= value.type.rank <= most.value.data


@constraint
def divisible(value: SSAValue, axis: IntegerAttr, by: IntegerAttr) -> bool:
    """Dim `axis` of the tensor (negative counts from the end) is proved a multiple of `by`."""
    t, n = value.type, axis.value.data
    return (
        isinstance(t, TensorType)
        and -t.rank <= n < t.rank
        and scope_of_value(value).divisible(t.dims[n], by.value.data)
    )


@constraint
def at_most(value: SSAValue, axis: IntegerAttr, limit: IntegerAttr) -> bool:
    """Dim `axis` of the tensor (negative counts from the end) is never above `limit`."""
    t, n = value.type, axis.value.data
    if not isinstance(t, TensorType) or not -t.rank <= n < t.rank:
        return False
    return scope_of_value(value).bounds(t.dims[n])[1] <= limit.value.data


@constraint
def is_single(value: SSAValue, axis: IntegerAttr) -> bool:
    """Dim `axis` of the tensor (negative counts from the end) is 1."""
    t, n = value.type, axis.value.data
    return isinstance(t, TensorType) and -t.rank <= n < t.rank and t.dims[n].as_int() == 1


@constraint
def is_floating(value: SSAValue) -> bool:
    """The elements are floating-point numbers that ops compute in."""
    return is_computed_float(element_type_of(value))


@constraint
def is_tensor(value: SSAValue) -> bool:
    """The value is a tensor, not a scalar of a region."""
    return isinstance(value.type, TensorType)


@constraint
def widens_exactly(value: SSAValue, wide: SSAValue) -> bool:
    """Every element of the value is exactly representable in the element type of `wide`."""
    return represents(element_type_of(wide), element_type_of(value))


@constraint
def is_compute_type_of(wide: SSAValue, value: SSAValue) -> bool:
    """The element type of `wide` is the compute type of the value's element type, and differs from it."""
    narrow = element_type_of(value)
    return compute_type(narrow) == element_type_of(wide) != narrow


# ** operations **


@constraint
def no_region(op: Operation) -> bool:
    """Every region of the operation is empty: nothing has been fused into it."""
    return not any(region.blocks for region in op.regions)


@constraint
def users_follow(r: Rewriter, value: SSAValue, op: Operation) -> bool:
    """Every user of the value other than `op` comes after `op` in its block."""
    users = {use.operation for use in value.uses}
    return all(user is op or (user.parent is op.parent and r.is_before(op, user)) for user in users)


@constraint
def operands_fit(first: Operation, second: Operation, limit: IntegerAttr) -> bool:
    """Two operations, where the second reads the first, have at most `limit` operands when merged, as many as a kernel
    accepts.
    """
    return len(first.operands) + len(second.operands) - 1 <= limit.value.data


@constraint
def same_rows(a: SSAValue, b: SSAValue) -> bool:
    """Both tensors have the same dims except the last, and at least two dims."""
    rows = tensor_type(a).dims[:-1]
    return bool(rows) and same_dims(rows, tensor_type(b).dims[:-1], scope_of_value(a))


@constraint
def same_last_dim(a: SSAValue, b: SSAValue) -> bool:
    """Both tensors have the same last dim; a scalar has none."""
    last = [value.type.dims[-1:] if isinstance(value.type, TensorType) else () for value in (a, b)]
    return bool(last[0]) and same_dims(last[0], last[1], scope_of_value(a))


# ** constants and attributes **


@constraint
def is_splat(value: SSAValue, number: Attribute) -> bool:
    """The value is an `ait.constant` with this number for all elements."""
    found = splat(value)
    return found is not None and isinstance(number, FloatAttr | IntegerAttr) and found == number.value.data


@constraint
def is_rounded_splat(value: SSAValue, number: FloatAttr) -> bool:
    """The value is an `ait.constant` with this number for all elements; both are compared as rounded to the element
    type."""
    found, element = splat(value), element_type_of(value)
    return found is not None and stored(found, element) == stored(number.value.data, element)


@constraint
def is_any_splat(value: SSAValue) -> bool:
    """The value is an `ait.constant` with one number for all elements."""
    return splat(value) is not None


@constraint
def is_no_splat(value: SSAValue) -> bool:
    """The value is not an `ait.constant` with one number for all elements, which a region would hold as a scalar."""
    return splat(value) is None


@constraint
def no_attribute(op: Operation, name: StringAttr) -> bool:
    """The operation has no attribute of this name, so no earlier decision is overwritten."""
    return name.data not in op.attributes and name.data not in op.properties


def scope_of_value(value: SSAValue) -> Scope:
    """The scope of dims in which a value is defined."""
    owner = value.owner
    return scope_of(owner if isinstance(owner, Operation) else owner.parent_op())


def _same_shape(a: SSAValue, b: SSAValue, scope: Scope) -> bool:
    ta, tb = a.type, b.type
    if isinstance(ta, TensorType) and isinstance(tb, TensorType):
        return ta.dims == tb.dims or same_dims(ta.dims, tb.dims, scope)
    return not isinstance(ta, TensorType) and not isinstance(tb, TensorType)
