"""Memory that a model allocates and copies for its caller, and models that are pickled."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.errors import InputError
from ait_mlir.runtime import AITData, AITemplateAllocatorKind, AITemplateMemcpyKind, Model
from tests.runtime.conftest import tiny_inputs, tiny_reference


def test_copies_of_every_kind(model: Model) -> None:
    source, target = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    first, second = model.allocate_gpu_memory(20), model.allocate_gpu_memory(20, sync=False)
    model.memcpy(first, source.ctypes.data, 20, AITemplateMemcpyKind.HostToDevice)
    model.memcpy(second, first, 20, AITemplateMemcpyKind.DeviceToDevice, sync=False)
    model.memcpy(target.ctypes.data, second, 20, AITemplateMemcpyKind.DeviceToHost)
    np.testing.assert_array_equal(target, source)
    model.memcpy(0, 0, 0, AITemplateMemcpyKind.DeviceToDevice)
    for address in (first, second):
        model.free_gpu_memory(address)


def test_wrong_copies_are_refused(model: Model) -> None:
    address = model.allocate_gpu_memory(8)
    with pytest.raises(InputError, match="a copy of 8 bytes from address 0 to"):
        model.memcpy(address, 0, 8, AITemplateMemcpyKind.HostToDevice)
    with pytest.raises(InputError, match="a copy of -1 bytes"):
        model.memcpy(address, address, -1, AITemplateMemcpyKind.HostToDevice)
    for wrong in (-16, 1 << 70, 1.5):
        with pytest.raises(InputError, match=f"a copy from address {wrong} to "):
            model.memcpy(address, wrong, 8, AITemplateMemcpyKind.HostToDevice)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a copy is of kind 1, expected an AITemplateMemcpyKind"):
        model.memcpy(address, address, 8, 1)  # type: ignore[arg-type]
    model.free_gpu_memory(address)
    with pytest.raises(InputError, match="was not given by allocate_memory of this model, or is free already"):
        model.free_gpu_memory(address)


def test_a_model_counts_its_bytes(tiny_artifact: Path) -> None:
    with Model(tiny_artifact, 1, AITemplateAllocatorKind.TRACKING) as model:
        x, m = tiny_inputs(2, 4)
        before = model.allocated_bytes()
        assert before >= 768, "the constants of the model"
        address = model.allocate_gpu_memory(1000)
        assert model.allocated_bytes() == before + 1000
        model.free_gpu_memory(address)
        model.run_with_tensors([x, m])
        assert model.allocated_bytes() >= before + model.arena_bytes({"batch": 2, "seq": 4})
    with pytest.raises(InputError, match="allocator_kind is 'tracking', expected an AITemplateAllocatorKind"):
        Model(tiny_artifact, 1, "tracking")  # type: ignore[arg-type]


def test_data_by_address_in_both_directions(model: Model) -> None:
    x, m = tiny_inputs(2, 4)
    inputs = {"x": model.numpy_to_ait_data(x), "m": model.numpy_to_ait_data(m, sync=False)}
    y = AITData(model.allocate_gpu_memory(4 * 16), [2, 8], "float32")
    s = AITData(model.allocate_gpu_memory(8), [2], "float32")
    result = model.run(inputs, {"y": y, "s": s})
    np.testing.assert_allclose(model.ait_data_to_numpy(result["y"]), tiny_reference(x, m)[0], rtol=1e-6)
    for data in (*inputs.values(), y, s):
        model.free_gpu_memory(data.data_ptr)


@pytest.mark.parametrize("by", ["path", "bytes"])
def test_a_model_is_pickled_by_path_or_by_bytes(tiny_artifact: Path, tmp_path: Path, by: str) -> None:
    x, m = tiny_inputs(2, 4)
    with Model(tiny_artifact, 3, pickle_by=by) as model:  # type: ignore[arg-type]
        content = pickle.dumps(model)
    if by == "bytes":
        tiny_artifact.unlink()
    with pickle.loads(content) as copy:
        assert copy.get_num_runtimes() == 3 and copy.name == "tiny"
        np.testing.assert_allclose(copy.run_with_tensors([x, m])["y"], tiny_reference(x, m)[0], rtol=1e-6)
        again = pickle.dumps(copy)
    (tmp_path / "model.pkl").write_bytes(again)
    code = f"import pickle; print(pickle.load(open({str(tmp_path / 'model.pkl')!r}, 'rb')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "<Model tiny for cpu" in done.stdout


def test_what_cannot_be_pickled_says_so(model: Model, tiny_artifact: Path) -> None:
    with pytest.raises(InputError, match="model tiny has no artifact, so it cannot be pickled"):
        pickle.dumps(model)
    with pytest.raises(InputError, match='pickle_by is \'name\', expected "path" or "bytes"'):
        Model(tiny_artifact, pickle_by="name")  # type: ignore[arg-type]
