"""`torch.compile(backend="ait")`: views, floats, autocast, graphs without tensors, and what a fallback says."""

from __future__ import annotations

import inspect
import logging
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import ait_mlir
from ait_mlir.errors import CompileError
from ait_mlir.importers.torch.dynamo import MOST_VARIANTS, FallbackWarning, register
from tests import tiers


@pytest.fixture(autouse=True)
def backend():
    register()
    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        yield
    torch._dynamo.reset()


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, logger="ait_mlir.torch_compile")
    return caplog


def same(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], dynamic: bool | None = None) -> None:
    """Compare results and written arguments with PyTorch; a fallback is an error."""
    fast = torch.compile(function, backend="ait", dynamic=dynamic)
    for args in calls:
        copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
        torch.testing.assert_close(fast(*args), function(*copies))
        torch.testing.assert_close(list(args), copies)


# ** views **


def parts(x):
    return x[0], x.t(), x * 2


def of_a_product(x):
    y = x @ x.t()
    return y, y[0], y.t(), y.view(-1), x.shape[0]


def halves(x):
    a, b = (x * 2).chunk(2)
    return a, b


def written(x):
    x.add_(1)
    return x, x[1:], x * 3


def written_result(x):
    y = torch.relu(x)
    z = y.detach()
    y += 1
    y[0] = 5
    return y[::2], z.unsqueeze(0), y.sum()


def expanded(x):
    return x.expand(2, *x.shape), x.reshape(-1), x.contiguous(), None, 3


def alone(x):
    return (x + 1).t(), (x * 2)[1:]


VIEWS = [parts, of_a_product, halves, written, written_result, expanded, alone]


def sharing(args: Sequence[Any], results: Sequence[Any]) -> list[tuple[int, int]]:
    tensors = [t for t in (*args, *results) if isinstance(t, torch.Tensor)]
    places = [t.untyped_storage().data_ptr() for t in tensors]
    return [(i, j) for i, a in enumerate(places) for j in range(i) if a == places[j]]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", VIEWS)
def test_results_share_memory_as_in_pytorch(function, dynamic):
    fast = torch.compile(function, backend="ait", dynamic=dynamic)
    for size in (4, 6) if dynamic else (4,):
        x = torch.randn(size, 4)
        twin = x.clone()
        found, expected = fast(x), function(twin)
        assert sharing([x], found) == sharing([twin], expected)
        torch.testing.assert_close((found, x), (expected, twin))
        for ours, theirs in zip(found, expected, strict=True):
            assert not isinstance(theirs, torch.Tensor) or ours.stride() == theirs.stride()


def test_a_graph_of_views_is_not_compiled(log):
    same(lambda x: (x.t(), x.view(-1), x.shape[1]), [(torch.randn(3, 4),)])
    assert [r.message for r in log.records] == ["a graph of 2 operations makes only views and sizes, as PyTorch does"]


def test_arguments_that_overlap_one_that_is_written_run_in_pytorch():
    def step(x, y):
        x.mul_(2)
        return y + x

    data, twin = torch.arange(6.0), torch.arange(6.0)
    fast = torch.compile(step, backend="ait")
    fast(torch.ones(4), torch.ones(4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        torch.testing.assert_close(fast(data[:4], data[2:]), step(twin[:4], twin[2:]))
    torch.testing.assert_close(data, twin)
    same(step, [(x[:4], x[4:]) for x in (torch.randn(8),)])  # parts of one tensor without common elements


# ** floats **

X = torch.randn(3, 8)
FLOATS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda x, s: x * s + torch.full_like(x, s * 2).clamp(min=s) - s**2 / 3,
    "of whole numbers": lambda x, s: x.to(torch.int64) * s,
    "temperature": lambda x, s: (x / s).softmax(-1),
    "comparison": lambda x, s: torch.where(x > s, x, -s),
    "a result": lambda x, s: (x * s, s * 2, 1 - s),
    "epsilon": lambda x, s: F.layer_norm(x, (8,), eps=s),
    "slope": lambda x, s: F.leaky_relu(x, s) * s,
    "functions of Python": lambda x, s: x * math.sqrt(s),
}


@pytest.mark.parametrize("name", FLOATS)
def test_a_float_may_change(name):
    same(FLOATS[name], [(X, 0.25), (X, 0.5), (X, 0.75), (X, 0.5)])


def test_a_float_of_arithmetic_needs_no_further_compilation(log):
    same(lambda x, s: x * s, [(X, 1.0 + i) for i in range(2 * MOST_VARIANTS)])
    assert sum("is compiled" in r.message for r in log.records) == 2


def test_a_float_that_the_code_must_know_is_compiled_a_few_times():
    fast = torch.compile(FLOATS["slope"], backend="ait")
    for i in range(MOST_VARIANTS + 1):
        fast(X, 0.1 + i)
    with pytest.warns(FallbackWarning, match=f"compiled for {MOST_VARIANTS} values of its numbers") as told:
        for i in range(3):
            torch.testing.assert_close(fast(X, 50.0 + i), FLOATS["slope"](X, 50.0 + i))
    assert sum(w.category is FallbackWarning for w in told) == 1


@pytest.mark.parametrize("norm", [nn.LayerNorm(8), nn.RMSNorm(8, eps=1e-6), nn.BatchNorm1d(8), nn.GroupNorm(2, 8)])
def test_norms_are_compiled_with_dynamic_floats(norm):
    model = nn.Sequential(norm, nn.GELU(), nn.Dropout(0.5), nn.LeakyReLU(0.2)).eval()
    same(model, [(torch.randn(size, 8),) for size in (3, 5)], dynamic=True)


def test_an_imported_model_computes_with_a_number_that_a_tensor_holds():
    class Scaled(nn.Module):
        def forward(self, x, scale):
            s = scale.item()
            return x * s + (s * 2 - 1) / 3

    compiled = ait_mlir.compile(Scaled().eval(), (X, torch.tensor(3.0)))
    for scale in (torch.tensor(3.0), torch.tensor(-0.7)):
        torch.testing.assert_close(compiled(X, scale), Scaled()(X, scale))


# ** graphs without tensors, sizes **


def test_graphs_without_tensors_are_compiled(log):
    same(lambda: torch.arange(4) * 2.0, [(), ()])
    weight = nn.Parameter(torch.randn(4))
    same(lambda: weight * 2, [()])
    assert [r.message for r in log.records] == [
        "a graph of 2 operations is compiled",
        "a graph of 1 operation is compiled",
    ]


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.wpe = nn.Embedding(64, 8)

    def forward(self, x):
        return x + self.wpe(torch.arange(x.shape[1]))


def test_absolute_positions_are_compiled_up_to_the_size_of_the_table():
    model = Positions()
    fast = torch.compile(model, backend="ait", dynamic=True)
    for size in (7, 12, 64):
        x = torch.randn(2, size, 8)
        torch.testing.assert_close(fast(x), model(x))
    with warnings.catch_warnings(), pytest.raises(IndexError):
        warnings.simplefilter("ignore", FallbackWarning)
        fast(torch.randn(2, 65, 8))


def test_an_integer_that_is_only_computed_with_may_have_any_value():
    fast = torch.compile(lambda x, n: x * (1 - n / 1000) + n, backend="ait")
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for n in (3, 999, 0, 1, -2, 2**40):
            torch.testing.assert_close(fast(X, n), X * (1 - n / 1000) + n)


def test_an_integer_that_is_a_size_is_a_dim():
    fast = torch.compile(lambda x, n: x[:n] * n, backend="ait")
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for n in (3, 2, 1):
            torch.testing.assert_close(fast(X, n), X[:n] * n)


# ** autocast **


class Cast(nn.Module):
    """Two products in a row, a part in f32, an elementwise operation of both types."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(8, 8), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.b(self.a(x))
            with torch.autocast("cpu", enabled=False):
                z = self.norm(y.float())
            return y, z, y + z, (z @ z.t()).softmax(-1)


WAYS = ("compile", "torch.compile")
AROUND = [(way, dtype) for way in WAYS for dtype in (torch.bfloat16, torch.float16)]


@pytest.mark.parametrize("way", WAYS)
def test_autocast_inside_has_the_types_of_pytorch(way):
    model = Cast().eval()
    fast = ait_mlir.compile(model, (X,)) if way == "compile" else torch.compile(model, backend="ait")
    for ours, theirs in zip(fast(X), model(X), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize(
    "norm", [nn.LayerNorm(8), nn.RMSNorm(8), nn.GroupNorm(2, 8), nn.BatchNorm1d(8), nn.InstanceNorm1d(8, affine=True)]
)
def test_norms_under_autocast_take_weights_of_f32(norm):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.norm = nn.Linear(8, 8), norm

        def forward(self, x):
            return self.norm(self.a(x))

    model, x = Net().eval(), torch.randn(2, 8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours, theirs = ait_mlir.compile(model, (x,))(x), model(x)
    assert ours.dtype == theirs.dtype
    torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(("way", "dtype"), tiers.params(AROUND, AROUND[::3]), ids=str)
def test_autocast_around_has_the_types_of_pytorch(way, dtype):
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 4)).eval()
    with torch.autocast("cpu", dtype=dtype):
        fast = ait_mlir.compile(model, (X,)) if way == "compile" else torch.compile(model, backend="ait")
        ours, theirs = fast(X), model(X)
        assert "forward" not in vars(model)
    assert ours.dtype == theirs.dtype == dtype
    torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)


COMPOSED = {
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x) + 1,
    "einsum of three": lambda x: torch.einsum("ij,kj,kl->il", x, x, x),
    "tensordot": lambda x: torch.tensordot(x, x, dims=([1], [1])),
    "inner": lambda x: torch.inner(x, x),
    "multi_dot": lambda x: torch.linalg.multi_dot([x, x.t(), x]),
    "linalg.matmul": lambda x: torch.linalg.matmul(x, x.t()),
    "lstm": nn.LSTM(8, 4),
    "gru": nn.GRU(8, 4),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_autocast_reaches_the_parts_of_compositions(name):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.function = COMPOSED[name]

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
                return self.function(x)

    model, rows = Net().eval(), torch.export.Dim("rows", min=1, max=9)
    fixed = name == "multi_dot"  # PyTorch orders its products by numbers
    compiled = ait_mlir.compile(model, (X,), dynamic_shapes=None if fixed else ({0: rows},))
    found = torch.utils._pytree.tree_leaves(compiled(X))
    if name == "lstm" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():  # oneDNN has no such LSTM for this processor
        wanted = [result.bfloat16() for result in torch.utils._pytree.tree_leaves(model.function(X))]
    else:
        wanted = torch.utils._pytree.tree_leaves(model(X))
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)


def test_a_row_that_writes_other_elements_than_the_trace_declares_is_refused(monkeypatch):
    from ait_mlir.importers.torch import program

    monkeypatch.setattr(program, "row_named", lambda name: lambda c: c.tensor("self"))
    with pytest.raises(CompileError, match=r"has elements of f32, but the trace declares torch\.float64"):
        ait_mlir.compile(Doubled().eval(), (X,))


class Doubled(nn.Module):
    def forward(self, x):
        return x.double()


# ** what a fallback says **


def refused(x):
    y = torch.special.bessel_j0(x)
    return y + 1


def test_a_graph_that_falls_back_warns_once_with_its_place_and_the_reason():
    line = inspect.getsourcelines(refused)[1] + 1
    fast = torch.compile(refused, backend="ait")
    with pytest.warns(FallbackWarning) as told:
        for _ in range(3):
            fast(X)
    (one,) = (str(w.message) for w in told if w.category is FallbackWarning)
    assert one.startswith(f"a graph of 2 operations at {__file__}:{line} in refused: y = torch.special.bessel_j0(x)")
    assert "runs in PyTorch: 1 operation of the model cannot be imported" in one


def test_calls_that_fall_back_warn_once(monkeypatch):
    """A graph that was compiled again for larger sizes as often as may be."""
    monkeypatch.setattr("ait_mlir.importers.torch.dynamo.MOST_VARIANTS", 1)
    fast = torch.compile(lambda x: (x @ x.t()).relu(), backend="ait", dynamic=True)
    fast(torch.randn(3, 4))
    fast(torch.randn(2, 5000))
    with pytest.warns(FallbackWarning, match="a call of a graph of 3 operations at .* runs in PyTorch: ") as told:
        for _ in range(2):
            fast(torch.randn(2, 50000))
    assert sum(w.category is FallbackWarning for w in told) == 1


# ** sizes **


def test_a_graph_is_compiled_again_for_sizes_beyond_its_maxima(log):
    """Of all dims of a convolution's input, four maxima of 4,096 would be too many elements."""
    sizes = (2, 3, 8, 10), (3, 3, 16, 12), (2, 3, 100, 9), (4, 3, 90, 10)
    same(nn.Conv2d(3, 4, 3, stride=2).eval(), [(torch.randn(size),) for size in sizes], dynamic=True)
    assert sum("is compiled" in r.message for r in log.records) == 2


@pytest.mark.parametrize("kind", ["gelu, norm first", "relu"])
def test_an_encoder_layer_that_pytorch_calls_as_one_operation(kind):
    layer = nn.TransformerEncoderLayer(
        16, 4, 32, batch_first=True, activation=kind.split(",")[0], norm_first="first" in kind
    ).eval()
    x, padding = torch.randn(2, 5, 16), torch.arange(5).expand(2, 5) >= torch.tensor([[5], [3]])
    fast = torch.compile(layer, backend="ait", dynamic=True)
    torch.testing.assert_close(fast(x), layer(x), rtol=1e-4, atol=1e-5)
    given = {"src_mask": torch.ones(5, 5).triu(1) > 0, "src_key_padding_mask": padding}
    torch.testing.assert_close(fast(x, **given), layer(x, **given), rtol=1e-4, atol=1e-5)


def test_an_attention_that_pytorch_calls_as_one_operation():
    layer = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    x = torch.randn(2, 5, 16)
    fast = torch.compile(layer, backend="ait")
    padding = torch.arange(5).expand(2, 5) >= torch.tensor([[5], [3]])
    for found, exact in zip(
        fast(x, x, x, key_padding_mask=padding), layer(x, x, x, key_padding_mask=padding), strict=True
    ):
        torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-5)
