"""A model library that is loaded: names, shapes and dims of its tensors, and the checks of what a caller passes."""

from __future__ import annotations

import itertools
import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ait_mlir.errors import AitError, ArgumentTypeError, InputError, RunError
from ait_mlir.host.kernel_libraries import known_kernel_libraries
from ait_mlir.host.model_libraries import check_model_library
from ait_mlir.lowering.toolchain import TargetKind
from ait_mlir.runtime.data import CPU, as_whole, untakable
from ait_mlir.runtime.loading import runtime_library
from ait_mlir.runtime.manifest import Manifest

Tensors = Sequence[Any] | Mapping[str, Any]
"""Tensors in the order of the model, or by name: torch, NumPy or DLPack tensors, or `AITData`."""
_DLPACK_GPU = {"cuda": 2, "rocm": 10}


MAX_RUNTIMES = 4096
"""AIT_MAX_RUNTIMES of the runtime library."""


def as_runtimes(value: Any) -> int:
    """A number of runtimes; `InputError` unless it is a whole number from 1 to `MAX_RUNTIMES`."""
    return as_whole("num_runtimes", value, 1, MAX_RUNTIMES)


class OpenedModel:
    """The description of a loaded model library."""

    manifest: Manifest | None
    """The description of the artifact; None for a model without one."""

    def _open(
        self,
        library: Path,
        target: TargetKind,
        num_runtimes: int,
        device: int | None,
        kernel_libraries: Mapping[str, Path] | None = None,
        arenas_of_framework: bool = False,
    ) -> None:
        num_runtimes = as_runtimes(num_runtimes)
        self.target: TargetKind = target
        self._allocated: dict[int, int] = {}
        self._given_device = device
        first = 0 if device is None else device
        self._device = CPU if target == "cpu" else (_DLPACK_GPU[target], first)
        runtime = runtime_library(target)
        for sha256, path in (known_kernel_libraries() if kernel_libraries is None else kernel_libraries).items():
            runtime.add_kernel_library(sha256, str(path))
        check_model_library(library)
        self._module: Any = runtime.create(
            str(library), num_runtimes, first, target == "cpu" or device is not None, arenas_of_framework
        )
        self._run: Any = self._module.get_function("run")
        self._run_whole: Any = self._module.get_function("run_whole")
        self._run_and_return: Any = self._module.get_function("run_and_return")
        about: dict[str, Any] = json.loads(self._module.describe())
        self.name: str = about["name"]
        self.num_runtimes = num_runtimes
        self._launches: list[str] = about["launches"]
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
        self.state: dict[str, str] = {
            self._inputs[t["in_place_of"]]["name"]: t["name"] for t in self._outputs if t["in_place_of"] >= 0
        }
        self._maximum_shapes = self._split(about["maximum_output_shapes"], self._outputs)

    @property
    def device(self) -> tuple[int, int]:
        """The DLPack device, its type and number: of `AITData` and of memory that the model allocates."""
        return self._device

    def devices(self) -> list[int]:
        """The numbers of the devices that hold the constants now: the first one, and those that runs have used."""
        self._function()
        return [int(number) for number in self._module.devices()]

    def device_of(self, values: Iterable[Any]) -> tuple[int, int]:
        """The DLPack device on which a run with these tensors is: that of the first one on a GPU, if the model was not
        loaded for one device; else `device`."""
        if self.target != "cpu" and self._given_device is None:
            for value in values:
                if (place := getattr(value, "__dlpack_device__", None)) is not None:
                    kind, number = place()
                    if int(kind) == self._device[0]:
                        return self._device[0], int(number)
        return self._device

    def __repr__(self) -> str:
        ins = ", ".join(f"{t['name']}: {t['dtype']}" for t in self._inputs)
        outs = ", ".join(f"{t['name']}: {t['dtype']}" for t in self._outputs)
        return f"<Model {self.name} for {self.target}: ({ins}) -> ({outs})>"

    def get_num_runtimes(self) -> int:
        """How many runs can be under way at the same time."""
        return self.num_runtimes

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

    def input_strides(self, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The strides, in elements, of inputs that kernels read where they are; inputs with others are copied."""
        return self._named(self._split(self._module.input_strides(self._dims(dims)), self._inputs), self._inputs)

    def output_shapes(self, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of the outputs for these values of the dims."""
        return self._named(self._split(self._module.output_shapes(self._dims(dims)), self._outputs), self._outputs)

    def output_strides(self, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The strides, in elements, of outputs that kernels write where they are; others are copied there."""
        return self._named(self._split(self._module.output_strides(self._dims(dims)), self._outputs), self._outputs)

    def arena_bytes(self, dims: Mapping[str, int]) -> int:
        """Bytes of scratch memory that a run with these dims uses, per runtime."""
        return int(self._module.arena_bytes(self._dims(dims)))

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

    def _index_of(self, which: int | str, index: Mapping[str, int], role: str) -> int:
        if isinstance(which, str) and which in index:
            return index[which]
        if isinstance(which, int) and 0 <= which < len(index):
            return which
        kind = InputError if isinstance(cast(object, which), str | int) else ArgumentTypeError
        raise kind(f"model {self.name} has no {role} {which!r}; its {role}s are {', '.join(index) or 'none'}")

    @staticmethod
    def _split(flat: Sequence[int], tensors: Sequence[Mapping[str, Any]]) -> list[tuple[int, ...]]:
        values = tuple(flat)
        ends = itertools.accumulate(tensor["rank"] for tensor in tensors)
        return [values[end - tensor["rank"] : end] for end, tensor in zip(ends, tensors, strict=True)]

    @staticmethod
    def _named(shapes: list[tuple[int, ...]], tensors: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, ...]]:
        return {tensor["name"]: shape for tensor, shape in zip(tensors, shapes, strict=True)}
