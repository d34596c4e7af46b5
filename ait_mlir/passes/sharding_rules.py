"""How ops compute on pieces: which dims of operands and results are the same, and which dims a sum runs over.

A rule gives each dim of each operand and result a label, as in einsum. Dims with one label are divided along the same
axes, or not at all; a dim without a label is whole on each rank. If the ranks divide a label that only operands have,
each of them has a part of the sum. Rules ask interfaces; an op without a rule runs on whole tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.collective import KINDS
from ait_mlir.dialects.ait.gemm import ContractionOp, GatedGemmOp
from ait_mlir.dialects.ait.index import EmbeddingOp, UpdateSliceOp
from ait_mlir.dialects.ait.norm import NormOp
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.traits import RowLike, ScalarLike
from ait_mlir.dialects.ait.types import Shape, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ExpandOp, PermuteOp, ReshapeOp, SliceOp, SplitOp
from ait_mlir.dims import Scope, const

Label: TypeAlias = str | None
Labels: TypeAlias = tuple[Label, ...]


@dataclass(frozen=True)
class Rule:
    """The labels of the dims of operands and results; `kind` combines the parts of a sum over ranks."""

    operands: Sequence[Labels]
    results: Sequence[Labels]
    kind: str = "sum"


def rule_of(op: Operation) -> Rule:
    """The labels of an op; none where it has no rule."""
    for op_class, rule in _RULES:
        if isinstance(op, op_class) and (found := rule(op)) is not None:
            return found
    return Rule([(None,) * len(d) for d in _shapes(op.operands)], [(None,) * len(d) for d in _shapes(op.results)])


def _shapes(values: Sequence[SSAValue]) -> list[Shape]:
    return [tensor_type(value).dims for value in values]


def _numbered(count: int, *whole: int) -> Labels:
    """A label for each of some dims, but for those that stay whole."""
    return tuple(None if axis in whole else f"d{axis}" for axis in range(count))


def _broadcast(dims: Shape, labels: Labels) -> Labels:
    """The labels of an operand that broadcasts to a shape with these labels."""
    if not dims:
        return ()
    return tuple(None if d.as_int() == 1 else x for d, x in zip(dims, labels[-len(dims) :], strict=True))


def _scalar(op: ScalarLike) -> Rule | None:
    if op.regions:
        return None
    (result,) = _shapes(op.results)
    labels = _numbered(len(result))
    return Rule([_broadcast(dims, labels) for dims in _shapes(op.operands)], [labels])


def _contraction(op: ContractionOp) -> Rule | None:
    if op.epilogue.blocks or isinstance(op, GatedGemmOp):
        return None
    a, b, result = _shapes([op.a, op.b, op.output])
    batch = tuple(f"d{axis}" for axis in range(len(result) - 2))

    def matrix(position: int, dims: Shape, row: str, column: str) -> Labels:
        labels: list[Label] = [*_broadcast(dims[:-2], batch), None, None]
        first, second = op.matrix_axes(position)
        labels[first], labels[second] = row, column
        return tuple(labels)

    return Rule([matrix(0, a, "m", "k"), matrix(1, b, "k", "n")], [matrix(2, result, "m", "n")])


def _permute(op: PermuteOp) -> Rule:
    order = op.order()
    labels = _numbered(len(order))
    return Rule([labels], [tuple(labels[axis] for axis in order)])


def _reshape(op: ReshapeOp) -> Rule:
    source, target = _shapes([op.input, op.output])
    pairs = first_dims(source, target, scope_of(op))
    return Rule(
        [tuple(f"d{i}" if i in pairs else None for i in range(len(source)))],
        [tuple(next((f"d{i}" for i, j in pairs.items() if j == at), None) for at in range(len(target)))],
    )


def first_dims(source: Shape, target: Shape, scope: Scope) -> dict[int, int]:
    """The dims of a reshape that are cut into pieces together: the first ones of groups with equal products."""
    pairs: dict[int, int] = {}
    i = j = 0
    while i < len(source) and j < len(target):
        if source[i].as_int() == 1 and target[j].as_int() != 1:
            i += 1
            continue
        if target[j].as_int() == 1 and source[i].as_int() != 1:
            j += 1
            continue
        first, (a, b) = (i, j), (source[i], target[j])
        i, j = i + 1, j + 1
        while not scope.equal(a, b):
            if i < len(source) and scope.le(a, b):
                a, i = a * source[i], i + 1
            elif j < len(target) and scope.le(b, a):
                b, j = b * target[j], j + 1
            else:
                return pairs
        pairs[first[0]] = first[1]
    return pairs


def _expand(op: ExpandOp) -> Rule:
    source, target = _shapes([op.input, op.output])
    labels = _numbered(len(target))
    return Rule([_broadcast(source, labels)], [labels])


def _slice(op: SliceOp) -> Rule:
    source, target = _shapes([op.input, op.output])
    scope, offsets = scope_of(op), op.offsets.data
    cut = [
        i
        for i, (a, b) in enumerate(zip(source, target, strict=True))
        if offsets[i] != const(0) or not scope.equal(a, b)
    ]
    labels = _numbered(len(source), *cut)
    return Rule([labels], [labels])


def _joined(op: ConcatOp | SplitOp) -> Rule:
    labels = _numbered(len(_shapes(op.operands)[0]), op.dim.value.data)
    return Rule([labels] * len(op.operands), [labels] * len(op.results))


def _rows(op: RowLike) -> Rule | None:
    dims, *others = _shapes(op.operands)
    if any(region.blocks for region in op.regions) or (others and not isinstance(op, NormOp)):
        return None
    reduced = op.reduced_axes()
    if others and any(len(other) > len(reduced) for other in others):
        return None
    labels = _numbered(len(dims), *reduced)
    return Rule([labels, *((None,) * len(other) for other in others)], [labels] * len(op.results))


def _reduce(op: ReduceOp) -> Rule:
    (dims,) = _shapes(op.operands)
    parted = op.kind.data in KINDS
    labels = _numbered(len(dims), *(() if parted else op.axes()))
    kept = tuple(label for axis, label in enumerate(labels) if axis not in op.axes())
    return Rule([labels], [kept], op.kind.data if parted else "sum")


def _attention(op: AttentionOp) -> Rule | None:
    if op.rest or any(region.blocks for region in op.regions):
        return None
    mask = [tensor_type(value).dims for value in op.operands[3:]]
    heads: Labels = ("batch", "heads", None, None)
    results = [heads[: tensor_type(result).rank] for result in op.results]
    return Rule([heads] * 3 + [_broadcast(dims, heads) for dims in mask], results)


def _embedding(op: EmbeddingOp) -> Rule:
    _, ids = _shapes(op.operands)
    labels = _numbered(len(ids))
    return Rule([(None, "column"), labels], [(*labels, "column")])


def _update(op: UpdateSliceOp) -> Rule | None:
    dims, _, position = _shapes(op.operands)
    labels = _numbered(len(dims), op.axis)
    return None if position else Rule([labels, labels, ()], [labels])


_RULES = cast(
    "tuple[tuple[type[Operation], Callable[[Operation], Rule | None]], ...]",
    (
        (ScalarLike, _scalar),
        (ContractionOp, _contraction),
        (PermuteOp, _permute),
        (ReshapeOp, _reshape),
        (ExpandOp, _expand),
        (SliceOp, _slice),
        (ConcatOp, _joined),
        (SplitOp, _joined),
        (RowLike, _rows),
        (ReduceOp, _reduce),
        (AttentionOp, _attention),
        (EmbeddingOp, _embedding),
        (UpdateSliceOp, _update),
    ),
)
