"""Replaces sums by index of one repeated number by a count and a multiplication, as in a weighted histogram.

Floats are summed in a fixed order, which takes a sort of the indices. Counts are integers, which atomic operations add
in any order, so they take one pass over the indices. The product is also rounded only once, a sum at every step.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import compute_type, is_float
from ait_mlir.dialects.ait.elementwise import AddOp, CastOp, CompareOp, MulOp, WhereOp
from ait_mlir.dialects.ait.index import ScatterOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp, YieldOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ExpandOp, ReshapeOp
from ait_mlir.dims import product
from ait_mlir.lowering.target import Target
from ait_mlir.passes.grouping import best_seconds
from ait_mlir.passes.remove_duplicates import is_new_state


def count_sums(block: Block, target: Target) -> bool:
    """Divide the sums of a block where counts are estimated to be faster; returns whether there were any."""
    found = [op for op in block.ops if isinstance(op, ScatterOp) and op.kind.data == "add"]
    return any([_divide(op, value, target) for op in found if (value := one_value(op)) is not None])


def one_value(op: ScatterOp) -> list[Operation] | None:
    """New ops, not in a block yet, that compute the one number which a sum by index adds at all places; the last op has
    it as its result.

    None if the added values differ or are integers, if there are kept dims or dims without an index, or if the sums
    replace an input, which the op updates in place.
    """
    element = tensor_type(op.input).element_type
    if op.kept.data or not is_float(element) or compute_type(element) != f32 or is_new_state(op.output):
        return None
    if not scope_of(op).equal(product(op.space()), tensor_type(op.indices[0]).num_elements()):
        return None
    made: list[Operation] = []
    if _single(op.values, made) is not None:
        return made
    for each in reversed(made):
        each.erase()
    return None


def _single(value: SSAValue, made: list[Operation]) -> SSAValue | None:
    """A tensor of one element with the number that all elements of a value are; new ops are appended to `made`."""
    t, owner = tensor_type(value), value.owner
    if t.num_elements().as_int() == 1:
        made.append(view := ReshapeOp(value, [1]))
        return view.output
    if isinstance(owner, ExpandOp):
        return _single(owner.input, made)
    if isinstance(owner, ConstantOp) and (number := owner.splat()) is not None:
        made.append(constant := ConstantOp(number, TensorType.get([1], t.element_type)))
        return constant.output
    if isinstance(owner, FusedElementwiseOp) and len(owner.results) == 1:
        inputs = [_single(v, made) for v in owner.operands]
        if all(v is not None for v in inputs):
            one = TensorType.get([1], t.element_type)
            made.append(fused := FusedElementwiseOp([v for v in inputs if v is not None], [one], owner.body.clone()))
            return fused.outputs[0]
    return None


def _divide(op: ScatterOp, value: Sequence[Operation], target: Target) -> bool:
    block, whole = op.parent, tensor_type(op.input)
    assert block is not None
    _, most = scope_of(op).bounds(tensor_type(op.indices[0]).num_elements())
    number = i32 if most < 2**31 else i64
    dims, kept = op.places()
    one = ConstantOp(1, TensorType.get([1], number))
    zero = ConstantOp(0, TensorType.get([], number))
    zeros = ExpandOp(zero.output, whole.dims)
    counts = ScatterOp("add", zeros.output, one.output, list(op.indices), dims, kept)
    new: list[Operation] = [one, zero, zeros, counts]
    for each in new:
        each.location = op.location
        block.insert_op_before(each, op)
    if best_seconds(counts, target) + 2 * target.launch_seconds >= best_seconds(op, target):
        for each in (*value, *new)[::-1]:
            each.detach()
            each.erase()
        return False
    of_one = value[-1].results[0]
    operands = [op.input, of_one, counts.output]
    sums = FusedElementwiseOp(operands, [whole], _region([compute_type(tensor_type(v).element_type) for v in operands]))
    for each in (*value, sums):
        each.location = op.location
        block.insert_op_before(each, op)
    op.output.replace_all_uses_with(sums.outputs[0])
    op.detach()
    op.erase()
    return True


def _region(types: Sequence[Attribute]) -> Region:
    """The region that adds a value, as often as a count says, to an element. A value that is not finite is not added
    where the count is 0.
    """
    block = Block(arg_types=types)
    element, value, count = block.args
    zero = ConstantOp(0, count.type)
    times = CastOp(count, f32)
    added = MulOp(times.output, value)
    total = AddOp(element, added.output)
    is_named = CompareOp("gt", count, zero.output)
    result = WhereOp(is_named.output, total.output, element)
    block.add_ops([zero, times, added, total, is_named, result, YieldOp(result.output)])
    return Region(block)
