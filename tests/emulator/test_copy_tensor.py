"""The copy of a caller's tensor (`copy_tensor.cuh`): layouts of both sides, widths of elements, copies in parts."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from tests import tiers
from tests.emulator.corpus import KINDS
from tests.emulator.library import EmulatedLibrary, Kind, extent_bytes
from tests.kernels.harness import PRELUDE

WORDS = (np.uint8, np.uint16, np.uint32, np.uint64)
IN_PARTS = 500
"""The most elements of a launch where a copy has parts; as shipped, 2^31 - 1."""
SOURCE = (
    PRELUDE
    + '#include "ait/kernels/gpu/copy_tensor.cuh"\n'
    + "".join(
        f'extern "C" int32_t {name}_{bytes}(void* to, const void* from, int rank, const int64_t* sizes, char* message) {{\n'
        "  const ait_host_v1 host = {message, test_fail};\n"
        f"  const ait_copy_v1 copy{{to, from, rank, {bytes}, sizes, sizes + rank, sizes + 2 * rank}};\n"
        f"  return ait::gpu::copy_tensor<{bytes}{most}>(ait::Context{{nullptr, &host}}, copy);\n}}\n"
        for name, bytes, most in (*(("whole", bytes, "") for bytes in (1, 2, 4, 8)), ("parts", 2, f", {IN_PARTS}"))
    )
)
EVERYTHING = slice(None)
LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[slice, ...], tuple[int, ...]]] = {
    # the shape of memory, the part of it that is the tensor, the order of its dims in the tensor
    "rows on boundaries": ((6, 64), (EVERYTHING, slice(0, 32)), (0, 1)),
    "rows off boundaries": ((5, 301), (EVERYTHING, slice(1, 300)), (0, 1)),
    "short rows off boundaries": ((40, 9), (EVERYTHING, slice(3, 8)), (0, 1)),
    "every other element": ((7, 50), (EVERYTHING, slice(0, 50, 2)), (0, 1)),
    "channels last": ((2, 8, 8, 3), (EVERYTHING,) * 4, (0, 3, 1, 2)),
    "turned": ((64, 160), (EVERYTHING,) * 2, (1, 0)),
    "turned off boundaries": ((65, 161), (slice(1, None), slice(1, None)), (1, 0)),
    "no element": ((0, 3), (EVERYTHING,) * 2, (1, 0)),
    "one element": ((1,), (EVERYTHING,), (0,)),
}


@pytest.mark.parametrize("kind", tiers.params(KINDS, ["cuda"]))
def test_a_copy_has_the_elements_of_the_tensor(kind: Kind, tmp_path: Path) -> None:
    library = EmulatedLibrary([], tmp_path, kind, sources={"copies.cc": SOURCE})
    rng = np.random.default_rng(0)
    for name, (shape, part, order) in LAYOUTS.items():
        for word in WORDS:
            memory = rng.integers(0, np.iinfo(word).max, shape, word, endpoint=True)
            tensor = memory[part].transpose(order)
            for function in ("whole", "parts") if word is np.uint16 else ("whole",):
                for back in (False, True):
                    given = np.ascontiguousarray(tensor) if back else tensor
                    found = np.zeros_like(memory)[part].transpose(order) if back else np.zeros(tensor.shape, word)
                    copy(library, f"{function}_{found.itemsize}", given, found)
                    np.testing.assert_array_equal(found, tensor, err_msg=f"{name}, {word.__name__}, {function}, {back}")
    library.note_executed()
    kernels = {kernel for kernel in library.executed if "copy" in kernel}
    assert any("copy_squares" in k for k in kernels) and any("copy_few" in k for k in kernels), kernels


def copy(library: EmulatedLibrary, function: str, given: np.ndarray, found: np.ndarray) -> None:
    library.use()
    library.forget_buffers()
    for i, view in enumerate((given, found)):
        library.buffer(view.ctypes.data, extent_bytes(view), "updated" if view is found else "operand", i)
    strides = [[s // view.itemsize for s in view.strides] for view in (found, given)]
    sizes = (ctypes.c_int64 * (3 * given.ndim))(*given.shape, *strides[0], *strides[1])
    message = ctypes.create_string_buffer(512)
    places = (ctypes.c_void_p(found.ctypes.data), ctypes.c_void_p(given.ctypes.data))
    assert library.lib[function](*places, given.ndim, sizes, message) == 0, message.value.decode()
