"""The threads that share the loops of runs on the CPU: `runtime/src/cpu/pool.cc`, by themselves."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ait_mlir.lowering.toolchain import cpp_root, find_cxx

SOURCES = (Path(__file__).parent / "pool_check.cc", *(cpp_root() / "src" / n for n in ("cpu/pool.cc", "threads.cc")))


@pytest.fixture(scope="module", params=["", "-fsanitize=thread"], ids=["plain", "thread sanitizer"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pool") / "check"
    root = cpp_root()
    flags = [
        "-std=c++17",
        "-O1",
        "-pthread",
        "-I",
        str(root / "include"),
        "-I",
        str(root / "src"),
        *request.param.split(),
    ]
    subprocess.run([str(find_cxx()), *flags, *map(str, SOURCES), "-o", str(path)], check=True)
    return path


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_loops(program: Path, threads: int) -> None:
    """Counts, loops in loops, exceptions, several callers, forks; also with more threads than CPUs."""
    environment = {**os.environ, "AIT_NUM_THREADS": str(threads), "TSAN_OPTIONS": "die_after_fork=0"}
    ran = subprocess.run([str(program)], env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_one_processor(program: Path) -> None:
    """A helper leaves its caller the processor that both are on."""
    environment = {**os.environ, "AIT_NUM_THREADS": "2"}
    ran = subprocess.run([str(program), "one"], env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("ours", "openmp", "told"), [("", "3", 3), ("", "3,2", 3), ("2", "3", 2), ("", "many", None), ("", "", None)]
)
def test_the_number_of_threads(program: Path, ours: str, openmp: str, told: int | None) -> None:
    """AIT_NUM_THREADS, else OMP_NUM_THREADS, else the CPUs of the process."""
    environment = {**os.environ, "AIT_NUM_THREADS": ours, "OMP_NUM_THREADS": openmp}
    ran = subprocess.run([str(program), "count"], env=environment, capture_output=True, text=True)
    assert int(ran.stdout) == (len(os.sched_getaffinity(0)) if told is None else told)
