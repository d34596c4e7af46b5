"""The graph API beside NVIDIA's: the same graphs, built by the same code, in one process.

    python -m benchmarks.graph_api                     # on a card, beside the package nvidia-cudnn-frontend
    python -m benchmarks.graph_api --device cpu        # without a peer; small shapes
    python -m benchmarks.graph_api --only sdpa --mode B

For each graph: the device time of one execution (recorded executions, replayed), the host time of `execute`, and the
time from an empty graph to its first execution. Ratios are ours over the peer's: below 1 we are faster. The output is
compared with PyTorch's in float32.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

import ait_mlir.graph as ours
from benchmarks.measure import table

F = torch.nn.functional
RECORDED, ROUNDS, CALLS = 20, 15, 100
"""Executions in a recorded CUDA graph, times that it is replayed, and executions that are timed on the host."""


@dataclass
class Made:
    """A graph of one package with its tensors."""

    graph: Any
    pack: dict[Any, torch.Tensor]
    output: torch.Tensor


@dataclass(frozen=True)
class Case:
    """A graph: `make` writes it with a package, `expected` computes its output with PyTorch in float32."""

    name: str
    inputs: Callable[[str], dict[str, torch.Tensor]]
    make: Callable[[ModuleType, Any, dict[str, torch.Tensor]], tuple[Any, Any]]
    expected: Callable[[dict[str, torch.Tensor]], torch.Tensor]
    like: Callable[[dict[str, torch.Tensor]], torch.Tensor]


def opened(api: ModuleType, handle: Any) -> Any:
    return api.pygraph(
        handle=handle,
        io_data_type=api.data_type.HALF,
        intermediate_data_type=api.data_type.FLOAT,
        compute_data_type=api.data_type.FLOAT,
    )


def half(device: str, *shape: int, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(shape, device=device, dtype=torch.float32).mul_(scale).half()


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "gelu_approx_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "swish": F.silu,
    "sigmoid": torch.sigmoid,
}


def product(b: int, m: int, n: int, k: int, activation: str) -> Case:
    """act(A @ B + bias), one matrix B for all batches."""

    def inputs(device: str) -> dict[str, torch.Tensor]:
        wide = {"a": half(device, b, m, k), "b": half(device, 1, k, n, scale=k**-0.5), "bias": half(device, 1, 1, n)}
        return wide

    def make(api: ModuleType, handle: Any, t: dict[str, torch.Tensor]) -> tuple[Any, Any]:
        g = opened(api, handle)
        x = {name: g.tensor_like(data) for name, data in t.items()}
        y = g.bias(name="bias", input=g.matmul(name="mm", A=x["a"], B=x["b"]), bias=x["bias"])
        return g, (x, getattr(g, activation)(name="act", input=y))

    return Case(
        f"matmul {b}x{m}x{n}x{k} bias {activation}",
        inputs,
        make,
        lambda t: ACTIVATIONS[activation](t["a"].float() @ t["b"].float() + t["bias"].float()),
        lambda t: torch.empty(b, m, n, dtype=torch.float16, device=t["a"].device),
    )


def convolution(n: int, c: int, size: int, k: int, taps: int, stride: int = 1) -> Case:
    """relu(conv(x, w) * scale + bias), channels-last."""
    pad = taps // 2

    def inputs(device: str) -> dict[str, torch.Tensor]:
        last = torch.channels_last
        return {
            "x": half(device, n, c, size, size).to(memory_format=last),
            "w": half(device, k, c, taps, taps, scale=(c * taps * taps) ** -0.5).to(memory_format=last),
            "scale": half(device, 1, k, 1, 1),
            "bias": half(device, 1, k, 1, 1),
        }

    def make(api: ModuleType, handle: Any, t: dict[str, torch.Tensor]) -> tuple[Any, Any]:
        g = opened(api, handle)
        x = {name: g.tensor_like(data) for name, data in t.items()}
        window = {"padding": [pad, pad], "stride": [stride, stride], "dilation": [1, 1]}
        y = g.conv_fprop(name="conv", image=x["x"], weight=x["w"], **window)
        y = g.bias(name="bias", input=g.scale(name="scale", input=y, scale=x["scale"]), bias=x["bias"])
        return g, (x, g.relu(name="relu", input=y))

    def expected(t: dict[str, torch.Tensor]) -> torch.Tensor:
        y = F.conv2d(t["x"].float(), t["w"].float(), stride=stride, padding=pad)
        return torch.relu(y * t["scale"].float() + t["bias"].float())

    places = (size + 2 * pad - taps) // stride + 1
    return Case(
        f"conv {n}x{c}x{size} to {k}, {taps}x{taps}/{stride} scale bias relu",
        inputs,
        make,
        expected,
        lambda t: torch.empty(n, k, places, places, dtype=torch.float16, device=t["x"].device).to(
            memory_format=torch.channels_last
        ),
    )


def attention(b: int, h: int, g_heads: int, s: int, length: int, d: int, causal: bool) -> Case:
    """Attention on q, k and v that lie as [batch, length, heads, size]."""

    def laid(device: str, heads: int, rows: int) -> torch.Tensor:
        return half(device, b, rows, heads, d).permute(0, 2, 1, 3)

    def make(api: ModuleType, handle: Any, t: dict[str, torch.Tensor]) -> tuple[Any, Any]:
        g = opened(api, handle)
        x = {name: g.tensor_like(data) for name, data in t.items()}
        mask = {"use_causal_mask": True} if causal else {}
        o, _ = g.sdpa(
            name="sdpa", q=x["q"], k=x["k"], v=x["v"], generate_stats=False, attn_scale=d**-0.5, **mask
        )  # fmt: skip
        return g, (x, o)

    return Case(
        f"sdpa {b}x{h}/{g_heads}x{s}x{length}x{d}{' causal' if causal else ''}",
        lambda device: {
            "q": laid(device, h, s),
            "k": laid(device, g_heads, length),
            "v": laid(device, g_heads, length),
        },
        make,
        lambda t: F.scaled_dot_product_attention(
            t["q"].float(), t["k"].float(), t["v"].float(), is_causal=causal, enable_gqa=h != g_heads
        ),
        lambda t: torch.empty(b, s, h, d, dtype=torch.float16, device=t["q"].device).permute(0, 2, 1, 3),
    )


def norm(kind: str, rows: int, width: int, activation: str = "") -> Case:
    """A norm of rows, with an activation behind it."""

    def inputs(device: str) -> dict[str, torch.Tensor]:
        found = {"x": half(device, rows, width, 1, 1), "scale": half(device, 1, width, 1, 1)}
        if kind == "layernorm":
            found["bias"] = half(device, 1, width, 1, 1)
        return found

    def make(api: ModuleType, handle: Any, t: dict[str, torch.Tensor]) -> tuple[Any, Any]:
        g = opened(api, handle)
        x = {name: g.tensor_like(data) for name, data in t.items()}
        eps = g.tensor(
            name="eps", dim=[1, 1, 1, 1], stride=[1, 1, 1, 1], is_pass_by_value=True, data_type=api.data_type.FLOAT
        )
        x["eps"] = eps
        extra = {"bias": x["bias"]} if kind == "layernorm" else {}
        y = getattr(g, kind)(
            name="norm",
            norm_forward_phase=api.norm_forward_phase.INFERENCE,
            input=x["x"],
            scale=x["scale"],
            epsilon=eps,
            **extra,
        )[0]
        return g, (x, getattr(g, activation)(name="act", input=y) if activation else y)

    def expected(t: dict[str, torch.Tensor]) -> torch.Tensor:
        x, scale = t["x"].float().reshape(rows, width), t["scale"].float().reshape(width)
        if kind == "layernorm":
            y = F.layer_norm(x, (width,), scale, t["bias"].float().reshape(width), 1e-5)
        else:
            y = F.rms_norm(x, (width,), scale, 1e-5)
        return (ACTIVATIONS[activation](y) if activation else y).reshape(rows, width, 1, 1)

    return Case(
        f"{kind} {rows}x{width}{' ' + activation if activation else ''}",
        inputs,
        make,
        expected,
        lambda t: torch.empty_like(t["x"]),
    )


CASES: tuple[Case, ...] = (
    product(1, 128, 768, 768, "relu"),
    product(1, 512, 3072, 768, "gelu_approx_tanh"),
    product(1, 512, 768, 3072, "relu"),
    product(1, 2048, 4096, 4096, "relu"),
    product(1, 4096, 4096, 4096, "swish"),
    product(1, 8192, 1024, 1024, "gelu_approx_tanh"),
    product(8, 512, 1024, 1024, "relu"),
    product(16, 128, 128, 512, "sigmoid"),
    product(1, 16, 4096, 4096, "relu"),
    convolution(32, 64, 56, 64, 3),
    convolution(32, 128, 28, 128, 3),
    convolution(32, 256, 14, 256, 3),
    convolution(32, 512, 7, 512, 3),
    convolution(32, 256, 56, 64, 1),
    convolution(32, 128, 56, 128, 3, stride=2),
    convolution(1, 64, 56, 64, 3),
    attention(2, 12, 12, 1024, 1024, 64, False),
    attention(2, 12, 12, 1024, 1024, 64, True),
    attention(4, 32, 32, 2048, 2048, 128, False),
    attention(4, 32, 32, 2048, 2048, 128, True),
    attention(4, 32, 8, 2048, 2048, 128, True),
    attention(1, 32, 8, 8192, 8192, 128, True),
    attention(8, 16, 16, 512, 512, 64, True),
    attention(16, 32, 8, 1, 4096, 128, False),
    norm("layernorm", 4096, 768),
    norm("layernorm", 8192, 4096),
    norm("layernorm", 512, 1024),
    norm("rmsnorm", 4096, 4096, "swish"),
    norm("rmsnorm", 8192, 8192, "relu"),
    norm("rmsnorm", 512, 4096, "sigmoid"),
)
SMALL: tuple[Case, ...] = (
    product(1, 128, 768, 768, "relu"),
    product(16, 128, 128, 512, "sigmoid"),
    convolution(1, 64, 28, 64, 3),
    attention(1, 4, 4, 128, 128, 64, True),
    attention(1, 4, 2, 128, 128, 64, False),
    norm("layernorm", 512, 1024),
    norm("rmsnorm", 512, 1024, "swish"),
)


@dataclass
class Result:
    """Of one graph and one package: seconds, and the largest error."""

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

    def _run(self, case: Case, tensors: dict[str, torch.Tensor]) -> Result:
        start = time.perf_counter()
        g, (named, y) = case.make(self.api, self.handle, tensors)
        out = case.like(tensors)
        y.set_output(True).set_data_type(self.api.data_type.HALF)
        y.set_dim(list(out.shape)).set_stride(list(out.stride()))
        g.build([getattr(self.api.heur_mode, self.mode)])
        pack = {named[name]: data for name, data in tensors.items()} | {y: out}
        if "eps" in named:
            pack[named["eps"]] = torch.full((1, 1, 1, 1), 1e-5)
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


def show(name: str, mine: Result, theirs: Result | None) -> list[str]:
    """A row of the table."""

    def micro(seconds: float) -> str:
        return "-" if math.isnan(seconds) else f"{seconds * 1e6:.1f}"

    def ratio(a: float, b: float) -> str:
        return "-" if math.isnan(a / b) else f"{a / b:.2f}"

    row = [name, micro(mine.device), micro(mine.host), f"{mine.build * 1e3:.0f}", f"{mine.error:.0e}"]
    if theirs is not None:
        row += [
            *(micro(theirs.device), ratio(mine.device, theirs.device)),
            *(micro(theirs.host), ratio(mine.host, theirs.host)),
            *(f"{theirs.build * 1e3:.0f}", ratio(mine.build, theirs.build)),
        ]
    return [*row, mine.failure or mine.plan, *([] if theirs is None else [theirs.failure])]


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


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--mode", default="A", choices=("A", "B", "FALLBACK"), help="the heuristic (default: A)")
    parser.add_argument("--only", default="", metavar="WORD", help="graphs whose name contains a word")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    on_card = options.device == "cuda"
    device = "cuda:0" if on_card else "cpu"
    stream = torch.cuda.Stream() if on_card else None
    other = peer() if on_card else None
    mine = Bench(ours, device, options.mode, stream)
    theirs = None if other is None else Bench(other, device, "A" if options.mode == "B" else options.mode, stream)
    head = ["graph", "device us", "host us", "build ms", "error"]
    if theirs is not None:
        head += ["peer us", "ratio", "peer host", "ratio", "peer build", "ratio"]
    rows = [[*head, "plan", *([] if theirs is None else ["peer's failure"])]]
    pairs: list[tuple[Result, Result]] = []
    for case in CASES if on_card else SMALL:
        if options.only not in case.name:
            continue
        tensors = case.inputs(device)
        if on_card:
            torch.cuda.synchronize()
        a = mine.run(case, tensors)
        b = None if theirs is None else theirs.run(case, tensors)
        rows.append(show(case.name, a, b))
        if b is not None:
            pairs.append((a, b))
        print(f"{case.name}: {a.failure or 'done'}", file=sys.stderr, flush=True)
    print(table(rows))
    for what in ("device", "host", "build") if pairs else ():
        print(summary(f"{what} time over the peer's", [getattr(a, what) / getattr(b, what) for a, b in pairs]))


if __name__ == "__main__":
    main()
