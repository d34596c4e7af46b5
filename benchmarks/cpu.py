"""Networks on a CPU beside the engines that people use there: ONNX Runtime, OpenVINO and torch.compile (Inductor).

    python -m benchmarks.cpu                          # all networks, f32
    python -m benchmarks.cpu resnet50 lstm --cores 0,1
    python -m benchmarks.cpu --dtype bf16             # ONNX Runtime has no bf16 on a CPU and is left out
    python -m benchmarks.cpu --load                   # while another process keeps each of the cores busy

Each engine runs in a process of its own, bound to the same cores, with a thread for each. The engines take turns, with
a rest between them in which the threads of the last one stop to spin; the times are medians over the turns. ONNX
Runtime and OpenVINO load the network as `torch.onnx.export` writes it and use buffers that are bound beforehand. Errors
are taken against float64, as a ratio to those of ONNX Runtime, or without it of PyTorch's eager mode.

Needs `pip install ait_mlir[torch] onnxscript onnxruntime openvino timm`; an engine that is not installed is left out.
"""

from __future__ import annotations

import argparse
import copy
import importlib.metadata
import importlib.util
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ait_mlir.errors import AitError
from ait_mlir.importers.torch import from_torch
from ait_mlir.importers.torch.compiled import build
from ait_mlir.options import CompileOptions
from benchmarks import record
from benchmarks.engines import ENGINES, Engine, Job
from benchmarks.models import DTYPES, widened
from benchmarks.networks import network, randomized
from benchmarks.peers import bert, gpt2, unet
from benchmarks.peers.lstm import Lstm
from benchmarks.random_networks import networks as random_networks

Inputs = list[torch.Tensor]
Case = tuple[nn.Module, Inputs]
REST = 0.03
"""Seconds between turns; the threads of the engines spin for less."""
_BUSY = "while True: pass"


class Gpt2Step(nn.Module):
    """A step of decoding: a token, its position, and the keys and values of the tokens before it, to the logits and the
    keys and values of the new token."""

    def __init__(self, config: gpt2.GPT2Config) -> None:
        super().__init__()
        self.model = gpt2.GPT2Model(config)

    def forward(self, ids: torch.Tensor, position: torch.Tensor, past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, new = self.model.wte(ids) + self.model.wpe(position), list[torch.Tensor]()
        for i, block in enumerate(self.model.h):
            split = (1, 1, block.attn.heads, -1)
            q, k, v = (t.view(split).transpose(1, 2) for t in block.attn.c_attn(block.ln_1(x)).chunk(3, -1))
            new += [k, v]
            keys, values = torch.cat([past[2 * i], k], 2), torch.cat([past[2 * i + 1], v], 2)
            y = F.scaled_dot_product_attention(q, keys, values)
            x = x + block.attn.c_proj(y.transpose(1, 2).flatten(2))
            x = x + block.mlp(block.ln_2(x))
        return F.linear(self.model.ln_f(x), self.model.wte.weight), torch.stack(new)


class UNetBlock(nn.Module):
    """One level of a denoising network: convolutions with the time, and attention to pixels and text."""

    def __init__(self) -> None:
        super().__init__()
        self.residual, self.transformer = unet.Residual(320, 320, 1280), unet.Transformer(320)

    def forward(self, x: torch.Tensor, time: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        return self.transformer(self.residual(x, time), text)


def plain(make: Callable[[], nn.Module], *inputs: Callable[[], torch.Tensor]) -> Case:
    return bert.randomize(make()), [given() for given in inputs]


def vision(name: str) -> Case:
    entry = network(f"timm:{name}")
    return randomized(entry.make()), entry.inputs(1, torch.float32)


def detector() -> Case:
    drawn = random_networks(0, 1, True, ["detection"])[0]
    return randomized(drawn.make()), drawn.inputs(1, torch.float32)


def _ids(length: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randint(50257, (1, length))


NETWORKS: Mapping[str, Callable[[], Case]] = {
    "bert": partial(plain, lambda: bert.BertEncoder(bert.BertConfig()), lambda: torch.randn(1, 128, 768)),
    "vit_s": partial(vision, "vit_small_patch16_224"),
    "resnet50": partial(vision, "resnet50"),
    "mobilenetv3": partial(vision, "mobilenetv3_large_100"),
    "gpt2": partial(
        plain, lambda: gpt2.GPT2LMHeadModel(gpt2.GPT2Config()), _ids(128), lambda: torch.arange(128).unsqueeze(0)
    ),
    "gpt2_step": partial(
        plain,
        lambda: Gpt2Step(gpt2.GPT2Config()),
        _ids(1),
        lambda: torch.full((1, 1), 128),
        lambda: torch.randn(24, 1, 12, 128, 64),
    ),
    "unet_block": partial(
        plain,
        UNetBlock,
        lambda: torch.randn(1, 320, 32, 32),
        lambda: torch.randn(1, 1280),
        lambda: torch.randn(1, unet.WORDS, unet.TEXT),
    ),
    "lstm": partial(plain, lambda: Lstm(256, 512), lambda: torch.randn(1, 64, 256)),
    "detector": detector,
}
"""Makes each network in f32, and its inputs at batch 1."""


def case_of(name: str, dtype: str) -> Case:
    """A network, the same in each process, and its inputs."""
    torch.manual_seed(0)
    module, inputs = NETWORKS[name]()
    wanted = DTYPES[dtype]
    return module.to(wanted).eval(), [t.to(wanted) if t.is_floating_point() else t for t in inputs]


def first_of(results: Any) -> torch.Tensor:
    """The first result of a network that has one or several."""
    return results if isinstance(results, torch.Tensor) else results[0]


def prepare(name: str, dtype: str, folder: Path) -> tuple[str, torch.Tensor, torch.Tensor]:
    """Write our artifact of a network, the network in f32 as an ONNX file, and its inputs.

    Returns the name of our first output, and the first result in float64 and as eager computes it.
    """
    module, inputs = case_of(name, dtype)
    exact = first_of(copy.deepcopy(module).double()(*widened(inputs)))
    eager = first_of(module(*inputs)).double()
    imported = from_torch(module, tuple(inputs), name=name)
    build(imported, CompileOptions("cpu"), workdir=folder / "build").save(folder / "model.ait")
    module, inputs = case_of(name, "f32")
    cast(Any, torch.onnx).export(module, tuple(inputs), folder / "model.onnx", dynamo=True, verbose=False)
    arrays: Any = {f"i{n:02}": t.numpy() for n, t in enumerate(inputs)}
    np.savez(folder / "inputs.npz", **arrays)
    return imported.outputs[0][1], exact, eager


def compare(name: str, args: argparse.Namespace) -> tuple[list[str], float]:
    """The row of a network, and the ratio of our time to the best peer's."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with torch.inference_mode():
            output, exact, eager = prepare(name, args.dtype, folder)
        engines: dict[str, Engine] = {}
        try:
            for engine in args.engines:
                try:
                    engines[engine] = Engine(Job(engine, name, args.dtype, folder, len(args.cores), output))
                except AitError as error:
                    if engine == "ours":
                        raise
                    print(f"{name}: {engine}: {error}", file=sys.stderr, flush=True)
            seconds = take_turns(engines, args)
        finally:
            for engine in engines.values():
                engine.close()
    best = min((s, n) for n, s in seconds.items() if n != "ours")
    ratio = seconds["ours"] / best[0]
    ours = torch.from_numpy(engines["ours"].result)
    other = torch.from_numpy(engines["onnxruntime"].result) if "onnxruntime" in engines else eager
    mine, theirs = ((value - exact).abs() for value in (ours, other))
    worst = mine.max().item() / max(theirs.max().item(), 1e-300)
    typical = mine.square().mean().sqrt().item() / max(theirs.square().mean().sqrt().item(), 1e-300)
    times = [f"{seconds[e] * 1e3:.2f}" if e in seconds else "-" for e in args.engines]
    return [name, *times, f"{ratio:.2f} ({best[1]})", f"{worst:.2f}", f"{typical:.2f}"], ratio


def take_turns(engines: Mapping[str, Engine], args: argparse.Namespace) -> dict[str, float]:
    """The median time of a run of each engine, in seconds."""
    busy = [
        subprocess.Popen([sys.executable, "-c", _BUSY], preexec_fn=partial(os.sched_setaffinity, 0, {core}))
        for core in (args.cores if args.load else ())
    ]
    try:
        single = {name: min(engine.seconds(2), engine.seconds(2)) for name, engine in engines.items()}
        runs = {name: max(1, min(50, int(0.05 / s))) for name, s in single.items()}
        slowest = max(single[name] * runs[name] for name in engines)
        times: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(max(7, min(100, int(args.budget / slowest)))):
            for name, engine in engines.items():
                time.sleep(REST)
                engine.seconds(1)  # wakes its threads
                times[name].append(engine.seconds(runs[name]))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description="Networks on a CPU beside ONNX Runtime, OpenVINO and torch.compile.")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"{', '.join(NETWORKS)} (default: all)")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32", help="default: %(default)s")
    parser.add_argument("--cores", default="0,1", help="the cores to run on, a thread each (default: %(default)s)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="default: %(default)s")
    parser.add_argument("--load", action="store_true", help="with a busy process on each of the cores")
    parser.add_argument("--budget", type=float, default=4.0, help="seconds for each time (default: %(default)s)")
    record.add_save(parser)
    args = parser.parse_args()
    if wrong := [n for n in args.networks if n not in NETWORKS]:
        parser.error(f"no network {wrong[0]}; there are {', '.join(NETWORKS)}")
    args.engines = args.engines.split(",")
    if wrong := [e for e in args.engines if e not in ENGINES] or "ours" not in args.engines:
        parser.error(f"the engines are ours and one or more of {', '.join(ENGINES)}")
    args.cores = tuple(int(core) for core in args.cores.split(","))
    without = [e for e in args.engines if e in ("onnxruntime", "openvino") and importlib.util.find_spec(e) is None]
    if args.dtype == "bf16":
        without.append("onnxruntime")
    args.engines = [e for e in args.engines if e not in without]
    os.sched_setaffinity(0, args.cores)
    os.environ["OMP_NUM_THREADS"] = str(len(args.cores))  # for the processes of the engines
    versions = [f"{e} {importlib.metadata.version(e)}" for e in args.engines if e in ("onnxruntime", "openvino")]
    print(", ".join([args.dtype, record.machine("cpu"), f"torch {torch.__version__}", *versions]), flush=True)
    rows, ratios, failed = list[list[str]](), list[float](), 0
    for name in args.networks or NETWORKS:
        try:
            cells, ratio = compare(name, args)
        except AitError as error:
            print(f"failed: {name}: {error}", file=sys.stderr, flush=True)
            failed = 1
            continue
        print("  ".join(cells), flush=True)
        rows.append(cells)
        ratios.append(ratio)
    if rows:
        heads = ["network", *(f"{e} ms" for e in args.engines), "ours / best peer", "max err / peer's", "rmse / peer's"]
        record.show(args.save, heads, rows, "cpu")
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"ours / best peer of {len(rows)} networks: geometric mean {mean:.3f}, largest {max(ratios):.2f}")
    return failed


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
