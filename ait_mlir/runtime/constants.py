"""The constants of a model: weights, and values that are computed from weights."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ait_mlir.errors import InputError
from ait_mlir.runtime.data import Arguments, to_numpy
from ait_mlir.runtime.folds import Folds
from ait_mlir.runtime.opened import OpenedModel


class ModelConstants(OpenedModel):
    """The methods of `Model` for its constants."""

    def get_constant_names(self, unset_only: bool = False) -> list[str]:
        """Names of the constants; with `unset_only`, of those without a value."""
        self._function()
        folds = self.folds
        if unset_only:
            return [*map(str, self._module.missing_constants()), *([] if folds is None else folds.missing())]
        if folds is None:
            return list(self._constants)
        return [*(name for name in self._constants if name not in folds.names), *folds.sources]

    @cached_property
    def folds(self) -> Folds | None:
        """The constants that the model computes from others; None if there are none."""
        return Folds(self.manifest.folds) if self.manifest is not None and self.manifest.folds else None

    def constant_shape(self, name: str) -> tuple[int, ...]:
        """The shape of a constant."""
        if self.folds is not None and name in self.folds.sources:
            return self.folds.sources[name][0]
        return tuple(self._constants[self._known(name)]["shape"])

    def constant_dtype(self, name: str) -> str:
        """The dtype of a constant."""
        if self.folds is not None and name in self.folds.sources:
            return self.folds.sources[name][1]
        return str(self._constants[self._known(name)]["dtype"])

    def set_constant(self, name: str, value: Any) -> None:
        """Copy the value of a constant to the device.

        Waits for current runs. `AITData` must be on the device. If the model computes constants from this one and
        others, all of them must be set again before the next run.
        """
        self._function()
        if name not in self._constants and self.folds is not None and name in self.folds.sources:
            for folded, array in self.folds.set(name, to_numpy(value)).items():
                self.set_constant(folded, array)
            self._unset = self.folds.missing()
            return
        argument = Arguments(self._device)
        self._module.set_constant(name, argument.add(f"constant '{name}'", value))

    def set_constants(self, values: Mapping[str, Any]) -> None:
        """`set_constant` for each."""
        for name, value in values.items():
            self.set_constant(name, value)

    def _known(self, constant: str) -> str:
        if constant not in self._constants:
            raise InputError(f"model {self.name} has no constant '{constant}'")
        return constant
