"""Choose kernels by time: each candidate is compiled as a model of its own and run on the card that is there.

Plain timing: mean of replays in a graph, warm caches, at the hints of the dims (their maximum without hints). A
candidate's score is
the geometric mean over these points of its time over the best one there.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import Scope
from ait_mlir.errors import AitError, ToolchainError
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import detect_cuda_arch
from ait_mlir.passes.fragments import place, standalone
from ait_mlir.passes.select import Candidate, by_estimate, kernel_attr
from ait_mlir.passes.target import set_target

MAX_POINTS = 4
REPEAT = 20
_SEED = 20


@dataclass
class Timed:
    """A candidate with its seconds at each point."""

    candidate: Candidate
    seconds: list[float]


def require_device(target: Target) -> None:
    """Raise `PassError` unless there is something here to measure on."""
    if target.kind == "cuda" and detect_cuda_arch() is None:
        raise PassError(
            "kernels for cuda cannot be measured here: there is no card; leave out measure to choose by estimate"
        )
    if target.kind == "rocm":
        raise PassError("kernels for rocm cannot be measured: there is no runtime library for it; leave out measure")


def by_time(op: Operation, found: Sequence[Candidate], target: Target) -> Candidate:
    """The candidate with the best score; the estimate decides when there is one candidate, or none of them can be run
    alone."""
    if len(found) == 1:
        return found[0]
    timed = [t for t in measure(op, found, target) if t.seconds]
    if not timed:
        return by_estimate(op, found, target)
    best = [min(column) for column in zip(*(t.seconds for t in timed), strict=True)]
    return min(timed, key=lambda t: sum(math.log(s / b) for s, b in zip(t.seconds, best, strict=True))).candidate


def measure(op: Operation, found: Sequence[Candidate], target: Target) -> list[Timed]:
    """Compile every candidate (in parallel) and time it; one that cannot be built or run has no times."""
    with tempfile.TemporaryDirectory(prefix="ait_measure_") as folder:
        with ThreadPoolExecutor(max(1, min(len(found), os.cpu_count() or 1))) as pool:
            outputs = [Path(folder) / f"{i}.ait" for i in range(len(found))]
            paths = list(pool.map(_build, itertools.repeat(op), found, itertools.repeat(target), outputs))
        points = sample_points(scope_of(op))
        return [Timed(c, _time(p, points) if p is not None else []) for c, p in zip(found, paths, strict=True)]


def sample_points(scope: Scope) -> list[dict[str, int]]:
    """The values of the dims to measure at: all combinations of hints, at most `MAX_POINTS`, evenly taken."""
    choices = [[(d.name, v) for v in (d.hints or (d.hi,))] for d in scope.dims]
    points = [dict(p) for p in itertools.product(*choices)]
    step = max(1, math.ceil(len(points) / MAX_POINTS))
    return points[::step]


def module_of(op: Operation, candidate: Candidate, target: Target) -> ModuleOp:
    """A module whose graph is the op alone, on the candidate's kernels."""
    graph, alone = standalone(op)
    for part, (kernel, config) in zip(place(alone, candidate.fragment.cut), candidate.kernels, strict=True):
        part.attributes["kernel"] = kernel_attr(kernel, config)
    module = ModuleOp([graph])
    set_target(module, target)
    return module


def _build(op: Operation, candidate: Candidate, target: Target, output: Path) -> Path | None:
    from ait_mlir.driver import compile_module

    try:
        module = module_of(op, candidate, target)
        return compile_module(module, target.kind, arch=target.arch, start="selected", output=output)
    except ToolchainError:
        raise
    except AitError:
        return None


def _time(path: Path, points: Sequence[dict[str, int]]) -> list[float]:
    from ait_mlir.runtime import Model
    from ait_mlir.runtime.data import AITData

    seconds: list[float] = []
    try:
        with Model(path) as model:
            for point in points:
                inputs: dict[str, AITData] = {}
                outputs: dict[str, AITData] = {}
                try:
                    for name, shape in model.input_shapes(point).items():
                        inputs[name] = model.numpy_to_ait_data(_random(shape, model.get_input_dtype(name)))
                    for name, shape in model.output_shapes(point).items():
                        zeros = np.zeros(shape, _numpy(model.get_output_dtype(name)))
                        outputs[name] = model.numpy_to_ait_data(zeros)
                    graph_mode = model.target == "cuda"
                    mean, _, _ = model.benchmark(inputs, outputs, REPEAT, graph_mode=graph_mode)
                    seconds.append(mean * 1e-3)
                finally:
                    for data in (*inputs.values(), *outputs.values()):
                        model.free_memory(data.data_ptr)
    except AitError:
        return []
    return seconds


def _numpy(dtype: str) -> np.dtype[Any]:
    from ait_mlir.runtime.data import numpy_dtype

    return numpy_dtype(dtype)


def _random(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(_SEED)
    if dtype in ("int32", "int64", "int8", "bool"):
        return rng.integers(0, 2, shape).astype(_numpy(dtype))
    return rng.standard_normal(shape, dtype=np.float32).astype(_numpy(dtype))
