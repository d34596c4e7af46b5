"""Simplifies concatenations and splits: nested operations become one, neighbouring slices of a tensor become one slice,
and a split of a concatenation reads the concatenation's operands.

Splits and slices cost nothing, since they are views. A concatenation costs a copy of each operand that its kernel
cannot write in place, so each pattern leaves fewer concatenations, or fewer operands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from ait_mlir.dialects.ait.types import Shape, ShapeAttr, TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ReshapeOp, SliceOp, SplitOp
from ait_mlir.dims import Expr, Scope, const, product
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native


@pattern()
def concat_of_concats(p: PatternBuilder) -> None:
    """concat(concat(x, y), z) = concat(x, y, z), along one dim"""
    root = p.op("ait.concat")
    p.require("gathers_concats", root)
    p.replace(root, "flat_concat", root)


@pattern()
def split_of_splits(p: PatternBuilder) -> None:
    """split(split(x)[0]) and split(x)[1:] = split(x) into smaller parts, along one dim"""
    root = p.op("ait.split", results=None)
    p.require("is_split_further", root)
    p.apply(root, "split_at_once", root)


@pattern()
def concat_of_neighbours(p: PatternBuilder) -> None:
    """concat(x[0:2], x[2:5], y) = concat(x[0:5], y), for slices of one tensor and parts of a split"""
    root = p.op("ait.concat")
    p.require("has_neighbours", root)
    p.replace(root, "concat_of_blocks", root)


@pattern()
def concat_with_empty(p: PatternBuilder) -> None:
    """concat(x, an operand without elements, y) = concat(x, y)"""
    root = p.op("ait.concat")
    p.require("has_empty_operand", root)
    p.replace(root, "concat_of_rest", root)


@pattern()
def slice_of_operand(p: PatternBuilder) -> None:
    """slice(concat(x, y)) = slice(x), where the slice is within x"""
    concat = p.op("ait.concat")
    root = p.op("ait.slice", [p.result(concat)])
    p.require("lies_in_operand", root, concat)
    p.replace(root, "slice_of_one", root, concat)


@pattern()
def split_of_concat(p: PatternBuilder) -> None:
    """split(concat(x, y, z)) = concat(x, y), z, where a cut lies between two operands"""
    dim = p.attr()
    concat = p.op("ait.concat", attrs={"dim": dim})
    root = p.op("ait.split", [p.result(concat)], {"dim": dim}, results=None)
    p.require("is_cut_between_operands", root, concat)
    p.apply(root, "split_operands", root, concat)


@pattern()
def concat_of_reshaped_concat(p: PatternBuilder) -> None:
    """concat(reshape(concat(x, y)), z) = concat(reshape(x), reshape(y), z), where x and y can be reshaped separately"""
    root = p.op("ait.concat")
    p.require("reads_reshaped_concat", root)
    p.replace(root, "concat_of_reshaped", root)


CONCATS = patterns(
    concat_of_concats,
    split_of_splits,
    concat_of_neighbours,
    concat_with_empty,
    slice_of_operand,
    split_of_concat,
    concat_of_reshaped_concat,
)


# ** nested concatenations **


def _dim(op: Operation) -> int:
    assert isinstance(op, ConcatOp | SplitOp)
    return op.dim.value.data


def _inner_concat(value: SSAValue, outer: Operation) -> ConcatOp | None:
    """The concatenation that computes `value`, if it has the dim of `outer` and `outer` is its only user."""
    op = value.owner
    if not isinstance(op, ConcatOp) or _dim(op) != _dim(outer):
        return None
    return op if value.has_one_use() and op.parent is outer.parent else None


def _concat(r: Rewriter, values: Sequence[SSAValue], root: Operation) -> Operation:
    """A concatenation of `values` with the root's dim and result type."""
    return r.create(ConcatOp, values, [root.results[0].type], {"dim": IntegerAttr(_dim(root), i64)})


@constraint
def gathers_concats(root: ConcatOp) -> bool:
    """The outermost of nested concatenations along one dim; each inner concatenation has no other use.

    The whole nest becomes one operation at once, so the cost is linear in its size.
    """
    user = root.output.get_user_of_unique_use()
    if isinstance(user, ConcatOp) and _inner_concat(root.output, user) is not None:
        return False
    return any(_inner_concat(value, root) is not None for value in root.operands)


@native
def flat_concat(r: Rewriter, root: ConcatOp) -> Operation:
    """One concatenation of all operands of nested concatenations."""
    flat: list[SSAValue] = []
    rest = list(reversed(root.operands))
    while rest:
        value = rest.pop()
        inner = _inner_concat(value, root)
        if inner is None:
            flat.append(value)
        else:
            rest += reversed(inner.operands)
    return _concat(r, flat, root)


@constraint
def has_empty_operand(root: ConcatOp) -> bool:
    """One of several operands has no elements: its size along the dim is the constant 0."""
    return len(root.operands) > 1 and any(_is_empty(value, _dim(root)) for value in root.operands)


@native
def concat_of_rest(r: Rewriter, root: ConcatOp) -> Operation:
    """The concatenation of the operands that have elements; of the last operand if none has."""
    rest = [value for value in root.operands if not _is_empty(value, _dim(root))]
    return _concat(r, rest or root.operands[-1:], root)


def _is_empty(value: SSAValue, dim: int) -> bool:
    return tensor_type(value).dims[dim].as_int() == 0


# ** nested splits **


def _inner_split(value: SSAValue, outer: Operation) -> SplitOp | None:
    """The only user of `value`, if it is a split with the dim of `outer`."""
    op = value.get_user_of_unique_use()
    return op if isinstance(op, SplitOp) and _dim(op) == _dim(outer) and op.parent is outer.parent else None


@constraint
def is_split_further(root: SplitOp) -> bool:
    """The outermost of nested splits along one dim; each part that is split further has no other use."""
    before = root.input.owner
    if isinstance(before, SplitOp) and _inner_split(root.input, before) is root:
        return False
    return any(_inner_split(part, root) is not None for part in root.results)


@native
def split_at_once(r: Rewriter, root: SplitOp) -> None:
    """Replace nested splits by one split into all their parts."""
    flat: list[SSAValue] = []
    nested: list[SplitOp] = []
    rest = list(reversed(root.results))
    while rest:
        part: SSAValue = rest.pop()
        inner = _inner_split(part, root)
        if inner is None:
            flat.append(part)
        else:
            nested.append(inner)
            rest += reversed(inner.results)
    parts = r.create(SplitOp, [root.input], [part.type for part in flat], {"dim": root.dim}).results
    for old, new in zip(flat, parts, strict=True):
        r.replace_value(old, new)
    for op in (*reversed(nested), root):
        r.erase(op)


# ** pieces of one tensor **


@dataclass(frozen=True)
class Block:
    """A value as a block of the tensor `source`: its offsets and its shape."""

    source: SSAValue
    offsets: Shape
    dims: Shape

    def joined(self, other: Block, dim: int, scope: Scope) -> Block | None:
        """The block that joins this block and `other`, if `other` follows it directly along `dim`; else None."""
        beside = self.source is other.source and all(
            scope.equal(a + (n if axis == dim else 0), b)
            for axis, (a, b, n) in enumerate(zip(self.offsets, other.offsets, self.dims, strict=True))
        )
        if not beside:
            return None
        sizes = tuple(n + other.dims[dim] if axis == dim else n for axis, n in enumerate(self.dims))
        return Block(self.source, self.offsets, sizes)


def _blocks(values: Sequence[SSAValue]) -> Iterator[Block]:
    """Each value as a block of the tensor that it is a slice or part of; any other value is a block of itself."""
    starts: dict[SplitOp, list[Expr]] = {}
    for value in values:
        op, dims = value.owner, tensor_type(value).dims
        if isinstance(op, SliceOp):
            yield Block(op.input, op.offsets.data, dims)
        elif isinstance(op, SplitOp) and isinstance(value, OpResult):
            if op not in starts:
                starts[op] = _starts(op.results, _dim(op))
            at = starts[op][value.index]
            yield Block(op.input, tuple(at if i == _dim(op) else const(0) for i in range(len(dims))), dims)
        else:
            yield Block(value, (const(0),) * len(dims), dims)


def _starts(values: Sequence[SSAValue], dim: int) -> list[Expr]:
    """The offset of each value when they are joined along a dim, and at the end the total size."""
    return list(accumulate((tensor_type(value).dims[dim] for value in values), initial=const(0)))


def _runs(root: ConcatOp) -> list[tuple[Block, SSAValue | None]]:
    """The operands with neighbours joined: each block, with its operand if it consists of only one."""
    scope, dim = scope_of(root), _dim(root)
    runs: list[tuple[Block, SSAValue | None]] = []
    for value, block in zip(root.operands, _blocks(root.operands), strict=True):
        joined = runs[-1][0].joined(block, dim, scope) if runs else None
        if joined is None:
            runs.append((block, value))
        else:
            runs[-1] = joined, None
    return runs


@constraint
def has_neighbours(root: ConcatOp) -> bool:
    """Two successive operands are neighbouring pieces of one tensor, in this order."""
    return len(_runs(root)) < len(root.operands)


@native
def concat_of_blocks(r: Rewriter, root: ConcatOp) -> Operation:
    """The concatenation with one slice for each run of neighbours."""
    values: list[SSAValue] = []
    for block, value in _runs(root):
        if value is None:
            t = TensorType.get(block.dims, tensor_type(block.source).element_type)
            value = r.create(SliceOp, [block.source], [t], {"offsets": ShapeAttr(block.offsets)}).results[0]
        values.append(value)
    return _concat(r, values, root)


# ** pieces of a concatenation **


def _operand_around(root: SliceOp, concat: ConcatOp) -> tuple[SSAValue, Expr] | None:
    """The operand of a concatenation that contains the slice, and the operand's offset along the dim; else None."""
    dim, scope = _dim(concat), scope_of(root)
    first = root.offsets.data[dim]
    end = first + tensor_type(root.output).dims[dim]
    at = const(0)
    for value in concat.operands:
        stop = at + tensor_type(value).dims[dim]
        if scope.le(at, first) and scope.le(end, stop):
            return value, at
        at = stop
    return None


@constraint
def lies_in_operand(root: SliceOp, concat: ConcatOp) -> bool:
    """One operand of the concatenation contains the whole slice."""
    return _operand_around(root, concat) is not None


@native
def slice_of_one(r: Rewriter, root: SliceOp, concat: ConcatOp) -> Operation:
    """The slice, taken from the operand that contains it."""
    found = _operand_around(root, concat)
    assert found is not None, "slice_of_one needs lies_in_operand"
    value, at = found
    offsets = tuple(o - at if i == _dim(concat) else o for i, o in enumerate(root.offsets.data))
    return r.create(SliceOp, [value], [root.output.type], {"offsets": ShapeAttr(offsets)})


@dataclass(frozen=True)
class Segment:
    """Successive operands of a concatenation, and the parts of its split that hold the same elements."""

    operands: Sequence[SSAValue]
    parts: Sequence[SSAValue]


def _segments(root: SplitOp, concat: ConcatOp) -> list[Segment]:
    """A concatenation and its split, divided at every position where both have a border. Both are along one dim."""
    scope, dim = scope_of(root), _dim(root)
    operands, parts = list(concat.operands), list(root.results)
    ends, cuts = _starts(operands, dim)[1:], _starts(parts, dim)[1:]
    found: list[Segment] = []
    i = j = first = start = 0
    while i < len(ends) and j < len(cuts):
        if scope.equal(ends[i], cuts[j]):
            i, j = i + 1, j + 1
            found.append(Segment(operands[first:i], parts[start:j]))
            first, start = i, j
        elif scope.le(ends[i], cuts[j]):
            i += 1
        elif scope.le(cuts[j], ends[i]):
            j += 1
        else:
            break
    if first < len(operands) or start < len(parts):
        found.append(Segment(operands[first:], parts[start:]))
    return found


@constraint
def is_cut_between_operands(root: SplitOp, concat: ConcatOp) -> bool:
    """A cut of the split lies between two operands of the concatenation. If the concatenation has other users, each
    part must lie within one operand."""
    segments = _segments(root, concat)
    if concat.output.has_one_use():
        return len(segments) > 1 or len(segments[0].operands) == 1
    return all(len(segment.operands) == 1 for segment in segments)


@native
def split_operands(r: Rewriter, root: SplitOp, concat: ConcatOp) -> None:
    """Compute each part of the split only from the operands that hold its elements."""
    values: list[SSAValue] = []
    attributes: dict[str, Attribute] = {"dim": root.dim}
    for segment in _segments(root, concat):
        value = segment.operands[0]
        if len(segment.operands) > 1:
            value = r.create(ConcatOp, segment.operands, None, attributes).results[0]
        if len(segment.parts) > 1:
            values += r.create(SplitOp, [value], [part.type for part in segment.parts], attributes).results
        else:
            values.append(value)
    r.replace(root, values)


# ** reshapes between concatenations **


def _reshaped_concat(value: SSAValue, root: ConcatOp) -> list[TensorType] | None:
    """The type of each operand after its own reshape, if `value` is a reshape of a concatenation, both have one use,
    and the reshaped operands join along the root's dim. Else None."""
    reshape = value.owner
    if not isinstance(reshape, ReshapeOp) or not value.has_one_use() or reshape.parent is not root.parent:
        return None
    concat = reshape.input.owner
    if not isinstance(concat, ConcatOp) or not reshape.input.has_one_use() or concat.parent is not root.parent:
        return None
    scope, dim, inner_dim = scope_of(root), _dim(root), _dim(concat)
    whole, result = tensor_type(reshape.input), tensor_type(value)
    if not scope.equal(product(whole.dims[:inner_dim]), product(result.dims[:dim])):
        return None
    row, inner_row = product(result.dims[dim + 1 :]), product(whole.dims[inner_dim + 1 :])
    types: list[TensorType] = []
    for operand in concat.operands:
        count = _quotient(tensor_type(operand).dims[inner_dim], inner_row, row, scope)
        if count is None:
            return None
        types.append(TensorType.get((*result.dims[:dim], count, *result.dims[dim + 1 :]), result.element_type))
    return types


def _quotient(count: Expr, inner_row: Expr, row: Expr, scope: Scope) -> Expr | None:
    """The number of rows of size `row` with the elements of `count` rows of `inner_row`; None if it is not whole."""
    if scope.equal(inner_row, row):
        return count
    elements, size = (count * inner_row).as_int(), row.as_int()
    return const(elements // size) if elements is not None and size and elements % size == 0 else None


@constraint
def reads_reshaped_concat(root: ConcatOp) -> bool:
    """An operand is a reshape of another concatenation, both with one use, and the inner operands, each reshaped, join
    along the root's dim."""
    return any(_reshaped_concat(value, root) is not None for value in root.operands)


@native
def concat_of_reshaped(r: Rewriter, root: ConcatOp) -> Operation:
    """The concatenation that reads the reshaped operands of the inner concatenations."""
    values: list[SSAValue] = []
    for value in root.operands:
        types = _reshaped_concat(value, root)
        if types is None:
            values.append(value)
            continue
        reshape = value.owner
        assert isinstance(reshape, ReshapeOp) and isinstance(reshape.input.owner, ConcatOp)
        operands = reshape.input.owner.operands
        values += [r.create(ReshapeOp, [x], [t]).results[0] for x, t in zip(operands, types, strict=True)]
    return _concat(r, values, root)
