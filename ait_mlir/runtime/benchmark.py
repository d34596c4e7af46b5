"""Times of runs."""

from __future__ import annotations

import statistics
import time
from typing import Any

from ait_mlir.errors import InputError
from ait_mlir.runtime.data import Arguments
from ait_mlir.runtime.opened import Tensors
from ait_mlir.runtime.running import RunningModel


class MeasuredModel(RunningModel):
    """The methods of `Model` that time it."""

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
