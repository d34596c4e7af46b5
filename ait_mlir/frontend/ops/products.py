"""Products of operands in other orders, and products with a softmax: `perm102_bmm_rcr_bias`, `bmm_softmax_bmm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import DimLike
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.attention import attention
from ait_mlir.frontend.ops.gemm import (
    bmm_ccc,
    bmm_ccr,
    bmm_crc,
    bmm_rcr,
    bmm_rrr,
    contraction,
    gemm_rcr,
    gemm_rcr_bias,
)
from ait_mlir.frontend.ops.norm import softmax
from ait_mlir.frontend.ops.view import permute, permute102, reshape, squeeze, unsqueeze
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "bmm_rcr_softmax", "bmm_softmax_bmm", "bmm_softmax_bmm_permute", "gemm_rcr_bias_softmax", "gemm_rcr_softmax",
    "perm021fc_ccr", "perm021fc_ccr_bias", "perm021fc_ccr_bias_permute", "perm021fc_crc", "perm021fc_crc_bias",
    "perm102_bmm_rcr", "perm102_bmm_rcr_bias", "perm102_bmm_rrr", "perm102_bmm_rrr_bias",
]  # fmt: skip


class _BiasedBmm(Operator):
    """A bmm whose operands are permuted as its name states, with a bias if the name has one."""

    inner: ClassVar[type[contraction]]
    biased: ClassVar[bool] = False

    def product(self, a: Tensor, b: Tensor, bias: Tensor | None) -> Tensor:
        """The product, before the permutation of its result."""
        self.begin(*(t for t in (a, b, bias) if t is not None))
        if self.biased == (bias is None):
            raise self.fail("needs a bias" if self.biased else "takes no bias")
        y = self.inner()(self.permuted(a), b)
        return y if bias is None else y + self.column(y, bias)

    def permuted(self, a: Tensor) -> Tensor:
        """The first operand, permuted for the bmm."""
        return a

    def column(self, y: Tensor, bias: Tensor) -> Tensor:
        """The bias, reshaped for its addition to the product."""
        raise NotImplementedError


class perm102_bmm_rcr(_BiasedBmm):
    """(a^102 @ b^T)^102: a is [M, B, K], b [B, N, K], the result [M, B, N]."""

    inner = bmm_rcr

    def __call__(self, a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
        return self.finish(permute102()(self.product(a, b, bias)))

    def permuted(self, a: Tensor) -> Tensor:
        if a.rank != 3:
            raise self.fail(f"a must have 3 dims, [M, B, K], found {a.describe()}")
        return permute102()(a)

    def column(self, y: Tensor, bias: Tensor) -> Tensor:
        if list(bias.type.dims) != [y.type.dims[0], y.type.dims[2]]:
            raise self.fail(f"the bias must have shape [{y.type.dims[0]}, {y.type.dims[2]}], found {bias.describe()}")
        return unsqueeze(1)(bias)


class perm102_bmm_rrr(perm102_bmm_rcr):
    """(a^102 @ b)^102: a is [M, B, K], b [B, K, N], the result [M, B, N]."""

    inner = bmm_rrr


class perm102_bmm_rcr_bias(perm102_bmm_rcr):
    """(a^102 @ b^T)^102 + bias: a is [M, B, K], b [B, N, K], `bias` [B, N], the result [M, B, N]."""

    biased = True


class perm102_bmm_rrr_bias(perm102_bmm_rrr):
    """(a^102 @ b)^102 + bias: a is [M, B, K], b [B, K, N], `bias` [B, N], the result [M, B, N]."""

    biased = True


class perm021fc_ccr(_BiasedBmm):
    """a^021 @ b^T: a is [B, K, M], b [1, N, K], the result [B, M, N]."""

    inner = bmm_ccr
    columns: ClassVar[int] = -1
    """The dim of the product that the bias runs along."""

    def __call__(self, a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
        return self.finish(self.product(a, b, bias))

    def column(self, y: Tensor, bias: Tensor) -> Tensor:
        if list(bias.type.dims) != [y.type.dims[self.columns]]:
            raise self.fail(f"the bias must have shape [{y.type.dims[self.columns]}], found {bias.describe()}")
        return bias if self.columns == -1 else unsqueeze(1)(bias)


class perm021fc_ccr_bias(perm021fc_ccr):
    """a^021 @ b^T + bias: a is [B, K, M], b [1, N, K], `bias` [N], the result [B, M, N]."""

    biased = True


class perm021fc_crc(perm021fc_ccr):
    """(a^021 @ b)^021: a is [1, K, M], b [B, K, N], the result [B, N, M]. Either may have B matrices."""

    inner = bmm_crc


class perm021fc_crc_bias(perm021fc_crc):
    """(a^021 @ b)^021 + bias: a is [1, K, M], b [B, K, N], `bias` [M], the result [B, N, M].

    With `a` as weights, this is a linear layer over the columns of each matrix of b: linear(b^021, a^T, bias).
    """

    biased = True


class perm021fc_ccr_bias_permute(perm021fc_crc_bias):
    """(a^021 @ b^T + bias)^021: a is [B, K, M], b [1, N, K], `bias` [N], the result [B, N, M]."""

    inner = bmm_ccc
    columns = -2

    def __init__(self, layout: str = "021"):
        if layout != "021":
            raise BuildError(f'perm021fc_ccr_bias_permute: layout "{layout}" is unknown; expected "021"')


class gemm_rcr_softmax(Operator):
    """softmax(a @ b^T) over the last dim: a is [..., M, K], b [N, K]."""

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        return self.finish(softmax()(gemm_rcr()(a, b), -1))


class gemm_rcr_bias_softmax(Operator):
    """softmax(a @ b^T + bias) over the last dim: a is [..., M, K], b [N, K], `bias` [N]."""

    def __call__(self, a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
        return self.finish(softmax()(gemm_rcr_bias()(a, b, bias), -1))


class bmm_rcr_softmax(Operator):
    """softmax(a @ b^T) over the last dim: a is [B, M, K], b [B, N, K]."""

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        return self.finish(softmax()(bmm_rcr()(a, b), -1))


class bmm_softmax_bmm(Operator):
    """softmax(scale * a @ b^T) @ b1: a is [B, M, K], b [B, N, K], b1 [B, N, O], the result [B, M, O]."""

    def __init__(self, scale: float = 1.0):
        self.scale, self.causal = scale, False

    def __call__(self, a: Tensor, b: Tensor, b1: Tensor) -> Tensor:
        heads = [unsqueeze(1)(t) for t in self._three(a, b, b1)]
        return self.finish(squeeze(1)(attention(self.causal, self.scale)(*heads)))

    def _three(self, *inputs: Tensor) -> Sequence[Tensor]:
        if wrong := [t for t in inputs if t.rank != 3]:
            raise self.fail(f"all inputs must have 3 dims, found {wrong[0].describe()}")
        return inputs


class bmm_softmax_bmm_permute(bmm_softmax_bmm):
    """softmax(scale * a @ b^T) @ b1 with the heads moved after the rows: a is [B, M, K], b [B, N, K], b1 [B, N, O].

    `shape` is (heads,), a divisor of B; the result is [B / heads, M, heads, O]. With `causal`, the last row sees all
    columns and each row above it one less.
    """

    def __init__(self, shape: Sequence[DimLike], scale: float = 1.0, causal: bool = False, layout: str = "0213"):
        super().__init__(scale)
        if layout != "0213" or len(shape) != 1:
            raise BuildError(
                f'bmm_softmax_bmm_permute: layout "{layout}" with {len(shape)} dims in shape is unknown; '
                'expected "0213" with 1'
            )
        self.heads, self.causal = shape[0], causal

    def __call__(self, a: Tensor, b: Tensor, b1: Tensor) -> Tensor:
        dims = [t.shape() for t in self._three(a, b, b1)]
        try:
            cut = [[d[0] / self.heads, self.heads, *d[1:]] for d in dims]
        except BuildError as error:
            raise self.fail(f"the batch cannot be cut into heads: {error}") from None
        heads = [reshape()(t, d) for t, d in zip((a, b, b1), cut, strict=True)]
        return self.finish(permute()(attention(self.causal, self.scale)(*heads), [0, 2, 1, 3]))
