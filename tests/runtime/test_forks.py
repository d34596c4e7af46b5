"""Models in forked processes: they run there, or say why not; none waits for threads that only the parent has."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.driver import compile_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.build import build_deploy_library, build_library
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import cpp_root, find_cxx
from ait_mlir.runtime import Model

ROOT = Path(__file__).parents[2]
GRAPH = """
ait.graph @wide(%x: !ait.tensor<b x 512 x f32>) dims {b = 1 to 256} {
  %w = ait.param "w" : !ait.tensor<512 x 512 x f32>
  %y = ait.gemm rcr %x, %w : !ait.tensor<b x 512 x f32>
  %z = ait.gelu %y : !ait.tensor<b x 512 x f32>
  ait.output "z" %z : !ait.tensor<b x 512 x f32>
}
"""
SECONDS = 60
"""A child that takes longer hangs."""


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose runs use all threads."""
    w = np.random.default_rng(0).standard_normal((512, 512), np.float32) / 32
    output = tmp_path_factory.mktemp("wide") / "wide.ait"
    return compile_module(parse_text(context(), GRAPH), constants={"w": w}, output=output)


def in_child(body: Callable[[], str]) -> str:
    """The result of `body` in a forked process."""
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        try:
            told = body()
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writes, told.encode()[:4000])
        os._exit(0)
    os.close(writes)
    end = time.monotonic() + SECONDS
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    with os.fdopen(reads, "rb") as file:
        return file.read().decode()


def data(rows: int = 200) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((rows, 512), np.float32)


@pytest.fixture(autouse=True)
def four_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")


def test_a_child_runs_the_model_of_its_parent(wide: Path) -> None:
    with Model(wide) as model:
        expected = model.run_with_tensors([data()])["z"]

        def run() -> str:
            found = [model.run_with_tensors([data()])["z"] for _ in range(3)]
            model.set_constant("w", np.zeros((512, 512), np.float32))
            zero = model.run_with_tensors([data()])["z"]
            return f"{all(np.allclose(z, expected, atol=1e-4) for z in found)} {zero.any()}"

        assert in_child(run) == "True False"
        assert in_child(lambda: in_child(run)) == "True False", "also in a child of the child"
        np.testing.assert_array_equal(model.run_with_tensors([data()])["z"], expected)


def test_a_child_loads_a_model_after_a_run_of_its_parent(wide: Path) -> None:
    with Model(wide) as model:
        expected = model.run_with_tensors([data()])["z"]

    def run() -> str:
        with Model(wide) as own:
            return str(np.allclose(own.run_with_tensors([data()])["z"], expected, atol=1e-4))

    assert in_child(run) == "True"


def _square(index: int) -> float:
    assert MODEL is not None
    return float(MODEL.run_with_tensors([data(1 + index)])["z"].sum())


MODEL: Model | None = None


class Rows(torch.utils.data.Dataset):
    """A data set whose items a model computes, in the processes of a `DataLoader`."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> float:
        return _square(index)


def test_workers_of_pools_and_data_loaders(wide: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Model(wide) as model:
        monkeypatch.setattr(sys.modules[__name__], "MODEL", model)
        expected = [_square(i) for i in range(8)]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            np.testing.assert_allclose(pool.map_async(_square, range(8)).get(SECONDS), expected, rtol=1e-3, atol=1e-2)
        loader = torch.utils.data.DataLoader(
            Rows(), batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=SECONDS
        )
        found = torch.cat(list(loader))
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-3, atol=1e-2)


def test_threads_of_a_child_share_its_threads(tmp_path: Path) -> None:
    """The thread that forked and others have helpers of their own."""
    source = (Path(__file__).parent / "threads_model.cc").read_text()
    library = build_library({"model.cc": source}, Target("cpu", "native"), tmp_path)
    code = f"""
import os, sys, threading
import numpy as np
from ait_mlir.runtime import Model

def threads(model, begun):
    y = np.zeros(1, np.float32)
    model.run([np.full(1, begun, np.float32)], [y])
    return int(y[0])

model = Model.from_library({str(library)!r}, "cpu", num_runtimes=2)
print(threads(model, 1), flush=True)
if os.fork() == 0:
    print(threads(model, 2), flush=True)
    other = threading.Thread(target=lambda: print(threads(model, 3), flush=True))
    other.start()
    other.join()
    os._exit(0)
os.wait()
"""
    environment = {**os.environ, "AIT_NUM_THREADS": "3", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=SECONDS
    )
    assert done.stdout.split() == ["3", "3", "3"], done.stderr


def test_a_model_that_ran_during_the_fork_is_refused(tmp_path: Path) -> None:
    """Its runtime is lent to a thread that the child does not have."""
    source = (Path(__file__).parent / "held_model.cc").read_text()
    library = build_library({"model.cc": source}, Target("cpu", "native"), tmp_path)
    with Model.from_library(library, "cpu") as model, Model.from_library(library, "cpu") as idle:
        x, y = np.zeros(1, np.float32), np.zeros(1, np.float32)
        running = threading.Thread(target=lambda: model.run([x], [y]))
        running.start()
        while y[0] == 0:
            time.sleep(0.001)
        one = np.ones(1, np.float32)
        told = in_child(lambda: str(model.run([one], [y])))
        assert told.startswith("RunError: the model was in use by another thread when this process was forked"), told
        assert in_child(lambda: str(idle.run([one], [np.zeros(1, np.float32)])["y"])) == "[1.]"
        x[0] = 1
        running.join()
        assert in_child(lambda: str(model.run([one], [y])["y"])) == "[1.]"


async def _twice(model: Model) -> float:
    first, second = [await model.run_async([data(4)]) for _ in range(2)]
    assert np.array_equal(first["z"], second["z"])
    return float(first["z"].sum())


def test_awaited_runs_of_a_child_have_threads(wide: Path) -> None:
    with Model(wide) as model:
        expected = asyncio.run(_twice(model))
        assert in_child(lambda: str(abs(asyncio.run(_twice(model)) - expected) < 1e-2)) == "True"


C_PROGRAM = """
#include <ait/model.h>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>
int main(int, char** argv) {
  ait::Model model(argv[1]);
  std::vector<float> x(200 * 512, 0.5f), y(200 * 512), z(200 * 512);
  model.run({{x.data(), {200, 512}}}, {{y.data(), {200, 512}}});
  std::fflush(stdout);
  if (fork() == 0) {
    alarm(60);
    model.run({{x.data(), {200, 512}}}, {{z.data(), {200, 512}}});
    ait::Model own(argv[1]);
    own.run({{x.data(), {200, 512}}}, {{z.data(), {200, 512}}});
    double worst = 0;
    for (size_t i = 0; i < y.size(); ++i) worst = std::max(worst, double(y[i] - z[i]) * double(y[i] - z[i]));
    std::printf("%d\\n", worst < 1e-6);
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  wait(&status);
  return status != 0;
}
"""


def test_a_child_of_a_program(wide: Path, tmp_path: Path) -> None:
    (tmp_path / "main.cc").write_text("#include <algorithm>\n" + C_PROGRAM)
    (tmp_path / "libait_cpu.so").symlink_to(build_deploy_library("cpu"))
    command = [find_cxx(), "-std=c++17", "-I", cpp_root() / "include", tmp_path / "main.cc", "-o", tmp_path / "main"]
    command += ["-L", tmp_path, f"-Wl,-rpath,{tmp_path}", "-lait_cpu"]
    subprocess.run(list(map(str, command)), check=True)
    done = subprocess.run([str(tmp_path / "main"), str(wide)], capture_output=True, text=True, timeout=2 * SECONDS)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
