"""Inputs and outputs that declare strides: used where they are, copied where they lie otherwise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ait_mlir.driver import compile_module
from ait_mlir.errors import InputError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.runtime import Model

TEXT = """
ait.graph @f(
  %x: !ait.tensor<n x c x h x w x f32> strides [c*h*w, 1, w*c, c],
  %y: !ait.tensor<n x 8 x f32> strides [8*p, 1]
) dims {n = 0 to 4, c = 0 to 8, h = 1 to 16, w = 1 to 16, p = 1 to 5} {
  %0 = ait.relu %x : !ait.tensor<n x c x h x w x f32>
  %1 = ait.neg %y : !ait.tensor<n x 8 x f32>
  ait.output "a" %0 strides [c*h*w, 1, w*c, c] : !ait.tensor<n x c x h x w x f32>
  ait.output "b" %1 : !ait.tensor<n x 8 x f32>
}
"""
DIMS = {"n": 3, "c": 5, "h": 7, "w": 6, "p": 3}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("strides") / "f.ait"
    return compile_module(parse_text(context(), TEXT), output=output)


@pytest.fixture
def model(path: Path) -> Iterator[Model]:
    with Model(path) as model:
        yield model


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def channels_last(n: int, c: int, h: int, w: int) -> np.ndarray:
    return numbers(n, h, w, c).transpose(0, 3, 1, 2)


def rows(n: int, pitch: int) -> np.ndarray:
    return numbers(n, pitch)[:, :8]


CASES: dict[str, tuple[Callable[[], tuple[Any, ...]], int]] = {
    "as declared": (lambda: (channels_last(3, 5, 7, 6), rows(3, 24), channels_last(3, 5, 7, 6)), 0),
    "the least pitch": (lambda: (channels_last(3, 5, 7, 6), rows(3, 8), channels_last(3, 5, 7, 6)), 0),
    "the largest pitch": (lambda: (channels_last(3, 5, 7, 6), rows(3, 40), channels_last(3, 5, 7, 6)), 0),
    "one row, whose pitch is any": (lambda: (channels_last(1, 5, 7, 6), rows(1, 25), channels_last(1, 5, 7, 6)), 0),
    "one channel": (lambda: (numbers(3, 1, 7, 6), rows(3, 24), numbers(3, 1, 7, 6)), 0),
    "row-major": (lambda: (numbers(3, 5, 7, 6), rows(3, 24), channels_last(3, 5, 7, 6)), 1),
    "a pitch that is no multiple": (lambda: (channels_last(3, 5, 7, 6), rows(3, 25), channels_last(3, 5, 7, 6)), 1),
    "a pitch above the range": (lambda: (channels_last(3, 5, 7, 6), rows(3, 48), channels_last(3, 5, 7, 6)), 1),
    "columns first": (lambda: (channels_last(3, 5, 7, 6), numbers(8, 3).T, channels_last(3, 5, 7, 6)), 1),
    "a row-major output": (lambda: (channels_last(3, 5, 7, 6), rows(3, 24), numbers(3, 5, 7, 6)), 1),
    "backwards": (lambda: (channels_last(3, 5, 7, 6)[:, ::-1], rows(3, 24), channels_last(3, 5, 7, 6)[:, :, ::-1]), 2),
    "expanded": (lambda: (np.broadcast_to(numbers(3, 1, 7, 6), (3, 5, 7, 6)), rows(3, 24), numbers(3, 5, 7, 6)), 2),
    "no elements": (lambda: (channels_last(0, 5, 7, 6), rows(0, 24), channels_last(0, 5, 7, 6)), 0),
    "no channels": (lambda: (channels_last(3, 0, 7, 6), rows(3, 24), channels_last(3, 0, 7, 6)), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_what_lies_as_declared_is_not_copied(model: Model, name: str) -> None:
    make, copies = CASES[name]
    x, y, a = make()
    a[...] = np.nan
    b = np.full(y.shape, np.nan, np.float32)
    found = model.run({"x": x, "y": y}, {"a": a, "b": b})
    assert found["a"] is a
    np.testing.assert_array_equal(a, np.maximum(x, 0))
    np.testing.assert_array_equal(b, -y)
    assert model.stats()["copies"] == copies


def test_nothing_between_the_rows_is_touched(model: Model) -> None:
    room = np.full((4, 9, 16, 5), 7, np.float32)
    a = room[:3, :7, :6].transpose(0, 3, 1, 2)  # channels last, with a wider image around it: copied there
    x, y = channels_last(3, 5, 7, 6), rows(3, 24)
    model.run([x, y], [a, np.empty((3, 8), np.float32)])
    np.testing.assert_array_equal(a, np.maximum(x, 0))
    outside = np.ones(room.shape, bool)
    outside[:3, :7, :6] = False
    assert (room[outside] == 7).all() and model.stats()["copies"] == 1


def test_a_larger_output_has_the_result_where_an_output_without_strides_has_it(model: Model) -> None:
    x, y = channels_last(2, 5, 7, 6), rows(2, 24)
    b = np.empty((2, 8), np.float32)
    strided, flat = channels_last(4, 8, 16, 16), np.empty((4, 8, 16, 16), np.float32)
    for buffer in (strided, flat):
        a = model.run([x, y], [buffer, b])["a"]
        assert a.shape == (2, 5, 7, 6) and np.shares_memory(a, buffer)
        np.testing.assert_array_equal(a, np.maximum(x, 0))


def test_outputs_that_a_run_makes_lie_as_declared(model: Model) -> None:
    x, y = channels_last(3, 5, 7, 6), rows(3, 24)
    made = model.run_with_tensors([x, y])
    assert [s // 4 for s in made["a"].strides] == [210, 1, 30, 5] and made["b"].flags.c_contiguous
    buffers = model.make_outputs([x, y])
    assert buffers[0].strides == made["a"].strides
    given = torch.from_numpy(x), torch.from_numpy(y)
    for tensors in (model.run_with_tensors(list(given)), dict(zip("ab", model.make_outputs(list(given)), strict=True))):
        assert tensors["a"].stride() == (210, 1, 30, 5) and tensors["b"].is_contiguous()
    torch.testing.assert_close(model.run_with_tensors(list(given))["a"], given[0].relu())
    assert model.stats()["copies"] == 0


def test_strides_for_dims(model: Model) -> None:
    assert model.input_strides(DIMS) == {"x": (210, 1, 30, 5), "y": (24, 1)}
    assert model.output_strides(DIMS) == {"a": (210, 1, 30, 5), "b": (8, 1)}
    assert model.input_shapes(DIMS) == {"x": (3, 5, 7, 6), "y": (3, 8)}
    assert model.manifest is not None
    assert [t.strides for t in model.manifest.inputs] == [("c*h*w", "1", "c*w", "c"), ("8*p", "1")]
    assert [t.strides for t in model.manifest.outputs] == [("c*h*w", "1", "c*w", "c"), ()]


def test_wrong_tensors_are_refused(model: Model) -> None:
    x, y = channels_last(3, 5, 7, 6), rows(3, 24)
    b = np.empty((3, 8), np.float32)
    shared = np.lib.stride_tricks.as_strided(np.zeros(300, np.float32), (3, 5, 7, 6), (4, 4, 4, 4))
    with pytest.raises(InputError, match=r"output 'a' has strides .* so elements share memory"):
        model.run([x, y], [shared, b])
    with pytest.raises(InputError, match=r"input 'y' has shape \[2, 8\], expected \[3, 8\]"):
        model.run([x, y[:2]], [channels_last(3, 5, 7, 6), b])
    with pytest.raises(InputError, match="output 'a' overlaps the memory of input 'x'"):
        model.run([x, y], [x, b])
    with pytest.raises(InputError, match=r"dim p = 6, expected a value from 1 to 5"):
        model.input_strides(DIMS | {"p": 6})
    assert model.stats()["runs"] == 0


def test_the_command_line(path: Path) -> None:
    def ait(*arguments: str) -> str:
        command = [sys.executable, "-m", "ait_mlir.tools.cli", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    told = ait("inspect", str(path))
    assert "x: float32 [n, c, h, w] strides [c*h*w, 1, c*w, c]" in told and "y: float32 [n, 8] strides [8*p, 1]" in told
    assert ait("run", str(path), "--dim", "p=2", "--compare", "reference").count(" ok") == 2
    assert "each run copies tensors" in ait("bench", str(path), "--count", "2")
