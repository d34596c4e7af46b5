"""Convolutions on the CPU with weights in panels: rows are gathered and multiplied as in the packed gemm."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope, product
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.kernels.base import Emission, Launch, PacksWeights, Strides, Target
from ait_mlir.lowering.kernels.conv import ConvKernel, call_conv
from ait_mlir.lowering.kernels.gemm_packed import RATE
from ait_mlir.lowering.weights import is_weight

__all__ = ["KERNELS", "PackedConv"]

GATHERED, LANES = 15e9, 16
"""Bytes of gathered rows a second; columns are padded to a multiple of `LANES` elements."""


class PackedConv(ConvKernel, PacksWeights):
    """A convolution of one group with a constant weight, for all floats: vectors along the channels of the result."""

    provider = "packed"

    def matches(self, op: ConvOp, target: Target) -> bool:
        kind = tensor_type(op.x).element_type
        return (
            super().matches(op, target)
            and target.kind == "cpu"
            and isinstance(kind, AnyFloat)
            and tensor_type(op.output).element_type == kind
            and op.num_groups() == 1
            and tensor_type(op.weight).static_shape() is not None
            and is_weight(op.weight)
        )

    def panels(self, op: Operation, position: int) -> str | None:
        return "nk" if position == 1 else None

    def seconds(self, op: ConvOp, target: Target) -> float:
        env = estimate_env(scope_of(op))
        rows = product(tensor_type(op.output).dims[:-1]).evaluate(env)
        k, n = op.extents().k.evaluate(env), tensor_type(op.output).dims[-1].evaluate(env)
        products = 2.0 * rows * k * -(-n // LANES) * LANES
        return target.launch_seconds + products / RATE + rows * k * 4 / GATHERED

    def accepts(self, op: ConvOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position != 1 and (position > 0 or strides[-1].as_int() == 1)

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        return call_conv(launch, "conv_packed", "conv_packed<{epilogue}>", packed=True)


KERNELS = (PackedConv(),)
