"""HIP kernels keep everything in registers: a few of them here, all of them in `python -m tests.codegen.run rocm`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ait_mlir.errors import ToolchainError
from ait_mlir.lowering.toolchain import toolchain
from tests.codegen import scratch

KERNELS = """
#include "ait/kernels/gpu/copy_rows.cuh"
#include "ait/kernels/gpu/copy_tiled.cuh"
#include "ait/kernels/gpu/roi_align.cuh"
namespace ait::gpu {
namespace detail {
template __global__ void copy_rows_kernel(RowCopy, const uint16_t*, uint16_t*);
template __global__ void copy_squares_kernel<uint8_t, false>(TiledCopy, const uint8_t*, uint8_t*);
template __global__ void copy_squares_kernel<uint16_t, true>(TiledCopy, const uint16_t*, uint16_t*);
template __global__ void copy_squares_kernel<uint16_t, false>(TiledCopy, const uint16_t*, uint16_t*);
}  // namespace detail
template __global__ void roi_align_kernel<2, false>(Space<4, false>, int64_t, RoiShape<double, double, 3>, double*,
                                                    Pack<int64_t, int64_t, int64_t, int64_t>);
}  // namespace ait::gpu
"""
SPILLING = """
#include "ait/gpu/launch.h"
__global__ void spilling(int* data, int at) {
  int values[64];
  for (int i = 0; i < 64; ++i) values[i] = data[i];
  data[0] = values[data[at] % 64];
}
"""


def compiled(text: str, folder: Path) -> dict[str, int]:
    """The scratch memory of the kernels of a source."""
    try:
        tools = toolchain("rocm", "gfx90a")
    except ToolchainError as error:
        pytest.skip(str(error))
    source = folder / "kernels.hip"
    source.write_text(text)
    command = [
        str(tools.compiler),
        *tools.compile_flags,
        scratch.REMARKS,
        "--cuda-device-only",
        "-S",
        str(source),
        "-o",
        "-",
    ]
    environment = {**os.environ, **dict(tools.environment)}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
    return scratch.scratch_bytes(result.stderr)


def test_kernels_use_no_scratch_memory(tmp_path: Path) -> None:
    kernels = compiled(KERNELS, tmp_path)
    assert len(kernels) == 5
    assert scratch.problems(kernels, complete=False) == []


def test_scratch_memory_is_seen(tmp_path: Path) -> None:
    (problem,) = scratch.problems(compiled(SPILLING, tmp_path), complete=False)
    assert "spilling" in problem
    assert "bytes of scratch memory a lane" in problem


def test_an_exception_that_is_none_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "ALLOWED", {r"sort_kernel\w+Wide": "a reason"})
    kernels = {"_Z11sort_kernelI4WideE": 16, "other": 0}
    assert scratch.problems(kernels, complete=True) == []
    (problem,) = scratch.problems({**kernels, "_Z11sort_kernelI4WideE": 0}, complete=True)
    assert "uses scratch memory any more" in problem
    (problem,) = scratch.problems({**kernels, "_Z11sort_kernelI6NarrowE": 8}, complete=True)
    assert problem == "_Z11sort_kernelI6NarrowE uses 8 bytes of scratch memory a lane"
