"""Recurrences in one launch on the card: given plans, the sizes of layers, many rows; layers beside PyTorch and float64."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import ait_mlir
from tests.gpu.libraries import hopper_library
from tests.kernels.harness import Library, random_inputs
from tests.kernels.recurrence import plan, recurrence, recurrence_cases
from tests.specs.recurrence import STATES

pytestmark = pytest.mark.gpu

LARGE = ({"b": 16, "s": 6},)
CASES = {
    **recurrence_cases(),
    "rnn-256-f16": recurrence("f16", "rnn", 256, plan(1, 8, 8, 1), envs=({"b": 32, "s": 8},), constants=(0,)),
    "rnn-512-bf16": recurrence("bf16", "rnn", 512, plan(4, 8, 8, 1), envs=LARGE),
    "gru-128-bf16": recurrence("bf16", "gru", 128, plan(1, 8, 8, 1), envs=({"b": 200, "s": 5},)),
    "gru-512-f16": recurrence("f16", "gru", 512, plan(16, 8, 2, 4), envs=LARGE),
    "gru-128-f32": recurrence("f32", "gru", 128, plan(4, 8, 2, 4), envs=LARGE),
    "lstm-128-f32": recurrence("f32", "lstm", 128, plan(8, 8, 2, 4), envs=({"b": 16, "s": 40},), constants=(0,)),
    "lstm-256-f16": recurrence("f16", "lstm", 256, plan(8, 16, 4, 2), envs=LARGE),
    "lstm-512-f16": recurrence("f16", "lstm", 512, plan(16, 8, 4, 2), envs=({"b": 16, "s": 60},), constants=(0,)),
    "lstm-512-shared-f16": recurrence("f16", "lstm", 512, plan(8, 8, 8, 1), envs=LARGE),
}


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return hopper_library(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_recurrence(library: Library, name: str) -> None:
    STATES.check(library, CASES[name], name.rpartition("-")[2])


def test_the_same_in_every_run(library: Library) -> None:
    case = CASES["lstm-512-f16"]
    inputs = random_inputs(case, case.envs[0])
    runs = [library.run(case, case.envs[0], inputs) for _ in range(5)]
    assert all(np.array_equal(a, b) for run in runs[1:] for a, b in zip(runs[0], run, strict=True))


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], torch.dtype]] = {
    "rnn": (lambda: nn.RNN(256, 256, batch_first=True), (32, 64, 256), torch.float16),
    "relu, both ways": (lambda: nn.RNN(64, 128, nonlinearity="relu", bidirectional=True), (70, 1, 64), torch.bfloat16),
    "gru": (lambda: nn.GRU(256, 128, batch_first=True), (9, 100, 256), torch.bfloat16),
    "lstm, two layers": (lambda: nn.LSTM(512, 512, 2, batch_first=True), (16, 70, 512), torch.float16),
    "f32": (lambda: nn.GRU(128, 256, batch_first=True), (9, 70, 128), torch.float32),
    "odd": (lambda: nn.LSTM(30, 90, batch_first=True, bidirectional=True), (5, 33, 30), torch.float16),
}


class First(nn.Module):
    """The outputs of a layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str) -> None:
    """One launch a direction and layer; plain runs and recorded ones agree."""
    make, shape, dtype = LAYERS[name]
    torch.manual_seed(0)
    module, x = First(make()).eval().to(dtype), torch.randn(*shape).to(dtype)
    with torch.inference_mode():
        exact = copy.deepcopy(module).double()(x.double())
        module, x = module.cuda(), x.cuda()
        theirs = (module(x).cpu().double() - exact).abs()
        compiled = ait_mlir.compile(module, (x,), target="cuda", measure=False)
        runs = [compiled(x).cpu() for _ in range(4)]
    assert all(torch.equal(runs[0], run) for run in runs[1:])
    ours = (runs[0].double() - exact).abs()
    ulp = torch.finfo(dtype).eps * float(exact.abs().max())
    assert ours.max() <= 2 * theirs.max() + ulp and ours.square().mean() <= (1.5**2) * theirs.square().mean() + ulp**2


def test_two_streams_at_a_time() -> None:
    """Runs that overlap share nothing."""
    torch.manual_seed(0)
    module = First(nn.LSTM(256, 256, batch_first=True)).eval().half().cuda()
    x = torch.randn(16, 60, 256, dtype=torch.float16, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(2)]
    with torch.inference_mode():
        models = [ait_mlir.compile(module, (x,), target="cuda", measure=False) for _ in streams]
        want = models[0](x)
        torch.cuda.synchronize()
        found: list[torch.Tensor] = []
        for _ in range(10):
            for stream, model in zip(streams, models, strict=True):
                with torch.cuda.stream(stream):
                    found.append(model(x))
        torch.cuda.synchronize()
    assert all(torch.equal(want, y) for y in found)
