"""Networks at batch 1 with one and with several streams, with and without CUDA graphs, beside PyTorch in a CUDA graph.

    python -m benchmarks.streams                       # on a card
    python -m benchmarks.streams --only inception --seconds 30
    python -m benchmarks.streams --plan                # without a card: launches on each stream, by estimate

Ratios are one stream over several: above 1 streams are faster. Results with streams must be bitwise those without.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import Any

import torch

from ait_mlir import driver
from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.importers.torch.compiled import build, from_torch
from ait_mlir.options import CompileOptions
from benchmarks import measure, record
from benchmarks.networks import randomized, timm_model
from benchmarks.peers import dlrm, inception

NETWORKS: dict[str, tuple[Any, Any]] = {
    "inception": (inception.inception_v3, inception.inputs),
    "dlrm": (dlrm.DLRM, dlrm.inputs),
}
WITHOUT_BRANCHES = {"resnet50": "resnet50"}


def make(name: str) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    """A network with random weights in f16, and its inputs at batch 1."""
    if name in WITHOUT_BRANCHES:
        entry = timm_model(WITHOUT_BRANCHES[name])
        maker, inputs = entry.make, entry.inputs
    else:
        maker, inputs = NETWORKS[name]
    torch.manual_seed(0)
    return randomized(maker()).eval().half(), inputs(1, torch.half)


def plan(name: str) -> None:
    """Print how many launches are on each stream, by estimates for an H200."""
    module, given = make(name)
    imported = from_torch(module, tuple(given), name=name)
    driver.run_to_phase(imported.module, "planned", CompileOptions("cuda", "sm_90a"), known=imported.constants.keys())
    ops = driver.program_of(imported.module).block.ops
    found = Counter(op.on for op in ops if isinstance(op, LaunchOp))
    print(f"{name}: {', '.join(f'stream {s}: {n} launches' for s, n in sorted(found.items()))}", flush=True)


def measure_network(name: str, args: argparse.Namespace) -> list[list[str]]:
    """A row for each way to run."""
    module, given = make(name)
    imported = from_torch(module, tuple(given), name=name)
    start = time.perf_counter()
    models = {
        which: build(imported, CompileOptions("cuda", measure=args.measure, streams=streams))
        for which, streams in (("one", 0), ("several", None))
    }
    print(f"{name}: compiled twice in {time.perf_counter() - start:.1f} s", flush=True)
    names = [item.name for item in imported.inputs.tensors]
    tensors = dict(zip(names, (t.cuda() for t in given), strict=True))
    outputs = {which: m.model.run_with_tensors(tensors, sync=True) for which, m in models.items()}
    peer, theirs = module.cuda().to(memory_format=torch.channels_last), [t.cuda() for t in given]
    recorded = torch.cuda.CUDAGraph()
    with torch.inference_mode():
        for _ in range(3):
            peer(*theirs)
        torch.cuda.synchronize()
        with torch.cuda.graph(recorded):
            peer(*theirs)
    rows: list[list[str]] = []
    for graph_mode in (True, False):

        def run(which: str, graph_mode: bool = graph_mode) -> Any:
            def call() -> None:
                models[which].model.run_with_tensors(tensors, outputs[which], sync=False, graph_mode=graph_mode)

            return call

        runs = {which: run(which) for which in models}
        seconds = measure.median_seconds(runs | {"eager": recorded.replay}, "cuda", args.budget, warmup=4)
        torch.cuda.synchronize()
        same = all(torch.equal(outputs["one"][n], outputs["several"][n]) for n in outputs["one"])
        rows.append(
            [
                name,
                "graph" if graph_mode else "plain",
                *(f"{seconds[n] * 1e6:.1f}" for n in ("one", "several", "eager")),
                f"{seconds['one'] / seconds['several']:.3f}",
                f"{seconds['several'] / seconds['eager']:.2f}",
                "yes" if same else "NO",
            ]
        )
        print("  ".join(rows[-1]), flush=True)
    return rows


def main() -> int:
    """Measure; returns 1 where results differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*NETWORKS, *WITHOUT_BRANCHES]
    parser.add_argument("--only", nargs="*", choices=known, default=known)
    parser.add_argument("--plan", action="store_true", help="only show the streams, without a card")
    parser.add_argument("--measure", action="store_true", help="choose kernels by time (default: by estimate)")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds for each candidate (default: 0.5)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no network after so many seconds")
    record.add_save(parser)
    args = parser.parse_args()
    start = time.perf_counter()
    rows: list[list[str]] = []
    for name in args.only:
        if time.perf_counter() - start > args.seconds:
            print(f"{name}: left out, the time is up")
        elif args.plan:
            plan(name)
        else:
            rows += measure_network(name, args)
    if rows:
        heads = ["network", "mode", "one us", "several us", "eager us", "one / several", "several / eager", "same bits"]
        record.show(args.save, heads, rows)
    return int(any(row[-1] == "NO" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
