"""Attention with masks in the ways that models write them: `where` chooses scores, and triangles are computed.

A number far below 0 hides a score, because its exponential is then 0 for any finite score. A row in which every score
is hidden by a finite number has equal weights: the number that is added instead is so large that scores are lost in it.
For an infinite score the result differs, and so does a row whose columns up to the diagonal are all hidden: it then has
no weight after the diagonal. Models do not rely on these cases, but the reference distinguishes them, so these
patterns require an assumption of the importer. Without a softmax, a score of 0 hides a column for any scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, UnitAttr, f16, f64, i64
from xdsl.ir import BlockArgument, Operation, SSAValue

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.elementwise import AddOp, CompareOp, ElementwiseOp, WhereOp
from ait_mlir.dialects.ait.gemm import BmmOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ExpandOp, ReshapeOp, SliceOp
from ait_mlir.dims import Expr, const
from ait_mlir.rewrites.attention import keeps_rows, with_operands
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.numbers import element_type_of, splat
from ait_mlir.rewrites.engine.registry import constraint, native

HIDDEN = -1e30
"""Hides a score as a term of it: in f32, scores up to 1e22 are lost in it, and it stays finite times 1.4."""
MAX_CHANGES = 16
"""Most values visited on the way from a softmax back to its matrix product."""
HIDING = -9e3
"""A mask of at most this number hides a score: its weight is e^9000 times smaller. (bf16 has -9984 for -1e4.)"""


@pattern(over=("scores_first", "scores_last"))
def mask_of_where(p: PatternBuilder, order: str) -> None:
    """softmax(where(c, scores, low)) = softmax(scores + where(c, 0, low)): the mask is added"""
    c, scores, low, dim = p.value(), p.value(), p.value(), p.attr()
    first = order == "scores_first"
    chosen = p.result(p.op("ait.where", [c, scores, low] if first else [c, low, scores]))
    root = p.op("ait.softmax", [chosen], {"dim": dim})
    p.require("one_use", chosen)
    p.require("same_type", chosen, scores)
    p.require("is_of_products", scores)
    p.require("is_hiding_splat", low)
    p.require("hides_alike", low, c)
    zero, hidden = p.native("zero_like", low, results=[p.VALUE]), p.native("hidden_like", low, results=[p.VALUE])
    mask = p.result(p.new("ait.where", [c, zero, hidden] if first else [c, hidden, zero]))
    masked = p.result(p.new("ait.add", [scores, mask]))
    p.replace(root, p.new("ait.softmax", [masked], {"dim": dim}))


def hidden_by_comparison(p: PatternBuilder, what: str) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Match attention with the mask where(a >= b, m, low) for `seen`, else where(a >= b, low, m); returns the
    attention, the comparison and m."""
    q, k, v, a, b, m, low = p.values(7)
    condition = p.op("ait.compare", [a, b], {"predicate": "ge"})
    chosen = [m, low] if what == "seen" else [low, m]
    mask = p.result(p.op("ait.where", [p.result(condition), *chosen]))
    root = p.op("ait.attention", [q, k, v, mask, p.rest()])
    p.require("is_mask_of", mask, root)
    p.require("is_hiding_splat", low)
    p.require("no_attribute", root, "kernel")
    return root, condition, m


@pattern(over=("seen", "hidden"))
def causal_of_triangle(p: PatternBuilder, what: str) -> None:
    """attention with the mask where(column <= row, m, low) = causal attention with the mask m"""
    root, condition, m = hidden_by_comparison(p, what)
    p.require("is_up_to_diagonal" if what == "seen" else "is_behind_diagonal", condition, root)
    p.replace(root, "causal_attention", root, m)


@pattern(over=("seen", "hidden"))
def window_of_band(p: PatternBuilder, what: str) -> None:
    """causal attention with the mask where(column > row - W, m, low) = causal attention with a window of W"""
    root, condition, m = hidden_by_comparison(p, what)
    p.require("is_band" if what == "seen" else "is_before_band", condition, root)
    p.replace(root, "attention_in_window", root, m, condition)


@pattern(benefit=2)  # before the region computes the comparison
def causal_of_zeros(p: PatternBuilder) -> None:
    """attention without a softmax, with scores where(column <= row, s, 0) = causal attention with the scores s"""
    root = p.op("ait.attention", [p.rest()], results=None)
    p.require("no_attribute", root, "kernel")
    p.require("zeroes_after_diagonal", root)
    p.replace(root, "causal_weights", root)


@pattern()
def broadcast_operand(p: PatternBuilder) -> None:
    """attention with an expanded mask or score operand = attention with the operand before the expand"""
    root = p.op("ait.attention", [p.rest()], results=None)
    p.require("reads_broadcast_operands", root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "with_own_operands", root)


CHOICES = patterns(mask_of_where)
BROADCASTS = patterns(broadcast_operand)
ZEROS = patterns(causal_of_zeros)
TRIANGLES = BROADCASTS + patterns(causal_of_triangle, window_of_band)


# ** constraints and natives **


@constraint
def is_of_products(value: SSAValue) -> bool:
    """The value is the result of an `ait.bmm`, or elementwise operations compute it from such a result of its shape."""
    pending, seen = [value], {value}
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, BmmOp):
            return True
        if len(seen) < MAX_CHANGES and (isinstance(owner, ElementwiseOp) or keeps_rows(owner)):
            shape = tensor_type(owner.operands[0] if isinstance(owner, ReshapeOp) else owner.results[0]).dims
            same = [x for x in owner.operands if x not in seen and tensor_type(x).dims == shape]
            seen.update(same)
            pending += same
    return False


@constraint
def is_hiding_splat(value: SSAValue) -> bool:
    """The value is an `ait.constant` of one number so far below 0 that a score plus this number gets no weight."""
    number = splat(value)
    return number is not None and number <= HIDING


@constraint
def hides_alike(low: SSAValue, condition: SSAValue) -> bool:
    """The sums of scores with the number `hidden_like` are equal, or each row has a score that the condition keeps.

    Sums with -65504, the least number of f16, are not equal in the f32 of a kernel.
    """
    if element_type_of(low) != f16 or splat(low) == -math.inf:
        return True
    owner = _broadcasts_by_itself(condition).owner
    if not isinstance(owner, CompareOp) or owner.predicate.data != "ge":
        return False
    return counting(owner.lhs) is not None and counting(owner.rhs) is not None


def _broadcasts_by_itself(value: SSAValue) -> SSAValue:
    """The operand of an expand, or of a reshape that only adds leading dims of 1, if `value` is its result; else
    `value`.
    """
    owner = value.owner
    if not isinstance(owner, ExpandOp | ReshapeOp):
        return value
    dims, own = tensor_type(value).dims, tensor_type(owner.input).dims
    added = len(dims) - len(own)
    if isinstance(owner, ReshapeOp):
        same = added > 0 and dims[added:] == own and all(d.as_int() == 1 for d in dims[:added])
        return owner.input if same else value
    return owner.input if added >= 0 else value


@constraint
def reads_broadcast_operands(attention: AttentionOp) -> bool:
    """A mask or an operand of the scores is made by an expand, or by a reshape that adds leading dims of 1."""
    given = [*attention.score_operands, *([] if attention.mask is None else [attention.mask])]
    return any(_broadcasts_by_itself(x) is not x for x in given)


@native
def with_own_operands(r: Rewriter, root: AttentionOp) -> Operation:
    """The attention with its mask and score operands as they are before an expand or a reshape that adds dims of 1."""
    first = len(root.own_operands) - (root.mask is not None)
    operands = list(root.operands)
    return with_operands(r, root, [*operands[:first], *map(_broadcasts_by_itself, operands[first:])])


@constraint
def is_mask_of(value: SSAValue, attention: AttentionOp) -> bool:
    """The value is the attention's mask, and the keys and values are in one piece."""
    return attention.mask is value and attention.then is None


@constraint
def is_up_to_diagonal(condition: CompareOp, attention: AttentionOp) -> bool:
    """`a >= b` is true exactly where causal attention shows a column to a row; each row sees at least one column."""
    return _is_triangle(condition.lhs, condition.rhs, attention, const(0))


@constraint
def is_behind_diagonal(condition: CompareOp, attention: AttentionOp) -> bool:
    """`a >= b` is true exactly where causal attention hides a column from a row; each row sees at least one column."""
    return _is_triangle(condition.rhs, condition.lhs, attention, const(1))


def _is_triangle(rows: SSAValue, columns: SSAValue, attention: AttentionOp, least: Expr) -> bool:
    """Whether `rows - columns >= least` holds exactly for the columns that causal attention shows to a row."""
    first = _diagonal(rows, columns, attention)
    if first is None or attention.top_left is not None:
        return False
    scope, high, wide = scope_of(attention), tensor_type(attention.q).dims[2], attention.length
    return scope.equal(first - least, wide - high) and scope.le(high, wide)


def _diagonal(rows: SSAValue, columns: SSAValue, attention: AttentionOp) -> Expr | None:
    """`rows - columns` for the first score, if the values count the rows and columns of the scores; else None."""
    row, column = counting(rows), counting(columns)
    if row is None or column is None or (row[0], column[0]) != (-2, -1):
        return None
    scope, high, wide = scope_of(attention), tensor_type(attention.q).dims[2], attention.length
    sizes = scope.equal(tensor_type(rows).dims[-2], high) and scope.equal(tensor_type(columns).dims[-1], wide)
    return row[1] - column[1] if sizes else None


@constraint
def zeroes_after_diagonal(attention: AttentionOp) -> bool:
    """The scores of an attention without a softmax are 0 exactly where causal attention would hide them."""
    return _zeros(attention) is not None


@dataclass(frozen=True)
class Zeros:
    """The `where` at the end of a region that sets the scores after a diagonal to 0."""

    choice: WhereOp
    kept: SSAValue
    """The scores before the `where`."""
    argument: int
    """The index of the block argument that holds the condition of the `where`."""
    top_left: bool
    """Whether the diagonal starts at the first row and column, rather than ending at the last."""


def _zeros(attention: AttentionOp) -> Zeros | None:
    if attention.no_softmax is None or not attention.changes_scores:
        return None
    if attention.causal is not None or attention.window is not None or attention.top_left is not None:
        return None
    block = attention.scores.block
    choice = None if block.last_op is None else block.last_op.operands[0].owner
    if not isinstance(choice, WhereOp) or not isinstance(choice.condition, BlockArgument):
        return None
    argument = choice.condition.index
    compare = attention.score_operands[argument - 1].owner
    if not isinstance(compare, CompareOp) or compare.predicate.data != "ge":
        return None
    scope, shift = scope_of(attention), attention.length - tensor_type(attention.q).dims[2]
    for kept, zero, rows, columns, least in (
        (choice.a, choice.b, compare.lhs, compare.rhs, 0),
        (choice.b, choice.a, compare.rhs, compare.lhs, 1),
    ):
        is_zero = isinstance(zero.owner, ConstantOp) and float(zero.owner.values()[0]) == 0
        first = _diagonal(rows, columns, attention) if is_zero else None
        if first is not None and (scope.equal(first, least) or scope.equal(first - least, shift)):
            return Zeros(choice, kept, argument, scope.equal(first, least))
    return None


@native
def causal_weights(r: Rewriter, root: AttentionOp) -> Operation:
    """The attention as a causal one, without the `where` that sets the scores after the diagonal to 0."""
    zeros = _zeros(root)
    assert zeros is not None, "causal_weights needs zeroes_after_diagonal"
    block, operands, first = root.scores.block, list(root.operands), len(root.own_operands)
    zeros.choice.results[0].replace_all_uses_with(zeros.kept)
    unused = [zeros.choice, *(x.owner for x in (zeros.choice.a, zeros.choice.b) if x is not zeros.kept)]
    for op in unused:
        if isinstance(op, Operation) and op.results[0].uses.get_length() == 0:
            block.erase_op(op)
    condition = block.args[zeros.argument]
    if condition.uses.get_length() == 0:
        block.erase_arg(condition)
        del operands[first + zeros.argument - 1]
    flags = {"causal": UnitAttr()} | ({"top_left": UnitAttr()} if zeros.top_left else {})
    if zeros.kept is not block.args[0]:
        return with_operands(r, root, operands, **flags)
    properties = {**root.properties, **root.attributes, **flags}
    return r.create(AttentionOp, operands[:first], list(root.result_types), properties)


@constraint
def is_band(condition: CompareOp, attention: AttentionOp) -> bool:
    """There is a fixed W for which `a >= b` is true exactly for the W columns up to the row's position in causal
    attention.
    """
    return _window(condition.lhs, condition.rhs, attention, 0) is not None


@constraint
def is_before_band(condition: CompareOp, attention: AttentionOp) -> bool:
    """For a fixed W, `a >= b` is false exactly where the column is less than W before the position of the row."""
    return _window(condition.rhs, condition.lhs, attention, 1) is not None


def _window(columns: SSAValue, rows: SSAValue, attention: AttentionOp, least: int) -> int | None:
    """The width W of the window, if `columns - rows >= least` hides all columns but the W columns up to the position of
    the row; else None.
    """
    if attention.causal is None or attention.top_left is not None or attention.window is not None:
        return None
    first = _diagonal(rows, columns, attention)
    if first is None:
        return None
    scope, high, wide = scope_of(attention), tensor_type(attention.q).dims[2], attention.length
    window = (wide - high - first - least + 1).as_int()
    return window if window is not None and window >= 1 and scope.le(high, wide) else None


@native
def attention_in_window(r: Rewriter, root: AttentionOp, mask: SSAValue, condition: CompareOp) -> Operation:
    """The attention with the window of a condition and with another mask, or with no mask if that one is all 0."""
    window = _window(condition.lhs, condition.rhs, root, 0) or _window(condition.rhs, condition.lhs, root, 1)
    assert window is not None, "attention_in_window needs is_band or is_before_band"
    operands = [*root.operands[:3], *([] if splat(mask) == 0 else [mask]), *root.score_operands]
    return with_operands(r, root, operands, window=IntegerAttr(window, i64))


def counting(value: SSAValue) -> tuple[int, Expr] | None:
    """The axis (negative) along which an integer tensor counts up by one, and its first element; None for others."""
    axis, first = -1, const(0)
    if tensor_type(value).rank > 1:
        dims = tensor_type(value).dims
        moving = [a - len(dims) for a, d in enumerate(dims) if d.as_int() != 1]
        if len(moving) != 1:
            return None
        axis = moving[0]
    while not isinstance(owner := value.owner, ConstantOp):
        if isinstance(owner, ReshapeOp):
            value = owner.input
        elif isinstance(owner, SliceOp) and tensor_type(value).rank == 1:
            value, first = owner.input, first + owner.offsets.data[0]
        elif isinstance(owner, AddOp) and (number := splat(owner.rhs)) is not None and owner.lhs.type == value.type:
            value, first = owner.lhs, first + int(number)
        else:
            return None
    numbers = owner.values()
    if not numbers or tensor_type(value).num_elements().as_int() != len(numbers):
        return None
    if numbers != list(range(int(numbers[0]), int(numbers[0]) + len(numbers))):
        return None
    return axis, first + int(numbers[0])


@native
def zero_like(r: Rewriter, value: SSAValue) -> SSAValue:
    """A scalar constant 0.0 of the value's element type."""
    scalar = TensorType.get((), element_type_of(value))
    return r.create(ConstantOp, [], [scalar], {"value": FloatAttr(0.0, f64)}).results[0]


@native
def hidden_like(r: Rewriter, low: SSAValue) -> SSAValue:
    """A scalar constant that hides a score when it is added: `low` itself if it is -inf or f16, else a number so large
    that the sum does not depend on the score.
    """
    element = element_type_of(low)
    if splat(low) == -math.inf or element == f16:
        return low
    scalar = TensorType.get((), element)
    return r.create(ConstantOp, [], [scalar], {"value": FloatAttr(HIDDEN, f64)}).results[0]


@native
def causal_attention(r: Rewriter, root: AttentionOp, mask: SSAValue) -> Operation:
    """The attention as a causal one with another mask, or with no mask if that one is all 0."""
    operands = [*root.operands[:3], *([] if splat(mask) == 0 else [mask]), *root.score_operands]
    return with_operands(r, root, operands, causal=UnitAttr())
