"""Dims that are computed from dynamic ones, from a size of 1 on: on the CPU, against eager."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.export import Dim
from torch.nn import functional as F

import ait_mlir
from ait_mlir.errors import InputError
from ait_mlir.importers.torch import ImportFailure, UnsupportedOps, from_torch
from ait_mlir.reference.graph import evaluate_graph
from tests.importers.function import FunctionOfX

CASES = {
    "joined": lambda x: torch.cat([x, x * 2], 1).softmax(1) + torch.cat([x[0], x[1]]),
    "repeated": lambda x: x.repeat(2, 3) - torch.tile(x, (2, 3)),
    "interleaved": lambda x: torch.stack([x, -x], 2).flatten(1) + x.repeat_interleave(2, 1),
    "split again": lambda x: torch.cat([x, -x], 1).view(3, 2, x.shape[1]).sum(1) + torch.cat([x, x, x], 1)[:, ::3],
    "differences": lambda x: (
        torch.diff(x), torch.diff(x, prepend=x[:, :1]), torch.diff(x, prepend=x[:, :1], append=x), torch.diff(x, dim=0),
    ),
    "windows": lambda x: F.pad(x, (x.shape[1], 1)).unfold(1, 2, 1).sum(-1),
    "powers": lambda x: (torch.vander(x[0]), torch.vander(x[1], increasing=True), torch.vander(x[2], 3), torch.vander(x[2], 0)),
    "powers of integers": lambda x: (torch.vander((x[0] * 3).long(), 4), torch.linalg.vander(x, N=4)),
    "products": lambda x: (torch.kron(x, x), torch.kron(x, torch.eye(2)), torch.kron(x[0], x), torch.kron(x[0, 0], x)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_against_eager(name) -> None:
    torch.manual_seed(0)
    model = FunctionOfX(CASES[name]).eval()
    compiled = ait_mlir.compile(model, (torch.randn(3, 5),), dynamic_shapes={"x": {1: Dim("seq", min=1, max=24)}})
    for length in (1, 2, 9):
        x = torch.randn(3, length)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


def test_differences_of_a_higher_order() -> None:
    model = FunctionOfX(lambda x: torch.diff(x, n=2)).eval()
    compiled = ait_mlir.compile(model, (torch.randn(3, 5),), dynamic_shapes={"x": {1: Dim("seq", min=2, max=24)}})
    for length in (2, 3, 9):
        x = torch.randn(3, length)
        torch.testing.assert_close(compiled(x), model(x))


def padded(x):
    pad = -x.shape[1] % 4
    x = F.pad(x, (0, pad)) if pad > 0 else x
    return x.reshape(3, -1, 4).cumsum(1)


def test_a_multiple_of_a_dim_decides_whether_to_pad() -> None:
    """The dim has its own name and minimum, although no input has it by itself."""
    model = FunctionOfX(padded).eval()
    blocks = Dim("blocks", min=1, max=6)
    compiled = ait_mlir.compile(model, (torch.randn(3, 12),), dynamic_shapes={"x": {1: 4 * blocks}})
    assert "!ait.tensor<3 x (4*blocks) x f32>" in compiled.ir("imported")
    for count in (1, 2, 6):
        x = torch.randn(3, 4 * count)
        torch.testing.assert_close(compiled(x), model(x))
    with pytest.raises(ImportFailure, match=r"if pad > 0"):
        from_torch(model, (torch.randn(3, 11),), dynamic_shapes={"x": {1: Dim("seq", min=1, max=24)}})


def test_a_power_has_two_columns_at_least() -> None:
    with pytest.raises(ImportFailure, match=r"linalg\.vander of 1 columns, expected at least 2"):
        from_torch(FunctionOfX(lambda x: torch.linalg.vander(x, N=1)).eval(), (torch.randn(3, 5),))


ORDINARY = {
    "first": lambda x: x[:, 0],
    "last": lambda x: x[:, -1],
    "others": lambda x: x[:, 1:],
    "argmax": lambda x: x.argmax(1),
    "roll": lambda x: x.roll(1, 1),
    "convolution": lambda x: torch.conv1d(x.mT, torch.ones(3, 8, 3), padding=1),
    "diff": lambda x: x.diff(dim=1),
    "largest": lambda x: x.max(1),
    "attention": lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True),
}
UNSOLVED = {
    "pool": lambda x: torch.nn.functional.avg_pool1d(x.mT, 3, 2),
    "strided convolution": lambda x: torch.conv1d(x.mT, torch.ones(3, 8, 4), stride=2),
    "quantile": lambda x: x.quantile(0.5, 1),
    "first of three": lambda x: x.split(3, 1)[0],
}
"""Functions whose conditions PyTorch cannot solve for a declared dim."""


@pytest.mark.parametrize("name", UNSOLVED)
def test_a_dim_without_a_minimum_imports_what_an_automatic_one_does(name: str) -> None:
    model = FunctionOfX(UNSOLVED[name]).eval()
    for dim in (Dim.AUTO, Dim("d"), Dim("d", max=64)):
        imported = from_torch(model, (torch.randn(2, 6, 8),), dynamic_shapes={"x": {1: dim}})
        (found,) = imported.graph.scope
        assert found.lo <= 4
        for size in (max(found.lo, 1), 9):
            x = torch.randn(2, size, 8)
            values = evaluate_graph(imported.graph, {"x": x.numpy()}, imported.constants, {found.name: size})
            np.testing.assert_allclose(values[imported.outputs[0][1]], model(x).numpy(), rtol=1e-5, atol=1e-5)


def test_a_condition_of_an_automatic_dim_is_refused() -> None:
    model = FunctionOfX(lambda x: x * 2 if x.shape[0] % 8 else x).eval()
    with pytest.raises(ImportFailure, match=r"the model requires .*8.*Dim\.AUTO"):
        from_torch(model, (torch.randn(6, 4),), dynamic_shapes={"x": {0: Dim.AUTO}})


def test_a_dim_that_may_be_empty_stays_so() -> None:
    class Model(torch.nn.Module):
        def forward(self, x):
            return x.sum(1)

    imported = from_torch(Model().eval(), (torch.randn(2, 6, 8),), dynamic_shapes=({1: Dim("d", max=64)},))
    assert [d.lo for d in imported.graph.scope] == [0]


@pytest.mark.parametrize(("pieces", "least"), [(2, 2), (3, 5), (4, 10)])
def test_a_number_of_pieces_gives_a_dim_without_a_minimum_one(pieces, least) -> None:
    model = FunctionOfX(lambda x: x.chunk(pieces, 1)).eval()
    compiled = ait_mlir.compile(model, (torch.randn(3, 12),), dynamic_shapes={"x": {1: Dim("seq")}})
    for length in (least, least + 1, 24):
        x = torch.randn(3, length)
        assert all(torch.equal(a, b) for a, b in zip(compiled(x), model(x), strict=True))
    with pytest.raises(InputError, match=f"expected a value from {least} to"):
        compiled(torch.randn(3, least - 1))


def test_a_declared_minimum_that_is_too_small_is_refused_with_the_one_that_fits() -> None:
    model = FunctionOfX(lambda x: x.chunk(3, 1)).eval()
    with pytest.raises(ImportFailure, match=r"requires that seq is at least 5: declare Dim\('seq', min=5\)"):
        from_torch(model, (torch.randn(3, 7),), dynamic_shapes={"x": {1: Dim("seq", min=1)}})


def test_a_dim_without_a_minimum_gets_the_one_that_an_operation_needs() -> None:
    model = FunctionOfX(lambda x: x.topk(2, 1).values).eval()
    compiled = ait_mlir.compile(model, (torch.randn(3, 6),), dynamic_shapes={"x": {0: Dim("rows"), 1: Dim("seq")}})
    for length in (2, 5):
        x = torch.randn(3, length)
        assert torch.equal(compiled(x), model(x))
    with pytest.raises(InputError, match="expected a value from 2 to"):
        compiled(torch.randn(3, 1))
    with pytest.raises(ImportFailure, match="k is 2, expected 1 to seq"):
        from_torch(model, (torch.randn(3, 6),), dynamic_shapes={"x": {0: Dim("rows"), 1: Dim("seq", min=1)}})


class Several(torch.nn.Module):
    def forward(self, x, y):
        return x[torch.arange(4)].sum(0) + y.sum(0) + y.topk(2, 1).values.sum()


def test_each_dim_gets_the_least_minimum_that_operations_need() -> None:
    shapes = {"x": {0: Dim("a")}, "y": {0: Dim("b"), 1: Dim("c")}}
    imported = from_torch(Several().eval(), (torch.randn(9, 1), torch.randn(7, 5)), dynamic_shapes=shapes)
    assert {d.name: d.lo for d in imported.graph.scope} == {"a": 4, "b": 1, "c": 2}


class StepsFromTheSecond(torch.nn.Module):
    def forward(self, x):
        y, h = torch.zeros_like(x), x[:, 0]
        for t in range(1, x.shape[1]):
            h = 0.5 * h + x[:, t]
            y[:, t] = h
        return y


def test_a_loop_from_the_second_step_on_may_have_no_steps() -> None:
    model = StepsFromTheSecond().eval()
    imported = from_torch(model, (torch.randn(2, 6),), dynamic_shapes={"x": {1: Dim("seq")}})
    assert [d.lo for d in imported.graph.scope] == [1]
    for length in (1, 2, 5):
        x = torch.randn(2, length)
        values = evaluate_graph(imported.graph, {"x": x.numpy()}, imported.constants, {"seq": length})
        np.testing.assert_allclose(values[imported.outputs[0][1]], model(x).numpy(), atol=1e-6)


class Shifted(torch.nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        y[:, 1:] = x[:, :-1]
        return y


def test_a_dim_without_a_minimum_gets_the_one_that_the_trace_needs() -> None:
    model = Shifted().eval()
    imported = from_torch(model, (torch.randn(2, 6),), dynamic_shapes={"x": {1: Dim("seq")}})
    assert [d.lo for d in imported.graph.scope] == [3]
    with pytest.raises(ImportFailure, match=r"requires that seq is at least 3: declare Dim\('seq', min=3\)"):
        from_torch(model, (torch.randn(2, 6),), dynamic_shapes={"x": {1: Dim("seq", min=1)}})


def test_a_multiple_that_the_model_fixes_is_refused() -> None:
    model = FunctionOfX(lambda x: sum(x[:, t : t + 2] for t in range(0, x.shape[1], 2))).eval()
    with pytest.raises(ImportFailure, match="a dim that was to be dynamic is not"):
        from_torch(model, (torch.randn(2, 6),), dynamic_shapes={"x": {1: 2 * Dim("half", max=20)}})


BY_FLOATS = {
    "a choice": lambda x: x + 1 if x.shape[1] * 0.5 > 2.2 else x - 1,
    "a constant": lambda x: x.new_tensor([x.shape[1] * 1.0, 2.0]),
}


def test_an_attribute_that_is_a_float_of_a_size_is_refused() -> None:
    """PyTorch gives the float of the example."""
    model = FunctionOfX(lambda x: torch.nn.functional.leaky_relu(x, x.shape[1] ** 0.5)).eval()
    with pytest.raises(UnsupportedOps, match=r"leaky_relu(?s:.)*the float FloatPow.* depends on dims"):
        from_torch(model, (torch.randn(2, 6),), dynamic_shapes={"x": {1: Dim("seq")}})


@pytest.mark.parametrize("name", BY_FLOATS)
def test_a_decision_by_a_float_of_a_size_is_refused(name) -> None:
    """PyTorch's own conditions leave such a decision out."""
    with pytest.raises(ImportFailure, match="a dim that was to be dynamic is not"):
        from_torch(FunctionOfX(BY_FLOATS[name]).eval(), (torch.randn(2, 6),), dynamic_shapes={"x": {1: Dim("seq")}})
