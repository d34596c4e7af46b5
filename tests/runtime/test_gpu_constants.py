"""Constants, times and memory on a card."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.driver import compile_module
from ait_mlir.errors import InputError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import decode
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import AITemplateMemcpyKind, Model
from tests.runtime.test_constants import LINEAR, X, expected, swap_under_load, weights
from tests.runtime.test_gpu import Case, cuda_library

__all__ = ["cuda_library"]

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def linear_artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module = parse_source(context(), decode(LINEAR.encode(), "linear.mlir"))
    return compile_module(module, CompileOptions("cuda"), output=tmp_path_factory.mktemp("linear") / "linear.ait")


@pytest.fixture
def linear(linear_artifact: Path) -> Iterator[Model]:
    with Model(linear_artifact, num_runtimes=2) as model:
        model.set_many_constants(weights(0))
        yield model


def check(found: torch.Tensor, want: np.ndarray) -> None:
    torch.testing.assert_close(found.cpu(), torch.from_numpy(want), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("num_runtimes", [1, 2, 4])
def test_answers_under_swaps_are_of_the_old_or_the_new_weights(
    cuda_library: Path, num_runtimes: int, graph: bool
) -> None:
    with Model.from_library(cuda_library, "cuda", num_runtimes=num_runtimes) as model:
        assert swap_under_load(model, 10_000, 16, 200, "cuda", graph) == {0, 1}


def test_runs_that_go_on_keep_the_weights_they_began_with(cuda_library: Path) -> None:
    sets = [{"w": np.float32([w]), "b": np.float32([b])} for w, b in ((2.5, -1), (7, 3))]
    with Model.from_library(cuda_library, "cuda", constants=sets[0], num_runtimes=2) as model:
        case = Case(8, 16)
        expected = [model.run_with_tensors(case.inputs)["y"].clone()]
        streams = [torch.cuda.Stream() for _ in range(2)]
        torch.cuda.synchronize()
        outputs = [(torch.empty_like(expected[0]), torch.empty(8, device="cuda")) for _ in range(200)]
        for i, (y, s) in enumerate(outputs):
            model.run(case.inputs, [y, s], streams[i % 2].cuda_stream, sync=False)
        for values in (sets[1], sets[0], sets[1]):  # the second one overwrites what the runs began with
            model.set_many_double_buffer_constants(values)
            model.swap_constants()
        torch.cuda.synchronize()
        assert all(torch.equal(y, expected[0]) for y, _ in outputs)
        assert not torch.equal(model.run_with_tensors(case.inputs)["y"], expected[0])


@pytest.mark.parametrize("graph", [False, True])
def test_a_bound_constant_is_read_where_it_is(linear: Model, graph: bool) -> None:
    x, y = torch.from_numpy(X).cuda(), torch.empty(4, 8, device="cuda")
    bias = torch.zeros(8, device="cuda")
    linear.set_constant("b", bias, copy=False)
    for seed in range(4):
        bias.copy_(torch.from_numpy(weights(seed)["b"]))
        linear.run_with_tensors([x], [y], graph_mode=graph)
        check(y, X @ weights(0)["w"].T + weights(seed)["b"])
    with pytest.raises(InputError, match="constant 'b' is on cpu, expected cuda:0 where no copy is made"):
        linear.set_constant("b", bias.cpu(), copy=False)
    linear.set_double_buffer_constant("w", torch.from_numpy(weights(1)["w"]).cuda())
    linear.swap_constants()
    bias.copy_(torch.from_numpy(weights(1)["b"]))
    linear.run_with_tensors([x], [y], graph_mode=graph)
    check(y, expected(1))


def test_constants_are_copied_after_what_is_on_the_stream(linear: Model) -> None:
    x = torch.from_numpy(X).cuda()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        bias = torch.from_numpy(weights(1)["b"]).cuda(non_blocking=True) * 1
    linear.set_double_buffer_constant("b", bias, stream.cuda_stream)
    linear.swap_constants()
    check(linear.run_with_tensors([x])["y"], X @ weights(0)["w"].T + weights(1)["b"])


def test_a_graph_of_the_caller_keeps_the_weights_of_its_recording(linear: Model) -> None:
    x, y = torch.from_numpy(X).cuda(), torch.empty(4, 8, device="cuda")
    linear.run_with_tensors([x], [y])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        linear.run_with_tensors([x], [y], sync=False)
    for seed in (1, 2, 3):
        linear.set_many_double_buffer_constants(weights(seed))
        linear.swap_constants()
        check(linear.run_with_tensors([x])["y"], expected(seed))
    graph.replay()
    torch.cuda.synchronize()
    check(y, expected(0))


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(("num_threads", "own_streams"), [(1, False), (4, False), (4, True)])
def test_benchmark_in_threads(linear: Model, graph: bool, num_threads: int, own_streams: bool) -> None:
    x, y = torch.from_numpy(X).cuda(), torch.empty(4, 8, device="cuda")
    mean, deviation, result = linear.benchmark_with_tensors(
        [x],
        [y],
        graph_mode=graph,
        count=50,
        repeat=3,
        num_threads=num_threads,
        use_unique_stream_per_thread=own_streams,
    )
    assert 0 < mean < 1e3 and deviation >= 0
    check(result["y"], expected(0))


def test_a_profile_has_each_launch(linear: Model, tmp_path: Path) -> None:
    x = torch.from_numpy(X).cuda()
    profile = linear.profile_with_tensors([x], num_iters=20, filename=tmp_path / "r.json", trace=tmp_path / "t.json")
    report = profile.report()
    assert [row["index"] for row in report["launches"]] == list(range(len(report["launches"])))
    assert all(row["ms_min"] > 0 for row in report["launches"])
    assert {"r.json", "t.json"} == {path.name for path in tmp_path.iterdir()}
    check(linear.run_with_tensors([x])["y"], expected(0))


def test_copies_of_every_kind(linear: Model) -> None:
    source, target = np.arange(1 << 16, dtype=np.float32), np.zeros(1 << 16, np.float32)
    before = linear.allocated_bytes()
    first, second = (linear.allocate_gpu_memory(source.nbytes) for _ in range(2))
    assert linear.allocated_bytes() == before + 2 * source.nbytes
    stream = torch.cuda.Stream().cuda_stream
    linear.memcpy(first, source.ctypes.data, source.nbytes, AITemplateMemcpyKind.HostToDevice, stream, sync=False)
    linear.memcpy(second, first, source.nbytes, AITemplateMemcpyKind.DeviceToDevice, stream, sync=False)
    linear.memcpy(target.ctypes.data, second, source.nbytes, AITemplateMemcpyKind.DeviceToHost, stream)
    np.testing.assert_array_equal(target, source)
    for address in (first, second):
        linear.free_gpu_memory(address)
    assert linear.allocated_bytes() == before
