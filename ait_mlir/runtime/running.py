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
from ait_mlir.runtime.opened import Tensors
from ait_mlir.runtime.state import StatefulModel

_LISTS = (list, tuple)
_GRAPH_STATS = ("hits", "captures", "updates", "warmups", "fallbacks", "evictions")
_STATS = ("runs", "failures", "waits", "copies", "bytes", *(f"graph_{name}" for name in _GRAPH_STATS))


class RunningModel(StatefulModel, ModelConstants):
    """The methods of `Model` that run it."""

    def run(
        self,
        inputs: Tensors,
        outputs: Tensors,
        stream_ptr: int | None = None,
        sync: bool = True,
        graph_mode: bool = False,
        *,
        workspace: Any = None,
    ) -> dict[str, Any]:
        """Run the model on `inputs`, into the buffers `outputs`; return the outputs by name with their actual shapes.

        A buffer may be larger than its output in any dim; the result is then its leading elements, as a view (for
        `AITData`, another `AITData`). Tensors may have any strides: those that kernels cannot use where they are, are
        copied on the device, in the same stream (`stats()["copies"]` counts them). `workspace` is scratch memory for
        the run instead of the model's own: a contiguous tensor of at least `arena_bytes(dims)` bytes, and of the copies
        beyond that, at a multiple of 256 bytes. No other run may use it at the same time.

        The run is launched on the stream with the address `stream_ptr` (stream 0 by default). With `sync` the call
        waits for it. Without `sync`, keep the tensors alive and unchanged until the stream is done. `graph_mode`
        launches the whole run as one CUDA graph: the first run with given dims and addresses launches kernels, the
        second one records the graph, later ones replay it. Of 16 graphs, the oldest of the same dims is updated for
        other addresses.

        The run is on the device of the tensors, unless the model was loaded for one `device`; a model that has not run
        on that device first copies its constants there. Tensors on several devices are refused.

        Raises `InputError` before anything is launched, `RunError` when the model fails, `OutOfMemoryError`.
        """
        if workspace is None and (values := self._plain(inputs, outputs)) is not None:
            return self._run_plain(values, as_stream(stream_ptr), sync, graph_mode)
        outs, shapes = self._launch(inputs, outputs, stream_ptr, sync, graph_mode, workspace)
        return {name: shaped(value, shape) for name, value, shape in zip(self._output_index, outs, shapes, strict=True)}

    def run_with_tensors(
        self,
        inputs: Tensors,
        outputs: Tensors | None = None,
        stream_ptr: int | None = None,
        sync: bool = True,
        graph_mode: bool = False,
    ) -> dict[str, Any]:
        """`run`, on the current stream of PyTorch or CuPy when the tensors are on a device and no stream is given.

        Without `outputs`, the call allocates them, in the framework of the inputs: PyTorch if one is a torch tensor,
        else CuPy, JAX, or NumPy. JAX arrays cannot be written, so they cannot be outputs; JAX has no streams to name,
        so the call waits for such inputs and for the run.
        """
        if outputs is not None and (plain := self._plain(inputs, outputs)) is not None and is_torch(plain[0]):
            if stream_ptr is None:
                place = plain[0].get_device()  # -1 for the CPU
                stream_ptr = stream_of("torch", place) if place >= 0 and self.target != "cpu" else 0
            return self._run_plain(plain, as_stream(stream_ptr), sync, graph_mode)
        values = self._ordered(inputs, self._input_index, "input")
        framework = framework_of(values)
        wait_for(framework, values)
        if outputs is None and framework == "jax":
            buffers = self._interleaved(self._buffers(inputs), values)
            outs, shapes = self._launch(inputs, buffers, stream_ptr, True, graph_mode)
            made = [in_framework(framework, out) for out in outs]
            return {n: shaped(value, shape) for n, value, shape in zip(self._output_index, made, shapes, strict=True)}
        if outputs is None and framework == "torch":
            stream = self._framework_stream(values) if stream_ptr is None else as_stream(stream_ptr)
            if (found := self.run_torch(values, stream, sync, graph_mode)) is not None:
                return dict(zip(self._output_index, found, strict=True))
        if outputs is None:
            outputs = self.make_outputs(inputs)
        if stream_ptr is None:
            stream_ptr = self._framework_stream(inputs, outputs)
        return self.run(inputs, outputs, stream_ptr, sync, graph_mode)

    def infer_output_shapes(self, inputs: Tensors) -> dict[str, tuple[int, ...]]:
        """The shapes of the outputs for these inputs; checks the inputs like `run`."""
        return self._inferred("infer", inputs)

    def _inferred(self, function: str, inputs: Tensors) -> dict[str, tuple[int, ...]]:
        ins = self._ordered(inputs, self._input_index, "input")
        arguments = Arguments(self._device)
        given = [arguments.add(label, value) for label, value in zip(self._input_labels, ins, strict=True)]
        self._function()
        try:
            flat = self._module.get_function(function)(*given)
        except (RuntimeError, TypeError, BufferError) as error:
            raise self._explained(error, self._input_labels, ins) from None
        return self._named(self._split(flat, self._outputs), self._outputs)

    def make_outputs(self, inputs: Tensors) -> list[Any]:
        """Output buffers of the actual shapes for these inputs, in the framework of the inputs.

        They are torch tensors if an input is one, CuPy arrays if an input is one, else NumPy arrays on the CPU target;
        on a device, torch tensors where PyTorch is imported, else tensors of tvm-ffi, which DLPack takes anywhere. An
        output in place of an input is that input. Raises `InputError` for JAX arrays, which cannot be written.
        """
        values = self._ordered(inputs, self._input_index, "input")
        framework = framework_of(values)
        if framework == "jax":
            raise InputError("JAX arrays cannot be written: call run_with_tensors without outputs")
        if (
            framework != "cupy"
            and (torch := torch_module()) is not None
            and (self.target != "cpu" or framework == "torch")
        ):
            place = "cpu" if self.target == "cpu" else f"cuda:{self.device_of(values)[1]}"
            made = [
                torch.empty_strided(shape, strides, dtype=getattr(torch, dtype), device=place)
                for dtype, shape, strides in self._layouts(inputs)
            ]
            return self._interleaved(made, values)
        return self._interleaved([in_framework(framework, buffer) for buffer in self._buffers(inputs)], values)

    def _layouts(self, inputs: Tensors) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        """Dtype, shape and strides, in elements, of the outputs that need memory of their own."""
        shapes, strides = self._inferred("infer", inputs), self._inferred("infer_strides", inputs)
        return [(t["dtype"], shapes[t["name"]], strides[t["name"]]) for t in self._own()]

    def _buffers(self, inputs: Tensors) -> list[Any]:
        """Memory for the outputs: NumPy arrays, or row-major tensors of the runtime library on a device."""
        if self.target == "cpu":
            return [
                empty_strided(np.dtype(numpy_dtype(dtype)), shape, strides)
                for dtype, shape, strides in self._layouts(inputs)
            ]
        shapes = self.infer_output_shapes(inputs)
        import tvm_ffi

        ffi = cast(Any, tvm_ffi)
        device = self.device_of(self._ordered(inputs, self._input_index, "input"))[1]
        return [self._module.empty(device, ffi.dtype(t["dtype"]), ffi.Shape(shapes[t["name"]])) for t in self._own()]

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
        self._function()
        self._module.sync(as_stream(stream_ptr))

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
        self._function()
        if stream_ptr is None:  # the current stream is one of this thread
            stream_ptr = self._framework_stream(inputs, () if outputs is None else outputs)
        call = partial(self.run_with_tensors, inputs, outputs, stream_ptr, True, graph_mode)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    @property
    def _executor(self) -> ThreadPoolExecutor:
        process, found = self.__dict__.get("_threads", (0, None))
        if process != os.getpid():  # a forked process does not have the threads of its parent
            found = ThreadPoolExecutor(self.num_runtimes, f"ait {self.name}")
            self.__dict__["_threads"] = os.getpid(), found
        return cast(ThreadPoolExecutor, found)

    def stats(self) -> dict[str, int]:
        """What the model has done since it was loaded.

        | count | of |
        |---|---|
        | runs, failures | runs that succeeded or were left going on, and those that failed after the checks |
        | waits | runs that waited for a free runtime |
        | copies | tensors that were copied because kernels cannot use them where they are |
        | bytes | bytes of constants and scratch memory now |
        | graph_hits, graph_captures, graph_updates | launches of a graph: as it was, new, with new addresses |
        | graph_warmups, graph_fallbacks | runs in graph mode without one: the first, or none is possible |
        | graph_evictions | graphs dropped for newer ones |
        """
        self._function()
        return dict(zip(_STATS, (int(count) for count in self._module.stats()), strict=True))

    def graph_stats(self) -> dict[str, int]:
        """How runs in graph mode went: hits, captures, updates, warmups, fallbacks, evictions."""
        return {name[len("graph_") :]: n for name, n in self.stats().items() if name.startswith("graph_")}

    def _watched(self) -> bool:
        """Whether runs report on the results of launches, which takes the longer way."""
        return False

    def _plain(self, inputs: Tensors, outputs: Tensors) -> tuple[Any, ...] | None:
        """The tensors in the order of the model, if a run with them needs no work in Python; None for others."""
        if self._run_whole is None or self.state or self._unset or self._watched():
            return None
        if type(inputs) is dict:
            if inputs.keys() != self._input_index.keys():
                return None
            inputs = [inputs[name] for name in self._input_index]
        if type(outputs) is dict:
            if outputs.keys() != self._output_index.keys():
                return None
            outputs = [outputs[name] for name in self._output_index]
        if type(inputs) not in _LISTS or type(outputs) not in _LISTS:
            return None
        if len(inputs) != len(self._inputs) or len(outputs) != len(self._outputs):
            return None
        values: tuple[Any, ...] = (*inputs, *outputs)
        return values if are_plain(values) else None

    def _run_plain(self, values: tuple[Any, ...], stream: int, sync: bool, graph_mode: bool) -> dict[str, Any]:
        """`run` with tensors that `_plain` returned."""
        run = self._run_whole
        assert run is not None
        try:
            flat = run(stream, sync, graph_mode, *values)
        except (RuntimeError, TypeError, BufferError) as error:
            check_flags(sync=sync, graph_mode=graph_mode)
            raise self._explained(error, (*self._input_labels, *self._output_labels), values) from None
        outs = values[len(self._inputs) :]
        if flat is None:
            return dict(zip(self._output_index, outs, strict=False))
        shapes = self._split(flat, self._outputs)
        return {name: shaped(value, shape) for name, value, shape in zip(self._output_index, outs, shapes, strict=True)}

    def run_torch(self, inputs: Sequence[Any], stream_ptr: int, sync: bool, graph_mode: bool) -> Sequence[Any] | None:
        """New torch tensors with the outputs for torch tensors in the model's order: `run_with_tensors` with no work
        in Python. None, and nothing is run, for a model with state and for tensors that need work, such as gradients.
        """
        run = self._run_and_return
        if run is None or self.state or self._unset or self._watched() or len(inputs) != len(self._inputs):
            return None
        torch = torch_module()
        if torch is None or not inputs or type(inputs[0]) is not torch.Tensor or not are_plain(inputs):
            return None
        try:
            found = run(stream_ptr, sync, graph_mode, *inputs)
        except (RuntimeError, TypeError, BufferError) as error:
            raise self._explained(error, self._input_labels, inputs) from None
        return (found,) if len(self._outputs) == 1 else tuple(found)

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
        run = self._function()
        arguments = Arguments(self._device)
        given, outs = self._arguments(arguments, inputs, outputs)
        try:
            if workspace is None:
                flat = run(as_stream(stream_ptr), sync, graph_mode, len(self._inputs), *given)
            else:
                values = (*self._ordered(inputs, self._input_index, "input"), *outs)
                place = self._workspace(workspace, self.device_of(values))
                flat = self._module.run_in(*place, as_stream(stream_ptr), sync, graph_mode, len(self._inputs), *given)
        except (RuntimeError, TypeError, BufferError) as error:
            labels, ins = (*self._input_labels, *self._output_labels), self._ordered(inputs, self._input_index, "input")
            self.forget_when_freed(ins)
            raise self._explained(error, labels, (*ins, *outs)) from None
        return outs, self._split(flat, self._outputs)

    def _arguments(self, arguments: Arguments, inputs: Tensors, outputs: Tensors) -> tuple[list[Any], list[Any]]:
        """All tensors of a run as the runtime library takes them, and the outputs in order."""
        if self._unset:
            raise InputError(
                f"the model computes constants from others, which must all be set: set {', '.join(self._unset)} before "
                "the next run"
            )
        ins = self._ordered(inputs, self._input_index, "input")
        if self.state:
            outputs = self._with_state(outputs, ins)
        outs = self._ordered(outputs, self._output_index, "output")
        given = [arguments.add(label, value) for label, value in zip(self._input_labels, ins, strict=True)]
        for label, value in zip(self._output_labels, outs, strict=True):
            given.append(arguments.add(label, value, written=True))
        return given, outs

    def _framework_stream(self, *groups: Tensors) -> int:
        if self.target == "cpu":
            return 0
        groups_of_values = (g.values() if isinstance(g, Mapping) else g for g in groups)
        values = list(itertools.chain.from_iterable(groups_of_values))
        return stream_of(framework_of(values), self.device_of(values)[1])
