"""The gemm of f32 on the matrix unit: planes, products of all shapes, and numbers that planes do not stand for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target
from ait_mlir.runtime.loading import runtime_library

Array = np.ndarray[Any, Any]
EPSILON = 2.0**-24

SOURCE = """\
#include <string.h>
#include "ait/math.h"
#include "ait/kernels/cpu/gemm_packed.h"
#include "ait/pack_panels.h"

struct Bias {
  static AIT_FN void apply(float acc, float bias, float& out) { out = acc + bias; }
};
static int32_t fail(void*, const char*) { return 1; }
static void use_amx(int32_t wanted) {
  static const ait_amx_service_v1 yes{[]() -> int32_t { return 1; }, nullptr}, no{[]() -> int32_t { return 0; }, nullptr};
  for (ait_service_v1* s = ait::needed_services(); s != nullptr; s = s->next) s->table = s->name[0] == 'a' ? (wanted ? &yes : &no) : nullptr;
}

extern "C" int64_t panel_floats(int64_t n, int64_t k) { return (n + 47) / 48 * 48 * k; }

extern "C" void pack(const float* from, int64_t n, int64_t k, int32_t transposed, float* to) {
  if (transposed) {
    ait::pack_panels_nk<float>(from, 0, n, k, n, to);
  } else {
    ait::pack_panels_kn<float>(from, 0, k, k, n, to);
  }
}

/// [batch, m, k] by [k, n], strides of a and d in floats.
extern "C" int32_t product(int32_t amx, int64_t batch, int64_t m, int64_t n, int64_t k, const float* a, int64_t row, const float* panels,
                           const float* bias, float* d, int64_t row_d, int64_t col_d) {
  use_amx(amx);
  const ait_host_v1 host{nullptr, fail};
  const ait::Context ctx{nullptr, &host};
  using namespace ait::cpu;
  return gemm_packed<Bias>(ctx, {m, n, k, 1, batch}, Matrices<const float>{a, row, 1, 0, m * row}, panels,
                           Matrices<float>{d, row_d, col_d, 0, m * n}, operands(Matrices<const float>{bias, 0, 1}));
}

/// Cuts 32 numbers into planes of bits, in the order of the numbers; returns whether they stand for them.
extern "C" int32_t planes(const float* from, uint16_t* to) {
#ifdef AIT_CPU_AMX
  char steps[ait::cpu::amx::kStepBytes];
  const uint32_t most = ait::cpu::detail::cut_row(from, 32, 1, steps);
  for (int p = 0; p < 3; ++p) {
    for (int i = 0; i < 32; ++i) memcpy(to + p * 32 + i, steps + p * 1024 + i % 16 * 4 + i / 16 * 2, 2);
  }
  return ait::cpu::amx::fits_planes(most);
#else
  return -1;
#endif
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = build_library({"amx.cc": SOURCE}, Target("cpu", "native"), str(tmp_path_factory.mktemp("amx")))
    library = ctypes.CDLL(str(path))
    library.panel_floats.restype = ctypes.c_int64
    return library


@pytest.fixture
def amx() -> None:
    if not runtime_library("cpu").may_use_amx():
        pytest.skip("needs a processor with AMX (amx_tile, amx_bf16) and a kernel that permits it")


def address(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def multiply(library: Any, x: Array, w: Array, bias: Array, *, amx: bool = True, transposed: bool = False) -> Array:
    """x [batch, m, k] by w [k, n], plus bias [n]."""
    batch, m, k = x.shape
    n = w.shape[1]
    size = ctypes.c_int64
    panels = np.full(max(1, library.panel_floats(size(n), size(k))), np.nan, np.float32)
    stored = np.ascontiguousarray(w.T if transposed else w)
    library.pack(address(stored), size(n), size(k), int(transposed), address(panels))
    out = np.full((batch, m, n), np.nan, np.float32)
    row = x.strides[1] // 4 if m > 1 else k
    assert batch == 1 or x.strides[0] == m * x.strides[1]
    status = library.product(
        int(amx),
        *(size(v) for v in (batch, m, n, k)),
        address(x),
        size(row),
        address(panels),
        address(bias),
        address(out),
        size(n),
        size(1),
    )
    assert status == 0
    return out


def error_limit(x: Array, w: Array, bias: Array) -> Array:
    """A few ulps of the sum of the magnitudes: what f32 products, added up in blocks, keep to."""
    total = np.abs(x.astype(np.float64)) @ np.abs(w.astype(np.float64)) + np.abs(bias)
    return (8 + np.sqrt(x.shape[-1])) * EPSILON * total


def check(library: Any, x: Array, w: Array, bias: Array, **how: bool) -> None:
    found = multiply(library, x, w, bias, **how)
    exact = x.astype(np.float64) @ w.astype(np.float64) + bias
    assert found.shape == exact.shape
    assert np.all(np.abs(found - exact) <= error_limit(x, w, bias))


def numbers(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.usefixtures("amx")
@pytest.mark.parametrize("scale", [2.0**-102, 1e-20, 1.0, 1e20, 1e38])
def test_planes_add_up_exactly(library: Any, scale: float) -> None:
    """Three numbers of bf16 are the number, down to its last bit."""
    x = numbers((32,), 3) * np.float32(scale)
    x = np.where(np.abs(x) < 2.0**-102, np.float32(scale), x)
    x[:4] = [0.0, -0.0, np.finfo(np.float32).max if scale > 1 else 1, -1]
    bits = np.zeros((3, 32), np.uint16)
    assert library.planes(address(x), address(bits)) == 1
    parts = (bits.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(parts.astype(np.float64).sum(axis=0), x.astype(np.float64))
    assert np.all((parts == 0) | (np.abs(parts) >= 2.0**-126))


@pytest.mark.usefixtures("amx")
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_planes_do_not_stand_for(library: Any, odd: float) -> None:
    bits = np.zeros((3, 32), np.uint16)
    x = numbers((32,))
    x[17] = odd
    assert library.planes(address(x), address(bits)) == 0
    small = np.full(32, 2.0**-103, np.float32)
    assert library.planes(address(small), address(bits)) == 0
    small[5] = 1
    assert library.planes(address(small), address(bits)) == 1
    assert library.planes(address(np.zeros(32, np.float32)), address(bits)) == 1


SHAPES = [  # at most 32 rows are left to the vector unit
    (32, 49, 31),
    (33, 1, 1),
    (33, 16, 64),
    (34, 48, 32),
    (48, 96, 100),
    (49, 47, 33),
    (49, 97, 767),
    (100, 200, 768),
    (64, 33, 769),
    (257, 130, 63),
    (300, 96, 1),
    (40, 240, 1601),
    (513, 20, 40),
]


@pytest.mark.usefixtures("amx")
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
def test_products(library: Any, m: int, n: int, k: int, transposed: bool) -> None:
    for batch in (1, 3):
        check(library, numbers((batch, m, k)), numbers((k, n), 1), numbers((n,), 2), transposed=transposed)


@pytest.mark.usefixtures("amx")
def test_sizes_of_nothing(library: Any) -> None:
    for batch, m, n, k in ((1, 0, 5, 7), (0, 40, 5, 7), (1, 40, 0, 7), (1, 40, 5, 0)):
        x, w, bias = numbers((batch, m, k)), numbers((k, n)), numbers((n,))
        np.testing.assert_array_equal(multiply(library, x, w, bias), x @ w + bias)


@pytest.mark.usefixtures("amx")
def test_rows_apart(library: Any) -> None:
    """Rows of `a` that lie in a larger matrix; what is beside them is never used."""
    whole = np.full((70, 120), np.nan, np.float32)
    whole[:, 8:85] = numbers((70, 77))
    check(library, whole[None, :, 8:85], numbers((77, 60), 1), numbers((60,), 2))


@pytest.mark.usefixtures("amx")
def test_it_is_the_matrix_unit(library: Any) -> None:
    """Both candidates are there: their sums differ, by rounding."""
    x, w, bias = numbers((1, 64, 512)), numbers((512, 96), 1), numbers((96,), 2)
    candidates = [multiply(library, x, w, bias, amx=unit) for unit in (True, False)]
    assert not np.array_equal(candidates[0], candidates[1])
    exact = x.astype(np.float64) @ w.astype(np.float64) + bias
    rmse = [float(np.sqrt(np.mean((candidate - exact) ** 2))) for candidate in candidates]
    assert rmse[0] <= 1.5 * rmse[1]


def with_specials(array: Array, places: list[tuple[int, ...]]) -> Array:
    values = [np.inf, -np.inf, np.nan, np.inf, 1e-45, -0.0]
    for place, value in zip(places, values, strict=False):
        array[place] = value
    return array


SPECIAL: dict[str, Callable[[], tuple[Array, Array]]] = {
    "rows": lambda: (
        with_specials(numbers((1, 80, 70)), [(0, 3, 0), (0, 20, 69), (0, 21, 5), (0, 79, 1)]),
        numbers((70, 130), 1),
    ),
    "columns": lambda: (
        numbers((1, 80, 70)),
        with_specials(numbers((70, 130), 1), [(0, 0), (69, 50), (3, 51), (4, 129)]),
    ),
    "zeros": lambda: (np.zeros((1, 80, 70), np.float32), with_specials(numbers((70, 130), 1), [(0, 0), (69, 50)])),
    "deep": lambda: (with_specials(numbers((1, 40, 1600)), [(0, 3, 0), (0, 20, 1599)]), numbers((1600, 50), 1)),
}


@pytest.mark.usefixtures("amx")
@pytest.mark.parametrize("where", SPECIAL)
def test_infinities_and_nan(library: Any, where: str) -> None:
    """They spread to their rows and columns as in f32, and nowhere else."""
    x, w = SPECIAL[where]()
    bias = numbers((w.shape[1],), 2)
    found, vector = (multiply(library, x, w, bias, amx=unit) for unit in (True, False))
    usual = np.isfinite(vector)
    assert 0 < usual.sum() < usual.size
    np.testing.assert_array_equal(found[~usual], vector[~usual])
    limit = error_limit(np.nan_to_num(x, posinf=0, neginf=0), np.nan_to_num(w, posinf=0, neginf=0), bias)
    assert np.all(np.abs(found[usual] - vector[usual]) <= 2 * limit[usual])


@pytest.mark.usefixtures("amx")
@pytest.mark.parametrize(("low", "high"), [(-60, 60), (-100, 20), (-126, 0), (-149, -100), (60, 63)])
def test_ranges(library: Any, low: int, high: int) -> None:
    """Numbers of very different magnitude, subnormal ones among them, against rows and columns of moderate size."""
    rng = np.random.default_rng(4)
    x = np.ldexp(rng.standard_normal((1, 70, 90)), rng.integers(low, high + 1, (1, 70, 90))).astype(np.float32)
    x[0, 5] *= np.float32(0)
    w = numbers((90, 110), 1)
    check(library, x, w, np.zeros(110, np.float32))
    check(library, numbers((1, 70, 90), 1), x[0, :, :].T.copy(), np.zeros(70, np.float32))


@pytest.mark.usefixtures("amx")
def test_overflow(library: Any) -> None:
    """Products beyond f32 are infinite, of the right sign."""
    x, w = np.full((1, 40, 64), 1e30, np.float32), np.full((64, 50), -1e30, np.float32)
    assert np.all(multiply(library, x, w, np.zeros(50, np.float32)) == -np.inf)
