"""Runs of a model."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import numpy as np

from ait_mlir.dtypes import numpy_dtype
from ait_mlir.errors import InputError
from ait_mlir.runtime.constants import ModelConstants
from ait_mlir.runtime.data import (
    AITData,
    Arguments,
    address_of,
    are_plain,
    as_stream,
    check_flags,
    empty_strided,
    is_torch,
    shaped,
    torch_module,
)
from ait_mlir.runtime.frameworks import framework_of, in_framework, stream_of, wait_for
from ait_mlir.runtime.inspection import Inspection
from ait_mlir.runtime.opened import OpenedLibrary, Tensors
from ait_mlir.runtime.run_arguments import RunArguments
from ait_mlir.runtime.state import ModelState

_LISTS = (list, tuple)
_GRAPH_STATS = ("hits", "captures", "updates", "warmups", "fallbacks", "evictions")
_STATS = ("runs", "failures", "waits", "copies", "bytes", *(f"graph_{name}" for name in _GRAPH_STATS))


class Runner:
    """Runs a model."""

    def __init__(
        self,
        library: OpenedLibrary,
        constants: ModelConstants,
        state: ModelState,
        arguments: RunArguments,
        inspection: Inspection,
    ) -> None:
        self._library = library
        self._constants = constants
        self._state = state
        self._arguments = arguments
        self._inspection = inspection
        self._threads: tuple[int, ThreadPoolExecutor] | None = None

    def run(
        self,
        inputs: Tensors,
        outputs: Tensors,
        stream_ptr: int | None = None,
        sync: bool = True,
        graph_mode: bool = False,
        workspace: Any = None,
    ) -> dict[str, Any]:
        """See `Model.run`."""
        if workspace is None and (values := self.plain(inputs, outputs)) is not None:
            return self.run_plain(values, as_stream(stream_ptr), sync, graph_mode)
        outs, shapes = self._launch(inputs, outputs, stream_ptr, sync, graph_mode, workspace)
        return {
            name: shaped(value, shape)
            for name, value, shape in zip(self._library.output_index, outs, shapes, strict=True)
        }

    def run_with_tensors(
        self,
        inputs: Tensors,
        outputs: Tensors | None = None,
        stream_ptr: int | None = None,
        sync: bool = True,
        graph_mode: bool = False,
    ) -> dict[str, Any]:
        """See `Model.run_with_tensors`."""
        if outputs is not None and (plain := self.plain(inputs, outputs)) is not None and is_torch(plain[0]):
            if stream_ptr is None:
                place = plain[0].get_device()  # -1 for the CPU
                stream_ptr = stream_of("torch", place) if place >= 0 and self._library.target != "cpu" else 0
            return self.run_plain(plain, as_stream(stream_ptr), sync, graph_mode)
        values = self._library.ordered_inputs(inputs)
        framework = framework_of(values)
        wait_for(framework, values)
        if outputs is None and framework == "jax":
            buffers = self._state.interleaved(self._buffers(inputs), values)
            outs, shapes = self._launch(inputs, buffers, stream_ptr, True, graph_mode)
            made = [in_framework(framework, out) for out in outs]
            return {
                n: shaped(value, shape)
                for n, value, shape in zip(self._library.output_index, made, shapes, strict=True)
            }
        if outputs is None and framework == "torch":
            stream = self.framework_stream(values) if stream_ptr is None else as_stream(stream_ptr)
            if (found := self.run_torch(values, stream, sync, graph_mode)) is not None:
                return dict(zip(self._library.output_index, found, strict=True))
        if outputs is None:
            outputs = self.make_outputs(inputs)
        if stream_ptr is None:
            stream_ptr = self.framework_stream(inputs, outputs)
        return self.run(inputs, outputs, stream_ptr, sync, graph_mode)

    def infer_output_shapes(self, inputs: Tensors) -> dict[str, tuple[int, ...]]:
        """The shapes of the outputs for these inputs; checks the inputs like `run`."""
        return self._inferred("infer", inputs)

    def _inferred(self, function: str, inputs: Tensors) -> dict[str, tuple[int, ...]]:
        ins = self._library.ordered_inputs(inputs)
        arguments = Arguments(self._library.device)
        given = [arguments.add(label, value) for label, value in zip(self._library.input_labels, ins, strict=True)]
        self._library.require_open()
        try:
            flat = self._library.module.get_function(function)(*given)
        except (RuntimeError, TypeError, BufferError) as error:
            raise self._library.explained(error, self._library.input_labels, ins) from None
        return self._library.named(self._library.split(flat, self._library.outputs), self._library.outputs)

    def make_outputs(self, inputs: Tensors) -> list[Any]:
        """Output buffers of the actual shapes for these inputs, in the framework of the inputs.

        Torch tensors if an input is a torch tensor, else CuPy arrays if an input is a CuPy array, else NumPy arrays on
        the CPU target; on a device, torch tensors if PyTorch is imported, else tensors of tvm-ffi, which DLPack shares.
        An output in place of an input is that input. Raises `InputError` for JAX arrays, which cannot be written.
        """
        values = self._library.ordered_inputs(inputs)
        framework = framework_of(values)
        if framework == "jax":
            raise InputError("JAX arrays cannot be written: call run_with_tensors without outputs")
        if (
            framework != "cupy"
            and (torch := torch_module()) is not None
            and (self._library.target != "cpu" or framework == "torch")
        ):
            place = "cpu" if self._library.target == "cpu" else f"cuda:{self._library.device_of(values)[1]}"
            made = [
                torch.empty_strided(shape, strides, dtype=getattr(torch, dtype), device=place)
                for dtype, shape, strides in self._layouts(inputs)
            ]
            return self._state.interleaved(made, values)
        return self._state.interleaved([in_framework(framework, buffer) for buffer in self._buffers(inputs)], values)

    def _layouts(self, inputs: Tensors) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        """Dtype, shape and strides, in elements, of the outputs that need memory of their own."""
        shapes, strides = self._inferred("infer", inputs), self._inferred("infer_strides", inputs)
        return [(t["dtype"], shapes[t["name"]], strides[t["name"]]) for t in self._state.own()]

    def _buffers(self, inputs: Tensors) -> list[Any]:
        """Memory for the outputs: NumPy arrays, or row-major tensors of the runtime library on a device."""
        if self._library.target == "cpu":
            return [
                empty_strided(np.dtype(numpy_dtype(dtype)), shape, strides)
                for dtype, shape, strides in self._layouts(inputs)
            ]
        shapes = self.infer_output_shapes(inputs)
        import tvm_ffi

        ffi = cast(Any, tvm_ffi)
        device = self._library.device_of(self._library.ordered_inputs(inputs))[1]
        return [
            self._library.module.empty(device, ffi.dtype(t["dtype"]), ffi.Shape(shapes[t["name"]]))
            for t in self._state.own()
        ]

    def _workspace(self, workspace: Any, device: tuple[int, int]) -> tuple[int, int]:
        """Address and bytes of a workspace for a run on a device."""
        place = (
            cast("tuple[int, int]", workspace.__dlpack_device__()) if hasattr(workspace, "__dlpack_device__") else None
        )
        if place is not None and (int(place[0]), int(place[1])) != device:
            raise InputError(f"the workspace is on DLPack device {tuple(place)}, expected {device}")
        address, shape = address_of("the workspace", workspace)
        dtype = workspace.dtype if isinstance(workspace, AITData) else str(workspace.dtype).removeprefix("torch.")
        return address, math.prod(shape) * numpy_dtype(dtype).itemsize

    def synchronize(self, stream_ptr: int | None = None) -> None:
        """Wait for the runs on a stream; `RunError` when one of them failed."""
        self._library.require_open()
        self._library.module.sync(as_stream(stream_ptr))

    async def run_async(
        self,
        inputs: Tensors,
        outputs: Tensors | None = None,
        stream_ptr: int | None = None,
        graph_mode: bool = False,
    ) -> dict[str, Any]:
        """`run_with_tensors`, awaited: the event loop goes on while a thread runs the model.

        A model has as many such threads as runtimes. If the waiting task is cancelled, a run that has begun goes on to
        its end, so keep the outputs that were passed until then.
        """
        self._library.require_open()
        if stream_ptr is None:  # read here: each thread has its own current stream
            stream_ptr = self.framework_stream(inputs, () if outputs is None else outputs)
        call = partial(self.run_with_tensors, inputs, outputs, stream_ptr, True, graph_mode)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    @property
    def _executor(self) -> ThreadPoolExecutor:
        if self._threads is None or self._threads[0] != os.getpid():  # a forked process lacks its parent's threads
            made = ThreadPoolExecutor(self._library.num_runtimes, f"ait {self._library.name}")
            self._threads = os.getpid(), made
        return self._threads[1]

    def stats(self) -> dict[str, int]:
        """Counts of the model's runs, waits and copies since it was loaded.

        | count | of |
        |---|---|
        | runs, failures | runs that succeeded or were not awaited; runs that failed after the checks |
        | waits | runs that waited for a free runtime |
        | copies | tensors that were copied because kernels cannot use them where they are |
        | bytes | bytes of constants and scratch memory now |
        | graph_hits, graph_captures, graph_updates | launches of a graph: unchanged, new, with new addresses |
        | graph_warmups, graph_fallbacks | runs in graph mode without a graph: the first, or a graph is impossible |
        | graph_evictions | graphs dropped for newer ones |
        """
        self._library.require_open()
        return dict(zip(_STATS, (int(count) for count in self._library.module.stats()), strict=True))

    def graph_stats(self) -> dict[str, int]:
        """How runs in graph mode went: hits, captures, updates, warmups, fallbacks, evictions."""
        return {name[len("graph_") :]: n for name, n in self.stats().items() if name.startswith("graph_")}

    def plain(self, inputs: Tensors, outputs: Tensors) -> tuple[Any, ...] | None:
        """The tensors in the order of the model, if a run with them needs no work in Python; None for others."""
        library = self._library
        if library.run_whole is None or library.state or self._constants.unset or self._inspection.reports:
            return None
        if type(inputs) is dict:
            if inputs.keys() != library.input_index.keys():
                return None
            inputs = [inputs[name] for name in library.input_index]
        if type(outputs) is dict:
            if outputs.keys() != library.output_index.keys():
                return None
            outputs = [outputs[name] for name in library.output_index]
        if type(inputs) not in _LISTS or type(outputs) not in _LISTS:
            return None
        if len(inputs) != len(library.inputs) or len(outputs) != len(library.outputs):
            return None
        values: tuple[Any, ...] = (*inputs, *outputs)
        return values if are_plain(values) else None

    def run_plain(self, values: tuple[Any, ...], stream: int, sync: bool, graph_mode: bool) -> dict[str, Any]:
        """`run` with tensors that `plain` returned."""
        library = self._library
        run = library.run_whole
        assert run is not None
        try:
            flat = run(stream, sync, graph_mode, *values)
        except (RuntimeError, TypeError, BufferError) as error:
            check_flags(sync=sync, graph_mode=graph_mode)
            raise library.explained(error, library.labels, values) from None
        outs = values[len(library.inputs) :]
        if flat is None:
            return dict(zip(library.output_index, outs, strict=False))
        shapes = library.split(flat, library.outputs)
        return {
            name: shaped(value, shape) for name, value, shape in zip(library.output_index, outs, shapes, strict=True)
        }

    def run_torch(self, inputs: Sequence[Any], stream_ptr: int, sync: bool, graph_mode: bool) -> Sequence[Any] | None:
        """New torch tensors with the outputs for torch tensors in the model's order: `run_with_tensors` with no work
        in Python. None, and nothing is run, for a model with state and for tensors that need work, such as gradients.
        """
        library = self._library
        run = library.run_and_return
        if (
            run is None
            or library.state
            or self._constants.unset
            or self._inspection.reports
            or len(inputs) != len(library.inputs)
        ):
            return None
        torch = torch_module()
        if torch is None or not inputs or type(inputs[0]) is not torch.Tensor or not are_plain(inputs):
            return None
        try:
            found = run(stream_ptr, sync, graph_mode, *inputs)
        except (RuntimeError, TypeError, BufferError) as error:
            raise library.explained(error, library.input_labels, inputs) from None
        return (found,) if len(library.outputs) == 1 else tuple(found)

    def _launch(
        self,
        inputs: Tensors,
        outputs: Tensors,
        stream_ptr: int | None,
        sync: bool,
        graph_mode: bool,
        workspace: Any = None,
    ) -> tuple[list[Any], list[tuple[int, ...]]]:
        """Run the model; returns the output buffers in order, and the actual shapes of the outputs."""
        if self._inspection.reports:
            return self._inspection.reported(inputs, outputs, stream_ptr)
        library = self._library
        run, count = library.require_open(), len(library.inputs)
        arguments = Arguments(library.device)
        given, outs = self._arguments.add(arguments, inputs, outputs)
        try:
            if workspace is None:
                flat = run(as_stream(stream_ptr), sync, graph_mode, count, *given)
            else:
                place = self._workspace(workspace, library.device_of((*library.ordered_inputs(inputs), *outs)))
                flat = library.module.run_in(*place, as_stream(stream_ptr), sync, graph_mode, count, *given)
        except (RuntimeError, TypeError, BufferError) as error:
            raise self._arguments.explained(error, inputs, outs) from None
        return outs, library.split(flat, library.outputs)

    def framework_stream(self, *groups: Tensors) -> int:
        if self._library.target == "cpu":
            return 0
        groups_of_values = (g.values() if isinstance(g, Mapping) else g for g in groups)
        values = list(itertools.chain.from_iterable(groups_of_values))
        return stream_of(framework_of(values), self._library.device_of(values)[1])
