"""Padding: of any dims, of the last dim to a size, of 3 channels to 4 or 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from ait_mlir.compositions import pad as padding
from ait_mlir.frontend.emit import number_of
from ait_mlir.frontend.intvar import DimLike, as_dim
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor

__all__ = ["ndhwc3to8", "nhwc3to4", "nhwc3to8", "pad", "pad_last_dim"]


class pad(Operator):
    """Pads before and after dims, listed from the last dim to the first as in PyTorch; negative numbers crop.

    Outside of the input are `value` (constant), the mirrored input (reflect), its outermost elements (replicate) or
    the input again (circular).
    """

    def __init__(
        self,
        padding: Sequence[DimLike],
        mode: Literal["constant", "reflect", "replicate", "circular"] = "constant",
        value: float = 0.0,
    ):
        self.padding, self.mode, self.value = list(padding), mode, value

    def __call__(self, x: Tensor) -> Tensor:
        if len(self.padding) % 2 or len(self.padding) > 2 * x.rank:
            raise self.fail(f"{len(self.padding)} pads, expected two for each of at most {x.rank} dims")
        return self.padded(x, self.padding, self.mode, self.value)

    def padded(self, x: Tensor, given: Sequence[DimLike], mode: str = "constant", value: float = 0.0) -> Tensor:
        """x with pads in PyTorch's order."""
        return self.write(padding.pad, x, [as_dim(n) for n in given], mode, number_of(x.type.element_type, value))


class pad_last_dim(pad):
    """Zeros appended to the last dim of a tensor of rank `ndim`, up to the size `out_dim`."""

    def __init__(self, ndim: int, out_dim: int):
        super().__init__([])
        self.ndim, self.out_dim = ndim, out_dim

    def __call__(self, x: Tensor) -> Tensor:
        own = x.type.dims[-1].as_int() if x.rank else None
        if x.rank != self.ndim or own is None or own > self.out_dim:
            raise self.fail(f"expected rank {self.ndim} and a last dim of at most {self.out_dim}")
        return self.padded(x, [0, self.out_dim - own])


class nhwc3to4(pad_last_dim):
    """[N, H, W, 3] with a fourth channel of zeros."""

    shape: ClassVar[tuple[int, int]] = (4, 4)

    def __init__(self):
        super().__init__(*self.shape)

    def __call__(self, x: Tensor) -> Tensor:
        if not x.rank or x.type.dims[-1].as_int() != 3:
            raise self.fail("expected 3 channels as the last dim")
        return super().__call__(x)


class nhwc3to8(nhwc3to4):
    """[N, H, W, 3] with five more channels of zeros."""

    shape = (4, 8)


class ndhwc3to8(nhwc3to4):
    """[N, D, H, W, 3] with five more channels of zeros."""

    shape = (5, 8)
