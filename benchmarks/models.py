"""Whole models: ours beside PyTorch, same weights and inputs, in one process.

    python benchmarks/models.py bert --seq 128 --batch 1,32
    python benchmarks/models.py bert --device cpu --dtype f32 --seq 128 --batch 1

One artifact serves all sizes: its batch and sequence length are dynamic. On the GPU the peer is the best of: eager in a
CUDA graph, torch.compile in a CUDA graph, and with --max-autotune torch.compile with that mode in a CUDA graph; ours
replays its own graph. On the CPU the peer is eager. Times are medians over interleaved rounds. "floor" is the shortest
time that the flops and bytes of the model can take at the rates of a large matrix product and a large copy in the same
run; "of floor" is the share of our time that it makes up. Errors are ours over eager's, both against float64.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.errors import AitError
from ait_mlir.frontend import IntVar, Tensor, compile_model, detect_target
from ait_mlir.frontend.nn.bert import BertConfig, BertEncoder
from benchmarks import measure
from benchmarks.measure import Run
from benchmarks.peers import bert as peer_bert

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
Size = tuple[int, int]


@dataclass(frozen=True)
class Workload:
    """A model on both sides, and how much work it is at (batch, seq)."""

    output: Tensor
    peer: nn.Module
    inputs: Callable[[Size], dict[str, torch.Tensor]]
    flops: Callable[[Size], float]
    bytes: Callable[[Size], float]


def bert(dtype: torch.dtype, layers: int, wanted: Sequence[Size]) -> Workload:
    """The BERT-base encoder on hidden states [batch, seq, 768]; `wanted` sequence lengths are hints of `seq`."""
    sizes = peer_bert.BertConfig(num_hidden_layers=layers)
    hidden, wide = sizes.hidden_size, sizes.intermediate_size
    peer = peer_bert.randomize(peer_bert.BertEncoder(sizes)).to(dtype).eval()
    encoder = BertEncoder(BertConfig(num_hidden_layers=layers, dtype=str(dtype).removeprefix("torch.")))
    encoder.name_parameter_tensor(separator=".")
    batches, seqs = (sorted(set(values)) for values in zip(*wanted, strict=True))
    batch = IntVar([1, max(64, *batches)], name="batch")
    shape = [batch, IntVar([1, *seqs, max(512, *seqs)], name="seq"), hidden]
    x = Tensor(shape=shape, dtype=str(dtype).removeprefix("torch."), name="x", is_input=True)
    weights = sum(p.nbytes for p in peer.parameters())

    def inputs(size: Size) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(size[0] * 1000 + size[1])
        return {"x": torch.randn(*size, hidden, generator=generator).to(dtype)}

    def flops(size: Size) -> float:
        batch, seq = size
        per_token = 2 * (4 * hidden * hidden + 2 * hidden * wide) + 4 * seq * hidden
        return float(layers * batch * seq * per_token)

    def bytes(size: Size) -> float:
        return float(weights + 2 * size[0] * size[1] * hidden * dtype.itemsize)

    return Workload(encoder(x).mark_as_output("y"), peer, inputs, flops, bytes)


MODELS: dict[str, Callable[[torch.dtype, int, Sequence[Size]], Workload]] = {"bert": bert}


def captured(run: Run) -> Run:
    """`run` in a CUDA graph: what to call to replay it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def gpu_peers(module: nn.Module, arguments: list[torch.Tensor], max_autotune: bool) -> dict[str, Run]:
    """What a user of PyTorch would run; a way that fails is left out, and why is printed."""
    modes = {"eager": None, "compile": "default"}
    if max_autotune:
        modes["autotune"] = "max-autotune-no-cudagraphs"
    runs: dict[str, Run] = {}
    for name, mode in modes.items():
        try:
            torch.compiler.reset()
            run = module if mode is None else torch.compile(module, mode=mode, dynamic=False)
            runs[name] = captured(lambda run=run: run(*arguments))
        except Exception as error:  # a peer that cannot run is no reason to stop
            print(f"torch {name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
    return runs


def measure_size(model: Any, work: Workload, exact: nn.Module, size: Size, args: argparse.Namespace) -> list[str]:
    """One row of the table."""
    inputs = {name: value.to(args.device) for name, value in work.inputs(size).items()}
    arguments = list(inputs.values())
    eager = work.peer(*arguments)
    outputs = {"y": torch.full_like(eager, float("nan"))}

    def ours() -> Any:
        on_gpu = args.device == "cuda"
        return model.run_with_tensors(inputs, outputs, sync=not on_gpu, graph_mode=on_gpu)

    ours()
    model.synchronize(torch.cuda.current_stream().cuda_stream if args.device == "cuda" else None)
    result = measure.accuracy(outputs["y"], eager, exact(*(a.double() for a in arguments)))
    if args.device == "cuda":
        peers = gpu_peers(work.peer, arguments, args.max_autotune)
    else:
        peers: dict[str, Run] = {"eager": lambda: work.peer(*arguments)}
    seconds = measure.median_seconds({"ours": ours, **peers}, args.device, args.budget)
    best = min((seconds[name], name) for name in peers)
    floor = args.ceilings.floor(work.flops(size), work.bytes(size))
    return [
        f"{size[0]} x {size[1]}",
        *(f"{seconds[name] * 1e3:.3f}" if name in seconds else "-" for name in ("ours", *args.peers)),
        f"{seconds['ours'] / best[0]:.2f} ({best[1]})",
        f"{floor * 1e3:.3f}",
        f"{floor / seconds['ours']:.0%}",
        f"{result.max_ratio:.2f}",
        f"{result.rmse_ratio:.2f}" + ("" if result.passed else " FAILED"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Ours beside PyTorch: times, share of the floor, errors.")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--batch", default="1,32", help="batch sizes (default: %(default)s)")
    parser.add_argument("--seq", default="128", help="sequence lengths (default: %(default)s)")
    parser.add_argument(
        "--device", choices=["cuda", "cpu"], help="default: cuda where there is a CUDA device, else cpu"
    )
    parser.add_argument("--dtype", choices=DTYPES, help="default: f16 on the GPU, f32 on the CPU")
    parser.add_argument("--layers", type=int, default=12, help="layers of the model (default: %(default)s)")
    parser.add_argument("--max-autotune", action="store_true", help="also time torch.compile(mode='max-autotune')")
    parser.add_argument("--measure", action="store_true", help="choose our kernels by time, on the GPU")
    parser.add_argument(
        "--budget", type=float, default=2.0, help="seconds to spend on each time (default: %(default)s)"
    )
    parser.add_argument("--workdir", default="build/benchmarks", help="where the artifact goes (default: %(default)s)")
    args = parser.parse_args()
    args.device = args.device or ("cuda" if detect_target().name() == "cuda" else "cpu")
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("PyTorch finds no CUDA device; use --device cpu")
    name = args.dtype or ("f16" if args.device == "cuda" else "f32")
    try:
        sizes = [(int(b), int(s)) for s in args.seq.split(",") for b in args.batch.split(",")]
    except ValueError:
        parser.error("--batch and --seq take numbers with commas between them, such as 1,32")

    work = MODELS[args.model](DTYPES[name], args.layers, sizes)
    exact = copy.deepcopy(work.peer).double().to(args.device)
    start = time.perf_counter()
    title, weights = f"{args.model}_{name}", work.peer.state_dict()
    model = compile_model(work.output, args.device, args.workdir, title, constants=weights, measure=args.measure)
    print(f"{args.model}, {args.layers} layers, {name}, {device_name(args.device)}, torch {torch.__version__}")
    print(f"compiled in {time.perf_counter() - start:.1f} s", flush=True)
    work.peer.to(args.device)
    args.ceilings = measure.ceilings(args.device, DTYPES[name])
    print(f"ceilings: {args.ceilings.flops / 1e12:.2f} TFLOP/s, {args.ceilings.bytes / 1e9:.0f} GB/s", flush=True)
    args.peers = (
        ["eager"] + (["compile"] if args.device == "cuda" else []) + (["autotune"] if args.max_autotune else [])
    )
    heads = ["batch x seq", "ours ms", *(f"{p} ms" for p in args.peers), "ours / best peer", "floor ms", "of floor"]
    with torch.inference_mode():
        rows = [measure_size(model, work, exact, size, args) for size in sizes]
    print(measure.table([[*heads, "max err / eager's", "rmse / eager's"], *rows]))
    return 1 if any("FAILED" in row[-1] for row in rows) else 0


def device_name(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"{len(os.sched_getaffinity(0))} CPUs, {torch.get_num_threads()} torch threads"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
