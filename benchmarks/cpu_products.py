"""Products of f32 matrices on the CPU: ours with a packed weight, PyTorch's, and the peak rate on operands in
registers.

    python benchmarks/cpu_products.py --shapes 128x3072x768,1024x768x3072

"peak" is the rate of multiply-adds on vector registers, all threads at once, in the same rounds: clocks change with the
load and with what other tenants of the processor do, so shares of it mean more than rates. "tiles" is the same for f32
products as six of bf16 on the matrix unit (AMX), operands from the first-level cache; AIT_AMX=0 does without it. Every
shape (m x n x k) has weights of 256 MB in all, used one after another, so that they come from memory as in a model.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.driver import compile_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.build import build_with
from ait_mlir.lowering.toolchain import toolchain
from ait_mlir.runtime import Model
from ait_mlir.runtime.loading import runtime_library
from benchmarks import record
from benchmarks.measure import median_seconds

SHAPES = "128x768x768,128x3072x768,128x768x3072,1024x768x768,1024x3072x768,1024x768x3072"
WEIGHTS = 256 << 20
STEPS, CHAINS, BLOCKS = 10_000_000, 12, 100_000
PEAK = """\
#include <omp.h>
#include <stdint.h>
#include "ait/kernels/cpu/amx.h"
#include "ait/kernels/cpu/vector.h"
#ifdef AIT_CPU_AMX
namespace amx = ait::cpu::amx;
struct Nothing {
  void begin() {}
  template <int>
  void part() {}
  void end() {}
};
#endif
/// Blocks of 32 x 32 sums of 64 products on the matrix unit, on every thread; returns the number of operations on f32.
extern "C" int64_t tiles(int64_t blocks) {
  int64_t done = 0;
#ifdef AIT_CPU_AMX
#pragma omp parallel reduction(+ : done)
  {
    constexpr int64_t kSteps = 2, kTile = kSteps * amx::kStepBytes;
    alignas(64) static thread_local char planes[4 * kTile];
    alignas(64) float out[32 * 32];
    uint32_t state = 1;
    const auto numbers = [&state] {
      amx::Floats x;
      for (int i = 0; i < 16; ++i) x[i] = float(int32_t(state = state * 1664525u + 1013904223u)) * 0x1p-31f;
      return x;
    };
    for (int64_t step = 0; step < 4 * kSteps; ++step) {
      char* const to = planes + step * amx::kStepBytes;
      for (int64_t r = 0; r < amx::kTileRows; ++r) amx::split(numbers(), numbers(), to + r * 64);
    }
    const amx::TileRegisters registers;
    Nothing nothing;
    const char* const p = planes;
    for (int64_t i = 0; i < blocks; ++i) {
      amx::multiply_tiles<2>(p, p + kTile, p + 2 * kTile, p + 3 * kTile, kSteps, out, 32 * 4, nothing);
    }
    done += 2 * blocks * 32 * 32 * kSteps * amx::kTileDepth;
  }
#endif
  return done;
}
using V = ait::cpu::Vector<float>;
/// Multiplies and adds in registers, on every thread; returns the number of floating-point operations.
extern "C" int64_t peak(int64_t steps, float* out) {
  int64_t done = 0;
#pragma omp parallel reduction(+ : done)
  {
    V sums[CHAINS], x = V{} + 0.999f, y = V{} + 0.001f;
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; ++i) sums[i] = V{} + float(i + 2);  // 1 would stay 1, and not be computed
    for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 12
      for (int i = 0; i < CHAINS; ++i) sums[i] = sums[i] * x + y;
    }
    for (int i = 1; i < CHAINS; ++i) sums[0] += sums[i];
    *reinterpret_cast<V*>(out + 64 * omp_get_thread_num()) = sums[0];
    done += 2 * steps * CHAINS * ait::cpu::kLanes<float>;
  }
  return done;
}
"""


def model_of(m: int, n: int, k: int, count: int, folder: Path) -> Model:
    """`count` products of one input with a weight each."""
    body = "".join(
        f'  %w{i} = ait.param "w{i}" : !ait.tensor<{n} x {k} x f32>\n'
        f"  %y{i} = ait.gemm rcr %x, %w{i} : !ait.tensor<{m} x {n} x f32>\n"
        f'  ait.output "y{i}" %y{i} : !ait.tensor<{m} x {n} x f32>\n'
        for i in range(count)
    )
    module = parse_text(context(), f"ait.graph @product(%x: !ait.tensor<{m} x {k} x f32>) {{\n{body}}}\n")
    return Model(compile_module(module, output=folder / f"{m}_{n}_{k}.ait"))


def row(shape: str, peaks: dict[str, Callable[[], int]], folder: Path, budget: float) -> list[str]:
    """One row of the table."""
    m, n, k = (int(size) for size in shape.split("x"))
    count = max(1, WEIGHTS // (4 * n * k))
    model = model_of(m, n, k, count, folder)
    weights = [torch.randn(n, k) for _ in range(count)]
    for i, weight in enumerate(weights):
        model.set_constant(f"w{i}", weight)
    x, outputs = torch.randn(m, k), {f"y{i}": torch.empty(m, n) for i in range(count)}

    def torchs() -> None:
        for weight, out in zip(weights, outputs.values(), strict=True):
            torch.mm(x, weight.t(), out=out)

    runs = {"ours": lambda: model.run_with_tensors({"x": x}, outputs), "torch": torchs, **peaks}
    times = median_seconds(runs, "cpu", budget)
    work = 2.0 * m * n * k * count
    flops = {"ours": work, "torch": work, **{name: run() for name, run in peaks.items()}}
    rates = {name: flops[name] / times[name] / 1e9 for name in runs}
    shares = [f"{rates['ours'] / rates[p]:.0%}" for p in peaks]
    return [shape, *(f"{rate:.0f}" for rate in rates.values()), *shares, f"{rates['ours'] / rates['torch']:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--shapes", default=SHAPES, help="m x n x k, with commas between them (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds to spend on each time")
    record.add_save(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, torch.inference_mode():
        tools, openmp = toolchain("cpu", "native"), ("-fopenmp",)
        tools = replace(tools, compile_flags=tools.compile_flags + openmp, link_flags=tools.link_flags + openmp)
        library = build_with(tools, {"peak.cc": PEAK.replace("CHAINS", str(CHAINS))}, name, "compiling the peak")
        functions = ctypes.CDLL(str(library))
        functions.peak.argtypes, functions.peak.restype = (ctypes.c_int64, ctypes.c_void_p), ctypes.c_int64
        functions.tiles.argtypes, functions.tiles.restype = (ctypes.c_int64,), ctypes.c_int64
        sink = torch.zeros(64 * 1024)
        peaks: dict[str, Callable[[], int]] = {"peak": lambda: functions.peak(STEPS, sink.data_ptr())}
        if runtime_library("cpu").may_use_amx():
            peaks["tiles"] = lambda: functions.tiles(BLOCKS)
        rows = [row(shape, peaks, Path(name), args.budget) for shape in args.shapes.split(",")]
    heads = [f"{name} GFLOP/s" for name in ("ours", "torch", *peaks)]
    heads = ["m x n x k", *heads, *(f"ours / {p}" for p in peaks), "ours / torch"]
    record.show(args.save, heads, rows, "cpu")


if __name__ == "__main__":
    main()
