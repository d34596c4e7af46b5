"""Lets scatters by the same indices share one order of their places (`ait.order`), so that a GPU sorts these once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait.base import same_shape
from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.dtypes import STORED_ONLY
from ait_mlir.dialects.ait.index import ScatterOp
from ait_mlir.dialects.ait.loops import FoldOp, LoopsOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.scatter_loops import ScatterLoopsOp, SegmentLoopsOp, reads_beside
from ait_mlir.dialects.ait.sorting import MOST_ORDERED, OrderOp
from ait_mlir.dialects.ait.traits import ScalarLike, ViewLike
from ait_mlir.dialects.ait.types import Shape, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.dims import product
from ait_mlir.elements.forming import form_loops
from ait_mlir.elements.table import has_elements
from ait_mlir.lowering.kernels.index import sorts
from ait_mlir.lowering.kernels.scatter_loops import nest_of_values
from ait_mlir.lowering.target import Target
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.grouping import best_seconds
from ait_mlir.passes.remove_duplicates import value_numbers


@dataclass(frozen=True)
class OrderScattersPass(ByEstimatePass):
    """Give scatters by equal indices one order of their places, let them compute the values that only they read, and
    write a result of its own where the tensor would be copied.

    With a target, only on a GPU, for scatters whose kernel sorts the places, and where estimates say that one sort for
    all of them is faster. Without one, every scatter that an order serves has one. With `deterministic=false`, a
    kernel that adds floats in any order is among those that are compared.
    """

    name = "order-scatters"
    deterministic: bool = True

    def rewrite(self, block: Block, target: Target | None) -> bool:
        target = target and replace(target, deterministic=self.deterministic)
        return any([order_scatters(block, target), join_values(block, target)])


def order_scatters(block: Block, target: Target | None, fixed: Collection[Operation] | None = None) -> bool:
    """Give the scatters of a block orders; returns whether there were any.

    With `fixed`, only scatters whose indices these ops compute, none of which depends on an input, and for which an
    order costs nothing, because it is computed before the run.
    """
    if target is not None and not target.is_gpu:
        return False
    numbers = value_numbers(block)
    groups: dict[object, list[ScatterOp]] = {}
    for op in block.ops:
        if not isinstance(op, ScatterOp) or op.order or "kernel" in op.attributes:
            continue
        if fixed is not None and not (all(v.owner in fixed for v in op.indices) and _is_static(_sizes(op))):
            continue
        if (places := _places(op)) is not None and (target is None or sorts(op)):
            names = [(numbers.get(root := _flat(v), root), own) for v, own in zip(op.indices, places, strict=True)]
            groups.setdefault((tuple(names), _sizes(op)), []).append(op)
    return any([_order(group, target, fixed is not None) for group in groups.values()])


def join_values(block: Block, target: Target | None) -> bool:
    """Let the scatters of a block that have an order compute their values, where nothing else reads these and each
    follows from single elements; and write each element of their result once, where their tensor would be copied.
    Returns whether there were any.
    """
    if target is not None and not target.is_gpu:
        return False
    found = [op for op in block.ops if isinstance(op, ScatterOp) and op.order and "kernel" not in op.attributes]
    joined = any([_join(op) for op in found])
    whole = [op for op in block.ops if isinstance(op, SegmentLoopsOp) and "kernel" not in op.attributes]
    return any([_follow(op) for op in whole]) or joined


def _follow(op: SegmentLoopsOp) -> bool:
    """Let a scatter with a result of its own compute what follows from single elements of that, where nothing else
    reads them; returns whether there was any.
    """
    block, uses = op.parent, list(op.output.uses)
    reader = uses[0].operation if uses else None
    if block is None or op.following is not None or reader is None or any(use.operation is not reader for use in uses):
        return False
    if len(reader.results) != 1 or "kernel" in reader.attributes or is_replaced(reader.results[0]):
        return False
    is_elementwise = isinstance(reader, ScalarLike | FusedElementwiseOp) and has_elements(reader)
    if not isinstance(reader, LoopsOp) and not is_elementwise:
        return False
    scope, result = scope_of(op), reader.results[0]
    loops = reader if isinstance(reader, LoopsOp) else form_loops([result], {reader}, scope, has_errors=False)
    is_stored = tensor_type(result).element_type in STORED_ONLY
    followed = None
    if not is_stored and reads_beside(loops, op.output, tensor_type(op.output)) is None:
        followed = SegmentLoopsOp.followed(op, loops)
        followed.location = reader.location
        block.insert_op_before(followed, reader)
        if followed.following is None or nest_of_values(followed.following) is None:
            followed.detach()
            followed.erase()
            followed = None
    if loops is not reader:
        loops.erase()
    if followed is None:
        return False
    followed.output.name_hint = result.name_hint
    result.replace_all_uses_with(followed.output)
    for each in (reader, op):
        each.detach()
        each.erase()
    return True


def is_replaced(value: SSAValue) -> bool:
    """Whether an output takes the place of a donated input, or a value is the output that does."""
    return any(isinstance(use.operation, OutputOp) and use.operation.in_place_of is not None for use in value.uses)


def _join(op: ScatterOp) -> bool:
    values, block, scope = op.values, op.parent, scope_of(op)
    if block is None or not same_shape(tensor_type(values).dims, op.space(), scope):
        return False
    source, writes_all = _joining(values), _is_copied(op)
    if source is None and not writes_all:
        return False
    members = set[Operation]() if source is None else {source}
    loops = source if isinstance(source, LoopsOp) else form_loops([values], members, scope, has_errors=False)
    joined = None
    if not any(isinstance(inner, FoldOp) for inner in loops.block.ops):
        joined = (SegmentLoopsOp if writes_all else ScatterLoopsOp)(op, loops)
        joined.location = op.location
        block.insert_op_before(joined, op)
        if nest_of_values(joined) is None:
            joined.detach()
            joined.erase()
            joined = None
    if joined is not None:
        joined.output.name_hint = op.output.name_hint
        op.output.replace_all_uses_with(joined.output)
        for each in (op, *members):
            each.detach()
            each.erase()
    if loops is not source:
        loops.erase()
    return joined is not None


def _joining(values: SSAValue) -> Operation | None:
    """The op that computes the values of a scatter, if it may join the scatter; it may still hold a fold."""
    source = values.owner
    if not isinstance(source, Operation) or len(source.results) != 1 or len(list(values.uses)) != 1:
        return None
    may_join = "kernel" not in source.attributes and (isinstance(source, LoopsOp) or has_elements(source))
    return source if may_join else None


def _is_copied(op: ScatterOp) -> bool:
    """Whether the tensor of a scatter would be copied before it is updated, and each of its elements has a column in
    the space: a constant, a param, or an input in whose place no output is; also a view of one.
    """
    x, space, whole = op.input, op.space(), tensor_type(op.input).dims
    if not all(scope_of(op).equal(space[at], whole[d]) for d, at in op.kept_dims()):
        return False
    while isinstance(x.owner, ViewLike) and len(x.owner.operands) == 1:
        x = x.owner.operands[0]
    if isinstance(x.owner, Operation):
        return isinstance(x.owner, ConstantOp | ParamOp)
    return isinstance(x.owner.parent_op(), GraphOp) and not is_replaced(x)


def _places(op: ScatterOp) -> list[Shape] | None:
    """The dims of each index tensor without kept dims, of a single one their product. None if no order serves the op,
    or if there are too many places or elements for one.
    """
    space, scope, sizes = op.ordered_space(), scope_of(op), _sizes(op)
    if space is None or not all(scope.le(n, MOST_ORDERED) for n in (product(space), product(sizes))):
        return None
    if len(op.indices) == 1:
        return [(product(space),)]
    rank, (_, kept) = len(op.space()), op.places()
    return [
        tuple(d for at, d in enumerate(dims, rank - len(dims)) if at not in kept)
        for dims in (tensor_type(v).dims for v in op.indices)
    ]


def _sizes(op: ScatterOp) -> Shape:
    """The dims that indices name."""
    dims, _ = op.places()
    return tuple(tensor_type(op.input).dims[d] for d in dims)


def _is_static(sizes: Shape) -> bool:
    return all(size.as_int() is not None for size in sizes)


def _flat(value: SSAValue) -> SSAValue:
    """The value whose elements, in row-major order, are those of `value`: what stands before reshapes."""
    while isinstance(value.owner, ReshapeOp):
        value = value.owner.input
    return value


def _order(group: Sequence[ScatterOp], target: Target | None, is_free: bool) -> bool:
    """Give a group of scatters by equal indices an order, with a target only where that is faster."""
    first, block = group[0], group[0].parent
    places = _places(first)
    assert block is not None and places is not None
    made: list[Operation] = []
    flat: list[SSAValue] = []
    for value, dims in zip(map(_flat, first.indices), places, strict=True):
        if tensor_type(value).dims != dims:
            made.append(view := ReshapeOp(value, dims))
            value = view.output
        flat.append(value)
    made.append(order := OrderOp(flat, _sizes(first)))
    for each in made:
        each.location = first.location
        block.insert_op_before(each, first)
    order.infer()
    saved = sum([_saved(op, order, target) for op in group])
    if target is None or saved > (0.0 if is_free else best_seconds(order, target)):
        return True
    for op in group:
        op.operands = [v for v in op.operands if v.owner is not order]
    for each in reversed(made):
        each.detach()
        each.erase()
    return False


def _saved(op: ScatterOp, order: OrderOp, target: Target | None) -> float:
    """Give a scatter an order; returns the estimated seconds that it saves, with the launch of a copy that only a
    scatter without an order needs. One that gains nothing stays as it is, such as a sum of integers, which atomics add.
    """
    alone, seconds = list(op.operands), 0.0 if target is None else best_seconds(op, target)
    op.operands = [*alone, order.keys, order.places]
    saved = 0.0 if target is None else seconds - best_seconds(op, target)
    if target is not None and _is_copied(op) and same_shape(tensor_type(op.values).dims, op.space(), scope_of(op)):
        saved += target.launch_seconds
    if target is not None and saved <= 0:
        op.operands = alone
    return max(saved, 0.0)
