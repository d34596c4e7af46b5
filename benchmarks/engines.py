"""The engines of `benchmarks/cpu.py`, each in a process of its own that runs a network when it is told to.

Only the process of torch.compile imports PyTorch, whose OpenMP threads spin for 3 ms after each loop.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from ait_mlir.errors import AitError
from ait_mlir.runtime import Model

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Prepared:
    """A network in an engine: a function that runs it, and one that returns the first result of the last run."""

    run: Callable[[], object]
    result: Callable[[], Array]


@dataclass(frozen=True)
class Job:
    """A network for the process of an engine; its files `model.ait`, `model.onnx` and `inputs.npz` are in a folder."""

    engine: str
    network: str
    dtype: str
    folder: Path
    threads: int
    output: str

    def inputs(self) -> list[Array]:
        with np.load(self.folder / "inputs.npz") as arrays:
            return [arrays[name] for name in arrays.files]


def _ours(job: Job) -> Prepared:
    model = Model(job.folder / "model.ait")
    wanted = np.dtype(ml_dtypes.bfloat16 if job.dtype == "bf16" else np.float32)
    given = [a.astype(wanted) if a.dtype.kind == "f" else a for a in job.inputs()]
    inputs = dict(zip(model.get_input_name_to_index_map(), given, strict=True))
    outputs = model.run_with_tensors(inputs)
    return Prepared(lambda: model.run_with_tensors(inputs, outputs), lambda: outputs[job.output])


def _compiled(job: Job) -> Prepared:
    import torch

    from benchmarks.cpu import case_of, first_of

    torch.set_num_threads(job.threads)
    module, given = case_of(job.network, job.dtype)
    run, last = torch.compile(module, dynamic=False), list[Any]()

    def call() -> None:
        with torch.inference_mode():
            last[:] = [run(*given)]

    return Prepared(call, lambda: first_of(last[0]).double().numpy())


def _onnxruntime(job: Job) -> Prepared:
    ort: Any = importlib.import_module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = job.threads
    session = ort.InferenceSession(str(job.folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for item, array in zip(session.get_inputs(), job.inputs(), strict=True):
        binding.bind_cpu_input(item.name, array)
    for item in session.get_outputs():
        binding.bind_output(item.name)
    return Prepared(lambda: session.run_with_iobinding(binding), lambda: binding.copy_outputs_to_cpu()[0])


def _openvino(job: Job) -> Prepared:
    ov: Any = importlib.import_module("openvino")
    core = ov.Core()
    config = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": job.threads}
    config["INFERENCE_PRECISION_HINT"] = job.dtype
    request = core.compile_model(core.read_model(str(job.folder / "model.onnx")), "CPU", config).create_infer_request()
    for i, array in enumerate(job.inputs()):
        request.set_input_tensor(i, ov.Tensor(array))
    return Prepared(request.infer, lambda: request.get_output_tensor(0).data)


ENGINES: Mapping[str, Callable[[Job], Prepared]] = {
    "ours": _ours,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
    "compile": _compiled,
}
"""Prepares a network in each engine."""


def serve() -> None:
    """The process of an engine: reads a job, writes its result; then reads counts of runs, writes seconds of one."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints of engines go to stderr

    def send(answer: Any) -> None:
        pickle.dump(answer, out)
        out.flush()

    try:
        job: Job = pickle.load(sys.stdin.buffer)
        prepared = ENGINES[job.engine](job)
        prepared.run()
        send(np.asarray(prepared.result()).astype(np.float64))
        while True:
            count: int = pickle.load(sys.stdin.buffer)
            start = time.perf_counter()
            for _ in range(count):
                prepared.run()
            send((time.perf_counter() - start) / count)
    except EOFError:
        return
    except Exception as error:
        send(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:300]}")


class Engine:
    """A network in the process of an engine. Raises `AitError` if the engine refuses the network."""

    def __init__(self, job: Job) -> None:
        command = [sys.executable, "-m", "benchmarks.engines"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.result: Array = self._asked(job)

    def _asked(self, question: Any) -> Any:
        to, back = self.process.stdin, self.process.stdout
        assert to is not None and back is not None
        try:
            pickle.dump(question, to)
            to.flush()
            answer = pickle.load(back)
        except (EOFError, BrokenPipeError):
            raise AitError(f"the process ended with {self.process.wait()}") from None
        if isinstance(answer, str):
            raise AitError(answer)
        return answer

    def seconds(self, count: int) -> float:
        """The time of one of `count` runs."""
        return self._asked(count)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


if __name__ == "__main__":
    from benchmarks import engines  # pickled jobs are of this module

    engines.serve()
