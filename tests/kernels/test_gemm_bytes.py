"""Products of integers of 8 bits on the CPU: signs, the ends of the ranges, panels, and processors of other instruction sets."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ait_mlir.host.cpu import instruction_sets
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target

Array = np.ndarray[Any, Any]
NEEDS = {"x86-64-v3": {"avx2", "fma", "bmi2"}, "x86-64-v4": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}}
KINDS = {"s": np.int8, "u": np.uint8}
SOURCE = """\
#include "ait/math.h"
#include "ait/kernels/cpu/gemm_bytes.h"
#include "ait/pack_panels.h"

static int32_t fail(void*, const char*) { return 1; }

/// [batch, m, k] by [n, k] or [k, n], whose rows are one behind the other; `packed`: from panels.
template <class A, class B>
int32_t multiply(int64_t batch, int64_t m, int64_t n, int64_t k, int32_t rows, int32_t packed, const A* a, const B* b, B* panels, int32_t* d) {
  const ait_host_v1 host{nullptr, fail};
  const ait::Context ctx{nullptr, &host};
  using namespace ait::cpu;
  const GemmShape shape{m, n, k, 1, batch};
  const Matrices<const A> x{a, k, 1, 0, m * k};
  const Matrices<int32_t> y{d, n, 1, 0, m * n};
  if (!packed) return gemm_bytes<NoEpilogue>(ctx, shape, x, Matrices<const B>{b, rows ? 1 : n, rows ? k : 1}, y, operands());
  if (rows) {
    ait::pack_panels_nk<B>(b, 0, n / 2, k, n, panels);
    ait::pack_panels_nk<B>(b + n / 2 * k, n / 2, n - n / 2, k, n, panels);
  } else {
    ait::pack_panels_kn<B>(b, 0, k / 2, k, n, panels);
    ait::pack_panels_kn<B>(b + k / 2 * n, k / 2, k - k / 2, k, n, panels);
  }
  return gemm_bytes_packed<NoEpilogue>(ctx, shape, x, const_cast<const B*>(panels), y, operands());
}
#define PRODUCT(name, A, B)                                                                                                          \\
  extern "C" int32_t name(int64_t batch, int64_t m, int64_t n, int64_t k, int32_t rows, int32_t packed, const A* a, const B* b, B* panels, \\
                          int32_t* d) {                                                                                              \\
    return multiply<A, B>(batch, m, n, k, rows, packed, a, b, panels, d);                                                            \\
  }
PRODUCT(ss, int8_t, int8_t)
PRODUCT(su, int8_t, uint8_t)
PRODUCT(us, uint8_t, int8_t)
PRODUCT(uu, uint8_t, uint8_t)
"""


@pytest.fixture(scope="module", params=["native", "x86-64-v4", "x86-64-v3", "x86-64"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if not NEEDS.get(request.param, set()) <= instruction_sets():
        pytest.skip(f"this processor does not run code for {request.param}")
    path = build_library({"bytes.cc": SOURCE}, Target("cpu", request.param), str(tmp_path_factory.mktemp("bytes")))
    return ctypes.CDLL(str(path))


def multiply(library: Any, signs: str, a: Array, b: Array, rows: bool, packed: bool) -> Array:
    batch, m, k = a.shape
    n = b.shape[0] if rows else b.shape[1]
    panels = np.full((-(-n // 48) * 48, -(-k // 4) * 4), 0x5B, KINDS[signs[1]])
    d = np.full((batch, m, n), -1, np.int32)
    sizes = [ctypes.c_int64(x) for x in (batch, m, n, k)]
    arrays = [ctypes.c_void_p(x.ctypes.data) for x in (a, b, panels, d)]
    assert getattr(library, signs)(*sizes, int(rows), int(packed), *arrays) == 0
    return d


def exact(a: Array, b: Array, rows: bool) -> Array:
    return a.astype(np.int64) @ (b.astype(np.int64).T if rows else b.astype(np.int64))


def whole(shape: tuple[int, ...], sign: str) -> Array:
    info = np.iinfo(KINDS[sign])
    return np.random.default_rng(len(shape)).integers(info.min, info.max + 1, shape).astype(KINDS[sign])


@pytest.mark.parametrize("signs", ["ss", "su", "us", "uu"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("batch", "m", "n", "k"),
    [(1, 1, 1, 1), (1, 1, 130, 64), (2, 70, 49, 67), (1, 9, 48, 3), (1, 300, 100, 260), (1, 3, 7, 0), (1, 5, 97, 800)],
)
def test_sums_are_exact(library: Any, signs: str, packed: bool, batch: int, m: int, n: int, k: int) -> None:
    for rows in (True, False):
        a, b = whole((batch, m, k), signs[0]), whole((n, k) if rows else (k, n), signs[1])
        np.testing.assert_array_equal(multiply(library, signs, a, b, rows, packed), exact(a, b, rows))


@pytest.mark.parametrize("signs", ["ss", "su", "us", "uu"])
@pytest.mark.parametrize("end", [np.min, np.max])
def test_the_ends_of_the_ranges_do_not_saturate(library: Any, signs: str, end: Callable[[Any], int]) -> None:
    """Instructions of 16 bits would saturate at two products of the least numbers, or of 255 and 127."""
    values = [end([np.iinfo(KINDS[s]).min, np.iinfo(KINDS[s]).max]) for s in signs]
    a, b = (np.full((1, 4, 96)[i:], v, KINDS[s]) for i, (v, s) in enumerate(zip(values, signs, strict=True)))
    np.testing.assert_array_equal(multiply(library, signs, a, b, True, False), exact(a, b, True))


def test_sums_wrap(library: Any) -> None:
    """Sums beyond 32 bits keep their low bits."""
    a, b = np.full((1, 1, 140_000), -128, np.int8), np.full((1, 140_000), -128, np.int8)
    wrapped = exact(a, b, True).astype(np.int32)
    np.testing.assert_array_equal(multiply(library, "ss", a, b, True, False), wrapped)
    assert wrapped[0, 0, 0] < 0
