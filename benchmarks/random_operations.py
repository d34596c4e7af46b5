"""Operations drawn at random, with neighbours before and after, for `benchmarks/operations.py`.

A case is an operation of some rank, size, dims and element type. Before it may stand an activation, a permute or a
residual, after it the same. Sizes fill a card, or suit a CPU.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.operation_cases import BF16, F16, F32, Call, Case, First, Input, Seen, booleans, distinct, single, taken
from benchmarks.operation_cases import whole_numbers as below

NAMES = {F16: "f16", BF16: "bf16", F32: "f32"}


@dataclass(frozen=True)
class Operation:
    """An operation on `x` of a shape, and on other inputs.

    `of`: a function, or a module if `is_module`. `plain`: without neighbours; `seen` as in `Case`.
    """

    text: str
    x: tuple[int, ...]
    of: Callable[..., Any]
    others: tuple[Input, ...] = ()
    is_module: bool = False
    seen: Seen | None = None
    plain: bool = False
    reads_part: bool = False
    work: float = 1.0

    def make(self) -> nn.Module:
        return self.of() if self.is_module else Call(self.of)


class Draw(random.Random):
    """Random sizes: of an element type, and for a card or a CPU."""

    def __init__(self, seed: object, small: bool):
        super().__init__(str(seed))
        self.small = small
        self.dtype = self.choice([F32, F32, F32, BF16] if small else [F16, F16, BF16, F32])
        most = math.log2((1 << 21) if small else (256 << 20))
        self.elements = int(2 ** self.uniform(most - 4, most)) // self.dtype.itemsize
        """How many elements the largest tensor has, nearly."""

    def nice(self, size: float) -> int:
        """A size near another: a power of two, a multiple of 8, or any."""
        kind, whole = self.random(), max(1, round(size))
        if kind < 0.4:
            return 1 << max(0, round(math.log2(whole)))
        return max(8, whole // 8 * 8) if kind < 0.75 and whole >= 8 else whole

    def shape(self, rank: int, elements: int | None = None) -> tuple[int, ...]:
        """A shape with about so many elements; the first size makes up for the rounding of the others."""
        total = elements or self.elements
        weights = [self.uniform(0.3, 1) for _ in range(rank)]
        sizes = [self.nice(total ** (w / sum(weights))) for w in weights]
        sizes[0] = max(1, total // math.prod(sizes[1:]))
        return tuple(sizes)

    def any_shape(self, least: int = 1) -> tuple[int, ...]:
        return self.shape(self.choice([r for r in (1, 2, 2, 3, 3, 4, 4, 5) if r >= least]))

    def image(self, spatial: int = 2, elements: int | None = None) -> tuple[int, ...]:
        """Batch, channels and spatial sizes."""
        sides = {1: [512, 1000, 4096, 8192], 2: [14, 28, 56, 64, 96, 112, 128, 200, 256], 3: [8, 14, 16, 28, 32]}
        side = [self.choice(sides[spatial]) for _ in range(spatial)]
        if self.small:
            side = [max(6, s // 4) for s in side]
        if self.random() < 0.7:
            side = side[:1] * spatial
        rest = max(8, (elements or self.elements) // math.prod(side))
        channels = min(rest, self.choice([3, 16, 32, 64, 96, 128, 256, 384, 512]))
        return (max(1, rest // channels), channels, *side)

    def dims(self, rank: int) -> tuple[int, ...]:
        """Some dims: the last, one, several, or all."""
        count = self.choice([1, 1, 1, 2, rank])
        return tuple(sorted(self.sample(range(rank), min(rank, count))))

    def dim(self, rank: int) -> int:
        return self.choice([rank - 1, self.randrange(rank)])

    def window(self) -> int:
        return self.choice([2, 3, 3, 5, 7])

    def tensor(self, *shape: int) -> Input:
        return Input(shape, self.dtype)


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "scaled": lambda x: x * 0.5 + 0.25,
}


# ** elementwise and reductions **


def elementwise(d: Draw) -> Operation:
    shape = d.any_shape()
    kind = d.choice(["erf", "exp_neg", "where", "broadcast", "lerp", "clamp", "softplus", "swiglu", "addcmul"])
    small = tuple(s if d.random() < 0.5 else 1 for s in shape)
    unary: dict[str, Callable[..., Any]] = {
        "erf": torch.erf,
        "exp_neg": lambda x: torch.exp(-x.abs()),
        "clamp": lambda x: x.clamp(-0.5, 0.75) * x,
        "softplus": lambda x: F.softplus(x) * torch.tanh(x),
    }
    if kind in unary:
        return Operation(kind, shape, unary[kind])
    if kind == "broadcast":
        return Operation(
            f"x * a + b, a {small}", shape, lambda x, a, b: x * a + b, (d.tensor(*small), d.tensor(*small))
        )
    other = d.tensor(*shape)
    if kind == "where":
        return Operation(kind, shape, lambda x, c, y: torch.where(c, x, y), (Input(shape, torch.bool, booleans), other))
    if kind == "lerp":
        return Operation(kind, shape, lambda x, y, w: torch.lerp(x, y, w), (other, d.tensor(*small)))
    if kind == "swiglu":
        return Operation(kind, shape, lambda x, y: F.silu(x) * y, (other,))
    return Operation(kind, shape, lambda x, y, z: torch.addcmul(x, y, z, value=0.5), (other, d.tensor(*small)))


def reduction(d: Draw) -> Operation:
    shape = d.any_shape()
    dims, keep = d.dims(len(shape)), d.random() < 0.3
    count = math.prod(shape[i] for i in dims)
    kind = d.choice(["sum", "mean", "amax", "amin", "var", "std", "norm", "logsumexp", "var_mean", "any"])
    if kind == "sum" and count > 8192:
        kind = "mean"  # a sum of many positive f16 numbers overflows
    if kind in ("var", "std", "var_mean") and count < 2:
        kind = "mean"
    table: dict[str, Callable[..., Any]] = {
        "norm": lambda x: torch.linalg.vector_norm(x, dim=dims, keepdim=keep),
        "any": lambda x: (x > 3).any(dims[0], keepdim=keep),
    }
    of = table.get(kind, lambda x: getattr(torch, kind)(x, dim=dims, keepdim=keep))
    return Operation(f"{kind} over {dims}{' kept' if keep else ''}", shape, of)


def arg_reduction(d: Draw) -> Operation:
    shape = d.any_shape()
    dim, kind = d.dim(len(shape)), d.choice(["argmax", "argmin", "max", "min"])
    if kind.startswith("arg"):
        of = lambda x: (getattr(torch, kind)(x, dim),)  # noqa: E731
    else:
        of = lambda x: getattr(torch, kind)(x, dim)  # noqa: E731
    return Operation(f"{kind} over {dim}", shape, of, seen=taken(dim, 0 if kind.startswith("arg") else 1))


def softmax(d: Draw) -> Operation:
    shape = d.any_shape(2)
    dim, kind = d.dim(len(shape)), d.choice(["softmax", "log_softmax", "softmin"])
    return Operation(f"{kind} over {dim}", shape, lambda x: getattr(F, kind)(x, dim))


def norm(d: Draw) -> Operation:
    kind = d.choice(["layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm", "normalize"])
    if kind in ("layer_norm", "rms_norm"):
        shape = d.any_shape(2)
        over = shape[-d.choice([1, 1, min(2, len(shape) - 1)]) :]
        make = nn.LayerNorm if kind == "layer_norm" else nn.RMSNorm
        return Operation(f"{kind} {over}", shape, lambda: make(over, eps=1e-5), is_module=True)
    if kind == "normalize":
        shape = d.any_shape(2)
        dim = d.dim(len(shape))
        return Operation(f"normalize over {dim}", shape, lambda x: F.normalize(x, dim=dim))
    shape = d.image(d.choice([1, 2, 2, 3]))
    channels = shape[1]
    if kind == "group_norm":
        groups = d.choice([g for g in (1, 2, 3, 4, 8, 16, 32) if channels % g == 0])
        return Operation(f"group_norm {groups}", shape, lambda: nn.GroupNorm(groups, channels), is_module=True)
    if kind == "batch_norm":
        make_norm = {3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}[len(shape)]
        return Operation("batch_norm", shape, lambda: make_norm(channels), is_module=True)
    return Operation("instance_norm", shape, F.instance_norm)


def loss(d: Draw) -> Operation:
    kind = d.choice(["cross_entropy", "mse", "smooth_l1", "kl_div", "cosine_similarity", "bce", "nll"])
    shape = d.shape(2)
    rows, width = shape
    labels = Input((rows,), torch.int64, below(width))
    if kind == "cross_entropy":
        return Operation(kind, shape, F.cross_entropy, (labels,))
    if kind == "nll":
        return Operation(
            "log_softmax, nll", shape, lambda x, i: F.nll_loss(x.log_softmax(1), i, reduction="none"), (labels,)
        )
    other = d.tensor(*shape)
    table: dict[str, Callable[..., Any]] = {
        "mse": F.mse_loss,
        "smooth_l1": F.smooth_l1_loss,
        "cosine_similarity": F.cosine_similarity,
        "kl_div": lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
        "bce": lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()),
    }
    return Operation(kind, shape, table[kind], (other,))


def cumulative(d: Draw) -> Operation:
    shape = d.any_shape(2)
    dim, kind = d.dim(len(shape)), d.choice(["cumsum", "logcumsumexp", "cummax"])
    if kind == "cumsum" and shape[dim] > 8192:
        kind = "cummax"
    if kind == "cummax":
        return Operation(f"cummax along {dim}", shape, lambda x: torch.cummax(x, dim)[0])
    return Operation(f"{kind} along {dim}", shape, lambda x: getattr(torch, kind)(x, dim))


# ** data movement **


def arrangement(d: Draw) -> Operation:
    kind = d.choice(["permute", "cat", "stack", "flip", "roll", "slice", "repeat", "interleave", "tril", "expand"])
    shape = d.any_shape(2)
    rank, dim = len(shape), d.dim(len(shape))
    if kind == "permute":
        order = d.sample(range(rank), rank)
        return Operation(f"permute {order}", shape, lambda x: x.permute(order).contiguous())
    if kind in ("cat", "stack"):
        join = torch.cat if kind == "cat" else torch.stack
        shape = tuple(max(1, s // 2) if i == 0 else s for i, s in enumerate(shape))
        return Operation(f"{kind} along {dim}", shape, lambda x, y: join([x, y], dim), (d.tensor(*shape),))
    if kind == "flip":
        dims = d.dims(rank)
        return Operation(f"flip {dims}", shape, lambda x: x.flip(dims))
    if kind == "roll":
        dims = d.dims(rank)
        steps = [d.randrange(shape[i]) for i in dims]
        return Operation(f"roll {steps} of {dims}", shape, lambda x: x.roll(steps, dims))
    if kind == "slice":
        step, start = d.choice([1, 1, 2, 3]), d.randrange(max(1, shape[dim] // 2))
        places = (slice(None),) * dim + (slice(start, None, step),)
        return Operation(f"slice {start}::{step} of {dim}", shape, lambda x: x[places].contiguous())
    if kind in ("repeat", "interleave", "expand"):
        count = d.choice([2, 3, 4])
        shape = d.shape(rank, d.elements // count)
        if kind == "interleave":
            return Operation(f"interleave {count} of {dim}", shape, lambda x: x.repeat_interleave(count, dim))
        if kind == "expand":
            return Operation(
                f"expand {count} at {dim}",
                shape,
                lambda x: x.unsqueeze(dim).expand(*shape[:dim], count, *shape[dim:]).contiguous(),
            )
        counts = [count if i == dim else 1 for i in range(rank)]
        return Operation(f"repeat {counts}", shape, lambda x: x.repeat(counts))
    return Operation("tril", shape, torch.tril) if d.random() < 0.5 else Operation("triu", shape, torch.triu)


def pad(d: Draw) -> Operation:
    spatial = d.choice([1, 2, 2, 3])
    shape, kind = d.image(spatial), d.choice(["constant", "reflect", "replicate", "circular"])
    sizes = [d.choice([0, 1, 2, 3, 4]) for _ in range(2 * spatial)]
    sizes[-1] = sizes[-1] or 1
    return Operation(f"pad {kind} {sizes}", shape, lambda x: F.pad(x, sizes, kind))


def blocks(d: Draw) -> Operation:
    kind = d.choice(["pixel_shuffle", "pixel_unshuffle", "unfold", "fold", "patches"])
    factor = d.choice([2, 3, 4])
    if kind == "pixel_shuffle":
        n, c, h, w = d.image()
        return Operation(
            f"pixel_shuffle {factor}",
            (n, max(1, c // factor**2) * factor**2, h, w),
            lambda x: F.pixel_shuffle(x, factor),
        )
    if kind in ("pixel_unshuffle", "patches"):
        n, c, h, w = d.image()
        shape = (n, c, max(1, h // factor) * factor, max(1, w // factor) * factor)
        if kind == "pixel_unshuffle":
            return Operation(f"pixel_unshuffle {factor}", shape, lambda x: F.pixel_unshuffle(x, factor))
        rows, columns = shape[2] // factor, shape[3] // factor
        return Operation(
            f"patches of {factor}",
            shape,
            lambda x: x.reshape(n, c, rows, factor, columns, factor).permute(0, 2, 4, 1, 3, 5).flatten(3).contiguous(),
        )
    window, step = d.choice([2, 3, 4]), d.choice([1, 2])
    if kind == "unfold":
        shape = d.image(2, d.elements // max(1, (window // step) ** 2))
        return Operation(f"unfold {window} by {step}", shape, lambda x: F.unfold(x, window, stride=step))
    n, c, h, w = d.image(2, d.elements // max(1, (window // step) ** 2))
    places = ((h - window) // step + 1) * ((w - window) // step + 1)
    return Operation(
        f"fold {window} by {step} to {h} x {w}",
        (n, c * window**2, places),
        lambda x: F.fold(x, (h, w), window, stride=step),
    )


def pool(d: Draw) -> Operation:
    spatial = d.choice([1, 2, 2, 2, 3])
    shape = d.image(spatial)
    kind = d.choice(["max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "lp_pool"])
    if kind.startswith("adaptive"):
        to = d.choice([1, 3, 6, 7])
        return Operation(f"{kind}{spatial}d to {to}", shape, lambda x: getattr(F, f"{kind}{spatial}d")(x, to))
    window, step = d.choice([2, 3, 3, 5]), d.choice([1, 2, 2])
    if kind == "lp_pool":
        return Operation(
            f"lp_pool{spatial}d {window} by {step}",
            shape,
            lambda x: getattr(F, f"lp_pool{spatial}d")(x.abs() + 0.1, 2.0, window, step),
        )
    return Operation(
        f"{kind}{spatial}d {window} by {step}",
        shape,
        lambda x: getattr(F, f"{kind}{spatial}d")(x, window, step, window // 2),
    )


def resize(d: Draw) -> Operation:
    kind = d.choice(["nearest", "bilinear", "bicubic", "area", "linear", "trilinear", "grid_sample"])
    spatial = {"linear": 1, "trilinear": 3}.get(kind, 2)
    factor = d.choice([0.5, 1.5, 2, 2, 3])
    shape = d.image(spatial, int(d.elements / max(1.0, factor**spatial)))
    if kind == "grid_sample":
        n, _, h, w = shape
        grid = Input((n, h, w, 2), d.dtype, lambda shape, where: torch.rand(shape, **where) * 2 - 1)
        return Operation(kind, shape, lambda x, g: F.grid_sample(x, g, align_corners=False), (grid,))
    corners = {"align_corners": d.random() < 0.3} if kind.endswith(("linear", "cubic")) else {}
    text = f"interpolate {kind} by {factor}{' corners' if corners.get('align_corners') else ''}"
    return Operation(text, shape, lambda x: F.interpolate(x, scale_factor=factor, mode=kind, **corners))


# ** indexed data **


def gather(d: Draw) -> Operation:
    kind = d.choice(["gather", "index_select", "x[i]", "embedding", "embedding_bag", "x[:, i]"])
    if kind in ("embedding", "embedding_bag"):
        width = d.choice([32, 64, 100, 128, 256, 768])
        rows = max(16, d.elements // width)
        count = max(1, rows // d.choice([1, 2, 4]))
        if kind == "embedding":
            ids = Input((count,), torch.int64, below(rows))
            return Operation(kind, (rows, width), lambda x, i: F.embedding(i, x), (ids,), reads_part=True)
        bag, mode = d.choice([4, 16, 32]), d.choice(["sum", "mean", "max"])
        ids = Input((max(1, count // bag), bag), torch.int64, below(rows))
        return Operation(
            f"{kind} {mode} of {bag}", (rows, width), lambda x, i: F.embedding_bag(i, x, mode=mode), (ids,)
        )
    shape = d.any_shape(2)
    dim = d.dim(len(shape))
    if kind == "gather":
        index = Input(shape, torch.int64, below(shape[dim]))
        return Operation(f"gather along {dim}", shape, lambda x, i: x.gather(dim, i), (index,))
    dim = {"x[i]": 0, "x[:, i]": 1}.get(kind, dim)
    index = Input((max(1, int(shape[dim] * d.choice([0.5, 1, 1]))),), torch.int64, below(shape[dim]))
    return Operation(f"{kind} along {dim}", shape, lambda x, i: x.index_select(dim, i), (index,))


def scatter(d: Draw) -> Operation:
    kind = d.choice(
        ["scatter", "scatter_add", "scatter_amax", "index_add", "index_copy", "index_put", "segment_mean", "bincount"]
    )
    if kind == "bincount":
        bins, count = d.choice([10, 256, 1000, 65536]), d.elements // 2
        return Operation(
            f"bincount {bins}",
            (8,),
            lambda x, i: single(x).new_zeros(bins).index_add(0, i, single(x)[:1].expand(count)),
            (Input((count,), torch.int64, below(bins)),),
            plain=True,
        )
    if kind == "segment_mean":
        width, nodes = d.choice([16, 64, 128, 256]), d.choice([1000, 20000, 100000])
        edges = max(1, d.elements // width)
        nodes = max(1, min(nodes, edges))

        def mean(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
            total = x.new_zeros(nodes, width).index_add(0, i, x)
            count = x.new_zeros(nodes).index_add(0, i, x.new_ones(edges))
            return total / count.clamp(min=1)[:, None]

        return Operation(f"{kind} to {nodes}", (edges, width), mean, (Input((edges,), torch.int64, below(nodes)),))
    shape = d.any_shape(2)
    dim = d.dim(len(shape))
    other = tuple(max(1, int(s * d.choice([0.5, 1, 1]))) if i == dim else s for i, s in enumerate(shape))
    row = Input((other[dim],), torch.int64, distinct(0, shape[dim]))
    many = Input((other[dim],), torch.int64, below(shape[dim]))
    source = d.tensor(*other)
    if kind == "scatter":
        index = Input(other, torch.int64, distinct(dim, shape[dim]))
        return Operation(f"scatter along {dim}", shape, lambda x, i, y: x.scatter(dim, i, y), (index, source))
    if kind in ("scatter_add", "scatter_amax"):
        index = Input(other, torch.int64, below(shape[dim]))
        if kind == "scatter_add":
            return Operation(
                f"scatter_add along {dim}", shape, lambda x, i, y: x.scatter_add(dim, i, y), (index, source)
            )
        return Operation(
            f"scatter_reduce amax along {dim}",
            shape,
            lambda x, i, y: x.scatter_reduce(dim, i, y, "amax"),
            (index, source),
        )
    if kind == "index_add":
        return Operation(f"index_add along {dim}", shape, lambda x, i, y: x.index_add(dim, i, y), (many, source))
    if kind == "index_copy":
        return Operation(f"index_copy along {dim}", shape, lambda x, i, y: x.index_copy(dim, i, y), (row, source))
    places = max(1, shape[0] // 2)
    return Operation(
        "index_put",
        shape,
        lambda x, i, y: x.index_put((i,), y),
        (Input((places,), torch.int64, distinct(0, shape[0])), d.tensor(places, *shape[1:])),
    )


def order(d: Draw) -> Operation:
    shape = d.shape(2) if d.random() < 0.7 else d.shape(3)
    dim = d.dim(len(shape))
    kind = d.choice(["sort", "argsort", "topk", "kthvalue", "median", "msort"])
    descending = d.random() < 0.5
    if kind == "sort":
        return Operation(f"sort along {dim}", shape, lambda x: x.sort(dim, descending), seen=taken(dim))
    if kind == "argsort":
        return Operation(f"argsort along {dim}", shape, lambda x: (x.argsort(dim, descending),), seen=taken(dim, 0))
    if kind == "msort":
        return Operation("msort", shape, torch.msort)
    if kind == "topk":
        count = min(shape[dim], d.choice([1, 5, 10, 50, 200]))
        return Operation(f"topk {count} along {dim}", shape, lambda x: x.topk(count, dim), seen=taken(dim))
    if kind == "median":
        return Operation(f"median along {dim}", shape, lambda x: x.median(dim), seen=taken(dim))
    place = d.randint(1, shape[dim])
    return Operation(f"kthvalue {place} along {dim}", shape, lambda x: x.kthvalue(place, dim), seen=taken(dim))


# ** products, convolutions, attention, recurrence **


def product(d: Draw) -> Operation:
    kind = d.choice(["linear", "bmm", "shared", "vector", "deep", "einsum", "outer", "cdist"])
    work = 2 ** d.uniform(22, 27) if d.small else 2 ** d.uniform(34, 38)
    most = max(64, d.elements)

    def sizes(count: int) -> list[int]:
        total = work ** (1 / count)
        found = [max(1, d.nice(total * 2 ** d.uniform(-1.5, 1.5))) for _ in range(count)]
        if count == 4:  # a batch of matrices of at most 2^28 elements
            found[0] = min(found[0], max(1, (1 << 28) // max(a * b for a, b in itertools.combinations(found[1:], 2))))
        return found

    if kind == "linear":
        m, n, k = sizes(3)
        return Operation(f"linear {k} to {n}", (m, k), lambda: nn.Linear(k, n), is_module=True)
    if kind == "bmm":
        b, m, n, k = sizes(4)
        return Operation(f"bmm {n} columns", (b, m, k), torch.bmm, (d.tensor(b, k, n),))
    if kind == "shared":
        b, m, n, k = sizes(4)
        return Operation(f"batch @ shared {n} columns", (b, m, k), torch.matmul, (d.tensor(k, n),))
    if kind == "vector":
        m, k = d.shape(2)
        return Operation("matrix @ vector", (m, k), torch.mv, (d.tensor(k),))
    if kind == "deep":
        m, n = (d.choice([8, 16, 33, 64, 128]) for _ in "mn")
        k = max(64, most // max(m, n))
        return Operation(f"deep product to {m} x {n}", (m, k), torch.matmul, (d.tensor(k, n),))
    if kind == "outer":
        m, n = d.shape(2)
        return Operation(f"outer {n}", (m,), torch.outer, (d.tensor(n),))
    if kind == "cdist":
        n, width = (400 if d.small else d.choice([1000, 4096, 5000])), d.choice([3, 16, 64, 128])
        return Operation(
            "cdist",
            (n, width),
            lambda x, y: torch.cdist(single(x), single(y)),
            (d.tensor(n, width),),
        )
    equation = d.choice(["bhqd,bhkd->bhqk", "bikc,bjkc->bijc", "bij,bjk,bkl->bil", "bnd,hde->bhne", "bsd,dhe->bhse"])
    b, m, n, k = sizes(4)
    table: dict[str, list[tuple[int, ...]]] = {
        "bhqd,bhkd->bhqk": [(b, 8, m, k), (b, 8, n, k)],
        "bikc,bjkc->bijc": [(1, m, n, k), (1, m, n, k)],
        "bij,bjk,bkl->bil": [(b, m, n), (b, n, k), (b, k, m)],
        "bnd,hde->bhne": [(b, m, k), (8, k, n)],
        "bsd,dhe->bhse": [(b, m, k), (k, 8, n)],
    }
    x, *others = table[equation]
    return Operation(
        f"einsum {equation}", x, lambda *given: torch.einsum(equation, *given), tuple(d.tensor(*s) for s in others)
    )


def convolution(d: Draw) -> Operation:
    spatial, transposed = d.choice([1, 2, 2, 2, 3]), d.random() < 0.3
    shape = d.image(spatial, d.elements // (4 if spatial == 3 else 2))
    n, c, *_ = shape
    window = d.choice([1, 3, 3, 4, 5, 7]) if spatial < 3 else d.choice([1, 3])
    step, dilation = d.choice([1, 1, 2]), 1
    groups, out = 1, d.choice([16, 32, 64, 128, 256])
    kind = d.random()
    if kind < 0.3 and not transposed:
        groups, out = c, c
    elif kind < 0.45 and c % 4 == 0:
        groups = 4
    elif kind < 0.55:
        dilation = 2
    make = getattr(nn, f"Conv{'Transpose' if transposed else ''}{spatial}d")
    text = f"conv{'_transpose' if transposed else ''}{spatial}d to {out} window {window} by {step}"
    text += f" groups {groups}" * (groups > 1) + f" dilation {dilation}" * (dilation > 1)
    padding = dilation * (window - 1) // 2
    of = lambda: make(c, out, window, step, padding, dilation=dilation, groups=groups)  # noqa: E731
    while n > 1 and 2 * math.prod(shape) / c * n * out * c / groups * window**spatial > n * (
        (1 << 29) if d.small else (1 << 39)
    ):
        n //= 2
        shape = (n, *shape[1:])
    return Operation(text, shape, of, is_module=True)


def attention(d: Draw) -> Operation:
    batch, heads = d.choice([1, 2, 4, 8]), d.choice([4, 8, 12, 16])
    length, width = d.choice([128, 197, 512, 1000, 1024, 2048, 4096]), d.choice([32, 64, 64, 80, 128])
    if d.small:
        batch, heads, length = 1, 4, min(length, 256)
    kind = d.choice(["plain", "causal", "mask", "cross", "grouped", "module", "layer"])
    shape = (batch, heads, length, width)
    sdpa = F.scaled_dot_product_attention
    if kind == "module":
        size = heads * width
        return Operation(
            f"nn.MultiheadAttention {heads} heads",
            (batch, length, size),
            lambda: First(nn.MultiheadAttention(size, heads, batch_first=True), copies=3),
            is_module=True,
        )
    if kind == "layer":
        size = heads * width
        return Operation(
            f"nn.TransformerEncoderLayer {heads} heads",
            (batch, length, size),
            lambda: nn.TransformerEncoderLayer(size, heads, 2 * size, batch_first=True),
            is_module=True,
        )
    if kind == "mask":
        mask = Input((1, 1, length, length), torch.bool, booleans)
        return Operation(
            "attention masked", shape, lambda q, k, v, m: sdpa(q, k, v, m), (*[d.tensor(*shape)] * 2, mask)
        )
    if kind == "cross":
        keys = d.tensor(batch, heads, 77, width)
        return Operation("attention to 77 keys", shape, sdpa, (keys, keys))
    if kind == "grouped":
        keys = d.tensor(batch, heads // 4, length, width)
        return Operation("attention grouped", shape, lambda q, k, v: sdpa(q, k, v, enable_gqa=True), (keys, keys))
    return Operation(
        f"attention {kind}",
        shape,
        lambda q, k, v: sdpa(q, k, v, is_causal=kind == "causal"),
        (d.tensor(*shape),) * 2,
        work=0.5 if kind == "causal" else 1.0,
    )


def recurrent(d: Draw) -> Operation:
    batch, length = (2, 16) if d.small else (d.choice([1, 8, 32, 64]), d.choice([32, 64, 128]))
    size, hidden = d.choice([64, 128, 256, 512]), d.choice([64, 128, 256, 512])
    layers, both = d.choice([1, 1, 2]), d.random() < 0.3
    kind = d.choice(["LSTM", "GRU", "RNN"])
    return Operation(
        f"{kind} {size} to {hidden}, {layers} layers{', both ways' if both else ''}",
        (batch, length, size),
        lambda: First(getattr(nn, kind)(size, hidden, layers, batch_first=True, bidirectional=both)),
        is_module=True,
        plain=True,
    )


FAMILIES: dict[str, tuple[Callable[[Draw], Operation], int]] = {
    "elementwise": (elementwise, 2),
    "reduction": (reduction, 4),
    "arg_reduction": (arg_reduction, 1),
    "softmax": (softmax, 2),
    "norm": (norm, 3),
    "loss": (loss, 3),
    "cumulative": (cumulative, 1),
    "arrangement": (arrangement, 4),
    "pad": (pad, 2),
    "blocks": (blocks, 2),
    "pool": (pool, 2),
    "resize": (resize, 2),
    "gather": (gather, 2),
    "scatter": (scatter, 3),
    "order": (order, 3),
    "product": (product, 4),
    "convolution": (convolution, 4),
    "attention": (attention, 2),
    "recurrent": (recurrent, 1),
}
"""How an operation of a family is drawn, and how often, in parts of all."""


# ** neighbours **


class Between(nn.Module):
    """An operation with neighbours; the inputs are those of the operation, then those of the neighbours."""

    def __init__(self, operation: nn.Module, before: str, after: str, order: list[int], turned: list[int], count: int):
        super().__init__()
        self.operation, self.before, self.after, self.count = operation, before, after, count
        self.order, self.turned = order, turned

    def prepared(self, x: torch.Tensor, extra: list[torch.Tensor]) -> torch.Tensor:
        if self.before == "permute":
            return x.permute(self.order)
        if self.before == "residual":
            return x + extra.pop(0)
        return ACTIVATIONS[self.before](x) if self.before else x

    def forward(self, x: torch.Tensor, *rest: torch.Tensor) -> Any:
        others, extra = rest[: self.count], list(rest[self.count :])
        result = self.operation(self.prepared(x, extra), *others)
        if not self.after:
            return result
        if self.after == "permute":
            return result.permute(self.turned).contiguous()
        return result + extra.pop(0) if self.after == "residual" else ACTIVATIONS[self.after](result)


def _neighbour(d: Draw) -> str:
    return d.choice(["", "", d.choice(sorted(ACTIVATIONS)), "permute", "residual"])


def with_neighbours(d: Draw, op: Operation) -> Case:
    """The case of an operation, with what may stand before and after it."""
    before, after = ("", "") if op.plain else (_neighbour(d), _neighbour(d))
    if before == "permute" and len(op.x) < 2:
        before = ""
    result = result_of(d, op)
    if result is None or op.seen is not None or not result.is_floating_point():
        after = ""
    if after == "permute" and (result is None or result.ndim < 2):
        after = "relu"
    order, turned = (
        d.sample(range(n), n) for n in (len(op.x), result.ndim if after == "permute" and result is not None else 0)
    )
    given = [0] * len(op.x)
    for place, source in enumerate(order):
        given[source] = op.x[place]
    x = d.tensor(*(given if before == "permute" else op.x))
    extra = [d.tensor(*op.x)] if before == "residual" else []
    if after == "residual" and result is not None:
        extra.append(Input(tuple(result.shape), result.dtype))
    words = [NAMES[d.dtype], " x ".join(map(str, op.x)), *(f"after {before}" for _ in [0] if before)]
    words += [f"then {after}" for _ in [0] if after]
    count = len(op.others)
    case = Case(
        f"{op.text}, {', '.join(words)}",
        lambda: Between(op.make(), before, after, order, turned, count),
        (x, *op.others, *extra),
        reads_part=op.reads_part,
        dtype=d.dtype,
        work=op.work,
    )
    if op.seen is None:
        return case
    seen = op.seen

    def prepared(inputs: Any, outputs: Any) -> Any:
        between = Between(nn.Identity(), before, after, order, turned, count)
        return seen([between.prepared(inputs[0], list(inputs[count + 1 :]))], outputs)

    return replace(case, seen=prepared)


def result_of(d: Draw, op: Operation) -> torch.Tensor | None:
    """The result without data; None for several results."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    usual = torch.get_default_dtype()
    torch.set_default_dtype(d.dtype)  # of weights: a module without data cannot be converted
    try:
        with FakeTensorMode(), torch.no_grad():
            found = op.make().eval()(*[torch.empty(i.shape, dtype=i.dtype) for i in (d.tensor(*op.x), *op.others)])
    finally:
        torch.set_default_dtype(usual)
    return found if isinstance(found, torch.Tensor) else None


def operations(seed: int, count: int, small: bool = False) -> list[Case]:
    """`count` operations of a seed. `small`: of a size for a CPU."""
    families = [name for name, (_, parts) in FAMILIES.items() for _ in range(parts)]
    cases: list[Case] = []
    turn: list[str] = []
    shuffler = random.Random(seed)
    for i in range(count):
        if not turn:
            turn = shuffler.sample(families, len(families))
        d = Draw((seed, i), small)
        cases.append(with_neighbours(d, FAMILIES[turn.pop()][0](d)))
    return cases
