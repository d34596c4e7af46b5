"""Helpers of benchmarks: what they run and how often; no test reads their times."""

from __future__ import annotations

import itertools

import torch

from ait_mlir.testing import test_utils
from ait_mlir.testing.benchmark_ait import make_input_output_pools, run_benchmark, run_module_with_pools
from ait_mlir.testing.profile import profile_callable


class Model:
    """Records the arguments of its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def run_with_tensors(self, inputs, outputs, **options) -> None:
        self.calls.append((inputs, outputs, options))

    def benchmark_with_tensors(self, inputs, outputs, count: int) -> tuple[float, float, dict]:
        self.calls.append((inputs, outputs, {"count": count}))
        return 0.5, 0.0, {}


def pools(size: int):
    numbers = itertools.count()
    return make_input_output_pools(
        pool_size=size,
        eval_pt_func=lambda: {"x": torch.tensor([next(numbers)]), "y": torch.ones(2, 3)},
        input_filter_func=lambda name, tensor: name == "x",
        output_filter_func=lambda name, tensor: tensor.dim() == 2,
    )


def test_pools():
    inputs, outputs = pools(3)
    assert [list(given) for given in inputs] == [["x"]] * 3 and [list(made) for made in outputs] == [["y"]] * 3
    assert [given["x"].item() for given in inputs] == [0, 1, 2] and outputs[0]["y"].shape == (2, 3)


def test_runs_go_round_the_pools():
    inputs, outputs = pools(2)
    model = Model()
    run_module_with_pools(ait_module=model, inputs_pool=inputs, outputs_pool=outputs, num_iters=3, sync=True)
    assert [given["x"].item() for given, _, _ in model.calls] == [0, 1, 0]
    assert model.calls[0][2] == {"stream_ptr": None, "sync": True, "graph_mode": False}
    found = run_benchmark(
        ait_module=model, inputs_pool=inputs, outputs_pool=outputs, num_iters=4, num_warmup_iters=2, graph_mode=True
    )
    assert found >= 0 and len(model.calls) == 3 + 2 + 4 and model.calls[-1][2]["graph_mode"]


def test_a_module_beside_a_model(capsys):
    model, shapes = Model(), []
    x = torch.ones(2, 3, 4)
    test_utils.benchmark_module("pool", x, torch.empty(2), lambda t: shapes.append(t.shape), model, 5, [0, 2, 1])
    assert set(shapes) == {(2, 3, 4)} and len(shapes) == 6
    assert [(given[0].shape, options) for given, _, options in model.calls] == [((2, 4, 3), {"count": 5})] * 2
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("pool_pt: batch_size: 2, ") and printed[1] == "pool_ait: batch_size: 2, 0.5 ms"


def test_each_call_of_a_function_is_timed_after_the_cache_is_emptied():
    slab, found = torch.zeros(4), []

    def call() -> None:
        found.append(slab[0].item())
        slab.zero_()

    device_times, wall_times = profile_callable(call, slab, 3)
    assert len(device_times) == len(wall_times) == 3 and all(t >= 0 for t in device_times)
    assert found[-3:] == [slab.new_tensor(3.7).item()] * 3 and set(found[:-3]) == {0.0}
    assert profile_callable(call, slab, 0) == ([], [])
