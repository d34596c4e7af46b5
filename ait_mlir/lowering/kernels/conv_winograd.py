"""Convolutions of 3 x 3 on the CPU by Winograd's method: 16 products for 4 results instead of 36."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import Operation

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.host.cpu import has_bf16_tiles
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.kernels.base import Emission, Launch, Target
from ait_mlir.lowering.kernels.conv import call_conv
from ait_mlir.lowering.kernels.conv_packed import LANES, PackedConv
from ait_mlir.lowering.kernels.gemm_packed import RATE

__all__ = ["KERNELS", "WinogradConv"]

TRANSFORMED, READ = 15e9, 12e9
"""Bytes a second of transformed inputs and sums, and of weights."""
TAPS = 16
"""Products of a tile."""
TILES_GAIN = 2.3
"""How much faster the matrix unit (AMX) makes the direct products of f32, which are estimated at RATE."""


class WinogradConv(PackedConv):
    """A convolution of 3 x 3 with a constant weight, step 1, dilation 1 and one group, computed in f32.

    Its errors are about as large as with direct sums, but relative to the largest numbers of 4 x 4 places, not 3 x 3.
    """

    provider = "winograd"

    def matches(self, op: ConvOp, target: Target) -> bool:
        return (
            super().matches(op, target)
            and isinstance(tensor_type(op.x).element_type, Float32Type | Float16Type | BFloat16Type)
            and not op.is_transposed()
            and tuple(op.kernel()) == (3, 3)
            and {*op.strides(), *op.dilations()} == {1}
        )

    def panels(self, op: Operation, position: int) -> str | None:
        return "winograd" if position == 1 else None

    def seconds(self, op: ConvOp, target: Target) -> float:
        env = estimate_env(scope_of(op))
        images, height, width, n = (dim.evaluate(env) for dim in tensor_type(op.output).dims)
        tiles, k = images * -(-height // 2) * -(-width // 2), cast(int, tensor_type(op.x).dims[-1].as_int())
        exact = isinstance(tensor_type(op.x).element_type, Float32Type)
        tiled = exact and target.arch == "native" and has_bf16_tiles()
        products = 2.0 * TAPS * tiles * n * k / RATE * (TILES_GAIN if tiled else 1)
        weights = TAPS * n * k * 4 / READ
        planes = TAPS * tiles * sum(-(-size // LANES) * LANES * 4 for size in (n, k))
        return target.launch_seconds + max(products, weights) + planes / TRANSFORMED

    def emit(self, launch: Launch[ConvOp]) -> Emission:
        return call_conv(launch, "conv_winograd", "conv_winograd<{epilogue}>", packed=True)


KERNELS = (WinogradConv(),)
