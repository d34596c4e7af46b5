"""However a model spells a function, it becomes the same operations. Each pattern alone is in lit_tests/rewrites."""

from __future__ import annotations

import copy
import re

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

import ait_mlir
from ait_mlir.driver import run_to_phase
from ait_mlir.importers.torch import from_torch
from ait_mlir.options import CompileOptions
from benchmarks import measure
from tests.importers.models import BATCH, SEQ
from tests.importers.spelled import SPELLED, Spelled, operations

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


class Between(nn.Module):
    """A function behind a linear layer."""

    def __init__(self, function):
        super().__init__()
        self.linear, self.function = nn.Linear(16, 16), function

    def forward(self, x):
        return self.function(self.linear(x))


def fused(module, *inputs, dynamic=None):
    """The text of the fused graph, before short operations become loops."""
    shapes = (({0: BATCH, 1: SEQ},) * len(inputs)) if dynamic is None else dynamic
    imported = from_torch(module.eval(), inputs, dynamic_shapes=(*shapes,))
    return str(run_to_phase(imported.module, "fused", CompileOptions(without=["form-loops"])))


ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "fast_gelu",
    "gelu_fast": "fast_gelu",
    "gelu_accurate": "fast_gelu",
    "gelu_pytorch_tanh": "fast_gelu",
    "quick_gelu": "sigmoid",
    "gelu_10": "gelu",
    "silu": "silu",
    "swish": "silu",
    "mish": "tanh",
    "hardswish": "clamp",
    "relu2": "relu",
    "relu6": "clamp",
    "leaky_relu": "where",
    "laplace": "erf",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
}


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_of_transformers_is_in_the_epilogue(name, dtype):
    function = pytest.importorskip("transformers.activations").ACT2FN[name]
    text = fused(Between(function).to(dtype), torch.randn(2, 3, 16, dtype=dtype))
    assert operations(text) == {"gemm": 1}
    assert f"= ait.{ACTIVATIONS[name]} " in text
    if ACTIVATIONS[name] in ("gelu", "fast_gelu", "silu"):  # one operation, not what it is made of
        assert not re.search(r"= ait\.(erf|tanh|sigmoid|exp) ", text)


def scaled_before(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def widened(x, weight):
    """LlamaRMSNorm and T5LayerNorm: the weight in the narrow type."""
    wide = x.to(torch.float32)
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def squared(x, weight):
    return x * (x * x).mean(-1, keepdim=True).add(1e-6).rsqrt() * weight


def pytorch_s(x, weight):
    return F.rms_norm(x, (16,), weight, 1e-6)


class Norm(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.weight, self.function = nn.Parameter(torch.rand(16) + 0.5), function

    def forward(self, x):
        return self.function(x, self.weight)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("spelling", [scaled_before, widened, squared, pytorch_s], ids=lambda f: f.__name__)
def test_a_norm_is_one_operation(spelling, dtype):
    text = fused(Norm(spelling).to(dtype), torch.randn(2, 3, 16, dtype=dtype))
    assert operations(text) == {"rms_norm": 1} and " scale " in text


def halves(x):
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), dim=-1)


def chunks(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class Rotated(nn.Module):
    """Angles by a product of positions and frequencies, of either kind, and either way to take halves."""

    def __init__(self, rotate, by_product):
        super().__init__()
        self.rotate, self.by_product = rotate, by_product
        self.register_buffer("inv_freq", 10.0 ** -(torch.arange(8) / 8.0))

    def forward(self, x):
        positions = torch.arange(x.shape[1])[None]
        if self.by_product:
            inverse = self.inv_freq[None, :, None].float().expand(positions.shape[0], -1, 1)
            angles = (inverse @ positions[:, None, :].float()).transpose(1, 2)
        else:
            angles = positions[..., None].float() * self.inv_freq.float()
        both = torch.cat((angles, angles), dim=-1)
        cos, sin = both.cos().to(x.dtype), both.sin().to(x.dtype)
        return x * cos + self.rotate(x) * sin


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("by_product", [False, True])
@pytest.mark.parametrize("rotate", [halves, chunks], ids=lambda f: f.__name__)
def test_a_rotation_reads_half_a_table(rotate, by_product, dtype):
    module = Rotated(rotate, by_product)
    module.inv_freq = module.inv_freq.to(dtype)
    text = fused(module, torch.randn(2, 3, 16, dtype=dtype))
    found = operations(text)
    assert set(found) == {"fused_elementwise"} and "ait.bmm" not in text
    assert text.count("ait.cos ") == text.count("ait.sin ") == text.count("= ait.sub ") == 1
    assert text.count("= ait.mul ") == 5 and "ait.neg" not in text  # the angles, and four products of halves


def every_other(x):
    """timm's `rot`, and the one of GPT-J."""
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).reshape(x.shape)


def unbound(x):
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((-b, a), dim=-1).flatten(-2)


class RotatedPairs(Rotated):
    """Neighbours are turned by one angle."""

    def forward(self, x):
        angles = torch.arange(x.shape[1])[None, :, None].float() * self.inv_freq.float()
        both = angles.repeat_interleave(2, -1)
        cos, sin = both.cos().to(x.dtype), both.sin().to(x.dtype)
        return x * cos + self.rotate(x) * sin


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rotate", [every_other, unbound], ids=lambda f: f.__name__)
def test_neighbours_are_turned_in_one_operation(rotate, dtype):
    module = RotatedPairs(rotate, False)
    module.inv_freq = module.inv_freq.to(dtype)
    text = fused(module, torch.randn(2, 3, 16, dtype=dtype))
    found = operations(text)
    repeats = found.pop("expand", 0) + found.pop("loops", 0)  # of the angles, alone or together with their product
    assert set(found) == {"fused_elementwise"} and repeats == 1
    assert text.count("ait.cos ") == text.count("ait.sin ") == 1
    assert text.count("= ait.sub ") == 1 and "ait.neg" not in text
    assert text.count("= ait.mul ") == 5  # the angles, and four products


def normalize(x):
    return F.normalize(x, dim=-1)


def by_length(x):
    return x / x.norm(dim=-1, keepdim=True)


def by_root_of_sum(x):
    return x / x.pow(2).sum(-1).sqrt().clamp_min(1e-6).unsqueeze(-1)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("spelling", [normalize, by_length, by_root_of_sum], ids=lambda f: f.__name__)
def test_a_norm_to_length_one_is_one_operation(spelling, dtype):
    class Normalized(nn.Module):
        def forward(self, x):
            return spelling(x)

    text = fused(Normalized(), torch.randn(2, 3, 16, dtype=dtype))
    assert operations(text) == {"rms_norm": 1} and " bounded epilogue" in text


def no_mask(scores, seen):
    return scores


def filled(scores, seen):
    return scores.masked_fill(~seen[:, None, None], -torch.inf)


def chosen(scores, seen):
    return torch.where(seen[:, None, None], scores, torch.finfo(scores.dtype).min)


def added(scores, seen):
    return scores + (1.0 - seen[:, None, None].to(scores.dtype)) * torch.finfo(scores.dtype).min


def triangle(scores):
    return torch.ones(scores.shape[-2:], dtype=torch.bool).tril()


def hidden_triangle(scores, seen):
    return scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)


def added_triangle(scores, seen):
    return scores + torch.full(scores.shape[-2:], torch.finfo(scores.dtype).min, dtype=scores.dtype).triu(1)


def chosen_triangle(scores, seen):
    return torch.where(triangle(scores), scores, -1e4)


def both(scores, seen):
    """As the eager attention of transformers adds it."""
    mask = triangle(scores) & seen[:, None, None]
    return scores + torch.where(mask, torch.tensor(0.0, dtype=scores.dtype), torch.finfo(scores.dtype).min)


class Attention(nn.Module):
    def __init__(self, mask, widen):
        super().__init__()
        self.mask, self.widen = mask, widen

    def forward(self, q, kv, seen):
        kv = kv[:, :, None].expand(-1, -1, 2, -1, -1).reshape(q.shape)
        scores = self.mask(torch.matmul(q, kv.transpose(2, 3)) * 0.25, seen)
        weights = F.softmax(scores, dim=-1, dtype=torch.float32 if self.widen else None).to(q.dtype)
        return torch.matmul(weights, kv)


# mask: whether something is left to add, whether the attention is causal
MASKS = {
    no_mask: (False, False),
    filled: (True, False),
    chosen: (True, False),
    added: (True, False),
    hidden_triangle: (False, True),
    added_triangle: (False, True),
    chosen_triangle: (False, True),
    both: (True, True),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("mask", MASKS, ids=lambda f: f.__name__)
def test_attention_is_one_operation(mask, dtype):
    module = Attention(mask, widen=dtype is not torch.float32)
    q, kv, seen = torch.randn(2, 4, 5, 16, dtype=dtype), torch.randn(2, 2, 5, 16, dtype=dtype), torch.ones(2, 5) > 0
    text = fused(module, q, kv, seen, dynamic=({0: BATCH, 2: SEQ}, {0: BATCH, 2: SEQ}, {0: BATCH, 1: SEQ}))
    masked, causal = MASKS[mask]
    (line,) = re.findall(r"= ait\.attention .*", text)
    in_region = " scores(" in line  # a choice by the least number of f16 is no sum
    assert in_region == (mask is chosen and dtype is torch.float16)
    assert (" mask " in line or in_region, " causal " in line) == (masked, causal)
    assert "ait.attention %q, %kv, %kv" in line  # two heads of keys for four of queries
    left = operations(text)
    assert left.pop("attention") == 1 and set(left) <= {"fused_elementwise"} and (in_region or bool(left) == masked)


def test_a_layer_as_users_spell_it():
    torch.manual_seed(0)
    model = Spelled().eval()
    example = (torch.randn(2, 9, 256), torch.ones(2, 9, dtype=torch.bool))
    dynamic = {0: Dim("batch", max=8), 1: Dim("seq", max=600)}
    compiled = ait_mlir.compile(model, example, dynamic_shapes=(dynamic, dynamic))
    assert operations(compiled.ir("fused")) == SPELLED
    exact = copy.deepcopy(model).double()
    with torch.no_grad():
        for batch, seq in ((3, 130), (2, 600)):
            x, seen = torch.randn(batch, seq, 256), torch.ones(batch, seq, dtype=torch.bool)
            seen[0, : seq - 3] = False  # whole blocks of columns are hidden before the first that is seen
            result = measure.accuracy(compiled(x, seen), model(x, seen), exact(x.double(), seen))
            assert result.passed, result
