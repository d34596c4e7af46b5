"""What `compile` returns is a `torch.nn.Module` for those who hold it as one."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import ait_mlir
from ait_mlir.errors import InputError
from ait_mlir.importers.errors import ImportFailure
from ait_mlir.importers.torch.compiled import graph_device, tensors_of


class Model(nn.Module):
    """Has names that the compiled module uses itself, a table that becomes code, and a state."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("places", torch.arange(4))
        self.register_buffer("seen", torch.zeros(2, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x)
        return self.norm(self.model(x)) + self.places + self.seen


X = torch.randn(2, 4)


@pytest.fixture(scope="module")
def modules() -> tuple[Model, ait_mlir.importers.torch.CompiledModule]:
    model = Model().eval()
    return model, ait_mlir.compile(copy.deepcopy(model), (X,))


def test_it_is_a_submodule_with_the_names_of_the_module(modules):
    model, compiled = modules
    outer = nn.Sequential(nn.Identity(), model)
    outer[1] = compiled
    assert list(outer.state_dict()) == [f"1.{name}" for name in model.state_dict()]
    assert [name for name, _ in compiled.named_parameters()] == [name for name, _ in model.named_parameters()]
    torch.testing.assert_close(outer(X), model(X))
    torch.testing.assert_close(outer.state_dict()["1.seen"], model.seen)


def test_a_loaded_state_dict_is_that_of_the_compiled_model(modules):
    model, compiled = modules
    other = Model().eval()
    for value in (*other.parameters(), other.norm.running_mean, other.seen):
        nn.init.uniform_(value)
    nn.ModuleDict({"inner": compiled}).load_state_dict({f"inner.{k}": v for k, v in other.state_dict().items()})
    torch.testing.assert_close(compiled(X), other(X))
    changed = other.state_dict() | {"places": torch.arange(4) * 2}
    with pytest.raises(
        InputError, match="numbers of 'places' are a part of the compiled code; compile the module again"
    ):
        compiled.load_state_dict(changed)
    compiled.load_state_dict(model.state_dict())
    torch.testing.assert_close(compiled(X), model(X))


def test_it_stays_where_it_was_compiled(modules):
    _, compiled = modules
    assert compiled.to("cpu").float().eval() is compiled
    with pytest.raises(
        InputError, match=r"compiled for 'model\.weight' of torch\.float32 on cpu, and cannot be converted"
    ):
        nn.Sequential(compiled).half()
    assert compiled.model.target == "cpu"


def test_it_does_not_train(modules):
    _, compiled = modules
    outer = nn.Sequential(compiled).train()
    with pytest.raises(InputError, match="does not train"):
        outer(X)
    outer.eval()(X)


def test_it_is_neither_copied_nor_pickled(modules):
    _, compiled = modules
    with pytest.raises(InputError, match="cannot be copied"):
        copy.deepcopy(nn.Sequential(compiled))
    with pytest.raises(InputError, match="cannot be copied"):
        copy.copy(compiled)
    with pytest.raises(InputError, match="cannot be pickled"):
        pickle.dumps(compiled)


def test_it_is_not_compiled_again(modules):
    _, compiled = modules
    for model, named in ((compiled, "it is"), (nn.Sequential(nn.Identity(), compiled), "its module '1' is")):
        with pytest.raises(ImportFailure, match=f"{named} a compiled model; compile the original module"):
            ait_mlir.compile(model.eval(), (X,))


def test_an_exported_program_has_its_names(modules):
    program = torch.export.export(nn.Sequential(nn.Linear(4, 2)).eval(), (X,))
    compiled = ait_mlir.compile(program)
    assert list(compiled.state_dict()) == ["0.weight", "0.bias"]
    torch.testing.assert_close(compiled(X), program.module()(X))


def test_it_is_compiled_for_the_device_of_the_weights_and_inputs():
    linear = nn.Linear(2, 2)
    with FakeTensorMode():
        on_card = torch.empty(2, device="cuda")
        weights = nn.ParameterList([nn.Parameter(torch.empty(2)), nn.Parameter(on_card)])
    assert graph_device(tensors_of(linear, (X,), {"n": 3})).type == "cpu"
    assert graph_device(tensors_of(weights, (X,), None)).type == "cuda"
    assert graph_device(tensors_of(nn.ReLU(), (), {"x": [X, on_card]})).type == "cuda"
    assert graph_device(tensors_of(torch.export.export(linear, (torch.ones(1, 2),)), (), None)).type == "cpu"
    assert graph_device(tensors_of(nn.Linear(2, 2, device="meta"), (), None)).type == "cpu"
