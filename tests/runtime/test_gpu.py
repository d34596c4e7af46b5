"""The CUDA runtime: streams, graphs, pools, memory. Needs a card."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.errors import InputError, OutOfMemoryError, RunError
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.lowering.toolchain import default_arch
from ait_mlir.runtime import Model, torch_to_ait_data
from tests.runtime.conftest import B, W, tiny_inputs, tiny_reference

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def cuda_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).with_name("tiny_model.cu").read_text()
    return build_library({"model.cu": source}, Target("cuda", default_arch("cuda")), tmp_path_factory.mktemp("cuda"))


@pytest.fixture
def model(cuda_library: Path) -> Iterator[Model]:
    with Model.from_library(cuda_library, "cuda", constants={"w": W, "b": B}) as model:
        yield model


class Case:
    """Inputs and outputs on the device for a batch and a seq, and what comes out."""

    def __init__(self, batch: int, seq: int, seed: int = 0) -> None:
        x, m = tiny_inputs(batch, seq, seed)
        self.inputs = [torch.tensor(x).cuda(), torch.tensor(m).cuda()]
        self.outputs = [torch.full((batch, 2 * seq), torch.nan).cuda(), torch.full((batch,), torch.nan).cuda()]
        self.y = tiny_reference(x, m)[0]

    def check(self) -> None:
        np.testing.assert_allclose(self.outputs[0].cpu().numpy(), self.y, rtol=1e-6)


def test_torch_numpy_constants_and_ait_data(model: Model) -> None:
    case = Case(4, 5)
    result = model.run_with_tensors(case.inputs, case.outputs)
    case.check()
    assert result["y"] is case.outputs[0]
    made = model.run_with_tensors(case.inputs)
    assert made["y"].device.type == "cuda"
    torch.testing.assert_close(made["y"], case.outputs[0], rtol=0, atol=0)
    case.outputs[0].fill_(torch.nan)
    model.run([torch_to_ait_data(t) for t in case.inputs], [torch_to_ait_data(t) for t in case.outputs])
    case.check()
    data = model.numpy_to_ait_data(case.y)
    np.testing.assert_array_equal(model.ait_data_to_numpy(data), case.y)
    model.free_memory(data.data_ptr)


def test_tensors_elsewhere_are_refused(model: Model) -> None:
    case = Case(2, 3)
    with pytest.raises(InputError, match="input 'x' is on cpu, expected cuda:0: move it there"):
        model.run([case.inputs[0].cpu(), case.inputs[1]], case.outputs)
    model.run(case.inputs, case.outputs)
    case.check()


def strided(value: torch.Tensor, how: str) -> torch.Tensor:
    """The same values at other strides, or at an odd address."""
    if how == "transposed":
        return value.t().contiguous().t()
    if how == "padded":
        room = value.new_full((value.shape[0] + 1, value.shape[1] + 3), torch.nan)
        room[:-1, 2:-1] = value
        return room[:-1, 2:-1]
    return torch.cat([value.new_zeros(1), value.reshape(-1)])[1:].view(value.shape)


@pytest.mark.parametrize("graph_mode", [False, True])
@pytest.mark.parametrize("how", ["transposed", "padded", "misaligned"])
def test_tensors_of_any_strides_are_copied(model: Model, how: str, graph_mode: bool) -> None:
    case = Case(4, 5)
    inputs = [strided(value, how) for value in case.inputs]
    outputs = [strided(case.outputs[0], how), torch.full((8,), torch.nan).cuda()[::2]]
    for runs in range(1, 5):
        outputs[0].fill_(torch.nan)
        model.run(inputs, outputs, graph_mode=graph_mode)
        np.testing.assert_allclose(outputs[0].cpu().numpy(), case.y, rtol=1e-6)
        torch.testing.assert_close(outputs[1], outputs[0].sum(1))
        assert outputs[1]._base is not None and outputs[1]._base[1::2].isnan().all()
        assert model.stats()["copies"] == 4 * runs
    if graph_mode:
        assert model.stats()["graph_hits"] == 2


def test_an_expanded_input_is_copied(model: Model) -> None:
    x, m = torch.rand(1, 6).cuda().expand(5, 6), torch.rand(5, 1).cuda().expand(5, 3)
    y = model.run_with_tensors([x, m])["y"]
    torch.testing.assert_close(y, x * float(W[0]) + float(B[0]) * m.repeat_interleave(2, 1))


def test_a_workspace_of_the_callers(model: Model) -> None:
    case = Case(4, 5)
    workspace = torch.zeros(1 << 14, dtype=torch.uint8, device="cuda")
    before = model.stats()["bytes"]
    model.run(case.inputs, case.outputs, workspace=workspace)
    case.check()
    assert model.stats()["bytes"] == before and workspace.any()
    with pytest.raises(InputError, match="the workspace is on DLPack device"):
        model.run(case.inputs, case.outputs, workspace=workspace.cpu())


def test_the_oldest_graph_is_updated_for_new_addresses(model: Model) -> None:
    cases = [Case(4, 5, seed) for seed in range(24)]
    for _ in range(3):
        for case in cases:
            case.outputs[0].fill_(torch.nan)
            model.run(case.inputs, case.outputs, graph_mode=True)
            case.check()
    stats = model.stats()
    assert (stats["graph_captures"], stats["graph_evictions"]) == (16, 0)
    assert stats["graph_updates"] > 0


def test_graphs_are_recorded_on_the_second_use_and_replayed(model: Model) -> None:
    case = Case(4, 5)
    for i, expected in enumerate([(0, 0, 1), (0, 1, 1), (1, 1, 1), (2, 1, 1)]):
        case.outputs[0].fill_(torch.nan)
        model.run(case.inputs, case.outputs, graph_mode=True)
        case.check()
        stats = model.graph_stats()
        assert (stats["hits"], stats["captures"], stats["warmups"]) == expected, i


def test_replays_follow_shapes_pointers_values_and_constants(model: Model) -> None:
    cases = [Case(4, 5), Case(4, 5, seed=1), Case(8, 5), Case(64, 16), Case(1, 1)]
    for _ in range(4):
        for case in cases:
            case.outputs[0].fill_(torch.nan)
            model.run(case.inputs, case.outputs, graph_mode=True)
            case.check()
    assert model.graph_stats()["hits"] >= len(cases)
    cases[0].inputs[0].mul_(2)
    model.set_constant("b", np.float32([0]))
    model.run(cases[0].inputs, cases[0].outputs, graph_mode=True)
    torch.testing.assert_close(cases[0].outputs[0], cases[0].inputs[0] * float(W[0]))


def test_few_graphs_are_kept(model: Model) -> None:
    cases = [Case(batch, 2) for batch in range(10, 30)]
    for _ in range(3):
        for case in cases:
            model.run(case.inputs, case.outputs, graph_mode=True)
            case.check()
    stats = model.graph_stats()
    assert stats["evictions"] == stats["captures"] - 16 > 0


def test_what_cannot_be_recorded_runs_plainly(model: Model) -> None:
    case = Case(5, 2)
    for _ in range(3):
        case.outputs[0].fill_(torch.nan)
        model.run(case.inputs, case.outputs, graph_mode=True)
        case.check()
    stats = model.graph_stats()
    assert (stats["warmups"], stats["fallbacks"], stats["captures"]) == (1, 2, 0)


@pytest.mark.parametrize("graph_mode", [False, True])
def test_a_failed_run_leaves_the_model_usable(model: Model, graph_mode: bool) -> None:
    bad, good = Case(3, 2), Case(4, 2)
    for _ in range(3):
        with pytest.raises(RunError, match="a batch of 3 is refused"):
            model.run(bad.inputs, bad.outputs, graph_mode=graph_mode)
        model.run(good.inputs, good.outputs, graph_mode=graph_mode)
        good.check()


@pytest.mark.parametrize("graph_mode", [False, True])
def test_runs_on_several_streams_share_one_arena_in_order(model: Model, graph_mode: bool) -> None:
    streams = [torch.cuda.Stream() for _ in range(3)]
    cases = [Case(64, 16, seed) for seed in range(3)]
    torch.cuda.synchronize()
    for _ in range(50):
        for stream, case in zip(streams, cases, strict=True):
            model.run(case.inputs, case.outputs, stream.cuda_stream, sync=False, graph_mode=graph_mode)
    torch.cuda.synchronize()
    for case in cases:
        case.check()


def test_run_with_tensors_uses_the_current_stream(model: Model) -> None:
    case = Case(64, 16)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        case.inputs[0].add_(1)
        model.run_with_tensors(case.inputs, case.outputs, sync=False)
        result = case.outputs[0] * 2
    stream.synchronize()
    np.testing.assert_allclose(result.cpu().numpy(), 2 * (case.y + W[0]), rtol=1e-5)


def test_a_run_inside_a_callers_graph(model: Model) -> None:
    case = Case(4, 5)
    model.run_with_tensors(case.inputs, case.outputs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model.run_with_tensors(case.inputs, case.outputs, sync=False, graph_mode=True)
    case.outputs[0].fill_(torch.nan)
    graph.replay()
    torch.cuda.synchronize()
    case.check()
    model.run_with_tensors(case.inputs, case.outputs)
    case.check()


def test_threads_on_a_pool(cuda_library: Path) -> None:
    with Model.from_library(cuda_library, "cuda", constants={"w": W, "b": B}, num_runtimes=3) as model:
        cases = [Case(batch, 7, batch) for batch in (1, 8, 33, 64, 17, 2)]
        errors: list[BaseException] = []

        def work(case: Case) -> None:
            try:
                stream = torch.cuda.Stream()
                for i in range(60):
                    model.run(case.inputs, case.outputs, stream.cuda_stream, graph_mode=i % 2 == 0)
                    case.check()
            except BaseException as error:
                errors.append(error)

        torch.cuda.synchronize()
        threads = [threading.Thread(target=work, args=(case,)) for case in cases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []


def test_out_of_memory_says_how_much(model: Model) -> None:
    with pytest.raises(OutOfMemoryError, match=r"needs \d+ bytes on cuda:0, \d+ of \d+ bytes are free"):
        model.allocate_memory(1 << 45)
    large, case = Case(7, 4), Case(4, 4)
    for graph_mode in (False, True, True):
        with pytest.raises(OutOfMemoryError, match=r"the arena of a run needs \d+ bytes on cuda:0"):
            model.run(large.inputs, large.outputs, graph_mode=graph_mode)
        model.run(case.inputs, case.outputs, graph_mode=graph_mode)
        case.check()


def test_empty_and_missing(model: Model, cuda_library: Path) -> None:
    assert model.run_with_tensors([torch.empty(0, 4).cuda(), torch.empty(0, 2).cuda()])["s"].shape == (0,)
    with pytest.raises(RunError, match=r"there is no cuda:99: this machine has \d+ CUDA device"):
        Model.from_library(cuda_library, "cuda", device=99)
