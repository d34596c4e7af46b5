"""Merges elementwise operations that do not feed each other into one launch.

There are three cases. Two operations that read the same large tensor then read it once. Two operations that share any
tensor, with no launch between them, save a launch; no buffer lives longer, because only views move. A small and cheap
operation is computed again for each element by its only user, which saves its launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp, OutputOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.region import FusedElementwiseOp, YieldOp
from ait_mlir.dialects.ait.traits import ScalarLike
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.rewrites.elementwise.chunks import chunk_of, keeps_chunks
from ait_mlir.rewrites.elementwise.merge import FUSED, MAX_BUFFERS, is_free, merge_as_one
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, finder

MAX_TOGETHER = 16
"""Most operands and results of the merged launch: a thread holds a chunk of each in registers."""

MAX_RECOMPUTED = 4
"""Most operations that are computed again for each element instead of once per row or column."""


@pattern()
def merge_with_sibling(p: PatternBuilder) -> None:
    """Two operations of one shape that read the same tensor of that shape become one, such as halves of a rotation"""
    shared = p.value()
    root = p.op(FUSED, [p.rest(), shared, p.rest()], results=None)
    sibling = p.find("fused_before_that_reads", shared, root)
    for op in (sibling, root):
        p.require("result_has_shape_of", op, shared)
    merge_as_one(p, sibling, root, MAX_BUFFERS)
    p.apply(root, "merge_fused", sibling, root)


@pattern()
def merge_with_neighbour(p: PatternBuilder) -> None:
    """Two operations of one shape that share a tensor, with no launch between them, become one: rotations of q and k"""
    root = p.op(FUSED, results=None)
    neighbour = p.find("fused_in_front", root)
    p.require("same_shape", p.result(neighbour), p.result(root))
    p.require("share_elements", neighbour, root)
    p.require("access_alike", neighbour, root)
    merge_as_one(p, neighbour, root, MAX_TOGETHER)
    p.apply(root, "merge_fused", neighbour, root)


@pattern()
def merge_into_user(p: PatternBuilder) -> None:
    """A cheap operation on a row or column joins its only user, such as a cast of token positions"""
    root = p.op(FUSED, results=None)
    user = p.find("fused_only_user", root)
    p.require("is_cheap", root, MAX_RECOMPUTED)
    p.require("spares_reads", root, user)
    for op in (root, user):
        p.require("no_attribute", op, "kernel")
    p.require("fit_as_one", root, user, MAX_TOGETHER)
    p.apply(root, "merge_fused", root, user)


SIBLINGS = patterns(merge_with_sibling, merge_with_neighbour, merge_into_user)


# ** siblings: both read one large tensor, anywhere in a block **


@finder
def fused_before_that_reads(r: Rewriter, value: SSAValue, root: Operation) -> Iterator[Operation]:
    """The fused_elementwise operations before the root, in its block, that read a value."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, FusedElementwiseOp) and op is not root and op.parent is root.parent and r.is_before(op, root):
            yield op


# ** neighbours: nothing is launched between the two **

LOOK_BACK = 64
"""Most views and data between neighbours; the limit keeps the search independent of the graph's size."""


@finder
def fused_in_front(root: Operation) -> Iterator[Operation]:
    """The fused_elementwise before the root, if only views, data and outputs are between them."""
    op = root.prev_op
    for _ in range(LOOK_BACK):
        if isinstance(op, FusedElementwiseOp):
            yield op
        if op is None or not (is_free(op) or isinstance(op, OutputOp)):
            return
        op = op.prev_op


@constraint
def share_elements(first: Operation, second: Operation) -> bool:
    """Both read the same tensor of more than one element."""
    shared = set(first.operands) & set(second.operands)
    return any(any(dim.as_int() != 1 for dim in tensor_type(value).dims) for value in shared)


@constraint
def access_alike(first: Operation, second: Operation) -> bool:
    """Kernels of both ops access all their tensors, as far as known, in whole chunks of 16 bytes of as many elements.
    Other accesses need twice the registers, and a merged op would need them for both.
    """
    return chunk_of(first) == chunk_of(second) and keeps_chunks(first) and keeps_chunks(second)


# ** small operations: computed again for each element that reads them **


@finder
def fused_only_user(root: Operation) -> Iterator[Operation]:
    """The fused_elementwise in the same block that is the only user of an operation's results."""
    users = list(islice(dict.fromkeys(use.operation for result in root.results for use in result.uses), 2))
    if len(users) == 1 and isinstance(users[0], FusedElementwiseOp) and users[0].parent is root.parent:
        yield users[0]


@constraint
def is_cheap(root: FusedElementwiseOp, limit: IntegerAttr) -> bool:
    """The region has at most `limit` operations besides constants, each of a few instructions (`CHEAP`)."""
    made = [op for op in root.body.block.ops if not isinstance(op, ConstantOp | YieldOp)]
    return len(made) <= limit.value.data and all(isinstance(op, ScalarLike) and op.CHEAP for op in made)


@constraint
def spares_reads(first: Operation, user: Operation) -> bool:
    """The first operation's operands cost the user no more reads than its results: either the results have one element
    per row, or the operands have no more bytes per element. The operands do not change the elements of a chunk.
    """
    if chunk_of(user, first.operands) != chunk_of(user):
        return False
    row = tensor_type(user.results[0]).dims[-1:]
    if row and row[0].as_int() != 1 and all(is_one_a_row(result) for result in first.results):
        return True
    return element_bytes(first.operands) <= element_bytes(first.results)


def is_one_a_row(value: SSAValue) -> bool:
    """Whether a tensor broadcasts along the last dim, so that it has one element for each row."""
    return all(dim.as_int() == 1 for dim in tensor_type(value).dims[-1:])


def element_bytes(values: Sequence[SSAValue]) -> int:
    """The total size in bytes of one element of each value."""
    return sum(BY_IR[tensor_type(value).element_type].bytes for value in values)
