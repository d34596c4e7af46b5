"""Pattern sets that hold only the patterns of one documented transformation."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.base import AitOp, broadcast_shapes
from ait_mlir.dialects.ait.structure import op_key
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import ExpandOp, PermuteOp
from ait_mlir.rewrites.conv import point_convolution
from ait_mlir.rewrites.elementwise.algebra import left_neutral, right_neutral
from ait_mlir.rewrites.elementwise.merge import outline
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, finder, native
from ait_mlir.rewrites.gemm.spellings import product_of_column_and_row
from ait_mlir.rewrites.view import (
    concat_of_one,
    identity_permute,
    identity_view,
    permute_of_permute,
    same_view_twice,
    split_into_one,
    transpose_into_layout,
)


@pattern()
def permute_of_ones(p: PatternBuilder) -> None:
    """permute(x) = reshape(x), where only dims of 1 change their order, so no element moves"""
    x, order, t = p.value(), p.attr(), p.type()
    root = p.op("ait.permute", [x], {"permutation": order}, types=[t])
    p.require("moves_only_ones", root)
    p.replace(root, p.new("ait.reshape", [x], types=[t]))


@pattern()
def same_make_jagged(p: PatternBuilder) -> None:
    """make_jagged(x, o), make_jagged(x, o) = one make_jagged(x, o)"""
    root = p.op("ait.make_jagged")
    earlier = p.find("earlier_twin", root)
    p.replace(root, earlier)


@pattern()
def expand_that_broadcasts(p: PatternBuilder) -> None:
    """f(x, expand(y)) = f(x, y), where y broadcasts to the shape of the result by itself"""
    repeated = p.result(p.op("ait.expand", [p.value()]))
    root = p.op(operands=[p.rest(), repeated, p.rest()], trait="ScalarLike")
    p.require("broadcasts_without", root, repeated)
    p.replace(root, "without_expand", root, repeated)


NO_OPS = patterns(identity_view, identity_permute, split_into_one, concat_of_one, expand_that_broadcasts)
NEUTRAL = patterns(right_neutral, left_neutral)
VIEW_CHAINS = patterns(same_view_twice, identity_view)
TRANSPOSES = patterns(transpose_into_layout, permute_of_permute, identity_permute)
SINGLETONS = patterns(outline)
ONES = patterns(permute_of_ones)
JAGGED = patterns(same_make_jagged)
SPECIAL = patterns(point_convolution, product_of_column_and_row)


# ** constraints **


@constraint
def moves_only_ones(permute: PermuteOp) -> bool:
    """The dims of a permute that are not the constant 1 keep their order."""
    dims = tensor_type(permute.operands[0]).dims
    others = [i for i in permute.order() if dims[i].as_int() != 1]
    return others == sorted(others)


@finder
def earlier_twin(r: Rewriter, op: Operation) -> Iterator[Operation]:
    """The first equal operation on the same operands in the block, if it comes before `op`."""
    twins = [
        other
        for other in {use.operation for use in op.operands[0].uses}
        if other.parent is op.parent and tuple(other.operands) == tuple(op.operands) and op_key(other) == op_key(op)
    ]
    if (first := min(twins, key=r.position)) is not op:
        yield first


def without(root: Operation, repeated: SSAValue) -> list[SSAValue]:
    """The operands of an elementwise op, with the operand of the expand `repeated` in place of its result."""
    assert isinstance(repeated.owner, ExpandOp)
    return [repeated.owner.operands[0] if value is repeated else value for value in root.operands]


@constraint
def broadcasts_without(root: AitOp, repeated: SSAValue) -> bool:
    """The operands of an elementwise op still broadcast to the shape of its result if one expand is left out."""
    shapes = [tensor_type(value).dims for value in without(root, repeated)]
    try:
        found = broadcast_shapes(root, [f"operand {i}" for i in range(len(shapes))], shapes)
    except VerifyException:
        return False
    return tuple(found) == tensor_type(root.results[0]).dims


@native
def without_expand(r: Rewriter, root: Operation, repeated: SSAValue) -> Operation:
    """The elementwise op on the input of the expand."""
    types = [result.type for result in root.results]
    return r.create(type(root), without(root, repeated), types, root.properties | root.attributes)
