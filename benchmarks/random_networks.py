"""Random but plausible networks in plain PyTorch, drawn by a seed, so that nobody has tuned for them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks import random_structures as structures
from benchmarks.random_draws import ACTIVATIONS, Draw, Drawn, ids


def layer_norm(draw: Draw, width: int) -> nn.Module:
    return nn.RMSNorm(width, eps=1e-6) if draw.random() < 0.4 else nn.LayerNorm(width, eps=1e-5)


class Attention(nn.Module):
    """Self attention or attention to a context: heads of the queries, heads of the keys, a bias or causal."""

    def __init__(self, width: int, heads: int, shared: int, bias: str, length: int, with_bias: bool):
        super().__init__()
        self.heads, self.shared, self.size, self.kind = heads, shared, width // heads, bias
        self.q = nn.Linear(width, width, bias=with_bias)
        self.kv = nn.Linear(width, 2 * shared * self.size, bias=with_bias)
        self.out = nn.Linear(width, width, bias=with_bias)
        if bias == "relative":
            self.table = nn.Parameter(torch.randn(1, heads, length, length) * 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.q(x).unflatten(-1, (self.heads, self.size)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2, self.shared, self.size)).unbind(2)
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        if self.shared != self.heads:
            k = k.repeat_interleave(self.heads // self.shared, 1)
            v = v.repeat_interleave(self.heads // self.shared, 1)
        mask = self.table if self.kind == "relative" else None
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.kind == "causal")
        return self.out(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """Two products with an activation, or gated."""

    def __init__(self, draw: Draw, width: int, hidden: int, activation: str, with_bias: bool):
        super().__init__()
        self.gated = draw.random() < 0.35
        self.up = nn.Linear(width, hidden * (2 if self.gated else 1), bias=with_bias)
        self.act, self.down = ACTIVATIONS[activation](), nn.Linear(hidden, width, bias=with_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(x)
        if self.gated:
            value, gate = y.chunk(2, -1)
            return self.down(value * self.act(gate))
        return self.down(self.act(y))


class Layer(nn.Module):
    """A layer of a transformer, or of a mixer, with `mix` in place of attention; norms before or after."""

    def __init__(self, draw: Draw, width: int, mix: nn.Module, hidden: int, activation: str, bias: bool, before: bool):
        super().__init__()
        self.mix, self.feed = mix, FeedForward(draw, width, hidden, activation, bias)
        self.norm1, self.norm2, self.before = layer_norm(draw, width), layer_norm(draw, width), before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.before:
            x = x + self.mix(self.norm1(x))
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.mix(x))
        return self.norm2(x + self.feed(x))


class OfTokens(nn.Module):
    """Multiplies along the tokens of a mixer."""

    def __init__(self, length: int, hidden: int, activation: str):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(length, hidden), ACTIVATIONS[activation](), nn.Linear(hidden, length)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.act(self.up(x.transpose(1, 2)))).transpose(1, 2)


class Text(nn.Module):
    def __init__(self, words: int, width: int, length: int, layers: nn.ModuleList, last: nn.Module, out: int):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(length, width) * 0.02)
        self.layers, self.norm, self.head = layers, last, nn.Linear(width, out)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Patches(nn.Module):
    def __init__(self, patch: int, width: int, count: int, layers: nn.ModuleList, last: nn.Module):
        super().__init__()
        self.cut, self.places = nn.Conv2d(3, width, patch, patch), nn.Parameter(torch.randn(count, width) * 0.02)
        self.layers, self.norm, self.head = layers, last, nn.Linear(width, 100)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.cut(image).flatten(2).transpose(1, 2) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


class Squeeze(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, width: int, to: int):
        super().__init__()
        self.down, self.up = nn.Conv2d(width, to, 1), nn.Conv2d(to, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.up(F.relu(self.down(x.mean((2, 3), keepdim=True)))).sigmoid()


class Block(nn.Module):
    """A residual block: plain, a bottleneck, or inverted with a depthwise convolution and squeeze."""

    def __init__(self, draw: Draw, kind: str, width_in: int, width: int, step: int, activation: str):
        super().__init__()
        act = ACTIVATIONS[activation]
        inner = {"plain": width, "bottleneck": width // 4, "inverted": width_in * draw.choice([3, 4, 6])}[kind]
        window = draw.choice([3, 5, 7]) if kind == "inverted" else 3
        middle = {"plain": 1, "bottleneck": draw.choice([1, 1, 4]), "inverted": inner}[kind]
        parts: list[nn.Module] = []
        if kind == "plain":
            parts += [nn.Conv2d(width_in, inner, 3, step, 1, bias=False), nn.BatchNorm2d(inner), act()]
            parts += [nn.Conv2d(inner, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)]
        else:
            parts += [nn.Conv2d(width_in, inner, 1, bias=False), nn.BatchNorm2d(inner), act()]
            parts += [nn.Conv2d(inner, inner, window, step, window // 2, groups=middle, bias=False)]
            parts += [nn.BatchNorm2d(inner), act()]
            if kind == "inverted" and draw.random() < 0.5:
                parts.append(Squeeze(inner, max(8, width_in // 4)))
            parts += [nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width)]
        self.parts = nn.Sequential(*parts)
        self.act = nn.Identity() if kind == "inverted" else act()
        self.skip: nn.Module | None = nn.Identity() if step == 1 and width_in == width else None
        if self.skip is None and kind != "inverted":
            self.skip = nn.Sequential(nn.Conv2d(width_in, width, 1, step, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.parts(x)
        return self.act(y if self.skip is None else y + self.skip(x))


class Pyramid(nn.Module):
    """A UNet: downsampling and upsampling, where the values of the way down are concatenated on the way up."""

    def __init__(self, widths: list[int], groups: int, activation: str):
        super().__init__()

        def two(width_in: int, width: int) -> nn.Sequential:
            parts: list[nn.Module] = []
            for a in (width_in, width):
                parts += [nn.Conv2d(a, width, 3, padding=1), nn.GroupNorm(groups, width), ACTIVATIONS[activation]()]
            return nn.Sequential(*parts)

        self.down = nn.ModuleList(two(a, b) for a, b in zip([3, *widths], widths, strict=False))
        pairs = list(pairwise(widths))[::-1]
        self.up = nn.ModuleList(two(small + large, small) for small, large in pairs)
        self.out = nn.Conv2d(widths[0], 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept: list[torch.Tensor] = []
        for i, part in enumerate(self.down):
            x = part(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for part in self.up:
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = part(torch.cat([kept.pop(), x], 1))
        return self.out(x)


class Tables(nn.Module):
    """Embeddings of several tables beside dense features, then products."""

    def __init__(self, tables: int, rows: int, width: int, dense: int, hidden: list[int], activation: str):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        parts: list[nn.Module] = []
        sizes = [tables * width + dense, *hidden]
        for a, b in zip(sizes, hidden, strict=False):
            parts += [nn.Linear(a, b), ACTIVATIONS[activation]()]
        self.products = nn.Sequential(*parts, nn.Linear(hidden[-1], 1))

    def forward(self, ids: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
        looked = [table(ids[:, i]) for i, table in enumerate(self.tables)]
        return self.products(torch.cat([*looked, dense], 1))


def _transformer(draw: Draw, family: str, small: bool) -> Drawn:
    heads = draw.choice([3, 4, 6, 8, 12, 16])
    size = draw.choice([32, 48, 64, 64, 80, 96, 128])
    width = heads * size
    while width > (768 if small else 2048):
        heads //= 2
        width = heads * size
    shared = draw.choice([h for h in (1, 2, 3, 4, 6, 8, 12, 16) if heads % h == 0]) if draw.random() < 0.3 else heads
    depth = draw.randint(2, 4 if small else 8)
    hidden = max(8, int(width * draw.choice([2, 8 / 3, 3, 4])) // 8 * 8)
    activation, bias, before = draw.choice(sorted(ACTIVATIONS)), draw.random() < 0.7, draw.random() < 0.7
    batch = draw.choice([1, 1, 2, 4, 8, 16] if small else [1, 1, 2, 4, 8, 16, 32])
    words = 4000
    patch, side = draw.choice([(16, 224), (14, 224), (16, 192), (32, 256), (8, 96)])
    image = family in ("vision", "mixer")
    length = (side // patch) ** 2 if image else draw.choice([17, 48, 64, 100, 128, 256, 384] + ([] if small else [512]))
    kind = {"encoder": draw.choice(["none", "none", "relative"]), "decoder": "causal"}.get(family, "none")
    name = (
        f"{family} depth {depth} width {width} heads {heads}/{shared} hidden {hidden} {activation} length {length} "
        f"{kind if not image else f'patch {patch}'}{'' if bias else ' no bias'}{'' if before else ' post-norm'}"
    )

    def make() -> nn.Module:
        inner = Draw(draw_seed)

        def mix() -> nn.Module:
            if family == "mixer":
                return OfTokens(length, max(16, width // 2), activation)
            return Attention(width, heads, shared, kind, length, bias)

        layers = nn.ModuleList(Layer(inner, width, mix(), hidden, activation, bias, before) for _ in range(depth))
        last = layer_norm(inner, width)
        return Patches(patch, width, length, layers, last) if image else Text(words, width, length, layers, last, 64)

    draw_seed = draw.randrange(1 << 30)
    if image:
        return Drawn(name, make, lambda b, dtype: [torch.randn(b, 3, side, side).to(dtype)], batch)
    return Drawn(name, make, lambda b, dtype: [ids(b, length, words)], batch)


def _convolutional(draw: Draw, small: bool) -> Drawn:
    kind, activation = draw.choice(["plain", "bottleneck", "inverted"]), draw.choice(["relu", "silu", "hardswish"])
    width, side = draw.choice([16, 24, 32, 48, 64]), draw.choice([96, 128, 160] if small else [128, 160, 192, 224])
    stages = [draw.randint(1, 3) for _ in range(draw.randint(3, 4))]
    stem, batch = draw.choice([3, 5, 7]), draw.choice([1, 1, 2, 4] if small else [1, 1, 4, 8, 16, 32])
    seed = draw.randrange(1 << 30)

    def make() -> nn.Module:
        inner = Draw(seed)
        act = ACTIVATIONS[activation]
        parts: list[nn.Module] = [nn.Conv2d(3, width, stem, 2, stem // 2, bias=False), nn.BatchNorm2d(width), act()]
        at = width
        for i, count in enumerate(stages):
            to = width * (4 if kind == "bottleneck" else 1) * 2**i
            for j in range(count):
                parts.append(Block(inner, kind, at, to, 2 if j == 0 and i else 1, activation))
                at = to
        return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(at, 100))

    name = f"conv {kind} width {width} stages {stages} stem {stem} {activation} side {side}"
    return Drawn(name, make, lambda b, dtype: [torch.randn(b, 3, side, side).to(dtype)], batch)


def _pyramid(draw: Draw, small: bool) -> Drawn:
    first, count = draw.choice([16, 24, 32, 64]), draw.randint(2, 4)
    widths, groups = [first * 2**i for i in range(count)], draw.choice([1, 4, 8])
    side, activation = draw.choice([64, 96] if small else [64, 96, 128, 192]), draw.choice(["relu", "silu", "gelu"])
    batch = draw.choice([1, 2] if small else [1, 2, 4, 8])
    name = f"unet widths {widths} groups {groups} {activation} side {side}"
    return Drawn(
        name,
        lambda: Pyramid(widths, groups, activation),
        lambda b, dtype: [torch.randn(b, 3, side, side).to(dtype)],
        batch,
    )


def _tables(draw: Draw, small: bool) -> Drawn:
    tables, width, dense = draw.randint(3, 20), draw.choice([16, 32, 64, 100]), draw.choice([8, 13, 32])
    hidden = [draw.choice([128, 256, 512, 1000]) for _ in range(draw.randint(2, 4))]
    batch, activation = (
        draw.choice([1, 16, 128, 1024] if small else [16, 128, 1024, 4096]),
        draw.choice(["relu", "silu"]),
    )
    rows = 5000
    name = f"tables {tables} x {width} dense {dense} hidden {hidden} {activation}"
    return Drawn(
        name,
        lambda: Tables(tables, rows, width, dense, hidden, activation),
        lambda b, dtype: [ids(b, tables, rows), torch.randn(b, dense).to(dtype)],
        batch,
        (0, 1),
    )


FAMILIES: dict[str, Callable[[Draw, bool], Drawn]] = {
    "encoder": lambda draw, small: _transformer(draw, "encoder", small),
    "decoder": lambda draw, small: _transformer(draw, "decoder", small),
    "vision": lambda draw, small: _transformer(draw, "vision", small),
    "mixer": lambda draw, small: _transformer(draw, "mixer", small),
    "conv": _convolutional,
    "unet": _pyramid,
    "tables": _tables,
    "graph": structures.graph,
    "recurrent": structures.recurrent,
    "audio": structures.sound,
    "segmentation": structures.segments,
    "detection": structures.boxes,
    "history": structures.history,
}


def networks(seed: int, count: int, small: bool = False, families: Collection[str] = FAMILIES) -> list[Drawn]:
    """`count` networks of a seed, the families in turn. `small`: of a size for a CPU."""
    draw = Draw(seed)
    families = sorted(families)
    draw.shuffle(families)
    return [FAMILIES[families[i % len(families)]](draw, small) for i in range(count)]
