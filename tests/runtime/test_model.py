"""Running a model: shapes, containers, frameworks, constants, threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

from ait_mlir.errors import InputError, RunError
from ait_mlir.runtime import AITData, Model, torch_to_ait_data
from ait_mlir.runtime.data import to_numpy
from ait_mlir.runtime.loading import runtime_library
from tests.runtime.conftest import B, W, tiny_inputs, tiny_reference


@pytest.mark.parametrize(("batch", "seq"), [(1, 1), (2, 16), (8, 5), (4, 4)])
def test_any_dims_in_range(model: Model, batch: int, seq: int) -> None:
    x, m = tiny_inputs(batch, seq)
    result = model.run_with_tensors([x, m])
    y, s = tiny_reference(x, m)
    assert list(result) == ["y", "s"]
    np.testing.assert_allclose(result["y"], y, rtol=1e-6)
    np.testing.assert_allclose(result["s"], s, rtol=1e-5)


def test_lists_and_dicts_in_any_order_agree(model: Model) -> None:
    x, m = tiny_inputs(4, 3)
    by_list = model.run([x, m], [np.empty((4, 6), np.float32), np.empty(4, np.float32)])
    by_name = model.run({"m": m, "x": x}, {"s": np.empty(4, np.float32), "y": np.empty((4, 6), np.float32)})
    np.testing.assert_array_equal(by_list["y"], by_name["y"])
    np.testing.assert_array_equal(by_list["s"], by_name["s"])


def test_torch_and_numpy_are_written_in_place(model: Model) -> None:
    x, m = tiny_inputs(4, 3)
    y, s = torch.empty(4, 6), np.empty(4, np.float32)
    result = model.run([torch.tensor(x, requires_grad=True), m], [y, s])
    assert result["y"] is y and result["s"] is s
    np.testing.assert_allclose(y.numpy(), tiny_reference(x, m)[0], rtol=1e-6)


def test_made_outputs_follow_the_framework_of_the_inputs(model: Model) -> None:
    x, m = tiny_inputs(2, 2)
    assert isinstance(model.run_with_tensors([x, m])["y"], np.ndarray)
    assert isinstance(model.run_with_tensors([torch.tensor(x), torch.tensor(m)])["y"], torch.Tensor)


def test_buffers_of_the_maximum_shape_hold_smaller_results(model: Model) -> None:
    x, m = tiny_inputs(3 + 1, 7)
    y = np.full(model.get_output_maximum_shape("y"), np.nan, np.float32)
    s = torch.full((8,), torch.nan)
    result = model.run([x, m], [y, s])
    assert result["y"].shape == (4, 14) and tuple(result["s"].shape) == (4,)
    np.testing.assert_allclose(result["y"], tiny_reference(x, m)[0], rtol=1e-6)
    assert np.shares_memory(result["y"], y) and np.isnan(y.reshape(-1)[4 * 14 :]).all()


def test_ait_data_in_and_out(model: Model) -> None:
    x, m = tiny_inputs(2, 4)
    y, s = np.empty((8, 32), np.float32), torch.empty(8)
    given = [AITData(x.ctypes.data, [2, 8], "float32"), torch_to_ait_data(torch.from_numpy(m))]
    result = model.run(given, [AITData(y.ctypes.data, [8, 32], "float32"), torch_to_ait_data(s)])
    assert result["y"] == AITData(y.ctypes.data, [2, 8], "float32")
    np.testing.assert_allclose(model.ait_data_to_numpy(result["y"]), tiny_reference(x, m)[0], rtol=1e-6)


def test_copies_to_and_from_the_device(model: Model) -> None:
    array = np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3)
    data = model.numpy_to_ait_data(array)
    assert data.shape == [2, 3] and data.dtype == "bfloat16"
    np.testing.assert_array_equal(model.ait_data_to_numpy(data), array)
    model.free_memory(data.data_ptr)


def test_read_only_inputs_are_fine(model: Model) -> None:
    x, m = tiny_inputs(2, 2)
    x.flags.writeable = False
    np.testing.assert_allclose(model.run_with_tensors([x, m])["y"], tiny_reference(x, m)[0], rtol=1e-6)


def test_empty_tensors_may_be_null(model: Model) -> None:
    nothing = AITData(0, [0, 4], "float32")
    result = model.run([nothing, AITData(0, [0, 2], "float32")], [nothing, AITData(0, [0], "float32")])
    assert result["y"].shape == [0, 4]
    assert model.run_with_tensors([torch.empty(0, 4), torch.empty(0, 2)])["s"].shape == (0,)


def test_maps_and_descriptions(model: Model) -> None:
    assert model.get_input_name_to_index_map() == {"x": 0, "m": 1}
    assert model.get_output_name_to_index_map() == model.get_output_name_to_idx() == {"y": 0, "s": 1}
    assert model.get_output_maximum_shape("y") == model.get_output_maximum_shape(0) == [8, 32]
    assert model.get_output_dtype(1) == model.get_input_dtype("m") == "float32"
    assert model.dims == {"batch": (0, 8), "seq": (1, 16)}
    assert model.input_shapes({"batch": 2, "seq": 3}) == {"x": (2, 6), "m": (2, 3)}
    assert model.output_shapes({"seq": 3, "batch": 2}) == {"y": (2, 6), "s": (2,)}
    assert model.arena_bytes({"batch": 2, "seq": 3}) == 48
    assert "tiny" in repr(model) and "x: float32" in repr(model)


def test_constants_must_be_set_and_can_be_changed(library: Path) -> None:
    x, m = tiny_inputs(2, 2)
    with Model.from_library(library, "cpu") as model:
        assert model.get_constant_names(unset_only=True) == ["w", "b"]
        with pytest.raises(InputError, match="2 constants have no value, first 'w': call set_constant"):
            model.run_with_tensors([x, m])
        model.set_constants({"w": torch.tensor([3.0]), "b": B})
        assert model.get_constant_names(unset_only=True) == []
        np.testing.assert_allclose(
            model.run_with_tensors([x, m])["y"], tiny_reference(x, m)[0] + x * (3 - W), rtol=1e-5
        )
        model.set_constant("w", W)
        np.testing.assert_allclose(model.run_with_tensors([x, m])["y"], tiny_reference(x, m)[0], rtol=1e-6)


def test_a_closed_model_says_so(library: Path) -> None:
    model = Model.from_library(library, "cpu", constants={"w": W, "b": B})
    model.close()
    model.close()
    with pytest.raises(RunError, match="model tiny is closed"):
        model.run_with_tensors(list(tiny_inputs(1, 1)))


def test_threads_on_a_pool_equal_serial_runs(model: Model) -> None:
    cases = [tiny_inputs(batch, seq, seed) for seed, (batch, seq) in enumerate([(1, 3), (8, 16), (5, 2), (4, 9)])]
    expected = [model.run_with_tensors(list(case)) for case in cases]
    failures: list[str] = []

    def work(which: int) -> None:
        for i in range(40):
            case = (which + i) % len(cases)
            result = model.run_with_tensors(list(cases[case]))
            failures.extend(name for name in result if result[name].tobytes() != expected[case][name].tobytes())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_graph_mode_is_refused_on_a_target_without_graphs(model: Model) -> None:
    x, m = tiny_inputs(2, 2)
    y, s = np.zeros((2, 4), np.float32), np.empty(2, np.float32)
    for run in (model.run, model.benchmark):
        with pytest.raises(InputError, match="target cpu, which has no graphs: pass graph_mode=False"):
            run([x, m], [y, s], graph_mode=True)
    assert not y.any()
    np.testing.assert_allclose(model.run([x, m], [y, s])["y"], tiny_reference(x, m)[0], rtol=1e-6)


_THREADS = """
import sys
import numpy as np, torch
from ait_mlir.runtime import Model
from ait_mlir.runtime.loading import runtime_library
torch.set_num_threads(2)
runtime = runtime_library("cpu")
with Model.from_library(sys.argv[1], "cpu", constants={"w": np.float32([1]), "b": np.float32([1])}) as model:
    model.run_with_tensors([np.ones((4, 4), np.float32), np.ones((4, 2), np.float32)])
print(runtime.num_threads(), torch.get_num_threads())
"""


@pytest.mark.parametrize(("count", "told"), [("1", "1 2"), ("3", "3 2"), (None, "2 2")])
def test_one_count_of_threads_and_torch_keeps_its_own(library: Path, count: str | None, told: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "AIT_NUM_THREADS"}
    environment |= {"OMP_NUM_THREADS": "2"} | ({"AIT_NUM_THREADS": count} if count else {})
    ran = subprocess.run(
        [sys.executable, "-c", _THREADS, str(library)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env=environment | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert ran.stdout.strip() == told, ran.stderr


def test_a_senseless_count_of_threads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_NUM_THREADS", "all")
    monkeypatch.setattr("ait_mlir.runtime.loading._loaded", {})
    with pytest.raises(InputError, match="AIT_NUM_THREADS is 'all', expected a whole number"):
        runtime_library("cpu")


@pytest.mark.parametrize("make", [lambda a: a, torch.tensor, lambda a: torch.tensor(a, requires_grad=True)])
def test_to_numpy_keeps_values(make: Callable[[np.ndarray], object]) -> None:
    array = np.float32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(to_numpy(make(array)), array)


def test_to_numpy_keeps_bfloat16() -> None:
    array = to_numpy(torch.tensor([1.5, -2.0], dtype=torch.bfloat16))
    assert array.dtype == ml_dtypes.bfloat16 and array.tolist() == [1.5, -2.0]
