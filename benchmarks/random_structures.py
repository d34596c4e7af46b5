"""Networks of graphs, sequences, sounds, maps of classes, boxes and histories, drawn at random, for
`benchmarks/random_networks.py`. Layers are those of open-source models, in plain PyTorch."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.random_draws import ACTIVATIONS, Draw, Drawn, ids


class Graph(nn.Module):
    """Layers over the edges of a graph: sums or means of neighbours (GIN, GCN), or attention to them (GAT)."""

    def __init__(self, kind: str, nodes: int, sizes: list[int], activation: str):
        super().__init__()
        self.kind, self.nodes = kind, nodes
        self.own = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.near = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in pairwise(sizes))
        self.scores = nn.ModuleList(nn.Linear(b, 2) for b in sizes[1:])
        self.act, self.head = ACTIVATIONS[activation](), nn.Linear(sizes[-1], 16)

    def near_of(self, i: int, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """What each node gets of the nodes with an edge to it."""
        y = self.near[i](x)
        nothing = y.new_zeros(self.nodes, y.shape[1])
        if self.kind == "attention":
            s = self.scores[i](y)
            weight = F.leaky_relu(s[source, 0] + s[target, 1], 0.2).exp()
            total = weight.new_zeros(self.nodes).index_add(0, target, weight)
            weight = weight / (total[target] + 1e-3)
            return nothing.index_add(0, target, y[source] * weight[:, None])
        found = nothing.index_add(0, target, y[source])
        if self.kind == "sum":
            return found
        count = y.new_zeros(self.nodes).index_add(0, target, torch.ones_like(y[source, 0]))
        return found / count.clamp(min=1)[:, None]

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        for i, own in enumerate(self.own):
            x = self.act(own(x) + self.near_of(i, x, edges[0], edges[1]))
        return self.head(x)


class Recurrent(nn.Module):
    """Words, recurrent layers, and a result of the last state or of the mean."""

    def __init__(self, kind: str, words: int, size: int, hidden: int, layers: int, both: bool, last: bool):
        super().__init__()
        self.words, self.last = nn.Embedding(words, size), last
        self.layers = getattr(nn, kind)(size, hidden, layers, batch_first=True, bidirectional=both)
        self.head = nn.Linear(hidden * (2 if both else 1), 32)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        y = self.layers(self.words(tokens))[0]
        return self.head(y[:, -1] if self.last else y.mean(1))


class Gated(nn.Module):
    """A dilated convolution with a gate, and a residual (WaveNet)."""

    def __init__(self, width: int, window: int, dilation: int):
        super().__init__()
        self.conv = nn.Conv1d(width, 2 * width, window, padding=dilation * (window // 2), dilation=dilation)
        self.out = nn.Conv1d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = self.conv(x).chunk(2, 1)
        return x + self.out(torch.tanh(a) * torch.sigmoid(b))


class Separable(nn.Module):
    """The convolution of a Conformer: a gate, a long depthwise window, a norm."""

    def __init__(self, width: int, window: int, dilation: int):
        super().__init__()
        self.norm, self.up = nn.GroupNorm(1, width), nn.Conv1d(width, 2 * width, 1)
        self.deep = nn.Conv1d(width, width, 10 * window + 1, padding=5 * window, groups=width)
        self.batch, self.down = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.silu(self.batch(self.deep(F.glu(self.up(self.norm(x)), 1)))))


class Sound(nn.Module):
    """Windows of a waveform, layers over them, and a waveform or classes."""

    def __init__(self, width: int, step: int, layer: type[nn.Module], window: int, depth: int, back: bool):
        super().__init__()
        self.cut = nn.Conv1d(1, width, 2 * step, step, step // 2)
        self.layers = nn.Sequential(*(layer(width, window, 2 ** (i % 4)) for i in range(depth)))
        self.out = nn.ConvTranspose1d(width, 1, 2 * step, step, step // 2) if back else nn.Conv1d(width, 64, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.layers(F.relu(self.cut(x))))


def _conv(a: int, b: int, step: int = 1, dilation: int = 1, window: int = 3) -> nn.Sequential:
    conv = nn.Conv2d(a, b, window, step, dilation * (window // 2), dilation, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(b), nn.ReLU())


class Segments(nn.Module):
    """Dilated branches and the mean of the image (DeepLab), and classes at the size of the image."""

    def __init__(self, widths: list[int], rates: list[int], classes: int, mode: str):
        super().__init__()
        self.down = nn.Sequential(*(_conv(a, b, 2) for a, b in zip([3, *widths], widths, strict=False)))
        width, self.mode = widths[-1], mode
        self.branches = nn.ModuleList([_conv(width, 64, window=1), *(_conv(width, 64, dilation=r) for r in rates)])
        self.mean = nn.Conv2d(width, 64, 1)
        self.out = nn.Conv2d(64 * (len(rates) + 2), classes, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.down(image)
        mean = F.relu(self.mean(F.adaptive_avg_pool2d(x, 1)))
        mean = F.interpolate(mean, x.shape[2:], mode="bilinear")
        y = self.out(torch.cat([*(branch(x) for branch in self.branches), mean], 1))
        return F.interpolate(y, image.shape[2:], mode=self.mode)


class Boxes(nn.Module):
    """A pyramid of features from coarse to fine, and one head for all sizes (FPN, RetinaNet)."""

    def __init__(self, widths: list[int], width: int, anchors: int, classes: int):
        super().__init__()
        self.down = nn.ModuleList(_conv(a, b, 2) for a, b in zip([3, *widths], widths, strict=False))
        self.side = nn.ModuleList(nn.Conv2d(w, width, 1) for w in widths[1:])
        self.smooth = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in widths[1:])
        self.classes = nn.Sequential(_conv(width, width), nn.Conv2d(width, anchors * classes, 3, padding=1))
        self.boxes = nn.Sequential(_conv(width, width), nn.Conv2d(width, anchors * 4, 3, padding=1))
        self.count = classes

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x, kept = image, list[torch.Tensor]()
        for part in self.down:
            x = part(x)
            kept.append(x)
        level, found = None, list[torch.Tensor]()
        for side, smooth, x in zip(self.side[::-1], self.smooth[::-1], kept[:0:-1], strict=True):
            level = side(x) if level is None else side(x) + F.interpolate(level, scale_factor=2.0, mode="nearest")
            y = smooth(level)
            scores = self.classes(y).permute(0, 2, 3, 1).reshape(y.shape[0], -1, self.count).sigmoid()
            boxes = self.boxes(y).permute(0, 2, 3, 1).reshape(y.shape[0], -1, 4)
            found.append(torch.cat([boxes[..., :2].tanh(), boxes[..., 2:].clamp(max=4).exp(), scores], -1))
        return torch.cat(found, 1)


class History(nn.Module):
    """Bags of features with products of pairs (DLRM), a cross network (DCN), and attention to what was seen (DIN)."""

    def __init__(self, tables: int, rows: int, width: int, hidden: list[int], crosses: int):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.items = nn.Embedding(rows, width)
        self.scores = nn.Sequential(nn.Linear(3 * width, 32), nn.SiLU(), nn.Linear(32, 1))
        count = tables + 2
        self.register_buffer("pairs", torch.tril_indices(count, count, -1))
        size = count * width + count * (count - 1) // 2
        self.crosses = nn.ModuleList(nn.Linear(size, size) for _ in range(crosses))
        sizes = [size, *hidden]
        parts = [m for a, b in zip(sizes, hidden, strict=False) for m in (nn.Linear(a, b), nn.ReLU())]
        self.out = nn.Sequential(*parts, nn.Linear(hidden[-1], 1))

    def forward(self, features: torch.Tensor, seen: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        bags = [bag(features[:, i]) for i, bag in enumerate(self.bags)]
        past, now = self.items(seen), self.items(item)
        wide = now[:, None].expand_as(past)
        weight = self.scores(torch.cat([past, wide, past * wide], -1)).softmax(1)
        all = torch.stack([*bags, now, (past * weight).sum(1)], 1)
        products = torch.bmm(all, all.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        first = x = torch.cat([all.flatten(1), products], 1)
        for cross in self.crosses:
            x = first * cross(x) + x
        return self.out(x)


def graph(draw: Draw, small: bool) -> Drawn:
    nodes = draw.choice([500, 2000] if small else [2000, 20000, 100000])
    edges = nodes * draw.choice([4, 10, 20])
    features, layers = draw.choice([16, 50, 128]), draw.randint(2, 4)
    sizes = [features, *[draw.choice([32, 64, 128, 256])] * layers]
    kind, activation = draw.choice(["sum", "mean", "attention"]), draw.choice(sorted(ACTIVATIONS))

    def inputs(batch: int, dtype: torch.dtype) -> list[torch.Tensor]:
        return [torch.randn(nodes, features).to(dtype) * 0.3, torch.randint(nodes, (2, edges))]

    name = f"graph {kind} nodes {nodes} edges {edges} sizes {sizes} {activation}"
    return Drawn(name, lambda: Graph(kind, nodes, sizes, activation), inputs, 1, ())


def recurrent(draw: Draw, small: bool) -> Drawn:
    kind, layers = draw.choice(["LSTM", "GRU"]), draw.randint(1, 3)
    size, hidden = draw.choice([64, 100, 256]), draw.choice([64, 128, 256] if small else [128, 256, 512, 1024])
    length, batch = draw.choice([16, 32] if small else [32, 64, 128]), draw.choice([1, 4] if small else [1, 16, 64])
    both, last = draw.random() < 0.5, draw.random() < 0.5
    name = f"recurrent {kind} x {layers} size {size} hidden {hidden} length {length}{' both ways' if both else ''}"
    return Drawn(
        name,
        lambda: Recurrent(kind, 4000, size, hidden, layers, both, last),
        lambda b, dtype: [ids(b, length, 4000)],
        batch,
    )


def sound(draw: Draw, small: bool) -> Drawn:
    width, step, depth = draw.choice([32, 64, 128]), draw.choice([4, 8, 16]), draw.randint(3, 8)
    layer, window, back = draw.choice([Gated, Separable]), draw.choice([3, 5, 7]), draw.random() < 0.5
    length, batch = (
        step * draw.choice([250, 500] if small else [1000, 2000]),
        draw.choice([1, 2] if small else [1, 8, 16]),
    )
    name = (
        f"audio {layer.__name__} width {width} step {step} depth {depth} window {window}{' to sound' if back else ''}"
    )
    return Drawn(
        name,
        lambda: Sound(width, step, layer, window, depth, back),
        lambda b, dtype: [torch.randn(b, 1, length).to(dtype)],
        batch,
    )


def segments(draw: Draw, small: bool) -> Drawn:
    first = draw.choice([16, 32, 48])
    widths = [first * 2**i for i in range(3)]
    rates, classes = draw.choice([[2, 4], [6, 12, 18], [3, 6, 9]]), draw.choice([2, 19, 21])
    side, batch = draw.choice([64, 96] if small else [128, 256, 320]), draw.choice([1, 2] if small else [1, 4, 8])
    mode = draw.choice(["bilinear", "bicubic", "nearest"])
    name = f"segmentation widths {widths} rates {rates} classes {classes} {mode} side {side}"
    return Drawn(
        name,
        lambda: Segments(widths, rates, classes, mode),
        lambda b, dtype: [torch.randn(b, 3, side, side).to(dtype)],
        batch,
    )


def boxes(draw: Draw, small: bool) -> Drawn:
    first, levels = draw.choice([16, 32]), draw.randint(4, 5)
    widths, width = [min(512, first * 2**i) for i in range(levels)], draw.choice([64, 128, 256])
    anchors, classes = draw.choice([1, 3, 9]), draw.choice([4, 20, 80])
    side, batch = draw.choice([96, 128] if small else [256, 320, 512]), draw.choice([1, 2] if small else [1, 4, 8])
    name = f"detection widths {widths} to {width} anchors {anchors} classes {classes} side {side}"
    return Drawn(
        name,
        lambda: Boxes(widths, width, anchors, classes),
        lambda b, dtype: [torch.randn(b, 3, side, side).to(dtype)],
        batch,
    )


def history(draw: Draw, small: bool) -> Drawn:
    tables, width, bag = draw.randint(3, 12), draw.choice([16, 32, 64]), draw.choice([1, 4, 10])
    length, crosses = draw.choice([10, 50, 100]), draw.randint(1, 3)
    hidden = [draw.choice([64, 256, 512]) for _ in range(draw.randint(1, 3))]
    batch, rows = draw.choice([1, 64, 256] if small else [64, 1024, 4096]), 5000

    def inputs(b: int, dtype: torch.dtype) -> list[torch.Tensor]:
        return [torch.randint(rows, (b, tables, bag)), ids(b, length, rows), torch.randint(rows, (b,))]

    name = f"history {tables} x {width} bags of {bag} seen {length} crosses {crosses} hidden {hidden}"
    return Drawn(name, lambda: History(tables, rows, width, hidden, crosses), inputs, batch, (0, 1, 2))
