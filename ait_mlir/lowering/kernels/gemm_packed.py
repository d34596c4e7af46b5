"""Gemm on the CPU with weights in panels: a weight is packed once, when it is set."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation

from ait_mlir.dialects.ait.dtypes import BY_IR, is_byte
from ait_mlir.dialects.ait.gemm import ContractionOp, GemmOp
from ait_mlir.dialects.ait.types import TensorType, scope_of
from ait_mlir.dims import Scope
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, PacksWeights, Strides, Target
from ait_mlir.lowering.kernels.contraction import Problem, epilogue_functor
from ait_mlir.lowering.kernels.gemm import BYTE_RATE, ContractionKernel, element_of, plain_terms
from ait_mlir.lowering.weights import is_weight

RATE = 160e9
"""Operations per second, a tenth above OPENBLAS_RATE, as `benchmarks/cpu_products.py` measured it with AVX-512."""
PACKED_BYTE_RATE = 1.2 * BYTE_RATE
"""Operations per second of integers of 8 bits: the kernel for any strides lays out b in each run."""


class PackedGemm(ContractionKernel, PacksWeights):
    """A gemm with a weight: vectors along its columns, any epilogue on each tile of results. f16 and bf16 are
    widened."""

    one_instance = True
    provider = "packed"
    ops = (GemmOp,)

    def takes(self, op: ContractionOp, target: Target) -> bool:
        kind = cast(TensorType, op.a.type).element_type
        weight = cast(TensorType, op.b.type)
        return (
            target.kind == "cpu"
            and (is_byte(kind) or (isinstance(kind, AnyFloat) and op.output.type.element_type == kind))
            and op.layout.data[0] == op.layout.data[2] == "r"
            and weight.static_shape() is not None
            and is_weight(op.b)
        )

    def panels(self, op: Operation, position: int) -> str | None:
        return {"c": "nk", "r": "kn"}[cast(ContractionOp, op).layout.data[1]] if position == 1 else None

    def seconds_at(self, op: ContractionOp, m: int, n: int, k: int, batches: int, target: Target) -> float:
        rate = PACKED_BYTE_RATE if is_byte(element_of(op)) else RATE
        return target.launch_seconds + 2.0 * m * n * k * batches / rate

    def terms(self, op: ContractionOp, config: Config, target: Target) -> Terms:
        kind, sizes = cast(TensorType, op.a.type).element_type, Problem.contiguous(op).sizes(scope_of(op))
        return plain_terms(*sizes, BY_IR[kind].bytes, None, str(kind), target)

    def accepts(self, op: ContractionOp, position: int, strides: Strides, scope: Scope) -> bool:
        problem = Problem.contiguous(op, position, strides)
        if position == 1 or len(problem.batch) > self.max_batch_loops:
            return False
        return problem.a.col.as_int() == 1 if position == 0 else True

    def emit(self, launch: Launch[ContractionOp]) -> Emission:
        op, dims = launch.op, launch.dims
        problem = Problem.of(op, launch.ins, launch.outs)
        definition, functor = epilogue_functor(op, "cpu")
        header, name = "gemm_packed", "gemm_packed"
        if is_byte(element_of(op)):
            header, name = "gemm_bytes", "gemm_bytes_packed"
        return Emission(
            ("ait/math.h", f"ait/kernels/cpu/{header}.h"),
            definition,
            f"return ait::cpu::{name}<{functor}>(ctx, {problem.shape_cpp('cpu', dims)}, "
            f"{problem.a.cpp('cpu', dims)}, {problem.b.arg.name}, "
            f"{problem.d.cpp('cpu', dims, const=False)}, {problem.extras_cpp('cpu', dims)});\n",
        )


KERNELS = (PackedGemm(),)
