"""Compile time beside `torch.compile`: from nothing, and from caches.

    python -m benchmarks.compile_time                              # on the card: single operations and networks
    python -m benchmarks.compile_time softmax bert timm:convnext_tiny --no-measure
    python -m benchmarks.compile_time chain lstm --device cpu

Each compilation is a process of its own, and they run one at a time. The clock starts when PyTorch, the compiler, the
module and its inputs are loaded, and stops when the first run has ended; the export is included. The first process has
empty caches (but our runtime library, which is built once on a machine), the second those of the first. CPU seconds are
those of the process and of the compilers that it waited for: inductor leaves some to workers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch._inductor.compile_fx  # pyright: ignore[reportUnusedImport]  # before the clock starts

from ait_mlir.importers.torch.compiled import compile
from ait_mlir.lowering.build import build_runtime
from benchmarks import measure, record
from benchmarks.models import DTYPES
from benchmarks.networks import network, randomized
from benchmarks.peers.lstm import Lstm
from benchmarks.workloads import MODELS

Case = tuple[nn.Module, list[torch.Tensor]]
SIDES = ("ours", "torch.compile")


class Softmax(nn.Module):
    """One operation bound by memory."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


class Chain(nn.Module):
    """Elementwise operations that become one launch."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(x * 2 + y) * torch.sigmoid(x - y)


def plain(make: Callable[[], nn.Module], *shapes: tuple[int, ...], dtype: torch.dtype) -> Case:
    return make().to(dtype), [torch.randn(*shape).to(dtype) for shape in shapes]


SMALL: Mapping[str, Callable[..., Case]] = {
    "softmax": partial(plain, Softmax, (4096, 1024)),
    "chain": partial(plain, Chain, (4096, 4096), (4096, 4096)),
    "lstm": partial(plain, Lstm, (16, 64, 256)),
}
DEFAULT = (*SMALL, "bert", "vit", "gpt2", "resnet50", "convnext", "unet")


def case(name: str, dtype: torch.dtype) -> Case:
    """The module of a name and its inputs, on the CPU; `AitError` for an unknown name."""
    torch.manual_seed(0)
    if name in SMALL:
        return SMALL[name](dtype=dtype)
    if name in MODELS:
        entry = MODELS[name]
        size = entry.batches[0], entry.lengths[0]
        work = entry.build(dtype, entry.layers, [size])
        return work.peer, work.arguments(work.inputs(size, "cpu"))
    found = network(name)
    return randomized(found.make()).to(dtype), found.inputs(found.batches[0], dtype)


@dataclass(frozen=True)
class Cost:
    """Seconds of a compilation and of the first run; `objects` are the files that our C++ compilers made."""

    seconds: float
    cpu_seconds: float
    objects: int = 0


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def compile_once(side: str, name: str, args: argparse.Namespace) -> Cost:
    """Compile a case in this process, and run it once."""
    module, inputs = case(name, DTYPES[args.dtype])
    module, inputs = module.eval().to(args.device), [x.to(args.device) for x in inputs]
    if args.device == "cuda":
        torch.cuda.synchronize()
    with torch.inference_mode():
        made, wall, cpu = objects(), time.perf_counter(), cpu_seconds()
        if side == "ours":
            run = compile(module, tuple(inputs), target=args.device, measure=args.measure, budget=args.tuning)
        else:
            run = torch.compile(module, dynamic=False)
        run(*inputs)
        if args.device == "cuda":
            torch.cuda.synchronize()
        return Cost(time.perf_counter() - wall, cpu_seconds() - cpu, objects() - made)


def objects() -> int:
    """The objects in our cache."""
    return sum(1 for _ in Path(os.environ.get("AIT_CACHE_DIR", os.devnull)).glob("*/objects/*/*.o"))


def in_process(side: str, name: str, caches: Path) -> Cost | None:
    """`compile_once` in a process of its own with these caches; None and a line on stderr if it fails."""
    environment = {
        **os.environ,
        "AIT_CACHE_DIR": str(caches / "ait"),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TRITON_CACHE_DIR": str(caches / "triton"),
    }
    command = [sys.executable, "-m", "benchmarks.compile_time", *sys.argv[1:], "--inside", side, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        error = done.stderr.strip().splitlines() or ["no message"]
        print(f"{name}, {side}: {error[-1][:200]}", file=sys.stderr, flush=True)
        return None
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def runtime_built(device: str, caches: Path) -> Path:
    """A cache with our runtime library alone."""
    os.environ["AIT_CACHE_DIR"] = str(caches)
    build_runtime("cuda" if device == "cuda" else "cpu")
    return caches


def measure_case(name: str, built: Path, folder: Path) -> list[list[str]]:
    """A row for each side."""
    rows: list[list[str]] = []
    first: dict[str, Cost] = {}
    for side in SIDES:
        caches = folder / f"{len(list(folder.iterdir()))}"
        shutil.copytree(built, caches / "ait")
        costs = [in_process(side, name, caches) for _ in range(2)]
        shutil.rmtree(caches)
        cells = [cell for cost in costs for cell in cells_of(cost)]
        if costs[0] is not None:
            first[side] = costs[0]
        made = str(costs[0].objects) if side == "ours" and costs[0] is not None else "-"
        ratio = f"{first[SIDES[0]].seconds / first[SIDES[1]].seconds:.2f}" if len(first) == len(SIDES) else "-"
        rows.append([name, side, *cells, made, ratio])
        print("  ".join(rows[-1]), flush=True)
    return rows


def cells_of(cost: Cost | None) -> list[str]:
    return ["-", "-"] if cost is None else [f"{cost.seconds:.1f}", f"{cost.cpu_seconds:.1f}"]


HEADS = ["case", "compiler", "first s", "CPU s", "again s", "CPU s", "objects", "ours / torch.compile"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="CASE",
        help=f"{', '.join(SMALL)}, a network of benchmarks.models or benchmarks.networks, timm:MODEL "
        f"(default: {' '.join(DEFAULT)})",
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="default: %(default)s")
    parser.add_argument("--dtype", choices=DTYPES, help="default: f16 on a GPU, f32 on the CPU")
    parser.add_argument("--inside", nargs=2, metavar=("COMPILER", "CASE"), help=argparse.SUPPRESS)
    measure.add_options(parser)
    record.add_save(parser)
    args = parser.parse_args()
    args.dtype = args.dtype or ("f16" if args.device == "cuda" else "f32")
    if args.inside is not None:
        side, name = args.inside
        print(json.dumps(asdict(compile_once(side, name, args))))
        return 0
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("PyTorch finds no CUDA device; use --device cpu")
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="ait_compile_time_") as temporary:
        folder = Path(temporary)
        built = runtime_built(args.device, folder / "runtime")
        for name in args.names or DEFAULT:
            rows += measure_case(name, built, folder)
    record.show(args.save, HEADS, rows, args.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
