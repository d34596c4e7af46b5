"""Computes constants that follow from others, when a model is compiled or gets their sources: by kernels where that
pays, else by the reference."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.data import ParamOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.errors import AitError
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.passes.fold_params import Fold
from ait_mlir.runtime.safetensors_part import Deferred

Arrays = Mapping[str, NDArray[Any]]
Method = Literal["auto", "kernels", "reference"]
SMALL = 1 << 20
"""The bytes up to which a value stays in memory."""
LARGE = 1 << 26
"""The elements that the ops of a fold make, all together, from which on kernels compute it. For fewer, the compiler of
the kernels takes longer than the reference."""


class Folding:
    """The values of the folds of one compilation, from the `data` of params.

    Kernels are those of `target` if this machine has such a device, else those of the CPU. The reference computes in
    float64 and rounds once. Values that are computed wait in an unnamed file in the folder `spill` (default: that
    for temporary files), not in memory; those that only move elements are made when the artifact is written.
    """

    def __init__(self, data: Arrays, target: Target, spill: Path | None, method: Method = "auto") -> None:
        self.data, self.target, self.spill, self.method = data, target, spill, method
        self.values: dict[str, NDArray[Any] | Deferred] = {}
        """The value of each fold that can be computed, by name."""

    def compute(self, folds: Sequence[Fold]) -> set[str]:
        """Compute what can be computed; returns the names. A fold that fails gives a warning, and is left out."""
        for fold in folds:
            if self.method != "kernels" and fold.only_moves:
                self.values[fold.name] = fold.deferred(self.data)
                continue
            try:
                self.values[fold.name] = self._kept(self._value(fold))
            except Exception as error:  # whatever it is, the model can be compiled without this fold
                warnings.warn(
                    f"what follows from {', '.join(fold.source_types())} alone is computed in every run, because it "
                    f"could not be computed at compile time: {type(error).__name__}: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return {fold.name for fold in folds if fold.name in self.values}

    def _value(self, fold: Fold) -> NDArray[Any]:
        if self.method == "kernels" or (self.method == "auto" and _elements(fold) >= LARGE):
            return kernel_value(fold, self.data, self.target)
        return fold.value(self.data)

    def _kept(self, value: NDArray[Any]) -> NDArray[Any]:
        if value.nbytes <= SMALL:
            return value
        with tempfile.TemporaryFile(dir=self.spill) as file:
            file.write(value.reshape(-1).view(np.uint8).data)
            file.flush()
            return np.memmap(file, dtype=value.dtype, mode="r", shape=value.shape)


def kernel_value(fold: Fold, data: Arrays, target: Target) -> NDArray[Any]:
    """The value of a fold, computed by a model that is compiled for it."""
    from ait_mlir.driver import emit, literal_array, run_to_phase
    from ait_mlir.lowering.build import build_library
    from ait_mlir.runtime.model import Model

    target = _at_hand(target)
    module = ModuleOp([fold.graph.clone()])
    run_to_phase(module, "planned", target=target.kind, arch=target.arch)
    code = emit(module)
    constants = {name: literal_array(value) for name, value in code.literals.items()}
    constants |= {name: data[name] for name in fold.source_types()}
    with tempfile.TemporaryDirectory(prefix="ait_fold_") as folder:
        library = build_library(code.joined(), target, folder)
        with Model.from_library(library, target.kind, constants=constants) as model:
            output = model.allocate_data(model.get_output_maximum_shape("value"), model.get_output_dtype("value"))
            try:
                model.run({}, {"value": output})
                return model.ait_data_to_numpy(output)
            finally:
                model.free_memory(output.data_ptr)


def value_at_load(fold: Fold, data: Arrays, target: Target) -> NDArray[Any]:
    """The value of a fold of a loaded model: by kernels where they pay and can be compiled here, else by the reference.

    The kernels are in the cache from the second time on.
    """
    if fold.only_moves or _elements(fold) < LARGE:
        return fold.value(data)
    try:
        return kernel_value(fold, data, target)
    except AitError:  # where a model runs there may be no compiler
        return fold.value(data)


def _at_hand(target: Target) -> Target:
    """The target, if this machine has such a device; else this machine's CPU."""
    from ait_mlir.lowering.module_target import make_target
    from ait_mlir.lowering.toolchain import default_arch, detect_cuda_arch

    if target.kind == "cuda" and detect_cuda_arch() == target.arch:
        return target
    return make_target("cpu", default_arch("cpu"))


def _elements(fold: Fold) -> int:
    """The elements of all that the ops of a fold make."""
    types = [tensor_type(r) for op in fold.graph.block.ops if not isinstance(op, ParamOp) for r in op.results]
    return sum(t.num_elements().evaluate({}) for t in types)
