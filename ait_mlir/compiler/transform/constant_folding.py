"""Computes values that depend only on weights with data once, when the model is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from xdsl.ir import SSAValue

from ait_mlir import callers
from ait_mlir.arguments import checked
from ait_mlir.compiler.transform.apply import dump, writable
from ait_mlir.driver import kernel_value
from ait_mlir.errors import AitError
from ait_mlir.frontend.errors import ArgumentError
from ait_mlir.frontend.intvar import IntVarTensor
from ait_mlir.frontend.lift import emit, lift
from ait_mlir.frontend.target import Target
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.lowering.module_target import make_target
from ait_mlir.passes.fold_params import fold_params
from ait_mlir.reference.core import EvaluationError
from ait_mlir.reference.folds import Fold, write_folds

__all__ = ["IntVarTensor", "Workspace", "constant_folding"]


@dataclass
class Workspace:
    """The bytes that kernels need in addition to tensors: shared by all operators, and for single operators."""

    shared_size: int
    unique_size: int

    def total_size(self) -> int:
        """The sum of both sizes, in bytes."""
        return self.shared_size + self.unique_size


@checked(ArgumentError)
def constant_folding(
    sorted_graph: Sequence[Tensor], workdir: str | None, model_name: str
) -> tuple[list[Tensor], list[tuple[str, str]], list[Tensor]]:
    """The graph with new weights in place of values that depend only on weights with data.

    Returns the graph, source and object files that remain to be compiled (always none: the values are computed here, in
    float64, and rounded once), and the weights that were read. Operators from outside without a reference are computed
    by their kernels, for the current target. A value is not folded if it would be a large copy. If a value cannot be
    computed, the graph stays unchanged and a warning gives the reason. With a `workdir`, the folded
    parts are written to `constant_folding/MODEL_NAME_folds.mlir` in it.
    """
    emission = emit(sorted_graph)
    directory = writable(None if workdir is None else f"{workdir}/constant_folding")
    names: dict[SSAValue, str] = {op.output: op.param_name.data for op in emission.graph.params()}
    tensors = {names[value]: tensor for tensor, value in emission.values.items() if value in names}
    data = {name: tensor.data for name, tensor in tensors.items() if tensor.data is not None}
    folds = fold_params(emission.module, data, partial=True, outside=True)
    if not folds:
        return list(sorted_graph), [], []
    try:
        values = {fold.name: value_now(fold, data) for fold in folds}
    except (AitError, ArithmeticError, MemoryError, NotImplementedError, ValueError) as error:
        callers.warn(f"constants are not folded: {error}")
        return list(sorted_graph), [], []
    result = lift(emission)
    for tensor in result:
        if tensor.is_param and tensor.name in values:
            tensor.bind(values[tensor.name])
    if directory is not None:
        dump(directory, model_name, result, emission.module)
        (directory / f"{model_name}_folds.mlir").write_text(write_folds(folds))
    read = {name for fold in folds for name in fold.source_types()}
    return result, [], [tensors[name] for name in tensors if name in read]


def value_now(fold: Fold, data: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """The value of a fold by the reference; by kernels, if an operator from outside has no reference."""
    try:
        return fold.value(data)
    except (EvaluationError, NotImplementedError):
        if not fold.is_from_outside:
            raise
        chosen = Target.current_or_detected()
        return kernel_value(fold, data, make_target(chosen.kind, chosen.arch))
