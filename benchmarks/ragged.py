"""Attention of packed sequences: each of our kernels beside PyTorch's flash attention on offsets, on a CUDA device.

    python -m benchmarks.ragged                  # all rows
    python -m benchmarks.ragged --only skewed

A row has sequences of given lengths, one after the other, in f16, with 16 heads. All numbers are of replayed CUDA
graphs, in turns. "default" is the kernel that is chosen by estimate.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from ait_mlir.runtime import Model
from benchmarks import measure, record
from benchmarks.artifacts import compile_text

HEADS = 16
LENGTHS: dict[str, list[int]] = {
    "even": [1024] * 8,
    "short": [128] * 64,
    "drawn": [int(n) for n in torch.randint(16, 2048, (16,), generator=torch.Generator().manual_seed(1))],
    "skewed": [8192] + [64] * 31,
    "one": [8192],
}
KERNELS = ("native", "hopper", "default")


def text_of(lengths: Sequence[int], depth: int, causal: bool, kernel: str) -> str:
    """The graph of a row."""
    t = f"!ait.tensor<1 x {HEADS} x {sum(lengths)} x {depth} x f16>"
    packed = f"!ait.tensor<{sum(lengths)} x {HEADS} x {depth} x f16>"
    named = "" if kernel == "default" else f' {{kernel = #ait.kernel<"{kernel}", {{}}>}}'
    views = "".join(
        f"  %{n}1 = ait.permute %{n} [1, 0, 2] : !ait.tensor<{HEADS} x {sum(lengths)} x {depth} x f16>\n"
        f"  %{n}2 = ait.reshape %{n}1 : {t}\n"
        for n in "qkv"
    )
    return (
        f"ait.graph @packed(%q: {packed}, %k: {packed}, %v: {packed}, %o: !ait.tensor<{len(lengths) + 1} x i32>) {{\n"
        f"{views}  %y = ait.ragged_attention %q2, %k2, %v2 segments %o scale {depth**-0.5}"
        f"{' causal' if causal else ''}{named} : {t}\n"
        f"  %z = ait.reshape %y : !ait.tensor<{HEADS} x {sum(lengths)} x {depth} x f16>\n"
        f"  %w = ait.permute %z [1, 0, 2] : {packed}\n"
        f'  ait.output "y" %w : {packed}\n}}\n'
    )


def peer(inputs: dict[str, torch.Tensor], longest: int, depth: int, causal: bool) -> measure.Run:
    """PyTorch's flash attention, in a CUDA graph."""
    q, k, v, o = (inputs[n] for n in "qkvo")

    def call() -> torch.Tensor:
        forward = torch.ops.aten._flash_attention_forward
        return forward(q, k, v, o, o, longest, longest, 0.0, causal, False, scale=depth**-0.5)[0]

    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=LENGTHS, help="default: all rows")
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for each time (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilations at once")
    parser.add_argument("--workdir", type=Path, default=Path("build/benchmarks/ragged"), help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args(argv)
    args.workdir.mkdir(parents=True, exist_ok=True)
    cases = [(n, d, c) for n in LENGTHS if args.only in (None, n) for d in (64, 128) for c in (False, True)]

    def make(case: tuple[str, int, bool], kernel: str) -> Path:
        name, depth, causal = case
        path = args.workdir / f"{name}_{depth}_{'causal' if causal else 'plain'}_{kernel}.ait"
        return compile_text(text_of(LENGTHS[name], depth, causal, kernel), path, "cuda")

    with ThreadPoolExecutor(args.jobs) as pool:
        paths = {(case, kernel): pool.submit(make, case, kernel) for case in cases for kernel in KERNELS}
    rows: list[list[str]] = []
    for name, depth, causal in cases:
        lengths = LENGTHS[name]
        offsets = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32, device="cuda")
        packed = (torch.randn(sum(lengths), HEADS, depth, device="cuda", dtype=torch.float16) for _ in range(3))
        inputs = dict(zip("qkv", packed, strict=True)) | {"o": offsets}
        runs = {"PyTorch": peer(inputs, max(lengths), depth, causal)}
        for kernel in KERNELS:
            model = Model(str(paths[(name, depth, causal), kernel].result()))
            outputs = model.run_with_tensors(inputs, sync=True)
            runs[kernel] = lambda model=model, given=inputs, out=outputs: model.run_with_tensors(
                given, out, sync=False, graph_mode=True
            )
        with measure.alone("cuda"):
            seconds = measure.median_seconds(runs, "cuda", args.budget, warmup=4)
        flops = sum(n * n for n in lengths) * HEADS * 4 * depth / (2 if causal else 1)
        rows.append([name, str(depth), "causal" if causal else "plain", *(f"{seconds[r] * 1e6:.1f}" for r in runs)])
        rows[-1] += [f"{flops / seconds['default'] / 1e12:.0f}", f"{seconds['default'] / seconds['PyTorch']:.2f}"]
        print("  ".join(rows[-1]), flush=True)
    record.show(args.save, ["lengths", "width", "mask", "PyTorch us", *KERNELS, "TFLOP/s", "ratio"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
