"""`Parameter`: a weight of a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ait_mlir.frontend.intvar import DimLike
from ait_mlir.frontend.tensor import Tensor

__all__ = ["Parameter"]


class Parameter:
    """A weight of a module. Operators take its `tensor()`; `value` are data to bind immediately."""

    def __init__(
        self,
        shape: Sequence[DimLike],
        dtype: str = "float16",
        name: str | None = None,
        value: NDArray[Any] | None = None,
    ):
        self._tensor = Tensor(shape=shape, dtype=dtype, name=name)
        if value is not None:
            self._tensor.bind(value)

    def tensor(self) -> Tensor:
        return self._tensor

    def value(self) -> NDArray[Any] | None:
        """The data bound, if any."""
        return self._tensor.data

    def __repr__(self) -> str:
        return f"Parameter({self._tensor.describe()})"
