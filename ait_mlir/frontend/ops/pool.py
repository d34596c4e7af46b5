"""Pooling of [N, H, W, C] over H and W."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ait_mlir.dialects.ait.pool import AdaptivePoolOp, PoolOp, pool_properties
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import DimLike, as_dim, merge_symbols
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor

__all__ = ["adaptive_avg_pool2d", "adaptive_max_pool2d", "avg_pool2d", "max_pool2d"]


class pool2d(Operator):
    """Base of the pools over windows: `kernel_size`, `stride` and `pad` are one number, or one each for H and W."""

    kind: ClassVar[str]

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int],
        pad: int | Sequence[int] = 0,
        ceil_mode: bool = False,
    ):
        self.ceil, self.exclude_pad = ceil_mode, False
        self.window, self.stride, self.pad = (
            self.pair(name, n) for name, n in (("kernel_size", kernel_size), ("stride", stride), ("pad", pad))
        )

    def pair(self, name: str, given: int | Sequence[int]) -> tuple[int, ...]:
        """One number for H and one for W."""
        pair = (given, given) if isinstance(given, int) else tuple(given)
        if len(pair) != 2:
            raise BuildError(f"{self.name}: {name} is {list(pair)}, expected one number or two")
        return pair

    def __call__(self, x: Tensor) -> Tensor:
        if x.rank != 4:
            raise self.fail(f"x is [N, H, W, C], found {x.describe()}")
        properties = pool_properties(
            self.kind, self.window, self.stride, self.pad, ceil=self.ceil, exclude_pad=self.exclude_pad
        )
        return self.finish(self.emit_one(PoolOp, [x], properties))


class max_pool2d(pool2d):
    """The largest element of each window."""

    kind = "max"


class avg_pool2d(pool2d):
    """The mean of each window; the pads are zeros, which count unless `count_include_pad` is false."""

    kind = "mean"

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int],
        pad: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        super().__init__(kernel_size, stride, pad, ceil_mode)
        self.exclude_pad = not count_include_pad


class adaptive_avg_pool2d(Operator):
    """The means of windows of about equal size, [N, *output_size, C]; a size may be a dim."""

    kind: ClassVar[str] = "mean"

    def __init__(self, output_size: DimLike | Sequence[DimLike]):
        self.sizes = list(output_size) if isinstance(output_size, Sequence) else [output_size, output_size]
        if len(self.sizes) != 2:
            raise BuildError(f"{self.name}: output_size has {len(self.sizes)} numbers, expected one or two")

    def __call__(self, x: Tensor) -> Tensor:
        if x.rank != 4:
            raise self.fail(f"x is [N, H, W, C], found {x.describe()}")
        sizes = [as_dim(size) for size in self.sizes]
        dims = (x.type.dims[0], *(size.expr for size in sizes), x.type.dims[-1])
        result, symbols = TensorType.get(dims, x.type.element_type), merge_symbols(*(size.symbols for size in sizes))
        return self.finish(self.emit_one(AdaptivePoolOp, [x], {"kind": self.kind}, [result], symbols=symbols))


class adaptive_max_pool2d(adaptive_avg_pool2d):
    """The largest elements of windows of about equal size."""

    kind = "max"
