"""The graph API beside NVIDIA's: the same graphs, built by the same code, in one process.

    python -m benchmarks.graph_api                     # on a card, beside the package nvidia-cudnn-frontend
    python -m benchmarks.graph_api --device cpu        # without a peer; small shapes
    python -m benchmarks.graph_api --only sdpa --mode B
    python -m benchmarks.graph_api --unusual           # only: what it takes to compile an epilogue that no cache has
    python -m benchmarks.graph_api --limit 80 --results out.jsonl   # later: the same command runs what is left

First all of our graphs are compiled, side by side. Then, for each graph: the device time of one execution (recorded
executions, replayed), the host time of `execute`, and the time from an empty graph to its first execution, with the
code compiled. Ratios are ours over the peer's: below 1 we are faster. The output is compared with PyTorch's in float32.
At the end four graphs are built with new sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import ait_mlir.graph as ours
from benchmarks import record
from benchmarks.graph_cases import CASES, RESIZED, SMALL, UNUSUAL, Case
from benchmarks.measure import table

RECORDED, ROUNDS, CALLS = 20, 15, 100
"""Executions in a recorded CUDA graph, times that it is replayed, and executions that are timed on the host."""


@dataclass
class Result:
    """The times of one graph with one package, in seconds, and the largest error."""

    device: float = math.nan
    host: float = math.nan
    build: float = math.nan
    error: float = math.nan
    plan: str = ""
    failure: str = ""


@dataclass
class Bench:
    """One package on one device."""

    api: ModuleType
    device: str
    mode: str
    stream: Any = None
    handle: Any = field(init=False)

    def __post_init__(self) -> None:
        is_ours = self.api is ours
        self.handle = self.api.create_handle(device=self.device) if is_ours else self.api.create_handle()
        if self.stream is not None:
            self.api.set_stream(handle=self.handle, stream=self.stream.cuda_stream)

    def run(self, case: Case, tensors: dict[str, torch.Tensor]) -> Result:
        """Build a graph, check its output and time it."""
        try:
            return self._run(case, tensors)
        except Exception as error:  # a graph that a package does not support is a row without times
            return Result(failure=f"{type(error).__name__}: {str(error).splitlines()[0][:120]}")

    def built(self, case: Case, tensors: dict[str, torch.Tensor]) -> tuple[Any, dict[Any, torch.Tensor], torch.Tensor]:
        """A graph that can be executed, its variant pack, and the output in it."""
        g, (named, y) = case.make(self.api, self.handle, tensors)
        out = case.like(tensors)
        y.set_output(True).set_data_type(self.api.data_type.HALF)
        y.set_dim(list(out.shape)).set_stride(list(out.stride()))
        g.build([getattr(self.api.heur_mode, self.mode)])
        pack = {named[name]: data for name, data in tensors.items()} | {y: out}
        if "eps" in named:
            pack[named["eps"]] = torch.full((1, 1, 1, 1), 1e-5)
        return g, pack, out

    def build_seconds(self, case: Case, tensors: dict[str, torch.Tensor]) -> float:
        """Seconds from an empty graph to one that can be executed; NaN for a graph that is not supported."""
        start = time.perf_counter()
        try:
            self.built(case, tensors)
        except Exception as error:
            print(f"{case.name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            return math.nan
        return time.perf_counter() - start

    def _run(self, case: Case, tensors: dict[str, torch.Tensor]) -> Result:
        start = time.perf_counter()
        g, pack, out = self.built(case, tensors)
        space = torch.empty(max(1, g.get_workspace_size()), dtype=torch.uint8, device=self.device)

        def execute() -> None:
            g.execute(pack, space, handle=self.handle)

        execute()
        self._sync()
        result = Result(build=time.perf_counter() - start, plan=g.get_plan_name() if self.api is ours else "")
        expected = case.expected(tensors)
        result.error = ((out.float() - expected).abs().max() / expected.abs().max()).item()
        result.host = self._host(execute)
        result.device = self._device(execute)
        return result

    def _sync(self) -> None:
        if self.stream is not None:
            torch.cuda.synchronize()

    def _host(self, execute: Callable[[], None]) -> float:
        times: list[float] = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(CALLS if self.stream is not None else 5):
                execute()
            times.append((time.perf_counter() - start) / (CALLS if self.stream is not None else 5))
            self._sync()
        return statistics.median(times)

    def _device(self, execute: Callable[[], None]) -> float:
        if self.stream is None:
            return math.nan
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded, stream=self.stream):
            for _ in range(RECORDED):
                execute()
        times: list[float] = []
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(ROUNDS):
            begin.record()
            recorded.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) * 1e-3 / RECORDED)
        return statistics.median(times)


# ** results **


class Results:
    """Results by package and graph, in a file of JSON lines with which a later run continues."""

    def __init__(self, path: str | None) -> None:
        self.path = None if path is None else Path(path)
        self.known: dict[tuple[str, str], Result] = {}
        if self.path is not None and self.path.exists():
            for line in self.path.read_text().splitlines():
                row = json.loads(line)
                key = row.pop("package"), row.pop("graph")
                self.known[key] = Result(**row)

    def take(self, package: str, graph: str, make: Callable[[], Result]) -> Result:
        """The stored result; a missing result is measured and stored."""
        key = package, graph
        if key not in self.known:
            self.known[key] = make()
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps({"package": package, "graph": graph, **asdict(self.known[key])}) + "\n")
        return self.known[key]


def show(name: str, mine: Result, theirs: Result | None) -> list[str]:
    """A row of the table."""

    def micro(seconds: float) -> str:
        return "-" if math.isnan(seconds) else f"{seconds * 1e6:.1f}"

    def ratio(a: float, b: float) -> str:
        return "-" if math.isnan(a / b) else f"{a / b:.2f}"

    row = [name, micro(mine.device), micro(mine.host), milli(mine.build), f"{mine.error:.0e}"]
    if theirs is not None:
        row += [
            *(micro(theirs.device), ratio(mine.device, theirs.device)),
            *(micro(theirs.host), ratio(mine.host, theirs.host)),
            *(milli(theirs.build), ratio(mine.build, theirs.build)),
        ]
    return [*row, mine.failure or mine.plan, *([] if theirs is None else [theirs.failure])]


def milli(seconds: float) -> str:
    return "-" if math.isnan(seconds) else f"{seconds * 1e3:.1f}"


def summary(what: str, ratios: Sequence[float]) -> str:
    """Geometric mean and worst of the ratios."""
    known = [r for r in ratios if not math.isnan(r)]
    if not known:
        return f"{what}: no ratios"
    mean = math.exp(statistics.fmean(map(math.log, known)))
    return f"{what}: geometric mean {mean:.2f}, worst {max(known):.2f}, of {len(known)} graphs"


def peer() -> ModuleType | None:
    """NVIDIA's package, if it is installed and loads."""
    try:
        import cudnn

        return cudnn
    except Exception as error:
        print(f"no peer: {error}", file=sys.stderr)
        return None


# ** the run **


def compile_all(mine: Bench, cases: Sequence[Case]) -> None:
    """Compile the graphs in parallel, because the C++ compiler's processes take the time."""
    start = time.perf_counter()

    def build(case: Case) -> float:
        return mine.build_seconds(case, case.inputs(mine.device))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        seconds = list(pool.map(build, cases))
    print(
        f"compiled {len(cases)} graphs in {time.perf_counter() - start:.1f} s, "
        f"{sum(s for s in seconds if not math.isnan(s)):.1f} s one after another",
        flush=True,
    )


def resized(benches: Sequence[Bench]) -> Iterator[list[str]]:
    """Rows of build times: for a structure that is new to the process, then for new sizes."""
    yield ["new sizes", *(f"{b.api.__name__}: {what} ms" for b in benches for what in ("first", "new sizes"))]
    for first, second in RESIZED:
        tensors = first.inputs(benches[0].device), second.inputs(benches[0].device)
        yield [
            second.name,
            *(milli(b.build_seconds(c, t)) for b in benches for c, t in zip((first, second), tensors, strict=True)),
        ]


def compiled(mine: Bench, theirs: Bench | None) -> Iterator[list[str]]:
    """Rows of build times: of graphs whose code is in no cache, then of the same graphs again."""
    yield ["unusual epilogues", "ours ms", "again", *([] if theirs is None else ["cudnn ms"])]
    for case in UNUSUAL:
        tensors = case.inputs(mine.device)
        times = [b.build_seconds(case, tensors) for b in (mine, mine, theirs) if b is not None]
        yield [case.name, *map(milli, times)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--mode", default="A", choices=("A", "B", "FALLBACK"), help="the heuristic (default: A)")
    parser.add_argument("--only", default="", metavar="WORD", help="graphs whose name contains a word")
    parser.add_argument("--limit", type=float, default=math.inf, metavar="SECONDS", help="start no graph after that")
    parser.add_argument("--results", metavar="FILE", help="results as JSON lines; graphs that are there do not run")
    parser.add_argument("--unusual", action="store_true", help="time builds of epilogues that no cache has, only")
    parser.add_argument("--no-resize", action="store_true", help="do not time builds with new sizes")
    record.add_save(parser)
    options = parser.parse_args(arguments)
    start = time.perf_counter()

    def is_late() -> bool:
        return time.perf_counter() - start > options.limit

    torch.manual_seed(0)
    on_card = options.device == "cuda"
    device = "cuda:0" if on_card else "cpu"
    stream = torch.cuda.Stream() if on_card else None
    other = peer() if on_card else None
    mine = Bench(ours, device, options.mode, stream)
    theirs = None if other is None else Bench(other, device, "A" if options.mode == "B" else options.mode, stream)
    if options.unusual:
        print(table(list(compiled(mine, theirs))))
        return
    cases = [case for case in (CASES if on_card else SMALL) if options.only in case.name]
    results = Results(options.results)
    left = [case for case in cases if (f"ours {options.mode}", case.name) not in results.known]
    compile_all(mine, left)
    head = ["graph", "device us", "host us", "build ms", "error"]
    if theirs is not None:
        head += ["peer us", "device / peer", "peer host", "host / peer", "peer build", "build / peer"]
    head += ["plan", *([] if theirs is None else ["peer's failure"])]
    rows: list[list[str]] = []
    pairs: list[tuple[Result, Result]] = []
    for case in cases:
        if is_late() and case in left:
            continue
        tensors = case.inputs(device)
        if on_card:
            torch.cuda.synchronize()
        a = results.take(f"ours {options.mode}", case.name, lambda case=case, t=tensors: mine.run(case, t))
        b = None
        if theirs is not None:
            b = results.take("cudnn", case.name, lambda case=case, t=tensors, theirs=theirs: theirs.run(case, t))
            pairs.append((a, b))
        rows.append(show(case.name, a, b))
        print(f"{case.name}: {a.failure or 'done'}", file=sys.stderr, flush=True)
    record.show(options.save, head, rows, options.device)
    if len(rows) < len(cases):
        print(f"{len(cases) - len(rows)} of {len(cases)} graphs are left: --limit {options.limit:g} is over")
    for what in ("device", "host", "build") if pairs else ():
        print(summary(f"{what} time over the peer's", [getattr(a, what) / getattr(b, what) for a, b in pairs]))
    if not options.no_resize and not is_late():
        print(table(list(resized([mine, *([] if theirs is None else [theirs])]))))


if __name__ == "__main__":
    main()
