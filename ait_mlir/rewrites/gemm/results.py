"""Fuses elementwise operations into a contraction whose result has other users: the contraction yields both results."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import i32
from xdsl.ir import Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.dtypes import STORED_ONLY, integer_range, is_computed_float
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp, YieldOp
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.rewrites.elementwise.merge import FUSED, join_after, kept_results, put_as_one, take_block
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.numbers import element_type_of
from ait_mlir.rewrites.engine.registry import constraint, finder, native
from ait_mlir.rewrites.gemm.epilogue import MAX_OPERANDS


@pattern()
def compute_beside_result(p: PatternBuilder) -> None:
    """z = x @ w + r, which has other users, and relu(s * z) become two results of one product"""
    made = p.value()
    root = p.op(FUSED, [p.rest(), made, p.rest()], results=None)
    contraction = p.find("contraction_that_makes", made)
    p.require("result_has_shape_of", root, made)
    p.require("makes_numbers_of", root, contraction)
    p.require("is_read_as_it_is", root)
    for op in (contraction, root):
        p.require("no_attribute", op, "kernel")
    p.require("may_yield_all", contraction, root)
    p.require("operands_fit", contraction, root, MAX_OPERANDS)
    p.require("stays_in_batch_loops", contraction, root)
    p.require("can_stand_as_one", contraction, root)
    p.apply(root, "compute_in_epilogue", contraction, root)


RESULTS = patterns(compute_beside_result)


# ** constraints and natives **


@finder
def contraction_that_makes(value: SSAValue) -> Iterator[Operation]:
    """The op that computes a value, if it has an epilogue that may yield several results."""
    if isinstance(value.owner, HasEpilogue) and value.owner.MAX_RESULTS > 1:
        yield value.owner


@constraint
def makes_numbers_of(op: Operation, contraction: HasEpilogue) -> bool:
    """All results have floats in which ops compute; if the product is one of integers, also integers in which ops
    compute.
    """
    from_integers = contraction.accumulator_types()[0] == i32
    elements = [element_type_of(result) for result in op.results]
    return all(is_computed_float(e) or (from_integers and integer_range(e) and e not in STORED_ONLY) for e in elements)


@constraint
def is_read_as_it_is(op: Operation) -> bool:
    """Some result has a user that is not a reduction. A reduction can compute elementwise ops of its operand itself."""
    return any(not isinstance(use.operation, ReduceOp) for result in op.results for use in result.uses)


@constraint
def may_yield_all(contraction: HasEpilogue, root: Operation) -> bool:
    """The contraction can yield the results of the root and its own results that have other users."""
    return len(kept_results(contraction, root)) + len(root.results) <= contraction.MAX_RESULTS


@native
def compute_in_epilogue(r: Rewriter, contraction: HasEpilogue, root: FusedElementwiseOp) -> None:
    """Move a fused_elementwise to the end of the epilogue of the contraction that it reads. Its results come after the
    contraction's results that have other users."""
    kept, sums = kept_results(contraction, root), contraction.SUMS
    if contraction.epilogue.blocks:
        first = take_block(contraction)
    else:
        first = Block(arg_types=contraction.accumulator_types())
        first.args[0].name_hint = "acc"
        first.add_op(YieldOp(first.args[0]))
    # The block arguments of the sums stand for no tensor: no operand of the root equals one.
    operands = [*first.args[:sums], *contraction.epilogue_operands], list(root.operands)
    block, inputs, values = join_after(first, take_block(root), operands, list(contraction.results), kept)
    block.add_op(YieldOp(*values))
    properties = contraction.properties_with(len(inputs) - sums) | contraction.attributes
    own = contraction.own_operands
    put_as_one(r, contraction, root, (type(contraction), [*own, *inputs[sums:]], properties, Region(block)))
