"""Kernels of libraries start when all launches before them have ended, although ours let the next one start early."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.dialects.ait.data import ParamOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.driver import compile_module
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model

pytestmark = pytest.mark.gpu

LATE = """
#include <stdint.h>
#include <stdio.h>
#include "ait/gpu/launch.h"
namespace {
using namespace ait::gpu;

// Copies long after the next launch was allowed to start, on few multiprocessors, so that there is room for it.
__global__ void late(const uint4* from, uint4* to, int64_t count) {
  allow_next();
  wait_for_previous();
  uint64_t start = 0, now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < 200000);
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) to[i] = from[i];
}

int32_t keep(void* self, const char* message) {
  snprintf(static_cast<char*>(self), 512, "%s", message);
  return 1;
}
}  // namespace

extern "C" int32_t copy_late(const uint4* from, uint4* to, int64_t bytes, char* message, void* stream) {
  const ait_host_v1 host = {message, keep};
  const ait::Context ctx{stream, &host};
  LaunchConfig config;
  config.grid = dim3(32), config.block = dim3(256), config.dependent = true;
  return launch(ctx, config, late, from, to, bytes / 16);
}
"""
TYPES = ("f16", "bf16")


def conv(t: str, kernel: str, epilogue: str = "") -> str:
    x, y = (f"!ait.tensor<8 x 56 x 56 x 64 x {t}>",) * 2
    tail = {
        "": "",
        "add": """ epilogue(%b, %x) {
  ^bb0(%acc: f32, %1: f32, %2: f32):
    %3 = ait.add %acc, %1 : f32
    %4 = ait.add %3, %2 : f32
    ait.yield %4 : f32
  }""",
    }[epilogue]
    return f"""ait.graph @g(%x: {x}) {{
  %w = ait.param "w" : !ait.tensor<64 x 3 x 3 x 64 x {t}>
  %b = ait.param "b" : !ait.tensor<64 x {t}>
  %0 = ait.conv %x, %w pad [1, 1]{tail} {{kernel = #ait.kernel<{kernel}>}} : {y}
  ait.output "y" %0 : {y}
}}
"""


def gemm(t: str, kernel: str, rows: int = 2048) -> str:
    x, y = (f"!ait.tensor<{rows} x 512 x {t}>",) * 2
    return f"""ait.graph @g(%x: {x}) {{
  %w = ait.param "w" : !ait.tensor<512 x 512 x {t}>
  %0 = ait.gemm rcr %x, %w {{kernel = #ait.kernel<{kernel}>}} : {y}
  ait.output "y" %0 : {y}
}}
"""


def attention(t: str, kernel: str) -> str:
    x = f"!ait.tensor<2 x 12 x 256 x 64 x {t}>"
    return f"""ait.graph @g(%x: {x}) {{
  %0 = ait.attention %x, %x, %x scale 0.125 {{kernel = #ait.kernel<{kernel}>}} : {x}
  ait.output "y" %0 : {x}
}}
"""


CASES = {
    **{f"conv-cudnn-{i}-{t}": conv(t, f'"cudnn", {{algo = {i} : i64}}') for i in range(4) for t in TYPES},
    **{f"conv-add-cudnn-{i}-{t}": conv(t, f'"cudnn", {{algo = {i} : i64}}', "add") for i in range(4) for t in TYPES},
    **{f"attention-cudnn-{t}": attention(t, '"cudnn", {}') for t in TYPES},
    **{f"gemm-cublaslt-{m}-{t}": gemm(t, '"cublaslt", {}', m) for m in (8, 128, 2048) for t in (*TYPES, "f32")},
    **{f"gemm-{p}-{t}": gemm(t, f'"{p}", {{}}') for p in ("native", "hopper") for t in TYPES},
    **{f"conv-{p}-{t}": conv(t, f'"{p}", {{}}') for p in ("mma", "hopper") for t in TYPES},
    **{f"attention-{p}-{t}": attention(t, f'"{p}", {{}}') for p in ("native", "hopper") for t in TYPES},
}


@pytest.fixture(scope="module")
def copy_late(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., int]:
    arch = default_arch("cuda")
    if arch != "sm_90a":
        pytest.skip("needs a card of compute capability 9.0")
    path = build_library({"late.cu": LATE}, Target("cuda", arch), tmp_path_factory.mktemp("late"))
    function = ctypes.CDLL(str(path)).copy_late
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p]
    return function


@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "graph"])
@pytest.mark.parametrize("name", CASES)
def test_a_launch_reads_what_the_one_before_writes_late(
    copy_late: Callable[..., int], tmp_path: Path, name: str, recorded: bool
) -> None:
    import torch

    message = ctypes.create_string_buffer(512)
    module, rng = parse_text(context(), CASES[name]), np.random.default_rng(0)
    weights: dict[str, np.ndarray] = {}
    for op in module.walk():
        if isinstance(op, ParamOp):
            kind = numpy_dtype(BY_IR[op.output.type.element_type].name)
            values = 0.1 * rng.standard_normal(op.output.type.static_shape())
            weights[op.param_name.data] = values.astype(kind)
    path = compile_module(module, CompileOptions("cuda"), output=tmp_path / "g.ait", constants=weights)
    with Model(path) as model:
        shape, kind = model.input_shapes({})["x"], getattr(torch, model.get_input_dtype("x"))
        new, x = torch.rand(shape, device="cuda").to(kind), torch.empty(shape, device="cuda", dtype=kind)
        x.copy_(new)
        want = model.run_with_tensors({"x": x}, sync=True)["y"].clone()
        y = torch.empty_like(want)

        def run() -> None:
            stream = torch.cuda.current_stream().cuda_stream
            assert copy_late(new.data_ptr(), x.data_ptr(), x.nbytes, message, stream) == 0, message.value.decode()
            model.run_with_tensors({"x": x}, {"y": y}, sync=False)

        again: Callable[[], None] = run
        if recorded:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run()
            again = graph.replay
        for _ in range(3):
            x.zero_()
            y.fill_(float("nan"))
            torch.cuda.synchronize()
            again()
            torch.cuda.synchronize()
            assert (y.double() - want.double()).abs().max() <= 0.02 * want.double().abs().max()
