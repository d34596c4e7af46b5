"""Sizes that the ranges of the dims allow to be too large are refused at the run; they never wrap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.driver import compile_module
from ait_mlir.errors import InputError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.runtime import Model
from ait_mlir.runtime.data import AITData
from ait_mlir.runtime.kinds import AITemplateMemcpyKind

MOST = 1 << 40

OUTER = f"""
ait.graph @g(%x: !ait.tensor<a x 1 x 1 x f32>, %y: !ait.tensor<b x 1 x f32>, %z: !ait.tensor<c x f32>)
    dims {{a = 0 to {MOST}, b = 0 to {MOST}, c = 0 to {MOST}}} {{
  %0 = ait.add %x, %y : (!ait.tensor<a x 1 x 1 x f32>, !ait.tensor<b x 1 x f32>) -> !ait.tensor<a x b x 1 x f32>
  %1 = ait.add %0, %z : (!ait.tensor<a x b x 1 x f32>, !ait.tensor<c x f32>) -> !ait.tensor<a x b x c x f32>
  %2 = ait.cumulative sum %1 dim 2 : !ait.tensor<a x b x c x f32>
  %3 = ait.reduce sum %2 dims [0, 1, 2] : !ait.tensor<f32>
  ait.output "o" %3 : !ait.tensor<f32>
}}
"""
STRIDED = f"""
ait.graph @s(%x: !ait.tensor<a x b x f32> strides [p, 1]) dims {{a = 1 to 8, b = 1 to 8, p = 8 to {MOST}}} {{
  %0 = ait.relu %x : !ait.tensor<a x b x f32>
  ait.output "o" %0 : !ait.tensor<a x b x f32>
}}
"""
WIDE = f"""
ait.graph @w(%x: !ait.tensor<a x b x f32> strides [p*p, 1], %y: !ait.tensor<p x f32>)
    dims {{a = 1 to 8, b = 1 to 8, p = 8 to {MOST}}} {{
  %0 = ait.relu %x : !ait.tensor<a x b x f32>
  %1 = ait.neg %y : !ait.tensor<p x f32>
  ait.output "o" %0 : !ait.tensor<a x b x f32>
  ait.output "n" %1 : !ait.tensor<p x f32>
}}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("sizes")
    made: dict[str, Path] = {}

    def compile_text(text: str) -> Path:
        if text not in made:
            made[text] = compile_module(parse_text(context(), text), output=folder / f"{len(made)}.ait")
        return made[text]

    return compile_text


def outer_inputs(a: int, b: int, c: int) -> list[np.ndarray]:
    return [np.ones((a, 1, 1), np.float32), np.ones((b, 1), np.float32), np.ones(c, np.float32)]


@pytest.mark.parametrize(
    "sizes",
    [
        (1 << 21, 1 << 21, 1 << 21),
        (1 << 21, 1 << 21, 1 << 20),
        (1 << 20, 1 << 20, 3 << 20),
        (3_000_000, 3_000_000, 999_999),
    ],
)
def test_an_arena_that_would_wrap(compiled: Callable[[str], Path], sizes: tuple[int, int, int]) -> None:
    with Model(compiled(OUTER)) as model:
        with pytest.raises(InputError, match=rf"the arena of @g needs more than 2\^62 bytes for a = {sizes[0]} \(inp"):
            model.run(outer_inputs(*sizes), [np.zeros((), np.float32)])
        with pytest.raises(InputError, match="more than 2\\^62 bytes"):
            model.run_with_tensors(outer_inputs(*sizes))
        o = np.zeros((), np.float32)
        model.run(outer_inputs(2, 3, 4), [o])
        assert o == 3 * 6 * 10


def test_an_arena_that_no_memory_has_is_not_made(compiled: Callable[[str], Path]) -> None:
    with Model(compiled(OUTER)) as model, pytest.raises(MemoryError, match="the arena of a run needs"):
        model.run(outer_inputs(1 << 20, 1 << 20, 1 << 16), [np.zeros((), np.float32)])


def test_no_elements(compiled: Callable[[str], Path]) -> None:
    with Model(compiled(OUTER)) as model:
        o = np.ones((), np.float32)
        model.run(outer_inputs(1 << 10, 1 << 10, 0), [o])
        assert o == 0


def test_a_staging_copy_that_would_wrap(compiled: Callable[[str], Path]) -> None:
    """The tensor of the caller has 256 bytes; laid out as declared it would need 4*(7*p*p + 8)."""
    x, p = np.ones((8, 8), np.float32), 1 << 32
    few = np.zeros(1, np.float32)
    many = AITData(few.ctypes.data, [p], "float32")  # refused before it is read
    with Model(compiled(WIDE)) as model:
        with pytest.raises(InputError, match=r"input 'x' needs more than 2\^62 bytes for a = 8"):
            model.run([x, many], [x.copy(), many])
        o, n = np.zeros((8, 8), np.float32), np.zeros(16, np.float32)
        model.run([-x, np.ones(16, np.float32)], [o, n])
        assert (o == 0).all() and (n == -1).all()


def test_a_stride_of_the_caller(compiled: Callable[[str], Path]) -> None:
    """A pitch that the ranges allow is used or refused by what the tensor has, never computed with less than 64 bits."""
    with Model(compiled(STRIDED)) as model:
        x = np.arange(64, dtype=np.float32).reshape(8, 8) - 20
        o = np.zeros((8, 8), np.float32)
        model.run([x], [o])
        np.testing.assert_array_equal(o, np.maximum(x, 0))
        far = np.lib.stride_tricks.as_strided(x, (1, 1), (1 << 60, 4))  # one element, at any stride
        o = np.zeros((1, 1), np.float32)
        model.run([far], [o])
        assert o == 0


def test_bytes_beyond_64_bits(compiled: Callable[[str], Path]) -> None:
    with Model(compiled(STRIDED)) as model:
        for call in (
            lambda: model.allocate_memory(1 << 63),
            lambda: model.allocate_data([1 << 40, 1 << 40], "float32"),
        ):
            with pytest.raises(InputError, match=r"expected a whole number below 2\^63"):
                call()
        with pytest.raises(InputError, match=r"below 2\^63"):
            model.memcpy(1, 1, 1 << 70, AITemplateMemcpyKind.DeviceToDevice)
        with pytest.raises(MemoryError, match=f"needs {1 << 62} bytes"):
            model.allocate_memory(1 << 62)
