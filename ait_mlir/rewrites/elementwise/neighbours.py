"""Two elementwise operations that compute the same function of neighbouring parts of a tensor become one on both parts.

A product of query, key and value is split into them. Query and key are rotated alike, but have different numbers of
heads, which makes two launches of different shapes. Their heads lie side by side, so one launch can rotate both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, OpResult, Region, SSAValue

from ait_mlir.dialects.ait.base import same_shape
from ait_mlir.dialects.ait.data import OutputOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.structure import region_key
from ait_mlir.dialects.ait.traits import UpdatesOperand, ViewLike
from ait_mlir.dialects.ait.types import Shape, ShapeAttr, TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, PermuteOp, ReshapeOp, SliceOp, SplitOp
from ait_mlir.dims import Expr, Scope, const, total
from ait_mlir.rewrites.elementwise.merge import FUSED
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native
from ait_mlir.rewrites.regions import take_region


@pattern()
def same_of_parts(p: PatternBuilder) -> None:
    """f(split(x)[0], c), f(split(x)[1], c) = split(f(split(x)[0:2], c)): the rotation of query and key"""
    root = p.op(FUSED, results=None)
    before = p.find("fused_in_front", root)
    for op in (before, root):
        p.require("no_attribute", op, "kernel")
    p.require("compute_alike", before, root)
    p.require("read_neighbouring_parts", before, root)
    p.require("are_joined_alike", before, root)
    p.apply(root, "join_parts", before, root)


NEIGHBOURS = patterns(same_of_parts)


# ** operands: neighbouring parts **

MOST_VIEWS = 8
"""Most views between an operand and the split that it is a part of."""


@dataclass(frozen=True)
class Level:
    """Two values that can be joined along a dim, the first before the second."""

    first: OpResult
    second: OpResult
    dim: int

    def dims(self) -> Shape:
        """The shape of the joined values."""
        a, b = _dims(self.first), _dims(self.second)
        return (*a[: self.dim], a[self.dim] + b[self.dim], *a[self.dim + 1 :])


def levels_of(first: SSAValue, second: SSAValue, dim: int, scope: Scope) -> list[Level] | None:
    """The chain of levels by which two values of one rank can be joined along a dim, from neighbouring parts of a split
    through equal views of both. None for other values."""
    found: list[Level] = []
    for _ in range(MOST_VIEWS):
        if not isinstance(first, OpResult) or not isinstance(second, OpResult):
            return None
        found.append(Level(first, second, dim))
        a, b = first.owner, second.owner
        if isinstance(a, SplitOp) and a is b:
            is_neighbour = a.dim.value.data == dim and second.index == first.index + 1
            return found[::-1] if is_neighbour else None
        if type(a) is not type(b) or not _alike(first, second, dim, scope):
            return None
        if isinstance(a, PermuteOp):
            dim = a.order()[dim]
        first, second = a.operands[0], b.operands[0]
    return None


def _alike(first: OpResult, second: OpResult, dim: int, scope: Scope) -> bool:
    """Whether two views make the same change and keep the dim along which their values are joined."""
    a, b = first.owner, second.owner
    if not _equal_but_for(_dims(first), _dims(second), dim, scope):
        return False
    if isinstance(a, ReshapeOp):
        return all(_cuts_last_dim(v, dim, scope) for v in (first, second))
    if not isinstance(a, PermuteOp | SliceOp | SplitOp) or a.properties != b.properties or first.index != second.index:
        return False
    if isinstance(a, SplitOp) and isinstance(b, SplitOp):
        return a.dim.value.data != dim and _start(first) is _start(second)
    return isinstance(a, PermuteOp) or all(
        scope.equal(_dims(v)[dim], _dims(op.operands[0])[dim]) for v, op in ((first, a), (second, b))
    )


def _dims(value: SSAValue) -> Shape:
    return tensor_type(value).dims


def _start(part: OpResult) -> Expr:
    """The offset of a part of a split."""
    split = part.owner
    assert isinstance(split, SplitOp)
    return total(_dims(v)[split.dim.value.data] for v in split.results[: part.index])


def _equal_but_for(a: Shape, b: Shape, dim: int, scope: Scope) -> bool:
    return same_shape((*a[:dim], *a[dim + 1 :]), (*b[:dim], *b[dim + 1 :]), scope)


def _cuts_last_dim(value: OpResult, dim: int, scope: Scope) -> bool:
    """Whether a reshape splits the last dim into `dim` and the dims after it, as columns into heads."""
    before, after = _dims(value.owner.operands[0]), _dims(value)
    return len(before) == dim + 1 and same_shape(before[:-1], after[:dim], scope)


def build(r: Rewriter, levels: Sequence[Level], before: Operation) -> SSAValue:
    """The value that joins the two values of the last level; inserts the operations that compute it before `before`."""
    split = levels[0].first.owner
    assert isinstance(split, SplitOp)
    value: SSAValue = split.input
    for level in levels:
        op, dims = level.first.owner, level.dims()
        t = TensorType.get(dims, tensor_type(value).element_type)
        kind, attributes = type(op), dict(op.properties)
        if isinstance(op, SplitOp):
            along = op.dim.value.data
            starts = tuple(_start(level.first) if i == along else const(0) for i in range(len(dims)))
            kind, attributes = SliceOp, {"offsets": ShapeAttr(starts)}
        value = r.create(kind, [value], [t], attributes, before=before).results[0]
    return value


def joint_dim(first: Operation, second: Operation) -> int | None:
    """The only dim in which the results of two operations differ; None if there is not exactly one."""
    a, b, scope = _dims(first.results[0]), _dims(second.results[0]), scope_of(first)
    if len(a) != len(b):
        return None
    differing = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if not scope.equal(x, y)]
    return differing[0] if len(differing) == 1 else None


def joint_operands(first: Operation, second: Operation, dim: int) -> list[SSAValue | list[Level]] | None:
    """For each pair of operands, the joined operand: a shared value that broadcasts along the dim, or the levels of two
    neighbouring parts. None if a pair cannot be joined, or if no pair is neighbouring parts."""
    rank, scope = len(_dims(first.results[0])), scope_of(first)
    found: list[SSAValue | list[Level]] = []
    for a, b in zip(first.operands, second.operands, strict=True):
        own = dim - rank + len(_dims(a))
        if a is b and (own < 0 or _dims(a)[own].as_int() == 1):
            found.append(a)
        elif own >= 0 and len(_dims(a)) == len(_dims(b)) and (levels := levels_of(a, b, own, scope)) is not None:
            found.append(levels)
        else:
            return None
    return found if any(isinstance(operand, list) for operand in found) else None


@constraint
def compute_alike(first: Operation, second: Operation) -> bool:
    """Two fused_elementwise compute the same function, on operands and results of the same element types."""
    assert isinstance(first, FusedElementwiseOp) and isinstance(second, FusedElementwiseOp)
    if len(first.operands) != len(second.operands) or region_key(first.body) != region_key(second.body):
        return False
    values = zip((*first.operands, *first.results), (*second.operands, *second.results), strict=True)
    return all(tensor_type(a).element_type == tensor_type(b).element_type for a, b in values)


@constraint
def read_neighbouring_parts(first: Operation, second: Operation) -> bool:
    """Some operands of the second are the neighbouring parts after operands of the first, along the only dim in which
    the results differ. All other operands are shared and broadcast along that dim."""
    dim = joint_dim(first, second)
    return dim is not None and joint_operands(first, second, dim) is not None


# ** results: read as parts, or joined in the same way **

MOST_READERS = 64
"""Most readers of a result that are visited."""


def is_only_read(value: SSAValue) -> bool:
    """Whether no concat, output or cache update uses a value, directly or through views: there it could have been
    computed in place."""
    pending, looked_at = [value], 0
    while pending:
        for use in pending.pop().uses:
            op, looked_at = use.operation, looked_at + 1
            if looked_at > MOST_READERS or isinstance(op, ConcatOp | OutputOp | UpdatesOperand):
                return False
            if isinstance(op, ViewLike):
                pending += op.results
    return True


def joining(op: Operation) -> tuple[ConcatOp, tuple[int, ...]] | None:
    """The concat whose operands are exactly the results of an operation, if it is their only user, and their order."""
    users = {use.operation for result in op.results for use in result.uses}
    concat = next(iter(users)) if len(users) == 1 else None
    if not isinstance(concat, ConcatOp) or set(concat.operands) != set(op.results):
        return None
    if len(concat.operands) != len(op.results):
        return None
    return concat, tuple(v.index for v in concat.operands if isinstance(v, OpResult))


@constraint
def are_joined_alike(first: Operation, second: Operation) -> bool:
    """`is_only_read` holds for the results of both; or each operation's results are joined by a concat of their own, in
    the same order and along another dim than the parts, and it holds for the concats (the halves of a rotation)."""
    a, b = joining(first), joining(second)
    if a is None or b is None:
        return all(is_only_read(result) for op in (first, second) for result in op.results)
    dim = a[0].dim.value.data
    if dim != b[0].dim.value.data or dim == joint_dim(first, second) or a[1] != b[1]:
        return False
    return is_only_read(a[0].output) and is_only_read(b[0].output)


@native
def join_parts(r: Rewriter, first: FusedElementwiseOp, second: FusedElementwiseOp) -> None:
    """Replace two fused_elementwise by one at the place of the first; their former results are parts of its results."""
    dim = joint_dim(first, second)
    assert dim is not None, "join_parts needs read_neighbouring_parts"
    joint = joint_operands(first, second, dim)
    assert joint is not None, "join_parts needs read_neighbouring_parts"
    a, b = joining(first), joining(second)
    operands = [build(r, v, first) if isinstance(v, list) else v for v in joint]
    types = [
        TensorType.get(Level(x, y, dim).dims(), tensor_type(x).element_type)
        for x, y in zip(first.results, second.results, strict=True)
    ]
    body = take_region(first)
    first.add_region(Region())
    new = r.create(FusedElementwiseOp, operands, types, {}, [body], before=first)
    if a is None or b is None:
        pairs = list(zip(first.results, second.results, new.results, strict=True))
    else:
        whole = r.create(ConcatOp, [new.results[i] for i in a[1]], None, {"dim": a[0].dim}, before=first)
        pairs = [(a[0].output, b[0].output, whole.results[0])]
    for x, y, joined in pairs:
        parts = r.create(SplitOp, [joined], [x.type, y.type], {"dim": IntegerAttr(dim, i64)}, before=first)
        for old, part in zip((x, y), parts.results, strict=True):
            r.replace_value(old, part)
    if a is not None and b is not None:
        r.erase(a[0])
        r.erase(b[0])
    r.erase(second)
    r.erase(first)
