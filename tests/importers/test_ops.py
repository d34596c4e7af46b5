"""Each row of the table against PyTorch, by the meaning of the ops it writes: float64, exact but for the last bits."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from tests.importers.meaning import B, S, check_meaning

TOKENS = {0: B, 1: S}
LEAST = -(2**63)


class Lambda(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def floats(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def x3():
    return (floats(2, 5, 8),)


def x3_and_mask():
    return floats(2, 4, 5, 8), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def attention(x, **kwargs):
    return F.scaled_dot_product_attention(x, x * 0.5, x + 1, **kwargs)


def spelled(x, mask=lambda s: s):
    """Attention with heads of keys that are repeated, as products."""
    keys = x[:, :2, None].expand(-1, -1, 2, -1, -1).reshape(x.shape)
    scores = x @ keys.transpose(2, 3) / 8**0.5
    return F.softmax(mask(scores), dim=-1) @ (keys + 1)


def triangle(x):
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()


# name: (function, inputs, whether [batch, seq] of each input are dynamic)
CASES = {
    "arithmetic": (lambda x: (x + 1) * 2 - x / 3 - (1 - x), x3, True),
    "add_alpha": (lambda x: torch.add(x, x, alpha=2) - torch.sub(x, x, alpha=3), x3, True),
    "powers": (lambda x: x**2 + x**3 + (x * x + 1) ** 0.5 + (x * x + 1) ** -0.5 + (x + 9) ** -1, x3, True),
    "fmod_and_floor": (lambda x, i: (x % 0.7, x.fmod(-0.3), x // 0.1, (x * 8).floor() // -3, torch.full_like(x, 1.0) // 0.1, i % 3, i // -3, torch.fmod(-i, 4), 5 % (i + 1)), lambda: (floats(2, 5, 8), torch.arange(10).view(2, 5)), (TOKENS, TOKENS)),
    "other_types_of_memory": (lambda x, i: (x.view(torch.int64), x.view(torch.int32), x.float().view(torch.int32), x.float().view(torch.uint8), x.half().view(torch.int16), x.bfloat16().view(torch.int16), (x * 1e-6).half().view(torch.int16), i.view(torch.int32), i.int().view(torch.int64), (i.short() * 700).view(torch.float16).double(), i.int().view(torch.float32).double(), (i > 3).view(torch.uint8), i.to(torch.int8).view(torch.uint8), x.float().view(torch.int32).bitwise_and(0x7FFFFFFF).view(torch.float32).double()), lambda: (floats(2, 5, 8), torch.arange(10).view(2, 5)[:, :4].contiguous()), ({0: B}, None)),
    "unused_random_numbers": (lambda x: (torch.rand_like(x), torch.empty_like(x).normal_() + 1, torch.bernoulli(x.sigmoid()), x + 1)[3], x3, True),
    "diagonals_filled": (lambda x: (x[0].clone().fill_diagonal_(7), x[0].mT.clone().fill_diagonal_(2.5, wrap=True), (x[0] @ x[0].mT).fill_diagonal_(0), (x * 1)[:, :2, :2].clone().fill_diagonal_(3)), lambda: (floats(2, 7, 3),), (None,)),
    "repeated_by_counts": (lambda x, r: (torch.repeat_interleave(x, r, dim=0), torch.repeat_interleave(x, r % 3, dim=0, output_size=3), x[:, 0].repeat_interleave(r), torch.repeat_interleave(r), torch.repeat_interleave(x.mT, r.int(), dim=1)), lambda: (floats(3, 2), torch.tensor([1, 2, 3])), (None, None)),
    "matrix_exponentials": (lambda x: (torch.matrix_exp(x), torch.linalg.matrix_exp(x * 9), torch.matrix_exp(x[0] - x[0].mT), torch.matrix_exp(x * 0)), lambda: (floats(2, 5, 5),), ({0: B},)),
    "fake_quantized": (lambda x: (torch.fake_quantize_per_tensor_affine(x.float(), 0.1, 3, -128, 127), torch.fake_quantize_per_tensor_affine(x.float(), torch.tensor(0.1), torch.tensor(3, dtype=torch.int32), 0, 15), torch.fake_quantize_per_channel_affine(x.float(), torch.arange(1.0, 9) / 7, torch.arange(8, dtype=torch.int32) - 3, 2, -8, 7)), x3, True),
    "products_of_8_bit_integers": (lambda i: torch._int_mm((i - 125).to(torch.int8), (i - 125).to(torch.int8).mT.contiguous()), lambda: (torch.arange(32 * 24).remainder(251).view(32, 24),), (None,)),
    "instance_norm_of_dynamic_channels": (lambda x: (F.instance_norm(x, eps=0.1), F.instance_norm(x[..., None], weight=x[0, :, 0], bias=x[0, :, 1])), x3, True),
    "floats_of_sizes": (lambda x: (x / x.shape[1] ** 0.5, x / math.sqrt(x.shape[1]) - math.sqrt(x.shape[0] * 0.5), x * (x.shape[0] / x.shape[1]), torch.add(x, x, alpha=x.shape[1] ** 0.5), torch.full((2,), x.shape[1] ** -0.5, dtype=x.dtype), torch.full_like(x, x.shape[1] ** 0.5), x.masked_fill(x > x.shape[1] ** -0.5, 1 / x.shape[1])), x3, True),
    "numbers_that_are_floats_of_sizes": (lambda x: (x.new_full((2,), x.shape[1] ** 0.5), x + torch.tensor(x.shape[1] ** 0.5), torch.zeros(3).fill_(1 / x.shape[1]), torch.cat((x[:1], torch.zeros_like(x[:1]).fill_(x.shape[1] ** 0.5))), x.scatter(2, x[:, :, :1].long() * 0, x.shape[1] ** 0.5)), x3, True),
    "sizes_as_arguments": (lambda x: (torch.linspace(0.5, x.shape[1] - 0.5, x.shape[1]), torch.linspace(-1, 1, steps=2 * x.shape[1] + 1, dtype=x.dtype), F.one_hot(x.shape[1] - 1 - torch.arange(x.shape[1]), x.shape[1]), torch.cartesian_prod(x[:, 0, 0], torch.arange(3, dtype=x.dtype))), x3, True),
    "sections": (lambda x: (*x.tensor_split(1), *x.tensor_split(2, 1), *x.tensor_split(3, 2)), x3, ({0: B},)),
    "chosen_by_sizes": (lambda x: (torch.cond(x.shape[1] > 4, lambda x: x + 1, lambda x: x * 2, (x,)), torch.cond(x.shape[1] % 2 == x.shape[0], lambda x: x.sin(), lambda x: x.cos(), (x,))), x3, True),
    "chosen_by_a_condition": (lambda x: torch.cond(x.sum() > 0, lambda x: (x.sin(), x), lambda x: (x.cos() + 1, -x), (x,)), x3, (None,)),
    "batches_of_three_dims_that_broadcast_crosswise": (lambda a, b: (a @ b, b.mT @ a[0].mT, a[:, :, None] @ b[:, :, None]), lambda: (floats(2, 1, 3, 5, 4), floats(1, 6, 1, 4, 7)), ({0: B}, {1: S})),
    "batches_that_broadcast_crosswise": (lambda a, b: (a[:, None] @ b[None], torch.einsum("bmk,hkn->bhmn", a, b), (a[:, None].long() * 3) @ b[None].long()), lambda: (floats(2, 3, 4), floats(5, 4, 6)), ({0: B}, {0: S})),
    "repeats_of_five_dims": (lambda x, y: x.permute(2, 1, 3, 4, 0).repeat(1, 1, 1, 4, 1) + y, lambda: (floats(2, 3, 4, 5, 6), floats(4, 3, 5, 24, 2)), None),
    "distances_of_points": (lambda x, y: (torch.cdist(x, x), torch.cdist(x, y, p=1), torch.cdist(x[0], y[0]), torch.cdist(x, y, p=torch.inf)), lambda: (floats(2, 5, 3), floats(2, 30, 3)), ({0: B, 1: S}, {0: B})),
    "long_ranges": (lambda x: (torch.arange(70000)[-3:] + x.shape[1], torch.arange(x.shape[1] * 20000)[-3:] + x.shape[0] * 70000, torch.arange(x.shape[1] * 20000, dtype=torch.float64).sum()), x3, True),
    "bits": (lambda i: (i & 3, i | 4, i ^ i[:1], ~i, i << 2, i >> 1, (i > 2) ^ (i < 4), (i > 2) | (i == 0)), lambda: (torch.arange(10).view(2, 5),), (TOKENS,)),
    "activations": (lambda x: F.relu(x) + F.silu(x) + F.gelu(x) + F.gelu(x, approximate="tanh") + x.sigmoid(), x3, True),
    "inactive": (lambda x: F.rrelu(x, 0.1, 0.3) + F.dropout(x, 0.0, training=True), x3, True),
    "more_activations": (lambda x: F.hardswish(x) + F.leaky_relu(x, 0.1) + F.relu6(x) + F.hardtanh(x), x3, True),
    "unary": (lambda x: x.tanh() + x.exp() + x.erf() + x.abs() + (x * x + 1).log() + (x * x + 1).rsqrt(), x3, True),
    "inverse_functions": (lambda x: (x.asin(), x.acos(), x.atan(), x.sinh(), x.cosh(), x.asinh(), x.acosh(), x.atanh(), torch.atan2(x, x[:1, :1]), torch.hypot(x, x[..., :1])), x3, True),
    "statistical_functions": (lambda x: (x.erfc(), x.erfinv(), x.lgamma(), x.digamma(), torch.special.ndtr(x)), x3, True),
    "bessel": (lambda x: (torch.i0(x * 9), torch.special.i0e(x * 30), torch.special.i1(x * 9), torch.special.i1e(x * 30), torch.i0(x.long()), torch.special.i1(x / x.floor().abs())), x3, True),
    "polygamma": (lambda x: (*(torch.polygamma(n, x) for n in (0, 2, 3, 5)), torch.polygamma(1, x * 4), torch.polygamma(3, x * 0 - 2), torch.polygamma(2, x.long() + 9).float().double()), x3, True),
    "powers_of_integers": (lambda i: ((i - 5) ** i, 3 ** (i - 2), i.int() ** (i * i[:1, :1]).int(), (i - 5).to(torch.uint8) ** i.to(torch.uint8), (i - 2) ** (3 - i), (i * 2 - 9) ** (i + 2**62)), lambda: (torch.arange(10).view(2, 5),), (TOKENS,)),
    "logarithms": (lambda x: (x.abs().log2(), x.abs().log10(), x.tan()), x3, True),
    "sign_bits": (lambda x: (torch.signbit(x * 0), x.angle(), (x > 0).signbit(), torch.signbit(x.long())), x3, True),
    "divisors": (lambda i: (torch.gcd(i - 5, i * 6), torch.lcm(i - 5, i[:, :1] + 4)), lambda: (torch.arange(10).view(2, 5),), (TOKENS,)),
    "mode": (lambda i: (torch.mode(i % 3), torch.mode(i % 2, 0, keepdim=True), torch.mode(i > 3, 1), (i[0, 0] * 1.0).mode()), lambda: (torch.arange(10).view(2, 5),), (TOKENS,)),
    "integer_products": (lambda i, w: (i @ w, i.int() @ w.int(), F.linear(i, w.mT, w[0]), i[0] @ i[0], i @ w[:, 0], i[:, None] @ w, torch.addmm(w[0], i, w, beta=2, alpha=3)), lambda: (torch.arange(10).view(2, 5) - 4, torch.arange(15).view(5, 3) + 2**62), ({0: B}, None)),
    "dist": (lambda x: (torch.dist(x, x[:, :1], 1), torch.dist(x, -x), torch.dist(x, x * 2, torch.inf), torch.dist(x, x * 2, 2.5)), x3, True),
    "addbmm": (lambda b, x, y: (torch.addbmm(b, x, y, beta=2, alpha=0.5), torch.addbmm(b[0], x, y)), lambda: (floats(5, 3), floats(2, 5, 8), floats(2, 8, 3)), (None, {0: B}, {0: B})),
    "clamp": (lambda x: x.clamp(-0.5, 0.25) + x.clamp(min=0) + x.clamp(max=0.1), x3, True),
    "clamp_one_side": (lambda x: torch.clamp_min(x, -0.3) + torch.clamp_max(x, 0.3) + F.relu6(x * 9) + x.clamp(1, -1), x3, True),
    "clamp_integers": (lambda i: i.clamp(2, 6) + i.clamp(min=3).clamp(max=2.5), lambda: (torch.arange(10).reshape(2, 5),), True),
    "compare": (lambda x: torch.where(x > 0, x, 0.5) + (x <= 0.5).double() + (x != x).double(), x3, True),
    "numbers_alone": (lambda x: x * (10.0 ** -(torch.arange(8, dtype=torch.float64) / 8)) + torch.linspace(0, 1, 8).to(torch.int64), x3, True),
    "differences": (lambda x: x.diff(dim=1, prepend=x[:, :1] * 2) + torch.diff(x, dim=-1, append=x[:, :, :1]) + (torch.arange(x.shape[1]).diff(prepend=torch.tensor([-1])) == 1).double()[:, None], x3, True),
    "in_place_on_fresh": (lambda x: (x * 2).add_(x).mul_(3) + (x + 1).view(-1, 8).add_(1).view_as(x) + torch.min(x, -x), x3, True),
    "infinite": (lambda x: torch.isinf(torch.log(x.abs() * (x > 0))).any().double() + torch.isinf(x / 0.0), x3, True),
    "clamp_tensors": (lambda x: torch.clamp(x, min=-x.abs().mean(), max=x.mean(-1, keepdim=True)), x3, True),
    "least_integer": (lambda i: (i + LEAST, i * LEAST, LEAST - i, i > LEAST, i == LEAST, i.maximum(torch.tensor(LEAST)), torch.full_like(i, LEAST), i.masked_fill(i > 3, LEAST), torch.arange(3) + LEAST - 1, torch.arange(3) > LEAST, torch.arange(3) * 2**62, torch.tensor([LEAST, 0, -LEAST - 1]) - 1, torch.tensor([LEAST, 5] * 40)), lambda: (torch.arange(10).view(2, 5),), (TOKENS,)),
    "linspace_of_integers": (lambda x: (*(torch.linspace(a, b, n, dtype=t) for a, b, n in ((0.5, 10.7, 5), (3.9, 24.2, 7), (10.9, 0.2, 4), (2.5, 7.5, 1), (1, 100, 50)) for t in (torch.int64, torch.int32, torch.uint8)), torch.linspace(-3.9, 4.2, 7, dtype=torch.int64), torch.linspace(x[0, 0, 0] + 0.6, 9.9, 7, dtype=torch.int64)), lambda: (floats(2, 5, 8),), None),
    "linspace_of_tensors": (lambda x: tuple(torch.linspace(x[0, 0, 0], x[0, 0, 1] if n > 1 else 2, n, dtype=torch.float64) for n in (1, 2, 3, 8)), x3, True),
    "index_reduced": (lambda x: (*tuple(x.index_reduce(1, torch.tensor([0, 2, 0]), x[:, :3] + 2, kind, include_self=own) for kind in ("prod", "mean", "amax", "amin") for own in (True, False)), (x * 9).long().index_reduce(2, torch.tensor([1, 1]), (x[:, :, :2] * 9).long(), "mean")), lambda: (floats(2, 5, 8),), None),
    "put": (lambda x: (x.put(torch.tensor([[0, -1], [3, 4]]), x[0, :1, :4].reshape(2, 2)), x.put(torch.tensor([2, 2]), x[0, 0, :2], accumulate=True)), x3, ({0: B},)),
    "triangles_places": (lambda x: (torch.tril_indices(4, 5, 1), torch.triu_indices(5, 3, -1), torch.tril_indices(0, 3), torch.triu_indices(90, 90, dtype=torch.int32), x[:, *torch.triu_indices(5, 8, 1)]), x3, ({0: B},)),
    "middle_of_numbers": (lambda x: (*x.nanmedian(1), x.log().nanmedian(1)[0], x.log().nanmedian(), x.nanmedian(2, True)[0], (x * torch.nan).nanmedian(1)[0], (x * 9).long().nanmedian(1)[0]), x3, True),
    "searched_unsorted": (lambda x: (torch.searchsorted(x, x[..., 2:5].contiguous(), sorter=x.argsort(-1)), torch.searchsorted(x[0, 0], x, sorter=x[0, 0].argsort(), right=True)), x3, True),
    "integer_powers": (lambda i: (i**9, (i - 4) ** 40, i.int() ** 31, i**0, 2**i, 2 ** (i * 8), 2 ** (i - 5).abs().int(), torch.pow(i, torch.tensor(3)), i.byte() ** 9), lambda: (torch.arange(10).view(2, 5),), (TOKENS,)),
    "masks": (lambda x: x.masked_fill((x > 0) & ~(x > 1) | (x < -1), -7.0), x3, True),
    "integers": (lambda i: (i * 2 + 1) - i.to(torch.int32) + torch.div(i, 3, rounding_mode="trunc"), lambda: (torch.arange(10).reshape(2, 5),), True),
    "casts": (lambda x: x.to(torch.float32).double() + x.bool() + x.long(), x3, True),
    "linear": (lambda x, w, b: F.linear(x, w, b) + F.linear(x, w), lambda: (floats(2, 5, 8), floats(8, 8), floats(8)), (TOKENS, None, None)),
    "linear_of_a_vector": (lambda x, w: F.linear(x, w), lambda: (floats(8), floats(3, 8)), None),
    "matmul": (lambda x, w: x @ w + torch.matmul(x, w), lambda: (floats(2, 5, 8), floats(8, 3)), (TOKENS, None)),
    "matmul_batched": (lambda x: x @ x.transpose(1, 2), x3, True),
    "matmul_broadcast": (lambda x, y: x @ y, lambda: (floats(2, 1, 5, 8), floats(3, 8, 4)), ({0: B, 2: S}, None)),
    "matmul_of_column_and_row": (lambda x: x[..., :1] @ x[:, -1:] + x[0, :, :1] @ x[0, :1], x3, True),
    "matmul_of_vectors": (lambda x, v: (x @ v) + v @ v, lambda: (floats(5, 8), floats(8)), None),
    "addmm": (lambda b, x, w: torch.addmm(b, x, w, beta=2, alpha=0.5), lambda: (floats(3), floats(4, 8), floats(8, 3)), (None, {0: B}, None)),
    "baddbmm": (lambda b, x, y: torch.baddbmm(b, x, y), lambda: (floats(2, 5, 5), floats(2, 5, 8), floats(2, 8, 5)), None),
    "einsum": (lambda x, w: torch.einsum("bsd,hd->bhs", x, w), lambda: (floats(2, 5, 8), floats(4, 8)), (TOKENS, None)),
    "softmax": (lambda x: x.softmax(-1) + F.softmax(x, 1), x3, True),
    "layer_norm": (lambda x, g: F.layer_norm(x, (8,), g, g, 1e-6) + F.layer_norm(x, (8,)), lambda: (floats(2, 5, 8), floats(8)), (TOKENS, None)),
    "reshape": (lambda x: x.view(x.shape[0], -1, 2, 4).flatten(2).unsqueeze(1).squeeze(1).reshape(-1, 8), x3, True),
    "unflatten": (lambda x: x.unflatten(-1, (2, 4)).permute(2, 0, 1, 3).contiguous(), x3, True),
    "transposes": (lambda x: x.transpose(1, 2).mT.permute(0, 2, 1) + x.swapaxes(1, 2), x3, True),
    "expand": (lambda x: x[:, :1].expand(-1, 7, -1) * 2, x3, True),
    "repeat": (lambda x: x.repeat(1, 1, 2) + x[:1].repeat(x.shape[0], 1, 2), x3, True),
    "repeat_interleave": (lambda x: x.repeat_interleave(3, dim=2), x3, True),
    "slices": (lambda x: x[:, :, 2:6] + x[..., -4:] + x[:, -1:, :4] + x[:, 0, None, 4:], x3, True),
    "strided_slice": (lambda x: x[..., ::2] + x[..., 1::2], x3, True),
    "strided_slice_with_a_rest": (lambda x: x[:, :5, 1::3].sum(1) + x[:, 1, :7:3] + x[:, 0, 2:8:2], x3, ({0: B},)),
    "slice_to_a_size": (lambda x: x[:, max(0, x.shape[1] - 16) :] + x[:, max(0, 16 - x.shape[1]) - (16 - x.shape[1]) :], x3, True),
    "sizes_as_tensors": (lambda x: x[:, :, 8 - torch.tensor(min(x.shape[1], 4)) :].sum(-1) * torch.scalar_tensor(x.shape[1]), x3, True),
    "undefined": (lambda x: (x.new_empty(x.shape[1], 8).fill_(2.0) + torch.empty(8).copy_(x[0, 0]))[None] + x, x3, True),
    "select": (lambda x: x[:, 0] + x[:, -1] + x.select(1, 0), x3, True),
    "split": (lambda x: sum(x.split(4, -1)) + sum(x.chunk(2, -1)) + x.split([4, 4], 2)[1], x3, True),
    "unbind": (lambda x: sum(x.unflatten(-1, (2, 4)).unbind(2)), x3, True),
    "cat": (lambda x: torch.cat([x, x * 2], 1) + torch.cat([x, x], dim=-2), x3, True),
    "stack": (lambda x: (torch.stack([x, x * 2], 2), torch.stack([x, x * 2], -1), torch.stack([x])), x3, True),
    "rotate_half": (lambda x: torch.cat((-x[..., 4:], x[..., :4]), dim=-1), x3, True),
    "embedding": (lambda i, w: F.embedding(i, w), lambda: (torch.tensor([[0, 1, 2], [3, 4, 5]]), floats(6, 4)), (TOKENS, None)),
    "positions": (lambda x, w: x + F.embedding(torch.arange(2, x.shape[1] + 2), w), lambda: (floats(2, 5, 4), floats(20, 4)), (TOKENS, None)),
    "index_select": (lambda i, w: w.index_select(0, i) + w[i], lambda: (torch.tensor([0, 3, 2]), floats(6, 4)), ({0: S}, None)),
    "index_positions": (lambda x: x[torch.arange(x.shape[0])[:, None], torch.arange(x.shape[1])[None, :]], x3, True),
    "index_one_position": (lambda x: x[torch.arange(x.shape[0]), 0], x3, True),
    "index_any_dims": (lambda x, i: (x[:, :, i], x[:, 0, i], x[i * 0, :, i + 1], x[:, None, :, i - 3]), lambda: (floats(2, 5, 8), torch.tensor([[0, 1]])), (TOKENS, None)),
    "index_select_last": (lambda x, i: x.index_select(-1, i), lambda: (floats(2, 5, 8), torch.tensor([7, 0, 3])), (TOKENS, None)),
    "gather_any": (lambda x, i: x.gather(2, i) + x.gather(-1, i[..., :1].expand(-1, -1, 3)), lambda: (floats(2, 5, 8), torch.randint(0, 8, (2, 5, 3))), (TOKENS, TOKENS)),
    "gather_part": (lambda x, i: x.gather(0, i[:1, :4]), lambda: (floats(2, 5, 8), torch.zeros(2, 5, 8, dtype=torch.long)), (None, None)),
    "take": (lambda x, i: x.take(i) + torch.take_along_dim(x, i, 1)[:, :1], lambda: (floats(4, 6), torch.tensor([[0, 5, -1]]).expand(4, 3) % 6), None),
    "scatter": (lambda x, i: (x.scatter(2, i, 7.0), x.scatter_add(2, i, x[..., :3]), x.scatter_reduce(2, i, x, "mean"), x.scatter_reduce(2, i, x, "amax", include_self=False)), lambda: (floats(2, 5, 8), torch.randint(0, 8, (2, 5, 3))), (TOKENS, TOKENS)),
    "scatter_part": (lambda x, i, s: (x.scatter(1, i, s), x.scatter_reduce(0, i, s, "prod"), x.scatter(1, i[:2], 3.0, reduce="multiply")), lambda: (floats(4, 6), torch.tensor([[0, 3], [1, 2], [3, 0]]), floats(4, 6)), None),
    "scatter_of_scalars": (lambda x: torch.stack([x[0, 0, 0].index_fill(0, torch.tensor([0]), 2), x[0, 0, 1].scatter_add(0, torch.tensor(0), x[0, 0, 2]), x[0, 0, 3].gather(0, torch.tensor(0))]), x3, None),
    "index_add": (lambda x, i: (x.index_add(1, i, x[:, :2], alpha=3), x.index_fill(1, i, -1), x.index_fill(-1, i, 4.0)), lambda: (floats(2, 5, 8), torch.tensor([0, 0])), ({0: B}, None)),
    "distances": (lambda x: (torch.cdist(x, x[:1] + 1), torch.cdist(x[0], x[1], p=1.0), torch.cdist(x, x, p=torch.inf), torch.cdist(x, -x, p=3.0), torch.cdist(x, x * 2, compute_mode="donot_use_mm_for_euclid_dist")), x3, None),
    "arange_truncated": (lambda x: torch.arange(2.1, -2.9, -1.5, dtype=torch.int64) + x[:1, :1, :1].long(), x3, None),
    "scatter_of_booleans": (lambda x, i: ((x > 0).scatter_reduce(2, i, x > 1, "amax"), (x > 0).scatter_reduce(2, i, x > 1, "amin", include_self=False)), lambda: (floats(2, 5, 8), torch.randint(0, 8, (2, 5, 8))), None),
    "copies_of_views": (lambda x: (torch.view_copy(x, (5, 16)), torch.permute_copy(x, (2, 0, 1)), torch.narrow_copy(x, 1, 2, 2), torch.as_strided_copy(x, (2, 3), (8, 1))), x3, None),
    "index_put_any": (lambda x, i: (x.index_put((i[:, None], i), x[:1, :1], accumulate=True), x.clone().index_put_((i,), x[0, 0], accumulate=True), torch.ops.aten.index_put(x, [None, i, i], x[:, 0, :2])), lambda: (floats(2, 5, 8), torch.tensor([0, 1])), None),
    "index_put_mask": (lambda x: (x.index_put((x[..., 0] > 0,), x[0, :1]), x.masked_scatter(x > 0, -x)), lambda: (floats(2, 5, 8),), None),
    "slice_scatter_steps": (lambda x: (x.slice_scatter(x[..., :4], 2, 0, 8, 2), x.slice_scatter(x[..., :2], 2, -3, None, 2), x.slice_scatter(x[..., :3], 2, -3)), x3, True),
    "fourier": (lambda x: (torch.fft.fftn(x, dim=(1, 2)).real, torch.fft.fft2(x).abs(), torch.fft.fft(x, dim=0).imag, torch.fft.ifft(torch.fft.fft(x, norm="ortho"), norm="ortho").real), x3, True),
    "fourier_real": (lambda x: (torch.fft.irfft(torch.fft.rfft(x) * 2, n=8), torch.fft.irfft(torch.fft.rfft(x[..., :7], norm="forward"), n=7, norm="forward"), torch.view_as_real(torch.fft.rfft2(x, norm="ortho")), torch.fft.fft(x, 5).real + torch.fft.fft(x[..., :3], 5).imag), x3, True),
    "fourier_filter": (lambda x, w: torch.fft.irfft2(torch.fft.rfft2(x, dim=(1, 2), norm="ortho") * torch.view_as_complex(w), s=(4, 8), dim=(1, 2), norm="ortho"), lambda: (floats(2, 4, 8), floats(4, 5, 2)), ({0: B}, None)),
    "complex_rotation": (lambda x, f: torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * torch.polar(torch.ones_like(f), f)[:, None].transpose(0, 1)).flatten(2), lambda: (floats(2, 5, 8), floats(5, 4)), ({0: B}, None)),
    "complex_arithmetic": (lambda x: torch.view_as_real((torch.complex(x, x + 1).conj() - torch.complex(-x, x[:1]) * 3 + x)[..., 2:] / 2), x3, True),
    "flip_and_roll": (lambda x: (x.flip(1), x.flip(0, -1), x.roll((1, -3), (1, 2)), x.roll(5, 2), x.roll(-1), (x > 0).flip(1)), x3, True),
    "roll_twice": (lambda x: (x.roll((2, 9, 1), (0, 1, 0)), x.roll(-7, 1)), x3, None),
    "windows": (lambda x: (x.unfold(2, 4, 4), x.unfold(2, 3, 2), F.unfold(x[:, None], 2, stride=2)), lambda: (floats(2, 6, 8),), ({0: B},)),
    "memory": (lambda x: (x.as_strided((x.shape[0], 2, 3, 8), (48, 16, 8, 1)), x.as_strided((3, 2, 2), (1, 0, 5), 4), x.transpose(1, 2).as_strided((x.shape[0], 6, 8), (48, 8, 1))), lambda: (floats(2, 6, 8),), ({0: B},)),
    "slices_with_steps": (lambda x: (x[..., 1::3], x[..., 5::2], x[..., ::5], x[:, :, 2:7:2]), x3, True),
    "fractions": (lambda x: (torch.arange(0.5, x.shape[1] + 0.5, 0.5), torch.arange(-x.shape[1] / 4, 5, 0.25), torch.arange(0, 1, 0.3), torch.arange(x.shape[1], dtype=torch.float64) * 0.25, torch.linspace(-1, 1, 5)), x3, True),
    "repeats": (lambda x: (x.repeat_interleave(3), x.repeat_interleave(2, -1), x.movedim((0, 1), (2, 0)), torch.eye(3, 5, dtype=torch.float64), x.copysign(-x[:1])), x3, True),
    "diagonals": (lambda x: (x.diagonal(1, 1, 2), torch.diag_embed(x, -1), torch.diagonal_scatter(x, x[:, :4, 0], -1, 2, 1), x.diagonal(-9, 1, 2)), lambda: (floats(2, 4, 8),), ({0: B},)),
    "gather": (lambda x: x.gather(1, torch.arange(x.shape[1])[None, :, None].expand(x.shape[0], -1, 8)), x3, True),
    "arange_values": (lambda x: x + torch.arange(x.shape[1])[None, :, None] * 3 - 2, x3, True),
    "arange_floats": (lambda x: x + torch.arange(8, dtype=torch.float64) / 8, x3, True),
    "arange_of_size": (lambda x: x * (torch.arange(x.shape[1]) + x.shape[0])[None, :, None], x3, True),
    "fills": (lambda x: x + torch.ones_like(x) + torch.full((x.shape[1], 8), 0.5) + torch.zeros(x.shape[1], 1), x3, True),
    "tril": (lambda x: torch.where(triangle(x), x[:, :, :1], -1.0) + torch.ones(3, 3).triu(1)[0, 1], x3, True),
    "causal_additive": (lambda x: x[:, :, :1] + torch.full((x.shape[1], x.shape[1]), -5.0).triu(1), x3, True),
    "attention": (attention, lambda: (floats(2, 4, 5, 8),), ({0: B, 2: S},)),
    "attention_three_dims": (attention, x3, True),
    "attention_causal": (lambda x: attention(x, is_causal=True), lambda: (floats(2, 4, 5, 8),), ({0: B, 2: S},)),
    "attention_scale": (lambda x: attention(x, scale=0.3), lambda: (floats(2, 4, 5, 8),), ({0: B, 2: S},)),
    "attention_additive": (lambda x, m: attention(x, attn_mask=(1 - m[:, None, None, :].double()) * -5), x3_and_mask, ({0: B, 2: S}, TOKENS)),
    "attention_bool": (lambda x, m: attention(x, attn_mask=m[:, None, None, :].bool()), x3_and_mask, ({0: B, 2: S}, TOKENS)),
    "attention_other_length": (lambda x: F.scaled_dot_product_attention(x[:, :, -1:], x, x, is_causal=True), lambda: (floats(2, 4, 5, 8),), ({0: B, 2: S},)),
    "attention_grouped": (lambda x: F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True), lambda: (floats(2, 4, 5, 8),), ({0: B, 2: S},)),
    "attention_spelled": (spelled, lambda: (floats(2, 4, 5, 8),), ({0: B, 2: S},)),
    "attention_filled": (lambda x, m: spelled(x, lambda s: s.masked_fill(m[:, None, None, :] == 0, -torch.inf)), x3_and_mask, ({0: B, 2: S}, TOKENS)),
    "attention_chosen": (lambda x, m: spelled(x, lambda s: torch.where(m[:, None, None, :].bool(), s, -1e9)), x3_and_mask, ({0: B, 2: S}, TOKENS)),
    "attention_of_triangle": (lambda x: spelled(x, lambda s: s.masked_fill(~triangle(x[:, 0]), -torch.inf)), lambda: (floats(2, 4, 5, 8),), ({0: B, 2: S},)),
    "attention_of_upper_triangle": (lambda x: spelled(x, lambda s: s + torch.full((x.shape[2], x.shape[2]), -torch.inf).triu(1)), lambda: (floats(2, 4, 5, 8),), ({0: B, 2: S},)),
    "attention_of_both": (lambda x, m: spelled(x, lambda s: s + torch.where(triangle(x[:, 0]) & m[:, None, None, :].bool(), 0.0, -1e30)), x3_and_mask, ({0: B, 2: S}, TOKENS)),
    "attention_large_heads": (lambda x: attention(x, is_causal=True), lambda: (floats(2, 1, 5, 264),), ({0: B, 2: S},)),
    "patches": (lambda x, w, b: F.conv2d(x, w, b, stride=4).flatten(2).transpose(1, 2), lambda: (floats(2, 3, 8, 12), floats(6, 3, 4, 4), floats(6)), ({0: B}, None, None)),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), lambda: (floats(2, 4, 5, 7), floats(6, 4, 3, 3), floats(6)), ({0: B}, None, None)),
    "conv2d_groups": (lambda x, w: F.conv2d(x, w, padding=(1, 0), dilation=(1, 2), groups=2), lambda: (floats(2, 4, 5, 7), floats(6, 2, 3, 2)), ({0: B, 2: S}, None)),
    "conv2d_same": (lambda x, w: F.conv2d(x, w, padding="same", dilation=3), lambda: (floats(2, 4, 5, 7), floats(6, 4, 4, 3)), ({0: B, 2: S}, None)),
    "conv2d_valid": (lambda x, w: F.conv2d(x, w, padding="valid"), lambda: (floats(2, 4, 5, 7), floats(6, 4, 1, 3)), ({0: B}, None)),
    "conv3d": (lambda x, w, b: F.conv3d(x, w, b, stride=(1, 2, 1), padding=(0, 1, 1)), lambda: (floats(2, 4, 3, 5, 7), floats(6, 4, 2, 3, 3), floats(6)), ({0: B}, None, None)),
    "conv3d_valid": (lambda x, w: F.conv3d(x, w, padding="valid", groups=2), lambda: (floats(2, 4, 3, 5, 7), floats(6, 2, 2, 3, 3)), ({0: B}, None)),
    "conv_single": (lambda x, w: F.conv2d(x, w, padding=1), lambda: (floats(4, 5, 7), floats(6, 4, 3, 3)), None),
    "conv_transpose1d": (lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2), lambda: (floats(2, 4, 7), floats(4, 6, 3), floats(6)), ({0: B}, None, None)),
    "conv_transpose2d": (lambda x, w, b: F.conv_transpose2d(x, w, b, stride=(2, 3), padding=1, output_padding=(1, 0), groups=2), lambda: (floats(2, 4, 5, 7), floats(4, 3, 3, 4), floats(6)), ({0: B, 2: S}, None, None)),
    "conv_transpose3d": (lambda x, w: F.conv_transpose3d(x, w, dilation=2, groups=2), lambda: (floats(2, 4, 2, 3, 3), floats(4, 2, 2, 1, 2)), ({0: B}, None)),
    "convolution": (lambda x, w, b: torch.ops.aten.convolution(x, w, b, [1, 2], [0, 1], [1, 1], False, [0, 0], 1), lambda: (floats(2, 4, 5, 7), floats(6, 4, 1, 3), floats(6)), ({0: B}, None, None)),
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=2), lambda: (floats(2, 4, 5), floats(6, 4, 5), floats(6)), ({0: B}, None, None)),
    "fold": (lambda x: (F.fold(x, (6, 7), (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1)), F.fold(x[0], (6, 7), (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1))), lambda: (floats(2, 24, 12),), ({0: B},)),
    "median_of_dynamic": (lambda x: (x.median(1), x.median(0, keepdim=True), x[:, :, 0].median()), x3, True),
    "max_pool": (lambda x: F.max_pool2d(x, 3, (1, 2), 1), lambda: (floats(2, 4, 5, 7),), ({0: B, 2: S},)),
    "max_pool_dilated": (lambda x: F.max_pool2d(x, (2, 1), 1, padding=(1, 0), dilation=(3, 1)), lambda: (floats(2, 4, 5, 7),), ({0: B},)),
    "max_pool_ceil": (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), lambda: (floats(2, 4, 5, 8),), ({0: B},)),
    "max_pool_places": (lambda x: F.max_pool2d(x, 2, return_indices=True), lambda: (floats(2, 4, 5, 7),), ({0: B},)),
    "max_pools": (lambda x: (F.max_pool1d(x, 2), F.max_pool3d(x[:, None], (1, 2, 3), 1, (0, 1, 1))), lambda: (floats(2, 4, 6),), ({0: B},)),
    "max_pool_of_no_batch": (lambda x: F.max_pool2d(x, 2), lambda: (floats(2, 4, 6),), None),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, (1, 2), 1), lambda: (floats(2, 4, 5, 7),), ({0: B, 2: S},)),
    "avg_pool_ceil": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), lambda: (floats(2, 4, 6, 8),), ({0: B},)),
    "avg_pool_exclude": (lambda x: F.avg_pool2d(x, (3, 2), 2, 1, True, count_include_pad=False), lambda: (floats(2, 4, 6, 8),), ({0: B},)),
    "avg_pool_divisor": (lambda x: F.avg_pool2d(x, 2, divisor_override=-3), lambda: (floats(2, 4, 6, 8),), ({0: B},)),
    "avg_pools": (lambda x: (F.avg_pool1d(x, 2), F.avg_pool3d(x[:, None], (1, 2, 3), 1, (0, 1, 1)), F.lp_pool1d(x, 2, 2)), lambda: (floats(2, 4, 6),), ({0: B},)),
    "adaptive_avg": (lambda x: (F.adaptive_avg_pool2d(x, (3, 4)), F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool1d(x[0], 5), F.adaptive_avg_pool3d(x, (3, None, 2))), lambda: (floats(2, 4, 6, 8),), ({0: B},)),
    "adaptive_avg_dynamic": (lambda x: F.adaptive_avg_pool2d(x, (3, None)), lambda: (floats(2, 4, 5, 7),), ({0: B, 3: S},)),
    "adaptive_max": (lambda x: (F.adaptive_max_pool2d(x, (3, 4), return_indices=True), F.adaptive_max_pool2d(x, 1), F.adaptive_max_pool1d(x[0], 1, return_indices=True)), lambda: (floats(2, 4, 6, 8),), ({0: B},)),
    "pad": (lambda x: (F.pad(x, (1, -2, 0, 3), value=0.5), F.pad(x, (0, 0, 2, 0)), F.pad(x, (0, 0))), x3, True),
    "pad_by_a_dim": (lambda x: F.pad(x, (0, 0, 0, x.shape[1] + 1)), x3, True),
    "pad_reflect": (lambda x: (F.pad(x, (3, 2), mode="reflect"), F.pad(x[None], (3, 2, 1, 0), mode="reflect")), lambda: (floats(2, 5, 8),), ({0: B},)),
    "pad_replicate": (lambda x: (F.pad(x, (3, 2), mode="replicate"), F.pad(x[None], (1, 2, 1, 9), mode="replicate")), x3, True),
    "pad_circular": (lambda x: F.pad(x, (3, 8), mode="circular"), x3, True),
    "upsample": (lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, scale_factor=(1.5, 3), mode="bilinear"), F.interpolate(x, scale_factor=2, mode="bicubic")), lambda: (floats(2, 4, 5, 7),), ({0: B},)),
    "upsample_antialiased": (lambda x: (F.interpolate(x, (3, 11), mode="bilinear", antialias=True), F.interpolate(x, (11, 2), mode="bicubic", antialias=True), F.interpolate(x, scale_factor=0.4, mode="bicubic", antialias=True), F.interpolate(x, (3, 4), mode="bilinear", antialias=True, align_corners=True)), lambda: (floats(2, 4, 9, 7),), ({0: B},)),
    "upsample_to": (lambda x: (F.interpolate(x, (7, 11)), F.interpolate(x, (7, 3), mode="bilinear", align_corners=True), F.interpolate(x, (3, 20), mode="bicubic", align_corners=True), F.interpolate(x, (9, 4), mode="nearest-exact")), lambda: (floats(2, 4, 5, 7),), ({0: B, 2: S},)),
    "upsample_by_a_scale_that_keeps_a_size": (lambda x: (F.interpolate(x, scale_factor=1.19), F.interpolate(x, scale_factor=(1.1, 1.5), mode="bilinear"), F.interpolate(x, scale_factor=(1.19, 2.1)), F.interpolate(x, scale_factor=1.19, mode="nearest-exact"), F.interpolate(x, scale_factor=1.19, mode="bicubic"), F.interpolate(x[:, 0], scale_factor=1.1, mode="linear"), F.interpolate(x[:, None], scale_factor=(1.0, 1.1, 2.0), mode="trilinear"), F.interpolate(x[:, 0], scale_factor=1.2), F.interpolate(x[:, None], scale_factor=(1.1, 1.19, 2.2))), lambda: (floats(2, 3, 5, 4),), ({0: B},)),
    "upsample_by_a_ratio": (lambda x: (F.interpolate(x, scale_factor=1.5), F.interpolate(x, scale_factor=1.2, mode="bilinear"), F.interpolate(x, scale_factor=4 / 3, recompute_scale_factor=True)), lambda: (floats(2, 3, 5, 4),), ({0: B, 2: S},)),
    "upsample_to_a_size": (lambda x, y: F.interpolate(x, y.shape[2:], mode="bilinear"), lambda: (floats(2, 4, 5, 7), floats(2, 4, 5, 3)), ({0: B}, {0: B, 2: S})),
    "upsample_by_two": (lambda x: F.interpolate(x, scale_factor=2.0), lambda: (floats(2, 4, 5, 7),), ({0: B, 2: S},)),
    "upsamples": (lambda x: (F.interpolate(x[:, 0], scale_factor=2, mode="linear"), F.interpolate(x[:, None], scale_factor=2, mode="trilinear"), F.interpolate(x[:, 0], 9), F.interpolate(x[:, None], (3, 2, 3), mode="nearest-exact")), lambda: (floats(2, 4, 5, 3),), ({0: B},)),
    "pixel_shuffle": (lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 4)), lambda: (floats(2, 8, 4, 6),), ({0: B},)),
    "grid_sample": (lambda x, g: (F.grid_sample(x, g, align_corners=False), F.grid_sample(x, g, padding_mode="border", align_corners=True), F.grid_sample(x, g, padding_mode="reflection", align_corners=False)), lambda: (floats(2, 4, 5, 7), floats(2, 6, 3, 2)), ({0: B}, {0: B, 1: S})),
    "grid_sample_nearest": (lambda x, g: (F.grid_sample(x, g, "nearest", "reflection", True), F.grid_sample(x, g, "nearest", align_corners=False)), lambda: (floats(2, 4, 5, 7), floats(2, 6, 3, 2)), ({0: B}, {0: B, 1: S})),
    "grid_sample_cubic": (lambda x, g: (F.grid_sample(x, g, "bicubic", align_corners=False), F.grid_sample(x, g, "bicubic", "reflection", False), F.grid_sample(x, g, "bicubic", "border", True)), lambda: (floats(2, 4, 5, 7), floats(2, 6, 3, 2)), ({0: B}, {0: B, 1: S})),
    "patches_in_one_dim": (lambda x, w: F.conv1d(x, w, stride=4), lambda: (floats(2, 3, 8), floats(6, 3, 4)), ({0: B}, None)),
    "tuple_of_all": (lambda x: {"a": x, "b": [x + 1, None], "c": (x.view(-1),)}, x3, True),
    "reductions": (lambda x: x.mean(-1, keepdim=True) + x.sum(1, keepdim=True) + x.amax((1, 2), keepdim=True) - x.amin(2, keepdim=True), x3, True),
    "reductions_of_all": (lambda x: x.sum() + x.mean() - x.max() + x.min() + x.var(), x3, True),
    "isnan": (lambda x: torch.where((x.log()).isnan(), 0.5, x), x3, True),
    "any_and_all": (lambda x: (x > 0).any(1).double() + (x > -9).all(1) + torch.any(x > 9), x3, True),
    "variance": (lambda x: x.var(-1, correction=0) + x.var(dim=2), x3, True),
    "argmax": (lambda x: x.argmax(-1), x3, True),
    "roundings": (lambda x: (x * 3).ceil() + (x * 3).trunc() * 10 + (x * 3).floor() * 100 + torch.round(x * 4) * 1000, x3, True),
    "round_ties": (lambda i: torch.round(i.double() / 2 - 2) + torch.round(i) + torch.ceil(i), lambda: (torch.arange(10).reshape(2, 5),), True),
    "divisions": (lambda x: torch.floor_divide(x, 0.3) + torch.div(x, -0.7, rounding_mode="trunc") + torch.div(x, x + 9, rounding_mode=None), x3, True),
    "integer_divisions": (lambda i: (i - 4) // 3 + (i - 4) // -3 * 100 + torch.div(i - 4, -2, rounding_mode="trunc") * 1000, lambda: (torch.arange(10).reshape(2, 5),), True),
    "remainders": (lambda i: (i - 4) % 3 + (i - 4) % -3 * 100 + torch.remainder(i - 4.5, 4.0) * 1000, lambda: (torch.arange(10).reshape(2, 5),), True),
    "more_powers": (lambda x: torch.pow(x.abs(), x) + 2.0**x + x.abs() ** 1.7 + x**0 + torch.exp2(x) + (x * x + 1).log2() + (x * x + 1).log10(), x3, True),
    "elus": (lambda x: F.elu(x, 0.7) + F.selu(x) + F.celu(x, 0.4) + F.softplus(x) + F.softsign(x), x3, True),
    "signs": (lambda x: torch.sign(x) + torch.sign(x * 0) + x.tan() + ((x > 0) ^ (x < 1)) + torch.logical_xor(x > 0, x > 1), x3, True),
    "log_softmax": (lambda x: x.log_softmax(-1) + F.log_softmax(x, 1), x3, True),
    "vector_norms": (lambda x: x.norm(dim=-1, keepdim=True) + torch.linalg.vector_norm(x, 1, 1, keepdim=True) + torch.linalg.vector_norm(x, float("inf")) - torch.linalg.vector_norm(x, -float("inf"), (0, 2)).sum() + F.normalize(x, dim=1), x3, True),
    "extremes": (lambda x: (x.max(-1)[0], *x.min(1, keepdim=True), x.max(dim=2), x.argmin(-1)), x3, True),
    "smallest_integers": (lambda i: (i * 3 % 7).min(-1), lambda: (torch.arange(10).reshape(2, 5),), True),
    "largest": (lambda x: (*x.topk(3), x.topk(8, -1)[1]), x3, True),
    "vmap": (lambda x: (x @ x.mT).masked_fill(~torch.vmap(torch.vmap(lambda i, j: (i >= j) & (i - j < 3), (None, 0)), (0, None))(torch.arange(x.shape[1]), torch.arange(x.shape[1])), 0.0), x3, True),
    "largest_of_a_dim": (lambda x: (*x.topk(x.shape[1], 1), x.topk(min(9, x.shape[1]), 1, largest=False)[0]), x3, True),
    "largest_of_first_dim": (lambda x: x.topk(2, 0), lambda: (floats(5, 4),), None),
    "instance_norm": (lambda x, w: F.instance_norm(x, weight=w, bias=w + 1) + F.instance_norm(x), lambda: (floats(2, 8, 5), floats(8)), ({0: B}, None)),
    "smallest": (lambda x: (*x.topk(3, largest=False), x.topk(8, -1, largest=False)[1]), x3, True),
    "largest_of_all": (lambda x: (x.argmax(), x.argmin(), (x > 0).int().argmax(1), (x > 0).max(1)), x3, True),
    "sorted": (lambda x: (*x.sort(1), x.sort(-1, descending=True)[1], x.argsort(0), torch.msort(x), *torch.sort(x > 0, dim=-1, stable=True)), x3, True),
    "middle": (lambda x: (*x.median(1), x.median(), *x.kthvalue(3, -1, keepdim=True), x.log().median(2)[0], x.log().median()), x3, True),
    "searched": (lambda x: (torch.searchsorted(x.sort(-1)[0], x[..., 2:5].contiguous(), right=True), torch.bucketize(x, torch.linspace(-1, 1, 5, dtype=torch.float64)), torch.bucketize(0.3, x[0, 0].sort()[0])), x3, True),
    "searched_in_a_common_type": (lambda x, i: (torch.bucketize(x * 4, i[0]), torch.bucketize(i, x[0, 0].sort()[0]), torch.bucketize(x.float(), i[0]), torch.searchsorted(i[0], 2.5, right=True), torch.bucketize(i + 2**24 + 1, torch.tensor([2.0**24])), torch.bucketize(i + 2**32, i[0].int()), torch.bucketize(torch.tensor(2.5), i[0])), lambda: (floats(2, 5, 8), torch.arange(10).view(2, 5)), (None, None)),
    "histc": (lambda x: (torch.histc(x, 10, -1, 1), torch.histc(x * 0, 3), torch.histc(x, 7)), x3, True),
    "statistics": (lambda x: (*torch.var_mean(x, -1, correction=0), *torch.std_mean(x, (1, 2), correction=0), *torch.aminmax(x, dim=1), x.relu().count_nonzero(2), x.std(-1)), x3, True),
    "covariances": (lambda x, w: (torch.cov(x), x.cov(correction=0), x.cov(fweights=(w * 3 + 4).abs().long(), aweights=w.abs()), x.cov(aweights=w.abs(), correction=2), x.cov(fweights=(w * 3 + 4).abs().long()), torch.corrcoef(x), x[0].cov(), torch.corrcoef(x[0]), (x * 5).long().cov()), lambda: (floats(3, 5), floats(5)), ({1: S}, {0: S})),
    "norms_of_orders": (lambda x: x.norm(p=4, dim=1) + torch.linalg.vector_norm(x, 3, 1) + torch.linalg.vector_norm(x, 0.5, 1) + torch.linalg.vector_norm(x, 0, 1), x3, True),
    "group_norm": (lambda x, w: F.group_norm(x, 2, w, w + 1, 0.1) + F.group_norm(x, 4) + F.group_norm(x[..., None].expand(-1, -1, -1, 2), 8)[..., 0], lambda: (floats(2, 8, 5), floats(8)), ({0: B, 2: S}, None)),
    "group_norm_of_rows": (lambda x: F.group_norm(x, 2), lambda: (floats(2, 8),), ({0: B},)),
    "cumsum": (lambda x: x.cumsum(1) + x.cumsum(-1), x3, True),
    "cumulative": (lambda x: (x.cumprod(1), x.cummax(1), (x * 0).cummin(2), x.logcumsumexp(-1), x.log().cummax(1)[1], (x > 0).cumsum(1), (x * 3).long().cumprod(2)), x3, True),
    "products": (lambda x: x.prod() + x.prod(1, keepdim=True) + (x > 0).prod(2, keepdim=True), x3, True),
    "rotary": (lambda x: x.sin() * x.cos(), x3, True),
    "rms_norm": (lambda x, g: F.rms_norm(x, (8,), g, 1e-6) + F.rms_norm(x, (8,)), lambda: (floats(2, 5, 8), floats(8)), (TOKENS, None)),
    "batch_norm": (lambda x, m: F.batch_norm(x, m, m * m + 1, m - 1, m) + F.batch_norm(x, m, m * m + 1), lambda: (floats(2, 8, 5), floats(8)), ({0: B, 2: S}, None)),
    "batch_norm_of_weights": (lambda x, m: F.batch_norm(x.reshape(1, 8, -1), None, None, m, m - 1, training=True) + F.batch_norm(x.reshape(1, 8, -1), None, None, training=True), lambda: (floats(8, 5, 3), floats(8)), None),
    "batch_norm_of_rows": (lambda x, m: F.batch_norm(x, m, m * m + 1, m - 1, m, eps=0.1), lambda: (floats(2, 8), floats(8)), ({0: B}, None)),
    "batch_norm_legit": (lambda x, m: torch.ops.aten._native_batch_norm_legit_no_training(x, m, None, m, m * m + 1, 0.1, 1e-5)[0], lambda: (floats(2, 8, 5, 3), floats(8)), ({0: B, 2: S}, None)),
    "batch_norm_native": (lambda x, m: torch.ops.aten.native_batch_norm(x, None, m, m, m * m + 1, False, 0.1, 1e-5)[0], lambda: (floats(2, 8, 5, 3, 2), floats(8)), ({0: B, 2: S}, None)),
    "batch_norm_wide": (lambda x, m: F.batch_norm(x.half(), m.float(), (m * m + 1).float(), (m - 1).float(), m.float()).float(), lambda: (floats(2, 8, 5), floats(8)), ({0: B, 2: S}, None)),
    "spelled_rms_norm": (lambda x, g: g * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)), lambda: (floats(2, 5, 8), floats(8)), (TOKENS, None)),
    "index_by_two": (lambda x, i: x[torch.arange(x.shape[0]), i] + x[0, i], lambda: (floats(2, 5, 8), torch.tensor([0, 0])), (TOKENS, {0: B})),
    "attention_repeated_heads": (lambda x: F.scaled_dot_product_attention(x, x[:, :2].repeat_interleave(2, 1), x[:, :2].repeat_interleave(2, 1)), lambda: (floats(2, 4, 5, 8),), ({0: B, 2: S},)),
    "in_place": (lambda x: x.clone().mul_(2).add_(1), x3, True),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_row_means_what_pytorch_does(name):
    function, make, dynamic = CASES[name]
    torch.manual_seed(0)
    inputs = make()
    shapes = tuple(TOKENS if dynamic is True else None for _ in inputs) if dynamic in (True, None) else dynamic
    check_meaning(Lambda(function).eval(), inputs, shapes)
