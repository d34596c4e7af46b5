"""Times of a model: of whole runs, and of each launch."""

from __future__ import annotations

import os
import statistics
from typing import Any

from ait_mlir.errors import InputError
from ait_mlir.runtime.data import Arguments, as_stream, as_whole
from ait_mlir.runtime.opened import OpenedLibrary, Tensors
from ait_mlir.runtime.profile import LaunchTime, Profile
from ait_mlir.runtime.run_arguments import RunArguments
from ait_mlir.runtime.running import Runner
from ait_mlir.runtime.state import ModelState


class Measurements:
    """Times a model. Runs use copies of state inputs, so the caller's stay unchanged; the returned outputs leave state
    out.
    """

    def __init__(self, library: OpenedLibrary, state: ModelState, arguments: RunArguments, runner: Runner) -> None:
        self._library = library
        self._state = state
        self._arguments = arguments
        self._runner = runner

    def benchmark(
        self,
        inputs: Tensors,
        outputs: Tensors,
        stream_ptr: int | None = None,
        graph_mode: bool = False,
        count: int = 10,
        repeat: int = 1,
        num_threads: int = 1,
        use_unique_stream_per_thread: bool = False,
    ) -> tuple[float, float, dict[str, Any]]:
        """Milliseconds per run, as mean and standard deviation over `repeat` batches, and the outputs.

        In a batch, each of `num_threads` threads makes `count` runs, without waits between them; the time of a run is
        the time of the batch over all its runs, of which at most `num_runtimes` are under way. All threads launch on
        the stream `stream_ptr`, or each on a stream of its own. They write the same outputs, which a last run of one
        thread writes again. Two runs of each thread before the first batch warm up and record the graphs.
        """
        count, repeat, num_threads = (
            as_whole(what, n, 1) for what, n in (("count", count), ("repeat", repeat), ("num_threads", num_threads))
        )
        if not use_unique_stream_per_thread:
            stream_ptr = as_stream(stream_ptr)
        elif stream_ptr:
            raise InputError(f"stream_ptr = {stream_ptr}, but each thread has a stream of its own: pass one of the two")
        with self._state.private_state(inputs) as inputs:
            outputs = self._state.without_state(outputs)
            self._runner.run(inputs, outputs, stream_ptr, True, graph_mode)
            arguments = Arguments(self._library.device)
            given, _ = self._arguments.add(arguments, inputs, outputs)
            times = self._library.module.benchmark(
                as_stream(stream_ptr),
                graph_mode,
                count,
                repeat,
                num_threads,
                use_unique_stream_per_thread,
                len(self._library.inputs),
                *given,
            )
            result = self._runner.run(inputs, outputs, stream_ptr, True, graph_mode)
        milliseconds = [float(time) for time in times]
        return statistics.fmean(milliseconds), statistics.pstdev(milliseconds), self._shown(result)

    def benchmark_with_tensors(
        self,
        inputs: Tensors,
        outputs: Tensors | None = None,
        stream_ptr: int | None = None,
        graph_mode: bool = False,
        count: int = 10,
        repeat: int = 1,
        num_threads: int = 1,
        use_unique_stream_per_thread: bool = False,
    ) -> tuple[float, float, dict[str, Any]]:
        """`benchmark` with the outputs and the stream of `run_with_tensors`."""
        outputs = self._runner.make_outputs(inputs) if outputs is None else outputs
        if stream_ptr is None and not use_unique_stream_per_thread:
            stream_ptr = self._runner.framework_stream(inputs, outputs)
        return self.benchmark(
            inputs, outputs, stream_ptr, graph_mode, count, repeat, num_threads, use_unique_stream_per_thread
        )

    def profile(
        self,
        inputs: Tensors,
        outputs: Tensors,
        num_iters: int = 10,
        filename: str | os.PathLike[str] | None = None,
        stream_ptr: int | None = None,
        *,
        trace: str | os.PathLike[str] | None = None,
        node_data: str | os.PathLike[str] | None = None,
    ) -> Profile:
        """The time of each launch, over `num_iters` runs after one that is not timed.

        Writes the rows of the report as JSON to `filename`, by operator and place (`{"gemm_rcr_0": {"ms_per_iter": ...,
        ...}, ...}`), the runs as a trace for Chrome (chrome://tracing) or Perfetto to `trace`, and the times as data
        for the nodes of Model Explorer to `node_data`. On a GPU the launches are timed by events between them, while
        the device never waits for the host; launches that overlap in a plain run do not overlap here.
        """
        num_iters = as_whole("num_iters", num_iters, 1)
        with self._state.private_state(inputs) as inputs:
            outputs = self._state.without_state(outputs)
            self._library.require_open()
            arguments = Arguments(self._library.device)
            given, outs = self._arguments.add(arguments, inputs, outputs)
            try:
                flat = self._library.module.profile(as_stream(stream_ptr), num_iters, len(self._library.inputs), *given)
            except (RuntimeError, TypeError, BufferError) as error:
                raise self._arguments.explained(error, inputs, outs) from None
        rows = [float(number) for number in flat]
        times = [LaunchTime(int(rows[i]), int(rows[i + 1]), rows[i + 2], rows[i + 3]) for i in range(0, len(rows), 4)]
        profile = Profile(self._library.name, self._library.target, num_iters, self._library.launches, times)
        if filename is not None:
            profile.write(filename)
        if trace is not None:
            profile.write_trace(trace)
        if node_data is not None:
            profile.write_node_data(node_data)
        return profile

    def profile_with_tensors(
        self,
        inputs: Tensors,
        outputs: Tensors | None = None,
        num_iters: int = 10,
        filename: str | os.PathLike[str] | None = None,
        stream_ptr: int | None = None,
        *,
        trace: str | os.PathLike[str] | None = None,
        node_data: str | os.PathLike[str] | None = None,
    ) -> Profile:
        """`profile` with the outputs and the stream of `run_with_tensors`."""
        outputs = self._runner.make_outputs(inputs) if outputs is None else outputs
        if stream_ptr is None:
            stream_ptr = self._runner.framework_stream(inputs, outputs)
        return self.profile(inputs, outputs, num_iters, filename, stream_ptr, trace=trace, node_data=node_data)

    def _shown(self, result: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in result.items() if name not in self._library.state.values()}
