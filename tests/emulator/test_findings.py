"""Mistakes planted into small kernels: each must end the launch, or give a wrong result on the warps that it is wrong for."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.library import GUARD, EmulatedLibrary, Kind
from tests.kernels import loops, random_loops
from tests.kernels.harness import PRELUDE
from tests.kernels.library_gemm import on_kernel

KINDS: tuple[Kind, ...] = ("cuda", "rocm")
THREADS = 128
HEAD = """
#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/types.h"
#if defined(AIT_CUDA)
#include "ait/kernels/gpu/bulk.cuh"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/mma.cuh"
#endif
using namespace ait::gpu;
__global__ void planted_kernel(const float* in, float* out) {
"""
ENTRY = """
}
extern "C" int32_t run(const float* in, float* out, char* message, int64_t blocks, uint32_t shared, uint32_t cluster, int dependent) {
  const ait_host_v1 host = {message, test_fail};
  const ait::Context ctx{nullptr, &host};
  LaunchConfig config;
  config.grid = dim3(grid_size(blocks));
  config.block = dim3(128);
  config.shared_bytes = shared;
  config.cluster = cluster;
  config.dependent = dependent != 0;
  return launch(ctx, config, planted_kernel, in, out);
}
"""


@dataclass
class Planted:
    """A kernel of 128 threads from 256 floats to 256."""

    kind: Kind
    library: EmulatedLibrary

    def run(self, blocks: int = 1, shared: int = 0, cluster: int = 1, dependent: bool = False) -> np.ndarray:
        x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
        self.library.use()
        self.library.forget_buffers()
        self.library.buffer(x.ctypes.data, x.nbytes, "operand", 0)
        self.library.buffer(y.ctypes.data, y.nbytes, "result", 1)
        message = ctypes.create_string_buffer(512)
        places = (ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
        if self.library.lib.run(*places, message, ctypes.c_int64(blocks), shared, cluster, int(dependent)) != 0:
            raise RuntimeError(message.value.decode())
        return y


def plant(body: str, kind: Kind, workdir: Path, includes: str = "") -> Planted:
    source = PRELUDE + includes + HEAD + body + ENTRY
    return Planted(kind, EmulatedLibrary([], workdir, kind, sources={"planted.cc": source}))


NEIGHBOUR = """
  __shared__ float tile[128];
  tile[threadIdx.x] = in[threadIdx.x];
  BARRIER
  out[threadIdx.x] = tile[(threadIdx.x + DISTANCE) % 128];
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("distance", [1, 32, 127])
def test_missing_barrier(kind: Kind, distance: int, tmp_path: Path) -> None:
    body = NEIGHBOUR.replace("DISTANCE", str(distance))
    right = plant(body.replace("BARRIER", "__syncthreads();"), kind, tmp_path / "right").run()
    assert right[:128].tolist() == [float((i + distance) % 128) for i in range(128)]
    with pytest.raises(
        RuntimeError, match=r"planted_kernel: block \(0, 0, 0\), thread \d+: read of shared 'tile', byte \d+"
    ):
        plant(body.replace("BARRIER", ""), kind, tmp_path / "wrong").run()


@pytest.mark.parametrize("kind", KINDS)
def test_missing_barrier_before_the_next_write(kind: Kind, tmp_path: Path) -> None:
    """The values would be right on this machine: only the order of accesses tells."""
    body = """
  __shared__ float tile[128];
  tile[threadIdx.x] = 0.f;
  __syncthreads();
  const float other = tile[127 - threadIdx.x];
  BARRIER
  tile[threadIdx.x] = in[threadIdx.x] + other;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
"""
    plant(body.replace("BARRIER", "__syncthreads();"), kind, tmp_path / "right").run()
    with pytest.raises(
        RuntimeError, match=r"of shared 'tile', byte \d+, which thread \d+ (read|wrote) with no barrier between"
    ):
        plant(body.replace("BARRIER", ""), kind, tmp_path / "wrong").run()


WAVE_SUM = """
  float x = in[threadIdx.x];
  for (int mask = FIRST; mask > 0; mask /= 2) x += shuffle_xor(x, mask);
  if (threadIdx.x % kWarpSize == 0) out[threadIdx.x / kWarpSize] = x;
"""


def test_a_sum_over_32_lanes_is_wrong_for_waves_of_64(tmp_path: Path) -> None:
    planted = WAVE_SUM.replace("FIRST", "16")
    want = {"cuda": np.arange(128).reshape(4, 32).sum(1), "rocm": np.arange(128).reshape(2, 64).sum(1)}
    for kind in KINDS:
        right = plant(WAVE_SUM.replace("FIRST", "kWarpSize / 2"), kind, tmp_path / f"right-{kind}").run()
        np.testing.assert_array_equal(right[: len(want[kind])], want[kind])
    got = {kind: plant(planted, kind, tmp_path / f"planted-{kind}").run() for kind in KINDS}
    np.testing.assert_array_equal(got["cuda"][:4], want["cuda"])
    assert (got["rocm"][:2] != want["rocm"]).all()


def test_slots_for_warps_of_32_are_not_all_written_by_waves_of_64(tmp_path: Path) -> None:
    body = """
  __shared__ float slots[4];
  if (threadIdx.x % kWarpSize == 0) slots[threadIdx.x / kWarpSize] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) out[0] = slots[0] + slots[1] + slots[2] + slots[3];
"""
    assert plant(body, "cuda", tmp_path / "cuda").run()[0] == 0 + 32 + 64 + 96
    with pytest.raises(RuntimeError, match=r"read of shared 'slots', byte 8, which nothing wrote"):
        plant(body, "rocm", tmp_path / "rocm").run()


MISTAKES = {
    "read-past-end": ("out[threadIdx.x] = in[threadIdx.x + 129];", r"read of 4 bytes at byte 1024 of buffer 0, which has 1024"),
    "write-before": ("out[int(threadIdx.x) - 1] = 0.f;", r"write of 4 bytes at byte -4 of buffer 1"),
    "write-operand": ("const_cast<float*>(in)[threadIdx.x] = 0.f;", r"write of 4 bytes to buffer 0, an operand"),
    "read-result": ("out[0] = out[1] + in[0];", r"read of buffer 1, a result, at byte 4, which nothing wrote"),
    "write-twice": ("out[threadIdx.x / 2] = in[threadIdx.x];", r"write of buffer 1 at byte 0, which thread 0 of block 0 wrote in the same launch"),
    "misaligned": (
        "reinterpret_cast<uint4*>(out)[threadIdx.x / 64] = *reinterpret_cast<const uint4*>(in + 1);",
        r"read of 16 bytes at 0x\w+, which is not aligned to them",
    ),
    "shared-past-end": (
        "__shared__ float tile[128]; tile[threadIdx.x + 1] = 0.f;\n __syncthreads(); out[threadIdx.x] = tile[1];",
        r"write of 4 bytes at byte 512 of shared 'tile', which has 512",
    ),
    "dynamic-past-end": (
        "AIT_DYNAMIC_SHARED(16, memory); reinterpret_cast<float*>(memory)[threadIdx.x] = in[0];",
        r"write of 4 bytes at byte 256 of dynamic shared memory, which has 256",
    ),
    "uninitialised": ("__shared__ float tile[128]; if (threadIdx.x > 0) tile[threadIdx.x] = 0.f;\n __syncthreads(); out[threadIdx.x] = tile[threadIdx.x];",
        r"read of shared 'tile', byte 0, which nothing wrote"),
    "divergent-barrier": (
        "if (threadIdx.x < 96) __syncthreads(); out[threadIdx.x] = in[threadIdx.x];",
        r"(ends while thread \d+ waits at|after \d+ threads of the block have ended)",
    ),
    "different-barriers": (
        "if (threadIdx.x < 64) {\n __syncthreads();\n } else {\n __syncthreads();\n }",
        r"__syncthreads \(planted.cc:\d+\) while thread \d+ waits at __syncthreads \(planted.cc:\d+\): they must be the same",
    ),
    "divergent-shuffle": (
        "if (threadIdx.x % 2 == 0) out[threadIdx.x] = shuffle_xor(in[threadIdx.x], 2);",
        r"threads wait for others that never come: threads 0, 2, 4, .* wait at __shfl_xor",
    ),
    "global-store": (
        "__shared__ uint4 tile[128]; store_word(tile + threadIdx.x, uint4{}); out[threadIdx.x] = 0.f;",
        r"an address of shared memory, where an instruction accesses global memory alone",
    ),
    "local-of-another": (
        "__shared__ const float* place; float mine = 1.f; if (threadIdx.x == 0) place = &mine;\n __syncthreads(); out[threadIdx.x] = *place + mine;",
        r"read of a local variable of thread 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str, kind: Kind, tmp_path: Path) -> None:
    body, message = MISTAKES[name]
    with pytest.raises(RuntimeError, match=message):
        plant(body, kind, tmp_path).run(shared=256)


COPIED = """
  AIT_DYNAMIC_SHARED(16, memory);
  float* tile = reinterpret_cast<float*>(memory);
  if (threadIdx.x < 32) copy_async_16(shared_address(tile + threadIdx.x * 4), in + threadIdx.x * 4, 16);
  copy_async_commit();
  WAIT
  BARRIER
  out[threadIdx.x] = tile[threadIdx.x];
"""


@pytest.mark.parametrize(
    ("wait", "barrier", "message"),
    [
        ("", "__syncthreads();", r"which an asynchronous copy of thread \d+ is still going to write"),
        (
            "copy_async_wait<1>();",
            "__syncthreads();",
            r"which an asynchronous copy of thread \d+ is still going to write",
        ),
        ("copy_async_wait<0>();", "", r"(which nothing wrote|with no barrier between)"),
    ],
)
def test_asynchronous_copies_are_waited_for(wait: str, barrier: str, message: str, tmp_path: Path) -> None:
    right = plant(
        COPIED.replace("WAIT", "copy_async_wait<0>();").replace("BARRIER", "__syncthreads();"),
        "cuda",
        tmp_path / "right",
    )
    assert right.run(shared=512)[:128].tolist() == [float(i) for i in range(128)]
    with pytest.raises(RuntimeError, match=message):
        plant(COPIED.replace("WAIT", wait).replace("BARRIER", barrier), "cuda", tmp_path / "wrong").run(shared=512)


def test_dependent_launches_wait(tmp_path: Path) -> None:
    body = "WAIT out[threadIdx.x] = in[threadIdx.x];"
    plant(body.replace("WAIT", "wait_for_previous();"), "cuda", tmp_path / "right").run(dependent=True)
    with pytest.raises(RuntimeError, match=r"read of buffer 0 before wait_for_previous"):
        plant(body.replace("WAIT", ""), "cuda", tmp_path / "wrong").run(dependent=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_grid_beyond_what_a_launch_takes(kind: Kind, tmp_path: Path) -> None:
    planted = plant("if (blockIdx.x == 0) out[threadIdx.x] = in[threadIdx.x];", kind, tmp_path)
    for blocks in (2**31, 2**32, 2**32 + 1, 2**62, -1):
        with pytest.raises(RuntimeError, match="too large for one launch"):
            planted.run(blocks=blocks)
    assert planted.run(blocks=2)[63] == 63


def test_shared_memory_is_limited(tmp_path: Path) -> None:
    body = "AIT_DYNAMIC_SHARED(16, memory); memory[threadIdx.x] = 0; out[threadIdx.x] = memory[threadIdx.x];"
    assert plant(body, "cuda", tmp_path / "cuda").run(shared=227 * 1024)[0] == 0
    with pytest.raises(RuntimeError):
        plant(body, "cuda", tmp_path / "cuda").run(shared=228 * 1024)
    with pytest.raises(RuntimeError):
        plant(body, "rocm", tmp_path / "rocm").run(shared=65 * 1024)


def test_blocks_of_a_cluster_wait_for_each_other(tmp_path: Path) -> None:
    body = """
  AIT_DYNAMIC_SHARED(16, memory);
  reinterpret_cast<float*>(memory)[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
  BARRIER
  const float4 far = load_cluster_float4(shared_address(memory) + (threadIdx.x % 32) * 16, 1 - blockIdx.x % 2);
  cluster_barrier();  // done
  if (threadIdx.x < 32) reinterpret_cast<float4*>(out)[blockIdx.x * 32 + threadIdx.x] = far;
"""
    right = plant(body.replace("BARRIER", "cluster_barrier();"), "cuda", tmp_path / "right").run(2, 512, 2)
    np.testing.assert_array_equal(right, np.roll(np.arange(256), 128))
    with pytest.raises(
        RuntimeError, match=r"dynamic shared memory.*(with no barrier between|nothing wrote|which has 0)"
    ):
        plant(body.replace("BARRIER", "__syncthreads();"), "cuda", tmp_path / "wrong").run(2, 512, 2)
    left = body.replace("BARRIER", "cluster_barrier();").replace("cluster_barrier();  // done", "")
    with pytest.raises(
        RuntimeError, match=r"the block ends while thread \d+ of block 1 of the cluster may still touch"
    ):
        plant(left, "cuda", tmp_path / "left").run(2, 512, 2)


def test_atomics_may_meet(tmp_path: Path) -> None:
    body = """
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0.f;
  __syncthreads();
  ADD
  __syncthreads();
  if (threadIdx.x == 0) out[0] = sum;
"""
    for kind in KINDS:
        right = plant(body.replace("ADD", "atomicAdd(&sum, in[threadIdx.x]);"), kind, tmp_path / f"right-{kind}")
        assert right.run()[0] == sum(range(THREADS))
        with pytest.raises(RuntimeError, match="with no barrier between"):
            plant(body.replace("ADD", "sum += in[threadIdx.x];"), kind, tmp_path / f"wrong-{kind}").run()


def test_guards_of_the_compiler_are_no_shared_memory(tmp_path: Path) -> None:
    """g++ notes beside an array of a class in a template whether it is initialised, here behind the last tile."""
    case = loops.SPEC.case(random_loops.random_form(2962), "bf16")
    tiled = on_kernel(case, "tiles", {"along": 32, "across": 32, "lanes": 1})
    library = EmulatedLibrary([tiled], tmp_path, "cuda")
    assert any(name == GUARD for _, name, _, _ in library.variables)
    loops.check_loops(library, tiled, "random-bf16")
