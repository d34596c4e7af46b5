"""The tensors of a run as the runtime library takes them."""

from __future__ import annotations

from typing import Any

from ait_mlir.errors import InputError
from ait_mlir.runtime.constants import ModelConstants
from ait_mlir.runtime.data import Arguments
from ait_mlir.runtime.opened import OpenedLibrary, Tensors
from ait_mlir.runtime.state import ModelState


class RunArguments:
    """The arguments of calls of the runtime library that run a model, and the errors of these calls."""

    def __init__(self, library: OpenedLibrary, constants: ModelConstants, state: ModelState) -> None:
        self._library = library
        self._constants = constants
        self._state = state

    def add(self, arguments: Arguments, inputs: Tensors, outputs: Tensors) -> tuple[list[Any], list[Any]]:
        """All tensors of a run as the runtime library takes them, and the outputs in order. `arguments` keeps them."""
        library = self._library
        if unset := self._constants.unset:
            raise InputError(
                f"the model computes constants from others, which must all be set: set {', '.join(unset)} before "
                "the next run"
            )
        ins = library.ordered_inputs(inputs)
        outs = library.ordered_outputs(self._state.with_state(outputs, ins) if library.state else outputs)
        given = [arguments.add(label, value) for label, value in zip(library.input_labels, ins, strict=True)]
        for label, value in zip(library.output_labels, outs, strict=True):
            given.append(arguments.add(label, value, written=True))
        return given, outs

    def explained(self, error: Exception, inputs: Tensors, outs: list[Any]) -> Exception:
        """The error to raise when the library fails in a run; marks the state that it may have left half written."""
        ins = self._library.ordered_inputs(inputs)
        self._state.forget_when_freed(ins)
        return self._library.explained(error, self._library.labels, (*ins, *outs))
