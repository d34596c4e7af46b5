"""Constants that a model computes from others when these are set: reordered weights, weights with batch norms folded
in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ait_mlir.errors import InputError

if TYPE_CHECKING:
    from ait_mlir.passes.fold_params import Fold


@dataclass(frozen=True)
class Found:
    """Constants that follow from sources: their values, the sources still missing, and those taken so far."""

    values: Mapping[str, NDArray[Any]]
    missing: list[str]
    taken: Mapping[str, NDArray[Any]]


class Folds:
    """The folds of an artifact. When a source is set, all sources of the same constant must be set again."""

    def __init__(self, text: str) -> None:
        from ait_mlir.passes.fold_params import read_folds

        self._folds: list[Fold] = read_folds(text)
        self._taken: Mapping[str, NDArray[Any]] = {}
        self.sources: dict[str, tuple[tuple[int, ...], str]] = {}
        """Shape and dtype of each source, by name."""
        for fold in self._folds:
            self.sources |= fold.source_types()

    @property
    def names(self) -> set[str]:
        """The constants that are computed."""
        return {fold.name for fold in self._folds}

    def take(self, values: Mapping[str, NDArray[Any]]) -> Found:
        """What can be computed with these values of sources and those that were taken before. `keep` remembers them."""
        for name, value in values.items():
            shape, dtype = self.sources[name]
            if value.shape != shape or value.dtype.name != dtype:
                raise InputError(
                    f"constant '{name}' has shape {list(value.shape)} and dtype {value.dtype.name}, "
                    f"expected {list(shape)} and {dtype}"
                )
        taken = {**self._taken, **{name: np.array(value) for name, value in values.items()}}
        computed: dict[str, NDArray[Any]] = {}
        for fold in self._folds:
            sources = fold.source_types()
            if sources.keys() & values.keys() and sources.keys() <= taken.keys():
                computed[fold.name] = fold.value(taken)
        missing = self._missing(taken)
        return Found(computed, missing, taken if missing else {})

    def keep(self, found: Found) -> None:
        """Remember what `take` found, once its values are stored."""
        self._taken = found.taken

    def missing(self) -> list[str]:
        """Sources that must still be set because others of the same constant were set."""
        return self._missing(self._taken)

    def _missing(self, taken: Collection[str]) -> list[str]:
        wanted: dict[str, None] = {}
        for fold in self._folds:
            sources = fold.source_types()
            if any(source in taken for source in sources):
                wanted.update(dict.fromkeys(source for source in sources if source not in taken))
        return list(wanted)
