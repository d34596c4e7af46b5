"""Computes constants that follow from others when a model is compiled: by kernels where that pays, else by the
reference."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ait_mlir import callers
from ait_mlir.dialects.ait.data import ParamOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.options import Method
from ait_mlir.reference.core import EvaluationError
from ait_mlir.reference.folds import Fold
from ait_mlir.runtime.safetensors_part import Deferred

Arrays = Mapping[str, NDArray[Any]]
SMALL = 1 << 20
"""The bytes up to which a value stays in memory."""
LARGE = 1 << 26
"""The elements that the ops of a fold make, all together, from which on kernels compute it. For fewer, the compiler of
the kernels takes longer than the reference."""


ByKernels = Callable[[Fold, Arrays, Target], NDArray[Any]]
"""Computes the value of a fold by kernels, from the data of its sources."""


class Folding:
    """The values of the folds of one compilation, from the `data` of params.

    Kernels are those of `target` if this machine has such a device, else those of the CPU. The reference computes in
    float64 and rounds once. Computed values wait in an unnamed file in the folder `spill` (by default the folder for
    temporary files), not in memory; values that only move elements are made when the artifact is written.
    """

    def __init__(
        self, data: Arrays, target: Target, spill: Path | None, by_kernels: ByKernels, method: Method = "auto"
    ) -> None:
        self.data, self.target, self.spill, self.method = data, target, spill, method
        self.by_kernels = by_kernels
        self.folds: list[Fold] = []
        """The constants of the module that are computed from others."""
        self.foldable: list[str] = []
        """The params of which values could be folded if all had data."""
        self.values: dict[str, NDArray[Any] | Deferred] = {}
        """The value of each fold that can be computed, by name."""
        self.has_failed = False
        """Whether a value could not be computed."""

    def take(self, folds: Sequence[Fold]) -> bool:
        """Compute the folds that an earlier compilation of the module found, those whose sources have data; returns
        whether all could be computed."""
        self.folds = list(folds)
        self.compute([fold for fold in folds if fold.source_types().keys() <= self.data.keys()])
        return not self.has_failed

    def compute(self, folds: Sequence[Fold]) -> set[str]:
        """Compute folds; returns the names of the computed params. A fold that fails gives a warning, and
        is left out.
        """
        for fold in folds:
            if self.method != "kernels" and fold.only_moves:
                self.values[fold.name] = deferred(fold, self.data)
                continue
            try:
                self.values[fold.name] = self._kept(self._value(fold))
            except Exception as error:  # whatever it is, the model can be compiled without this fold
                self.has_failed = True
                sources = ", ".join(fold.source_types()) or "constants"
                callers.warn(
                    f"what follows from {sources} alone is computed in every run, "
                    f"because it could not be computed at compile time: {type(error).__name__}: {error}",
                    RuntimeWarning,
                )
        return {fold.name for fold in folds if fold.name in self.values}

    def _value(self, fold: Fold) -> NDArray[Any]:
        if self.method == "kernels" or (self.method == "auto" and needs_kernels(fold)):
            return self.by_kernels(fold, self.data, self.target)
        try:
            return fold.value(self.data)
        except (EvaluationError, NotImplementedError):
            if not fold.is_from_outside:
                raise
            return self.by_kernels(fold, self.data, self.target)  # an operator from outside without a reference

    def _kept(self, value: NDArray[Any]) -> NDArray[Any]:
        if value.nbytes <= SMALL:
            return value
        with tempfile.TemporaryFile(dir=self.spill) as file:
            file.write(value.reshape(-1).view(np.uint8).data)
            file.flush()
            return np.memmap(file, dtype=value.dtype, mode="r", shape=value.shape)


def deferred(fold: Fold, data: Arrays) -> Deferred:
    """The value of a fold, computed when it is needed."""
    t = tensor_type(fold.graph.outputs()[0].operands[0])
    dtype = numpy_dtype(BY_IR[t.element_type].name)
    return Deferred(t.static_shape() or (), dtype, lambda: fold.value(data))


def needs_kernels(fold: Fold) -> bool:
    """Whether kernels compute the value of a fold faster than the reference, their compiler included."""
    types = [tensor_type(r) for op in fold.graph.block.ops if not isinstance(op, ParamOp) for r in op.results]
    return sum(t.num_elements().evaluate({}) for t in types) >= LARGE
