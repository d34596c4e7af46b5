"""Launches that start before the one before them has ended: what is still read is never overwritten."""

from __future__ import annotations

import copy
import ctypes
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch

pytestmark = pytest.mark.gpu

ROUNDS, BLOCKS, THREADS = 24, 264, 64
SIZE = BLOCKS * THREADS
ATTEMPTS = 50
"""Runs in which a launch may start early: none does while another process has the card."""

CHAIN = """
#include <stdint.h>
#include <stdio.h>
#include "ait/gpu/launch.h"
namespace {
using namespace ait::gpu;

__device__ uint64_t now() {
  uint64_t time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

__device__ int read_once(const int* from) {
  int value;
  asm volatile("ld.global.nc.L1::no_allocate.s32 %0, [%1];" : "=r"(value) : "l"(from));
  return value;
}

// Reads `in` long after it was allowed to, and long after the launches behind it were allowed to start.
template <bool kOnce>
__global__ void slow(const int* in, int* out, uint64_t* ended) {
  allow_next();
  wait_for_previous();
  for (const uint64_t start = now(); now() - start < 20000;) {}
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = kOnce ? read_once(in + i) : in[i];
  if (i == 0) *ended = now();
}

__global__ void early(int* count) {
  allow_next();
  wait_for_previous();
  if (blockIdx.x == 0 && threadIdx.x == 0) ++*count;
}

__global__ void overwrite(int* in, int value, uint64_t* started) {
  const uint64_t start = now();
  allow_next();
  wait_for_previous();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  in[gridDim.x * blockDim.x - 1 - i] = value;  // another block than the one that reads it
  if (i == 0) *started = start;
}

int32_t keep(void* self, const char* message) {
  snprintf(static_cast<char*>(self), 512, "%s", message);
  return 1;
}
}  // namespace

extern "C" int32_t chain(int* in, int* out, int* count, uint64_t* times, int rounds, int blocks, int threads, int between, int once,
                         char* message, void* stream) {
  const ait_host_v1 host = {message, keep};
  const ait::Context ctx{stream, &host};
  LaunchConfig config;
  config.grid = dim3(blocks), config.block = dim3(threads), config.dependent = true;
  for (int r = 0; r < rounds; ++r) {
    if (int32_t status = launch(ctx, config, overwrite, in, r, times + 2 * r)) return status;
    if (int32_t status = launch(ctx, config, once ? slow<true> : slow<false>, in, out + r * blocks * threads, times + 2 * r + 1)) return status;
    for (int i = 0; i < between; ++i) {
      if (int32_t status = launch(ctx, config, early, count)) return status;
    }
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., int]:
    arch = default_arch("cuda")
    if arch != "sm_90a":
        pytest.skip("needs a card of compute capability 9.0")
    path = build_library({"chain.cu": CHAIN}, Target("cuda", arch), tmp_path_factory.mktemp("chain"))
    return ctypes.CDLL(str(path)).chain


@pytest.mark.parametrize("once", [False, True], ids=["read", "read_once"])
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "graph"])
@pytest.mark.parametrize("between", [0, 1, 2, 5])
def test_a_launch_steps_later_waits_for_those_before(
    chain: Callable[..., int], between: int, recorded: bool, once: bool
) -> None:
    """`overwrite` starts while `slow` runs, `between` launches before it, and yet `slow` has read all when it writes."""
    import torch

    values = torch.full((SIZE,), -1, dtype=torch.int32, device="cuda")
    out = torch.full((ROUNDS, SIZE), -1, dtype=torch.int32, device="cuda")
    count = torch.zeros(1, dtype=torch.int32, device="cuda")
    times = torch.zeros(ROUNDS, 2, dtype=torch.int64, device="cuda")
    message = ctypes.create_string_buffer(512)

    def run() -> None:
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (values, out, count, times)]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        assert chain(*pointers, ROUNDS, BLOCKS, THREADS, between, int(once), message, stream) == 0, (
            message.value.decode()
        )

    run()
    torch.cuda.synchronize()
    again: Callable[[], None] = run
    if recorded:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        again = graph.replay
    for _ in range(ATTEMPTS):
        for tensor in (values, out, times):
            tensor.fill_(-1)
        count.zero_()
        again()
        torch.cuda.synchronize()
        assert count.item() == between * ROUNDS
        assert torch.equal(out, torch.arange(ROUNDS, dtype=torch.int32, device="cuda")[:, None].expand(ROUNDS, SIZE))
        started, ended = times[1:, 0], times[:-1, 1]
        if (started < ended).any():
            return
    pytest.skip("no launch started early, perhaps because others use the card: nothing was tested")


def test_replays_of_a_model_never_see_what_others_left(tmp_path: Path) -> None:
    """Runs of other sizes and inputs in between leave the arena full of what a launch that ran too early would read."""
    import torch

    from ait_mlir.frontend import compile_model
    from benchmarks.measure import accuracy
    from benchmarks.workloads import MODELS

    sizes = [(1, 128), (3, 128), (32, 128), (1, 16)]
    work = MODELS["bert"].build(torch.float16, 3, sizes)
    constants = work.peer.state_dict()
    model = compile_model(work.outputs, "cuda", tmp_path, "stress", constants=constants)
    peer = work.peer.cuda()
    exact = copy.deepcopy(peer).double()
    cases: list[tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], torch.Tensor]] = []
    with torch.inference_mode():
        for size in sizes:
            for scale in (1.0, -3.0):
                inputs = {n: t * scale for n, t in work.inputs(size, "cuda").items()}
                outputs = model.run_with_tensors(inputs, sync=True)
                first = outputs["y"].clone()
                eager = peer(*work.arguments(inputs))
                wide = exact(*(t.double() for t in work.arguments(inputs)))
                assert accuracy(first, eager, wide).passed, (size, scale)
                cases.append((inputs, outputs, first))
        rng = random.Random(1)
        for turn in range(400):
            inputs, outputs, first = rng.choice(cases)
            outputs["y"].fill_(float("nan"))
            model.run_with_tensors(inputs, outputs, sync=False, graph_mode=turn % 8 != 0)
            assert torch.equal(outputs["y"], first), turn
    assert model.graph_stats()["hits"] > 100
