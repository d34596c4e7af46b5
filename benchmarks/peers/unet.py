"""The denoising network of Stable Diffusion 1.5 (arXiv:2112.10752) in plain PyTorch."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

CHANNELS, HEADS, TEXT, WORDS = (320, 640, 1280, 1280), 8, 768, 77


class Residual(nn.Module):
    """Two convolutions with the time between them."""

    def __init__(self, width_in: int, width: int, time: int):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, width_in), nn.Conv2d(width_in, width, 3, padding=1)
        self.time = nn.Linear(time, width)
        self.norm2, self.conv2 = nn.GroupNorm(32, width), nn.Conv2d(width, width, 3, padding=1)
        self.skip = nn.Identity() if width_in == width else nn.Conv2d(width_in, width, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class Attention(nn.Module):
    def __init__(self, width: int, context: int):
        super().__init__()
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = nn.Linear(context, width, bias=False), nn.Linear(context, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (self.q(x), self.k(context), self.v(context)))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    """Attention of the pixels to each other and to the text, and a gated feed-forward part."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.GroupNorm(32, width, eps=1e-6)
        self.into, self.out = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.own, self.text = Attention(width, width), Attention(width, TEXT)
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        height, width = x.shape[2:]
        y = self.into(self.norm(x)).flatten(2).transpose(1, 2)
        z = self.norm1(y)
        y = y + self.own(z, z)
        y = y + self.text(self.norm2(y), text)
        value, gate = self.up(self.norm3(y)).chunk(2, -1)
        y = y + self.down(value * F.gelu(gate))
        return x + self.out(y.transpose(1, 2).unflatten(2, (height, width)))


class Block(nn.Module):
    def __init__(self, width_in: int, width: int, time: int, attends: bool):
        super().__init__()
        self.residual = Residual(width_in, width, time)
        self.transformer = Transformer(width) if attends else None

    def forward(self, x: torch.Tensor, time: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        x = self.residual(x, time)
        return x if self.transformer is None else self.transformer(x, text)


class UNet(nn.Module):
    """Latents [batch, 4, 64, 64], time [batch] and text [batch, 77, 768] to the noise, shaped like the latents."""

    def __init__(self) -> None:
        super().__init__()
        first, time = CHANNELS[0], 4 * CHANNELS[0]
        self.time = nn.Sequential(nn.Linear(first, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(4, first, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        widths, width = [first], first
        for level, wider in enumerate(CHANNELS):
            for _ in range(2):
                self.down.append(Block(width, wider, time, level < 3))
                width = wider
                widths.append(width)
            if level < 3:
                self.down.append(nn.Conv2d(width, width, 3, stride=2, padding=1))
                widths.append(width)
        self.middle = nn.ModuleList([Block(width, width, time, True), Block(width, width, time, False)])
        for level, wider in reversed(list(enumerate(CHANNELS))):
            for i in range(3):
                self.up.append(Block(width + widths.pop(), wider, time, level < 3))
                width = wider
                if i == 2 and level > 0:
                    self.up.append(nn.Conv2d(width, width, 3, padding=1))
        self.norm, self.last = nn.GroupNorm(32, width), nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, latents: torch.Tensor, step: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        half = CHANNELS[0] // 2
        rates = torch.exp(torch.arange(half, device=step.device) * (-math.log(10000) / half))
        angles = step[:, None] * rates
        time = self.time(torch.cat([angles.cos(), angles.sin()], -1).to(latents.dtype))
        x = self.first(latents)
        kept = [x]
        for part in self.down:
            x = part(x, time, text) if isinstance(part, Block) else part(x)
            kept.append(x)
        for part in self.middle:
            x = part(x, time, text)
        for part in self.up:
            if isinstance(part, Block):
                x = part(torch.cat([x, kept.pop()], 1), time, text)
            else:
                x = part(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.last(F.silu(self.norm(x)))


def inputs(batch: int, dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(batch)
    latents = torch.randn(batch, 4, 64, 64, generator=generator).to(dtype)
    steps = torch.randint(0, 1000, (batch,), generator=generator).float()
    return [latents, steps, torch.randn(batch, WORDS, TEXT, generator=generator).to(dtype)]
