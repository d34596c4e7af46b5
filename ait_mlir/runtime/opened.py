"""A loaded model library: names, shapes and dims of its tensors, and the checks of a caller's tensors."""

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

Tensors = Sequence[Any] | Mapping[str, Any]
"""Tensors in the order of the model, or by name: torch, NumPy or DLPack tensors, or `AITData`."""
_DLPACK_GPU = {"cuda": 2, "rocm": 10}


MAX_RUNTIMES = 4096
"""AIT_MAX_RUNTIMES of the runtime library."""


def as_runtimes(value: Any) -> int:
    """A number of runtimes; `InputError` unless it is a whole number from 1 to `MAX_RUNTIMES`."""
    return as_whole("num_runtimes", value, 1, MAX_RUNTIMES)


class OpenedLibrary:
    """A loaded model library: its functions, its tensors and dims, and the checks of their names."""

    def __init__(
        self,
        library: Path,
        target: TargetKind,
        num_runtimes: int,
        device: int | None,
        kernel_libraries: Mapping[str, Path] | None = None,
        arenas_of_framework: bool = False,
    ) -> None:
        self.num_runtimes = as_runtimes(num_runtimes)
        self.target: TargetKind = target
        self.given_device = device
        first = 0 if device is None else device
        self.device: tuple[int, int] = CPU if target == "cpu" else (_DLPACK_GPU[target], first)
        runtime = runtime_library(target)
        for sha256, path in (known_kernel_libraries() if kernel_libraries is None else kernel_libraries).items():
            runtime.add_kernel_library(sha256, str(path))
        check_model_library(library)
        self.module: Any = runtime.create(
            str(library), self.num_runtimes, first, target == "cpu" or device is not None, arenas_of_framework
        )
        self.run: Any = self.module.get_function("run")
        self.run_whole: Any = self.module.get_function("run_whole")
        self.run_and_return: Any = self.module.get_function("run_and_return")
        about: dict[str, Any] = json.loads(self.module.describe())
        self.name: str = about["name"]
        self.launches: list[str] = about["launches"]
        self._all_dims: list[str] = [dim["name"] for dim in about["dims"]]
        self.dims: dict[str, tuple[int, int]] = {
            dim["name"]: (dim["lo"], dim["hi"]) for dim in about["dims"] if not dim["bound"]
        }
        """The dims that the inputs determine, with their ranges. A run binds the others, which only outputs have."""
        self.inputs: list[dict[str, Any]] = about["inputs"]
        self.outputs: list[dict[str, Any]] = about["outputs"]
        self.constants: dict[str, dict[str, Any]] = {constant["name"]: constant for constant in about["constants"]}
        self.input_index = {tensor["name"]: i for i, tensor in enumerate(self.inputs)}
        self.output_index = {tensor["name"]: i for i, tensor in enumerate(self.outputs)}
        self.input_labels = [f"input '{name}'" for name in self.input_index]
        self.output_labels = [f"output '{name}'" for name in self.output_index]
        self.labels = (*self.input_labels, *self.output_labels)
        self.state: dict[str, str] = {
            self.inputs[t["in_place_of"]]["name"]: t["name"] for t in self.outputs if t["in_place_of"] >= 0
        }
        self._maximum_shapes = self.split(about["maximum_output_shapes"], self.outputs)

    def devices(self) -> list[int]:
        """The numbers of the devices that hold the constants now: the first device, and all devices used by runs."""
        self.require_open()
        return [int(number) for number in self.module.devices()]

    def device_of(self, values: Iterable[Any]) -> tuple[int, int]:
        """The DLPack device of a run with these tensors: the first GPU tensor's, if the model was not loaded for one
        device; else `device`."""
        if self.target != "cpu" and self.given_device is None:
            for value in values:
                if (place := getattr(value, "__dlpack_device__", None)) is not None:
                    kind, number = place()
                    if int(kind) == self.device[0]:
                        return self.device[0], int(number)
        return self.device

    def close(self) -> None:
        """Wait for the runs under way and free the library; further calls raise `RunError`.

        Raises `RunError` if such a run failed on its device; the library is free then, too.
        """
        module, self.module = self.module, None
        self.run = self.run_whole = self.run_and_return = None
        try:
            if module is not None:
                module.finish()
        finally:
            del module  # the traceback of an error would keep it

    def describe(self) -> str:
        """The name, the target and the tensors, on one line."""
        ins = ", ".join(f"{t['name']}: {t['dtype']}" for t in self.inputs)
        outs = ", ".join(f"{t['name']}: {t['dtype']}" for t in self.outputs)
        return f"{self.name} for {self.target}: ({ins}) -> ({outs})"

    def get_num_runtimes(self) -> int:
        """How many runs can be under way at the same time."""
        return self.num_runtimes

    def get_input_name_to_index_map(self) -> dict[str, int]:
        """The place of each input in a list of inputs."""
        return dict(self.input_index)

    def get_output_name_to_index_map(self) -> dict[str, int]:
        """The place of each output in a list of outputs."""
        return dict(self.output_index)

    def get_output_maximum_shape(self, output: int | str) -> list[int]:
        """The largest shape of an output, by name or index, over the ranges of the dims."""
        return list(self._maximum_shapes[self._index_of(output, self.output_index, "output")])

    def get_output_dtype(self, output: int | str) -> str:
        """The dtype of an output, by name or index: "float16", "int64" ..."""
        return str(self.outputs[self._index_of(output, self.output_index, "output")]["dtype"])

    def get_input_dtype(self, name: int | str) -> str:
        """The dtype of an input, by name or index."""
        return str(self.inputs[self._index_of(name, self.input_index, "input")]["dtype"])

    def input_shapes(self, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs for these values of the dims."""
        return self.named(self.split(self.module.input_shapes(self._dims(dims)), self.inputs), self.inputs)

    def input_strides(self, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The strides, in elements, of inputs that kernels read where they are; inputs with others are copied."""
        return self.named(self.split(self.module.input_strides(self._dims(dims)), self.inputs), self.inputs)

    def output_shapes(self, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of the outputs for these values of the dims."""
        return self.named(self.split(self.module.output_shapes(self._dims(dims)), self.outputs), self.outputs)

    def output_strides(self, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The strides, in elements, of outputs that kernels write where they are; others are copied there."""
        return self.named(self.split(self.module.output_strides(self._dims(dims)), self.outputs), self.outputs)

    def arena_bytes(self, dims: Mapping[str, int]) -> int:
        """Bytes of scratch memory that a run with these dims uses, per runtime."""
        return int(self.module.arena_bytes(self._dims(dims)))

    def require_open(self) -> Any:
        """The function that runs the model; `RunError` if it is closed."""
        if self.run is None:
            raise RunError(f"model {self.name} is closed")
        return self.run

    def _dims(self, dims: Mapping[str, int]) -> Any:
        import tvm_ffi

        self.require_open()
        names = self._check_names(dims, self.dims, "dim")
        if len(names) < len(self._all_dims):  # a dim that a run binds is taken at its bound
            dims, names = {**dict.fromkeys(self._all_dims, 0), **dims}, self._all_dims
        if wrong := [name for name in names if not hasattr(dims[name], "__index__")]:
            raise InputError(f"dim {wrong[0]} = {dims[wrong[0]]!r}, expected a whole number")
        return cast(Any, tvm_ffi).Shape([operator.index(dims[name]) for name in names])

    def ordered_inputs(self, tensors: Tensors) -> list[Any]:
        """The inputs in the order of the model; `InputError` for other names or another number of them."""
        return self._ordered(tensors, self.input_index, "input")

    def ordered_outputs(self, tensors: Tensors) -> list[Any]:
        """The outputs in the order of the model; `InputError` for other names or another number of them."""
        return self._ordered(tensors, self.output_index, "output")

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
    def explained(error: Exception, labels: Sequence[str], values: Sequence[Any]) -> Exception:
        """The error to raise for an error of the runtime library; it names the tensor that the library cannot take."""
        if isinstance(error, AitError):
            return error
        faults = [t for label, value in zip(labels, values, strict=True) if (t := untakable(label, value))]
        return InputError(faults[0]) if faults else error

    def _check_names(self, given: Mapping[str, Any], expected: Mapping[str, Any], role: str) -> list[str]:
        missing = [name for name in expected if name not in given]
        extra = [name for name in given if name not in expected]
        if missing or extra:
            faults = [f"{role} '{name}' is missing" for name in missing]
            faults += [f"there is no {role} '{name}'" for name in extra]
            raise InputError(f"model {self.name}: {', '.join(faults)}; its {role}s are {', '.join(expected) or 'none'}")
        return list(expected)

    def _index_of(self, which: int | str, index: Mapping[str, int], role: str) -> int:
        if isinstance(which, str) and which in index:
            return index[which]
        if isinstance(which, int) and 0 <= which < len(index):
            return which
        kind = InputError if isinstance(cast(object, which), str | int) else ArgumentTypeError
        raise kind(f"model {self.name} has no {role} {which!r}; its {role}s are {', '.join(index) or 'none'}")

    @staticmethod
    def split(flat: Sequence[int], tensors: Sequence[Mapping[str, Any]]) -> list[tuple[int, ...]]:
        values = tuple(flat)
        ends = itertools.accumulate(tensor["rank"] for tensor in tensors)
        return [values[end - tensor["rank"] : end] for end, tensor in zip(ends, tensors, strict=True)]

    @staticmethod
    def named(shapes: list[tuple[int, ...]], tensors: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, ...]]:
        return {tensor["name"]: shape for tensor, shape in zip(tensors, shapes, strict=True)}
