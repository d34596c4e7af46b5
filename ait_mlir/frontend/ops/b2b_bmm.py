"""Two products with a function of each score between them, like attention without a softmax."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import IntVar
from ait_mlir.frontend.jagged import JaggedIntVar
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum, cast, elementwise, ge, le, where
from ait_mlir.frontend.ops.gemm import bmm_rcr, bmm_rrr
from ait_mlir.frontend.ops.jagged import jagged_to_padded_dense, padded_dense_to_jagged
from ait_mlir.frontend.ops.ranges import arange
from ait_mlir.frontend.ops.view import permute0213, unsqueeze
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "CausalType", "classic_b2b_bmm", "fmha_style_b2b_bmm", "grouped_classic_b2b_bmm", "grouped_fmha_style_b2b_bmm",
]  # fmt: skip

MATH: dict[str, FuncEnum | None] = {
    "identity": None,
    "relu": FuncEnum.RELU,
    "sigmoid": FuncEnum.SIGMOID,
    "tanh": FuncEnum.TANH,
    "gelu": FuncEnum.GELU,
    "fastgelu": FuncEnum.FASTGELU,
    "silu": FuncEnum.SILU,
    "hardswish": FuncEnum.HARDSWISH,
}
"""The functions of a score, by their documented names in lower case."""


class CausalType(Enum):
    """Which scores are set to 0: none, those above the diagonal, or those below it."""

    NO_CAUSAL = 0
    UPPER_RIGHT_EMPTY = 1
    LOWER_LEFT_EMPTY = 2


class _B2bBmm(Operator):
    layouts: ClassVar[dict[int, str]]
    """The dims of q, k and v, by their rank."""

    def __init__(
        self,
        causal_type: CausalType,
        epilogue_math_name: str,
        alpha0: float,
        alpha1: float,
        alpha1_divide_by_seq_len: bool = False,
    ):
        if epilogue_math_name.lower() not in MATH:
            known = ", ".join(sorted(MATH))
            raise BuildError(
                f'{self.name}: epilogue_math_name "{epilogue_math_name}" is unknown; expected one of {known}'
            )
        self.causal, self.math = causal_type, MATH[epilogue_math_name.lower()]
        self.alpha0, self.alpha1, self.divides = alpha0, alpha1, alpha1_divide_by_seq_len

    def check(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        """Raise unless the operands have one of the documented ranks."""
        expected = " or ".join(f"{rank} dims, {layout}" for rank, layout in self.layouts.items())
        for what, t in (("q", q), ("k", k), ("v", v)):
            if t.rank not in self.layouts or t.rank != q.rank:
                raise self.fail(f"{what} must have {expected}, all of one rank, found {t.describe()}")

    def product(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """The result for matrices q [..., M, K], k [..., N, K], v [..., N, O]."""
        scores = bmm_rcr()(q, k)
        rows, columns = scores.shape()[-2:]
        if self.causal != CausalType.NO_CAUSAL and rows != columns:
            raise self.fail(f"a mask needs as many rows as columns of scores, found {rows} and {columns}")
        if self.alpha0 != 1.0:
            scores = scores * self.alpha0
        if bias is not None:
            total = scores + bias
            if list(total.type.dims) != list(scores.type.dims):
                raise self.fail(f"the bias does not broadcast to the scores, {scores.describe()}")
            scores = total
        if self.math is not None:
            scores = elementwise(self.math)(scores)
        if self.alpha1 != 1.0:
            scores = scores * self.alpha1
        if self.divides:
            scores = scores / cast()(arange("float32").number(rows), scores.dtype())
        return bmm_rrr()(self._masked(scores, rows, columns), v)

    def product_of_heads(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """The result for q [B, M, H, K], k [B, N, H, K], v [B, N, H, O]."""
        heads = [permute0213()(t) for t in (q, k, v)]
        return permute0213()(self.product(heads[0], heads[1], heads[2], bias))

    def _masked(self, scores: Tensor, rows: IntVar, columns: IntVar) -> Tensor:
        if self.causal == CausalType.NO_CAUSAL:
            return scores
        row, column = unsqueeze(1)(arange("int32")(rows)), unsqueeze(0)(arange("int32")(columns))
        kept = ge() if self.causal == CausalType.UPPER_RIGHT_EMPTY else le()
        return where()(kept(row, column), scores, 0.0)


class classic_b2b_bmm(_B2bBmm):
    """mask(alpha1 * f(alpha0 * q @ k^T + bias)) @ v, with f the function `epilogue_math_name`.

    q is [B, M, K], k [B, N, K], v [B, N, O], `bias` broadcasts to [B, M, N]; the result is [B, M, O]. All may have
    heads: q is then [B, M, H, K], the bias broadcasts to [B, H, M, N], and the result is [B, M, H, O]. The mask sets
    the scores that `causal_type` names to 0. With `alpha1_divide_by_seq_len`, alpha1 is divided by M.
    """

    layouts: ClassVar = {3: "[batch, rows, columns]", 4: "[batch, rows, heads, columns]"}

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
        self.check(q, k, v)
        return self.finish(self.product(q, k, v, bias) if q.rank == 3 else self.product_of_heads(q, k, v, bias))


class fmha_style_b2b_bmm(_B2bBmm):
    """mask(alpha1 * f(alpha0 * q @ k^T + bias)) @ v for each head, with f the function `epilogue_math_name`.

    q is [B, M, H, K], k [B, N, H, K], v [B, N, H, O], `bias`, optional, broadcasts to [B, H, M, N]; the result is
    [B, M, H, O]. The mask sets the scores that `causal_type` names to 0. With `alpha1_divide_by_seq_len`, alpha1 is
    divided by M.
    """

    layouts: ClassVar = {4: "[batch, rows, heads, columns]"}

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
        self.check(q, k, v)
        return self.finish(self.product_of_heads(q, k, v, bias))


class grouped_fmha_style_b2b_bmm(fmha_style_b2b_bmm):
    """`fmha_style_b2b_bmm` of jagged tensors: sequences that are laid end to end, each with its own length.

    q and k are [rows, H, K], v is [rows, H, O] with the same jagged dim of one level; `bias`, optional, broadcasts to
    [batch, H, longest, longest]. The result is [rows, H, O], jagged as q. With `alpha1_divide_by_seq_len`, alpha1 is
    divided by the greatest length that the jagged dim allows. H comes from q; `num_heads`, if given, must agree.
    """

    def __init__(
        self,
        causal_type: CausalType,
        epilogue_math_name: str,
        alpha0: float,
        alpha1: float,
        alpha1_divide_by_seq_len: bool = False,
        num_heads: int | None = None,
    ):
        super().__init__(causal_type, epilogue_math_name, alpha0, alpha1, alpha1_divide_by_seq_len)
        self.num_heads = num_heads

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
        given = [t for t in (q, k, v, bias) if t is not None]
        self.begin(*given)
        dim = q.shape()[0] if q.rank == 3 else None
        if not isinstance(dim, JaggedIntVar) or len(dim.jagged_dims()) != 1:
            raise self.fail(f"q must be jagged, [rows, heads, columns] with one level, found {q.describe()}")
        if self.num_heads is not None and q.type.dims[1].as_int() not in (self.num_heads, None):
            raise self.fail(f"num_heads is {self.num_heads}, but q has {q.type.dims[1]} heads, {q.describe()}")
        for what, t in (("k", k), ("v", v)):
            if t.rank != 3 or t.type.dims[0] is not q.type.dims[0]:
                raise self.fail(f"{what} must be jagged as q is, {q.describe()}, found {t.describe()}")
        # Rows of v after the end of a sequence are 0, so their scores do not matter.
        dense = [jagged_to_padded_dense()(t) for t in (q, k, v)]
        y = super().__call__(dense[0], dense[1], dense[2], bias)
        self.inputs = given
        return self.finish(padded_dense_to_jagged(dim)(y, dim.offsets()))


class grouped_classic_b2b_bmm(grouped_fmha_style_b2b_bmm):
    """`grouped_fmha_style_b2b_bmm` with a required bias."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().__call__(q, k, v, bias)
