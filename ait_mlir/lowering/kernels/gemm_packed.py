"""Gemm on the CPU with weights that lie in panels: what a run multiplies with is packed once, when it is set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait.data import ParamOp
from ait_mlir.dialects.ait.gemm import ContractionOp, GemmOp
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dialects.ait.view import ConcatOp
from ait_mlir.dialects.ait_rt.program import KernelOp
from ait_mlir.dims import Scope
from ait_mlir.lowering.kernels.base import Arg, Emission, Strides, Target
from ait_mlir.lowering.kernels.contraction import Problem, epilogue_functor
from ait_mlir.lowering.kernels.gemm import ContractionKernel

RATE = 160e9
"""Operations per second, a tenth above OPENBLAS_RATE: see docs/performance.md."""


def is_weight(value: SSAValue) -> bool:
    """Whether a value is params laid end to end along dim 0; inside of a kernel any operand may be."""
    owner = value.owner
    if isinstance(owner, Block):
        return isinstance(owner.parent_op(), KernelOp)
    if isinstance(owner, ConcatOp):
        return owner.dim.value.data == 0 and all(isinstance(v.owner, ParamOp) for v in owner.operands)
    return isinstance(owner, ParamOp)


class PackedGemm(ContractionKernel):
    """A gemm with a weight, for f32 and f64: vectors along its columns, any epilogue on each tile of results."""

    provider = "packed"

    def takes(self, op: ContractionOp, target: Target) -> bool:
        kind = cast(TensorType, op.a.type).element_type
        weight = cast(TensorType, op.b.type)
        return (
            target.kind == "cpu"
            and isinstance(op, GemmOp)
            and isinstance(kind, Float32Type | Float64Type)
            and op.output.type.element_type == kind
            and op.layout.data[0] == op.layout.data[2] == "r"
            and weight.static_shape() is not None
            and is_weight(op.b)
        )

    def panels(self, op: Operation, position: int) -> str | None:
        return {"c": "nk", "r": "kn"}[cast(ContractionOp, op).layout.data[1]] if position == 1 else None

    def seconds(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        return target.launch_seconds + 2.0 * m * n * k * batches / RATE

    def accepts(self, op: Operation, position: int, strides: Strides, scope: Scope) -> bool:
        op = cast(ContractionOp, op)
        problem = Problem.contiguous(op, position, strides)
        if position == 1 or len(problem.batch) > self.max_batch_loops:
            return False
        return problem.a.col.as_int() == 1 if position == 0 else True

    def emit(
        self,
        op: Operation,
        ins: Sequence[Arg],
        outs: Sequence[Arg],
        cpp_dims: Mapping[str, str],
        config: Mapping[str, int],
        target: Target,
    ) -> Emission:
        op = cast(ContractionOp, op)
        problem = Problem.of(op, ins, outs[0])
        definition, functor = epilogue_functor(op, "epilogue_@ID@", "cpu")
        return Emission(
            ("ait/math.h", "ait/kernels/cpu/gemm_packed.h"),
            definition,
            f"return ait::cpu::gemm_packed<{functor}>(\n"
            f"      ctx, {problem.shape_cpp('cpu', cpp_dims)},\n"
            f"      {problem.a.cpp('cpu', cpp_dims)}, {problem.b.arg.name},\n"
            f"      {problem.d.cpp('cpu', cpp_dims, const=False)}, {problem.extras_cpp('cpu', cpp_dims)});\n",
        )


KERNELS = (PackedGemm(),)
