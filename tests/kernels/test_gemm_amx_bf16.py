"""The gemm of bf16 on the matrix unit: products of all shapes and strides, beside the same on the vector unit."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target
from ait_mlir.runtime.loading import runtime_library

Array = np.ndarray[Any, Any]
SOURCE = """\
#include "ait/math.h"
#include "ait/kernels/cpu/gemm.h"

struct Bias {
  static AIT_FN void apply(float acc, float bias, float& out) { out = acc + bias; }
};
static int32_t fail(void*, const char*) { return 1; }
static void use_amx(int32_t wanted) {
  static const ait_amx_service_v1 yes{[]() -> int32_t { return 1; }, nullptr}, no{[]() -> int32_t { return 0; }, nullptr};
  for (ait_service_v1* s = ait::needed_services(); s != nullptr; s = s->next) s->table = s->name[0] == 'a' ? (wanted ? &yes : &no) : nullptr;
}

/// [batch, m, k] by [batch, n, k] transposed, plus bias [n]; strides in numbers.
extern "C" int32_t product(int32_t amx, int64_t batch, int64_t m, int64_t n, int64_t k, const ait::bfloat16* a, int64_t row,
                           const ait::bfloat16* b, int64_t row_b, const float* bias, float* d) {
  use_amx(amx);
  const ait_host_v1 host{nullptr, fail};
  const ait::Context ctx{nullptr, &host};
  using namespace ait::cpu;
  return gemm<Bias>(ctx, {m, n, k, 1, batch}, Matrices<const ait::bfloat16>{a, row, 1, 0, m * row},
                    Matrices<const ait::bfloat16>{b, 1, row_b, 0, n * row_b}, Matrices<float>{d, n, 1, 0, m * n},
                    operands(Matrices<const float>{bias, 0, 1}));
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if not runtime_library("cpu").may_use_amx():
        pytest.skip("needs a processor with AMX (amx_tile, amx_bf16) and a kernel that permits it")
    folder = tmp_path_factory.mktemp("amx")
    return ctypes.CDLL(str(build_library({"bf16.cc": SOURCE}, Target("cpu", "native"), str(folder))))


def matrices(batch: int, rows: int, k: int, pitch: int, seed: int) -> Array:
    """Random numbers; what lies between the rows is NaN."""
    whole = np.full((batch, rows, pitch), np.nan, ml_dtypes.bfloat16)
    whole[:, :, :k] = np.random.default_rng(seed).standard_normal((batch, rows, k)).astype(ml_dtypes.bfloat16)
    return whole


def multiply(library: Any, a: Array, b: Array, bias: Array, k: int, amx: bool) -> Array:
    batch, m, row = a.shape
    n, row_b = b.shape[1:]
    out = np.full((batch, m, n), np.nan, np.float32)
    size, at = ctypes.c_int64, lambda array: ctypes.c_void_p(array.ctypes.data)
    sizes = [size(v) for v in (batch, m, n, k)]
    status = library.product(int(amx), *sizes, at(a), size(row), at(b), size(row_b), at(bias), at(out))
    assert status == 0
    return out


SHAPES = [
    (40, 16, 0),
    (9, 1, 1),
    (16, 32, 32),
    (17, 33, 31),
    (32, 31, 64),
    (33, 64, 33),
    (40, 16, 95),
    (64, 96, 256),
    (100, 130, 769),
    (700, 45, 1601),
]


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("gap", [0, 5])
def test_products(library: Any, m: int, n: int, k: int, gap: int) -> None:
    for batch in (1, 3):
        a, b = matrices(batch, m, k, k + gap, 0), matrices(batch, n, k, k + gap, 1)
        bias = np.random.default_rng(2).standard_normal(n).astype(np.float32)
        x, w = a[:, :, :k].astype(np.float64), b[:, :, :k].astype(np.float64).swapaxes(1, 2)
        found = multiply(library, a, b, bias, k, True)
        limit = (8 + np.sqrt(k)) * 2.0**-24 * (np.abs(x) @ np.abs(w) + np.abs(bias))
        assert np.all(np.abs(found - (x @ w + bias)) <= limit)


def test_it_is_the_matrix_unit(library: Any) -> None:
    a, b, bias = matrices(1, 64, 512, 512, 0), matrices(1, 96, 512, 512, 1), np.zeros(96, np.float32)
    assert not np.array_equal(*(multiply(library, a, b, bias, 512, unit) for unit in (True, False)))


def test_infinities_and_nan(library: Any) -> None:
    """They spread to their rows and columns as on the vector unit."""
    a, b, bias = matrices(1, 50, 70, 70, 0), matrices(1, 60, 70, 70, 1), np.zeros(60, np.float32)
    a[0, 3, 0], a[0, 20, 69], a[0, 49, 5], b[0, 7, 69], b[0, 59, 1] = np.inf, -np.inf, np.nan, np.inf, np.nan
    found, vector = (multiply(library, a, b, bias, 70, unit) for unit in (True, False))
    usual = np.isfinite(vector)
    assert 0 < usual.sum() < usual.size
    np.testing.assert_array_equal(found[~usual], vector[~usual])
    assert np.allclose(found[usual], vector[usual], rtol=1e-4, atol=1e-4)
