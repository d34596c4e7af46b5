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
from ait_mlir.runtime.opened import OpenedLibrary, Tensors


class ModelState:
    """The inputs of a model that are state, and the outputs in their place."""

    def __init__(self, library: OpenedLibrary, memory: DeviceMemory) -> None:
        self._library = library
        self._memory = memory

    def set_state(self, name: str, tensor: Any, value: Any) -> None:
        """Copy `value`, of the same shape and dtype, into a tensor that is passed as the input `name`, which is state.

        Call it first for state that a failed run may have left half written. It does not wait, so no run may be using
        the tensor. Raises `InputError` for an input that is not state, and for other shapes and dtypes.
        """
        if name not in self._library.state:
            raise InputError(
                f"input '{name}' is no state; model {self._library.name} has {', '.join(self._library.state) or 'none'}"
            )
        source = np.ascontiguousarray(
            self._memory.ait_data_to_numpy(value) if isinstance(value, AITData) else to_numpy(value)
        )
        address, shape = address_of(f"input '{name}'", tensor)
        dtype = self._library.inputs[self._library.input_index[name]]["dtype"]
        if source.dtype.name != dtype or tuple(shape) != source.shape:
            raise InputError(
                f"input '{name}' is {dtype} of shape {list(shape)}, "
                f"its value {source.dtype.name} of shape {list(source.shape)}"
            )
        self._library.module.copy(address, source.ctypes.data, source.nbytes)
        self._library.module.state_was_set(address, source.nbytes)

    def forget_when_freed(self, inputs: Sequence[Any]) -> None:
        """Forget the state of a failed run when its tensors are freed: new tensors may get the same addresses."""
        library = weakref.ref(self._library)

        def forget(address: int, size: int) -> None:
            if (living := library()) is not None and living.module is not None:
                living.module.state_was_set(address, size)

        for name in self._library.state:
            value = inputs[self._library.input_index[name]]
            if (owner := owner_of(value)) is not None:
                address = value.data_ptr() if is_torch(value) else value.ctypes.data
                weakref.finalize(owner, forget, int(address), int(value.nbytes)).atexit = False

    @contextmanager
    def private_state(self, inputs: Tensors) -> Generator[dict[str, Any]]:
        """A context that yields the inputs by name. State inputs are copies, which live until it ends."""
        named = dict(zip(self._library.input_index, self._library.ordered_inputs(inputs), strict=True))
        owned: list[int] = []
        try:
            for name in self._library.state:
                value = named[name]
                named[name] = copy_of(value, self._copied_data)
                owned += [named[name].data_ptr] if isinstance(value, AITData) else []
            yield named
        finally:
            for address in owned:
                self._memory.free_memory(address)

    def _copied_data(self, data: AITData) -> AITData:
        copied = self._memory.allocate_data(data.shape, data.dtype)
        self._library.module.copy(
            copied.data_ptr, data.data_ptr, math.prod(data.shape) * numpy_dtype(data.dtype).itemsize
        )
        return copied

    def own(self) -> list[dict[str, Any]]:
        """The outputs that have buffers of their own."""
        return [t for t in self._library.outputs if t["in_place_of"] < 0]

    def with_state(self, outputs: Tensors, inputs: Sequence[Any]) -> Tensors:
        """The buffers of all outputs. `outputs` may leave out outputs in place of state: their
        buffer is the input's.
        """
        if isinstance(outputs, Mapping):
            places = {t["name"]: inputs[t["in_place_of"]] for t in self._library.outputs if t["in_place_of"] >= 0}
            return {**places, **outputs}
        if isinstance(outputs, str) or len(outputs) != len(self.own()):
            return outputs
        return self.interleaved(outputs, inputs)

    def interleaved(self, own: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """All outputs in order: `own` are outputs with their own buffers, the rest are inputs updated in place."""
        made = iter(own)
        return [inputs[t["in_place_of"]] if t["in_place_of"] >= 0 else next(made) for t in self._library.outputs]

    def without_state(self, outputs: Tensors) -> Tensors:
        """The buffers of the outputs with a buffer of their own; `outputs` has these or all."""
        if isinstance(outputs, Mapping):
            return {name: value for name, value in outputs.items() if name not in self._library.state.values()}
        if len(outputs) != len(self._library.outputs):
            return outputs
        return [value for value, t in zip(outputs, self._library.outputs, strict=True) if t["in_place_of"] < 0]
