"""Inputs that are state: written in place, refused where they overlap and after a run that failed, one run at a time."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.driver import compile_module
from ait_mlir.errors import InputError, RunError
from ait_mlir.runtime import AITData, Model
from tests.e2e.support import Compiled, compile_graph, parse_graph

CACHE = "!ait.tensor<b x 2 x n x 4 x f32>"
STEP = f"""
ait.graph @step(%cache: {CACHE} donated, %rows: !ait.tensor<b x 2 x 1 x 4 x f32>, %at: !ait.tensor<i64>, %places: !ait.tensor<1 x i32>, %mean: !ait.tensor<4 x f32> donated, %other: {CACHE} donated) dims {{b = 1 to 4, n = 1 to 64}} {{
  %new = ait.update_slice %cache, %rows at %at dim 2 : {CACHE}
  %turned = ait.permute %new [0, 2, 1, 3] : !ait.tensor<b x n x 2 x 4 x f32>
  %y = ait.relu %turned : !ait.tensor<b x n x 2 x 4 x f32>
  %sums = ait.reduce mean %rows dims [0, 1, 2] : !ait.tensor<4 x f32>
  %next = ait.add %mean, %sums : !ait.tensor<4 x f32>
  %pure = ait.update_slice %y, %y at %zero dim 1 : !ait.tensor<b x n x 2 x 4 x f32>
  %s = ait.softmax %other dim 2 : {CACHE}
  %late = ait.update_slice %s, %rows at %places dim 2 : {CACHE}
  ait.output "y" %pure : !ait.tensor<b x n x 2 x 4 x f32>
  ait.output "cache" %new in place of %cache : {CACHE}
  ait.output "mean" %next in place of %mean : !ait.tensor<4 x f32>
  ait.output "other" %late in place of %other or copy : {CACHE}
  ait.output "old" %s : {CACHE}
}}
""".replace("%pure =", "%zero = ait.constant 0 : !ait.tensor<i64>\n  %pure =")


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile_graph(STEP, tmp_path_factory.mktemp("state"))


@pytest.mark.parametrize("dims", [{"b": 1, "n": 1}, {"b": 3, "n": 7}, {"b": 4, "n": 64}], ids=str)
def test_a_step_is_what_the_reference_says(step: Compiled, dims: dict[str, int]) -> None:
    assert step.problems(dims) == []


def test_state_is_written_in_place_and_nothing_else_of_it(step: Compiled) -> None:
    inputs = step.inputs({"b": 2, "n": 5})
    inputs["at"] = np.array(3)
    before = inputs["cache"].copy()
    found = step.model.run(inputs, {name: found for name, found in made(step, inputs).items() if name in ("y", "old")})
    assert found["cache"] is inputs["cache"] and found["mean"] is inputs["mean"]
    np.testing.assert_array_equal(inputs["cache"][:, :, 3:4], inputs["rows"])
    before[:, :, 3] = inputs["cache"][:, :, 3]
    np.testing.assert_array_equal(inputs["cache"], before)
    assert step.model.state == {"cache": "cache", "mean": "mean", "other": "other"}


def made(step: Compiled, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Buffers for all outputs."""
    return dict(zip(step.model.get_output_name_to_index_map(), step.model.make_outputs(inputs), strict=True))


def test_overlaps_are_refused(step: Compiled) -> None:
    inputs = step.inputs({"b": 1, "n": 4})
    with pytest.raises(InputError, match="'cache' is donated, but overlaps the memory of input 'other'"):
        step.model.run_with_tensors({**inputs, "other": inputs["cache"]})
    with pytest.raises(InputError, match="'old' overlaps the memory of"):
        step.model.run(inputs, {**made(step, inputs), "old": inputs["cache"]})
    with pytest.raises(InputError, match="'cache' takes the place of input 'cache', but is at another address"):
        step.model.run(inputs, {**made(step, inputs), "cache": inputs["cache"].copy()})
    frozen = inputs["cache"].copy()
    frozen.flags.writeable = False
    with pytest.raises(InputError, match="'cache' is a read-only array"):
        step.model.run_with_tensors({**inputs, "cache": frozen})


@pytest.mark.parametrize("at", [5, -1, 2**40])
def test_a_place_outside_fails_and_the_state_is_refused_until_it_is_set(step: Compiled, at: int) -> None:
    inputs = step.inputs({"b": 2, "n": 5})
    good = inputs["cache"].copy()
    with pytest.raises(RunError, match=f"place {at} of row 0 is outside of the dim, which has 5"):
        step.model.run_with_tensors({**inputs, "at": np.array(at)})
    np.testing.assert_array_equal(inputs["cache"], good)
    with pytest.raises(
        InputError, match=r"input '(cache|mean|other)' is state that a run which failed may have left half written"
    ):
        step.model.run_with_tensors(inputs)
    step.model.run_with_tensors(step.inputs({"b": 2, "n": 5}))  # other state is none of its business
    for name in ("cache", "mean", "other"):
        step.model.set_state(name, inputs[name], step.inputs({"b": 2, "n": 5})[name])
    step.model.run_with_tensors(inputs)


def test_what_is_no_state_cannot_be_set(step: Compiled) -> None:
    inputs = step.inputs({"b": 1, "n": 2})
    with pytest.raises(InputError, match="input 'rows' is no state; model step has cache, mean, other"):
        step.model.set_state("rows", inputs["rows"], inputs["rows"])
    with pytest.raises(InputError, match=r"input 'mean' is float32 of shape \[4\], its value float32 of shape \[3\]"):
        step.model.set_state("mean", inputs["mean"], np.zeros(3, np.float32))
    with pytest.raises(InputError, match="input 'mean' cannot be written in place"):
        step.model.set_state("mean", inputs["mean"][::2], np.zeros(2, np.float32))


def test_benchmarks_leave_state_alone(step: Compiled) -> None:
    inputs = step.inputs({"b": 2, "n": 5})
    before = {name: array.copy() for name, array in inputs.items()}
    outputs = made(step, inputs)
    _, _, found = step.model.benchmark(inputs, outputs, count=3, repeat=2)
    assert sorted(found) == ["old", "y"]
    on_device = {name: step.model.numpy_to_ait_data(array) for name, array in inputs.items()}
    step.model.benchmark(on_device, {name: outputs[name] for name in ("y", "old")}, count=2)
    for name, data in on_device.items():
        assert isinstance(data, AITData)
        np.testing.assert_array_equal(step.model.ait_data_to_numpy(data), before[name])
        np.testing.assert_array_equal(inputs[name], before[name])
        step.model.free_memory(data.data_ptr)


def test_runs_that_share_state_are_one_after_the_other(tmp_path: Path) -> None:
    """Each run adds its rows to a sum; without order some would be lost."""
    size = 1 << 16
    text = f"""
ait.graph @sum(%sum: !ait.tensor<{size} x f32> donated, %x: !ait.tensor<{size} x f32>) {{
  %0 = ait.add %sum, %x : !ait.tensor<{size} x f32>
  ait.output "sum" %0 in place of %sum : !ait.tensor<{size} x f32>
}}
"""
    artifact = compile_module(parse_graph(text)[0], output=tmp_path / "sum.ait")
    model = Model(artifact, num_runtimes=4)
    assert model.manifest is not None and model.manifest.outputs[0].in_place_of == "sum"
    total, ones = np.zeros(size, np.float32), np.ones(size, np.float32)

    def run() -> None:
        for _ in range(25):
            model.run([total, ones], [])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(total, 100)
