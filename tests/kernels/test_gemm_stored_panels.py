"""Products with stored weights in panels on the CPU: bits, signs, groups, zero points, and processors of other instruction sets."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from ait_mlir.host.cpu import instruction_sets
from ait_mlir.importers.checkpoints.stored import packed
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target
from tests.kernels.test_gemm_bytes import NEEDS

SOURCE = """\
#include "ait/math.h"
#include "ait/kernels/cpu/gemm_stored_panels.h"
#include "ait/pack_panels.h"

static int32_t fail(void*, const char*) { return 1; }

/// [m, k] by [n, k], whose numbers lie in `bytes` bytes a row and go into panels.
template <int kBits, class T>
int32_t multiply(int64_t m, int64_t n, int64_t k, int64_t group, int32_t is_signed, const T* a, const uint8_t* b, const float* scale,
                 const uint8_t* zero, uint8_t* panels, float* d) {
  const ait_host_v1 host{nullptr, fail};
  const ait::Context ctx{nullptr, &host};
  using namespace ait::cpu;
  const int64_t bytes = kBits == 8 ? k : (k + 1) / 2;
  ait::pack_panels_nk<uint8_t>(b, 0, n, bytes, n, panels);
  const ait::StoredMatrix<kBits, float, uint8_t> weight{panels, scale, zero, bytes, (k + group - 1) / group, group, is_signed != 0};
  return gemm_stored_panels<NoEpilogue>(ctx, GemmShape{m, n, k}, Matrices<const T>{a, k, 1}, weight, Matrices<float>{d, n, 1}, operands());
}
#define PRODUCT(name, kBits, T)                                                                                                           \\
  extern "C" int32_t name(int64_t m, int64_t n, int64_t k, int64_t group, int32_t is_signed, const T* a, const uint8_t* b, const float* s, \\
                          const uint8_t* z, uint8_t* panels, float* d) {                                                                  \\
    return multiply<kBits, T>(m, n, k, group, is_signed, a, b, s, z, panels, d);                                                          \\
  }
PRODUCT(four, 4, float)
PRODUCT(eight, 8, float)
PRODUCT(narrow, 4, ait::half)
"""


@pytest.fixture(scope="module", params=["native", "x86-64-v3", "x86-64"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if not NEEDS.get(request.param, set()) <= instruction_sets():
        pytest.skip(f"this processor does not run code for {request.param}")
    path = build_library({"stored.cc": SOURCE}, Target("cpu", request.param), str(tmp_path_factory.mktemp("stored")))
    return ctypes.CDLL(str(path))


@pytest.mark.parametrize("name", ("four", "eight", "narrow"))
@pytest.mark.parametrize(
    ("m", "n", "k", "group"), ((1, 5, 7, 7), (9, 49, 200, 8), (70, 96, 193, 400), (260, 3, 16, 16), (0, 4, 8, 8), (3, 2, 0, 8))
)
@pytest.mark.parametrize("is_signed", (True, False))
def test_against_the_values(library: Any, name: str, m: int, n: int, k: int, group: int, is_signed: bool) -> None:
    random, bits = np.random.default_rng(m + k), 8 if name == "eight" else 4
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if is_signed else (0, 2**bits)
    numbers = random.integers(low, high, (n, k))
    groups = -(-k // group)
    scale = random.random((n, groups)).astype(np.float32)
    zero = None if is_signed else random.integers(0, high, (n, groups)).astype(np.uint8)
    a = random.standard_normal((m, k)).astype(np.float16 if name == "narrow" else np.float32)
    spread = np.arange(k) // group
    values = (numbers - (0 if zero is None else zero.astype(np.int64)[:, spread])) * scale.astype(np.float64)[:, spread]
    stored = numbers.astype(np.int8).view(np.uint8) if bits == 8 else packed(numbers)
    panels = np.full((-(-n // 48) * 48, -(-max(stored.shape[1], 1) // 4) * 4), 0x5B, np.uint8)
    d = np.full((m, n), np.nan, np.float32)
    pointers = [None if x is None else ctypes.c_void_p(x.ctypes.data) for x in (a, np.ascontiguousarray(stored), scale, zero, panels, d)]
    assert getattr(library, name)(*map(ctypes.c_int64, (m, n, k, group)), int(is_signed), *pointers) == 0
    want = a.astype(np.float64) @ values.T
    terms = np.abs(a.astype(np.float64)) @ np.abs(values).T
    assert (np.abs(d - want) <= 1e-6 * terms + 1e-30).all()
