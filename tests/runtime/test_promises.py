"""What a server may rely on: runs of many threads equal serial ones, memory stays flat, a fault
harms one call alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.lowering.build import build_deploy_library
from ait_mlir.lowering.toolchain import cpp_root, find_cxx
from ait_mlir.runtime import Model
from tests.runtime.conftest import B, W, tiny_inputs

ROOT = Path(__file__).parents[2]
BATCHES = (1, 2, 4, 5, 6, 8)  # the tiny model refuses others


@pytest.mark.parametrize("runtimes", [1, 2, 4])
@pytest.mark.parametrize("runs", [320, pytest.param(10_000, marks=pytest.mark.full)])
def test_sixteen_threads_compute_what_one_does(library: Path, runtimes: int, runs: int) -> None:
    shapes = [(batch, seq) for batch in BATCHES for seq in (1, 3, 8, 16)]
    inputs = [tiny_inputs(batch, seq, i) for i, (batch, seq) in enumerate(shapes)]
    with Model.from_library(library, "cpu", constants={"w": W, "b": B}, num_runtimes=runtimes) as model:
        serial = [{n: v.tobytes() for n, v in model.run_with_tensors(list(x)).items()} for x in inputs]

        def work(thread: int) -> list[int]:
            order = np.random.default_rng(thread).integers(0, len(inputs), runs // 16)
            return [
                int(i)
                for i in order
                if {n: v.tobytes() for n, v in model.run_with_tensors(list(inputs[i])).items()} != serial[i]
            ]

        with ThreadPoolExecutor(16) as pool:
            assert [wrong for found in pool.map(work, range(16)) for wrong in found] == []
        assert model.stats()["runs"] == len(inputs) + runs // 16 * 16


FLAT = """
import gc, sys
from pathlib import Path
import numpy as np
from ait_mlir.runtime import Model

def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def load():
    with Model(sys.argv[1], num_runtimes=2) as model:
        model.run_with_tensors([x, m])

runs, loads = int(sys.argv[2]), int(sys.argv[3])
x, m = np.ones((8, 32), np.float32), np.ones((8, 16), np.float32)
with Model(sys.argv[1]) as model:
    for part in range(5):
        for _ in range(runs // 5):
            model.run_with_tensors([x, m])
        if part == 0:
            start = resident()
    grown = resident() - start
for part in range(5):
    for _ in range(loads // 5):
        load()
    if part == 0:
        start = resident()
print(grown, resident() - start)
"""


@pytest.mark.parametrize(("runs", "loads"), [(2000, 50), pytest.param(10_000, 200, marks=pytest.mark.full)])
def test_memory_stays_flat(tiny_artifact: Path, runs: int, loads: int) -> None:
    done = _python(FLAT, str(tiny_artifact), str(runs), str(loads))
    by_runs, by_loads = map(int, done.split())
    assert by_runs < 1 << 20, f"{runs} runs left {by_runs} bytes"
    assert by_loads < 2 << 20, f"{loads} loads left {by_loads} bytes"


def _sanitized(name: str, artifact: Path, folder: Path, *args: str) -> str:
    """The output of the program NAME.cc, built with the runtime library and AddressSanitizer, which looks for leaks."""
    sanitizer = ("-g", "-fsanitize=address", "-fno-omit-frame-pointer")
    (folder / "libait_cpu.so").symlink_to(build_deploy_library("cpu", sanitizer))
    include, source = cpp_root() / "include", Path(__file__).with_name(f"{name}.cc")
    command = [find_cxx(), "-std=c++17", *sanitizer, "-rdynamic", "-I", include, source, "-o", folder / name]
    command += ["-L", folder, f"-Wl,-rpath,{folder}", "-lait_cpu"]
    subprocess.run(list(map(str, command)), check=True)
    environment = {**os.environ, "AIT_NUM_THREADS": "1", "ASAN_OPTIONS": "detect_leaks=1"}
    program = [str(folder / name), str(artifact), *args]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.full
def test_a_fault_at_each_allocation_and_launch(tiny_artifact: Path, tmp_path: Path) -> None:
    of_load, of_runs = map(int, _sanitized("faults", tiny_artifact, tmp_path).split())
    assert of_load > 50 and of_runs > 6 * 5


@pytest.mark.full
def test_no_byte_is_left_by_runs_and_loads(tiny_artifact: Path, tmp_path: Path) -> None:
    """10,000 runs, good and refused, and 200 cycles of load, run and free: no leak, and no more
    heap, mappings or files.
    """
    by_runs, by_loads = _sanitized("cycles", tiny_artifact, tmp_path, "10000", "200").splitlines()
    assert (by_runs, by_loads) == ("0 0 0", "0 0 0")


def _python(code: str, *args: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "AIT_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *args], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
