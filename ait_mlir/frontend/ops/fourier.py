"""Short Fourier transforms: products with matrices of cosines and sines. A complex tensor is a pair of real ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Literal

from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.frontend.intvar import DimLike, IntVar, as_dim, merge_symbols, scope_from
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum, cast, elementwise, eq, where
from ait_mlir.frontend.ops.gemm import gemm_rrr
from ait_mlir.frontend.ops.ranges import arange
from ait_mlir.frontend.ops.view import dynamic_slice, permute, reshape, unsqueeze
from ait_mlir.frontend.tensor import Tensor

LONGEST = 4096
"""The longest transform: its matrices have as many rows and columns."""
Part = Tensor | None


class _Transform(Operator):
    """A transform along `dim` of length `n`, the size of the dim where None; a longer dim is cut, a shorter one is
    followed by zeros. `norm` "backward" divides the inverse by n, "forward" the transform, "ortho" both by its root.
    """

    POWERS: ClassVar = {"backward": (0.0, -1.0), "ortho": (-0.5, -0.5), "forward": (-1.0, 0.0)}
    inverse: ClassVar[bool] = False

    def __init__(
        self,
        n: DimLike | None = None,
        dim: int = -1,
        norm: Literal["backward", "ortho", "forward"] = "backward",
    ):
        super().__init__()
        self.n, self.dim, self.power = n, dim, self.POWERS[norm][self.inverse]

    def start(self, real: Tensor, imag: Part) -> int:
        """The axis, from the front."""
        self.begin(*(t for t in (real, imag) if t is not None))
        if not is_float(real.type.element_type):
            raise self.fail(f"needs floats, found {real.describe()}")
        if imag is not None and imag.type != real.type:
            raise self.fail("needs two parts of one type and shape")
        return self.axis(real, self.dim)

    def length(self, size: IntVar) -> IntVar:
        """The length of the transform of a dim of this size."""
        n = size if self.n is None else as_dim(self.n)
        if n.upper_bound() > LONGEST:
            raise self.fail(f"a transform has up to {LONGEST} elements; this one may have {n.upper_bound()}")
        return n

    def waves(self, n: IntVar, rows: IntVar, columns: IntVar, dtype: str) -> tuple[Tensor, Tensor]:
        """cos and sin of 2 pi j k / n, [rows, columns]."""
        turns = elementwise(FuncEnum.REM)(unsqueeze(1)(arange()(rows)) * arange()(columns), arange().number(n))
        angles = cast()(turns, dtype) * (2 * math.pi) / arange(dtype).number(n)
        return elementwise(FuncEnum.COS)(angles), elementwise(FuncEnum.SIN)(angles)

    def fitting(self, x: Part, axis: int, most: IntVar) -> Part:
        """At most so many elements along an axis."""
        if x is None or scope_from(merge_symbols(x.symbols, most.symbols)).le(x.shape()[axis].expr, most.expr):
            return x
        ends = [most if a == axis else None for a in range(x.rank)]
        return dynamic_slice()(x, [None] * x.rank, ends)

    def product(self, x: Part, axis: int, matrix: Tensor) -> Part:
        """x @ matrix over an axis of x."""
        if x is None:
            return None
        order = [*(a for a in range(x.rank) if a != axis), axis]
        turned = permute()(x, order)
        y = gemm_rrr()(unsqueeze(0)(turned) if x.rank == 1 else turned, matrix)
        y = reshape()(y, y.shape()[1:]) if x.rank == 1 else y
        return permute()(y, [order.index(a) for a in range(x.rank)])

    def scaled(self, x: Tensor, n: IntVar) -> Tensor:
        """x * n ** power"""
        if self.power == 0:
            return x
        if (known := n.expr.as_int()) is not None:
            return x * float(max(known, 1)) ** self.power
        size = arange(x.dtype()).number(n)
        return x / size if self.power == -1 else x * elementwise(FuncEnum.RSQRT)(size)

    def transformed(
        self, real: Tensor, imag: Part, columns: Callable[[IntVar], IntVar] = lambda n: n
    ) -> tuple[Tensor, Tensor]:
        """The parts of the transform, or of as many of its first columns as `columns` says for a length."""
        axis = self.start(real, imag)
        n = self.length(real.shape()[axis])
        kept, kept_imag = self.fitting(real, axis, n), self.fitting(imag, axis, n)
        assert kept is not None
        cos, sin = self.waves(n, kept.shape()[axis], columns(n), real.dtype())
        sin = sin if self.inverse else -sin
        found = (
            _sum(self.product(kept, axis, cos), self.product(kept_imag, axis, sin), FuncEnum.SUB),
            _sum(self.product(kept, axis, sin), self.product(kept_imag, axis, cos), FuncEnum.ADD),
        )
        self.outputs = [self.scaled(x, n) for x in found]
        return self.outputs[0], self.outputs[1]


def _sum(a: Part, b: Part, func: FuncEnum) -> Tensor:
    assert a is not None
    return a if b is None else elementwise(func)(a, b)


class fft(_Transform):
    """The Fourier transform along `dim`; the parts of the result. Without `imag` the numbers are real.

    `n`, `dim` and `norm` are those of `torch.fft.fft`; n is at most 4,096.
    """

    def __call__(self, real: Tensor, imag: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.transformed(real, imag)


class ifft(fft):
    """The inverse of `fft`, with the same arguments."""

    inverse = True


class rfft(_Transform):
    """The Fourier transform of real numbers along `dim`: the first n // 2 + 1 coefficients; arguments as of `fft`."""

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.transformed(x, None, lambda n: n // 2 + 1)


class irfft(_Transform):
    """The inverse of `rfft`, from the first half of the coefficients; `n` is 2 * (their number - 1) where None."""

    inverse = True

    def __call__(self, real: Tensor, imag: Tensor | None = None) -> Tensor:
        axis = self.start(real, imag)
        n = self.length((real.shape()[axis] - 1) * 2)
        first, first_imag = (self.fitting(x, axis, n // 2 + 1) for x in (real, imag))
        assert first is not None
        cos, sin = self.waves(n, first.shape()[axis], n, real.dtype())
        weights = self._weights(n, first.shape()[axis], real.dtype())
        parts = self.product(first, axis, cos * weights), self.product(first_imag, axis, sin * weights)
        return self.finish(self.scaled(_sum(*parts, FuncEnum.SUB), n))

    def _weights(self, n: IntVar, rows: IntVar, dtype: str) -> Tensor:
        """[rows, 1]: 2, but 1 for the first coefficient and the middle one of an even length."""
        k = unsqueeze(1)(arange()(rows))
        return where()(eq()(k, 0), 1.0, where()(eq()(k * 2, arange().number(n)), 1.0, 2.0, dtype), dtype)
