"""Convolutions of integers of 8 bits on the CPU: gathered rows of bytes, multiplied as in the gemm of bytes."""

from __future__ import annotations

from xdsl.ir import Operation

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.dtypes import is_byte
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope, product
from ait_mlir.lowering.estimates import Terms
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.kernels.base import Config, Emission, Launch, PacksWeights, Strides, Target
from ait_mlir.lowering.kernels.conv import ConvKernel, call_conv, is_counted
from ait_mlir.lowering.kernels.gemm import BYTE_RATE
from ait_mlir.lowering.kernels.gemm_packed import PACKED_BYTE_RATE
from ait_mlir.lowering.weights import is_weight

__all__ = ["KERNELS", "BytesConv", "PackedBytesConv"]

GATHERED = 10e9
"""Bytes of gathered rows a second."""


class BytesConv(ConvKernel):
    """Any groups, steps and weights; the weight is laid out in each run."""

    rate = BYTE_RATE

    def matches(self, op: ConvOp, target: Target) -> bool:
        return target.kind == "cpu" and is_byte(tensor_type(op.x).element_type) and is_counted(op)

    def seconds(self, op: ConvOp, target: Target) -> float:
        env = estimate_env(scope_of(op))
        rows, k = product(tensor_type(op.output).dims[:-1]).evaluate(env), op.extents().k.evaluate(env)
        products = 2.0 * tensor_type(op.output).num_elements().evaluate(env) * k
        return target.launch_seconds + products / self.rate + rows * k * op.num_groups() / GATHERED

    def terms(self, op: ConvOp, config: Config, target: Target) -> Terms:
        return Terms({"start": target.launch_seconds}, {"products": self.seconds(op, target)}, "bytes")

    def accepts(self, op: ConvOp, position: int, strides: Strides, scope: Scope) -> bool:
        return strides[-1].as_int() == 1 if position == 0 else super().accepts(op, position, strides, scope)

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        return call_conv(launch, "conv_bytes", "conv_bytes<{epilogue}>")


class PackedBytesConv(BytesConv, PacksWeights):
    """A convolution of one group with a constant weight, which lies in panels."""

    provider = "packed"
    rate = PACKED_BYTE_RATE

    def matches(self, op: ConvOp, target: Target) -> bool:
        is_static = tensor_type(op.weight).static_shape() is not None
        return super().matches(op, target) and op.num_groups() == 1 and is_static and is_weight(op.weight)

    def panels(self, op: Operation, position: int) -> str | None:
        return "nk" if position == 1 else None

    def accepts(self, op: ConvOp, position: int, strides: Strides, scope: Scope) -> bool:
        return position != 1 and super().accepts(op, position, strides, scope)

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        return call_conv(launch, "conv_bytes", "conv_bytes_packed<{epilogue}>", packed=True)


KERNELS = (PackedBytesConv(), BytesConv())
