"""Lets products write heads where an output has them, in place of a copy that turns rows and heads."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from ait_mlir.dialects.ait.cut_out import cut_out
from ait_mlir.dialects.ait.data import OutputOp
from ait_mlir.dialects.ait.gemm import BmmOp, GemmOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp
from ait_mlir.lowering.candidates import standalone
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import Standalone, points_between
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.grouping import best_seconds
from ait_mlir.rewrites.apply import held, rewrite
from ait_mlir.rewrites.families import pattern_set

HEADS = "gemm.batches:HEADS"


@dataclass(frozen=True)
class StoreHeadsPass(ByEstimatePass):
    """Make a batched product of a product whose columns become heads in an output (`gemm.batches:HEADS`).

    Other readers of the heads read them in place, so only an output needs a copy. With a target, only where estimates
    say that the batched product is faster, at all sizes, than the product and the copy.
    """

    name = "store-heads"

    def rewrite(self, block: Block, target: Target | None) -> bool:
        known: dict[object, bool] = {}
        chosen: set[Operation] = set()
        for chain in [found for op in block.ops if (found := chain_to_output(op)) is not None]:
            inner, reshape, permute = chain
            key = inner.layout, *inner.operand_types, reshape.output.type, len(list(inner.walk()))
            if key not in known:
                known[key] = target is None or pays(inner, reshape, permute, target)
            if known[key]:
                chosen.add(inner)
        graph = block.parent_op()
        if not chosen or graph is None:
            return False
        with held(graph, lambda op: not isinstance(op, GemmOp | BmmOp) or op in chosen):
            return rewrite(graph, pattern_set(HEADS)).rewrites > 0


def chain_to_output(op: Operation) -> tuple[GemmOp | BmmOp, ReshapeOp, PermuteOp] | None:
    """The product and the reshape before a permute that only outputs read; None for another op."""
    if not isinstance(op, PermuteOp) or not all(isinstance(use.operation, OutputOp) for use in op.results[0].uses):
        return None
    reshape = op.operands[0].owner
    inner = reshape.operands[0].owner if isinstance(reshape, ReshapeOp) else None
    return (inner, reshape, op) if isinstance(reshape, ReshapeOp) and isinstance(inner, GemmOp | BmmOp) else None


def pays(inner: GemmOp | BmmOp, reshape: ReshapeOp, permute: PermuteOp, target: Target) -> bool:
    """Whether the pattern makes a batched product of the chain, and this is estimated to be faster than the product and
    a launch that copies its result, at all sizes for which kernels are chosen."""
    if (batched := by_heads(inner, reshape, permute)) is None:
        return False
    whole, plain = Standalone(*standalone(batched)), Standalone(*standalone(inner))
    for point in points_between(whole.scope):
        env = whole.environment(point)
        one, product = whole.at(point), plain.at(tuple(env[dim.name] for dim in plain.scope.dims))
        copied = 2 * tensor_type(product.results[0]).byte_size().evaluate({})
        both = best_seconds(product, target) + target.launch_seconds + copied / target.bandwidth
        if best_seconds(one, target) >= both:
            return False
    return True


def by_heads(*chain: Operation) -> BmmOp | None:
    """The batched product that the pattern makes of a chain, in a module of its own; None if it makes none."""
    graph = cut_out(chain, chain[-1].results)
    rewrite(ModuleOp([graph]), pattern_set(HEADS))
    return next((op for op in graph.block.ops if isinstance(op, BmmOp)), None)
