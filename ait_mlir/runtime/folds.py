"""Constants that a model computes from others when these are set: reordered weights, weights with batch norms folded
in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ait_mlir.errors import InputError

if TYPE_CHECKING:
    from ait_mlir.passes.fold_params import Fold


class Folds:
    """The folds of an artifact. When a source is set, all sources of the same constant must be set again."""

    def __init__(self, text: str) -> None:
        from ait_mlir.passes.fold_params import read_folds

        self._folds: list[Fold] = read_folds(text)
        self._pending: dict[str, NDArray[Any]] = {}
        self.sources: dict[str, tuple[tuple[int, ...], str]] = {}
        """Shape and dtype of each source, by name."""
        for fold in self._folds:
            self.sources |= fold.source_types()

    @property
    def names(self) -> set[str]:
        """The constants that are computed."""
        return {fold.name for fold in self._folds}

    def set(self, name: str, value: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Take the value of a source; returns the constants that can be computed now, by name."""
        shape, dtype = self.sources[name]
        if value.shape != shape or value.dtype.name != dtype:
            raise InputError(
                f"constant '{name}' has shape {list(value.shape)} and dtype {value.dtype.name}, "
                f"expected {list(shape)} and {dtype}"
            )
        self._pending[name] = np.array(value)
        found: dict[str, NDArray[Any]] = {}
        for fold in self._folds:
            sources = fold.source_types()
            if name in sources and all(source in self._pending for source in sources):
                found[fold.name] = fold.value(self._pending)
        if found and not self.missing():
            self._pending.clear()
        return found

    def missing(self) -> list[str]:
        """Sources that must still be set because others of the same constant were set."""
        wanted: dict[str, None] = {}
        for fold in self._folds:
            sources = fold.source_types()
            if any(source in self._pending for source in sources):
                wanted.update(dict.fromkeys(source for source in sources if source not in self._pending))
        return list(wanted)
