"""How weights are stored in panels: every element at its place, zeros behind the last column."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

from ait_mlir.lowering.toolchain import cpp_root, find_cxx

SOURCE = """
#include "ait/pack_panels.h"
#ifdef BACKWARDS
const ait_threads_service_v1 kThreads{[]() -> int32_t { return 3; }, [](auto chunk, const void* self, int64_t chunks) {
  while (chunks-- > 0) chunk(self, chunks);
}};
const bool set = (ait::detail::needed_service<ait_threads_service_v1>.entry.table = &kThreads, true);
#endif
#define AIT_PACK(T)                                                                                                            \\
  extern "C" void kn_##T(const T* from, int64_t first, int64_t rows, int64_t k, int64_t n, T* to) {                          \\
    ait::pack_panels_kn(from, first, rows, k, n, to);                                                                         \\
  }                                                                                                                           \\
  extern "C" void nk_##T(const T* from, int64_t first, int64_t rows, int64_t k, int64_t n, T* to) {                          \\
    ait::pack_panels_nk(from, first, rows, k, n, to);                                                                         \\
  }
AIT_PACK(uint16_t)
AIT_PACK(uint32_t)
AIT_PACK(uint64_t)
"""
DTYPES = {"uint16_t": np.uint16, "uint32_t": np.uint32, "uint64_t": np.uint64}


@pytest.fixture(scope="module", params=["", "-DBACKWARDS"], ids=["serial", "in chunks"])
def packing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("packing")
    (folder / "packing.cc").write_text(SOURCE)
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", *request.param.split(), "-I", str(cpp_root() / "include")]
    command = [str(find_cxx()), *flags, str(folder / "packing.cc"), "-o", str(folder / "packing.so")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "packing.so"))


def panels(matrix: np.ndarray, columns: int) -> np.ndarray:
    """A [k, n] matrix in panels, as `ait/panels.h` says."""
    k, n = matrix.shape
    wide = np.zeros((k, -(-n // columns) * columns), matrix.dtype)
    wide[:, :n] = matrix
    return np.concatenate([wide[:, i : i + columns].ravel() for i in range(0, wide.shape[1], columns)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("k", "n"), [(1, 1), (16, 48), (32, 96), (64, 50), (33, 47), (100, 145), (129, 24), (7, 200)])
def test_every_element_is_at_its_place(packing: ctypes.CDLL, dtype: str, k: int, n: int) -> None:
    columns = 192 // max(4, np.dtype(DTYPES[dtype]).itemsize)
    matrix = np.random.default_rng(0).integers(1, 2**16, (k, n)).astype(DTYPES[dtype])
    want = panels(matrix, columns)

    def packed(name: str, value: np.ndarray, extent: int, parts: list[int]) -> np.ndarray:
        """`value` packed in parts of these rows."""
        room = np.full(want.size + 64, 7, DTYPES[dtype])
        first = 0
        for rows in parts:
            part = np.ascontiguousarray(value[first : first + rows])
            sizes = map(ctypes.c_int64, (first, rows, k, n))
            getattr(packing, f"{name}_{dtype}")(
                ctypes.c_void_p(part.ctypes.data), *sizes, ctypes.c_void_p(room.ctypes.data)
            )
            first += rows
        assert first == extent and (room[want.size :] == 7).all()
        return room[: want.size]

    for parts in ([1.0], [0.3, 0.7], [0.5, 0.1, 0.4]):
        for name, value in (("nk", np.ascontiguousarray(matrix.T)), ("kn", matrix)):
            extent = value.shape[0]
            ends = [round(sum(parts[: i + 1]) * extent) for i in range(len(parts))]
            sizes = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
            np.testing.assert_array_equal(packed(name, value, extent, [s for s in sizes if s]), want)
