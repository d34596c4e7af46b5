"""Parts of the families: what one documented transformation does, and no more."""

from __future__ import annotations

from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import PermuteOp
from ait_mlir.rewrites.conv import point_convolution
from ait_mlir.rewrites.elementwise.algebra import left_neutral, right_neutral
from ait_mlir.rewrites.elementwise.merge import outline
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint
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
    """permute(x) = reshape(x), where only dims of 1 move past others: no element moves"""
    x, order, t = p.value(), p.attr(), p.type()
    root = p.op("ait.permute", [x], {"permutation": order}, types=[t])
    p.require("moves_only_ones", root)
    p.replace(root, p.new("ait.reshape", [x], types=[t]))


NO_OPS = patterns(identity_view, identity_permute, split_into_one, concat_of_one)
NEUTRAL = patterns(right_neutral, left_neutral)
VIEW_CHAINS = patterns(same_view_twice, identity_view)
TRANSPOSES = patterns(transpose_into_layout, permute_of_permute, identity_permute)
SINGLETONS = patterns(outline)
ONES = patterns(permute_of_ones)
SPECIAL = patterns(point_convolution, product_of_column_and_row)


# ** constraints **


@constraint
def moves_only_ones(permute: PermuteOp) -> bool:
    """The dims of a permute that are not the constant 1 keep their order."""
    dims = tensor_type(permute.operands[0]).dims
    others = [i for i in permute.order() if dims[i].as_int() != 1]
    return others == sorted(others)
