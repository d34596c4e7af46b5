"""Products of 8-bit floats on a CUDA device at the shapes of the models, beside `torch._scaled_mm` and bf16.

    python -m benchmarks.low_precision                 # ten products; kernels as selection chooses them by estimate
    python -m benchmarks.low_precision --all --measure llama   # every product with these words in its row, by time
    python -m benchmarks.low_precision --compile-only  # no card needed

A row is x [m, k] by w [n, k], both f8E4M3FN, with a scale for each row of x and of w, in bf16. Each side runs in a CUDA
graph, in turn on sets of buffers that do not fit the cache together. Errors are those against float64 of the numbers
that are stored, ours over PyTorch's.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional as F

from ait_mlir.driver import compile_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.options import CompileOptions
from ait_mlir.runtime.model import Model
from benchmarks import measure, record
from benchmarks.kernels import CACHE, captured, seconds
from benchmarks.shared import own_folder

ROWS = (1, 16, 64, 256, 1024, 4096, 8192)
LAYERS = {
    "llama": ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)),
    "bert": ((2304, 768), (768, 768), (3072, 768), (768, 3072)),
    "vit": ((2304, 768), (3072, 768)),
    "deepseek": ((7168, 16384),),
}
"""Columns and K of the products of Llama-8B, BERT-base and ViT-B/16, and of one large product."""
FEW = (
    ("llama", 1, 28672, 4096), ("llama", 16, 4096, 4096), ("llama", 64, 28672, 4096), ("llama", 256, 6144, 4096),
    ("llama", 1024, 4096, 14336), ("llama", 8192, 28672, 4096), ("bert", 1024, 3072, 768), ("bert", 8192, 3072, 768),
    ("vit", 4096, 2304, 768), ("deepseek", 4096, 7168, 16384),
)  # fmt: skip
"""The products that are measured by default."""


@dataclass(frozen=True)
class Product:
    """One product of a model."""

    model: str
    m: int
    n: int
    k: int

    @property
    def label(self) -> str:
        return f"{self.model} {self.m} x {self.n} x {self.k}"

    def text(self) -> str:
        m, n, k = self.m, self.n, self.k
        result = f"!ait.tensor<{m} x {n} x bf16>"
        return (
            f"ait.graph @g(%x: !ait.tensor<{m} x {k} x f8E4M3FN>, %w: !ait.tensor<{n} x {k} x f8E4M3FN>, "
            f"%s: !ait.tensor<{m} x 1 x f32>, %t: !ait.tensor<{n} x 1 x f32>) {{\n"
            f"  %a = ait.dequantize %x scale %s : !ait.tensor<{m} x {k} x bf16>\n"
            f"  %b = ait.dequantize %w scale %t : !ait.tensor<{n} x {k} x bf16>\n"
            f"  %y = ait.gemm rcr %a, %b : {result}\n"
            f'  ait.output "y" %y : {result}\n}}'
        )


def cases(every: bool) -> Iterator[Product]:
    if not every:
        yield from (Product(*shape) for shape in FEW)
        return
    for model, layers in LAYERS.items():
        for n, k in layers:
            yield from (Product(model, m, n, k) for m in ROWS)


def compiled(case: Product, workdir: Path, by_time: bool) -> Path:
    name = case.label.replace(" ", "_")
    options = CompileOptions("cuda", default_arch("cuda"), measure=by_time)
    return compile_module(
        parse_text(context(), case.text()), options, output=workdir / f"{name}.ait", workdir=workdir / name
    )


def row(case: Product, path: Path, bandwidth: float) -> list[str]:
    """Check one product, then time all sides."""

    def buffers() -> dict[str, torch.Tensor]:
        x, w = (torch.randn(rows, case.k, device="cuda") for rows in (case.m, case.n))
        scales = [v.abs().amax(1, keepdim=True) / 448 for v in (x, w)]
        q, r = ((v / scale).to(torch.float8_e4m3fn) for v, scale in zip((x, w), scales, strict=True))
        return {"x": q, "w": r, "s": scales[0], "t": scales[1]}

    def library(of: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch._scaled_mm(of["x"], of["w"].t(), of["s"], of["t"].t(), out_dtype=torch.bfloat16)

    sets = [buffers()]
    moved = sum(b.nbytes for b in sets[0].values())
    while len(sets) * moved < CACHE and len(sets) < 24:
        sets.append(buffers())
    wide = [(of["x"].to(torch.bfloat16), of["w"].to(torch.bfloat16)) for of in sets]
    with Model(str(path)) as model:
        results = [model.run_with_tensors(of, sync=True)["y"] for of in sets]
        x, w, s, t = (sets[0][name].double() for name in "xwst")
        exact = (x * s) @ (w * t).t()
        accuracy = measure.accuracy(results[0], library(sets[0]), exact)
        del x, w, exact
        launches = max(4, len(sets))
        turns = [i % len(sets) for i in range(launches)]

        def ours(i: int) -> None:
            model.run_with_tensors(sets[i], {"y": results[i]}, sync=False)

        each = seconds(captured([lambda i=i: ours(i) for i in turns]), launches)
    peer = seconds(captured([lambda i=i: library(sets[i]) for i in turns]), launches)
    plain = seconds(captured([lambda i=i: F.linear(*wide[i]) for i in turns]), launches)
    flops = 2.0 * case.m * case.n * case.k
    return [
        case.label,
        *(f"{time * 1e6:.2f}" for time in (each, peer, plain)),
        *(f"{flops / time / 1e12:.0f}" for time in (each, peer)),
        f"{case.n * case.k / each / bandwidth:.0%}",
        f"{each / peer:.2f}",
        f"{plain / each:.2f}",
        f"{accuracy.rmse_ratio:.2f}" + ("" if accuracy.passed else " FAILED"),
    ]


HEADS = ["op", "us", "_scaled_mm us", "bf16 us", "TFLOP/s", "_scaled_mm's", "weights of copy rate", "ours / _scaled_mm"]
HEADS += ["bf16 / ours", "rmse / _scaled_mm's"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Products of 8-bit floats beside torch._scaled_mm and bf16.")
    parser.add_argument("words", nargs="*", help="words of labels (default: any)")
    parser.add_argument("--all", action="store_true", help="every shape of the models, not ten")
    parser.add_argument("--measure", action="store_true", help="choose our kernels by time")
    parser.add_argument("--compile-only", action="store_true", help="compile the products and stop")
    parser.add_argument("--workdir", default="build/benchmarks/low_precision", help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args()
    wanted = [c for c in cases(args.all) if all(w in c.label.split() for w in args.words)]
    if not wanted:
        parser.error(f"no product of {' '.join(args.words)}; models are {', '.join(LAYERS)}")
    workdir = own_folder(args.workdir)
    with ThreadPoolExecutor(1 if args.measure else 8) as pool:
        paths = list(pool.map(lambda c: compiled(c, workdir, args.measure), wanted))
    if args.compile_only:
        return 0
    ceilings = measure.ceilings("cuda", torch.float16)
    limits = f"{ceilings.flops / 1e12:.0f} TFLOP/s in f16, {ceilings.bytes / 1e9:.0f} GB/s"
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {limits}")
    print("  ".join(HEADS), flush=True)
    work = [functools.partial(row, case, path, ceilings.bytes) for case, path in zip(wanted, paths, strict=True)]
    return record.measured(args.save, HEADS, work, limits)


if __name__ == "__main__":
    sys.exit(main())
