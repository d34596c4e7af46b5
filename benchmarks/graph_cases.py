"""The graphs of `benchmarks.graph_api`: products, convolutions, attention and norms with their epilogues."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

F = torch.nn.functional


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


def unusual(what: str, m: int, n: int, k: int, chain: Callable[[Any, Any, float], Any]) -> Case:
    """A product whose epilogue has a new number, so that no cache has its code."""
    plain = product(1, m, n, k, "relu")
    number = 1 + random.SystemRandom().random()

    def make(api: ModuleType, handle: Any, t: dict[str, torch.Tensor]) -> tuple[Any, Any]:
        g = opened(api, handle)
        x = {name: g.tensor_like(data) for name, data in t.items()}
        return g, (x, chain(g, g.bias(input=g.matmul(A=x["a"], B=x["b"]), bias=x["bias"]), number))

    return Case(what, plain.inputs, make, plain.expected, plain.like)


UNUSUAL: tuple[Case, ...] = (
    unusual("relu with another clip", 512, 3072, 768, lambda g, y, c: g.relu(y, lower_clip=c)),
    unusual("swish of another beta", 512, 3072, 768, lambda g, y, c: g.swish(y, swish_beta=c)),
    unusual("tanh, exp and a clip", 128, 768, 768, lambda g, y, c: g.relu(g.exp(g.tanh(y)), upper_clip=c)),
    unusual("softplus, square root", 2048, 4096, 4096, lambda g, y, c: g.sqrt(g.relu(g.softplus(y), lower_clip=c))),
)
"""Graphs that must be compiled."""

RESIZED: tuple[tuple[Case, Case], ...] = (
    (product(1, 192, 1536, 1024, "relu"), product(1, 320, 1280, 768, "relu")),
    (convolution(8, 96, 32, 96, 3), convolution(12, 80, 40, 112, 3)),
    (attention(2, 8, 8, 768, 768, 64, True), attention(3, 8, 8, 896, 896, 64, True)),
    (norm("layernorm", 2000, 3072), norm("layernorm", 3000, 2560)),
)
"""Pairs of graphs of one structure: the second one has new sizes."""
