"""Evaluates a whole graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dims import DimError
from ait_mlir.reference.core import Array, Evaluation, EvaluationError, element_type_of, round_to, widen


def evaluate_graph(
    graph: Operation,
    inputs: Mapping[str, Array],
    params: Mapping[str, Array],
    dims: Mapping[str, int],
    rounding: bool = False,
) -> dict[str, Array]:
    """Return the outputs of an `ait.graph` by name: float64 for every float, else the type's own dtype.

    `inputs` and `params` are by name, in any float dtype, of the shapes that their types have at `dims`. With
    `rounding`, inputs and the result of every op are rounded to their element types. Raises `EvaluationError` for a
    missing input, dim or parameter or a wrong shape.
    """
    graph = cast(GraphOp, graph)
    evaluation = Evaluation(graph.scope.complete(dims) if graph.scope.bound else dims, params, rounding)
    env: dict[SSAValue, Array] = {}
    block = graph.body.block
    try:
        for name, argument in zip(graph.input_names.data, block.args, strict=True):
            env[argument] = take_input(evaluation, name.data, argument, inputs)
        evaluation.run_ops(block.ops, env)
    except DimError as e:
        raise EvaluationError(str(e)) from None
    return evaluation.outputs


def take_input(evaluation: Evaluation, name: str, value: SSAValue, inputs: Mapping[str, Array]) -> Array:
    """Return the values of an input; raise `EvaluationError` when it is missing or has another shape than its type."""
    if name not in inputs:
        raise EvaluationError(f"no value for input {name!r}; there are {', '.join(map(repr, inputs)) or 'none'}")
    array = np.asarray(inputs[name])
    if array.shape != evaluation.shape(value.type):
        raise EvaluationError(
            f"input {name!r} has shape {array.shape}, expected {evaluation.shape(value.type)}: {value.type}"
        )
    element_type = element_type_of(value.type)
    array = widen(array, element_type)
    return round_to(array, element_type) if evaluation.rounding else array
