"""One model on several cards, scratch memory of PyTorch's, and memory over many loads. Needs cards."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.driver import compile_module, read_module
from ait_mlir.errors import InputError
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import AITemplateAllocatorKind, Model

pytestmark = pytest.mark.gpu
two_cards = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two cards in this machine")

TEXT = """
ait.graph @linear(%x: !ait.tensor<b x 64 x f16>) dims {b = 1 to 32} {
  %w = ait.param "w" : !ait.tensor<64 x 64 x f16>
  %y = ait.gemm rcr %x, %w : !ait.tensor<b x 64 x f16>
  %z = ait.relu %y : !ait.tensor<b x 64 x f16>
  ait.output "z" %z : !ait.tensor<b x 64 x f16>
}
"""
WEIGHT = (np.random.default_rng(0).standard_normal((64, 64)) / 8).astype(np.float16)


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """relu(x w^T), with w in the file."""
    folder = tmp_path_factory.mktemp("linear")
    (folder / "linear.mlir").write_text(TEXT)
    module = read_module(folder / "linear.mlir")[0]
    return compile_module(module, CompileOptions("cuda"), output=folder / "linear.ait", constants={"w": WEIGHT})


@pytest.fixture
def model(linear: Path) -> Iterator[Model]:
    with Model(linear, 2) as model:
        yield model


def case(device: int, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(8, 64, generator=random).half().to(f"cuda:{device}")


def check(x: torch.Tensor, z: torch.Tensor, scale: float = 1.0) -> None:
    assert z.device == x.device
    weight = torch.tensor(WEIGHT).double()
    expected = torch.relu(x.cpu().double() @ weight.T) * scale
    torch.testing.assert_close(z.cpu().double(), expected, rtol=5e-3, atol=5e-3)


@two_cards
@pytest.mark.parametrize("graph_mode", [False, True])
def test_a_run_is_on_the_card_of_its_tensors(model: Model, graph_mode: bool) -> None:
    for seed in range(4):
        for device in (1, 0):
            x = case(device, seed % 2)
            check(x, model.run_with_tensors([x], graph_mode=graph_mode)["z"])
    assert sorted(model.devices()) == [0, 1]
    assert torch.cuda.current_device() == 0


@two_cards
def test_both_cards_at_the_same_time(model: Model) -> None:
    inputs = [case(i % 2, i) for i in range(16)]
    outputs = [torch.empty_like(x) for x in inputs]
    for x, z in zip(inputs, outputs, strict=True):
        model.run_with_tensors([x], [z], sync=False)
    for device in (0, 1):
        torch.cuda.synchronize(device)
    for x, z in zip(inputs, outputs, strict=True):
        check(x, z)


@two_cards
def test_tensors_on_two_cards_are_refused(model: Model) -> None:
    with pytest.raises(InputError, match="output 'z' is on cuda:0, expected cuda:1"):
        model.run([case(1)], [torch.empty_like(case(0))])
    with (
        Model(model._path, device=0) as first,
        pytest.raises(InputError, match="input 'x' is on cuda:1, expected cuda:0"),
    ):
        first.run_with_tensors([case(1)])


@two_cards
def test_weights_are_set_on_both_cards(model: Model) -> None:
    for device in (0, 1):
        check(case(device), model.run_with_tensors([case(device)])["z"])
    model.set_constant("w", torch.tensor(2 * WEIGHT).to("cuda:1"))
    for device in (0, 1):
        check(case(device), model.run_with_tensors([case(device)])["z"], 2)
    model.set_double_buffer_constant("w", 4 * WEIGHT)
    model.swap_constants()
    for device in (0, 1):
        check(case(device), model.run_with_tensors([case(device)])["z"], 4)


@pytest.mark.parametrize("graph_mode", [False, True])
def test_scratch_memory_of_pytorch(linear: Path, graph_mode: bool) -> None:
    with Model(linear, allocator_kind=AITemplateAllocatorKind.FRAMEWORK) as model:
        for seed in range(4):
            x = case(0, seed)
            check(x, model.run_with_tensors([x], graph_mode=graph_mode)["z"])


def test_two_models_of_a_file_share_weights(linear: Path) -> None:
    with Model(linear) as first, Model(linear) as second:
        assert second.stats()["bytes"] == 0 < first.stats()["bytes"]
        second.set_constant("w", 2 * WEIGHT)
        check(case(0), first.run_with_tensors([case(0)])["z"])
        check(case(0), second.run_with_tensors([case(0)])["z"], 2)


def test_memory_is_flat_over_200_loads(linear: Path) -> None:
    """A leak shows in each of the parts; what other processes take meanwhile, in one or two."""

    def load() -> None:
        with Model(linear, 2) as model:
            for _ in range(3):
                check(x, model.run_with_tensors([x], graph_mode=True)["z"])

    x = case(0)
    free: list[int] = []
    for i in range(200):
        load()
        if i % 20 == 19:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            free.append(torch.cuda.mem_get_info()[0])
    taken = [before - after for before, after in itertools.pairwise(free)]
    assert statistics.median(taken) <= 1 << 20, taken
