"""Outlining elementwise operations, and merging the outlined."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.base import same_shape
from ait_mlir.dialects.ait.elementwise import AddOp, FusedElementwiseOp, YieldOp
from ait_mlir.dialects.ait.norm import LayerNormOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.rewrites.engine.constraints import CONSTRAINTS
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.natives.regions import RegionGrower, take_region
from ait_mlir.rewrites.engine.natives.table import NATIVES

MAX_BUFFERS = 32
"""Operands and results of a fused operation: its kernel takes a pointer for each."""


@NATIVES
def outline_elementwise(r: Rewriter, root: Operation) -> Operation:
    """A fused_elementwise that holds one operation."""
    block = Block()
    grower = RegionGrower(block, [])
    grower.finish([grower.compute(root)])
    return r.create(FusedElementwiseOp, grower.operands, [root.results[0].type], {}, [Region(block)])


# ** merging **


def place_of_merge(r: Rewriter, producer: Operation, root: Operation) -> Operation | None:
    """Where both can stand as one: at the root if all other users of the producer come later, or at the producer if all that
    the root reads comes earlier; None if something between them needs one and feeds the other."""
    others = {use.operation for result in producer.results for use in result.uses} - {root}
    if all(user.parent is root.parent and r.is_before(root, user) for user in others):
        return root
    owners = [value.owner for value in root.operands]
    if all(
        owner is producer or isinstance(owner, Block) or (owner.parent is producer.parent and r.is_before(owner, producer))
        for owner in owners
    ):
        return producer
    return None


def producer_to_merge(r: Rewriter, root: Operation) -> tuple[Operation, Operation] | None:
    """The first producer that can be merged into the root, and where."""
    scope = scope_of(root)
    shape = tensor_type(root.results[0]).dims
    for value in root.operands:
        producer = value.owner
        if (
            isinstance(producer, FusedElementwiseOp)
            and producer.parent is root.parent
            and "kernel" not in producer.attributes
            and same_shape(tensor_type(value).dims, shape, scope)
            and len(producer.operands) + len(producer.results) + len(root.operands) + len(root.results) <= MAX_BUFFERS
            and (place := place_of_merge(r, producer, root)) is not None
        ):
            return producer, place
    return None


@CONSTRAINTS
def has_producer_to_merge(r: Rewriter, root: Operation) -> bool:
    """An operand comes from a fused_elementwise of the same shape, and nothing between the two depends on both."""
    return producer_to_merge(r, root) is not None


@NATIVES
def merge_with_producer(r: Rewriter, root: Operation) -> None:
    """Merge the regions of a fused_elementwise and a producer of its operands. Results of the producer that others use stay results.

    The smaller region moves into the larger one, so that n merges move O(n log n) operations.
    """
    found = producer_to_merge(r, root)
    assert found is not None, "merge_with_producer needs has_producer_to_merge"
    producer, place = found
    first, second = take_block(producer), take_block(root)
    yields = dict(zip(producer.results, yielded(first), strict=True))
    kept = [result for result in producer.results if any(use.operation is not root for use in result.uses)]
    values = [yields[result] for result in kept] + yielded(second)

    inputs, arguments = list(producer.operands), list(first.args)
    scalars: dict[SSAValue, SSAValue] = dict(zip(inputs, arguments, strict=True)) | yields
    target = join_blocks(first, second, list(root.operands), scalars, inputs, values)
    types = [result.type for result in (*kept, *root.results)]
    new = r.create(FusedElementwiseOp, inputs, types, {}, [Region(target)], before=place)
    for old, result in zip((*kept, *root.results), new.results, strict=True):
        r.replace_value(old, result)
    for op in (root, producer):
        op.add_region(Region())
        r.erase(op)


def join_blocks(
    first: Block,
    second: Block,
    operands: list[SSAValue],
    scalars: dict[SSAValue, SSAValue],
    inputs: list[SSAValue],
    values: list[SSAValue],
) -> Block:
    """Put the operations of two blocks into one, the first's before the second's, and yield `values`.

    `operands` are the tensors of the second's arguments. `scalars` says which value of the first block stands for a tensor;
    `inputs`, the tensors of the block's arguments, is extended.
    """
    terminators = [first.last_op, second.last_op]
    # The arguments of the second become what the first computes, or arguments of the first.
    for tensor, argument in zip(operands, tuple(second.args), strict=True):
        scalar = scalars.get(tensor)
        if scalar is None:
            scalar = first.insert_arg(argument.type, len(first.args))
            scalar.name_hint = argument.name_hint
            scalars[tensor] = scalar
            inputs.append(tensor)
        argument.replace_all_uses_with(scalar)
        values[:] = [scalar if value is argument else value for value in values]
    for terminator in terminators:
        assert isinstance(terminator, YieldOp)
        terminator.detach()
        terminator.erase()
    for op in tuple(second.ops):
        op.detach()
        first.add_op(op)
    first.add_op(YieldOp(*values))
    return first


def take_block(op: Operation) -> Block:
    """Detach the only block of an operation's only region."""
    return take_region(op).detach_block(0)


def yielded(block: Block) -> list[SSAValue]:
    last = block.last_op
    assert isinstance(last, YieldOp)
    return list(last.operands)


# ** norms **


@NATIVES
def add_to_prologue(r: Rewriter, x: SSAValue, residual: SSAValue, add: Operation, root: Operation) -> None:
    """Compute the sum that a norm normalises in its prologue; where others use the sum, it is the second result."""
    assert isinstance(add, AddOp) and isinstance(root, LayerNormOp)
    total = add.results[0]
    shared = not all(use.operation is root for use in total.uses)
    block = Block()
    grower = RegionGrower(block, [])
    grower.scalar(x)
    value = grower.compute(add)
    grower.finish([value, value] if shared else [value])
    main, *extras = grower.operands
    assert main is x
    operands = [x, *root.operands[1:], *extras]
    sizes = [1, int(root.scale is not None), int(root.bias is not None), len(extras)]
    properties = root.properties | root.attributes | {"operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)}
    types = [root.results[0].type, *([total.type] if shared else [])]
    new = r.create(LayerNormOp, operands, types, properties, [Region(block)])
    if shared:
        for use in tuple(total.uses):
            if use.operation is not root:
                r.push(use.operation)
                use.operation.operands[use.index] = new.results[1]
    r.replace(root, [new.results[0]])
