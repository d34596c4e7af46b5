"""Evaluates a whole graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.ranks import Ranks, ranks_of
from ait_mlir.dims import DimError, const
from ait_mlir.reference.core import (
    Array,
    Evaluation,
    EvaluationError,
    element_type_of,
    piece,
    round_to,
    run_together,
    widen,
)


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

    A graph with ranks runs on all of them. Inputs, params and outputs are whole tensors, of which each rank has the
    piece that its sharding says; an output without a sharding must be the same on each rank.
    """
    graph = cast(GraphOp, graph)
    ranks = ranks_of(graph)
    dims = graph.scope.complete(dims) if graph.scope.bound else dims
    runs = [Evaluation(dims, params, rounding, ranks, rank) for rank in range(ranks.mesh.size)]
    block = graph.body.block
    try:
        named = list(zip((n.data for n in graph.input_names.data), block.args, strict=True))
        envs: list[dict[SSAValue, Array]] = [
            {argument: take_input(run, name, argument, inputs) for name, argument in named} for run in runs
        ]
        run_together(runs, block.ops, envs)
    except DimError as e:
        raise EvaluationError(str(e)) from None
    return joined_outputs(ranks, [run.outputs for run in runs])


def joined_outputs(ranks: Ranks, pieces: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """The whole outputs from those of each rank."""
    if len(pieces) == 1:
        return dict(pieces[0])
    found: dict[str, Array] = {}
    for name, first in pieces[0].items():
        shape = tuple(e.evaluate({}) for e in ranks.whole("outputs", name, tuple(map(const, first.shape))))
        whole = np.empty(shape, first.dtype)
        for rank, outputs in enumerate(pieces):
            whole[ranks.place("outputs", name, shape, rank)] = outputs[name]
        for rank, outputs in enumerate(pieces):
            place = ranks.place("outputs", name, shape, rank)
            if not np.array_equal(whole[place], outputs[name], equal_nan=first.dtype.kind == "f"):
                raise EvaluationError(
                    f"output {name!r} of rank {rank} differs from that of another rank which should have the same: "
                    "say in ranks how the output is sharded"
                )
        found[name] = whole
    return found


def take_input(evaluation: Evaluation, name: str, value: SSAValue, inputs: Mapping[str, Array]) -> Array:
    """Return the values of an input; raise `EvaluationError` when it is missing or has another shape than its type."""
    if name not in inputs:
        raise EvaluationError(f"no value for input {name!r}; there are {', '.join(map(repr, inputs)) or 'none'}")
    array = piece(evaluation, "inputs", name, inputs[name])
    if array.shape != evaluation.shape(value.type):
        raise EvaluationError(
            f"input {name!r} has shape {array.shape}, expected {evaluation.shape(value.type)}: {value.type}"
        )
    element_type = element_type_of(value.type)
    array = widen(array, element_type)
    return round_to(array, element_type) if evaluation.rounding else array
