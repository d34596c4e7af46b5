"""Attention whose scores change in other ways than by a scale and a mask: the elementwise operations become its region.

Examples are a bias of each head, ALiBi, soft-capping, or a choice of scores. All elementwise operations between the
first product and the softmax that keep the shape of the scores join the attention. Batches and heads may be one dim
there. The kernel reads their operands in place. A tensor of the size of scores that cheap operations compute from
smaller ones (a slope of each head times a distance, a bias plus a padding mask, a comparison of positions) is computed
in the kernel, too, and not stored. Two products without a softmax between them become an attention as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr, UnitAttr, f64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.base import same_shape
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import BY_IR, compute_type, is_float
from ait_mlir.dialects.ait.elementwise import AddOp, DivOp, ElementwiseOp, MulOp, WhereOp
from ait_mlir.dialects.ait.gemm import BmmOp
from ait_mlir.dialects.ait.norm import SoftmaxOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ExpandOp, ReshapeOp
from ait_mlir.dims import Expr, const, product
from ait_mlir.rewrites.attention import MAX_HEAD_SIZE, keeps_rows, like, normalises_last_dim
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.numbers import element_type_of, splat
from ait_mlir.rewrites.engine.registry import constraint, native
from ait_mlir.rewrites.regions import RegionGrower, narrow_of

MAX_WIDTH = 128
"""Most columns of q and v without a softmax: with more, two products are faster although they store the scores. So they
are in f32, where attention on a GPU uses plain arithmetic."""
FEW_COLUMNS, COLUMNS_OF_ROW = 512, 4
"""Most columns of the scores without a softmax: this number, or this multiple of the rows. With more, two products are
faster: they spread the columns over the GPU, while an attention visits all columns with each tile of rows."""
MAX_OPERANDS = 6
"""Most operands of a region: each takes registers of a kernel."""
MAX_BETWEEN = 16
"""Most operations between a product and a softmax; the limit keeps the search independent of the graph's size."""
MAX_COMPUTED = 8
"""Most operations that compute one operand of the scores in the kernel."""


@pattern()
def attention_of_changed_scores(p: PatternBuilder) -> None:
    """softmax(f(q @ k^T)) @ v for elementwise operations f that keep the shape; batches and heads may be reshaped"""
    root = p.op("ait.bmm", None, {"layout": "rrr"})
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.require("ends_attention", root)
    p.apply(root, "attention_with_scores", root)


@pattern()
def products_of_changed_scores(p: PatternBuilder) -> None:
    """f(q @ k^T) @ v for elementwise operations f that keep the shape, without a softmax"""
    root = p.op("ait.bmm", None, {"layout": "rrr"})
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.require("ends_two_products", root)
    p.apply(root, "attention_with_scores", root)


@pattern()
def operands_computed_by_attention(p: PatternBuilder) -> None:
    """a mask or score operand that cheap operations compute from smaller tensors is computed in the region"""
    root = p.op("ait.attention", [p.rest()], results=None)
    p.require("no_attribute", root, "kernel")
    p.require("computes_operands", root)
    p.replace(root, "with_computed_operands", root)


SCORES = patterns(attention_of_changed_scores)
PRODUCTS = patterns(products_of_changed_scores)
OPERANDS = patterns(operands_computed_by_attention)


# ** the group of operations **

Frame = tuple[Expr, ...]
"""The dims in front of rows and columns: batch and heads, in one dim, two or more."""


@dataclass(frozen=True)
class Group:
    """The operations of an attention. `between` lists the operations from the first product to `scores`, unordered."""

    product: BmmOp
    between: list[Operation]
    scores: SSAValue
    """The softmax's operand, or the weights if there is no softmax."""
    softmax: SoftmaxOp | None
    after: list[ReshapeOp]
    """Reshapes of the weights, the last first."""
    frame: Frame
    """Batch and heads."""


def group_of(root: BmmOp) -> Group | None:
    """The attention that ends with this product; None if there is none, or if `ait.attention` cannot express it."""
    after: list[ReshapeOp] = []
    value = root.a
    while isinstance(owner := value.owner, ReshapeOp) and keeps_rows(owner) and value.has_one_use():
        after.append(owner)
        value = owner.input
    if not value.has_one_use():
        return None
    softmax, scores, last = None, value, after[-1] if after else root
    if isinstance(value.owner, SoftmaxOp):
        softmax = last = value.owner
        scores = softmax.input
        if not normalises_last_dim(softmax):
            return None
    for first in products_before(scores):
        between = users_between(first, scores, last)
        if between is None:
            continue
        frames = [tensor_type(x).dims[:-2] for x in (first.results[0], value, root.results[0])]
        group = Group(first, between, scores, softmax, after, batch_and_heads(frames))
        return group if _fits(group, root) else None
    return None


def _fits(group: Group, root: BmmOp) -> bool:
    q, k, v = (tensor_type(x) for x in (group.product.a, group.product.b, root.b))
    kinds = {t.element_type for t in (q, k, v, tensor_type(root.results[0]))}
    if len(kinds) > 1 or len(group.frame) != 2 or 2 in (q.rank, k.rank, v.rank):
        return False
    scope = scope_of(root)
    if group.softmax is None:
        if BY_IR[q.element_type].bytes != 2:
            return False
        rows, columns = q.dims[-2], k.dims[-2]
        if scope.bounds(columns)[1] > FEW_COLUMNS and not scope.le(columns, rows * COLUMNS_OF_ROW):
            return False
    first, last = (tensor_type(op.results[0]).dims[:-2] for op in (group.product, root))
    batches = (q.dims[:-2], first), (k.dims[:-2], first), (v.dims[:-2], last)
    most = MAX_WIDTH if group.softmax is None else MAX_HEAD_SIZE
    widths = all(scope.bounds(t.dims[-1])[1] <= most for t in (q, v))
    read = {x for op in group.between if isinstance(op, ElementwiseOp) for x in op.operands if splat(x) is None}
    made = {op.results[0] for op in (group.product, *group.between)}
    return widths and len(read - made) <= MAX_OPERANDS and all(same_shape(a, b, scope) for a, b in batches)


def batch_and_heads(frames: Sequence[Frame]) -> Frame:
    """The first frame of two dims (batch, heads); without one, the first frame, with one head if it is a batch."""
    for frame in frames:
        if len(frame) == 2:
            return frame
    return (*frames[0], const(1)) if len(frames[0]) == 1 else frames[0]


def products_before(scores: SSAValue) -> Iterator[BmmOp]:
    """The `rcr` products that the scores are computed from, without an epilogue and without a selected kernel."""
    pending, seen = [scores], {scores}
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, BmmOp):
            if owner.layout.data == "rcr" and not owner.epilogue.blocks and "kernel" not in owner.attributes:
                yield owner
        elif (isinstance(owner, ElementwiseOp) or keeps_rows(owner)) and len(seen) < MAX_BETWEEN:
            pending += [x for x in owner.operands if x not in seen]
            seen.update(owner.operands)


def users_between(first: BmmOp, scores: SSAValue, last: Operation) -> list[Operation] | None:
    """The operations from a product to `scores`, the first operand of `last`: elementwise operations that keep the
    shape and reshapes of batch and heads. None if an operation of another kind uses a value between."""
    scope = scope_of(last)
    found: list[Operation] = []
    pending: list[SSAValue] = [first.results[0]]
    while pending:
        value = pending.pop()
        for use in value.uses:
            user = use.operation
            if user in found or (user is last and use.index == 0):
                continue
            whole = isinstance(user, ElementwiseOp) and same_shape(
                tensor_type(user.results[0]).dims, tensor_type(value).dims, scope
            )
            if not (whole or keeps_rows(user)) or len(found) == MAX_BETWEEN:
                return None
            found.append(user)
            pending.append(user.results[0])
    return found if scores in {first.results[0], *(op.results[0] for op in found)} else None


@constraint
def ends_attention(root: BmmOp) -> bool:
    """The product multiplies values with the softmax of queries times keys, with elementwise changes before it."""
    group = group_of(root)
    return group is not None and group.softmax is not None


@constraint
def ends_two_products(root: BmmOp) -> bool:
    """The product multiplies values with queries times keys, with elementwise changes between and no softmax."""
    group = group_of(root)
    return group is not None and group.softmax is None


@native
def attention_with_scores(r: Rewriter, root: BmmOp) -> None:
    """Replace the root by an attention; its region holds the elementwise operations between the two products."""
    group = group_of(root)
    assert group is not None, "attention_with_scores needs ends_attention or ends_two_products"
    first, between = group.product, sorted(group.between, key=r.position)
    block, operands = region_of(r, group, between)
    scale = take_scale(block)
    mask = None if group.softmax is None else take_mask(block, operands)
    qkv = [framed(r, x, group.frame) for x in (first.a, first.b, root.b)]
    last = block.last_op
    assert last is not None
    regions = [] if last.operands[0] is block.args[0] else [Region(block)]
    values = [*qkv, *([] if mask is None else [mask]), *operands]
    properties: dict[str, Attribute] = {"scale": FloatAttr(scale, f64)}
    softmax = [] if group.softmax is None else [group.softmax]
    properties["nan_rows" if softmax else "no_softmax"] = UnitAttr()
    attention = r.create(AttentionOp, values, None, properties, regions)
    r.replace(root, like(r, attention, root).results[:1])
    for op in (*group.after, *softmax, *reversed(between), first):
        r.erase(op)


def framed(r: Rewriter, value: SSAValue, frame: Frame) -> SSAValue:
    """Queries, keys or values with this batch and these heads."""
    dims = tensor_type(value).dims
    return r.reshape(value, (*frame, *dims[-2:]))


def region_of(r: Rewriter, group: Group, between: Sequence[Operation]) -> tuple[Block, list[SSAValue]]:
    """A block that computes a score from its first argument, and the tensors whose elements are the other arguments."""
    block = Block(arg_types=[compute_type(element_type_of(group.product.a))])
    block.args[0].name_hint = "score"
    grower = RegionGrower(block, [], first_argument=1)
    grower.scalars[group.product.results[0]] = block.args[0]
    for op in between:
        if isinstance(op, ReshapeOp):
            grower.scalars[op.results[0]] = grower.scalars[op.input]
            continue
        for x in op.operands:
            if x not in grower.scalars and splat(x) is None:
                narrow = narrow_of(x)
                moved = broadcast_in(r, narrow, tensor_type(op.results[0]).dims[:-2], group.frame)
                grower.scalars[x] = grower.scalar(moved)
        grower.compute(op)
    value = grower.scalars[group.scores]
    value = grower.cast(value, element_type_of(group.scores), element_type_of(group.product.a))
    grower.finish([value])
    return block, grower.operands


def broadcast_in(r: Rewriter, x: SSAValue, frame: Frame, to: Frame) -> SSAValue:
    """`x`, which broadcasts to scores with batch and heads `frame`, reshaped to broadcast to scores with `to`."""
    dims = tensor_type(x).dims
    front, rest = dims[:-2], dims[-2:]
    if len(dims) < 3 or frame == to:
        return x
    if all(d.as_int() == 1 for d in front):
        return r.reshape(x, rest)
    front = (*(const(1),) * (len(frame) - len(front)), *front)
    spread, last = list(front), list[Expr]()
    groups = regrouped(frame, to)
    if groups is None:
        spread, last = list(frame), list(to)
    for whole, places in zip(to, groups or (), strict=groups is not None):
        moves = any(front[i].as_int() != 1 for i in places)
        for i in places if moves else ():  # dims that merge into one must be expanded together
            spread[i] = frame[i]
        last.append(whole if moves else const(1))
    if tuple(spread) != front:
        x = r.create(ExpandOp, [x], [TensorType.get((*spread, *rest), element_type_of(x))]).results[0]
    return r.reshape(x, (*last, *rest))


def regrouped(frame: Frame, to: Frame) -> list[list[int]] | None:
    """For each dim of `to`, the dims of `frame` that are merged into it; None where that is not known."""
    groups: list[list[int]] = [[] for _ in to]
    at = 0
    for i in range(len(frame)):
        while at < len(to) and groups[at] and product([frame[j] for j in groups[at]]) is to[at]:
            at += 1
        while at < len(to) and to[at].as_int() == 1 and frame[i].as_int() != 1:
            at += 1
        if at < len(to):
            groups[at].append(i)
    made = [product([frame[j] for j in group]) for group in groups]
    known = all(one is whole for one, whole in zip(made, to, strict=True)) and sum(map(len, groups)) == len(frame)
    return groups if known else None


def take_scale(block: Block) -> float:
    """Remove the leading multiplications and divisions of the score by constants; returns the resulting factor."""
    scale, score = 1.0, block.args[0]
    while score.has_one_use():
        user = next(iter(score.uses)).operation
        others = [x for x in user.operands if x is not score]
        number = _number(others[0]) if len(others) == 1 else None
        if number is None or number == 0 or not isinstance(user, MulOp | DivOp) or user.results[0].type != score.type:
            break
        if isinstance(user, DivOp) and user.operands[0] is not score:
            break
        scale = scale * number if isinstance(user, MulOp) else scale / number
        user.results[0].replace_all_uses_with(score)
        _erase(user)
    return scale


def take_mask(block: Block, operands: list[SSAValue]) -> SSAValue | None:
    """Remove one of the tensors that the region adds last, and return it: the last made by a `where`, else the last."""
    last = block.last_op
    assert isinstance(last, YieldOp)
    found: list[tuple[Operation, int, SSAValue]] = []
    value = last.operands[0]
    while isinstance(add := value.owner, AddOp) and value.has_one_use():
        places = [i for i, x in enumerate(add.operands) if _reads_tensor(block, x)]
        if not places:
            break
        at = places[-1]
        found.append((add, block.args.index(add.operands[at]), add.operands[1 - at]))  # pyright: ignore[reportArgumentType]
        value = add.operands[1 - at]
    found = [f for f in found if is_float(element_type_of(operands[f[1] - 1]))]
    if not found:
        return None
    spelled = [f for f in found if isinstance(operands[f[1] - 1].owner, WhereOp)]
    add, index, rest = (spelled or found)[0]
    add.results[0].replace_all_uses_with(rest)
    _erase(add)
    block.erase_arg(block.args[index])
    return operands.pop(index - 1)


def _reads_tensor(block: Block, value: SSAValue) -> bool:
    """Whether the value is the element of a tensor, used once."""
    return value.owner is block and value is not block.args[0] and value.has_one_use()


def _number(value: SSAValue) -> float | None:
    owner = value.owner
    return float(owner.values()[0]) if isinstance(owner, ConstantOp) else None


def _erase(op: Operation) -> None:
    """Erase an operation of a region and the constants that only it uses."""
    constants = {x.owner for x in op.operands if isinstance(x.owner, ConstantOp) and x.has_one_use()}
    op.detach()
    op.erase()
    for constant in constants:
        constant.detach()
        constant.erase()


# ** operands that the kernel computes **


def computed_by(value: SSAValue) -> list[ElementwiseOp] | None:
    """The cheap operations, in order, that compute a tensor from smaller tensors; None if there are none.

    A smaller tensor broadcasts along some dim of this tensor. The operations may have other uses.
    """
    ordered: list[ElementwiseOp] = []
    dims = tensor_type(value).dims

    def visit(x: SSAValue) -> bool:
        if splat(x) is not None or _stands_still(x, value):
            return True
        op = x.owner
        if not isinstance(op, ElementwiseOp) or not getattr(op, "CHEAP", False) or "kernel" in op.attributes:
            return False
        if op in ordered:
            return True
        if len(ordered) >= MAX_COMPUTED or tensor_type(x).rank > len(dims) or not all(map(visit, op.operands)):
            return False
        ordered.append(op)
        return True

    return ordered if visit(value) and ordered and len(ordered) <= MAX_COMPUTED else None


def _stands_still(x: SSAValue, whole: SSAValue) -> bool:
    """Whether a tensor that broadcasts to `whole` has one element along a dim in which `whole` has more."""
    if x is whole:
        return False
    own, all_dims = tensor_type(x).dims, tensor_type(whole).dims
    missing = len(all_dims) - len(own)
    aligned = [*[None] * missing, *own]
    return any(
        d.as_int() != 1 and (mine is None or mine.as_int() == 1) for d, mine in zip(all_dims, aligned, strict=True)
    )


def computable(attention: AttentionOp) -> dict[SSAValue, list[ElementwiseOp]]:
    """The mask and score operands that the score region of an attention can compute itself, each with its elementwise
    ops.

    Empty if the region would then read more than `MAX_OPERANDS` tensors.
    """
    given = [*attention.score_operands, *([] if attention.mask is None else [attention.mask])]
    found = {x: ops for x in given if (ops := computed_by(x)) is not None}
    read = {x for x in given if x not in found}
    for ops in found.values():
        made = {op.results[0] for op in ops}
        read |= {x for op in ops for x in op.operands if x not in made and splat(x) is None}
    return found if len(read) <= MAX_OPERANDS else {}


@constraint
def computes_operands(root: AttentionOp) -> bool:
    """The attention reads a mask or score operand that cheap operations compute from smaller tensors."""
    return bool(computable(root))


@native
def with_computed_operands(r: Rewriter, root: AttentionOp) -> Operation:
    """The attention whose region computes the operands that `computable` finds, and adds a computed mask."""
    found = computable(root)
    assert found, "with_computed_operands needs computes_operands"
    score = compute_type(element_type_of(root.q))
    block = Block(arg_types=[score])
    block.args[0].name_hint = "score"
    grower = RegionGrower(block, [], first_argument=1)

    def element(value: SSAValue) -> SSAValue:
        for op in found.get(value, []):
            if op.results[0] not in grower.scalars:
                grower.compute(op)
        return grower.scalar(value)

    value: SSAValue = block.args[0]
    if root.changes_scores:
        old = root.scores.blocks[0]
        mapped: dict[SSAValue, SSAValue] = dict(zip(old.args, [value, *map(element, root.score_operands)], strict=True))
        for op in old.ops:
            if isinstance(op, YieldOp):
                value = mapped[op.operands[0]]
            else:
                block.add_op(op.clone(mapped))
    mask = root.mask
    operands = list(root.own_operands)
    if mask is not None and mask in found:
        operands.pop()
        added = grower.cast(element(mask), element_type_of(mask), score)
        add = AddOp.create(operands=[value, added], result_types=[score])
        block.add_op(add)
        value = add.results[0]
    grower.finish([value])
    properties = root.properties | root.attributes
    return r.create(AttentionOp, [*operands, *grower.operands], list(root.result_types), properties, [Region(block)])
