"""Elementwise operations of which neither makes what the other reads in its shape, as one launch.

There are three reasons. Two that read one large tensor read it once. Two that have a tensor in common, however small,
and no launch between them, are a launch less; nothing lives longer for it, as all that moves is views. And what is
small and cheap is computed again by the one operation that reads it, for each element, rather than by a launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.base import same_shape
from ait_mlir.dialects.ait.data import ConstantOp, OutputOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.elementwise import FusedElementwiseOp, YieldOp
from ait_mlir.dialects.ait.traits import ScalarLike
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.rewrites.elementwise.chunks import chunk_of, keeps_chunks
from ait_mlir.rewrites.elementwise.merge import MAX_BUFFERS, Place, is_free, merge, place_of_merge
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native

MAX_TOGETHER = 16
"""Operands and results of one launch for two: a thread holds a chunk of each in registers."""

MAX_RECOMPUTED = 4
"""Operations that are computed for each element instead of for each row or column."""


@pattern()
def merge_with_sibling(p: PatternBuilder) -> None:
    """Two of the same shape that read one tensor of it become one, which reads it once: the halves of a rotation"""
    root = p.op("ait.fused_elementwise", results=None)
    p.require("no_attribute", root, "kernel")
    p.require("has_sibling_to_merge", root)
    p.apply(root, "merge_sibling", root)


@pattern()
def merge_with_neighbour(p: PatternBuilder) -> None:
    """Two of the same shape with nothing launched between that read one tensor: query and key, which rotate alike"""
    root = p.op("ait.fused_elementwise", results=None)
    p.require("no_attribute", root, "kernel")
    p.require("neighbour_has_no_attribute", root, "kernel")
    p.require("neighbour_has_shape", root)
    p.require("shares_elements_with_neighbour", root)
    p.require("accesses_like_neighbour", root)
    p.require("fits_with_neighbour", root, MAX_TOGETHER)
    p.require("is_independent_of_neighbour", root)
    p.apply(root, "merge_neighbour", root)


@pattern()
def merge_into_user(p: PatternBuilder) -> None:
    """A few instructions on a row or column are done for each element that reads it: the type of token positions"""
    root = p.op("ait.fused_elementwise", results=None)
    p.require("no_attribute", root, "kernel")
    p.require("user_has_no_attribute", root, "kernel")
    p.require("is_cheap", root, MAX_RECOMPUTED)
    p.require("spares_reads_of_user", root)
    p.require("fits_user", root, MAX_TOGETHER)
    p.apply(root, "merge_in_user", root)


SIBLINGS = patterns(merge_with_sibling, merge_with_neighbour, merge_into_user)


# ** constraints and natives **


# ** siblings: both read one large tensor, wherever they stand **


def sibling_to_merge(r: Rewriter, root: Operation) -> tuple[Operation, Place] | None:
    """The first earlier fused_elementwise that reads what the root reads and can be merged with it, and where."""
    scope = scope_of(root)
    shape = tensor_type(root.results[0]).dims
    for value in root.operands:
        if not same_shape(tensor_type(value).dims, shape, scope):
            continue
        for use in value.uses:
            other = use.operation
            if (
                isinstance(other, FusedElementwiseOp)
                and other is not root
                and other.parent is root.parent
                and "kernel" not in other.attributes
                and r.is_before(other, root)
                and same_shape(tensor_type(other.results[0]).dims, shape, scope)
                and len(other.operands) + len(other.results) + len(root.operands) + len(root.results) <= MAX_BUFFERS
                and (place := place_of_merge(r, other, root)) is not None
            ):
                return other, place
    return None


@constraint
def has_sibling_to_merge(r: Rewriter, root: FusedElementwiseOp) -> bool:
    """An earlier, independent fused_elementwise of the same shape reads a tensor of that shape that this one reads."""
    return sibling_to_merge(r, root) is not None


@native
def merge_sibling(r: Rewriter, root: FusedElementwiseOp) -> None:
    """Merge the regions of two fused_elementwise that read the same tensor; its results come before the root's."""
    found = sibling_to_merge(r, root)
    assert found is not None, "merge_sibling needs has_sibling_to_merge"
    merge(r, *found, root)


# ** neighbours: nothing is launched between the two **

LOOK_BACK = 64
"""Views and data that may stand between neighbours: looking for one must not depend on the size of the graph."""


def neighbour_of(root: Operation) -> FusedElementwiseOp | None:
    """The fused_elementwise in front of the root with nothing but views, data and outputs between the two."""
    op = root.prev_op
    for _ in range(LOOK_BACK):
        if op is None or isinstance(op, FusedElementwiseOp):
            return op
        if not is_free(op) and not isinstance(op, OutputOp):
            return None
        op = op.prev_op
    return None


@constraint
def neighbour_has_no_attribute(root: FusedElementwiseOp, name: StringAttr) -> bool:
    """As `no_attribute`, of the fused_elementwise in front of the root with nothing that is launched between."""
    other = neighbour_of(root)
    return other is not None and name.data not in other.attributes


@constraint
def neighbour_has_shape(root: FusedElementwiseOp) -> bool:
    """The fused_elementwise in front of the root, with nothing that is launched between, has the root's shape."""
    other, shape = neighbour_of(root), tensor_type(root.results[0]).dims
    return other is not None and same_shape(tensor_type(other.results[0]).dims, shape, scope_of(root))


@constraint
def shares_elements_with_neighbour(root: FusedElementwiseOp) -> bool:
    """The root and its neighbour in front read one tensor that is more than one element."""
    other = neighbour_of(root)
    shared = set[SSAValue]() if other is None else set(other.operands) & set(root.operands)
    return any(any(dim.as_int() != 1 for dim in tensor_type(value).dims) for value in shared)


@constraint
def accesses_like_neighbour(root: FusedElementwiseOp) -> bool:
    """As far as is known, kernels for the root and its neighbour in front access all in whole chunks of 16 bytes, of as
    many elements: the other ways take twice the registers, and as one they would take them for both."""
    other = neighbour_of(root)
    return other is not None and chunk_of(other) == chunk_of(root) and keeps_chunks(other) and keeps_chunks(root)


@constraint
def fits_with_neighbour(root: FusedElementwiseOp, limit: IntegerAttr) -> bool:
    """As one, the root and its neighbour in front have at most `limit` operands and results."""
    other = neighbour_of(root)
    return (
        other is not None
        and buffers([*other.operands, *root.operands], [*other.results, *root.results]) <= limit.value.data
    )


@constraint
def is_independent_of_neighbour(r: Rewriter, root: FusedElementwiseOp) -> bool:
    """The root and its neighbour in front can stand as one: no view of what one makes leads to the other."""
    other = neighbour_of(root)
    return other is not None and place_of_merge(r, other, root) is not None


@native
def merge_neighbour(r: Rewriter, root: FusedElementwiseOp) -> None:
    """Merge the regions of a fused_elementwise and the one in front of it, whose results come first."""
    other = neighbour_of(root)
    place = None if other is None else place_of_merge(r, other, root)
    assert other is not None and place is not None, "merge_neighbour needs is_independent_of_neighbour"
    merge(r, other, place, root)


def buffers(operands: Sequence[SSAValue], results: Sequence[SSAValue]) -> int:
    """How many buffers there are among what operations read and make; what two of them read counts once."""
    return len({*operands, *results})


# ** small operations: computed again for each element that reads them **


def user_of(root: Operation) -> FusedElementwiseOp | None:
    """The fused_elementwise that is all that uses an operation's results."""
    users = list(islice(dict.fromkeys(use.operation for result in root.results for use in result.uses), 2))
    user = users[0] if len(users) == 1 else None
    return user if isinstance(user, FusedElementwiseOp) and user.parent is root.parent else None


@constraint
def user_has_no_attribute(root: FusedElementwiseOp, name: StringAttr) -> bool:
    """As `no_attribute`, of the fused_elementwise that is all that uses the operation."""
    user = user_of(root)
    return user is not None and name.data not in user.attributes


@constraint
def is_cheap(root: FusedElementwiseOp, limit: IntegerAttr) -> bool:
    """At most `limit` operations beside constants, of a few instructions each: no division, no function."""
    made = [op for op in root.body.block.ops if not isinstance(op, ConstantOp | YieldOp)]
    return len(made) <= limit.value.data and all(isinstance(op, ScalarLike) and op.CHEAP for op in made)


@constraint
def spares_reads_of_user(root: FusedElementwiseOp) -> bool:
    """What the only user of the operation would read instead costs no more to read: one element for a whole row, or for
    each element no more bytes; and nothing so narrow that a chunk of 16 bytes had more elements."""
    user = user_of(root)
    if user is None or chunk_of(user, root.operands) != chunk_of(user):
        return False
    row = tensor_type(user.results[0]).dims[-1:]
    if row and row[0].as_int() != 1 and all(is_one_a_row(result) for result in root.results):
        return True
    return element_bytes(root.operands) <= element_bytes(root.results)


@constraint
def fits_user(root: FusedElementwiseOp, limit: IntegerAttr) -> bool:
    """The only user of the operation has at most `limit` operands and results with the operation's operands."""
    user = user_of(root)
    return (
        user is not None
        and buffers([*root.operands, *user.operands], user.results) - len(root.results) <= limit.value.data
    )


@native
def merge_in_user(r: Rewriter, root: FusedElementwiseOp) -> None:
    """Merge the region of a fused_elementwise into the only one that uses it, which computes it for each element."""
    user = user_of(root)
    assert user is not None, "merge_in_user needs fits_user"
    merge(r, root, (user, []), user)


def is_one_a_row(value: SSAValue) -> bool:
    """Whether a tensor has one element for each row of what it broadcasts to."""
    return all(dim.as_int() == 1 for dim in tensor_type(value).dims[-1:])


def element_bytes(values: Sequence[SSAValue]) -> int:
    """Bytes of an element of each."""
    return sum(BY_IR[tensor_type(value).element_type].bytes for value in values)
