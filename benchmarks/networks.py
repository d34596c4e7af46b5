"""Imported networks beside PyTorch: convolutional networks, a UNet, a recommender.

    python benchmarks/networks.py                                 # all of them
    python benchmarks/networks.py resnet50 --batch 1,32 --measure    # all kernels by time, whatever that takes
    python benchmarks/networks.py resnet50 --device cpu --batch 1
    python benchmarks/networks.py timm:swin_tiny_patch4_window7_224  # any model of timm, with images of its own size

The batch of an artifact is dynamic. On the GPU the peers are eager and torch.compile, each in a CUDA graph, with their
weights and images in channels-last order, which is the fastest that PyTorch has; ours replays its own
graph. On the CPU the peer is eager. Otherwise as `benchmarks/models.py`.

With `--rows FILE` the same command goes on where it was stopped. Several processes may share a file: each takes a
network that no other has taken, and they use a card in turns, so that one compiles while another times.
"""

from __future__ import annotations

import argparse
import copy
import gc
import math
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import Dim
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.errors import AitError
from ait_mlir.frontend import detect_target
from ait_mlir.importers.torch import from_torch
from ait_mlir.importers.torch.compiled import build
from ait_mlir.options import CompileOptions
from benchmarks import measure, record
from benchmarks.models import DTYPES, MODES, Ours, device_name, numbers, peer_runs, widened
from benchmarks.peers import dlrm, unet
from benchmarks.shared import Done, Results, Row, own_folder

Inputs = list[torch.Tensor]


@dataclass(frozen=True)
class Network:
    """A module, and its inputs at a batch; the inputs in `dynamic` have the batch as leading dim. Without such inputs
    all sizes are fixed."""

    make: Callable[[], nn.Module]
    inputs: Callable[[int, torch.dtype], Inputs]
    batches: tuple[int, ...] = (1, 32)
    dynamic: tuple[int, ...] = (0,)
    largest: int = 64


def timm_model(name: str) -> Network:
    """A model of timm, with images of the size that it was made for."""
    from tests.importers.vision import timm  # without torchvision, which stands in the way of transformers

    if not timm().is_model(name):
        raise AitError(f"timm has no model {name}")
    shape = timm().get_pretrained_cfg(name).input_size
    return Network(
        lambda: timm().create_model(name, pretrained=False),
        lambda batch, dtype: [torch.randn(batch, *shape).to(dtype)],
    )


NETWORKS: Mapping[str, Callable[[], Network]] = {
    "resnet50": partial(timm_model, "resnet50"),
    "resnetv2_50": partial(timm_model, "resnetv2_50"),
    "nf_resnet50": partial(timm_model, "nf_resnet50"),
    "mobilenetv3": partial(timm_model, "mobilenetv3_large_100"),
    "convnext": partial(timm_model, "convnext_tiny"),
    "coatnet": partial(timm_model, "coatnet_0_rw_224"),
    "unet": partial(Network, unet.UNet, unet.inputs, (2,), (0, 1, 2), 8),
    "dlrm": partial(Network, dlrm.DLRM, dlrm.inputs, (2048,), (0, 1), 4096),
}
TIMM = "timm:"


def network(name: str) -> Network:
    """The network of a name; `AitError` for an unknown name."""
    if name.startswith(TIMM):
        return timm_model(name.removeprefix(TIMM))
    if name not in NETWORKS:
        raise AitError(f"no network {name}; there are {', '.join(NETWORKS)}, and timm:MODEL")
    return NETWORKS[name]()


def randomized(module: nn.Module) -> nn.Module:
    """Set the statistics of batch norms, and weights that begin as zeros, as after some training: values neither vanish
    nor overflow, and no result follows from a bias alone."""
    generator = torch.Generator().manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d) and part.running_mean is not None and part.running_var is not None:
            part.running_mean.normal_(0, 0.1, generator=generator)
            part.running_var.uniform_(0.5, 1.5, generator=generator)
        elif isinstance(part, (nn.Linear, nn.Conv2d)) and not part.weight.any():
            nn.init.normal_(part.weight, 0, 0.02, generator=generator)
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
    hints = {"batch": sorted(batches)} if entry.dynamic else None
    return from_torch(module, tuple(example), dynamic_shapes=shapes, name=name, hints=hints)


def measure_network(name: str, entry: Network, args: argparse.Namespace) -> list[Row]:
    """The row of each batch."""
    dtype = DTYPES[args.dtype]
    torch.manual_seed(0)
    module = randomized(entry.make()).to(dtype)
    batches = args.batch or entry.batches
    title = f"{re.sub(r'[^a-z0-9]+', '_', name)}_{args.dtype}"
    start = time.perf_counter()
    imported = import_network(title, entry, module, batches, dtype)
    took, start = time.perf_counter() - start, time.perf_counter()
    folder = args.workdir / title
    options = CompileOptions(args.device, measure=args.measure, budget=args.tuning)
    result = build(imported, options, workdir=folder)
    print(f"{name}: imported in {took:.1f} s, compiled in {time.perf_counter() - start:.1f} s", flush=True)
    if args.keep:
        result.save(args.workdir / f"{title}.ait")  # for benchmarks/launches.py
    if args.compile_only:
        return []
    names, output = [item.name for item in imported.inputs.tensors], imported.outputs[0][1]
    with measure.alone(args.device):
        return compare(name, entry, module, batches, Ours(result.model, names, output), args)


def compare(
    name: str, entry: Network, module: nn.Module, batches: Sequence[int], ours: Ours, args: argparse.Namespace
) -> list[Row]:
    """Results and times at each batch, beside the peers."""
    dtype, on_gpu = DTYPES[args.dtype], args.device == "cuda"
    peer = module.to(args.device, memory_format=torch.channels_last)
    exact = copy.deepcopy(peer).double()
    rows: list[Row] = []
    for batch in batches:
        given = entry.inputs(batch, dtype)
        ours_in = dict(zip(ours.inputs or (), (t.to(args.device) for t in given), strict=True))
        theirs = to_device(given, args.device)
        with FlopCounterMode(display=False) as counter:
            eager = peer(*theirs)
        outputs = ours.model.run_with_tensors(ours_in, sync=True)
        outputs[ours.output].fill_(float("nan"))

        def run(ours_in: Any = ours_in, outputs: Any = outputs) -> Any:
            return ours.model.run_with_tensors(ours_in, outputs, sync=not on_gpu, graph_mode=on_gpu)

        run()
        ours.model.synchronize(torch.cuda.current_stream().cuda_stream if on_gpu else None)
        accuracy = measure.accuracy(outputs[ours.output], eager, exact(*widened(theirs)))
        runs = peer_runs(peer, theirs, args.device, args.peers)
        seconds = measure.median_seconds(
            {"ours": run, **runs}, args.device, args.budget, shortest=args.shortest, own_clock=args.own_clock
        )
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
        rows.append(Row(cells, ratio, accuracy.passed))
        del eager
        gc.collect()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="Imported networks beside PyTorch.")
    parser.add_argument(
        "networks", nargs="*", metavar="NETWORK", help=f"{', '.join(NETWORKS)} (default: all of these), or timm:MODEL"
    )
    add_options(parser)
    args = parser.parse_args()
    settle_options(parser, args)
    return report({name: network(name) for name in args.networks or NETWORKS}, args)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batch", type=numbers, help="batch sizes, such as 1,32 (default: the network's own)")
    parser.add_argument("--device", choices=["cuda", "cpu"], help="default: cuda where there is a card, else cpu")
    parser.add_argument("--dtype", choices=DTYPES, help="default: f16 on the GPU, f32 on the CPU")
    measure.add_options(parser)
    record.add_save(parser)
    parser.add_argument("--keep", action="store_true", help="keep the artifacts")
    parser.add_argument("--compile-only", action="store_true", help="make the artifacts and stop")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each time (default: %(default)s)")
    parser.add_argument("--shortest", action="store_true", help="shortest times instead of medians")
    parser.add_argument(
        "--own-clock",
        action="store_true",
        help="seconds of the thread alone, for a CPU with other work; OMP_NUM_THREADS=1",
    )
    parser.add_argument("--peers", default=",".join(MODES), help="what to run beside ours (default: %(default)s)")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="keep results; what the file has is not done again")
    parser.add_argument("--seconds", type=float, help="begin no network after so many (default: measure all)")
    parser.add_argument("--workdir", default="build/benchmarks", help="where artifacts go (default: %(default)s)")


def settle_options(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Set the defaults that depend on the machine, and refuse options that do not exist."""
    args.device = args.device or ("cuda" if detect_target().name() == "cuda" else "cpu")
    args.dtype = args.dtype or ("f16" if args.device == "cuda" else "f32")
    named = args.peers.split(",")
    if wrong := [p for p in named if p not in MODES]:
        parser.error(f"no peer {wrong[0]}; there are {', '.join(MODES)}")
    args.peers = [p for p in named if p == "eager" or (p == "compile" and args.device == "cuda")]
    if args.own_clock and (args.device == "cuda" or os.environ.get("OMP_NUM_THREADS") != "1"):
        parser.error("--own-clock is for one thread of a CPU: set OMP_NUM_THREADS=1")
    args.workdir = own_folder(args.workdir)


def report(networks: Mapping[str, Network], args: argparse.Namespace) -> int:
    """Measure networks and print a table of all measured networks; returns the exit code."""
    results = Results(args.rows)
    measure_all(networks, results, args)
    return print_table(networks, results, args)


def measure_all(networks: Mapping[str, Network], results: Results, args: argparse.Namespace) -> None:
    """Measure the networks that no other process measures; no network begins after the time is over."""
    start = time.monotonic()
    print(f"{args.dtype}, {device_name(args)}, torch {torch.__version__}", flush=True)
    if not args.compile_only:
        with measure.alone(args.device):
            args.ceilings = measure.ceilings(args.device, DTYPES[args.dtype])
    for name, entry in networks.items():
        if args.seconds is not None and time.monotonic() - start > args.seconds:
            print(f"{args.seconds:g} s are over: the rest is left", flush=True)
            break
        with results.taken(name) as mine, torch.inference_mode():
            if not mine:
                continue
            rows, problem = list[Row](), ""
            try:
                rows = measure_network(name, entry, args)
            except AitError as error:
                problem = str(error)
                print(f"error: {name}: {error}", file=sys.stderr, flush=True)
            except Exception as error:  # the process may be of no more use, but the others need not try this one
                results.add(Done(name, device_name(args), [], f"{type(error).__name__}: {error}"))
                raise
            results.add(Done(name, device_name(args), rows, problem))


def print_table(networks: Mapping[str, Network], results: Results, args: argparse.Namespace) -> int:
    """Print the rows of the measured networks, the worst first; returns the exit code."""
    found = [done for done in results.read() if done.network in networks]
    rows = sorted((row for done in found for row in done.rows), key=lambda row: -row.ratio)
    failed = [done for done in found if done.error]
    if rows:
        heads = ["network", "batch", "ours ms", *(f"{p} ms" for p in args.peers), "ours / best peer", "floor ms"]
        heads += ["max err / eager's", "rmse / eager's"]
        record.show(args.save, heads, [row.cells for row in rows], args.device)
        mean = math.exp(sum(math.log(row.ratio) for row in rows) / len(rows))
        print(
            f"ours / best peer of {len(rows)} rows: geometric mean {mean:.3f}, largest {rows[0].ratio:.2f}, "
            f"{sum(row.ratio > 1 for row in rows)} above 1; {', '.join(sorted({done.device for done in found}))}"
        )
    for done in failed:
        print(f"failed: {done.network}: {done.error}")
    missing = sorted(set(networks) - {done.network for done in found})
    for name in missing:
        print(f"not measured: {name}")
    return 1 if failed or missing or not all(row.passed for row in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
