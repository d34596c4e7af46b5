"""The kernels of docs/gpu_templates.md run, and compute what the page says."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.library import EmulatedLibrary, Kind
from tests.kernels.harness import PRELUDE

PAGE = Path(__file__).parents[2] / "docs/gpu_templates.md"
ENTRIES = """
#define ENTRY(NAME, PARAMETERS, ...) \\
  extern "C" int32_t run_##NAME(char* message, PARAMETERS) { \\
    const ait_host_v1 host = {message, test_fail}; \\
    return NAME(ait::Context{nullptr, &host}, __VA_ARGS__); \\
  }
#define AND ,
ENTRY(double_all, const float* x AND float* y AND int64_t n, x, y, n)
ENTRY(triple_all, const half* x AND half* y AND int64_t n, x, y, n)
ENTRY(add_bias, const float* x AND const float* b AND float* y AND int64_t m AND int64_t n AND int64_t p, x, b, y, m, n, p)
ENTRY(square_all, const half* x AND half* y AND int64_t n, x, y, n)
ENTRY(centre_rows, const half* x AND half* y AND int64_t m AND int64_t n, x, y, m, n)
"""


def source() -> str:
    blocks = re.findall(r"```cuda\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 5
    return PRELUDE + "".join(blocks) + ENTRIES


class Page:
    """The functions of the page on an emulated card."""

    def __init__(self, kind: Kind, workdir: Path, text: str) -> None:
        self.library = EmulatedLibrary([], workdir, kind, sources={"page.cc": text})

    def run(self, name: str, *arguments: np.ndarray | int) -> None:
        """Call a function; the last array is its result."""
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        self.library.use()
        self.library.forget_buffers()
        for i, array in enumerate(arrays):
            role = "result" if array is arrays[-1] else "operand"
            self.library.buffer(array.ctypes.data, array.nbytes, role, i)
        message = ctypes.create_string_buffer(512)
        values = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_int64(a) for a in arguments]
        if getattr(self.library.lib, f"run_{name}")(message, *values) != 0:
            raise RuntimeError(message.value.decode())


def aligned(values: np.ndarray) -> np.ndarray:
    """A copy that begins on 16 bytes."""
    room = np.zeros(values.nbytes + 16, np.uint8)
    first = -room.ctypes.data % 16
    made = room[first : first + values.nbytes].view(values.dtype).reshape(values.shape)
    made[...] = values
    return made


@pytest.mark.parametrize("kind", ["cuda", "rocm"])
def test_the_kernels_of_the_page(kind: Kind, tmp_path: Path) -> None:
    page, random = Page(kind, tmp_path, source()), np.random.default_rng(0)

    x, y = random.standard_normal(300).astype(np.float32), np.empty(300, np.float32)
    page.run("double_all", x, y, 300)
    assert (y == 2 * x).all()

    h, g = random.standard_normal(300).astype(np.float16), np.empty(300, np.float16)
    page.run("triple_all", h, g, 300)
    assert (g == (3 * h.astype(np.float32)).astype(np.float16)).all()

    wide, bias = random.standard_normal((7, 40)).astype(np.float32), random.standard_normal(33).astype(np.float32)
    total = np.empty((7, 33), np.float32)
    page.run("add_bias", wide, bias, total, 7, 33, 40)
    assert (total == wide[:, :33] + bias).all()

    h, g = aligned(random.standard_normal(2048).astype(np.float16)), aligned(np.empty(2048, np.float16))
    page.run("square_all", h, g, 2048)
    assert (g == (h.astype(np.float32) ** 2).astype(np.float16)).all()

    rows, centred = random.standard_normal((5, 301)).astype(np.float16), np.empty((5, 301), np.float16)
    page.run("centre_rows", rows, centred, 5, 301)
    wanted = rows.astype(np.float64) - rows.astype(np.float64).mean(1, keepdims=True)
    np.testing.assert_allclose(centred, wanted, atol=2e-3)

    empty = np.empty(1, np.float32)
    page.run("double_all", empty, empty.copy(), 0)


def test_a_kernel_that_does_not_wait_is_found(tmp_path: Path) -> None:
    page = Page("cuda", tmp_path, source().replace("  wait_for_previous();\n", ""))
    with pytest.raises(RuntimeError, match=r"centre_kernel.*wait_for_previous"):
        page.run("centre_rows", np.ones((5, 8), np.float16), np.empty((5, 8), np.float16), 5, 8)
