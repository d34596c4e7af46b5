"""Short Fourier transforms. A complex tensor is a pair of real ones."""

from __future__ import annotations

from typing import ClassVar, Literal

from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.compositions import fourier
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dims import Expr
from ait_mlir.frontend.intvar import DimLike, IntVar, as_dim
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor

__all__ = ["fft", "ifft", "irfft", "rfft"]

Part = Tensor | None


class _Transform(Operator):
    """A transform along `dim` of length `n`, by default the size of the dim; a longer dim is cut, a shorter dim is
    padded with zeros. `norm` "backward" divides the inverse by n, "forward" the transform, "ortho" both by its root.
    """

    inverse: ClassVar[bool] = False
    is_half: ClassVar[bool] = False
    """Whether the numbers are real, so that half of the coefficients follow from the others."""

    def __init__(
        self,
        n: DimLike | None = None,
        dim: int = -1,
        norm: Literal["backward", "ortho", "forward"] = "backward",
    ):
        self.n, self.dim, self.power = n, dim, fourier.POWERS[norm][self.inverse]

    def start(self, real: Tensor, imag: Part) -> tuple[int, IntVar]:
        """The axis, from the front, and the length of the transform."""
        self.begin(*(t for t in (real, imag) if t is not None))
        if not is_float(real.type.element_type):
            raise self.fail(f"needs floats, found {real.describe()}")
        if imag is not None and imag.type != real.type:
            raise self.fail("needs two parts of one type and shape")
        axis = self.axis(real, self.dim)
        size = real.shape()[axis]
        whole = (size - 1) * 2 if self.inverse and self.is_half else size
        return axis, whole if self.n is None else as_dim(self.n)

    def parts(self, real: Tensor, imag: Part) -> tuple[Tensor, Tensor]:
        """The parts of the transform."""

        def written(w: Writer, x: SSAValue, y: SSAValue | None, n: Expr) -> tuple[SSAValue, SSAValue]:
            columns = fourier.half(n) if self.is_half else n
            return fourier.transform(w, x, y, axis, n, columns, power=self.power, inverse=self.inverse)

        axis, n = self.start(real, imag)
        first, second = self.write_all(written, real, imag, n)
        return first, second


class fft(_Transform):
    """The Fourier transform along `dim`; the parts of the result. Without `imag` the numbers are real.

    `n`, `dim` and `norm` mean the same as in `torch.fft.fft`; n is at most 4,096.
    """

    def __call__(self, real: Tensor, imag: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.parts(real, imag)


class ifft(fft):
    """The inverse of `fft`, with the same arguments."""

    inverse = True


class rfft(_Transform):
    """The Fourier transform of real numbers along `dim`: the first n // 2 + 1 coefficients; arguments as in `fft`."""

    is_half = True

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.parts(x, None)


class irfft(_Transform):
    """The inverse of `rfft`, from the first half of the coefficients; `n` is by default 2 * (their number - 1)."""

    inverse, is_half = True, True

    def __call__(self, real: Tensor, imag: Tensor | None = None) -> Tensor:
        axis, n = self.start(real, imag)
        return self.write(fourier.real_inverse, real, imag, axis, n, power=self.power)
