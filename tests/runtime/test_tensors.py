"""Tensors with any strides, scratch memory of the caller's, awaited runs, and the counts of all of it."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
import torch

from ait_mlir.errors import InputError, OutOfMemoryError, RunError
from ait_mlir.runtime import AITData, Model
from tests.runtime.conftest import tiny_inputs, tiny_reference


def strided(value: np.ndarray, how: str) -> np.ndarray:
    """The same values at other strides."""
    if how == "transposed":
        return np.ascontiguousarray(value.T).T
    if how == "padded":
        room = np.full((value.shape[0] + 1, value.shape[1] + 3), np.nan, value.dtype)
        room[: value.shape[0], 2 : 2 + value.shape[1]] = value
        return room[: value.shape[0], 2 : 2 + value.shape[1]]
    if how == "reversed":
        return np.ascontiguousarray(value[::-1, ::-1])[::-1, ::-1]
    if how == "unaligned":
        return np.frombuffer(b"\0" + value.tobytes(), np.uint8)[1:].view(value.dtype).reshape(value.shape)
    assert how == "fields"
    records = np.zeros(value.shape, [("before", np.int8), ("value", value.dtype)])
    records["value"] = value
    return records["value"]


@pytest.mark.parametrize("how", ["transposed", "padded", "reversed", "unaligned", "fields"])
def test_inputs_of_any_strides(model: Model, how: str) -> None:
    x, m = tiny_inputs(4, 3)
    y = model.run_with_tensors([strided(x, how), strided(m, how)])
    expected = model.run_with_tensors([x, m])
    assert y["y"].tobytes() == expected["y"].tobytes() and y["s"].tobytes() == expected["s"].tobytes()
    assert model.stats()["copies"] == (0 if how == "fields" else 2)  # those are copied by NumPy


def test_an_expanded_input(model: Model) -> None:
    x = torch.rand(1, 6).expand(5, 6)
    m = torch.rand(5, 1).expand(5, 3)
    assert x.stride() == (0, 1) and m.stride() == (1, 0)
    y = model.run_with_tensors([x, m])["y"]
    torch.testing.assert_close(y, torch.from_numpy(tiny_reference(x.numpy(), m.numpy())[0]))
    assert model.stats()["copies"] == 2


@pytest.mark.parametrize("how", ["transposed", "padded", "reversed"])
def test_outputs_of_any_strides(model: Model, how: str) -> None:
    x, m = tiny_inputs(4, 3)
    y, s = strided(np.zeros((4, 6), np.float32), how), np.zeros(8, np.float32)[::2]
    around = None if y.base is None or how == "reversed" else y.base.copy()
    found = model.run([x, m], [y, s])
    expected = tiny_reference(x, m)
    assert found["y"] is y and found["s"] is s
    np.testing.assert_allclose(y, expected[0], rtol=1e-6)
    np.testing.assert_allclose(s, expected[1], rtol=1e-5)
    assert not s.base[1::2].any(), "only the elements of the output are written"
    if how == "padded":
        outside = np.ones(around.shape, bool)
        outside[:4, 2:8] = False
        np.testing.assert_array_equal(y.base[outside], around[outside])


def test_a_larger_strided_output_has_the_result_in_its_leading_elements(model: Model) -> None:
    x, m = tiny_inputs(2, 3)
    buffer = np.full((8, 8, 2), -1, np.float32)[:, :, 0]
    s = np.zeros(8, np.float32)
    y = model.run([x, m], [buffer, s])["y"]
    assert y.shape == (2, 6) and np.shares_memory(y, buffer)
    np.testing.assert_allclose(y, tiny_reference(x, m)[0], rtol=1e-6)
    assert (buffer[2:] == -1).all() and (buffer[:, 6:] == -1).all()


def test_wrong_strided_tensors_are_refused_before_anything_is_written(model: Model) -> None:
    x, m = tiny_inputs(2, 4)
    s = np.zeros(2, np.float32)
    shared = np.lib.stride_tricks.as_strided(np.zeros(16, np.float32), (2, 8), (4, 4))
    with pytest.raises(
        InputError, match=r"output 'y' has strides \[1, 1\] for shape \[2, 8\], so elements share memory"
    ):
        model.run([x, m], [shared, s])
    room = np.zeros((8, 4), np.float32)
    with pytest.raises(InputError, match="output 'y' overlaps the memory of input 'm'"):
        model.run([x, room[:2]], [room.reshape(2, 16)[:, ::2], s])
    with pytest.raises(InputError, match="input 'm' has shape"):
        model.run([x, m.T], [np.zeros((2, 8), np.float32), s])
    assert model.stats() | {"bytes": 0} == dict.fromkeys(model.stats(), 0)


def test_a_workspace_of_the_callers(model: Model) -> None:
    x, m = tiny_inputs(4, 8)
    room = np.zeros(1 << 14, np.uint8)
    start = -room.ctypes.data % 256
    dims = {"batch": 4, "seq": 8}
    before = model.stats()["bytes"]
    for workspace in (room[start:], torch.from_numpy(room[start:]), AITData(room.ctypes.data + start, [8192], "int8")):
        y, s = np.zeros((4, 16), np.float32), np.zeros(4, np.float32)
        room[:] = 0
        model.run([x, m], [y, s], workspace=workspace)
        np.testing.assert_allclose(y, tiny_reference(x, m)[0], rtol=1e-6)
        assert room[start : start + model.arena_bytes(dims)].any(), "the run used it"
    assert model.stats()["bytes"] == before, "and no memory of the model"
    y, s = np.zeros((4, 16), np.float32), np.zeros(4, np.float32)
    model.run([strided(x, "transposed"), m], [y, s], workspace=room[start:])
    np.testing.assert_allclose(y, tiny_reference(x, m)[0], rtol=1e-6)
    needed = model.arena_bytes(dims)
    wrong = [(room[start : start + needed - 1], f"has {needed - 1} bytes"), (room[start + 8 :], "at a multiple of 256")]
    for workspace, told in wrong:
        with pytest.raises(InputError, match=told):
            model.run([x, m], [y, s], workspace=workspace)
    with pytest.raises(InputError, match=r"workspace has .* expected"):  # the copy needs room, too
        model.run([strided(x, "transposed"), m], [y, s], workspace=room[start : start + needed])
    for workspace, told in ((room[::2], "the workspace cannot be written in place"), (7, "the workspace is a int")):
        with pytest.raises(InputError, match=told):
            model.run([x, m], [y, s], workspace=workspace)


def test_a_failed_run_replaces_its_runtime(model: Model) -> None:
    good, bad, large = tiny_inputs(4, 8), tiny_inputs(3, 8), tiny_inputs(7, 8)
    model.run_with_tensors(list(good))
    held = model.stats()["bytes"]
    with pytest.raises(RunError, match="a batch of 3 is refused"):
        model.run_with_tensors(list(bad))
    with pytest.raises(OutOfMemoryError):
        model.run_with_tensors(list(large))
    for _ in range(4):
        np.testing.assert_allclose(model.run_with_tensors(list(good))["y"], tiny_reference(*good)[0], rtol=1e-6)
    stats = model.stats()
    assert (stats["runs"], stats["failures"]) == (5, 1)
    assert stats["bytes"] <= 2 * held


def test_awaited_runs(model: Model) -> None:
    tasks = [tiny_inputs(1 + i % 2, 1 + i % 5, i) for i in range(40)]

    async def all_of_them() -> list[dict[str, np.ndarray]]:
        return await asyncio.gather(*(model.run_async(list(task)) for task in tasks))

    for task, found in zip(tasks, asyncio.run(all_of_them()), strict=True):
        np.testing.assert_allclose(found["y"], tiny_reference(*task)[0], rtol=1e-6)
    assert model.stats()["runs"] == 40

    async def one_that_fails() -> None:
        x, m = tiny_inputs(2, 4)
        with pytest.raises(InputError, match="input 'm' has shape"):
            await model.run_async([x, m[:1]])
        y, s = np.zeros((2, 8), np.float32), np.zeros(2, np.float32)
        assert (await model.run_async([x, m], [y, s]))["y"] is y

    asyncio.run(one_that_fails())


def test_waits_are_counted(library) -> None:
    with Model.from_library(library, "cpu", constants={"w": np.float32([1]), "b": np.float32([0])}) as model:
        x, m = tiny_inputs(8, 16)

        def work() -> None:
            for _ in range(300):
                model.run_with_tensors([x, m])

        runs = 0
        while not model.stats()["waits"] and runs < 100 * 2400:  # until two runs have met
            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            runs += 2400
        stats = model.stats()
        assert stats["runs"] == runs and 0 < stats["waits"] <= runs
