"""Imported networks beside PyTorch: convolutional networks, a UNet, a recommender.

    python benchmarks/networks.py                                 # all of them
    python benchmarks/networks.py resnet50 --batch 1,32 --measure    # all kernels by time, whatever that takes
    python benchmarks/networks.py resnet50 --device cpu --batch 1

The batch of an artifact is dynamic. On the GPU the peers are eager and torch.compile, each in a CUDA graph, with their
weights and images in channels-last order, which is the fastest that PyTorch has; ours replays its own
graph. On the CPU the peer is eager. Otherwise as `benchmarks/models.py`.
"""

from __future__ import annotations

import argparse
import copy
import gc
import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import Dim
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.errors import AitError
from ait_mlir.frontend import detect_target
from ait_mlir.frontend.target import as_target
from ait_mlir.importers.torch import from_torch
from ait_mlir.importers.torch.compiled import build
from benchmarks import measure
from benchmarks.models import DTYPES, MODES, device_name, numbers, peer_runs, widened
from benchmarks.peers import dlrm, unet

Inputs = list[torch.Tensor]


@dataclass(frozen=True)
class Network:
    """A module, and its inputs at a batch; `dynamic` are the inputs that have the batch as leading dim."""

    make: Callable[[], nn.Module]
    inputs: Callable[[int, torch.dtype], Inputs]
    batches: tuple[int, ...] = (1, 32)
    dynamic: tuple[int, ...] = (0,)
    largest: int = 64


def timm_model(name: str, size: int = 224) -> Network:
    def make() -> nn.Module:
        from tests.importers.vision import timm  # without torchvision, which stands in the way of transformers

        return timm().create_model(name, pretrained=False)

    return Network(make, lambda batch, dtype: [torch.randn(batch, 3, size, size).to(dtype)])


NETWORKS = {
    "resnet50": timm_model("resnet50"),
    "mobilenetv3": timm_model("mobilenetv3_large_100"),
    "convnext": timm_model("convnext_tiny"),
    "unet": Network(unet.UNet, unet.inputs, (2,), (0, 1, 2), 8),
    "dlrm": Network(dlrm.DLRM, dlrm.inputs, (2048,), (0, 1), 4096),
}


def randomized(module: nn.Module) -> nn.Module:
    """Set the statistics of batch norms as after some training, so that values neither vanish nor overflow."""
    generator = torch.Generator().manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d) and part.running_mean is not None and part.running_var is not None:
            part.running_mean.normal_(0, 0.1, generator=generator)
            part.running_var.uniform_(0.5, 1.5, generator=generator)
    return module.eval()


def to_device(tensors: Inputs, device: str) -> Inputs:
    """The inputs of PyTorch: images in channels-last order."""
    return [
        t.to(device, memory_format=torch.channels_last) if t.ndim == 4 and t.is_floating_point() else t.to(device)
        for t in tensors
    ]


def import_network(name: str, entry: Network, module: nn.Module, batches: Sequence[int], dtype: torch.dtype) -> Any:
    batch = Dim("batch", min=1, max=max(entry.largest, *batches))
    example = entry.inputs(max(2, *batches), dtype)
    shapes = tuple({0: batch} if i in entry.dynamic else {} for i in range(len(example)))
    return from_torch(module, tuple(example), dynamic_shapes=shapes, name=name, hints={"batch": sorted(batches)})


def measure_network(name: str, entry: Network, args: argparse.Namespace) -> list[tuple[list[str], float, bool]]:
    """The cells of each batch, ours over the best peer, and whether the result is right."""
    dtype, on_gpu = DTYPES[args.dtype], args.device == "cuda"
    torch.manual_seed(0)
    module = randomized(entry.make()).to(dtype)
    batches = args.batch or entry.batches
    title = f"{re.sub(r'[^a-z0-9]+', '_', name)}_{args.dtype}"
    start = time.perf_counter()
    imported = import_network(title, entry, module, batches, dtype)
    took, start = time.perf_counter() - start, time.perf_counter()
    folder = Path(args.workdir) / title
    result = build(imported, as_target(args.device), workdir=folder, measure=args.measure, budget=args.tuning)
    print(f"{name}: imported in {took:.1f} s, compiled in {time.perf_counter() - start:.1f} s", flush=True)
    if args.keep:
        result.save(Path(args.workdir) / f"{title}.ait")  # for benchmarks/launches.py
    if args.compile_only:
        return []
    peer = module.to(args.device, memory_format=torch.channels_last)
    exact = copy.deepcopy(peer).double()
    names, output = [item.name for item in imported.inputs.tensors], imported.outputs[0][1]
    rows: list[tuple[list[str], float, bool]] = []
    for batch in batches:
        given = entry.inputs(batch, dtype)
        ours_in = dict(zip(names, (t.to(args.device) for t in given), strict=True))
        theirs = to_device(given, args.device)
        with FlopCounterMode(display=False) as counter:
            eager = peer(*theirs)
        outputs = result.model.run_with_tensors(ours_in, sync=True)
        outputs[output].fill_(float("nan"))

        def run(ours_in: Any = ours_in, outputs: Any = outputs) -> Any:
            return result.model.run_with_tensors(ours_in, outputs, sync=not on_gpu, graph_mode=on_gpu)

        run()
        result.model.synchronize(torch.cuda.current_stream().cuda_stream if on_gpu else None)
        accuracy = measure.accuracy(outputs[output], eager, exact(*widened(theirs)))
        runs = peer_runs(peer, theirs, args.device, args.peers)
        seconds = measure.median_seconds({"ours": run, **runs}, args.device, args.budget, shortest=args.shortest)
        moved = sum(t.nbytes for t in (*given, eager)) + sum(
            p.nbytes for n, p in module.named_parameters() if not n.startswith("tables")
        )
        floor = args.ceilings.floor(counter.get_total_flops(), moved)
        best = min((s, n) for n, s in seconds.items() if n != "ours")[1]
        ratio = seconds["ours"] / seconds[best]
        cells = [
            name,
            str(batch),
            *(f"{seconds[n] * 1e3:.3f}" if n in seconds else "-" for n in ("ours", *args.peers)),
            f"{ratio:.2f} ({best})",
            f"{floor * 1e3:.3f}",
            f"{accuracy.max_ratio:.2f}",
            f"{accuracy.rmse_ratio:.2f}" + ("" if accuracy.passed else " FAILED"),
        ]
        print("  ".join(cells), flush=True)
        rows.append((cells, ratio, accuracy.passed))
        del eager
        gc.collect()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="Imported networks beside PyTorch.")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"{', '.join(NETWORKS)} (default: all)")
    add_options(parser)
    args = parser.parse_args()
    settle_options(parser, args)
    if unknown := set(args.networks) - set(NETWORKS):
        parser.error(f"no network {', '.join(sorted(unknown))}; there are {', '.join(NETWORKS)}")
    return report({name: NETWORKS[name] for name in args.networks or NETWORKS}, args)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batch", type=numbers, help="batch sizes, such as 1,32 (default: the network's own)")
    parser.add_argument("--device", choices=["cuda", "cpu"], help="default: cuda where there is a card, else cpu")
    parser.add_argument("--dtype", choices=DTYPES, help="default: f16 on the GPU, f32 on the CPU")
    measure.add_options(parser)
    parser.add_argument("--keep", action="store_true", help="keep the artifacts")
    parser.add_argument("--compile-only", action="store_true", help="make the artifacts and stop")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each time (default: %(default)s)")
    parser.add_argument("--shortest", action="store_true", help="shortest times instead of medians")
    parser.add_argument("--peers", default=",".join(MODES), help="what to run beside ours (default: %(default)s)")
    parser.add_argument("--workdir", default="build/benchmarks", help="where artifacts go (default: %(default)s)")


def settle_options(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Fill in what follows from the machine, and refuse what does not exist."""
    args.device = args.device or ("cuda" if detect_target().name() == "cuda" else "cpu")
    args.dtype = args.dtype or ("f16" if args.device == "cuda" else "f32")
    named = args.peers.split(",")
    if wrong := [p for p in named if p not in MODES]:
        parser.error(f"no peer {wrong[0]}; there are {', '.join(MODES)}")
    args.peers = [p for p in named if p == "eager" or (p == "compile" and args.device == "cuda")]


def report(networks: Mapping[str, Network], args: argparse.Namespace) -> int:
    """Measure networks and print a table; returns the exit code."""
    print(f"{args.dtype}, {device_name(args)}, torch {torch.__version__}")
    if not args.compile_only:
        args.ceilings = measure.ceilings(args.device, DTYPES[args.dtype])
    rows: list[tuple[list[str], float, bool]] = []
    failed: list[str] = []
    with torch.inference_mode():
        for name, entry in networks.items():
            try:
                rows += measure_network(name, entry, args)
            except AitError as error:
                print(f"error: {name}: {error}", file=sys.stderr, flush=True)
                failed.append(name)
    if rows:
        rows.sort(key=lambda row: -row[1])
        heads = ["network", "batch", "ours ms", *(f"{p} ms" for p in args.peers), "ours / best peer", "floor ms"]
        print(measure.table([[*heads, "max err / eager's", "rmse / eager's"], *(cells for cells, _, _ in rows)]))
        mean = math.exp(sum(math.log(ratio) for _, ratio, _ in rows) / len(rows))
        print(
            f"ours / best peer of {len(rows)} rows: geometric mean {mean:.3f}, largest {max(r for _, r, _ in rows):.2f}"
        )
    return 1 if failed or not all(passed for _, _, passed in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
