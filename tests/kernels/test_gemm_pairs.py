"""Products of bf16 in pairs: all shapes, beside f64; the same on processors that add up pairs and on those that do not."""

from __future__ import annotations

import ctypes
import platform
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target

Array = np.ndarray[Any, Any]
SOURCE = """\
#define AIT_CPU_PAIRS @PAIRS@
#include "ait/math.h"
#include "ait/kernels/cpu/gemm_packed.h"
#include "ait/pack_panels.h"

struct Bias {
  static AIT_FN void apply(float acc, float bias, float& out) { out = acc + bias; }
};
static int32_t fail(void*, const char*) { return 1; }

extern "C" int32_t in_pairs() { return std::is_same_v<ait::cpu::RowElement<ait::bfloat16>, ait::cpu::Pair>; }

/// [batch, m, k] by [n, k] transposed, which is packed into `panels` first, plus bias [n]; strides in numbers.
extern "C" int32_t product(int64_t batch, int64_t m, int64_t n, int64_t k, const ait::bfloat16* a, int64_t row, const ait::bfloat16* b,
                           ait::bfloat16* panels, const float* bias, ait::bfloat16* d) {
  ait::pack_panels_nk(b, 0, n, k, n, panels);
  const ait_host_v1 host{nullptr, fail};
  const ait::Context ctx{nullptr, &host};
  using namespace ait::cpu;
  return gemm_packed<Bias>(ctx, {m, n, k, 1, batch}, Matrices<const ait::bfloat16>{a, row, 1, 0, m * row}, panels,
                           Matrices<ait::bfloat16>{d, n, 1, 0, m * n}, operands(Matrices<const float>{bias, 0, 1}));
}
"""
COLUMNS = 48
"""Of a panel."""


def library(pairs: int, arch: str, folder: Any) -> Any:
    source = SOURCE.replace("@PAIRS@", str(pairs))
    return ctypes.CDLL(str(build_library({"pairs.cc": source}, Target("cpu", arch), str(folder))))


@pytest.fixture(scope="module", params=["native", "x86-64"])
def paired(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Registers of this processor, with its instruction if it has one, and of 16 bytes."""
    if request.param != "native" and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("names an x86 processor")
    return library(1, request.param, tmp_path_factory.mktemp("pairs"))


def pointer(x: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def multiply(lib: Any, a: Array, b: Array, bias: Array, k: int) -> Array:
    batch, m, row = a.shape
    n = b.shape[0]
    panels = np.empty(-(-n // COLUMNS) * COLUMNS * k + 1, ml_dtypes.bfloat16)
    d = np.full((batch, m, n), np.nan, ml_dtypes.bfloat16)
    sizes = [ctypes.c_int64(x) for x in (batch, m, n, k)]
    assert not lib.product(
        *sizes, pointer(a), ctypes.c_int64(row), pointer(b), pointer(panels), pointer(bias), pointer(d)
    )
    return d


def operands(batch: int, m: int, n: int, k: int, gap: int = 0) -> tuple[Array, Array, Array]:
    """Random numbers; what lies between the rows of a is NaN."""
    rng = np.random.default_rng(m + 7 * n + 31 * k)
    a = np.full((batch, m, k + gap), np.nan, ml_dtypes.bfloat16)
    a[:, :, :k] = rng.standard_normal((batch, m, k)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((n, k)).astype(ml_dtypes.bfloat16)
    return a, b, rng.standard_normal(n).astype(np.float32)


@pytest.mark.parametrize("k", [1, 2, 3, 31, 32, 33, 191, 192, 193, 385, 1000])
@pytest.mark.parametrize(
    ("batch", "m", "n"), [(1, 1, 1), (2, 5, 49), (1, 9, 130), (1, 70, 96), (3, 33, 16), (1, 300, 47)]
)
def test_products(paired: Any, batch: int, m: int, n: int, k: int) -> None:
    a, b, bias = operands(batch, m, n, k, gap=3)
    d = multiply(paired, a, b, bias, k).astype(np.float64)
    wide_a, wide_b = a[:, :, :k].astype(np.float64), b.astype(np.float64)
    exact = wide_a @ wide_b.T + bias
    sizes = np.abs(wide_a) @ np.abs(wide_b).T + np.abs(bias)
    assert np.all(np.abs(d - exact) <= np.abs(exact) * 2**-8 + sizes * 2**-20)


def test_infinities_and_nan(paired: Any) -> None:
    """In one row they stay there, in the even and in the odd places, and the zero beside an odd last one does nothing."""
    a, b, bias = operands(1, 20, 50, 33)
    a[0, 3, 4], a[0, 5, 7], a[0, 7, 32] = np.inf, np.nan, -np.inf
    b[b == 0] = 1
    finite = np.isfinite(multiply(paired, a, b, bias, 33).astype(np.float32)).all(axis=2)[0]
    assert list(np.flatnonzero(~finite)) == [3, 5, 7]


def test_rows_are_pairs_only_where_that_is_faster(tmp_path: Any) -> None:
    one, other = library(0, "native", tmp_path / "0"), library(1, "native", tmp_path / "1")
    assert (one.in_pairs(), other.in_pairs()) == (0, 1)
    a, b, bias = operands(1, 40, 100, 257)
    apart = multiply(one, a, b, bias, 257).astype(np.float32) - multiply(other, a, b, bias, 257).astype(np.float32)
    assert np.abs(apart).max() <= 2**-8 * 64  # one unit in the last place of the largest sums
