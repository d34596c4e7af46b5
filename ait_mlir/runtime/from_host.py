"""Runs whose inputs and outputs are in host memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy.typing as npt

from ait_mlir.runtime.data import AITData
from ait_mlir.runtime.model import Model

Array: TypeAlias = npt.NDArray[Any]


def run_on_host(model: Model, inputs: Mapping[str, Array], graph: bool = False) -> dict[str, Array]:
    """Run with inputs and outputs on the host, copied to and from the device's memory if it has its own. `inputs` are
    not changed, even if they are state."""
    if model.target == "cpu":
        with model.private_state(inputs) as own:
            return _run(model, own, model.make_outputs(own), inputs, graph)
    owned: list[AITData] = []
    try:
        ins: dict[str, AITData] = {}
        for name, array in inputs.items():
            ins[name] = model.numpy_to_ait_data(array)
            owned.append(ins[name])
        outs: dict[str, AITData] = {}
        for name, shape in model.infer_output_shapes(ins).items():
            if name not in model.state.values():
                outs[name] = model.allocate_data(shape, model.get_output_dtype(name))
                owned.append(outs[name])
        done = _run(model, ins, outs, inputs, graph)
        return {name: model.ait_data_to_numpy(data) for name, data in done.items()}
    finally:
        for data in owned:
            model.free_memory(data.data_ptr)


def _run(model: Model, inputs: Mapping[str, Any], outputs: Any, start: Mapping[str, Array], graph: bool) -> Any:
    """Run once; with `graph` three times, so that the last run replays the graph recorded by the second. Each run
    begins with the state in `start`."""
    for _ in range(2 if graph else 0):
        model.run(inputs, outputs, graph_mode=True)
        for name in model.state:
            model.set_state(name, inputs[name], start[name])
    return model.run(inputs, outputs, graph_mode=graph)
