"""Shows the results of each launch of a run, to find the origin of NaN and infinite values."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from ait_mlir.errors import InputError
from ait_mlir.runtime.data import Arguments, as_stream
from ait_mlir.runtime.opened import OpenedLibrary, Tensors
from ait_mlir.runtime.run_arguments import RunArguments


@dataclass(frozen=True)
class ResultValues:
    """The values of a result of a launch. Lowest, highest and mean are those of the finite values; 0 if there are none.

    `index` is the position of the launch in the program, `result` the position among its results.
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


class Inspection:
    """Looks into the runs of a model that was compiled with `inspected`."""

    def __init__(self, library: OpenedLibrary, arguments: RunArguments) -> None:
        self._library = library
        self._arguments = arguments
        self.report(False, False)

    def report(self, of_nan_and_inf: bool, of_all_outputs: bool) -> None:
        """Let each run report, on stderr, the results of launches that have NaN or infinite values, or all of them."""
        self.of_nan_and_inf, self.of_all_outputs = of_nan_and_inf, of_all_outputs
        self.reports = of_nan_and_inf or of_all_outputs

    def inspect(self, inputs: Tensors, outputs: Tensors, stream_ptr: int | None = None) -> list[ResultValues]:
        """Run the model once, waiting after each launch; returns the values of the results of all launches, in order.

        Results that are not contiguous, or whose size is known only after the run, are left out. Raises `InputError`
        for a model that was not compiled to be inspected.
        """
        return self._run(inputs, outputs, stream_ptr)[2]

    def reported(
        self, inputs: Tensors, outputs: Tensors, stream_ptr: int | None
    ) -> tuple[list[Any], list[tuple[int, ...]]]:
        """Run the model and report; returns the output buffers in order, and the actual shapes of the outputs."""
        outs, shapes, values = self._run(inputs, outputs, stream_ptr)
        for value in values:
            if self.of_all_outputs or value.nans or value.infinities:
                print(f"model {self._library.name}: {value}", file=sys.stderr)
        return outs, shapes

    def _run(
        self, inputs: Tensors, outputs: Tensors, stream_ptr: int | None
    ) -> tuple[list[Any], list[tuple[int, ...]], list[ResultValues]]:
        library = self._library
        library.require_open()
        arguments = Arguments(library.device)
        given, outs = self._arguments.add(arguments, inputs, outputs)
        try:
            flat, numbers = library.module.inspect(as_stream(stream_ptr), len(library.inputs), *given)
        except (RuntimeError, TypeError, BufferError) as error:
            raise self._arguments.explained(error, inputs, outs) from None
        rows = [float(number) for number in numbers]
        if not rows and library.launches:
            raise InputError(
                f"model {library.name} shows no results of launches: compile it with inspected=True, or with "
                "AITDebugSettings(check_all_outputs=True)"
            )
        values = [
            ResultValues(library.launches[int(row[0])], *map(int, row[:5]), *row[5:])
            for row in (rows[i : i + 8] for i in range(0, len(rows), 8))
        ]
        return outs, library.split(flat, library.outputs), values
