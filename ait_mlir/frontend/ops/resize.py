"""Resampling of [N, H, W, C] over H and W, to other sizes or at the places of a grid."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

from ait_mlir.dialects.ait.resize import GridSampleOp, ResizeOp, resize_properties
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dims import Expr, floordiv
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.tensor import Tensor

__all__ = ["grid_sample", "upsampling2d", "upsampling2d_add"]

MODES = {"nearest": "nearest", "nearest-exact": "nearest_exact", "bilinear": "linear", "bicubic": "cubic"}


class upsampling2d_base(Operator):
    """Base of the operators that resample H and W."""

    MOST: ClassVar[int] = 1 << 20

    def __init__(
        self,
        scale_factor: float,
        mode: Literal["nearest", "nearest-exact", "bilinear", "bicubic"],
        align_corners: bool = False,
    ):
        self.scale = Fraction(scale_factor)
        if self.scale <= 0 or self.scale.denominator > self.MOST:
            raise BuildError(f"{self.name}: scale_factor is {scale_factor}, expected a number above 0, such as 1.5")
        self.mode, self.align_corners = mode, align_corners

    def resized(self, x: Tensor) -> Tensor:
        """x at its new sizes."""
        if x.rank != 4:
            raise self.fail(f"x is [N, H, W, C], found {x.describe()}")
        batch, height, width, channels = x.type.dims
        result = TensorType.get((batch, self.size(height), self.size(width), channels), x.type.element_type)
        scales = None if self.scale.denominator == 1 else [float(self.scale)] * 2
        return self.emit_one(ResizeOp, [x], resize_properties(MODES[self.mode], scales, self.align_corners), [result])

    def size(self, dim: Expr) -> Expr:
        """The size of the result for a size of x."""
        return floordiv(dim * self.scale.numerator, self.scale.denominator)


class upsampling2d(upsampling2d_base):
    """H and W times `scale_factor`, rounded down."""

    def __call__(self, x: Tensor) -> Tensor:
        return self.finish(self.resized(x))


class upsampling2d_add(upsampling2d_base):
    """upsampling2d(x) + r, with r of the shape of the result."""

    def __call__(self, x: Tensor, r: Tensor) -> Tensor:
        y = self.resized(x)
        constant = [(dim.as_int(), wanted.as_int()) for dim, wanted in zip(r.type.dims, y.type.dims, strict=False)]
        if r.rank != y.rank or any(dim is not None and dim != wanted for dim, wanted in constant):
            raise self.fail(f"r must have the shape of the result, {y.describe()}, found {r.describe()}")
        return self.finish(elementwise(FuncEnum.ADD)(y, r))


class grid_sample(Operator):
    """x [N, H, W, C] at the places of a grid [N, OH, OW, 2]: [N, OH, OW, C], as in `torch.nn.functional.grid_sample`.

    A place is (x, y), each from -1 to 1. `padding_mode` gives the values outside of x.
    """

    def __init__(
        self,
        mode: Literal["nearest", "bilinear", "bicubic"] = "bilinear",
        padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
        align_corners: bool = False,
    ):
        self.properties = {"mode": MODES[mode], "outside": padding_mode, "align_corners": align_corners}

    def __call__(self, x: Tensor, grid: Tensor) -> Tensor:
        return self.finish(self.emit_one(GridSampleOp, [x, grid], self.properties))
