"""`epsilon` and `attn_scale`: a positive number is an argument of the code, so another number compiles nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from ait_mlir.graph import plans
from tests.graph.cases import Cases

F = torch.nn.functional
INFERENCE, TRAINING = cudnn.norm_forward_phase.INFERENCE, cudnn.norm_forward_phase.TRAINING
FLOAT = cudnn.data_type.FLOAT
Expected = Callable[[float], torch.Tensor]


def norm(c: Cases, name: str, number: Any, phase: Any = INFERENCE) -> Expected:
    x, gain = c.input(0.01 * torch.randn(6, 40)), c.input(torch.rand(1, 40))
    y = getattr(c.graph, name)(input=x, scale=gain, epsilon=number, norm_forward_phase=phase)[0]

    def expected(eps: float) -> torch.Tensor:
        values, scale = c.pack[x].cpu(), c.pack[gain].cpu()[0]
        return (
            F.layer_norm(values, (40,), scale, None, eps)
            if name == "layernorm"
            else F.rms_norm(values, (40,), scale, eps)
        )

    c.output("y", y, expected(1.0), torch.empty(6, 40), 1e-4)
    return expected


def adaptive(c: Cases, number: Any) -> Expected:
    x, gain = c.input(0.01 * torch.randn(2, 5, 40)), c.input(torch.rand(2, 1, 40))
    y = c.graph.adalayernorm(input=x, scale=gain, epsilon=number, norm_forward_phase=INFERENCE)[0]

    def expected(eps: float) -> torch.Tensor:
        return F.layer_norm(c.pack[x].cpu(), (40,), eps=eps) * c.pack[gain].cpu()

    c.output("y", y, expected(1.0), torch.empty(2, 5, 40), 1e-4)
    return expected


def instance(c: Cases, number: Any) -> Expected:
    x = c.input(0.01 * torch.randn(2, 4, 6, 5))
    y = c.graph.instancenorm(input=x, epsilon=number, norm_forward_phase=INFERENCE)[0]

    def expected(eps: float) -> torch.Tensor:
        return F.instance_norm(c.pack[x].cpu(), eps=eps)

    c.output("y", y, expected(1.0), torch.empty(2, 4, 6, 5), 1e-4)
    return expected


def attention(c: Cases, number: Any, **options: Any) -> Expected:
    q, k, v = (c.input(torch.randn(2, 3, 7, 16)) for _ in range(3))
    o = c.graph.sdpa(q, k, v, attn_scale=number, use_causal_mask=True, **options)[0]

    def expected(scale: float) -> torch.Tensor:
        values = [c.pack[t].cpu() for t in (q, k, v)]
        scores = values[0] @ values[1].mT * scale  # PyTorch's attention gives NaN for scales that are not positive
        hidden = torch.ones(7, 7, dtype=torch.bool).triu(1)
        return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ values[2]

    c.output("y", o, expected(1.0), torch.empty(2, 3, 7, 16), 1e-4)
    return expected


NODES: dict[str, Callable[[Cases, Any], Expected]] = {
    "layernorm": lambda c, n: norm(c, "layernorm", n),
    "rmsnorm": lambda c, n: norm(c, "rmsnorm", n),
    "adalayernorm": adaptive,
    "instancenorm": instance,
    "sdpa": attention,
    "sdpa with statistics": lambda c, n: attention(c, n, generate_stats=True),
}
NUMBERS = (1e-3, 0.25, 2.5e-5)


def new(device: str) -> Cases:
    torch.manual_seed(0)
    return Cases(device, io_data_type=FLOAT, intermediate_data_type=FLOAT)


def by_value(c: Cases) -> Any:
    return c.graph.tensor([1, 1, 1, 1], is_pass_by_value=True, data_type=FLOAT, name="number")


def run(c: Cases, expected: Expected, number: float, key: Any = None) -> None:
    """Execute with a number, and compare."""
    made, _, tolerance = c.expected["y"]
    made.fill_(float("nan"))
    space = torch.empty(c.graph.get_workspace_size() + 4096, dtype=torch.uint8, device=c.device)
    c.graph.execute({**c.pack, **({} if key is None else {key: number})}, space, handle=c.handle)
    if c.device != "cpu":
        torch.cuda.synchronize()
    torch.testing.assert_close(made.cpu(), expected(number), atol=tolerance, rtol=tolerance)


def refuse_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a graph of a known structure is compiled")

    monkeypatch.setattr(plans, "emit", refuse)
    monkeypatch.setattr(plans, "run_to_phase", refuse)


@pytest.mark.parametrize("name", NODES)
def test_another_number_by_value_compiles_nothing(device: str, name: str, monkeypatch: pytest.MonkeyPatch):
    c = new(device)
    scalar = by_value(c)
    expected = NODES[name](c, scalar)
    c.graph.build([cudnn.heur_mode.A])
    refuse_to_compile(monkeypatch)
    for number in NUMBERS:
        run(c, expected, number, scalar)
    assert "bits(n0)" in c.graph.ir()


@pytest.mark.parametrize("name", NODES)
def test_another_constant_compiles_nothing(device: str, name: str, monkeypatch: pytest.MonkeyPatch):
    """A number of a `tensor_scalar`, or a Python number, is no part of the structure of a graph."""
    made = [new(device) for _ in NUMBERS]
    for c, number in zip(made, NUMBERS, strict=True):
        expected = NODES[name](c, number)
        c.graph.build([cudnn.heur_mode.A])
        run(c, expected, number)
        refuse_to_compile(monkeypatch)
    assert len({c.graph.runner.compiled.library for c in made}) == 1


CONSTANT: dict[str, tuple[Callable[[Cases, Any], Expected], tuple[float, ...]]] = {
    "an epsilon of 0": (NODES["layernorm"], (0.0, 1e-3)),
    "a scale of 0, and below": (NODES["sdpa"], (0.0, -0.5, 0.5)),
    "training": (lambda c, n: norm(c, "rmsnorm", n, TRAINING), (1e-3, 0.25)),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_a_number_that_is_no_argument_is_compiled(name: str):
    make, numbers = CONSTANT[name]
    c = new("cpu")
    scalar = by_value(c)
    expected = make(c, scalar)
    c.graph.build([cudnn.heur_mode.A])
    for number in numbers:
        run(c, expected, number, scalar)


def test_a_number_that_is_computed_with_is_a_constant():
    """The scalar is an operand of `add`, too, so it is a value of the graph."""
    c = new("cpu")
    scalar = by_value(c)
    x, gain = c.input(torch.randn(6, 40)), c.input(torch.rand(1, 40))
    y = c.graph.rmsnorm(input=x, scale=gain, epsilon=scalar, norm_forward_phase=INFERENCE)[0]
    made = torch.empty(6, 40)
    c.graph.add(y, c.graph.reshape(scalar).set_dim([1, 1])).set_output(True).set_name("y").set_dim([6, 40])
    c.graph.build([cudnn.heur_mode.A])
    assert "bits(" not in c.graph.ir()
    c.graph.execute({**c.pack, "y": made, scalar: 0.5}, torch.empty(4096, dtype=torch.uint8))
    torch.testing.assert_close(made, F.rms_norm(c.pack[x], (40,), c.pack[gain][0], 0.5) + 0.5)


def test_numbers_of_double_are_constants():
    c = Cases("cpu", io_data_type=cudnn.data_type.DOUBLE)
    x, gain = c.input(0.01 * torch.randn(6, 40).double()), c.input(torch.rand(1, 40).double())
    y = c.graph.rmsnorm(input=x, scale=gain, epsilon=1e-5, norm_forward_phase=INFERENCE)[0]
    expected = F.rms_norm(c.pack[x], (40,), c.pack[gain][0], 1e-5)
    c.output("y", y, expected, torch.empty(6, 40).double(), 1e-12)
    c.run().check("y")
    assert "eps 1e-05" in c.graph.ir()


def test_a_serialized_graph_takes_other_numbers():
    c = new("cpu")
    scalar = by_value(c).set_uid(9)
    expected = norm(c, "rmsnorm", scalar)
    c.graph.build([cudnn.heur_mode.A])
    run(c, expected, 1e-2, scalar)
    other = cudnn.pygraph()
    other.deserialize(c.graph.serialize())
    pack = {t.get_uid(): value for t, value in c.pack.items()}
    for number in NUMBERS:
        other.execute({**pack, 9: number}, torch.empty(4096, dtype=torch.uint8))
        torch.testing.assert_close(c.expected["y"][0], expected(number), atol=1e-4, rtol=1e-4)
    with pytest.raises(cudnn.InputError, match=r"is 0.0, but the serialized graph is compiled for 0\.01"):
        other.execute({**pack, 9: 0.0}, torch.empty(4096, dtype=torch.uint8))


def test_many_numbers_are_not_all_remembered():
    c = new("cpu")
    scalar = by_value(c)
    expected = norm(c, "rmsnorm", scalar)
    c.graph.build([cudnn.heur_mode.A])
    for i in range(300):
        c.graph.execute({**c.pack, scalar: 1e-3 * (i + 1)}, torch.empty(4096, dtype=torch.uint8))
    assert len(c.graph.plans[0].compiled) <= 256
    torch.testing.assert_close(c.expected["y"][0], expected(0.3), atol=1e-4, rtol=1e-4)
