"""Fuses elementwise operations into the epilogue of the op that feeds them, if they are its only users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import IntegerAttr, i1, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.base import same_shape
from ait_mlir.dialects.ait.dtypes import STORED_ONLY, compute_type, is_float
from ait_mlir.dialects.ait.elementwise import CastOp, ElementwiseOp
from ait_mlir.dialects.ait.gemm import BATCH_LOOPS, ContractionOp, MatrixOp, batch_loops
from ait_mlir.dialects.ait.norm import NormOp
from ait_mlir.dialects.ait.traits import Commutative, HasEpilogue
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.numbers import element_type_of, splat
from ait_mlir.rewrites.engine.registry import constraint, native
from ait_mlir.rewrites.regions import RegionGrower, take_regions

MAX_OPERANDS = 16
"""Most operands of a contraction with those of its epilogue: every kernel of a contraction accepts this many."""


@pattern()
def join_epilogue(p: PatternBuilder) -> None:
    """f(x @ w, y) becomes an epilogue of x @ w, where y broadcasts to the product and f keeps its shape"""
    acc = p.op(trait="HasEpilogue")
    root = p.op(operands=[p.rest(), acc, p.rest()], trait="ScalarLike")
    p.require("only_user", p.result(acc), root)
    p.require("result_has_shape_of", root, p.result(acc))
    p.require("yields_number_of", root, acc)
    p.require("stays_in_type", acc, root)
    p.require("no_attribute", acc, "kernel")
    p.require("operands_fit", acc, root, MAX_OPERANDS)
    p.require("stays_in_batch_loops", acc, root)
    p.replace(root, "append_to_epilogue", acc, root)


@pattern()
def join_epilogue_together(p: PatternBuilder) -> None:
    """Elementwise operations that use a contraction's result x more than once join together: x * sigmoid(c * x)"""
    root = p.op(trait="ScalarLike")
    p.require("ends_group", root, MAX_OPERANDS)
    p.apply(root, "append_group_to_epilogue", root, MAX_OPERANDS)


@pattern(over=("gemm", "bmm"))
def join_bias(p: PatternBuilder, mnemonic: str) -> None:
    """x @ w + b becomes a product with the bias b, which has one element for each column"""
    acc = p.op(f"ait.{mnemonic}", p.values(2))
    bias = p.value()
    root = p.op("ait.add", [p.result(acc), bias], in_any_order=True)
    p.require("only_user", p.result(acc), root)
    p.require("is_a_row_for", bias, p.result(acc))
    p.require("result_has_shape_of", root, p.result(acc))
    p.require("no_region", acc)
    p.require("no_attribute", acc, "kernel")
    p.replace(root, "append_to_epilogue", acc, root)


@pattern(over=("reshape", "permute", "expand", "slice"))
def view_of_widened(p: PatternBuilder, mnemonic: str) -> None:
    """view(cast(x)) = cast(view(x)) where the cast widens: an epilogue then reads the narrow tensor through the view"""
    x = p.value()
    wide = p.result(p.op("ait.cast", [x]))
    root = p.op(f"ait.{mnemonic}", [wide])
    p.require("is_compute_type_of", wide, x)
    p.require("one_use", wide)
    p.replace(root, "widen_view", x, root)


EPILOGUE = patterns(view_of_widened, join_epilogue, join_epilogue_together)
BIAS = patterns(join_bias)


# ** constraints and natives **


@constraint
def stays_in_type(op: HasEpilogue, root: ElementwiseOp) -> bool:
    """The op may yield the root's element type: for a norm, the type's compute type must be its accumulator's type."""
    if not isinstance(op, NormOp):
        return True
    return compute_type(element_type_of(root.results[0])) == op.accumulator_types()[0]


@constraint
def stays_in_batch_loops(op: HasEpilogue, root: Operation) -> bool:
    """A product with the operands of an elementwise operation in its epilogue has no more loops over its batch than all
    kernels have. An operand of [b, 1, d, m, n] needs three for a product of [b, c, d, m, n].
    """
    return fits_batch_loops(op, root.operands)


def fits_batch_loops(op: HasEpilogue, values: Iterable[SSAValue]) -> bool:
    """Whether an op has few enough loops over its batch with these operands in its epilogue."""
    if not isinstance(op, ContractionOp):
        return True
    beside = [v.type.dims for v in (*op.epilogue_operands, *values) if isinstance(v.type, TensorType)]
    if isinstance(op, MatrixOp):  # loops over the leading dims and the rows; the innermost is the rows
        rows = tensor_type(op.results[0]).dims[:-1]
        return batch_loops(rows, *(dims[:-1] for dims in beside)) <= BATCH_LOOPS + 1
    factors = [tensor_type(value).dims for value in op.operands[:2]]
    return batch_loops(*(dims[:-2] for dims in (*factors, *beside))) <= BATCH_LOOPS


@constraint
def yields_number_of(root: ElementwiseOp, op: HasEpilogue) -> bool:
    """The result is a float, or an integer if the product is one of integers. Types that only store numbers are
    excluded.
    """
    element = element_type_of(root.results[0])
    from_integers = op.accumulator_types()[0] == i32 and element != i1
    return (is_float(element) or from_integers) and element not in STORED_ONLY


@constraint
def is_a_row_for(value: SSAValue, product: SSAValue) -> bool:
    """The value has one element for each column of a product; its other dims are 1."""
    dims = tensor_type(value).dims
    return bool(dims) and dims[-1] is tensor_type(product).dims[-1] and all(dim.as_int() == 1 for dim in dims[:-1])


def is_free(op: HasEpilogue) -> bool:
    """Whether the op has no selected kernel and only one result."""
    return "kernel" not in op.attributes and len(op.results) == 1


@native
def append_to_epilogue(r: Rewriter, contraction: HasEpilogue, root: ElementwiseOp) -> Operation:
    """Let an elementwise operation join the epilogue of the contraction it uses; returns the new contraction.

    The accumulator has the compute type of the operands; the yield is rounded once, to the root's element type.
    """
    return append(r, contraction, [root])


@native
def widen_view(r: Rewriter, narrow: SSAValue, view: Operation) -> Operation:
    """The cast to the wide type of the view of the narrow tensor."""
    wide = tensor_type(view.results[0])
    element = element_type_of(narrow)
    moved = r.create(type(view), [narrow], [TensorType.get(wide.dims, element)], view.properties)
    return r.create(CastOp, [moved.results[0]], [wide])


def append(r: Rewriter, contraction: HasEpilogue, joining: Sequence[ElementwiseOp]) -> Operation:
    """The contraction with these operations at the end of its epilogue, in order; it yields the result of the last.

    In commutative operations the value from the contraction comes first, so that r + x @ w and x @ w + r give the same
    kernel.
    """
    accumulator = contraction.results[0]
    made: set[SSAValue] = {accumulator}
    for op in joining:
        made.update(op.results)
        if op.has_trait(Commutative) and op.operands[0] not in made and op.operands[1] in made:
            op.operands = [op.operands[1], op.operands[0]]
    # The old contraction stays until the joining operations, its only users, are replaced; then it is dead.
    regions, grower = take_epilogue(contraction)
    grower.finish([[grower.compute(op) for op in joining][-1]])
    return with_grown(r, contraction, regions, grower, joining[-1].results[0])


def take_epilogue(contraction: HasEpilogue) -> tuple[list[Region], RegionGrower]:
    """The regions of an op, detached, and what adds operations to its epilogue, in which the result has a scalar."""
    extras = list(contraction.epilogue_operands)
    at = contraction.regions.index(contraction.epilogue)
    regions = take_regions(contraction)
    region = regions[at]
    if region.blocks:
        block = region.blocks[0]
        grower = RegionGrower(block, extras, first_argument=contraction.SUMS)
        grower.scalars[contraction.results[0]] = grower.yields()[0]
    else:
        block = Block(arg_types=contraction.accumulator_types())
        block.args[0].name_hint = "acc"
        region.add_block(block)
        grower = RegionGrower(block, extras, first_argument=contraction.SUMS)
        grower.scalars[contraction.results[0]] = block.args[0]
    return regions, grower


def with_grown(
    r: Rewriter, contraction: HasEpilogue, regions: Sequence[Region], grower: RegionGrower, value: SSAValue
) -> Operation:
    """The op with an epilogue that has grown, whose result has the type of `value`."""
    result = value.type
    assert isinstance(result, TensorType)
    properties = contraction.properties_with(len(grower.operands)) | contraction.attributes
    return r.create(type(contraction), [*contraction.own_operands, *grower.operands], [result], properties, regions)


# ** groups **


LARGEST_GROUP = 16
"""Most operations that join at once; the limit keeps the search independent of the graph's size."""


@constraint
def ends_group(root: ElementwiseOp, limit: IntegerAttr) -> bool:
    """Several elementwise operations of one shape, the last of which is `root`, are the only users of a contraction,
    and with them it has at most `limit` operands.
    """
    return group_of(root, limit.value.data) is not None


@native
def append_group_to_epilogue(r: Rewriter, root: ElementwiseOp, limit: IntegerAttr) -> None:
    """Let a group of elementwise operations, the only users of a contraction, join its epilogue."""
    found = group_of(root, limit.value.data)
    assert found is not None, "append_group_to_epilogue needs ends_group"
    contraction, members = found
    joining = sorted(members, key=r.position)
    r.replace(root, append(r, contraction, joining).results)
    for op in (*reversed(joining[:-1]), contraction):
        r.erase(op)


def group_of(root: ElementwiseOp, limit: int) -> tuple[HasEpilogue, list[ElementwiseOp]] | None:
    """A contraction and the elementwise operations from it to `root`; None with other users or too many operands."""
    if not isinstance(root.results[0].type, TensorType):
        return None
    for contraction in contractions_before(root):
        if not stays_in_type(contraction, root) or not yields_number_of(root, contraction):
            continue
        members = users_up_to(contraction, root)
        if members is None:
            continue
        beside = read_beside(contraction, members)
        if len(contraction.operands) + len(beside) <= limit and fits_batch_loops(contraction, beside):
            return contraction, members
    return None


def contractions_before(root: Operation) -> Iterator[HasEpilogue]:
    """The ops with an epilogue and no selected kernel whose results reach `root` through elementwise operations."""
    pending, seen = [root], {root}
    while pending:
        for operand in pending.pop().operands:
            owner = operand.owner
            if isinstance(owner, HasEpilogue) and owner not in seen and is_free(owner):
                seen.add(owner)
                yield owner
            elif isinstance(owner, ElementwiseOp) and owner not in seen and len(seen) < LARGEST_GROUP:
                seen.add(owner)
                pending.append(owner)


def users_up_to(contraction: HasEpilogue, root: ElementwiseOp) -> list[ElementwiseOp] | None:
    """The elementwise operations from a contraction to `root`. None if there are fewer than two, if their shapes
    differ, or if the contraction's result also reaches a user that does not lead to `root`."""
    scope, shape = scope_of(root), tensor_type(contraction.results[0]).dims
    members: list[ElementwiseOp] = []
    pending: list[SSAValue] = [contraction.results[0]]
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if user in members:
                continue
            if not isinstance(user, ElementwiseOp) or len(members) == LARGEST_GROUP:
                return None
            if not same_shape(tensor_type(user.results[0]).dims, shape, scope):
                return None
            if user is not root and not user.results[0].uses:
                return None
            members.append(user)
            if user is not root:
                pending.append(user.results[0])
    return members if root in members and len(members) > 1 else None


def read_beside(contraction: HasEpilogue, members: list[ElementwiseOp]) -> set[SSAValue]:
    """The group's operands from outside the group and the contraction, except constants of one number."""
    made = {contraction.results[0], *(m.results[0] for m in members), *contraction.epilogue_operands}
    return {value for m in members for value in m.operands if value not in made and splat(value) is None}
