"""Merges connected elementwise operations into one `ait.fused_elementwise`, so that one launch computes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.base import same_shape
from ait_mlir.dialects.ait.data import ConstantOp, ParamOp
from ait_mlir.dialects.ait.elementwise import ElementwiseOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp, YieldOp
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, finder, native
from ait_mlir.rewrites.regions import RegionGrower, take_region


@pattern()
def outline(p: PatternBuilder) -> None:
    """An elementwise operation on tensors becomes a fused_elementwise, so that later passes see one kind of op"""
    root = p.op(trait="ScalarLike")
    p.require("is_tensor", p.result(root))
    p.replace(root, "outline_elementwise", root)


FUSED = "ait.fused_elementwise"

MAX_BUFFERS = 32
"""Most operands and results of a fused operation: its kernel takes a pointer for each."""


def merge_as_one(p: PatternBuilder, first: SSAValue, second: SSAValue, limit: int) -> None:
    """Add the requirements for merging two fused_elementwise, the first before the second."""
    for op in (first, second):
        p.require("no_attribute", op, "kernel")
    p.require("fit_as_one", first, second, limit)
    p.require("can_stand_as_one", first, second)


@pattern()
def merge_with_producer(p: PatternBuilder) -> None:
    """Producer and user of the same shape become one; results of the producer with other users remain results"""
    made = p.value()
    root = p.op(FUSED, [p.rest(), made, p.rest()], results=None)
    producer = p.find("fused_producer", made)
    p.require("result_has_shape_of", root, made)
    merge_as_one(p, producer, root, MAX_BUFFERS)
    p.apply(root, "merge_fused", producer, root)


@pattern()
def leading_ones(p: PatternBuilder) -> None:
    """reshape(f(x)) = f(x) where the reshape only adds leading dims of 1, over which operands broadcast"""
    inner = p.op("ait.fused_elementwise")
    root = p.op("ait.reshape", [p.result(inner)])
    p.require("one_use", p.result(inner))
    p.require("no_attribute", inner, "kernel")
    p.require("adds_leading_ones", root)
    p.replace(root, "with_result_of", inner, root)


ELEMENTWISE = patterns(outline, leading_ones, merge_with_producer)


# ** constraints and natives **


@native
def outline_elementwise(r: Rewriter, root: ElementwiseOp) -> Operation:
    """A fused_elementwise that holds one operation."""
    block = Block()
    grower = RegionGrower(block, [])
    grower.finish([grower.compute(root)])
    return r.create(FusedElementwiseOp, grower.operands, [root.results[0].type], {}, [Region(block)])


# ** dims of 1 **


@constraint
def adds_leading_ones(op: ReshapeOp) -> bool:
    """The reshape only adds leading dims of 1."""
    before, after = tensor_type(op.input).dims, tensor_type(op.output).dims
    more = len(after) - len(before)
    return (
        more > 0 and all(dim.as_int() == 1 for dim in after[:more]) and same_shape(before, after[more:], scope_of(op))
    )


@native
def with_result_of(r: Rewriter, op: FusedElementwiseOp, root: Operation) -> Operation:
    """The fused_elementwise with the result type of the root."""
    region = take_region(op)
    op.add_region(Region())  # the old op has no use after the root is replaced
    return r.create(FusedElementwiseOp, op.operands, [root.results[0].type], {}, [region])


# ** merging **

MOST_VIEWS = 16
"""Most views that one merge moves; the limit keeps the search independent of the graph's size."""

MergePoint = tuple[Operation, list[Operation]]
"""The place of a merged operation: the operation before which it is inserted, and the operations that move there
first."""


def place_of_merge(r: Rewriter, producer: Operation, root: Operation) -> MergePoint | None:
    """The place for the merged operation: at the root if all other users of the producer come later, or at the producer
    if all operands of the root come earlier or can move there. None if an operation between them uses the producer and
    feeds the root."""
    others = {use.operation for result in producer.results for use in result.uses} - {root}
    if all(user.parent is root.parent and r.is_before(root, user) for user in others):
        return root, []
    views = views_between(r, producer, root)
    return None if views is None else (producer, views)


def views_between(r: Rewriter, producer: Operation, root: Operation) -> list[Operation] | None:
    """The views, params and constants after the producer that the root depends on, in order. None if it also depends on
    an operation of another kind there: only operations without a cost are moved."""
    found: set[Operation] = set()
    pending = [root]
    while pending:
        op = pending.pop()
        for value in op.operands:
            owner = value.owner
            if isinstance(owner, Block) or owner in found or (owner is producer and op is root):
                continue
            if owner.parent is producer.parent and r.is_before(owner, producer):
                continue
            if owner.parent is not producer.parent or not is_free(owner) or len(found) == MOST_VIEWS:
                return None
            found.add(owner)
            pending.append(owner)
    return sorted(found, key=r.position)


def is_free(op: Operation) -> bool:
    """Whether an operation is a view, a param or a constant, and so computes nothing."""
    return isinstance(op, ViewLike | ParamOp | ConstantOp)


@finder
def fused_producer(value: SSAValue) -> Iterator[Operation]:
    """The fused_elementwise that makes a value."""
    if isinstance(value.owner, FusedElementwiseOp):
        yield value.owner


@constraint
def fit_as_one(first: Operation, second: Operation, limit: IntegerAttr) -> bool:
    """Merged, two operations have at most `limit` operands and results. A result of the first that only the second uses
    does not count.
    """
    between = {result for result in first.results if all(use.operation is second for use in result.uses)}
    buffers = {*first.operands, *second.operands, *first.results, *second.results} - between
    return len(buffers) <= limit.value.data


@constraint
def can_stand_as_one(r: Rewriter, first: Operation, second: Operation) -> bool:
    """Two operations of one block can become one: no operation between them uses a result of one and computes an
    operand of the other.
    """
    return first.parent is second.parent and place_of_merge(r, first, second) is not None


@native
def merge_fused(r: Rewriter, first: FusedElementwiseOp, second: FusedElementwiseOp) -> None:
    """Merge two fused_elementwise; results of the first with other users come before the results of the second."""
    # The smaller region moves into the larger one, so that n merges move O(n log n) operations.
    operands, kept = (list(first.operands), list(second.operands)), kept_results(first, second)
    blocks = take_block(first), take_block(second)
    join = join_before if is_shorter(*blocks) else join_after
    block, inputs, values = join(*blocks, operands, list(first.results), kept)
    block.add_op(YieldOp(*values))
    put_as_one(r, first, second, (FusedElementwiseOp, inputs, {}, Region(block)))


def kept_results(producer: Operation, root: Operation) -> list[SSAValue]:
    """The results of the producer that have users other than the root."""
    return [v for v in producer.results if any(use.operation is not root for use in v.uses)]


Parts = tuple[type[Operation], Sequence[SSAValue], Mapping[str, Attribute], Region]
"""The class, operands, attributes and region of an operation."""


def put_as_one(r: Rewriter, producer: Operation, root: Operation, parts: Parts) -> None:
    """Replace two operations, whose regions were taken, by one. Its results are the producer's results with other
    users, then the root's results."""
    place = place_of_merge(r, producer, root)
    assert place is not None, "it needs can_stand_as_one"
    where, views = place
    for view in views:
        r.move(view, before=where)
    replaced = [*kept_results(producer, root), *root.results]
    op_class, operands, attributes, region = parts
    new = r.create(op_class, operands, [v.type for v in replaced], attributes, [region], before=where)
    for old, result in zip(replaced, new.results, strict=True):
        r.replace_value(old, result)
    for op in (root, producer):
        if not op.regions:
            op.add_region(Region())
        r.erase(op)


def is_shorter(first: Block, second: Block) -> bool:
    """Whether the first block has fewer operations; it walks only as far as the shorter block."""
    a, b = first.first_op, second.first_op
    while a is not None and b is not None:
        a, b = a.next_op, b.next_op
    return a is None and b is not None


Joined = tuple[Block, list[SSAValue], list[SSAValue]]
"""A block without its terminator, the tensors of its arguments, and the values to yield."""


def join_after(
    first: Block,
    second: Block,
    operands: tuple[list[SSAValue], list[SSAValue]],
    results: list[SSAValue],
    kept: list[SSAValue],
) -> Joined:
    """Move the second block's operations to the end of the first. `operands` are the tensors of each block's arguments,
    `results` the tensors that the first yields; `kept`, a subset, is yielded before the second block's values."""
    inputs = operands[0]
    yields = dict(zip(results, drop_yield(first), strict=True))
    scalars = dict(zip(inputs, first.args, strict=True)) | yields
    values = drop_yield(second)
    for tensor, argument in zip(operands[1], second.args, strict=True):
        scalar = scalars.get(tensor)
        if scalar is None:
            scalar = scalars[tensor] = copy_argument(first, argument)
            inputs.append(tensor)
        values = [scalar if value is argument else value for value in values]
        argument.replace_all_uses_with(scalar)
    for op in tuple(second.ops):
        op.detach()
        first.add_op(op)
    return first, inputs, [yields[result] for result in kept] + values


def join_before(
    first: Block,
    second: Block,
    operands: tuple[list[SSAValue], list[SSAValue]],
    results: list[SSAValue],
    kept: list[SSAValue],
) -> Joined:
    """As `join_after`, but moves the first block's operations to the start of the second."""
    yields = dict(zip(results, drop_yield(first), strict=True))
    values = drop_yield(second)
    # Values of the first replace arguments of the second; the remaining arguments are those of the merged block.
    inputs: list[SSAValue] = []
    for tensor, argument in zip(operands[1], tuple(second.args), strict=True):
        if tensor in yields:
            values = [yields[tensor] if value is argument else value for value in values]
            argument.replace_all_uses_with(yields[tensor])
            second.erase_arg(argument)
        else:
            inputs.append(tensor)
    scalars: dict[SSAValue, SSAValue] = dict(zip(inputs, second.args, strict=True))
    for tensor, argument in zip(operands[0], first.args, strict=True):
        scalar = scalars.get(tensor)
        if scalar is None:
            scalar = scalars[tensor] = copy_argument(second, argument)
            inputs.append(tensor)
        yields = {result: scalar if value is argument else value for result, value in yields.items()}
        values = [scalar if value is argument else value for value in values]
        argument.replace_all_uses_with(scalar)
    place = second.first_op
    for op in tuple(first.ops):
        op.detach()
        second.add_op(op) if place is None else second.insert_op_before(op, place)
    return second, inputs, [yields[result] for result in kept] + values


def copy_argument(block: Block, argument: SSAValue) -> SSAValue:
    """A new last argument of a block, like another block's."""
    new = block.insert_arg(argument.type, len(block.args))
    new.name_hint = argument.name_hint
    return new


def drop_yield(block: Block) -> list[SSAValue]:
    """Remove the terminator of a block; returns the values it yielded."""
    last = block.last_op
    assert isinstance(last, YieldOp)
    values = list(last.operands)
    last.detach()
    last.erase()
    return values


def take_block(op: Operation) -> Block:
    """Detach the only block of an operation's only region."""
    return take_region(op).detach_block(0)
