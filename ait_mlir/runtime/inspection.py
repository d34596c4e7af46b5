"""What each launch of a run computes: to find where NaN and infinite values come from."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from ait_mlir.errors import InputError
from ait_mlir.runtime.benchmark import MeasuredModel
from ait_mlir.runtime.data import Arguments, as_stream
from ait_mlir.runtime.opened import Tensors


@dataclass(frozen=True)
class ResultValues:
    """The values of a result of a launch. Lowest, highest and mean are those of the finite values; 0 if there are none.

    `index` is the place of the launch in the program, `result` that of the result in the launch.
    """

    launch: str
    index: int
    result: int
    elements: int
    nans: int
    infinities: int
    lowest: float
    highest: float
    mean: float

    def __str__(self) -> str:
        return (
            f"launch {self.index}, result {self.result} of {self.elements} elements: {self.nans} NaN, "
            f"{self.infinities} infinite, the others from {self.lowest:.6g} to {self.highest:.6g}, mean {self.mean:.6g}"
            f"; {self.launch}"
        )


class InspectedModel(MeasuredModel):
    """The methods of `Model` that look into a run, for a model that was compiled with `inspected`."""

    reports_nan_and_inf: bool = False
    """Whether each run reports, on stderr, the results of launches that have NaN or infinite values."""
    reports_all_outputs: bool = False
    """Whether each run reports the results of all launches."""

    def inspect(self, inputs: Tensors, outputs: Tensors, stream_ptr: int | None = None) -> list[ResultValues]:
        """Run the model once, waiting after each launch; returns the values of the results of all launches, in order.

        Left out are results that do not lie contiguously, and those whose size only the run finds. Raises `InputError`
        for a model that was not compiled to be inspected.
        """
        return self._inspected(inputs, outputs, stream_ptr)[2]

    def _launch(
        self,
        inputs: Tensors,
        outputs: Tensors,
        stream_ptr: int | None,
        sync: bool,
        graph_mode: bool,
        workspace: Any = None,
    ) -> tuple[list[Any], list[tuple[int, ...]]]:
        if not self._watched():
            return super()._launch(inputs, outputs, stream_ptr, sync, graph_mode, workspace)
        outs, shapes, values = self._inspected(inputs, outputs, stream_ptr)
        for value in values:
            if self.reports_all_outputs or value.nans or value.infinities:
                print(f"model {self.name}: {value}", file=sys.stderr)
        return outs, shapes

    def _watched(self) -> bool:
        return self.reports_nan_and_inf or self.reports_all_outputs

    def _inspected(
        self, inputs: Tensors, outputs: Tensors, stream_ptr: int | None
    ) -> tuple[list[Any], list[tuple[int, ...]], list[ResultValues]]:
        self._function()
        arguments = Arguments(self._device)
        given, outs = self._arguments(arguments, inputs, outputs)
        try:
            flat, numbers = self._module.inspect(as_stream(stream_ptr), len(self._inputs), *given)
        except (RuntimeError, TypeError, BufferError) as error:
            ins = self._ordered(inputs, self._input_index, "input")
            self.forget_when_freed(ins)
            raise self._explained(error, (*self._input_labels, *self._output_labels), (*ins, *outs)) from None
        rows = [float(number) for number in numbers]
        if not rows and self._launches:
            raise InputError(
                f"model {self.name} shows no results of launches: compile it with inspected=True, or with "
                "AITDebugSettings(check_all_outputs=True)"
            )
        values = [
            ResultValues(self._launches[int(row[0])], *map(int, row[:5]), *row[5:])
            for row in (rows[i : i + 8] for i in range(0, len(rows), 8))
        ]
        return outs, self._split(flat, self._outputs), values
