"""Runs whose outputs are in host memory, under AITemplate's names."""

from __future__ import annotations

import math
from typing import Any

from ait_mlir.dtypes import numpy_dtype
from ait_mlir.errors import InputError
from ait_mlir.runtime.data import AITData, address_of, is_torch, shaped
from ait_mlir.runtime.kinds import AITemplateMemcpyKind
from ait_mlir.runtime.memory import DeviceMemory
from ait_mlir.runtime.opened import OpenedLibrary, Tensors
from ait_mlir.runtime.running import Runner


class HostOutputs:
    """Runs a model with outputs in host memory."""

    def __init__(self, library: OpenedLibrary, memory: DeviceMemory, runner: Runner) -> None:
        self._library = library
        self._memory = memory
        self._runner = runner

    def run(
        self, inputs: Tensors, outputs: Tensors, stream_ptr: int | None = None, graph_mode: bool = False
    ) -> dict[str, Any]:
        """`Model.run`, with outputs in host memory, of the maximum size; waits for the run and the copies."""
        if self._library.target == "cpu":
            return self._runner.run(inputs, outputs, stream_ptr, True, graph_mode)
        values = self._library.ordered_outputs(outputs)
        places: list[int] = []
        try:
            given: list[AITData] = []
            for label, value, row in zip(self._library.output_labels, values, self._library.outputs, strict=True):
                _, shape = address_of(label, value)
                size = math.prod(shape) * numpy_dtype(row["dtype"]).itemsize
                places.append(self._memory.allocate_memory(size))
                given.append(AITData(places[-1], list(shape), row["dtype"]))
            found = self._runner.run(inputs, given, stream_ptr, True, graph_mode)
            made: dict[str, Any] = {}
            for label, value, place, (name, data) in zip(
                self._library.output_labels, values, places, found.items(), strict=True
            ):
                size = math.prod(data.shape) * numpy_dtype(data.dtype).itemsize
                if size:
                    self._memory.memcpy(
                        address_of(label, value)[0], place, size, AITemplateMemcpyKind.DeviceToHost, stream_ptr
                    )
                made[name] = shaped(value, tuple(data.shape))
            return made
        finally:
            for place in places:
                self._memory.free_memory(place)

    def run_with_tensors(
        self, inputs: Tensors, outputs: Tensors, stream_ptr: int | None = None, graph_mode: bool = False
    ) -> dict[str, Any]:
        """`run` with torch or NumPy tensors; `InputError` for an output on a device."""
        for label, value in zip(self._library.output_labels, self._library.ordered_outputs(outputs), strict=True):
            if is_torch(value) and value.device.type != "cpu":
                raise InputError(f"{label} is on {value.device}, expected a tensor in host memory")
        return self.run(inputs, outputs, stream_ptr, graph_mode)
