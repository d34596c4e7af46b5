"""Products of the parts of one tensor, laid end to end, become one batched product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from ait_mlir.dialects.ait.data import ParamOp
from ait_mlir.dialects.ait.elementwise import AddOp, BinaryOp
from ait_mlir.dialects.ait.gemm import BmmOp, GemmOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, PermuteOp, ReshapeOp, SplitOp
from ait_mlir.passes.by_cost import CostPass, Trial, erase_unused


@dataclass(frozen=True)
class Part:
    """A part of a split times a param [N, K], with or without a bias [N]."""

    split: SplitOp
    index: int
    gemm: GemmOp
    add: BinaryOp | None
    weight: SSAValue
    bias: SSAValue | None

    def ops(self) -> list[Operation]:
        return [self.gemm] if self.add is None else [self.gemm, self.add]


@dataclass(frozen=True)
class BatchProductsPass(CostPass):
    """Make one batched product of gemms that multiply the parts of a split with params and are joined again.

    concat(x0 @ w0^T + b0, x1 @ w1^T + b1), where x0 and x1 are all parts of x [M, n * K] in order, is a product with
    the batch n. It is made if the target's estimates say that it takes less time.
    """

    name = "batch-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = self.chosen()
        for graph in self.graphs(op):
            for concat in [c for c in graph.block.ops if isinstance(c, ConcatOp)]:
                parts = parts_of(concat)
                if parts is None:
                    continue
                trial = Trial(concat, target)
                result = batched(trial, parts)
                old = [each for part in parts for each in part.ops()]
                if not trial.pays(old):
                    trial.drop()
                    continue
                concat.output.replace_all_uses_with(result)
                erase_unused([parts[0].split, *old, concat])


def parts_of(concat: ConcatOp) -> list[Part] | None:
    """The products that a concatenation along the last dim joins, if one batched product can replace them."""
    if len(concat.operands) < 2 or concat.dim.value.data != 1 or tensor_type(concat.output).rank != 2:
        return None
    parts: list[Part] = []
    for value in concat.operands:
        part = part_of(value)
        if part is None:
            return None
        parts.append(part)
    first = parts[0]
    alike = all(
        part.split is first.split
        and part.index == i
        and part.weight.type == first.weight.type
        and (part.bias is None) == (first.bias is None)
        and part.gemm.parent is concat.parent
        for i, part in enumerate(parts)
    )
    whole = len(parts) == len(first.split.results) and first.split.dim.value.data == 1
    return parts if alike and whole else None


def part_of(value: SSAValue) -> Part | None:
    """A value as a product of a part of a split, which nothing else uses."""
    made = value.owner
    add, product, bias = None, value, None
    if isinstance(made, AddOp):
        add = made
        product, bias = (add.lhs, add.rhs) if isinstance(add.lhs.owner, GemmOp) else (add.rhs, add.lhs)
        if not isinstance(bias.owner, ParamOp) or tensor_type(bias).dims != tensor_type(product).dims[-1:]:
            return None
    gemm = product.owner
    if not isinstance(gemm, GemmOp) or not value.has_one_use() or not product.has_one_use():
        return None
    plain = gemm.layout.data == "rcr" and not gemm.epilogue.blocks and "kernel" not in gemm.attributes
    x, weight = gemm.operands[:2]
    split = x.owner
    if not plain or not isinstance(split, SplitOp) or not isinstance(x, OpResult):
        return None
    return Part(split, x.index, gemm, add, weight, bias) if isinstance(weight.owner, ParamOp) else None


def batched(trial: Trial, parts: Sequence[Part]) -> SSAValue:
    """The result of one batched product, [M, n * N]; its weights and biases are joined, which costs nothing."""
    count, first = len(parts), parts[0]
    x, (n, k) = first.split.input, tensor_type(first.weight).dims
    m = tensor_type(x).dims[0]
    rows = trial.add(PermuteOp(trial.add(ReshapeOp(x, (m, count, k))), (1, 0, 2)))
    weights = trial.add(ConcatOp([part.weight for part in parts], 0))
    product = trial.add(BmmOp("rcr", rows, trial.add(ReshapeOp(weights, (count, n, k)))))
    biases = [part.bias for part in parts if part.bias is not None]
    if biases:
        bias = trial.add(ReshapeOp(trial.add(ConcatOp(biases, 0)), (count, 1, n)))
        product = trial.add(AddOp(product, bias))
    return trial.add(ReshapeOp(trial.add(PermuteOp(product, (1, 0, 2))), (m, count * n)))
