"""Small architectures in plain PyTorch, written as their papers describe them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.networks.network import BATCH, LENGTH, Arguments, Network

D = 16
"""Channels of a sequence."""


class Of(nn.Module):
    """A function of `x` and of layers."""

    def __init__(self, function: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.layers, self.function = nn.ModuleDict(layers), function

    def forward(self, x: Any) -> Any:
        return self.function(x, self.layers)


def sequence(function: Callable[..., Any], sampled: bool = False, **layers: Callable[[], nn.Module]) -> Network:
    """A network over [batch, length, D]."""

    def arguments(batch: int, length: int) -> Arguments:
        return {"x": torch.randn(batch, length, D)}

    def make() -> nn.Module:
        return Of(function, **{name: layer() for name, layer in layers.items()})

    return Network(make, arguments, {"x": {0: BATCH, 1: LENGTH}}, sampled)


def tokens(function: Callable[..., Any], sampled: bool = False, **layers: Callable[[], nn.Module]) -> Network:
    """A network over tokens [batch, length]."""

    def arguments(batch: int, length: int) -> Arguments:
        return {"x": torch.randint(0, 50, (batch, length))}

    def make() -> nn.Module:
        return Of(function, **{name: layer() for name, layer in layers.items()})

    return Network(make, arguments, {"x": {0: BATCH, 1: LENGTH}}, sampled)


def image(
    function: Callable[..., Any], size: int = 16, channels: int = 3, sampled: bool = False, **layers: Callable[[], Any]
) -> Network:
    """A network over images [batch, channels, size, size]."""

    def arguments(batch: int, length: int) -> Arguments:
        return {"x": torch.randn(batch, channels, size, size)}

    def make() -> nn.Module:
        return Of(function, **{name: layer() for name, layer in layers.items()})

    return Network(make, arguments, {"x": {0: BATCH}}, sampled)


def linear(a: int = D, b: int = D, **options: Any) -> Callable[[], nn.Module]:
    return lambda: nn.Linear(a, b, **options)


def norm(width: int = D) -> Callable[[], nn.Module]:
    return lambda: nn.LayerNorm(width)


def conv(a: int, b: int, kernel: int = 3, stride: int = 1, **options: Any) -> Callable[[], nn.Module]:
    return lambda: nn.Conv2d(a, b, kernel, stride, kernel // 2, **options)


def heads(x: Any, count: int = 4) -> Any:
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def attend(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


# ** sequences **


def linear_attention(x: Any, m: Any) -> Any:
    """arXiv:2006.16236"""
    q, k, v = (heads(part) for part in m["qkv"](x).chunk(3, -1))
    q, k = F.elu(q) + 1, F.elu(k) + 1
    states = torch.einsum("bhnd,bhne->bhde", k, v)
    scale = 1 / torch.einsum("bhnd,bhd->bhn", q, k.sum(2))
    return m["out"](torch.einsum("bhnd,bhde,bhn->bhne", q, states, scale).transpose(1, 2).flatten(2))


def causal_linear_attention(x: Any, m: Any) -> Any:
    q, k, v = (heads(part).softmax(-1) for part in m["qkv"](x).chunk(3, -1))
    weights = (q @ k.mT).tril()
    return m["out"](((weights @ v) / weights.sum(-1, keepdim=True)).transpose(1, 2).flatten(2))


def talking_heads(x: Any, m: Any) -> Any:
    """arXiv:2003.02436"""
    q, k, v = (heads(part) for part in m["qkv"](x).chunk(3, -1))
    scores = m["before"]((q @ k.mT / 2).permute(0, 2, 3, 1)).softmax(2)
    return m["out"]((m["after"](scores).permute(0, 3, 1, 2) @ v).transpose(1, 2).flatten(2))


def relative_positions(x: Any, m: Any) -> Any:
    """arXiv:1803.02155"""
    q, k, v = (heads(part) for part in m["qkv"](x).chunk(3, -1))
    n = x.shape[1]
    places = torch.arange(n, device=x.device)
    apart = (places[:, None] - places[None]).clamp(-8, 8) + 8
    bias = torch.einsum("bhid,ijd->bhij", q, m["table"](apart))
    return m["out"](((q @ k.mT + bias).softmax(-1) @ v).transpose(1, 2).flatten(2))


def retention(x: Any, m: Any) -> Any:
    """arXiv:2307.08621"""
    q, k, v = (heads(part) for part in m["qkv"](x).chunk(3, -1))
    places = torch.arange(x.shape[1], device=x.device)
    apart = places[:, None] - places[None]
    decay = 1 - 2.0 ** -(5 + torch.arange(4.0, device=x.device))
    kept = torch.where(apart >= 0, decay[:, None, None] ** apart.clamp(min=0), 0.0)
    y = ((q @ k.mT) * kept.to(x.dtype)) @ v
    return m["out"](F.group_norm(y.transpose(1, 2).flatten(2).flatten(0, 1), 4).view_as(x) * F.silu(m["gate"](x)))


def mixer(x: Any, m: Any) -> Any:
    y = x + m["channels"](m["norm"](x))
    return y + F.gelu(y.mean(1, keepdim=True)) * y


def gated_unit(x: Any, m: Any) -> Any:
    """arXiv:2202.10447"""
    u, v, base = m["wide"](m["norm"](x)).split([2 * D, 2 * D, D], -1)
    q, k = base * m["scale"].weight[0] + m["scale"].weight[1], base * m["scale"].weight[2] + m["scale"].weight[3]
    kernel = F.relu(q @ k.mT / x.shape[1]).square()
    return x + m["out"](F.silu(u) * (kernel @ F.silu(v)))


def wavenet(x: Any, m: Any) -> Any:
    """arXiv:1609.03499"""
    y, found = x.mT, 0
    for i in range(3):
        z = m[f"dilated{i}"](F.pad(y, (2**i, 0)))
        a, b = z.chunk(2, 1)
        z = a.tanh() * b.sigmoid()
        found, y = found + m[f"skip{i}"](z), y + z
    return F.relu(found).mT


def tcn(x: Any, m: Any) -> Any:
    """arXiv:1803.01271"""
    y = x.mT
    for i in range(2):
        z = F.relu(m[f"conv{i}"](F.pad(y, (2 * 2**i, 0))))
        y = F.relu(z + y)
    return y[:, :, -1]


def quasi_recurrent(x: Any, m: Any) -> Any:
    """arXiv:1611.01576, with the recurrence as a scan of products"""
    z, f = m["both"](F.pad(x.mT, (1, 0))).mT.chunk(2, -1)
    f = f.sigmoid()
    total = torch.cumsum(torch.log(f.clamp(min=1e-4)), 1)
    return (torch.cumsum((1 - f) * z.tanh() * torch.exp(-total), 1) * torch.exp(total))[:, :8]


def diagonal_states(x: Any, m: Any) -> Any:
    """arXiv:2206.11893: a convolution with a kernel of exponentials"""
    n = x.shape[1]
    decay = torch.exp(-F.softplus(m["decay"].weight[:, 0]))
    kernel = decay[:, None] ** torch.arange(n, device=x.device)
    places = torch.arange(n, device=x.device)[:, None] - torch.arange(n, device=x.device)
    matrix = torch.where(places >= 0, kernel[:, places.clamp(min=0)], 0)
    return m["out"](F.gelu(torch.einsum("dij,bjd->bid", matrix, x)))


def recurrent_units(x: Any, m: Any) -> Any:
    h = x[:, 0] * 0
    for t in range(x.shape[1]):
        h = m["cell"](x[:, t], h)
    return h


def minimal_lstm(x: Any, m: Any) -> Any:
    """arXiv:2410.01201"""
    gate, value = m["gate"](x).sigmoid(), m["value"](x)
    rows = [value[:, 0]]
    h = value[:, 0]
    for t in range(1, x.shape[1]):
        h = (1 - gate[:, t]) * h + gate[:, t] * value[:, t]
        rows.append(h)
    return torch.stack(rows, 1)


def two_directions(x: Any, m: Any) -> Any:
    y, (h, c) = m["lstm"](x)
    return m["out"](y), h, c


def conditional_field(x: Any, m: Any) -> Any:
    """The log of the partition function over 5 labels."""
    scores = m["emit"](x)
    total = scores[:, 0]
    for t in range(1, x.shape[1]):
        total = torch.logsumexp(total[:, :, None] + m["step"].weight[None] + scores[:, t, None], 1)
    return torch.logsumexp(total, -1)


def capsules(x: Any, m: Any) -> Any:
    """arXiv:1710.09829: three rounds of routing by agreement"""
    votes = m["votes"](x).unflatten(-1, (4, 8))
    logits = torch.zeros_like(votes[..., 0])
    for _ in range(3):
        s = (logits.softmax(-1)[..., None] * votes).sum(1)
        square = s.square().sum(-1, keepdim=True)
        v = square / (1 + square) * s / (square + 1e-7).sqrt()
        logits = logits + (votes * v[:, None]).sum(-1)
    return v


def memory(x: Any, m: Any) -> Any:
    """A product key memory (arXiv:1907.05242) of 8 x 8 slots."""
    q = m["query"](x)
    first, second = q.chunk(2, -1)
    (a, i), (b, j) = ((part @ m["places"].weight[:, :8]).topk(3, -1) for part in (first, second))
    scores, best = (a[..., :, None] + b[..., None, :]).flatten(-2).topk(3, -1)
    slots = (i[..., :, None] * 8 + j[..., None, :]).flatten(-2).gather(-1, best)
    return (scores.softmax(-1)[..., None] * m["contents"](slots)).sum(-2)


def experts(x: Any, m: Any) -> Any:
    """All experts, weighted by the two best."""
    weights, chosen = m["router"](x).topk(2, -1)
    gates = x.new_zeros(*x.shape[:2], 4).scatter(-1, chosen, weights.softmax(-1))
    return torch.einsum("bnedk,bne->bnd", m["wide"](x).relu().unflatten(-1, (4, D, 1)), gates)


def slots(x: Any, m: Any) -> Any:
    """arXiv:2006.15055"""
    k, v = m["k"](m["norm"](x)), m["v"](x)
    state = m["start"].weight[None].expand(x.shape[0], -1, -1)
    for _ in range(2):
        attention = (m["q"](state) @ k.mT / 4).softmax(1) + 1e-8
        update = (attention / attention.sum(-1, keepdim=True)) @ v
        state = m["cell"](update.flatten(0, 1), state.flatten(0, 1)).view_as(state)
    return state


def perceiver(x: Any, m: Any) -> Any:
    """arXiv:2103.03206"""
    latent = m["latent"].weight[None].expand(x.shape[0], -1, -1)
    for _ in range(2):
        latent = latent + m["read"](latent, x, x, need_weights=False)[0]
        latent = latent + m["think"](latent, latent, latent, need_weights=False)[0]
    return latent


def set_transformer(x: Any, m: Any) -> Any:
    """arXiv:1810.00825"""
    points = m["induced"].weight[None].expand(x.shape[0], -1, -1)
    h = m["a"](points, x, x)[0]
    y, weights = m["b"](x, h, h)
    return y.amax(1), weights


def pointer(x: Any, m: Any) -> Any:
    """arXiv:1506.03134: three steps that point at places"""
    state, hidden = x.mean(1), torch.zeros(x.shape[0], x.shape[1], dtype=torch.bool, device=x.device)
    found = []
    for _ in range(3):
        state = m["cell"](state, state)
        scores = (m["place"](x) @ state[..., None])[..., 0].masked_fill(hidden, -1e4)
        weights = scores.softmax(-1)
        found.append(weights)
        state = (weights[..., None] * x).sum(1)
    return torch.stack(found, 1)


def hyper(x: Any, m: Any) -> Any:
    """A layer whose weights another layer makes, for each sequence."""
    weights = m["maker"](x.mean(1)).unflatten(-1, (D, D))
    return F.gelu(torch.bmm(x, weights.mT)) + x


def film(x: Any, m: Any) -> Any:
    """arXiv:1709.07871"""
    scale, shift = m["maker"](x[:, 0]).chunk(2, -1)
    return F.layer_norm(x, (D,)) * (1 + scale[:, None]) + shift[:, None]


def squeeze(x: Any, m: Any) -> Any:
    return x * m["gate"](x.mean((2, 3)))[..., None, None].sigmoid()


def highway(x: Any, m: Any) -> Any:
    gate = m["gate"](x).sigmoid()
    return gate * F.relu(m["value"](x)) + (1 - gate) * x


def kolmogorov_arnold(x: Any, m: Any) -> Any:
    """arXiv:2404.19756, with bumps in place of splines"""
    bumps = torch.exp(-((x[..., None] - torch.linspace(-2, 2, 6, device=x.device)) ** 2))
    return m["out"](bumps.flatten(-2).to(x.dtype)) + m["base"](F.silu(x))


def distances(a: Any, b: Any) -> Any:
    """In f32 for f16, of which PyTorch has none on a card."""
    wide = torch.promote_types(a.dtype, torch.float32)
    return torch.cdist(a.to(wide), b.to(wide)).to(a.dtype)


def prototypes(x: Any, m: Any) -> Any:
    return -distances(x, m["points"].weight[None].expand(x.shape[0], -1, -1))


def contrast(x: Any, m: Any) -> Any:
    a, b = F.normalize(m["a"](x.mean(1)), dim=-1), F.normalize(m["b"](x.amax(1)), dim=-1)
    return a @ b.T * m["scale"].weight.exp().clamp(max=100.0).squeeze()


def graph_attention(x: Any, m: Any) -> Any:
    """arXiv:1710.10903 on a graph of places at most 2 apart"""
    h = m["value"](x)
    scores = F.leaky_relu(m["source"](h) + m["target"](h).mT, 0.2)
    places = torch.arange(x.shape[1], device=x.device)
    near = (places[:, None] - places[None]).abs() <= 2
    return F.elu(torch.where(near, scores, -torch.inf).softmax(-1) @ h)


def graph_convolution(x: Any, m: Any) -> Any:
    """arXiv:1609.02907 with the nearest neighbours as edges"""
    apart = distances(x, x)
    near = (apart <= apart.median(-1, keepdim=True).values).to(x.dtype)
    degree = near.sum(-1, keepdim=True).rsqrt()
    return F.relu((degree * near * degree.mT) @ m["out"](x))


def neural_process(x: Any, m: Any) -> Any:
    z = m["encode"](x).relu().mean(1, keepdim=True)
    mean, scale = m["decode"](torch.cat([x, z.expand_as(x)], -1)).chunk(2, -1)
    return mean, 0.1 + 0.9 * F.softplus(scale)


def energy(x: Any, m: Any) -> Any:
    """arXiv:2008.02217: three steps of a modern Hopfield network"""
    state = x
    for _ in range(3):
        state = (4.0 * state @ m["patterns"].weight.T).softmax(-1) @ m["patterns"].weight
    return state


def rotated(x: Any, m: Any) -> Any:
    """Attention with rotations as complex numbers."""
    q, k, v = (heads(part) for part in m["qkv"](x).chunk(3, -1))
    wide = torch.promote_types(x.dtype, torch.float32)
    places, pairs = (torch.arange(n, device=x.device, dtype=wide) for n in (x.shape[1], 2))
    angles = torch.outer(places, 100.0 ** -(pairs / 2))
    turn = torch.polar(torch.ones_like(angles), angles)
    q, k = (torch.view_as_complex(p.to(wide).unflatten(-1, (-1, 2))) * turn for p in (q, k))
    q, k = (torch.view_as_real(p).flatten(-2).to(x.dtype) for p in (q, k))
    return m["out"](attend(q, k, v))


def sparse_top(x: Any, m: Any) -> Any:
    """Each row attends to the three best columns of at least three."""
    q, k, v = (heads(part) for part in m["qkv"](F.pad(x, (0, 0, 0, 3))).chunk(3, -1))
    scores = q @ k.mT
    least = scores.topk(3, -1).values[..., -1:]
    return scores.masked_fill(scores < least, -torch.inf).softmax(-1) @ v


def local_windows(x: Any, m: Any) -> Any:
    y = F.pad(x, (0, 0, 1, 1)).unfold(1, 3, 1).mT
    return m["out"](((m["q"](x)[:, :, None] * y).sum(-1).softmax(-1)[..., None] * y).sum(2))


def compressed(x: Any, m: Any) -> Any:
    """Keys and values of the whole sequence in four rows (arXiv:2006.04768)."""
    weights = m["rows"](x).softmax(1).mT
    k, v = weights @ m["k"](x), weights @ m["v"](x)
    return F.scaled_dot_product_attention(x, k, v)


def quantized(x: Any, m: Any) -> Any:
    """The nearest vector of a code book (arXiv:1711.00937), and how often each is chosen."""
    book = m["book"].weight
    apart = x.square().sum(-1, keepdim=True) - 2 * x @ book.T + book.square().sum(-1)
    code = apart.argmin(-1)
    return m["book"](code), F.one_hot(code, 12).float().mean((0, 1))


def mixture(x: Any, m: Any) -> Any:
    """The density of a mixture of normal distributions."""
    logits, means, scales = m["heads"](x).split([4, 4, 4], -1)
    parts = torch.distributions.Normal(means, F.softplus(scales) + 0.1)
    return torch.logsumexp(logits.log_softmax(-1) + parts.log_prob(x[..., :1]), -1)


# ** tokens **


def bag(x: Any, m: Any) -> Any:
    return m["out"](m["bag"](x))


def character_cnn(x: Any, m: Any) -> Any:
    y = m["table"](x).mT
    return torch.cat([F.relu(m[f"conv{k}"](F.pad(y, (k, k)))).amax(-1) for k in (2, 3)], 1)


def hashed(x: Any, m: Any) -> Any:
    """Sums of rows that hashes of two tokens choose."""
    pair = x * 31 + F.pad(x, (1, 0))[:, :-1]
    return m["table"](pair * 7919 % 64) + m["table"](pair * 104729 % 64)


def masked_mean(x: Any, m: Any) -> Any:
    seen = (x != 0)[..., None]
    return (m["table"](x) * seen).sum(1) / seen.sum(1).clamp(min=1)


def sinusoids(x: Any, m: Any) -> Any:
    places, pairs = torch.arange(x.shape[1], device=x.device), torch.arange(0, D, 2, device=x.device)
    at = places[:, None] * torch.exp(pairs * (-math.log(1e4) / D))
    rows = m["table"](x)
    return m["layer"](rows + torch.stack([at.sin(), at.cos()], -1).flatten(1).to(rows.dtype))


# ** images **


def u_net(x: Any, m: Any) -> Any:
    """arXiv:1505.04597"""
    a = F.relu(m["a"](x))
    b = F.relu(m["b"](F.max_pool2d(a, 2)))
    return m["out"](torch.cat([a, m["up"](b)], 1))


def dense(x: Any, m: Any) -> Any:
    """arXiv:1608.06993"""
    for i in range(3):
        x = torch.cat([x, F.relu(m[f"conv{i}"](x))], 1)
    return F.avg_pool2d(x, 2)


def pyramid(x: Any, m: Any) -> Any:
    """arXiv:1612.03144"""
    a = F.relu(m["a"](x))
    b = F.relu(m["b"](a))
    top = m["side_b"](b)
    return top, m["side_a"](a) + F.interpolate(top, scale_factor=2.0, mode="nearest")


def spatial_transformer(x: Any, m: Any) -> Any:
    """arXiv:1506.02025"""
    theta = m["where"](x.mean((2, 3))).tanh().view(-1, 2, 3)
    return F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)


def super_resolution(x: Any, m: Any) -> Any:
    """arXiv:1609.05158"""
    return F.pixel_shuffle(m["out"](m["a"](x).tanh()), 2)


def style(x: Any, m: Any) -> Any:
    """arXiv:1703.06868"""
    scale, shift = m["style"](x.mean((2, 3))).chunk(2, 1)
    return F.instance_norm(m["a"](x)) * scale[..., None, None] + shift[..., None, None]


def modulated(x: Any, m: Any) -> Any:
    """arXiv:1912.04958: weights scaled for each image"""
    style = m["style"](x.mean((2, 3)))
    weight = m["a"].weight[None] * style[:, None, :, None, None]
    weight = weight * (weight.square().sum((2, 3, 4), keepdim=True) + 1e-8).rsqrt()
    y = F.conv2d(x.reshape(1, -1, *x.shape[2:]), weight.flatten(0, 1), padding=1, groups=x.shape[0])
    return y.view(x.shape[0], -1, *x.shape[2:])


def non_local(x: Any, m: Any) -> Any:
    """arXiv:1711.07971"""
    q, k, v = (m[name](x).flatten(2) for name in "qkv")
    return x + m["out"](((q.mT @ k).softmax(-1) @ v.mT).mT.reshape(x.shape[0], 8, *x.shape[2:]))


def involution(x: Any, m: Any) -> Any:
    """arXiv:2103.06255"""
    kernel = m["kernel"](x).flatten(2).unflatten(1, (1, 9))
    windows = F.unfold(x, 3, padding=1).unflatten(1, (-1, 9))
    return (kernel * windows).sum(2).view_as(x)


def shifts(x: Any, m: Any) -> Any:
    a, b, c = x.split(1, 1)
    return m["out"](torch.cat([a.roll(1, 2), b.roll(-1, 3), c.flip(2)], 1))


def deconvolutions(x: Any, m: Any) -> Any:
    return m["b"](F.leaky_relu(m["a"](F.adaptive_avg_pool2d(x, 4)), 0.2)).tanh()


def cross_shaped(x: Any, m: Any) -> Any:
    """Attention along rows, then along columns."""
    y = x.permute(0, 2, 3, 1)
    rows = F.scaled_dot_product_attention(y, y, y)
    columns = rows.transpose(1, 2)
    return m["out"](F.scaled_dot_product_attention(columns, columns, columns).transpose(1, 2))


def spectral(x: Any, m: Any) -> Any:
    """arXiv:2010.08895: a layer that multiplies some frequencies"""
    found = torch.fft.rfft2(x)
    weight = torch.view_as_complex(m["weight"].weight.view(3, 4, 4, 2))
    low = torch.einsum("bixy,ixy->bixy", found[:, :, :4, :4], weight)
    return low.abs(), torch.view_as_real(low).sum(-1)


def wavelets(x: Any, m: Any) -> Any:
    a, b, c, d = x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]
    return m["out"](torch.cat([a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d], 1) / 2)


def color(x: Any, m: Any) -> Any:
    mean, std = x.mean((2, 3), keepdim=True), x.std((2, 3), keepdim=True)
    return m["out"]((x - mean) / (std + 1e-5)), x.amax((2, 3)), x.flatten(1).argmax(1)


def deep_supervision(x: Any, m: Any) -> Any:
    found = []
    for i in range(3):
        x = F.relu(m[f"conv{i}"](x))
        found.append(x.mean((2, 3)))
    return tuple(found)


def local_response(x: Any, m: Any) -> Any:
    return F.local_response_norm(F.max_pool2d(F.relu(m["a"](x)), 3, 2, 1), 3)


def bilinear_pool(x: Any, m: Any) -> Any:
    y = m["a"](x).flatten(2)
    z = (y @ y.mT / y.shape[-1]).flatten(1)
    return F.normalize(z.sign() * (z.abs() + 1e-4).sqrt())


QKV = {"qkv": linear(D, 3 * D), "out": linear()}


def attention_layer() -> nn.Module:
    return nn.MultiheadAttention(D, 4, batch_first=True)


def causal1d(a: int, b: int, dilation: int, kernel: int = 2) -> Callable[[], nn.Module]:
    return lambda: nn.Conv1d(a, b, kernel, dilation=dilation)


def table(rows: int, width: int = D) -> Callable[[], nn.Module]:
    return lambda: nn.Embedding(rows, width)


PLAIN: dict[str, Network] = {
    "linear attention": sequence(linear_attention, **QKV),
    "causal linear attention": sequence(causal_linear_attention, **QKV),
    "talking heads": sequence(talking_heads, before=linear(4, 4), after=linear(4, 4), **QKV),
    "relative positions": sequence(relative_positions, table=table(17, 4), **QKV),
    "retention": sequence(retention, gate=linear(), **QKV),
    "gated mixer": sequence(mixer, channels=linear(), norm=norm()),
    "gated attention unit": sequence(
        gated_unit, sampled=True, wide=linear(D, 5 * D), out=linear(2 * D, D), norm=norm(), scale=table(4)
    ),
    "wavenet": sequence(
        wavenet, sampled=True, **{f"dilated{i}": causal1d(D, 2 * D, 2**i) for i in range(3)},
        **{f"skip{i}": causal1d(D, 8, 1, 1) for i in range(3)},
    ),
    "temporal convolutions": sequence(tcn, **{f"conv{i}": causal1d(D, D, 2**i, 3) for i in range(2)}),
    "quasi-recurrent": sequence(quasi_recurrent, both=causal1d(D, 2 * D, 1)),
    "diagonal state space": sequence(diagonal_states, decay=table(D, 1), out=linear()),
    "GRU cells": sequence(recurrent_units, sampled=True, cell=lambda: nn.GRUCell(D, D)),
    "minimal LSTM": sequence(minimal_lstm, sampled=True, gate=linear(), value=linear()),
    "LSTM of two directions": sequence(
        two_directions, lstm=lambda: nn.LSTM(D, 8, 2, batch_first=True, bidirectional=True), out=linear(16, 4)
    ),
    "conditional random field": sequence(conditional_field, emit=linear(D, 5), step=table(5, 5)),
    "capsules": sequence(capsules, votes=linear(D, 32)),
    "product key memory": sequence(memory, query=linear(D, 16), places=table(8, 8), contents=table(64)),
    "experts": sequence(experts, router=linear(D, 4), wide=linear(D, 4 * D)),
    "slot attention": sequence(
        slots, norm=norm(), q=linear(), k=linear(), v=linear(), start=table(3), cell=lambda: nn.GRUCell(D, D)
    ),
    "perceiver": sequence(perceiver, latent=table(5), read=attention_layer, think=attention_layer),
    "set transformer": sequence(set_transformer, induced=table(3), a=attention_layer, b=attention_layer),
    "pointer network": sequence(pointer, cell=lambda: nn.GRUCell(D, D), place=linear()),
    "hypernetwork": sequence(hyper, maker=linear(D, D * D)),
    "feature-wise modulation": sequence(film, maker=linear(D, 2 * D)),
    "highway": sequence(highway, gate=linear(), value=linear()),
    "Kolmogorov-Arnold": sequence(kolmogorov_arnold, out=linear(6 * D, D), base=linear()),
    "prototypes": sequence(prototypes, sampled=True, points=table(7)),
    "contrast": sequence(contrast, sampled=True, a=linear(), b=linear(), scale=table(1, 1)),
    "graph attention": sequence(graph_attention, value=linear(), source=linear(D, 1), target=linear(D, 1)),
    "graph convolution": sequence(graph_convolution, out=linear()),
    "neural process": sequence(neural_process, encode=linear(), decode=linear(2 * D, 2 * D)),
    "Hopfield": sequence(energy, patterns=table(9)),
    "complex rotations": sequence(rotated, **QKV),
    "sparse attention": sequence(sparse_top, **QKV),
    "local windows": sequence(local_windows, q=linear(), out=linear()),
    "compressed attention": sequence(compressed, rows=linear(D, 4), k=linear(), v=linear()),
    "code book": sequence(quantized, book=table(12)),
    "mixture density": sequence(mixture, heads=linear(D, 12)),
    "transformer encoder": sequence(
        lambda x, m: m["layer"](x), layer=lambda: nn.TransformerEncoderLayer(D, 2, 32, batch_first=True)
    ),
    "transformer": sequence(
        lambda x, m: m["whole"](x, x[:, :1]), whole=lambda: nn.Transformer(D, 2, 1, 1, 32, batch_first=True)
    ),
    "bag of words": tokens(bag, bag=lambda: nn.EmbeddingBag(50, D), out=linear()),
    "character CNN": tokens(
        character_cnn, table=table(50), conv2=causal1d(D, 8, 1), conv3=causal1d(D, 8, 1, 3)
    ),
    "hashed pairs": tokens(hashed, table=table(64)),
    "masked mean": tokens(masked_mean, table=table(50)),
    "sinusoids": tokens(
        sinusoids, table=table(50), layer=lambda: nn.TransformerEncoderLayer(D, 2, 32, batch_first=True)
    ),
    "U-Net": image(
        u_net, sampled=True, a=conv(3, 8), b=conv(8, 16), up=lambda: nn.ConvTranspose2d(16, 8, 2, 2), out=conv(16, 4)
    ),
    "dense block": image(dense, **{f"conv{i}": conv(3 + 4 * i, 4) for i in range(3)}),
    "feature pyramid": image(pyramid, a=conv(3, 8), b=conv(8, 8, 3, 2), side_a=conv(8, 4, 1), side_b=conv(8, 4, 1)),
    "spatial transformer": image(spatial_transformer, where=linear(3, 6)),
    "super-resolution": image(super_resolution, a=conv(3, 8), out=conv(8, 12)),
    "style": image(style, a=conv(3, 8), style=linear(3, 16)),
    "modulated convolution": image(modulated, a=conv(3, 8), style=linear(3, 3)),
    "non-local": image(non_local, 8, q=conv(3, 8, 1), k=conv(3, 8, 1), v=conv(3, 8, 1), out=conv(8, 3, 1)),
    "involution": image(involution, kernel=conv(3, 9, 1)),
    "shifts": image(shifts, out=conv(3, 4, 1)),
    "deconvolutions": image(
        deconvolutions, a=lambda: nn.ConvTranspose2d(3, 8, 4, 2, 1), b=lambda: nn.ConvTranspose2d(8, 3, 3, 2, 1, 1)
    ),
    "cross-shaped attention": image(cross_shaped, channels=8, out=linear(8, 8)),
    "spectral layer": image(spectral, weight=table(3, 32)),
    "wavelets": image(wavelets, out=conv(12, 4, 1)),
    "color statistics": image(color, out=conv(3, 4)),
    "deep supervision": image(deep_supervision, **{f"conv{i}": conv(3 if i == 0 else 6, 6) for i in range(3)}),
    "local response norm": image(local_response, a=conv(3, 8)),
    "bilinear pooling": image(bilinear_pool, a=conv(3, 6)),
    "squeeze and excitation": image(squeeze, gate=linear(3, 3)),
}  # fmt: skip
