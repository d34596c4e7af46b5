"""Conditions by the value of a tensor: both sides run, and what they set is chosen; what that would change is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

from ait_mlir.importers.torch import ImportFailure, from_torch
from ait_mlir.reference.graph import evaluate_graph
from tests.importers.function import Function

SEQ = Dim("seq", min=1, max=32)
COUNT = 0


def clamps_what_overflows(x, h):
    """As encoders and decoders of `transformers` do in f16."""
    x = x * 1e38
    if x.dtype == torch.float64 and not torch.isfinite(x.float()).all():
        most = 3e38
        x = torch.clamp(x, min=-most, max=most)
    return x, h


def sets_on_both_sides(x, h):
    if h.sum() > 0 or x.dim() == 2 or x.min() < -2:
        y, h = x * 2, h + 1
    else:
        y = -x
    if not isinstance(x, int) and (h.max() < 1 or h.min() < -1):
        y = y + torch.tensor(1.0)
    return y, h


def sets_numbers_for_a_side(x, h):
    if x.min() < -1:
        most = 1
        x = x.clamp(min=-most)
    if x.max() > 1:
        most = 0.5
        x = x.clamp(max=most)
    return x, h


def writes_into_others(x, h):
    y = h * 1
    if h.sum() > 0:
        x = x * 2
    y += 1
    return x, y


CHOICES = [clamps_what_overflows, sets_on_both_sides, sets_numbers_for_a_side, writes_into_others]


@pytest.mark.parametrize("function", CHOICES)
def test_a_condition_by_values_chooses_what_both_sides_set(function) -> None:
    code = function.__code__
    given = torch.randn(2, 5, 8, dtype=torch.float64), torch.randn(2, 8, dtype=torch.float64)
    module = from_torch(Function(function).eval(), given, dynamic_shapes={"args": ({1: SEQ}, None)})
    assert function.__code__ is code
    torch.manual_seed(0)
    names = [tensor.name for tensor in module.inputs.tensors]
    for length, by in ((1, 0.1), (3, 5), (3, -0.1), (9, 1)):
        x, h = torch.randn(2, length, 8, dtype=torch.float64) * by, torch.rand(2, 8, dtype=torch.float64) * by
        found = evaluate_graph(
            module.graph, dict(zip(names, (x.numpy(), h.numpy()), strict=True)), module.constants, {"seq": length}
        )
        for (_, name), want in zip(module.outputs, function(x, h), strict=True):
            np.testing.assert_allclose(found[name], want.numpy(), rtol=1e-6)


def returns_early(x, h):
    if h.sum() > 0:
        return x
    return x * 2


def writes_in_place(x, h):
    y = x * 1
    z = x
    if h.sum() > 0:
        z = y.add_(1)
    return y, z


def sets_a_global(x, h):
    global COUNT
    if h.sum() > 0:
        COUNT = x
    return x, h


def asks_for_the_same_object(x, h):
    y = x
    if h.sum() > 0:
        y = x * 2
    return x * 3 if y is x else y


@pytest.mark.parametrize("function", [returns_early, writes_in_place, sets_a_global, asks_for_the_same_object])
def test_sides_that_do_more_than_set_variables_are_refused(function) -> None:
    with pytest.raises(ImportFailure, match="decides by the values of a tensor"):
        from_torch(Function(function).eval(), (torch.randn(2, 5, 8), torch.randn(2, 8)))
    assert COUNT == 0


def sets_a_number(x, h):
    n = 1
    if h.sum() > 0:
        n = 2
    return x * n


def compares_a_number(x, h):
    n = 1
    if h.sum() > 0:
        n = 2
    return x * 2 if n == 2 else x


def asks_for_none(x, h):
    n = None
    if h.sum() > 0:
        n = x
    try:
        return x if n is None else x * 2
    except Exception:
        return x


def sets_other_shapes(x, h):
    if h.sum() > 0:
        h = h[:1]
    return h * 2


def sets_another_dtype(x, h):
    y = h
    if h.sum() > 0:
        y = h.double()
    return x, y


def counts_in_a_loop(x, h):
    n = 1
    for _ in range(2):
        if h.sum() > 0:
            n = n + 1
    return x


def reads_before_it_sets(x, h):
    n = 1
    if h.sum() > 0:
        n = 2
    if h.dim() == 2:
        y = x * n
        n = 3
    return y


UNKNOWN = [sets_a_number, reads_before_it_sets, compares_a_number, asks_for_none, sets_other_shapes, sets_another_dtype, counts_in_a_loop]


@pytest.mark.parametrize("function", UNKNOWN)
def test_a_variable_that_cannot_be_chosen_and_is_read_is_refused(function) -> None:
    with pytest.raises(ImportFailure, match=r"[hny] depends on a condition by the values of a tensor at .*test_choices"):
        from_torch(Function(function).eval(), (torch.randn(2, 5, 8), torch.randn(2, 8)))


def test_a_condition_of_several_elements_is_refused() -> None:
    def function(x, h):
        if not h > 0:
            x = x * 2
        return x

    with pytest.raises(ImportFailure, match=r"a condition has the shape \(2, 8\) at .*test_choices"):
        from_torch(Function(function).eval(), (torch.randn(2, 5, 8), torch.randn(2, 8)))


class Keeps(nn.Module):
    """Changes its own state in a method that a side calls."""

    def __init__(self, change) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(8))
        self.change = change

    def forward(self, x, h):
        if h.sum() > 0:
            h = self.changed(h)
        return h + self.kept

    def changed(self, h):
        return self.change(self, h)


def relu(module, h):
    return nn.functional.relu(h, inplace=True)


def hardtanh(module, h):
    return nn.functional.hardtanh(h, 0.0, 1.0, True)


def element(module, h):
    h[0] = 1
    return h


def overload(module, h):
    return torch.ops.aten.add_.Tensor(h, 1)


def result(module, h):
    return torch.add(h, 1, out=h)


def data(module, h):
    h.data = h.data * 2
    return h


def attribute(module, h):
    module.kept = module.kept + h[0]
    return h


@pytest.mark.parametrize("change", [relu, hardtanh, element, overload, result, data, attribute])
def test_a_side_that_changes_what_others_read_is_refused(change) -> None:
    module = Keeps(change).eval()
    with pytest.raises(ImportFailure, match=r"a side of a condition .* (in place|sets the attribute 'kept') at .*choices"):
        from_torch(module, (torch.randn(2, 5, 8), torch.randn(2, 8)))
    assert module.kept.sum() == 0
    module.other = 1  # as before


def adds_to_what_a_side_left(x, h):
    x = x * 2
    kept = x
    if x.isinf().any():
        x = x.clamp(-9, 9)
    x += 1
    return x + kept


def adds_to_the_other_name(x, h):
    x = x * 2
    kept = x[0]
    if x.isinf().any():
        x = x.clamp(-9, 9)
    kept.add_(1)
    return x


def adds_to_a_view(x, h):
    y = h
    if x.sum() > 0:
        y = h * 0
    y[0].mul_(2)
    return x, y


@pytest.mark.parametrize("function", [adds_to_what_a_side_left, adds_to_the_other_name, adds_to_a_view])
def test_writes_into_what_was_chosen_between_are_refused(function) -> None:
    """In PyTorch, another name of the tensor that a side leaves alone sees them."""
    with pytest.raises(ImportFailure, match=r"in place changes a tensor that a condition .* at .*test_choices"):
        from_torch(Function(function).eval(), (torch.randn(2, 5, 8), torch.randn(2, 8)))
