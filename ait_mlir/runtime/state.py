"""Inputs of a model that are state: a run overwrites them, and the outputs in their place are the same tensors.

A model owns no state. The caller may pass the same tensors to every run, or different ones. A failed run may leave
memory half written; its address is recorded until the state is set or the memory is freed.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ait_mlir.dtypes import numpy_dtype
from ait_mlir.errors import InputError
from ait_mlir.runtime.data import AITData, address_of, copy_of, is_torch, owner_of, to_numpy
from ait_mlir.runtime.memory import DeviceMemory
from ait_mlir.runtime.opened import Tensors


class StatefulModel(DeviceMemory):
    """The methods of `Model` for inputs that are state."""

    def set_state(self, name: str, tensor: Any, value: Any) -> None:
        """Copy `value`, of the same shape and dtype, into a tensor that is passed as the input `name`, which is state.

        Call it first for state that a failed run may have left half written. It does not wait, so no run may be using
        the tensor. Raises `InputError` for an input that is not state, and for other shapes and dtypes.
        """
        if name not in self.state:
            raise InputError(f"input '{name}' is no state; model {self.name} has {', '.join(self.state) or 'none'}")
        source = np.ascontiguousarray(self.ait_data_to_numpy(value) if isinstance(value, AITData) else to_numpy(value))
        address, shape = address_of(f"input '{name}'", tensor)
        dtype = self._inputs[self._input_index[name]]["dtype"]
        if source.dtype.name != dtype or tuple(shape) != source.shape:
            raise InputError(
                f"input '{name}' is {dtype} of shape {list(shape)}, "
                f"its value {source.dtype.name} of shape {list(source.shape)}"
            )
        self._module.copy(address, source.ctypes.data, source.nbytes)
        self._module.state_was_set(address, source.nbytes)

    def forget_when_freed(self, inputs: Sequence[Any]) -> None:
        """Forget the state of a failed run when its tensors are freed: new tensors may get the same addresses."""
        model = weakref.ref(self)

        def forget(address: int, size: int) -> None:
            if (living := model()) is not None and living._module is not None:
                living._module.state_was_set(address, size)

        for name in self.state:
            value = inputs[self._input_index[name]]
            if (owner := owner_of(value)) is not None:
                address = value.data_ptr() if is_torch(value) else value.ctypes.data
                weakref.finalize(owner, forget, int(address), int(value.nbytes)).atexit = False

    @contextmanager
    def private_state(self, inputs: Tensors) -> Generator[dict[str, Any]]:
        """The inputs by name, with copies of those that are state; the copies live until the scope ends."""
        named = dict(zip(self._input_index, self._ordered(inputs, self._input_index, "input"), strict=True))
        owned: list[int] = []
        try:
            for name in self.state:
                value = named[name]
                named[name] = copy_of(value, self._copied_data)
                owned += [named[name].data_ptr] if isinstance(value, AITData) else []
            yield named
        finally:
            for address in owned:
                self.free_memory(address)

    def _copied_data(self, data: AITData) -> AITData:
        copied = self.allocate_data(data.shape, data.dtype)
        self._module.copy(copied.data_ptr, data.data_ptr, math.prod(data.shape) * numpy_dtype(data.dtype).itemsize)
        return copied

    def _own(self) -> list[dict[str, Any]]:
        """The outputs that have buffers of their own."""
        return [t for t in self._outputs if t["in_place_of"] < 0]

    def _with_state(self, outputs: Tensors, inputs: Sequence[Any]) -> Tensors:
        """The buffers of all outputs, from those that have one of their own, or from all: the others are inputs."""
        if isinstance(outputs, Mapping):
            places = {t["name"]: inputs[t["in_place_of"]] for t in self._outputs if t["in_place_of"] >= 0}
            return {**places, **outputs}
        if isinstance(outputs, str) or len(outputs) != len(self._own()):
            return outputs
        return self._interleaved(outputs, inputs)

    def _interleaved(self, own: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """All outputs in order, from those that have a buffer of their own."""
        made = iter(own)
        return [inputs[t["in_place_of"]] if t["in_place_of"] >= 0 else next(made) for t in self._outputs]

    def _without_state(self, outputs: Tensors) -> Tensors:
        """The buffers of the outputs that have one of their own, from these, or from all."""
        if isinstance(outputs, Mapping):
            return {name: value for name, value in outputs.items() if name not in self.state.values()}
        if len(outputs) != len(self._outputs):
            return outputs
        return [value for value, t in zip(outputs, self._outputs, strict=True) if t["in_place_of"] < 0]
