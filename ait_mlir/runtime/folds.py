"""Constants that a model computes from others when these are set: reordered weights, weights with batch norms folded
in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ait_mlir.errors import InputError

if TYPE_CHECKING:
    from ait_mlir.reference.folds import Fold


@dataclass(frozen=True)
class Found:
    """Folded constants: their values, the sources that are still missing, and the values of sources received so far."""

    values: Mapping[str, NDArray[Any]]
    missing: list[str]
    taken: Mapping[str, NDArray[Any]]


def by_reference(fold: Fold, data: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """The value of a fold, computed in float64 and rounded once."""
    return fold.value(data)


class Folds:
    """The folds of an artifact: constants computed from others, their sources. When a source is set, all sources of the
    same constant must be set again.
    """

    def __init__(
        self,
        folds: Sequence[Fold],
        values: Mapping[str, NDArray[Any]] | None = None,
        compute: Callable[[Fold, Mapping[str, NDArray[Any]]], NDArray[Any]] | None = None,
    ) -> None:
        """`values` are the values in the artifact: of folds, and of sources whose folds
        have none. `compute` gives the value of a fold from its sources, by default with the reference.
        """
        self._folds = list(folds)
        self._compute = compute or by_reference
        self._taken: Mapping[str, NDArray[Any]] = {}
        self.sources: dict[str, tuple[tuple[int, ...], str]] = {}
        """Shape and dtype of each source, by name."""
        for fold in self._folds:
            self.sources |= fold.source_types()
        values = {} if values is None else values
        self._given = {name: value for name, value in values.items() if name in self.sources}
        self._from_artifact = frozenset(fold.name for fold in self._folds if fold.name in values)
        self._computed = set(self._from_artifact)

    @property
    def names(self) -> set[str]:
        """The constants that are computed."""
        return {fold.name for fold in self._folds}

    @property
    def bound(self) -> set[str]:
        """The sources whose values were known when the model was compiled."""
        unbound = {s for f in self._folds if f.name not in self._from_artifact for s in f.source_types()}
        return self._given.keys() | (self.sources.keys() - unbound)

    def take(self, values: Mapping[str, NDArray[Any]]) -> Found:
        """Compute the folds whose sources all have values, from these and from earlier calls; store the result with
        `keep`.
        """
        for name, value in values.items():
            shape, dtype = self.sources[name]
            if value.shape != shape or value.dtype.name != dtype:
                raise InputError(
                    f"constant '{name}' has shape {list(value.shape)} and dtype {value.dtype.name}, "
                    f"expected {list(shape)} and {dtype}"
                )
        taken = {**self._taken, **{name: np.array(value) for name, value in values.items()}}
        known = {**self._given, **taken}
        computed: dict[str, NDArray[Any]] = {}
        for fold in self._folds:
            sources = fold.source_types()
            if sources.keys() & values.keys() and sources.keys() <= known.keys():
                computed[fold.name] = self._compute(fold, known)
        missing = self._missing(taken, self._computed | computed.keys())
        return Found(computed, missing, taken if missing else {})

    def keep(self, found: Found) -> None:
        """Keep the result of `take`, after its values are stored."""
        self._taken = found.taken
        self._computed |= found.values.keys()

    def missing(self) -> list[str]:
        """Sources that must still be set, because a constant has no value or others of the same constant were set."""
        return self._missing(self._taken, self._computed)

    def copy(self) -> Folds:
        """A copy for the second set of constants, which begins with the values of the first."""
        made = object.__new__(Folds)
        made._folds, made.sources, made._given = self._folds, self.sources, self._given
        made._compute = self._compute
        made._from_artifact = self._from_artifact
        made._taken, made._computed = self._taken, set(self._computed)
        return made

    def _missing(self, taken: Collection[str], computed: Collection[str]) -> list[str]:
        wanted: dict[str, None] = {}
        for fold in self._folds:
            sources = fold.source_types()
            if fold.name not in computed or any(source in taken for source in sources):
                wanted.update(dict.fromkeys(s for s in sources if s not in taken and s not in self._given))
        return list(wanted)
