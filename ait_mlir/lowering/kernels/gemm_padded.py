"""Products of matrices whose rows start on any address, by kernels that need boundaries: rows are copied apart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.strided import contiguous_strides
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Scope, ceildiv, product
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.kernels.base import Arg, Config, Emission, Launch, Strides, Target
from ait_mlir.lowering.kernels.contraction import Problem, is_narrow
from ait_mlir.lowering.kernels.gemm import ContractionKernel, element_of
from ait_mlir.lowering.kernels.gemm_cublaslt import CublasLtGemm
from ait_mlir.lowering.kernels.gemm_hopper import SPAN, HopperGemm, is_aligned
from ait_mlir.lowering.kernels.loops import collapse, nest, single
from ait_mlir.lowering.kernels.view import Part, copies_of

__all__ = ["KERNELS", "PaddedHopperGemm", "PaddedLtGemm"]

COPY_SHARE = 0.75
"""The share of memory bandwidth that a copy of rows reaches if they start on any address."""


class CopiesRows(ContractionKernel):
    """Base of kernels that copy factors first, if the rows of the factors do not start on 16-byte boundaries.

    One launch copies the rows to such boundaries, then the kernel of the subclass's other base class runs. The gaps
    between rows stay unwritten, because no kernel reads beyond K or N.
    """

    max_sums = 1

    def matches(self, op: ContractionOp, target: Target) -> bool:
        if not ContractionKernel.matches(self, op, target):
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

    def between(self, op: ContractionOp, config: Config, target: Target) -> tuple[TensorType, ...]:
        return tuple(padded_type(tensor_type(op.operands[i])) for i in copied(op))

    def emit(self, launch: Launch[ContractionOp]) -> tuple[Emission, ...]:
        op, ins = launch.op, list(launch.ins)
        parts: list[Part] = []
        for i, buffer in zip(copied(op), launch.between, strict=True):
            target = Arg(buffer.name, ins[i].type, contiguous_strides(buffer.type.dims))
            loops = collapse(nest(ins[i].type.dims, [ins[i].strides, target.strides]), launch.scope)
            parts.append(Part(ins[i], target, loops))
            ins[i] = target
        one = all(len(part.loops) <= 2 and part.loops[-1].strides[0].as_int() == 1 for part in parts)
        copies = [copies_of_rows(launch, parts)] if one else [copies_of(launch, [part]) for part in parts]
        return *copies, self.product(replace(launch, ins=ins))

    @abstractmethod
    def product(self, launch: Launch[ContractionOp]) -> Emission:
        """The launch of the product, whose factors are the copies."""


class PaddedHopperGemm(CopiesRows, HopperGemm):
    """`HopperGemm` for factors whose rows start on any address: they are copied."""

    provider = "padded"
    takes_bytes = False
    fitted_as = ("hopper", "gemm")

    def terms_of(self, op: ContractionOp, target: Target) -> Callable[[Config], Terms]:
        whole, copies = super().terms_of(op, target), copy_seconds(op, target)
        return lambda config: with_copies(whole(config), copies)

    def product(self, launch: Launch[ContractionOp]) -> Emission:
        return HopperGemm.product(self, launch)


class PaddedLtGemm(CopiesRows, CublasLtGemm):
    """cuBLASLt for factors of 2-byte elements whose rows start on any address: they are copied, because the library has
    only slow kernels for such factors. Chosen only by time: estimates do not know its kernels for such results."""

    provider = "padded-cublaslt"
    fitted_as = ("cublaslt", "gemm")
    only_timed = True

    def takes(self, op: ContractionOp, target: Target) -> bool:
        return is_narrow(element_of(op)) and super().takes(op, target)

    def is_odd(self, op: ContractionOp) -> bool:
        return False

    def terms(self, op: ContractionOp, config: Config, target: Target) -> Terms | None:
        whole = super().terms(op, config, target)
        return None if whole is None else with_copies(whole, copy_seconds(op, target))

    def product(self, launch: Launch[ContractionOp]) -> Emission:
        return CublasLtGemm.product(self, launch)


def copies_of_rows(launch: Launch[ContractionOp], parts: Sequence[Part]) -> Emission:
    """One launch that copies all rows of one or two matrices."""
    matrices: list[str] = []
    for i, part in enumerate(parts):
        rows, row = (part.loops[0], part.loops[-1]) if len(part.loops) == 2 else (single(2), part.loops[-1])
        numbers = {"rows": rows.size, "length": row.size, "from_pitch": rows.strides[0], "to_pitch": rows.strides[1]}
        sizes = ", ".join(launch.size(e, f"copy{i}_{name}") for name, e in numbers.items())
        matrices.append(f"{{{part.source.name}, {part.target.name}, {sizes}}}")
    element = element_type(parts[0].source.type.element_type)
    return launch.call("align_rows", f"align_rows<{element}>(ctx, {', '.join(matrices)})")


def with_copies(terms: Terms, seconds: float) -> Terms:
    """The terms of a product, with the time of the launches before it."""
    return replace(terms, first={**terms.first, "copies of rows": seconds})


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


KERNELS = (PaddedHopperGemm(), PaddedLtGemm())
