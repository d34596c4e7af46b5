"""Times of runs and of launches."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.errors import InputError
from ait_mlir.runtime import Model
from tests.runtime.conftest import tiny_inputs, tiny_reference
from tests.runtime.test_constants import X, linear, linear_artifact

__all__ = ["linear", "linear_artifact"]


def empty(batch: int, seq: int) -> list[np.ndarray]:
    return [np.empty((batch, 2 * seq), np.float32), np.empty(batch, np.float32)]


@pytest.mark.parametrize(("num_threads", "own_streams"), [(1, False), (3, False), (3, True)])
def test_benchmark_reports_times_and_outputs(model: Model, num_threads: int, own_streams: bool) -> None:
    x, m = tiny_inputs(2, 2)
    mean, deviation, result = model.benchmark(
        [x, m],
        empty(2, 2),
        count=5,
        repeat=3,
        num_threads=num_threads,
        use_unique_stream_per_thread=own_streams,
    )
    assert 0 < mean < 1e3 and deviation >= 0
    np.testing.assert_allclose(result["y"], tiny_reference(x, m)[0], rtol=1e-6)


def test_benchmark_with_tensors_makes_the_outputs(model: Model) -> None:
    x, m = tiny_inputs(2, 2)
    given = {"x": torch.from_numpy(x), "m": torch.from_numpy(m)}
    _, deviation, result = model.benchmark_with_tensors(given, repeat=1)
    assert deviation == 0 and isinstance(result["y"], torch.Tensor)
    np.testing.assert_allclose(result["y"].numpy(), tiny_reference(x, m)[0], rtol=1e-6)


def test_wrong_benchmarks_are_refused(model: Model) -> None:
    x, m = tiny_inputs(2, 2)
    with pytest.raises(InputError, match="count is 0, expected a whole number, at least 1"):
        model.benchmark([x, m], empty(2, 2), count=0)
    with pytest.raises(InputError, match="num_threads is -1"):
        model.benchmark([x, m], empty(2, 2), num_threads=-1)
    with pytest.raises(InputError, match="each thread has a stream of its own: pass one of the two"):
        model.benchmark([x, m], empty(2, 2), 64, use_unique_stream_per_thread=True)
    with pytest.raises(InputError, match=r"output 'y' has shape \[1, 4\], too small"):
        model.benchmark([x, m], [np.empty((1, 4), np.float32), np.empty(2, np.float32)])


def test_a_failing_run_of_a_thread_is_reported(model: Model) -> None:
    from ait_mlir.errors import RunError

    x, m = tiny_inputs(3, 2)
    with pytest.raises(RunError, match="a batch of 3 is refused"):
        model.benchmark([x, m], empty(3, 2), num_threads=2)


def test_a_profile_has_each_launch(linear: Model, tmp_path: Path) -> None:
    y = np.empty((4, 8), np.float32)
    expected = np.array(linear.run([X], [y])["y"])
    y[:] = 0
    files = {name: tmp_path / f"{name}.json" for name in ("trace", "node_data")}
    profile = linear.profile([X], [y], 3, tmp_path / "report.json", **files)
    np.testing.assert_array_equal(y, expected)
    report = profile.report()
    assert report["iterations"] == 3 and report["model"] == "linear"
    written = json.loads((tmp_path / "report.json").read_text())
    assert list(written.values()) == report["launches"] and next(iter(written)).startswith("gemm_")
    assert [name.rpartition("_")[2] for name in written] == [str(row["index"]) for row in report["launches"]]
    assert [row["index"] for row in report["launches"]] == list(range(len(report["launches"])))
    assert "gemm" in report["launches"][0]["launch"] and report["launches"][0]["calls"] == 1
    assert all(row["ms_per_iter"] >= row["ms_min"] >= 0 for row in report["launches"])
    assert sum(row["share"] for row in report["launches"]) == pytest.approx(1)
    assert report["ms_per_iter"] == pytest.approx(sum(row["ms_per_iter"] for row in report["launches"]))
    events = [e for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
    assert len(events) == 3 * len(report["launches"])
    ends = [event["ts"] + event["dur"] for event in events]
    assert all(later["ts"] >= end - 1e-6 for end, later in zip(ends, events[1:], strict=False))
    data = json.loads((tmp_path / "node_data.json").read_text())["linear"]
    assert data["results"] == {f"launch_{row['index']}": {"value": row["ms_per_iter"]} for row in report["launches"]}


def test_wrong_profiles_are_refused_and_nothing_is_written(linear: Model, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="num_iters is 0, expected a whole number, at least 1"):
        linear.profile_with_tensors([X], num_iters=0, filename=tmp_path / "report.json")
    with pytest.raises(InputError, match=r"input 'x' has rank 1"):
        linear.profile([X[0]], [np.empty((4, 8), np.float32)], filename=tmp_path / "report.json")
    assert not list(tmp_path.iterdir())


THREADS = """
import resource, sys
import numpy as np
from ait_mlir.errors import OutOfMemoryError
from ait_mlir.runtime import Model

x, m = np.ones((2, 4), np.float32), np.ones((2, 2), np.float32)
with Model(sys.argv[1]) as model:
    model.run_with_tensors([x, m])
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), -1))  # room for some threads
    try:
        model.benchmark_with_tensors([x, m], count=2, num_threads=4000)
    except OutOfMemoryError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    print(model.benchmark_with_tensors([x, m], count=2, num_threads=3)[0] > 0)
"""


def test_threads_that_cannot_be_started_are_an_error(tiny_artifact: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", THREADS, str(tiny_artifact)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    refused, works = done.stdout.splitlines()
    assert re.match(r"only \d+ of 4000 threads could be started \(.*\): use fewer, or allow the process more", refused)
    assert works == "True"
