"""Faults of a card: memory that another allocator holds, and a kernel that writes where there is no memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tvm_ffi.cpp

from ait_mlir.driver import compile_module, read_module
from ait_mlir.errors import OutOfMemoryError
from ait_mlir.host.cache import cache_dir
from ait_mlir.host.kernel_libraries import add_kernel_library
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model

pytestmark = pytest.mark.gpu

STRAY = """
ait.graph @stray(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 64} {
  %y = ait.call_ffi @fault_kernels "copy_or_stray"(%x) : !ait.tensor<b x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 8 x f32>
}
"""
OTHER = """
ait.graph @other(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 64} {
  %w = ait.param "w" : !ait.tensor<8 x f32>
  %y = ait.add %x, %w : !ait.tensor<b x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 8 x f32>
}
"""
WIDTH = 1 << 28
ROWS = f"""
ait.graph @rows(%x: !ait.tensor<b x {WIDTH} x f16>) dims {{b = 1 to 1024}} {{
  %y = ait.reduce max %x dims [1] : !ait.tensor<b x f16>
  ait.output "y" %y : !ait.tensor<b x f16>
}}
"""
"""An input that is one row, expanded, is copied into the arena: each row has 512 MiB there."""


def compiled(folder: Path, name: str, text: str, **constants: np.ndarray) -> Path:
    (folder / f"{name}.mlir").write_text(text)
    module, source = read_module(folder / f"{name}.mlir")
    return compile_module(
        module, CompileOptions("cuda"), output=folder / f"{name}.ait", source=source, constants=constants
    )


# ** out of memory **


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("rows"), "rows", ROWS)


def test_a_run_without_room_fails_and_is_right_once_there_is(rows: Path) -> None:
    """PyTorch holds half of the free memory, and the run needs more than the other half. With memory that leaks, there
    would be no room the second time."""
    row = torch.zeros(1, WIDTH, dtype=torch.float16, device="cuda")
    row[0, WIDTH // 3] = 7
    free = torch.cuda.mem_get_info()[0]
    many = min(1024, int(0.7 * free) // row.nbytes)

    def check(batch: int, graph_mode: bool) -> None:
        y = model.run_with_tensors([row.expand(batch, WIDTH)], graph_mode=graph_mode)["y"]
        assert torch.equal(y, torch.full_like(y, 7))

    for graph_mode in (False, True):
        with Model(rows) as model:
            held = torch.empty(free // 2, dtype=torch.uint8, device="cuda")
            check(2, graph_mode)
            for _ in range(2):
                with pytest.raises(OutOfMemoryError, match=r"the arena of a run needs \d+ bytes on cuda:0, \d+ of \d+"):
                    check(many, graph_mode)
                assert model.stats()["bytes"] == 0
                check(2, graph_mode)
            del held
            torch.cuda.empty_cache()
            for _ in range(3):
                check(many, graph_mode)
            assert model.stats()["bytes"] >= many * row.nbytes
            assert model.stats()["failures"] == 0  # nothing was launched


def printed_by(module: str, *arguments: str) -> dict[str, Any]:
    """The JSON that a module of the tests prints last, run in a process of its own."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", module, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# ** calls of the CUDA runtime that fail **


def test_a_fault_at_each_call_of_the_runtime_library(tmp_path: Path) -> None:
    """With state, two streams and a product of cuBLASLt: an error of ours each time, and the next runs are right."""
    failed = printed_by("tests.gpu.faults_of_calls", str(tmp_path))
    assert sum(failed.values()) > 100
    for name in ("cudaMalloc", "cudaLaunchKernelExC", "cudaEventRecord", "cudaStreamWaitEvent", "cudaGraphLaunch"):
        assert any(name in found for found in failed), f"{name} never failed; these did: {failed}"


# ** an address at which there is no memory **


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model whose kernel strays where its input is negative, and x + 2."""
    folder = cache_dir() / "fault_kernels"
    folder.mkdir(exist_ok=True)
    source = Path(__file__).with_name("kernel_library.cu")
    add_kernel_library(
        "fault_kernels", tvm_ffi.cpp.build("fault_kernels", cuda_files=[str(source)], build_directory=str(folder))
    )
    paths = tmp_path_factory.mktemp("faults")
    return compiled(paths, "stray", STRAY), compiled(paths, "other", OTHER, w=np.full(8, 2, np.float32))


@pytest.mark.parametrize("how", ["plain", "replay", "unwaited"])
def test_a_stray_write_is_an_error_of_this_and_all_later_runs(artifacts: tuple[Path, Path], how: str) -> None:
    """CUDA lets nothing more run in the process then: each call says why, none hangs, and the process ends as it should."""
    found = printed_by("tests.gpu.faults_inside", how, *map(str, artifacts))
    if how == "unwaited" and found["the launch"] is None:
        del found["the launch"]  # else the fault was there before the call returned
    assert len(found) >= 7
    for name, error in found.items():
        assert error is not None and error[0] == "RunError", name
        assert "an illegal memory access was encountered" in error[1], name
