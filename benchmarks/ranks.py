"""One model on several cards of a host, one process for each: times beside one card and beside NCCL, and errors.

    python -m benchmarks.ranks reduce                    # all-reduces of 8 KB to 16 MB, beside those of PyTorch
    python -m benchmarks.ranks reduce --no-peers         # ours by NCCL alone
    python -m benchmarks.ranks layers                    # layers of Llama-3-8B on two cards, beside one
    python -m benchmarks.ranks layers --rows FILE --limit 120    # goes on where it was stopped
    python -m benchmarks.ranks layers --compile-only     # makes the artifacts, without a card
    python -m benchmarks.ranks reduce --device cpu --small       # tries it on the CPU, over sockets

This process compiles, then starts the ranks with the variables that torchrun sets. A time is that of the slowest rank,
the median over interleaved rounds in which all ranks make the same calls.

reduce: a chain of 16 all-reduces in one CUDA graph, so that the host has no part in the time of one. "norm" adds each
sum to a residual and normalises it (RMS). Peers are `torch.distributed.all_reduce` of NCCL, followed by PyTorch's add
and norm ("nccl") or by those that torch.compile makes ("compile").

layers: each rank also runs the whole model on its card, with the same weights, and its part of it without the
all-reduces ("apart"). "faster" is the time of one card over that of several. Both estimates are those of `ait scale`.

Errors are ours over those of PyTorch in the same dtype on one card, both against float64. "same bits": all ranks have
the same result in each of three runs.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.dialects.ait.collective import AllReduceOp
from ait_mlir.dialects.ait.data import GraphOp, OutputOp
from ait_mlir.dialects.ait.ranks import Ranks, ranks_of
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dialects.sdy import SHARDING, Sharding, ShardingAttr, parse_axes
from ait_mlir.driver import compile_module, program_of, run_to_phase
from ait_mlir.errors import AitError
from ait_mlir.frontend import IntVar, Tensor, detect_target
from ait_mlir.frontend.compile import bind_constants
from ait_mlir.frontend.graph import bound_data, build_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.links import WITH_PEERS, collective_seconds, whole_bytes
from ait_mlir.options import CompileOptions
from ait_mlir.passes.partition import declare_mesh
from ait_mlir.runtime import Model
from benchmarks import measure, record
from benchmarks.measure import Accuracy, Run
from benchmarks.peers import bert as peer_bert
from benchmarks.peers import llama as peer_llama
from benchmarks.shared import Done, Results, Row, own_folder
from examples.models import llama as our_llama

CHAIN = 16
"""All-reduces in a graph."""
HIDDEN = 4096
SIZES = tuple(8192 << i for i in range(12))
"""Bytes of an all-reduce: 8 KB to 16 MB."""
PLAN = ",".join(
    f"layers.*.{name}={style}"
    for style, names in {
        "colwise": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"),
        "rowwise": ("self_attn.o_proj", "mlp.down_proj"),
    }.items()
    for name in names
)
LLAMA = peer_llama.LlamaConfig(2048, HIDDEN, 2, 32, 8, 14336, rope_theta=500000.0)
"""Llama-3-8B with a short vocabulary: its table of tokens is not what is measured."""
SMALL = peer_llama.LlamaConfig(64, 64, 2, 8, 4, 128)
ASKED_MICROS = {("norm", 32 << 10): 6.0, ("norm", 1 << 20): 20.0}
ASKED_SPEED_UP = {("decode", 1): 1.75, ("decode", 16): 1.7, ("prefill", 1): 1.85}
HEADS = {
    "reduce": ["graph", "bytes", "ours us", "nccl us", "compile us", "ours / best", "asked us", "estimate us"],
    "layers": [
        "step",
        "batch x length",
        "one ms",
        "ours ms",
        "apart ms",
        "faster",
        "asked",
        "estimates ms",
        "estimated faster",
    ],
}
ERRORS = ["max err / eager's", "rmse / eager's", "same bits"]


@dataclass(frozen=True)
class Case:
    """A row: all-reduces of `size` bytes ("plain", "norm"), or layers ("decode", "prefill") at a batch and length."""

    kind: str
    size: int
    length: int = 0

    @property
    def name(self) -> str:
        return f"{self.kind} {self.size}" + (f" x {self.length}" if self.length else "")


def cases(args: argparse.Namespace) -> list[Case]:
    """All rows of the command."""
    if args.part == "reduce":
        return [Case(kind, size) for kind in ("plain", "norm") for size in SIZES[: 3 if args.small else None]]
    decode = [Case("decode", batch, 16 if args.small else 2048) for batch in (1, 16)]
    return [*decode, Case("prefill", 1, 32 if args.small else 4096)]


# ** graphs **


def reduce_text(kind: str, ranks: int) -> str:
    """A chain of all-reduces of rows [rows, 4096], each of them as large as the model's hidden states."""
    t, mesh = f"!ait.tensor<rows x {HIDDEN} x f16>", f'<["tp"={ranks}]>'
    most = SIZES[-1] // (2 * HIDDEN)
    hints = ", ".join(str(size // (2 * HIDDEN)) for size in SIZES)
    lines = [
        f"ait.graph @{kind}(%x0: {t}, %r0: {t}) dims {{rows = 1 to {most} hints [{hints}]}} ranks {{"
        f'mesh = #sdy.mesh{mesh}, inputs = {{x0 = #sdy.sharding<@mesh, [{{"tp"}}, {{}}]>}}}} {{',
        f'  %g = ait.param "scale" : !ait.tensor<{HIDDEN} x f16>',
    ]
    for i in range(CHAIN):
        summed = f"s{i}" if kind == "norm" else f"x{i + 1}"
        lines.append(f'  %{summed} = ait.all_reduce sum %x{i} over ["tp"] of {mesh} : {t}')
        if kind == "norm":
            lines.append(f"  %r{i + 1} = ait.add %r{i}, %s{i} : {t}")
            lines.append(f"  %x{i + 1} = ait.rms_norm %r{i + 1} scale %g axes 1 eps 1e-05 : {t}")
    return "\n".join([*lines, f'  ait.output "y" %x{CHAIN} : {t}', "}"])


def llama_module(kind: str, config: peer_llama.LlamaConfig, dtype: str, length: int, ranks: int) -> tuple[Any, Any]:
    """Layers as a module, and the data that the builder binds; several ranks divide the heads of the cache."""
    ours = our_llama.LlamaModel(our_llama.LlamaConfig(**dataclasses.asdict(config), dtype=dtype))
    ours.name_parameter_tensor(separator=".")
    decode, head = kind == "decode", config.hidden_size // config.num_attention_heads
    batch = IntVar([1, 16], name="batch", hints=[1, 16]) if decode else 1
    seq = 1 if decode else IntVar([1, length], name="seq", hints=[length])
    given = [Tensor(shape=[batch, seq], dtype="int64", name=n, is_input=True) for n in ("input_ids", "position_ids")]
    if not decode:
        outputs, divided = [ours(*given).mark_as_output("y")], list[str]()
    else:
        past = IntVar([1, length], name="past", hints=[length])
        names = cache_names(config)
        cached = [
            Tensor(shape=[batch, config.num_key_value_heads, past, head], dtype=dtype, name=f"past_{n}", is_input=True)
            for n in names
        ]
        outputs = [ours(*given, list(zip(cached[::2], cached[1::2], strict=True))).mark_as_output("y")]
        outputs += [t.mark_as_output(n) for n, t in zip(names, (t for pair in ours.steps for t in pair), strict=True)]
        divided = names
    module = build_module(outputs, f"{kind}_{ranks}")
    if ranks > 1:
        divide_heads(module, divided, ranks)
    return module, bind_constants(module, bound_data(outputs), {})


def apart(module: ModuleOp, options: CompileOptions) -> ModuleOp:
    """The part of a rank, without its all-reduces: a program of one process that computes nothing of use."""
    alone = module.clone()
    run_to_phase(alone, "canonical", options)
    graph = next(op for op in alone.ops if isinstance(op, GraphOp))
    for op in [op for op in graph.block.ops if isinstance(op, AllReduceOp)]:
        op.output.replace_all_uses_with(op.input)
        op.detach()
        op.erase()
    graph.properties.pop("ranks")
    return alone


def cache_names(config: peer_llama.LlamaConfig) -> list[str]:
    return [f"{kind}{i}" for i in range(config.num_hidden_layers) for kind in "kv"]


def divide_heads(module: ModuleOp, names: Sequence[str], ranks: int) -> None:
    """Let each rank have its heads of caches: the inputs `past_NAME` and the outputs `NAME`, [batch, heads, ...]."""
    declare_mesh(module, parse_axes(f"tp={ranks}"))
    heads = ShardingAttr(Sharding("mesh", ((), ("tp",), (), ()), (False,) * 4))
    graph = next(op for op in module.ops if isinstance(op, GraphOp))
    if names:
        graph.input_shardings = DictionaryAttr({f"past_{name}": heads for name in names})
    for op in graph.block.ops:
        if isinstance(op, OutputOp) and op.output_name.data in names:
            op.attributes[SHARDING] = heads


# ** this process: compiles, and starts the ranks **


def artifact(args: argparse.Namespace, name: str) -> Path:
    how = f"{'_small' * args.small}{'' if args.peers else '_nccl'}{args.streams or ''}"
    return args.workdir / f"{name}_{args.device}{how}.ait"


def compile_all(args: argparse.Namespace, kinds: Sequence[str]) -> None:
    """Make the artifacts; those of layers are without weights, which the ranks set."""
    measured = {"measure": args.measure, "budget": args.tuning}
    options = CompileOptions(args.device, **measured, peer_memory=args.peers, streams=args.streams)
    for kind in kinds:
        start = time.perf_counter()
        if args.part == "reduce":
            module = parse_text(context(), reduce_text(kind, args.ranks))
            compile_module(module, options, output=artifact(args, kind), name=kind)
        else:
            length = max(case.length for case in cases(args) if case.kind == kind)
            for ranks in (1, args.ranks):
                module, data = llama_module(kind, args.config, args.dtype, length, ranks)
                divided = {"mesh": f"tp={ranks}", "plan": PLAN} if ranks > 1 else {}
                if ranks > 1:
                    artifact(args, kind).with_suffix(".mlir").write_text(str(module), encoding="utf-8")
                output = artifact(args, f"{kind}_{ranks}")
                how = dataclasses.replace(options, **divided)
                if ranks > 1:
                    part = artifact(args, f"{kind}_apart")
                    compile_module(apart(module, how), options, output=part, constants=data, name=part.stem)
                compile_module(module, how, output=output, constants=data, name=output.stem)
        print(f"{kind}: compiled in {time.perf_counter() - start:.1f} s", flush=True)


def run_all(args: argparse.Namespace, results: Results) -> None:
    """Let ranks measure the rows without a result. Those that end early, or need too long, are started again without
    the row that they were at."""
    while left := [c for c in cases(args) if all(done.network != c.name for done in results.read())]:
        error = started(args, results, left)
        done = {d.network for d in results.read()}
        if error and left[-1].name not in done:
            failed = next(c for c in left if c.name not in done)
            print(f"{failed.name}: {error}", file=sys.stderr, flush=True)
            results.add(Done(failed.name, args.device, [], error))


def started(args: argparse.Namespace, results: Results, left: Sequence[Case]) -> str:
    """Run the ranks on some rows; why they ended, or an empty text."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    environment = os.environ | {"WORLD_SIZE": str(args.ranks), "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    given = json.dumps([vars(args) | {"workdir": str(args.workdir), "config": None, "save": None}, str(results.path)])
    names = json.dumps([dataclasses.astuple(case) for case in left])
    command = [sys.executable, "-m", "benchmarks.ranks", args.part, "--rank-of", given, names]
    processes = [
        subprocess.Popen(
            command, env=environment | {"RANK": str(i), "LOCAL_RANK": str(i)}, cwd=Path(__file__).resolve().parents[1]
        )
        for i in range(args.ranks)
    ]
    count, until = len(results.read()), time.monotonic() + args.limit
    try:
        while any(p.poll() is None for p in processes):
            if failed := [p.returncode for p in processes if p.poll()]:
                time.sleep(2)  # the others say why
                return f"a rank ended with {failed[0]}"
            if (now := len(results.read())) != count:
                count, until = now, time.monotonic() + args.limit
            if time.monotonic() > until:
                return f"not done after {args.limit:g} s"
            time.sleep(0.2)
        failed = [p.returncode for p in processes if p.returncode]
        return f"a rank ended with {failed[0]}" if failed else ""
    finally:
        for process in processes:
            process.kill()
            process.wait()


# ** a rank **


class Rank:
    """This process as a rank: its number, its device, and what it knows of the others."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.number, self.count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.on_gpu = args.device == "cuda"
        self.card = int(os.environ["LOCAL_RANK"]) if self.on_gpu else None
        self.device = f"cuda:{self.card}" if self.on_gpu else "cpu"
        if self.on_gpu:
            torch.cuda.set_device(self.device)
        dist.init_process_group("cpu:gloo,cuda:nccl" if self.on_gpu else "gloo")
        self.args = args

    def slowest(self, seconds: Sequence[float]) -> list[float]:
        """The largest of each number over all ranks; waits for all of them."""
        values = torch.tensor(list(seconds), dtype=torch.float64)
        dist.all_reduce(values, dist.ReduceOp.MAX)
        return values.tolist()

    def same(self, results: Sequence[bytes]) -> bool:
        """Whether all results of all ranks are equal."""
        found: list[Any] = [None] * self.count
        dist.all_gather_object(found, list(results))
        return len({result for part in found for result in part}) == 1

    def captured(self, run: Run) -> Run:
        """A function that replays `run`, of PyTorch, as a CUDA graph; on a CPU `run` itself."""
        if not self.on_gpu:
            return run
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                run()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.slowest([0.0])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # threads of NCCL ask for events
            run()
        return graph.replay

    def ours(self, model: Model, inputs: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], Run]:
        """The outputs of a model, and a function that runs it into them."""
        outputs = model.run_with_tensors(inputs, sync=True)

        def run() -> object:
            return model.run_with_tensors(inputs, outputs, sync=not self.on_gpu, graph_mode=self.on_gpu)

        return outputs, run

    def repeated(self, run: Run, result: torch.Tensor) -> bool:
        """Whether three runs have the same bits on all ranks; a graph runs launched, recorded and replayed."""
        found: list[bytes] = []
        for _ in range(3):
            result.fill_(float("nan"))
            run()
            self.wait()
            found.append(result.cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return self.same(found)

    def wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize()

    def times(self, runs: Mapping[str, Run]) -> dict[str, float]:
        kind = "cuda" if self.on_gpu else "cpu"
        return measure.median_seconds(runs, kind, self.args.budget, agreed=self.slowest)


def errors(rank: Rank, ours: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> Accuracy:
    """Our error over eager's, the largest of all ranks."""
    found = measure.accuracy(ours, eager, exact)
    return Accuracy(*rank.slowest(dataclasses.astuple(found)))


def ending(accuracy: Accuracy, same: bool) -> tuple[list[str], bool]:
    """The cells of errors, and whether they pass."""
    passed = accuracy.passed and same
    cells = [f"{accuracy.max_ratio:.2f}", f"{accuracy.rmse_ratio:.2f}"]
    return [*cells, ("yes" if same else "no") + ("" if passed else " FAILED")], passed


def reduce_rows(rank: Rank, left: Sequence[Case]) -> Iterator[tuple[Case, Row]]:
    models: dict[str, Model] = {}
    generator = torch.Generator().manual_seed(0)
    scale = (1 + 0.1 * torch.randn(HIDDEN, generator=generator)).half().to(rank.device)
    for case in left:
        if case.kind not in models:
            models[case.kind] = Model(artifact(rank.args, case.kind), device=rank.card)
            unset = models[case.kind].get_constant_names(unset_only=True)
            models[case.kind].set_constants(dict.fromkeys(unset, scale))
        yield case, reduce_row(rank, case, models[case.kind], scale)


def reduce_row(rank: Rank, case: Case, model: Model, scale: torch.Tensor) -> Row:
    rows, is_norm = case.size // (2 * HIDDEN), case.kind == "norm"
    generator = torch.Generator().manual_seed(1)
    small = 1.0 if is_norm else 2.0**-8  # each sum of a chain is twice the one before
    xs = [(small * torch.randn(rows, HIDDEN, generator=generator)).half().to(rank.device) for _ in range(rank.count)]
    residual = torch.randn(rows, HIDDEN, generator=generator).half().to(rank.device)
    inputs = {"x0": xs[rank.number], "r0": residual}
    outputs, run = rank.ours(model, {name: inputs[name] for name in model.get_input_name_to_index_map()})

    def norm(x: torch.Tensor, r: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        r = r + x
        return nn.functional.rms_norm(r, (HIDDEN,), scale.to(r.dtype), 1e-5), r

    buffer = torch.empty_like(residual)

    def chain(step: Callable[..., Any], start: torch.Tensor) -> torch.Tensor:
        x, r = buffer.copy_(start), residual
        for _ in range(CHAIN):
            dist.all_reduce(x)
            x, r = step(x, r) if is_norm else (x, r)
        return x

    exact, r = torch.stack(xs).double().sum(0), residual.double()
    for i in range(CHAIN):
        exact = exact * rank.count if i else exact
        exact, r = norm(exact, r) if is_norm else (exact, r)
    accuracy = errors(rank, outputs["y"], chain(norm, inputs["x0"]).clone(), exact)
    same = rank.repeated(run, outputs["y"])
    peers: dict[str, Run] = {"nccl": rank.captured(lambda: chain(norm, inputs["x0"]))}
    if is_norm and rank.on_gpu:
        torch.compiler.reset()  # it compiles few sizes of one function
        compiled = torch.compile(norm, dynamic=False)
        peers["compile"] = rank.captured(lambda: chain(compiled, inputs["x0"]))
    seconds = {name: each / CHAIN for name, each in rank.times({"ours": run, **peers}).items()}
    best = min((s, n) for n, s in seconds.items() if n != "ours")[1]
    ratio = seconds["ours"] / seconds[best]
    cells, passed = ending(accuracy, same)
    asked = ASKED_MICROS.get((case.kind, case.size))
    return Row(
        [
            case.kind,
            str(case.size),
            *(f"{seconds[n] * 1e6:.2f}" if n in seconds else "-" for n in ("ours", "nccl", "compile")),
            f"{ratio:.2f} ({best})",
            "-" if asked is None else f"{asked:g}",
            f"{estimate(rank.args.ranks, rows) * 1e6:.2f}",
            *cells,
        ],
        ratio,
        passed,
    )


def estimate(ranks: int, rows: int) -> float:
    """The seconds of an all-reduce that `ait scale` adds up."""
    module = parse_text(context(), reduce_text("plain", ranks))
    op = next(op for op in module.walk() if op.name == "ait.all_reduce")
    assert scope_of(op) is not None
    return collective_seconds(op, whole_bytes(op, {"rows": rows}), WITH_PEERS)  # pyright: ignore[reportArgumentType]


@cache
def estimates(path: Path, device: str, ranks: int, dims: tuple[tuple[str, int], ...]) -> list[float]:
    """The seconds of one card and of several, by `ait scale`."""
    command = [sys.executable, "-m", "ait_mlir.tools.cli", "scale", str(path), "--json", "--target", device]
    command += ["--plan", PLAN, "--mesh", "tp=1", "--mesh", f"tp={ranks}"]
    command += [word for name, value in dims for word in ("--dim", f"{name}={value}")]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [row["seconds"] for row in json.loads(done.stdout)]


def layer_rows(rank: Rank, left: Sequence[Case]) -> Iterator[tuple[Case, Row]]:
    args = rank.args
    dtype = getattr(torch, args.dtype)
    for kind in dict.fromkeys(case.kind for case in left):
        made = peer_llama.LlamaStep if kind == "decode" else peer_llama.LlamaModel
        peer = peer_bert.randomize(made(args.config)).to(rank.device, dtype).eval()
        models = [Model(artifact(args, f"{kind}_{n}"), device=rank.card) for n in (1, args.ranks, "apart")]
        places = [ranks_of(program_of(parse_text(context(), model.ir_text))) for model in models[:2]]
        for model, ranks in zip(models, (*places, places[1]), strict=True):
            weights = peer.state_dict()
            names = model.get_constant_names(unset_only=True)
            pieces = {n: weights[n][ranks.place("params", n, weights[n].shape, rank.number)] for n in names}
            model.set_constants({n: piece.contiguous() for n, piece in pieces.items()})
        wide = copy.deepcopy(peer).double()
        for case in left:
            if case.kind == kind:
                yield case, layer_row(rank, case, models, places, peer, wide)
        del models, peer, wide
        gc.collect()
        if rank.on_gpu:
            torch.cuda.empty_cache()


def llama_inputs(
    case: Case, config: peer_llama.LlamaConfig, device: str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    """Token ids, positions and caches of the whole model, the same on each rank."""
    generator = torch.Generator().manual_seed(case.size)
    seq = 1 if case.kind == "decode" else case.length
    ids = torch.randint(0, config.vocab_size, (case.size, seq), generator=generator)
    if case.kind == "prefill":
        places = torch.arange(seq).expand(case.size, seq).contiguous()
        return {"input_ids": ids.to(device), "position_ids": places.to(device)}
    shape = (case.size, config.num_key_value_heads, case.length, config.hidden_size // config.num_attention_heads)
    cached = {f"past_{n}": torch.randn(shape, generator=generator).to(device, dtype) for n in cache_names(config)}
    return {"input_ids": ids.to(device), "position_ids": torch.full_like(ids, case.length).to(device), **cached}


def layer_row(
    rank: Rank, case: Case, models: Sequence[Model], places: Sequence[Ranks], peer: nn.Module, wide: nn.Module
) -> Row:
    args = rank.args
    whole = llama_inputs(case, args.config, rank.device, getattr(torch, args.dtype))
    arguments = [t if t.ndim < 4 else nn.functional.pad(t, (0, 0, 0, 1)) for t in whole.values()]
    eager = peer(*arguments)
    exact = wide(*(t.double() if t.is_floating_point() else t for t in arguments))
    del arguments
    runs: dict[str, Run] = {}
    results: list[torch.Tensor] = []
    for name, model, ranks in zip(("one", "ours", "apart"), models, (*places, places[1]), strict=True):
        pieces = {n: t[ranks.place("inputs", n, t.shape, rank.number)].contiguous() for n, t in whole.items()}
        outputs, runs[name] = rank.ours(model, pieces)
        results.append(outputs["y"])
    accuracy = errors(rank, results[1], eager, exact)
    beside = errors(rank, results[1], results[0], exact)
    same = rank.repeated(runs["ours"], results[1])
    del eager, exact
    seconds = rank.times(runs)
    ratio = seconds["one"] / seconds["ours"]
    dims = {"batch": case.size, "past": case.length} if case.kind == "decode" else {"seq": case.length}
    one, several = estimates(
        artifact(args, case.kind).with_suffix(".mlir"), args.device, args.ranks, tuple(dims.items())
    )
    asked = ASKED_SPEED_UP.get((case.kind, case.size))
    cells, passed = ending(accuracy, same)
    if rank.number == 0:
        print(f"{case.name}: errors over those of one card: {beside.max_ratio:.2f}, rmse {beside.rmse_ratio:.2f}")
    return Row(
        [
            case.kind,
            f"{case.size} x {case.length}",
            *(f"{seconds[n] * 1e3:.4f}" for n in ("one", "ours", "apart")),
            f"{ratio:.3f}",
            "-" if asked is None else f"{asked:g}",
            f"{one * 1e3:.4f}, {several * 1e3:.4f}",
            f"{one / several:.3f}",
            *cells,
        ],
        ratio,
        passed,
    )


def be_a_rank(given: str, names: str) -> None:
    """Measure rows, which rank 0 writes to the file of results."""
    values, path = json.loads(given)
    args = argparse.Namespace(**values | {"workdir": Path(values["workdir"])})
    args.config = config_of(args)
    rank, results = Rank(args), Results(Path(path))
    left = [Case(*fields) for fields in json.loads(names)]
    with torch.inference_mode():
        for case, row in (reduce_rows if args.part == "reduce" else layer_rows)(rank, left):
            if rank.number == 0:
                print("  ".join(row.cells), flush=True)
                results.add(Done(case.name, record.machine(args.device), [row]))
    rank.wait()
    dist.destroy_process_group()


# ** the command **


def config_of(args: argparse.Namespace) -> peer_llama.LlamaConfig:
    return dataclasses.replace(SMALL if args.small else LLAMA, num_hidden_layers=args.layers)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("part", choices=list(HEADS))
    parser.add_argument(
        "--device", choices=["cuda", "cpu"], help="default: cuda where there is a CUDA device, else cpu"
    )
    parser.add_argument("--ranks", type=int, default=2, help="processes, each with a card (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=2, help="layers of the model (default: %(default)s)")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="all-reduces by NCCL alone")
    parser.add_argument("--streams", type=int, help="the most streams of a run (default: by estimate)")
    parser.add_argument("--small", action="store_true", help="a small model, and few sizes")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each time (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a row, after which its ranks are ended")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="results; the same command goes on where it stopped")
    parser.add_argument("--workdir", default="build/benchmarks", help="where artifacts go (default: %(default)s)")
    parser.add_argument("--compile-only", action="store_true", help="make the artifacts and stop")
    parser.add_argument("--compiled", action="store_true", help="take the artifacts that are in --workdir")
    measure.add_options(parser)
    record.add_save(parser)
    args = parser.parse_args()
    args.device = args.device or ("cuda" if detect_target().name() == "cuda" else "cpu")
    args.dtype = "float16" if args.device == "cuda" else "float32"
    args.config = config_of(args)
    return args


def main() -> int:
    if len(sys.argv) == 5 and sys.argv[2] == "--rank-of":
        be_a_rank(*sys.argv[3:])
        return 0
    args = parse_arguments()
    args.workdir = Path(args.workdir) if args.compiled else own_folder(args.workdir)
    kinds = list(dict.fromkeys(case.kind for case in cases(args)))
    if not args.compiled:
        compile_all(args, kinds)
    if args.compile_only:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        results = Results(args.rows or Path(folder) / "rows.jsonl")
        args.rows = None
        run_all(args, results)
        found = {done.network: done for done in results.read()}
    rows = [row for case in cases(args) for row in found[case.name].rows]
    if rows:
        record.show(args.save, [*HEADS[args.part], *ERRORS], [row.cells for row in rows], args.device)
    broken = [f"{name}: {done.error}" for name, done in found.items() if done.error]
    print("\n".join(broken), file=sys.stderr)
    return 1 if broken or any(not row.passed for row in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
