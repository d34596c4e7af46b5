"""`Model`: a compiled model that runs."""

from __future__ import annotations

import itertools
import json
import math
import operator
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import numpy as np

from ait_mlir.errors import AitError, ArtifactError, InputError, RunError
from ait_mlir.lowering.toolchain import TargetKind, detect_cuda_arch
from ait_mlir.runtime import artifact
from ait_mlir.runtime.data import (
    CPU,
    AITData,
    Arguments,
    is_torch,
    numpy_dtype,
    shaped,
    to_numpy,
    torch_module,
    untakable,
)
from ait_mlir.runtime.folds import Folds
from ait_mlir.runtime.loading import runtime_library
from ait_mlir.runtime.state import StatefulModel, Tensors

_DLPACK_GPU = {"cuda": 2, "rocm": 10}


class Model(StatefulModel):
    """A model loaded from an artifact.

    The constants of the artifact are copied to the device when the model is loaded; constants that it does not hold
    must be set with `set_constant` before the first run. `num_runtimes` runs can execute at the same time; further
    runs wait. All methods may be called from several threads. The model stays usable after an error.

    Raises `ArtifactError` when the artifact is damaged or not for this machine, `OutOfMemoryError`, `RunError` when
    the device is missing, `ToolchainError` when the runtime library has to be built and there is no C++ compiler.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        num_runtimes: int = 1,
        *,
        device: int = 0,
        verify_weights: bool = True,
    ) -> None:
        loaded = artifact.read(path, verify_weights=verify_weights)
        manifest = loaded.manifest
        if manifest.target not in ("cpu", "cuda", "rocm"):
            raise ArtifactError(f"{path} is for target '{manifest.target}', which this ait_mlir does not know")
        artifact.check_machine(manifest, lambda: detect_cuda_arch(device))
        self._open(loaded.extract_library(), manifest.target, num_runtimes, device)
        self.manifest: artifact.Manifest | None = manifest
        self.ir_text: str = loaded.ir_text
        for name in self._constants.keys() & loaded.constants.keys():
            self.set_constant(name, loaded.constants[name])

    @classmethod
    def from_library(
        cls,
        library: str | os.PathLike[str],
        target: TargetKind,
        *,
        constants: Mapping[str, Any] | None = None,
        num_runtimes: int = 1,
        device: int = 0,
    ) -> Self:
        """A model from a model library that was just built, without an artifact."""
        model = cls.__new__(cls)
        model._open(Path(library), target, num_runtimes, device)
        model.manifest = None
        model.ir_text = ""
        model.set_constants(constants or {})
        return model

    def _open(self, library: Path, target: TargetKind, num_runtimes: int, device: int) -> None:
        self.target: TargetKind = target
        self._allocated: set[int] = set()
        self._device = CPU if target == "cpu" else (_DLPACK_GPU[target], device)
        self._module: Any = runtime_library(target).create(str(library), num_runtimes, device)
        self._run: Any = self._module.get_function("run")
        about: dict[str, Any] = json.loads(self._module.describe())
        self.name: str = about["name"]
        self._unset: list[str] = []
        self.num_runtimes = num_runtimes
        self._all_dims: list[str] = [dim["name"] for dim in about["dims"]]
        self.dims: dict[str, tuple[int, int]] = {
            dim["name"]: (dim["lo"], dim["hi"]) for dim in about["dims"] if not dim["bound"]
        }
        """The dims that the inputs determine, with their ranges. A run binds the others, which only outputs have."""
        self._inputs: list[dict[str, Any]] = about["inputs"]
        self._outputs: list[dict[str, Any]] = about["outputs"]
        self._constants: dict[str, dict[str, Any]] = {constant["name"]: constant for constant in about["constants"]}
        self._input_index = {tensor["name"]: i for i, tensor in enumerate(self._inputs)}
        self._output_index = {tensor["name"]: i for i, tensor in enumerate(self._outputs)}
        self._input_labels = [f"input '{name}'" for name in self._input_index]
        self._output_labels = [f"output '{name}'" for name in self._output_index]
        self.state = {self._inputs[t["in_place_of"]]["name"]: t["name"] for t in self._outputs if t["in_place_of"] >= 0}
        self._maximum_shapes = self._split(about["maximum_output_shapes"], self._outputs)

    @property
    def device(self) -> tuple[int, int]:
        """The DLPack device: its type and number."""
        return self._device

    def run(
        self,
        inputs: Tensors,
        outputs: Tensors,
        stream_ptr: int | None = None,
        sync: bool = True,
        graph_mode: bool = False,
    ) -> dict[str, Any]:
        """Run the model on `inputs`, into the buffers `outputs`; return the outputs by name with their actual shapes.

        A buffer may be larger than its output in any dim; the result is then its leading elements, as a view (for
        `AITData`, another `AITData`). The run is launched on the stream with the address `stream_ptr` (stream 0 by
        default). With `sync` the call waits for it. Without `sync`, keep the tensors alive and unchanged until the
        stream is done. `graph_mode` launches the whole run as one CUDA graph: the first run with given dims
        and addresses launches kernels, the second one records the graph, later ones replay it.

        Raises `InputError` before anything is launched, `RunError` when the model fails, `OutOfMemoryError`.
        """
        run = self._function()
        arguments = Arguments(self._device)
        given, outs = self._arguments(arguments, inputs, outputs)
        try:
            flat = run(stream_ptr or 0, sync, graph_mode, len(self._inputs), *given)
        except (RuntimeError, TypeError, BufferError) as error:
            labels, ins = (*self._input_labels, *self._output_labels), self._ordered(inputs, self._input_index, "input")
            self.forget_when_freed(ins)
            raise self._explained(error, labels, (*ins, *outs)) from None
        shapes = self._split(flat, self._outputs)
        return {name: shaped(value, shape) for name, value, shape in zip(self._output_index, outs, shapes, strict=True)}

    def run_with_tensors(
        self,
        inputs: Tensors,
        outputs: Tensors | None = None,
        stream_ptr: int | None = None,
        sync: bool = True,
        graph_mode: bool = False,
    ) -> dict[str, Any]:
        """`run`, on the current stream of PyTorch when the tensors are on a device and no stream is given.

        Without `outputs`, the call allocates them: torch tensors if an input is one, else NumPy arrays.
        """
        if outputs is None:
            outputs = self.make_outputs(inputs)
        if stream_ptr is None:
            stream_ptr = self._framework_stream(inputs, outputs)
        return self.run(inputs, outputs, stream_ptr, sync, graph_mode)

    def infer_output_shapes(self, inputs: Tensors) -> dict[str, tuple[int, ...]]:
        """The shapes of the outputs for these inputs; checks the inputs like `run`."""
        ins = self._ordered(inputs, self._input_index, "input")
        arguments = Arguments(self._device)
        given = [arguments.add(label, value) for label, value in zip(self._input_labels, ins, strict=True)]
        self._function()
        try:
            flat = self._module.infer(*given)
        except (RuntimeError, TypeError, BufferError) as error:
            raise self._explained(error, self._input_labels, ins) from None
        return self._named(self._split(flat, self._outputs), self._outputs)

    def make_outputs(self, inputs: Tensors) -> list[Any]:
        """Output buffers of the actual shapes for these inputs: torch tensors if an input is one, else NumPy arrays.

        An output in place of an input is that input.
        """
        shapes = self.infer_output_shapes(inputs)
        values = self._ordered(inputs, self._input_index, "input")
        torch = torch_module()
        if torch is not None and (self.target != "cpu" or any(is_torch(value) for value in values)):
            place = "cpu" if self.target == "cpu" else f"cuda:{self._device[1]}"
            made = [torch.empty(shapes[t["name"]], dtype=getattr(torch, t["dtype"]), device=place) for t in self._own()]
            return self._interleaved(made, values)
        if self.target != "cpu":
            raise InputError("outputs on a device can be made only where PyTorch is imported: pass them")
        return self._interleaved([np.empty(shapes[t["name"]], numpy_dtype(t["dtype"])) for t in self._own()], values)

    def benchmark(
        self,
        inputs: Tensors,
        outputs: Tensors,
        count: int = 10,
        repeat: int = 1,
        graph_mode: bool = False,
        stream_ptr: int | None = None,
    ) -> tuple[float, float, dict[str, Any]]:
        """Milliseconds per run, as mean and standard deviation over `repeat` batches of `count` runs, and the outputs.

        The runs of a batch are launched without waits between them. Two runs before the first batch warm up and record
        the graph. The runs work on copies of inputs that are state, so these stay unchanged; the outputs exclude them.
        """
        if count < 1 or repeat < 1:
            raise InputError(f"count = {count} and repeat = {repeat}, expected both to be at least 1")
        with self.private_state(inputs) as inputs:
            outputs = self._without_state(outputs)
            result = self.run(inputs, outputs, stream_ptr, True, graph_mode)
            self.run(inputs, outputs, stream_ptr, True, graph_mode)
            run, arguments = self._function(), Arguments(self._device)
            given, _ = self._arguments(arguments, inputs, outputs)
            times: list[float] = []
            for _ in range(repeat):
                start = time.perf_counter()
                for _ in range(count):
                    run(stream_ptr or 0, False, graph_mode, len(self._inputs), *given)
                self.synchronize(stream_ptr)
                times.append((time.perf_counter() - start) * 1e3 / count)
        shown = {name: value for name, value in result.items() if name not in self.state.values()}
        return statistics.fmean(times), statistics.pstdev(times), shown

    def synchronize(self, stream_ptr: int | None = None) -> None:
        """Wait for the runs on a stream; `RunError` when one of them failed."""
        self._function()
        self._module.sync(stream_ptr or 0)

    def get_input_name_to_index_map(self) -> dict[str, int]:
        """The place of each input in a list of inputs."""
        return dict(self._input_index)

    def get_output_name_to_index_map(self) -> dict[str, int]:
        """The place of each output in a list of outputs."""
        return dict(self._output_index)

    get_output_name_to_idx = get_output_name_to_index_map
    get_input_name_to_idx = get_input_name_to_index_map

    def get_output_maximum_shape(self, output: int | str) -> list[int]:
        """The largest shape of an output, by name or index, over the ranges of the dims."""
        return list(self._maximum_shapes[self._index_of(output, self._output_index, "output")])

    def get_output_dtype(self, output: int | str) -> str:
        """The dtype of an output, by name or index: "float16", "int64" ..."""
        return str(self._outputs[self._index_of(output, self._output_index, "output")]["dtype"])

    def get_input_dtype(self, name: int | str) -> str:
        """The dtype of an input, by name or index."""
        return str(self._inputs[self._index_of(name, self._input_index, "input")]["dtype"])

    def input_shapes(self, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs for these values of the dims."""
        return self._named(self._split(self._module.input_shapes(self._dims(dims)), self._inputs), self._inputs)

    def output_shapes(self, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of the outputs for these values of the dims."""
        return self._named(self._split(self._module.output_shapes(self._dims(dims)), self._outputs), self._outputs)

    def arena_bytes(self, dims: Mapping[str, int]) -> int:
        """Bytes of scratch memory that a run with these dims uses, per runtime."""
        return int(self._module.arena_bytes(self._dims(dims)))

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

    def graph_stats(self) -> dict[str, int]:
        """How runs in graph mode went: hits, captures, warmups, fallbacks, evictions."""
        self._function()
        names = ("hits", "captures", "warmups", "fallbacks", "evictions")
        return dict(zip(names, (int(count) for count in self._module.graph_stats()), strict=True))

    def allocate_memory(self, num_bytes: int) -> int:
        """The address of new memory on the device, to be freed with `free_memory`."""
        self._function()
        address = int(self._module.allocate(num_bytes))
        self._allocated.add(address)
        return address

    def free_memory(self, address: int) -> None:
        """Free what `allocate_memory` gave; `InputError` for any other address."""
        self._function()
        if address and address not in self._allocated:
            raise InputError(f"address {address!r} was not given by allocate_memory of this model, or is free already")
        self._allocated.discard(address)
        self._module.release(address)

    def allocate_data(self, shape: Sequence[int], dtype: str) -> AITData:
        """A tensor on the device with any content; free its `data_ptr` with `free_memory`."""
        return AITData(self.allocate_memory(math.prod(shape) * numpy_dtype(dtype).itemsize), list(shape), dtype)

    def numpy_to_ait_data(self, array: np.ndarray[Any, Any]) -> AITData:
        """A copy of an array on the device; free its `data_ptr` with `free_memory`."""
        source = np.ascontiguousarray(array)
        address = self.allocate_memory(source.nbytes)
        self._module.copy(address, source.ctypes.data, source.nbytes)
        return AITData(address, list(array.shape), array.dtype.name)

    def ait_data_to_numpy(self, data: AITData) -> np.ndarray[Any, Any]:
        """A copy on the host of a tensor on the device."""
        self._function()
        array = np.empty(tuple(data.shape), dtype=numpy_dtype(data.dtype))
        self._module.copy(array.ctypes.data, data.data_ptr, array.nbytes)
        return array

    def close(self) -> None:
        """Free the model. Further calls raise `RunError`; closing twice is fine."""
        self._run = self._module = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        ins = ", ".join(f"{t['name']}: {t['dtype']}" for t in self._inputs)
        outs = ", ".join(f"{t['name']}: {t['dtype']}" for t in self._outputs)
        return f"<Model {self.name} for {self.target}: ({ins}) -> ({outs})>"

    def _function(self) -> Any:
        if self._run is None:
            raise RunError(f"model {self.name} is closed")
        return self._run

    def _dims(self, dims: Mapping[str, int]) -> Any:
        import tvm_ffi

        self._function()
        names = self._check_names(dims, self.dims, "dim")
        if len(names) < len(self._all_dims):  # those that a run binds are taken at their bounds
            dims, names = {**dict.fromkeys(self._all_dims, 0), **dims}, self._all_dims
        if wrong := [name for name in names if not hasattr(dims[name], "__index__")]:
            raise InputError(f"dim {wrong[0]} = {dims[wrong[0]]!r}, expected a whole number")
        return cast(Any, tvm_ffi).Shape([operator.index(dims[name]) for name in names])

    def _arguments(self, arguments: Arguments, inputs: Tensors, outputs: Tensors) -> tuple[list[Any], list[Any]]:
        """All tensors of a run as the runtime library takes them, and the outputs in order."""
        if self._unset:
            raise InputError(
                "the model computes constants from several: "
                f"after one of them was set, set {', '.join(self._unset)}, too"
            )
        ins = self._ordered(inputs, self._input_index, "input")
        if self.state:
            outputs = self._with_state(outputs, ins)
        outs = self._ordered(outputs, self._output_index, "output")
        given = [arguments.add(label, value) for label, value in zip(self._input_labels, ins, strict=True)]
        for label, value in zip(self._output_labels, outs, strict=True):
            given.append(arguments.add(label, value, written=True))
        return given, outs

    def _ordered(self, tensors: Tensors, index: Mapping[str, int], role: str) -> list[Any]:
        if isinstance(tensors, Mapping):
            return [tensors[name] for name in self._check_names(tensors, index, role)]
        if isinstance(tensors, str | bytes) or not isinstance(cast(object, tensors), Sequence):
            raise InputError(f"the {role}s are a {type(tensors).__name__}, expected a list or a dict of tensors")
        if len(tensors) != len(index):
            names = ", ".join(index)
            raise InputError(f"model {self.name} has {len(index)} {role}s ({names}), but {len(tensors)} were given")
        return list(tensors)

    @staticmethod
    def _explained(error: Exception, labels: Sequence[str], values: Sequence[Any]) -> Exception:
        """The error to raise for an error of the runtime library; it names the tensor that the library cannot take."""
        if isinstance(error, AitError):
            return error
        told = [t for label, value in zip(labels, values, strict=True) if (t := untakable(label, value))]
        return InputError(told[0]) if told else error

    def _check_names(self, given: Mapping[str, Any], expected: Mapping[str, Any], role: str) -> list[str]:
        missing = [name for name in expected if name not in given]
        extra = [name for name in given if name not in expected]
        if missing or extra:
            told = [f"{role} '{name}' is missing" for name in missing]
            told += [f"there is no {role} '{name}'" for name in extra]
            raise InputError(f"model {self.name}: {', '.join(told)}; its {role}s are {', '.join(expected) or 'none'}")
        return list(expected)

    def _known(self, constant: str) -> str:
        if constant not in self._constants:
            raise InputError(f"model {self.name} has no constant '{constant}'")
        return constant

    def _index_of(self, which: int | str, index: Mapping[str, int], role: str) -> int:
        if isinstance(which, str) and which in index:
            return index[which]
        if isinstance(which, int) and 0 <= which < len(index):
            return which
        raise InputError(f"model {self.name} has no {role} {which!r}; its {role}s are {', '.join(index) or 'none'}")

    @staticmethod
    def _split(flat: Sequence[int], tensors: Sequence[Mapping[str, Any]]) -> list[tuple[int, ...]]:
        values = tuple(flat)
        ends = itertools.accumulate(tensor["rank"] for tensor in tensors)
        return [values[end - tensor["rank"] : end] for end, tensor in zip(ends, tensors, strict=True)]

    @staticmethod
    def _named(shapes: list[tuple[int, ...]], tensors: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, ...]]:
        return {tensor["name"]: shape for tensor, shape in zip(tensors, shapes, strict=True)}

    def _framework_stream(self, *groups: Tensors) -> int:
        if self.target == "cpu":
            return 0
        values = itertools.chain.from_iterable(g.values() if isinstance(g, Mapping) else g for g in groups)
        if any(is_torch(value) for value in values):
            return int(torch_module().cuda.current_stream(self._device[1]).cuda_stream)
        return 0
