"""Runs one plan: addresses, scalars passed by value, the workspace, and the launch."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from ait_mlir.graph.binding import WORKSPACE_ALIGNMENT, Binding, scalar_bytes, workspace_address
from ait_mlir.graph.cuda_driver import write_scalar
from ait_mlir.graph.plans import Sized

SCALAR_BYTES = 16
"""The bytes of workspace for each scalar."""
SIZED_KEPT = 64
"""Numbers of rows of ragged tensors that a plan remembers."""


class Runner:
    """Runs a compiled plan on the tensors of a variant pack.

    The library takes the addresses of the inputs, of the memory of padded outputs, and of the outputs. A scalar passed
    by value that is part of the code selects the library: `specialise` gives the library for other numbers.
    """

    def __init__(
        self,
        compiled: Sized,
        binding: Binding,
        numbers: tuple[float, ...],
        specialise: Callable[[tuple[float, ...]], Sized],
    ) -> None:
        self.compiled = compiled
        self.binding = binding
        self._specialise = specialise
        self._numbers = self.last_numbers = numbers
        """The numbers of scalars that are part of the code: the plan's, and those of the last execution."""
        self._first_code = binding.inputs + binding.results
        self._count = len(binding.places)
        self._by_value = [i for i in range(binding.inputs) if binding.places[i].is_by_value]
        self.workspace = self.bytes_of(compiled, binding)
        self._arena = compiled.workspace
        self._sized: dict[Any, Sized] = {}
        self._space: tuple[Callable[[], Any], int, int, int] = (lambda: None, 0, 0, 0)
        """The workspace of the last call, its address, the bytes needed, and the address of the arena in it."""
        self._is_cpu = binding.device == "cpu"
        self._name = binding.graph

    @staticmethod
    def bytes_of(compiled: Sized, binding: Binding) -> int:
        """The bytes of the workspace: the arena, the scalars passed by value on a GPU, and room to align both."""
        scalars = 0 if binding.device == "cpu" else SCALAR_BYTES * sum(p.is_by_value for p in binding.places)
        needed = compiled.workspace + scalars
        return needed + WORKSPACE_ALIGNMENT if needed else 0

    def execute(self, pack: Mapping[Any, Any], workspace: Any, stream: int) -> None:
        """Launch the plan on a stream."""
        binding, compiled = self.binding, self.compiled
        if binding.bound:
            pack = binding.with_bound(pack)
        addresses, stage = binding.addresses(pack)
        if self._count > self._first_code:
            compiled = self._specialised(pack)
            del addresses[self._first_code :]
        if binding.ragged:
            compiled = self._with_rows(compiled, binding.rows(pack))
        needed = self.workspace if compiled is self.compiled else self.bytes_of(compiled, binding)
        arena = self._arena_in(workspace, needed) if needed else 0
        kept: list[Any] = []
        for slot, i in enumerate(self._by_value):
            number = scalar_bytes(binding.number(pack, i), binding.places[i].dtype)
            if self._is_cpu:
                kept.append(number)
                addresses[i] = number.ctypes.data
            else:
                place = arena + -(-compiled.workspace // SCALAR_BYTES) * SCALAR_BYTES + slot * SCALAR_BYTES
                write_scalar(place, number, stream)
                addresses[i] = place
        inputs = binding.inputs
        if binding.donated:
            memory = [addresses[inputs + i] for i in binding.donated]
            addresses[inputs:inputs] = memory
            inputs += len(memory)
        if stage is not None:
            stage.begin(stream)
        compiled.library.launch(stream, arena, compiled.workspace, compiled.shape, inputs, *addresses)
        if stage is not None:
            stage.finish(stream)

    def _arena_in(self, workspace: Any, needed: int) -> int:
        """The address of the arena in a workspace; a workspace known from the previous call is not checked again."""
        ref, address, enough, arena = self._space  # read once: another thread may call at the same time
        held = ref()
        if held is not None and held is workspace and enough == needed and held.data_ptr() == address:
            return arena
        arena = workspace_address(self._name, workspace, needed, self.binding.device)
        torch = sys.modules.get("torch")
        if torch is not None and type(workspace) is torch.Tensor:
            self._space = weakref.ref(workspace), workspace.data_ptr(), needed, arena
        return arena

    def _with_rows(self, compiled: Sized, rows: tuple[int, ...]) -> Sized:
        """The library for these numbers of rows of ragged tensors: two dims for each, after the dims of sizes."""
        dims = (*compiled.dims[: -2 * len(rows)], *(n for n in rows for _ in range(2)))
        key = compiled.library, dims
        if key not in self._sized:
            if len(self._sized) >= SIZED_KEPT:
                self._sized.clear()
            self._sized[key] = compiled.library.at(dims)
        return self._sized[key]

    def _specialised(self, pack: Mapping[Any, Any]) -> Sized:
        numbers = tuple(self.binding.number(pack, i) for i in range(self._first_code, self._count))
        self.last_numbers = numbers
        if numbers == self._numbers:
            return self.compiled
        return self._specialise(numbers)

    def synchronize(self, stream: int) -> None:
        """Wait for the stream."""
        self.compiled.library.synchronize(stream)
