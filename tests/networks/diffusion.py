"""Parts of diffusion models in plain PyTorch: a block of a UNet, a decoder of latents, a transformer block."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from tests.networks.network import BATCH, Arguments, Network

GROUPS = 8
TIME = 64


class Residual(nn.Module):
    """Two convolutions, each after a group norm and silu; the time embedding is added between them."""

    def __init__(self, channels: int, result: int, time: int | None = TIME) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(GROUPS, channels), nn.GroupNorm(GROUPS, result)
        self.conv1 = nn.Conv2d(channels, result, 3, padding=1)
        self.conv2 = nn.Conv2d(result, result, 3, padding=1)
        self.time = None if time is None else nn.Linear(time, result)
        self.skip = nn.Identity() if channels == result else nn.Conv2d(channels, result, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor | None = None) -> torch.Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        if self.time is not None and time is not None:
            h = h + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    """Attention of tokens to a context, or to themselves without one."""

    def __init__(self, width: int, context: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key, self.value = nn.Linear(context, width, bias=False), nn.Linear(context, width, bias=False)
        self.result = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, context: torch.Tensor | None = None) -> torch.Tensor:
        context = x if context is None else context

        def parted(t: torch.Tensor) -> torch.Tensor:
            return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        y = F.scaled_dot_product_attention(
            *(parted(t) for t in (self.query(x), self.key(context), self.value(context)))
        )
        return self.result(y.transpose(1, 2).flatten(2))


class CrossAttended(nn.Module):
    """The tokens of an image attend to themselves and to a text, and pass a gated layer."""

    def __init__(self, width: int, context: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, width, eps=1e-6)
        self.enter, self.leave = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own, self.cross = Attention(width, width), Attention(width, context)
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        height, width = x.shape[2:]
        h = self.enter(self.norm(x)).flatten(2).transpose(1, 2)
        h = h + self.own(self.norms[0](h))
        h = h + self.cross(self.norms[1](h), context)
        value, gate = self.up(self.norms[2](h)).chunk(2, -1)
        h = h + self.down(value * F.gelu(gate))
        return x + self.leave(h.transpose(1, 2).unflatten(2, (height, width)))


class UNet(nn.Module):
    """A UNet of two levels, with a sinusoidal embedding of the sampler's step and attention to a text."""

    def __init__(self, width: int = 32, context: int = 48) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, TIME), nn.SiLU(), nn.Linear(TIME, TIME))
        self.enter = nn.Conv2d(4, width, 3, padding=1)
        self.high, self.attend_high = Residual(width, width), CrossAttended(width, context)
        self.down = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.low, self.attend_low = Residual(width, 2 * width), CrossAttended(2 * width, context)
        self.up = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.join = Residual(3 * width, width)
        self.norm, self.leave = nn.GroupNorm(GROUPS, width), nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, sample: torch.Tensor, step: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        rates = torch.exp(-9.2 * torch.arange(16, dtype=torch.float32, device=sample.device) / 16)
        angles = step[:, None].float() * rates
        time = self.time(torch.cat([angles.cos(), angles.sin()], -1).to(sample.dtype))
        high = self.attend_high(self.high(self.enter(sample), time), context)
        low = self.attend_low(self.low(self.down(high), time), context)
        low = self.up(F.interpolate(low, scale_factor=2.0, mode="nearest"))
        return self.leave(F.silu(self.norm(self.join(torch.cat([low, high], 1), time))))


class Decoder(nn.Module):
    """Latents to an image: attention in the middle, then levels of twice the size each."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.enter = nn.Conv2d(4, 2 * width, 3, padding=1)
        self.before, self.after = Residual(2 * width, 2 * width, None), Residual(2 * width, 2 * width, None)
        self.norm, self.attention = nn.GroupNorm(GROUPS, 2 * width), Attention(2 * width, 2 * width, 1)
        self.levels = nn.ModuleList([Residual(2 * width, width, None), Residual(width, width, None)])
        self.ups = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.last, self.leave = nn.GroupNorm(GROUPS, width), nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        h = self.before(self.enter(latents))
        tokens = self.norm(h).flatten(2).transpose(1, 2)
        h = self.after(h + self.attention(tokens).transpose(1, 2).unflatten(2, h.shape[2:]))
        for level, up in zip(self.levels, self.ups, strict=True):
            h = up(F.interpolate(level(h), scale_factor=2.0, mode="nearest"))
        return self.leave(F.silu(self.last(h)))


class TransformerBlock(nn.Module):
    """A block whose norms are shifted, scaled and gated by a condition, on the patches of latents."""

    def __init__(self, width: int = 64, patch: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(4, width, patch, stride=patch)
        self.positions = nn.Parameter(torch.randn(1, 16, width))
        self.condition = nn.Linear(width, 6 * width)
        self.norms = nn.ModuleList(nn.LayerNorm(width, elementwise_affine=False, eps=1e-6) for _ in range(2))
        self.attention = Attention(width, width)
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))
        self.leave = nn.Linear(width, patch * patch * 4)

    def forward(self, latents: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        x = self.patches(latents).flatten(2).transpose(1, 2) + self.positions
        shift, scale, gate, shift2, scale2, gate2 = self.condition(F.silu(condition)).chunk(6, dim=1)
        x = x + gate[:, None] * self.attention(self.norms[0](x) * (1 + scale[:, None]) + shift[:, None])
        x = x + gate2[:, None] * self.layers(self.norms[1](x) * (1 + scale2[:, None]) + shift2[:, None])
        pixels = self.leave(x).unflatten(1, (4, 4)).unflatten(-1, (2, 2, 4))
        return torch.einsum("nhwpqc->nchpwq", pixels).flatten(4).flatten(2, 3)


def _sampled(batch: int, length: int) -> Arguments:
    context = torch.randn(batch, 7, 48)
    return {"sample": torch.randn(batch, 4, 16, 16), "step": torch.randint(0, 1000, (batch,)), "context": context}


def _latents(batch: int, length: int) -> Arguments:
    return {"latents": torch.randn(batch, 4, 8, 8)}


def _conditioned(batch: int, length: int) -> Arguments:
    return {**_latents(batch, length), "condition": torch.randn(batch, 64)}


PARTS: dict[str, Network] = {
    "part UNet with cross attention": Network(UNet, _sampled, {n: {0: BATCH} for n in ("sample", "step", "context")}),
    "part decoder of latents": Network(Decoder, _latents, {"latents": {0: BATCH}}),
    "part diffusion transformer": Network(
        TransformerBlock, _conditioned, {n: {0: BATCH} for n in ("latents", "condition")}, sampled=True
    ),
}
