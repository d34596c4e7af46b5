"""A number of Python beside f16 and bf16: PyTorch rounds it for some operations to the tensor's type, not for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import ait_mlir
from ait_mlir.importers.torch import from_torch
from ait_mlir.reference.graph import evaluate_graph

N = 0.1
"""A number that neither type holds; f16 rounds it down, bf16 up."""

UNROUNDED: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: x * N,
    "product, swapped": lambda x: N * x,
    "quotient": lambda x: x / N,
    "quotient rounded down": lambda x: x // N,
    "number of a tensor": lambda x: x * torch.tensor(N),
    "leaky_relu": lambda x: F.leaky_relu(x, N),
    "elu": lambda x: F.elu(x, N),
    "celu": lambda x: F.celu(x, 0.3),
    "softplus": lambda x: F.softplus(x, 1.7, 0.3),
    "threshold": lambda x: F.threshold(x, 0.3, N),
}
ROUNDED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x + N,
    "difference, swapped": lambda x: N - x,
    "remainder": lambda x: x % N,
    "fmod": lambda x: torch.fmod(x, N),
    "power": lambda x: x.abs() ** 0.3,
    "power of a number": lambda x: 0.3**x,
    "clamp": lambda x: x.clamp(max=N) == N,
    "hardtanh": lambda x: F.hardtanh(x, -0.3, 0.3) == 0.3,
    "hardshrink": lambda x: F.hardshrink(x, 0.3),
    "comparison": lambda x: torch.full_like(x, N) >= N,
    "where": lambda x: torch.where(x > 0, x, N) == N,
    "masked_fill": lambda x: x.masked_fill(x > 0, N) == N,
    "full": lambda x: torch.full_like(x, N) * x,
    "pad": lambda x: F.pad(x, (1, 1), value=N) * 1.7,
    "nan_to_num": lambda x: torch.nan_to_num(x * torch.nan, N) == N,
}


class Both(torch.nn.Module):
    """All functions, of one input."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [f(x) for f in (*UNROUNDED.values(), *ROUNDED.values())]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
def test_each_operation_rounds_the_number_as_pytorch_does(dtype: torch.dtype) -> None:
    x = torch.cat([torch.randn(990), torch.tensor([N, 0.3, -0.3, 0.6, 0.0, -0.0, 0.5, 2.0, N / 2, -N])]).to(dtype)
    model = Both().eval()
    with torch.no_grad():
        imported = from_torch(model, (x,))
        (item,) = imported.inputs.tensors
        got = evaluate_graph(imported.graph, {item.name: x.double().numpy()}, imported.constants, {})
        want = model(x)
    found = [torch.tensor(got[value]) for _, value in imported.outputs]
    found = [a.float().to(b.dtype) for a, b in zip(found, want, strict=True)]  # rounded as by a kernel, which has f32
    named = zip((*UNROUNDED, *ROUNDED), found, want, strict=True)
    assert not [f"{name}: {a[a != b]}, not {b[a != b]}" for name, a, b in named if not torch.equal(a, b)]


class Few(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        return [
            z
            for t in (x, y)
            for z in (t * N, t / N, t + N, t.clamp(max=N) == N, t.clamp(min=N) > N, F.softshrink(t, 0.3))
        ]


class Weighted(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.add(x, N, alpha=0.3), torch.sub(x, 1.7, alpha=-0.7), torch.add(x, x.abs(), alpha=0.3)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
def test_the_product_of_a_number_and_its_weight_is_not_rounded(dtype: torch.dtype) -> None:
    """PyTorch's vectors of 32 elements, and a rest of them, do not round it; elements without a vector do."""
    x = torch.randn(3200).to(dtype)
    got = ait_mlir.compile(Weighted().eval(), (x,), target="cpu")(x)
    for a, b in zip(got, Weighted()(x), strict=True):
        assert torch.equal(torch.as_tensor(a), b)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_compiled_operations_have_the_elements_of_pytorch(size: int, few: Any) -> None:
    given = torch.randn(size).half(), torch.randn(size).bfloat16()
    for a, b in zip(few(*given), Few()(*given), strict=True):
        assert torch.equal(torch.as_tensor(a), b)


@pytest.fixture(scope="module")
def few() -> Any:
    n = torch.export.Dim("n", min=1, max=1000)
    given = torch.randn(9).half(), torch.randn(9).bfloat16()
    return ait_mlir.compile(Few().eval(), given, target="cpu", dynamic_shapes=({0: n}, {0: n}))
