"""Operations as modules of their own, with inputs that fill a card, for `benchmarks/operations.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Fill = Callable[[tuple[int, ...], Any], torch.Tensor]
"""Makes the values of an input: its shape, and the keywords `device` and `generator`."""
F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32


def _normal(shape: tuple[int, ...], where: Any) -> torch.Tensor:
    return torch.randn(shape, **where)


def whole_numbers(below: int) -> Fill:
    """Whole numbers from 0 to `below` - 1."""
    return lambda shape, where: torch.randint(below, shape, **where)


def distinct(dim: int, below: int) -> Fill:
    """Whole numbers from 0 to `below` - 1, each at most once along a dim."""

    def fill(shape: tuple[int, ...], where: Any) -> torch.Tensor:
        wide = (*shape[:dim], below, *shape[dim + 1 :])
        return torch.rand(wide, **where).argsort(dim).narrow(dim, 0, shape[dim]).contiguous()

    return fill


def booleans(shape: tuple[int, ...], where: Any) -> torch.Tensor:
    return torch.rand(shape, **where) < 0.5


@dataclass(frozen=True)
class Input:
    """A tensor that an operation reads."""

    shape: tuple[int, ...]
    dtype: torch.dtype = F16
    fill: Fill = _normal

    def example(self) -> torch.Tensor:
        """Zeros on the CPU; untouched memory costs nothing."""
        return torch.zeros(self.shape, dtype=self.dtype)

    def values(self, device: str, generator: torch.Generator) -> torch.Tensor:
        return self.fill(self.shape, {"device": device, "generator": generator}).to(self.dtype)

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


Outputs = Sequence[torch.Tensor]
Seen = Callable[[Outputs, Outputs], Outputs]
"""Makes of inputs and results the values that are compared: indices may differ between equal values."""


@dataclass(frozen=True)
class Case:
    """An operation with its inputs, as a module.

    `reads_part`: of its first input it reads only as many elements as it returns. `work`: the share of the operations
    counted by PyTorch that it needs; PyTorch counts attention as if nothing was masked.
    """

    name: str
    make: Callable[[], nn.Module]
    inputs: tuple[Input, ...]
    seen: Seen = lambda inputs, outputs: outputs
    reads_part: bool = False
    dtype: torch.dtype = F16
    work: float = 1.0

    def module(self) -> nn.Module:
        """The module on the CPU; the same weights in each process."""
        torch.manual_seed(0)
        return self.make().eval().requires_grad_(False).to(self.dtype)

    def values(self, device: str) -> list[torch.Tensor]:
        """Random inputs; the same in each process."""
        generator = torch.Generator(device).manual_seed(1)
        return [given.values(device, generator) for given in self.inputs]

    def moved(self, outputs: Outputs, weights: int) -> int:
        """The bytes of inputs, weights and results, each once."""
        written = sum(out.nbytes for out in outputs)
        read = [given.bytes for given in self.inputs]
        if self.reads_part:
            read[0] = min(read[0], written)
        return sum(read) + written + weights


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


class First(nn.Module):
    """The first result of a module that returns several."""

    def __init__(self, module: nn.Module, copies: int = 1):
        super().__init__()
        self.module, self.copies = module, copies

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(*([x] * self.copies))[0]


def taken(dim: int, place: int = 1) -> Seen:
    """Compares the elements of the first input at the places in a result, in place of the places."""

    def seen(inputs: Outputs, outputs: Outputs) -> Outputs:
        found = list(outputs)
        index = found[place]
        found[place] = inputs[0].gather(dim, index if index.ndim == inputs[0].ndim else index.unsqueeze(dim))
        return found

    return seen


def called(
    name: str, function: Callable[..., Any], *inputs: Input, seen: Seen | None = None, reads_part: bool = False
) -> Case:
    """The case of a function."""
    seen = seen or (lambda inputs, outputs: outputs)
    return Case(name, lambda: Call(function), inputs, seen, reads_part, inputs[0].dtype)


def built(name: str, make: Callable[[], nn.Module], *inputs: Input) -> Case:
    """The case of a module."""
    return Case(name, make, inputs)


def _x(*shape: int, dtype: torch.dtype = F16) -> Input:
    return Input(shape, dtype)


def _i(below: int, *shape: int) -> Input:
    return Input(shape, torch.int64, whole_numbers(below))


def single(x: torch.Tensor) -> torch.Tensor:
    """The values in float32, or in float64 where the operation is computed in it for comparison."""
    return x if x.dtype == torch.float64 else x.float()


MILLION = 1 << 20

TABLE: tuple[Case, ...] = (
    called(
        "index_add, f32, 65,536 rows of 64, 262,144 rows added",
        lambda x, i, source: x.index_add(0, i, source),
        _x(65536, 64, dtype=F32),
        _i(65536, 262144),
        _x(262144, 64, dtype=F32),
    ),
    built(
        "ConvTranspose2d 256 to 128, 4 x 4, stride 2, f16, 16 x 32 x 32",
        lambda: nn.ConvTranspose2d(256, 128, 4, stride=2, padding=1),
        _x(16, 256, 32, 32),
    ),
    called(
        "fold, f16, 8 x 64 x 128 x 128, windows of 4, stride 2",
        lambda x: F.fold(x, (128, 128), 4, stride=2),
        _x(8, 64 * 16, 63 * 63),
    ),
    called(
        "scatter_add along dim 1, f32, 1,024 x 4,096, 8,192 places a row",
        lambda x, i, source: x.scatter_add(1, i, source),
        _x(1024, 4096, dtype=F32),
        _i(4096, 1024, 8192),
        _x(1024, 8192, dtype=F32),
    ),
    called(
        "interpolate nearest by 2, f16, 8 x 128 x 128 x 128",
        lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
        _x(8, 128, 128, 128),
    ),
    called("cdist, f32, 4,096 x 64 twice", torch.cdist, _x(4096, 64, dtype=F32), _x(4096, 64, dtype=F32)),
    called("unfold, f16, 8 x 64 x 128 x 128, windows of 3", lambda x: F.unfold(x, 3, padding=1), _x(8, 64, 128, 128)),
    called(
        "scatter along dim 1, f16, 4,096 x 4,096",
        lambda x, i, source: x.scatter(1, i, source),
        _x(4096, 4096),
        Input((4096, 4096), torch.int64, distinct(1, 4096)),
        _x(4096, 4096),
    ),
    called("topk 50, f16, 64 x 128,256", lambda x: torch.topk(x, 50), _x(64, 128256), seen=taken(1)),
    called("softmax over dim 1, f16, 256 x 1,024 x 256", lambda x: x.softmax(1), _x(256, 1024, 256)),
    called(
        "cross_entropy of x.float(), f16, 4,096 x 32,000",
        lambda x, target: F.cross_entropy(single(x), target),
        _x(4096, 32000),
        _i(32000, 4096),
    ),
    called("reflect pad 3, f16, 8 x 64 x 256 x 256", lambda x: F.pad(x, [3] * 4, "reflect"), _x(8, 64, 256, 256)),
    called("cosine_similarity, f16, 65,536 x 512", F.cosine_similarity, _x(65536, 512), _x(65536, 512)),
    called("logsumexp, f16, 16,384 x 4,096", lambda x: x.logsumexp(1), _x(16384, 4096)),
    called("softmax, f16, 16 rows of 2 million", lambda x: x.softmax(1), _x(16, 2 * MILLION)),
    called("median, f32, 4,096 x 4,097", lambda x: torch.median(x, 1), _x(4096, 4097, dtype=F32), seen=taken(1)),
    called(
        "max_pool2d 3, stride 2, f16, 64 x 64 x 112 x 112", lambda x: F.max_pool2d(x, 3, 2, 1), _x(64, 64, 112, 112)
    ),
    called("(64 x 1M) @ (1M x 64), f16", torch.matmul, _x(64, MILLION), _x(MILLION, 64)),
    built(
        "Conv2d 7 x 7 depthwise, 384 channels, f16, 32 x 28 x 28",
        lambda: nn.Conv2d(384, 384, 7, padding=3, groups=384),
        _x(32, 384, 28, 28),
    ),
    called("pixel_shuffle 4, f16, 8 x 256 x 128 x 128", lambda x: F.pixel_shuffle(x, 4), _x(8, 256, 128, 128)),
    called(
        "gather along dim 1, f16, 8,192 x 4,096",
        lambda x, i: x.gather(1, i),
        _x(8192, 4096),
        _i(4096, 8192, 4096),
    ),
    called(
        "interpolate bicubic, f16, 8 x 64 x 128 x 128 to 256 x 256",
        lambda x: F.interpolate(x, (256, 256), mode="bicubic"),
        _x(8, 64, 128, 128),
    ),
    called("var over dim 1, f32, 256 x 1,024 x 256", lambda x: x.var(1), _x(256, 1024, 256, dtype=F32)),
    called(
        "adaptive_avg_pool2d to 7, f16, 64 x 512 x 28 x 28",
        lambda x: F.adaptive_avg_pool2d(x, 7),
        _x(64, 512, 28, 28),
    ),
    called(
        "scaled_dot_product_attention, f32, 4 x 8 x 1,024 x 64",
        F.scaled_dot_product_attention,
        *[_x(4, 8, 1024, 64, dtype=F32)] * 3,
    ),
    built("RNN 256, f16, 32 x 64 x 256", lambda: First(nn.RNN(256, 256, batch_first=True)), _x(32, 64, 256)),
    built(
        "nn.MultiheadAttention(1,024, 16), f16, 8 x 1,024",
        lambda: First(nn.MultiheadAttention(1024, 16, batch_first=True), copies=3),
        _x(8, 1024, 1024),
    ),
    called("sort, f32, 4,096 x 4,096", lambda x: torch.sort(x, 1), _x(4096, 4096, dtype=F32), seen=taken(1)),
    called(
        "(4,097 x 1,001) @ (1,001 x 4,099), bf16", torch.matmul, _x(4097, 1001, dtype=BF16), _x(1001, 4099, dtype=BF16)
    ),
    built(
        "Conv1d 128, window 41, 4 groups, f16, 8 x 8,192",
        lambda: nn.Conv1d(128, 128, 41, padding=20, groups=4),
        _x(8, 128, 8192),
    ),
    built(
        "LSTM 512, 2 layers, f16, 16 x 128 x 512",
        lambda: First(nn.LSTM(512, 512, 2, batch_first=True)),
        _x(16, 128, 512),
    ),
    called("sum of 64 M, f16", torch.sum, _x(64 * MILLION)),
    called("argmax, f16, 1,024 x 128,256", lambda x: (x.argmax(1),), _x(1024, 128256), seen=taken(1, 0)),
    built(
        "Conv3d 64 to 64, 3 x 3 x 3, f16, 4 x 16 x 56 x 56",
        lambda: nn.Conv3d(64, 64, 3, padding=1),
        _x(4, 64, 16, 56, 56),
    ),
    called("logcumsumexp, f32, 4,096 x 4,096", lambda x: x.logcumsumexp(1), _x(4096, 4096, dtype=F32)),
    called("mean over dim 0, f16, 65,536 x 1,024", lambda x: x.mean(0), _x(65536, 1024)),
    called("(64 x 512 x 512) @ (512 x 512), f16", torch.matmul, _x(64, 512, 512), _x(512, 512)),
    called("layer_norm, f16, a million rows of 64", lambda x: F.layer_norm(x, (64,)), _x(MILLION, 64)),
    called(
        "x[i], f16, a million rows of 64", lambda x, i: x[i], _x(MILLION, 64), _i(MILLION, MILLION), reads_part=True
    ),
    called("(16,384 x 16,384) @ vector, f16", torch.mv, _x(16384, 16384), _x(16384)),
    Case(
        "causal attention, f16, 2 x 16 x 8,192 x 128",
        lambda: Call(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
        (_x(2, 16, 8192, 128),) * 3,
        work=0.5,
    ),
    built(
        "EmbeddingBag sum, a million rows of 64, f16, 32,768 x 32",
        lambda: nn.EmbeddingBag(MILLION, 64, mode="sum"),
        _i(MILLION, 32768, 32),
    ),
    called(
        'einsum "bikc,bjkc->bijc", f16, 256 x 256 x 128',
        lambda a, b: torch.einsum("bikc,bjkc->bijc", a, b),
        *[_x(1, 256, 256, 128)] * 2,
    ),
    called("cumsum over dim 0, f16, 8,192 x 8,192", lambda x: x.cumsum(0), _x(8192, 8192)),
)
"""Operations beside PyTorch at sizes that fill a card."""
