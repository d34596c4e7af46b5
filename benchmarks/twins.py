"""Models imported from PyTorch beside the graphs of the same models written by hand: times, and how far results differ.

    python -m benchmarks.twins
    python -m benchmarks.twins bert llama --measure

Both sides have the same weights and inputs, run in one process and take turns. Their launches are the same
(`tests/importers/test_launches.py`), so times should differ by noise alone.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.errors import AitError
from ait_mlir.frontend import detect_target
from benchmarks import measure, record
from benchmarks.imported import NOT_IMPORTED
from benchmarks.models import DTYPES, Ours, compiled, device_name
from benchmarks.shared import own_folder
from benchmarks.workloads import MODELS, Size, Workload


def side(ours: Ours, work: Workload, size: Size, device: str) -> Any:
    """A function that runs a side at a size, on a GPU as a CUDA graph, and returns the result."""
    made, on_gpu = work.inputs(size, device), device == "cuda"
    inputs = dict(zip(ours.inputs or made, made.values(), strict=True))
    outputs = ours.model.run_with_tensors(inputs, sync=True)
    outputs[ours.output].fill_(float("nan"))

    def run() -> torch.Tensor:
        return ours.model.run_with_tensors(inputs, outputs, sync=not on_gpu, graph_mode=on_gpu)[ours.output]

    return run


def compare(name: str, args: argparse.Namespace) -> list[list[str]]:
    """A row for each size of one model."""
    entry = MODELS[name]
    sizes = [(b, s) for s in entry.lengths for b in entry.batches]
    work = entry.build(DTYPES[args.dtype], args.layers or entry.layers, sizes)
    both: dict[str, Ours] = {}
    for which, args.imported in (("by hand", False), ("imported", True)):
        both[which] = compiled(name, work, sizes, args)
    rows: list[list[str]] = []
    for size in sizes:
        runs = {which: side(ours, work, size, args.device) for which, ours in both.items()}
        a, b = (run().float() for run in runs.values())
        if args.device == "cuda":
            torch.cuda.synchronize()
        apart = ((a - b).norm() / a.norm()).item()
        seconds = measure.median_seconds(runs, args.device, args.budget)
        ms = [f"{s * 1e3:.3f}" for s in seconds.values()]
        rows.append(
            [name, f"{size[0]} x {size[1]}", *ms, f"{seconds['imported'] / seconds['by hand']:.3f}", f"{apart:.1e}"]
        )
        print("  ".join(rows[-1]), flush=True)
        del runs, a, b
        gc.collect()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    known = [name for name in MODELS if name not in NOT_IMPORTED]
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(known)} (default: all)")
    parser.add_argument("--device", choices=["cuda", "cpu"], help="default: cuda where there is one")
    parser.add_argument("--dtype", choices=DTYPES, help="default: f16 on the GPU, f32 on the CPU")
    parser.add_argument("--layers", type=int, help="layers of the models (default: the model's own)")
    parser.add_argument("--measure", action="store_true", help="choose our kernels by time, on the GPU")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each time (default: %(default)s)")
    parser.add_argument("--workdir", default="build/benchmarks", help="where artifacts go (default: %(default)s)")
    record.add_save(parser)
    args = parser.parse_args()
    args.device = args.device or ("cuda" if detect_target().name() == "cuda" else "cpu")
    args.dtype = args.dtype or ("f16" if args.device == "cuda" else "f32")
    if unknown := set(args.models) - set(known):
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    args.workdir = own_folder(args.workdir)
    print(f"{args.dtype}, {device_name(args)}, torch {torch.__version__}")
    with torch.inference_mode():
        rows = [row for name in args.models or known for row in compare(name, args)]
    heads = ["model", "batch x length", "by hand ms", "imported ms", "imported / by hand", "results apart"]
    record.show(args.save, heads, rows, args.device)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
