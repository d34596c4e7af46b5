"""Products of matrices whose rows start on any address, on Hopper's own matrix instruction: rows are copied apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.strided import contiguous_strides
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Scope, ceildiv, product
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import Problem
from ait_mlir.lowering.kernels.gemm_hopper import SPAN, HopperGemm, is_aligned
from ait_mlir.lowering.kernels.loops import collapse, nest
from ait_mlir.lowering.kernels.view import Part, copies_of

__all__ = ["KERNELS", "PaddedHopperGemm"]

COPY_SHARE = 0.75
"""The share of memory bandwidth that a copy of rows reaches if they start on any address."""


class PaddedHopperGemm(HopperGemm):
    """`HopperGemm` for factors whose rows do not start on 16-byte boundaries: a launch for each such factor copies its
    rows to such boundaries. Nothing is written between the rows, because the copy engine reads no further than K or N.
    """

    provider = "padded"
    fitted_as = ("hopper", "gemm")
    max_sums = 1

    def matches(self, op: ContractionOp, target: Target) -> bool:
        if not super(HopperGemm, self).matches(op, target):
            return False
        problem = Problem.contiguous(op)
        others = (*problem.extras, *problem.results())
        odd = [tensor_type(op.operands[i]).dims[-1].as_int() for i in copied(op)]
        # Rows of unknown length may be whole accesses in a run, where a copy would be lost.
        return bool(odd) and None not in odd and all(x.col.as_int() == 1 for x in others)

    def accepts(self, op: ContractionOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position in copied(op) or super().accepts(op, position, strides, scope)

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        return super().seconds_at(op, m, n, k, batches, target) + copy_seconds(op, target)

    def terms_of(self, op: ContractionOp, target: Target) -> Callable[[Config], Terms]:
        whole, copies = super().terms_of(op, target), copy_seconds(op, target)

        def terms(config: Config) -> Terms:
            found = whole(config)
            return replace(found, first={**found.first, "copies of rows": copies})

        return terms

    def between(self, op: ContractionOp, config: Config, target: Target) -> tuple[TensorType, ...]:
        return tuple(padded_type(tensor_type(op.operands[i])) for i in copied(op))

    def emit(self, launch: Launch[ContractionOp]) -> tuple[Emission, ...]:
        op, ins = launch.op, list(launch.ins)
        emitted: list[Emission] = []
        for i, buffer in zip(copied(op), launch.between, strict=True):
            target = Arg(buffer.name, ins[i].type, contiguous_strides(buffer.type.dims))
            loops = collapse(nest(ins[i].type.dims, [ins[i].strides, target.strides]), launch.scope)
            emitted.append(copies_of(launch, [Part(ins[i], target, loops)]))
            ins[i] = target
        return *emitted, self.product(replace(launch, ins=ins))


def copied(op: ContractionOp) -> tuple[int, ...]:
    """The positions of the factors whose rows are copied: if contiguous, they do not start on 16-byte boundaries."""
    problem, scope = Problem.contiguous(op), scope_of(op)
    odd = [x.arg.name for x in (problem.a, problem.b) if not is_aligned(x, scope)]
    return tuple(i for i in (0, 1) if f"input{i}" in odd)


def padded_type(t: TensorType) -> TensorType:
    """The type with rows of whole accesses of 16 bytes."""
    return TensorType.get((*t.dims[:-1], ceildiv(t.dims[-1], SPAN) * SPAN), t.element_type)


def copy_seconds(op: ContractionOp, target: Target) -> float:
    """The estimated seconds of the launches that copy rows."""
    env = estimate_env(scope_of(op))
    found = 0.0
    for i in copied(op):
        size = product(tensor_type(op.operands[i]).dims).evaluate(env) * 2
        found += target.launch_seconds + 2.0 * size / (COPY_SHARE * target.bandwidth)
    return found


KERNELS = (PaddedHopperGemm(),)
