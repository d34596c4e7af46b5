"""Joins a sum and the sum of squared distances from its mean to one fold, so that one pass computes both.

The state of this fold is a count, a sum and a sum of squares (`ait::Moments`). Without it, the squares need a second
pass over the row, which is free only where the row stays in registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from xdsl.ir import SSAValue

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.elementwise import DivOp, MulOp, SubOp
from ait_mlir.dims import sym
from ait_mlir.lowering.loops.nest import Fold, Nest, Node, Read, Scalar


@lru_cache(maxsize=64)
def in_one_pass(nest: Nest) -> Nest:
    """The nest with one fold in place of each sum and the sum of squared distances from its mean; unchanged without
    such a pair.
    """
    pairs = {first: second for second in nest.folds() if (first := _sum_before(nest, second)) is not None}
    if not pairs:
        return nest
    seconds = set(pairs.values())
    nodes = tuple(_joined(node, pairs) for node in nest.nodes if node not in seconds)
    return replace(nest, nodes=nodes)


def _joined(node: Node, pairs: Mapping[Fold, Fold]) -> Node:
    if not isinstance(node, Fold) or node not in pairs:
        return node
    return replace(node, kind="moments", results=(*node.results, *pairs[node].results))


def _sum_before(nest: Nest, squares: Fold) -> Fold | None:
    """The fold that sums the elements whose squared distances from the mean `squares` sums; None if `squares` is no
    such sum.
    """
    if squares.kind != "add" or len(squares.nodes) < 2:
        return None
    *elements, distance, square = squares.nodes
    if not isinstance(distance, Scalar) or not isinstance(distance.op, SubOp) or not isinstance(square, Scalar):
        return None
    value, mean = distance.op.operands
    if not isinstance(square.op, MulOp) or any(v not in distance.results for v in square.op.operands):
        return None
    if squares.value is not square.op.results[0] or not isinstance(mean.owner, DivOp):
        return None
    total, count = mean.owner.operands
    points = squares.points.as_int()
    if not isinstance(count.owner, ConstantOp) or points is None or list(count.owner.values()) != [points]:
        return None
    found = next((fold for fold in nest.folds() if total in fold.results), None)
    return found if found is not None and found.kind == "add" and _equal(found, squares, elements, value) else None


def _equal(first: Fold, second: Fold, elements: Sequence[Node], value: SSAValue) -> bool:
    """Whether `value`, computed by nodes of the second fold, is the value of the first one."""
    if [a.count for a in first.axes] != [a.count for a in second.axes] or len(first.nodes) != len(elements):
        return False
    put = {b.name: sym(a.name) for a, b in zip(first.axes, second.axes, strict=True)}
    same: dict[SSAValue, SSAValue] = {}
    for one, other in zip(first.nodes, elements, strict=True):
        if isinstance(one, Read) and isinstance(other, Read):
            equal = not (one.gathers or one.guards or other.gathers or other.guards) and one.tensor == other.tensor
            equal = equal and one.offset == other.offset.substitute(put)
        elif isinstance(one, Scalar) and isinstance(other, Scalar):
            equal = type(one.op) is type(other.op) and one.op.properties == other.op.properties
            equal = equal and [same.get(v, v) for v in other.operands] == list(one.operands)
        else:
            return False
        if not equal:
            return False
        same.update(zip(other.results, one.results, strict=True))
    return same.get(value, value) is first.value
