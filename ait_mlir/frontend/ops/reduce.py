"""Operators that drop dims: reduce_sum and its kin, var, vector_norm, argmax, topk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import i64

from ait_mlir.compositions import reduction
from ait_mlir.dialects.ait import reduce as ait
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import cast
from ait_mlir.frontend.ops.view import reshape
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "argmax", "argmin", "logsumexp", "reduce_all", "reduce_any", "reduce_max", "reduce_mean", "reduce_min",
    "reduce_prod", "reduce_sum", "topk", "var", "vector_norm",
]  # fmt: skip


class _OverDims(Operator):
    """Base of operators over `dim`: one dim, several, or all (None)."""

    dim: int | Sequence[int] | None
    dtype: str | None = None

    def axes(self, x: Tensor) -> list[int]:
        """The dims from the front, in order."""
        chosen = range(x.rank) if self.dim is None else [self.dim] if isinstance(self.dim, int) else self.dim
        axes = sorted(self.axis(x, dim) for dim in chosen)
        if len(set(axes)) < len(axes):
            raise self.fail(f"dims {list(chosen)} name one twice")
        return axes

    def converted(self, x: Tensor) -> Tensor:
        """The input, converted to the type `dtype` of the result."""
        return x if self.dtype in (None, x.dtype()) else cast()(x, self.dtype)


class _Reduce(_OverDims):
    """Base of reductions over one, several or all dims (None); `dtype` converts the input first."""

    kind: ClassVar[str] = ""

    def __init__(self, dim: int | Sequence[int] | None, keepdim: bool = False, dtype: str | None = None):
        self.dim, self.keepdim, self.dtype = dim, keepdim, dtype
        self.properties: dict[str, Any] = {"kind": self.kind}

    def __call__(self, x: Tensor) -> Tensor:
        axes = self.axes(x)
        y = self.emit_one(ait.ReduceOp, [self.converted(x)], {**self.properties, "dims": axes})
        if self.keepdim:
            y = reshape()(y, [1 if i in axes else dim for i, dim in enumerate(x.shape())])
        return self.finish(y)


class reduce_sum(_Reduce):
    """Sum over `dim`: one dim, several, or all (None); `dtype` converts the input first."""

    kind = "sum"


class reduce_mean(_Reduce):
    """Mean over `dim`: one dim, several, or all (None); `dtype` converts the input first."""

    kind = "mean"


class reduce_max(_Reduce):
    """Largest element over `dim`: one dim, several, or all (None); NaN if there is one."""

    kind = "max"


class reduce_min(_Reduce):
    """Smallest element over `dim`: one dim, several, or all (None); NaN if there is one."""

    kind = "min"


class var(_Reduce):
    """Variance over `dim`: divided by the number of elements, less 1 if `unbiased`."""

    kind = "var"

    def __init__(
        self,
        dim: int | Sequence[int] | None,
        unbiased: bool = True,
        keepdim: bool = False,
        dtype: str | None = None,
    ):
        super().__init__(dim, keepdim, dtype)
        self.properties["correction"] = int(unbiased)


class reduce_prod(_Reduce):
    """Product over `dim`: one dim, several, or all (None); `dtype` converts the input first."""

    kind = "prod"


class _Quantifier(_Reduce):
    """A reduction of a bool tensor."""

    def __init__(self, dim: int | Sequence[int] | None, keepdim: bool = False):
        super().__init__(dim, keepdim)

    def __call__(self, x: Tensor) -> Tensor:
        if x.dtype() != "bool":
            raise self.fail(f"needs a bool tensor, found {x.describe()}")
        return super().__call__(x)


class reduce_any(_Quantifier):
    """Whether any element over `dim` is true; bool, of a bool tensor."""

    kind = "max"


class reduce_all(_Quantifier):
    """Whether all elements over `dim` are true; bool, of a bool tensor."""

    kind = "min"


class logsumexp(_OverDims):
    """log(sum(exp(x))) over `dim`: one dim, several, or all (None); exp does not overflow."""

    def __init__(self, dim: int | Sequence[int] | None, keepdim: bool = False):
        self.dim, self.keepdim = dim, keepdim

    def __call__(self, x: Tensor) -> Tensor:
        return self.write(reduction.logsumexp, x, self.axes(x), self.keepdim)


class vector_norm(_OverDims):
    """(sum of |x| ** `ord_kind`) ** (1 / `ord_kind`) over `dim`: one dim, several, or all (None).

    For order infinity it is the largest |x|, for -infinity the smallest, for 0 the number of nonzero elements.
    """

    def __init__(
        self,
        ord_kind: float = 2,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: str | None = None,
    ):
        self.order, self.dim, self.keepdim, self.dtype = float(ord_kind), dim, keepdim, dtype

    def __call__(self, x: Tensor) -> Tensor:
        return self.write(reduction.vector_norm, self.converted(x), self.axes(x), self.order, self.keepdim)


class argmax(Operator):
    """The index of the largest element along `dim`, int64; the first of equal elements."""

    smallest: ClassVar[bool] = False

    def __init__(self, dim: int = 0):
        self.dim = dim

    def __call__(self, x: Tensor) -> Tensor:
        axis = self.axis(x, self.dim)
        type = TensorType.get([d for i, d in enumerate(x.type.dims) if i != axis], i64)
        properties = {"dim": axis, "smallest": self.smallest}
        return self.finish(self.emit_one(ait.ArgmaxOp, [x], properties, [type]))


class argmin(argmax):
    """The index of the smallest element along `dim`, int64; the first of equal elements."""

    smallest = True


class topk(Operator):
    """The `k` largest elements along `dim`, in descending order, and their indices, int64.

    If not `largest`, the smallest, in ascending order. NaN is larger than any number.
    """

    def __init__(self, k: int, dim: int = -1, largest: bool = True):
        self.k, self.dim, self.largest = k, dim, largest

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if x.rank == 0:
            raise self.fail("needs a dim to choose from")
        axis = self.axis(x, self.dim)
        dims = (*x.type.dims[:axis], self.k, *x.type.dims[axis + 1 :])
        properties = {"k": self.k, "dim": axis if axis != x.rank - 1 else None, "smallest": not self.largest}
        types = [TensorType.get(dims, x.type.element_type), TensorType.get(dims, i64)]
        values, places = self.emit(ait.TopkOp, [x], properties, types)
        self.outputs = [values, places]
        return values, places
