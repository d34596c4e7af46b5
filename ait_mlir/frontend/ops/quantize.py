"""Numbers with a scale: quantize, dequantize, scales of values, and packed numbers of 4 bits."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.compositions import quantize as compositions
from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import IntVar
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor, normalize_dtype

__all__ = ["dequantize", "dynamic_scale", "quantize", "unpack_4_bits"]

Blocks = Sequence[int | IntVar | None]


class _Scaled(Operator):
    def __init__(self, dtype: str, blocks: Blocks | None = None):
        self.element = BY_NAME[normalize_dtype(dtype)].ir
        self.blocks = None if blocks is None else list(blocks)

    def check(self, x: Tensor) -> None:
        """Raise unless there is a size for each dim of x."""
        if self.blocks is not None and len(self.blocks) != x.rank:
            raise BuildError(
                f"{self.name}: blocks has {len(self.blocks)} sizes for {x.describe()}; give one for each dim, None for "
                "the whole dim"
            )


class quantize(_Scaled):
    """x / scale, rounded to `dtype` and limited to its range, plus a zero point: a tensor of `dtype` in the shape of x.

    `dtype` is int8, uint8, int16, int4, uint4, float8_e4m3fn or float8_e5m2. The scale and the zero point broadcast to
    x, or have a number for each block of `blocks`: the size of a block along each dim, None for the whole dim.
    """

    def __call__(self, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
        self.check(x)
        return self.write(compositions.quantize, x, scale, self.element, zero, self.blocks)


class dequantize(_Scaled):
    """(x - zero) * scale as a tensor of the float type `dtype`.

    The scale, the zero point and `blocks` are those of `quantize`.
    """

    def __call__(self, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
        self.check(x)
        return self.write(compositions.dequantize, x, scale, self.element, zero, self.blocks)


class dynamic_scale(_Scaled):
    """The scale with which `quantize` to `dtype` makes the largest magnitude of each block the largest number.

    Without `blocks` it is one number; else it has a number for each block, of which dims must be multiples.
    """

    def __call__(self, x: Tensor) -> Tensor:
        self.check(x)
        return self.write(compositions.dynamic_scale, x, self.element, self.blocks)


class unpack_4_bits(Operator):
    """The numbers of 4 bits in a tensor of uint8, two in a byte, the first one in its lower bits.

    `size` is that of the last dim: twice the bytes, or one less; `dtype` is int4 or uint4.
    """

    def __init__(self, size: int | IntVar, dtype: str = "int4"):
        self.size, self.element = size, BY_NAME[normalize_dtype(dtype)].ir

    def __call__(self, x: Tensor) -> Tensor:
        return self.write(compositions.unpack, x, self.size, self.element)
