"""Two products with a function of the scores between them: one launch beside two products, on a CUDA device or the CPU.

    python -m benchmarks.b2b                     # all sizes, each plain and with zeros after the diagonal
    python -m benchmarks.b2b --device cpu --only 64x64

A row is `silu(q @ k^T * 0.5) @ v` of `heads` matrices with so many rows, columns and elements a row. The pass
`fuse-attention` makes it one launch where sizes suggest it; the other artifact is compiled without that pass. On a card
both replay a CUDA graph, in turns. Ratios above 1 say that the pass should leave such sizes alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from ait_mlir.runtime import Model
from benchmarks import measure, record
from benchmarks.artifacts import compile_text
from benchmarks.models import DTYPES

SIZES = (
    (96, 64, 64, 64), (768, 64, 64, 32), (96, 256, 256, 64), (96, 512, 512, 64), (48, 512, 512, 128),
    (48, 1024, 1024, 64), (16, 2048, 2048, 64), (8, 16, 512, 64), (96, 16, 512, 64), (8, 16, 2048, 64),
    (96, 16, 2048, 64), (8, 128, 1024, 64), (8, 64, 4096, 64),
)  # fmt: skip
"""Heads, rows, columns, elements a row."""

PLAIN = """ait.graph @b2b(%q: !ait.tensor<{h} x {m} x {d} x {t}>, %k: !ait.tensor<{h} x {n} x {d} x {t}>, \
%v: !ait.tensor<{h} x {n} x {d} x {t}>) {{
  %half = ait.constant 0.5 : !ait.tensor<{t}>
{triangle}  %0 = ait.bmm rcr %q, %k : !ait.tensor<{h} x {m} x {n} x {t}>
  %1 = ait.mul %0, %half : !ait.tensor<{h} x {m} x {n} x {t}>
  %2 = ait.silu %1 : !ait.tensor<{h} x {m} x {n} x {t}>
{choice}  %4 = ait.bmm rrr %{last}, %v : !ait.tensor<{h} x {m} x {d} x {t}>
  ait.output "y" %4 : !ait.tensor<{h} x {m} x {d} x {t}>
}}
"""
TRIANGLE = """  %zero = ait.constant 0.0 : !ait.tensor<{t}>
  %i = ait.constant [{rows}] : !ait.tensor<{m} x 1 x i32>
  %j = ait.constant [{columns}] : !ait.tensor<{n} x i32>
  %kept = ait.compare ge %i, %j : !ait.tensor<{m} x {n} x i1>
"""
CHOICE = "  %3 = ait.where %kept, %2, %zero : !ait.tensor<{h} x {m} x {n} x {t}>\n"


def text_of(size: tuple[int, int, int, int], causal: bool, dtype: str) -> str:
    """The graph of a row."""
    h, m, n, d = size
    names = {"h": h, "m": m, "n": n, "d": d, "t": dtype}
    rows, columns = (", ".join(map(str, range(count))) for count in (m, n))
    triangle = TRIANGLE.format(**names, rows=rows, columns=columns) if causal else ""
    choice = CHOICE.format(**names) if causal else ""
    return PLAIN.format(**names, triangle=triangle, choice=choice, last=3 if causal else 2)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--dtype", choices=("f16", "bf16"), default="f16", help="default: %(default)s")
    parser.add_argument("--only", metavar="ROWSxCOLUMNS", help="default: all sizes")
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for each time (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilations at once")
    parser.add_argument("--workdir", type=Path, default=Path("build/benchmarks/b2b"), help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args(argv)
    args.workdir.mkdir(parents=True, exist_ok=True)
    cases = [(s, c) for s in SIZES for c in (False, True) if args.only in (None, f"{s[1]}x{s[2]}")]
    both = {"one": (), "two": ("fuse-attention",)}

    def make(case: tuple[tuple[int, int, int, int], bool], which: str) -> Path:
        size, causal = case
        name = f"{'x'.join(map(str, size))}_{'causal' if causal else 'plain'}_{which}.ait"
        options = [part for each in both[which] for part in ("--without", each)]
        return compile_text(text_of(size, causal, args.dtype), args.workdir / name, args.device, *options)

    with ThreadPoolExecutor(args.jobs) as pool:
        paths = {(case, which): pool.submit(make, case, which) for case in cases for which in both}
    rows: list[list[str]] = []
    for size, causal in cases:
        models = {which: Model(str(paths[(size, causal), which].result())) for which in both}
        h, m, n, d = size
        shapes = {"q": (h, m, d), "k": (h, n, d), "v": (h, n, d)}
        inputs = {n: torch.randn(s, device=args.device).to(DTYPES[args.dtype]) for n, s in shapes.items()}

        def run(which: str) -> measure.Run:
            model = models[which]  # noqa: B023
            outputs = model.run_with_tensors(inputs, sync=True)  # noqa: B023
            graphs = args.device == "cuda"
            return lambda: model.run_with_tensors(inputs, outputs, sync=False, graph_mode=graphs)  # noqa: B023

        with measure.alone(args.device):
            seconds = measure.median_seconds({w: run(w) for w in both}, args.device, args.budget, warmup=4)
        fused = "attention" in models["one"].ir_text
        ratio = seconds["one"] / seconds["two"]
        sizes = [*map(str, size), "causal" if causal else "plain", "yes" if fused else "no"]
        rows.append([*sizes, f"{seconds['one'] * 1e6:.1f}", f"{seconds['two'] * 1e6:.1f}", f"{ratio:.2f}"])
        print("  ".join(rows[-1]), flush=True)
    heads = ["heads", "rows", "columns", "width", "mask", "fused", "us", "two us", "ratio"]
    record.show(args.save, heads, rows, args.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
