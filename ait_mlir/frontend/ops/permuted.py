"""Matrix products whose result is permuted: `gemm_rcr_bias_permute`, `bmm_rrr_permute`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ait_mlir.frontend.assume import exact_quotient
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import DimLike, IntVar, product
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.ops.gemm import bmm_rcr, bmm_rrr, contraction, gemm_rcr, gemm_rcr_bias, gemm_rrr, gemm_rrr_bias
from ait_mlir.frontend.ops.view import permute, reshape
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "bmm_rcr_permute", "bmm_rrr_permute", "gemm_rcr_bias_permute", "gemm_rcr_permute", "gemm_rcr_permute_elup1",
    "gemm_rrr_bias_permute", "gemm_rrr_permute",
]  # fmt: skip


class permuted(Operator):
    """A product whose result is reshaped to more dims and permuted, like the heads of an attention.

    `layout` and `shape` give the new dims of m rows and n columns:

    - "20314" or "m2n3", `shape` (t1, t2, t3): [m / t1, t1, t2, t3, n / (t2 * t3)], permuted by [2, 0, 3, 1, 4]
    - "m3n2", `shape` (t1, t2, t3): [m / (t1 * t2), t1, t2, t3, n / t3], permuted by [2, 0, 3, 1, 4]
    - "0213", `shape` (t1, t2): [m / t1, t1, t2, n / t2], permuted by [0, 2, 1, 3]
    - "0213" of a bmm with b matrices, `shape` (t1,): [b / t1, t1, m, n], permuted by [0, 2, 1, 3]

    Attention and elementwise ops read the result through strides; for other readers it is copied.
    """

    inner: ClassVar[type[contraction]]
    layouts: ClassVar[dict[str, int]] = {"20314": 3, "m2n3": 3, "m3n2": 3, "0213": 2}
    """How many dims `shape` has for each layout."""
    rank: ClassVar[int] = 2

    def __init__(self, shape: Sequence[DimLike], layout: str = "20314"):
        if self.layouts.get(layout) != len(shape):
            known = ", ".join(f'"{name}" with {count}' for name, count in self.layouts.items())
            raise BuildError(
                f'{self.name}: layout "{layout}" with {len(shape)} dims in shape is unknown; expected one of {known}'
            )
        self.shape, self.layout = list(shape), layout

    def __call__(self, a: Tensor, b: Tensor, *extras: Tensor, **named: Tensor) -> Tensor:
        self.begin(a, b, *extras, *named.values())
        y = self.finished(self.inner()(a, b, *extras, **named))
        if y.rank != self.rank:
            raise self.fail(f"the product must have {self.rank} dims, found {y.describe()}")
        try:
            dims, order = self._target(y.shape())
        except BuildError as error:
            raise self.fail(f"the product {y.describe()} cannot be cut by {self.shape}: {error}") from None
        return self.finish(permute()(reshape()(y, dims), order))

    def finished(self, y: Tensor) -> Tensor:
        """The product after the steps that precede the permutation."""
        return y

    def _target(self, dims: list[IntVar]) -> tuple[list[DimLike], list[int]]:
        first, *rest = self.shape
        if self.rank == 3:
            return [exact_quotient(dims[0], first), first, *dims[1:]], [0, 2, 1, 3]
        order = [2, 0, 3, 1, 4] if len(rest) == 2 else [0, 2, 1, 3]
        if self.layout == "m3n2":
            second, third = rest
            rows = exact_quotient(dims[0], product([first, second]))
            return [rows, first, second, third, exact_quotient(dims[1], third)], order
        return [exact_quotient(dims[0], first), first, *rest, exact_quotient(dims[1], product(rest))], order


class bmm_permuted(permuted):
    """A product of matrices whose result is reshaped and permuted: see `permuted`, layout "0213"."""

    layouts: ClassVar[dict[str, int]] = {"0213": 1}
    rank = 3

    def __init__(self, shape: Sequence[DimLike], layout: str = "0213"):
        super().__init__(shape, layout)


def _permuted(name: str, inner: type[contraction], base: type[permuted] = permuted) -> type[permuted]:
    return type(name, (base,), {"inner": inner, "__doc__": base.__doc__, "__module__": __name__})


gemm_rcr_permute = _permuted("gemm_rcr_permute", gemm_rcr)
gemm_rrr_permute = _permuted("gemm_rrr_permute", gemm_rrr)
gemm_rcr_bias_permute = _permuted("gemm_rcr_bias_permute", gemm_rcr_bias)
gemm_rrr_bias_permute = _permuted("gemm_rrr_bias_permute", gemm_rrr_bias)
bmm_rcr_permute = _permuted("bmm_rcr_permute", bmm_rcr, bmm_permuted)
bmm_rrr_permute = _permuted("bmm_rrr_permute", bmm_rrr, bmm_permuted)


class gemm_rcr_permute_elup1(permuted):
    """elu(a @ b^T) + 1, reshaped and permuted: see `permuted`."""

    inner = gemm_rcr

    def finished(self, y: Tensor) -> Tensor:
        return elementwise(FuncEnum.ELU)(y) + 1.0
