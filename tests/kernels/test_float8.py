"""The C++ of 8-bit floats and of 4 bits: every stored number, and every rounding, bit for bit."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ait_mlir.dialects.ait.dtypes import BY_NAME, Float8
from ait_mlir.lowering.build import build_library
from ait_mlir.reference.core import to_storage
from ait_mlir.rewrites.engine.numbers import stored
from tests.kernels.harness import CPU

NAMES = [name for name, row in BY_NAME.items() if isinstance(row.ir, Float8)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    source = (Path(__file__).parent / "float8.cc").read_text()
    return ctypes.CDLL(str(build_library({"float8.cc": source}, CPU, tmp_path_factory.mktemp("float8"))))


def numbers(name: str) -> np.ndarray[Any, Any]:
    """Each number of the type, the middle of each two neighbours, their neighbours in f32 and f64; and others."""
    finite = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name)).astype(np.float64)
    finite = np.unique(finite[np.isfinite(finite)])
    middles = np.append((finite[1:] + finite[:-1]) / 2, finite[-1] * (1 + 2.0 ** -np.arange(1, 8)))
    near = [np.nextafter(middles.astype(t), t(way)).astype(np.float64) for t in (np.float32, np.float64) for way in (-np.inf, np.inf)]
    random = np.random.default_rng(0).integers(0, 1 << 32, 4096, dtype=np.uint32).view(np.float32).astype(np.float64)
    return np.concatenate([finite, middles, *near, random, [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e-300]])


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], dtype: Any) -> None:
    """The same bits, but for those of NaN."""
    a, b = a.view(dtype).astype(np.float32), b.view(dtype).astype(np.float32)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)]))


@pytest.mark.parametrize("name", NAMES)
def test_every_stored_number_is_read(library: ctypes.CDLL, name: str) -> None:
    found = np.zeros(256, np.float32)
    library[f"read_{name}"](found.ctypes.data_as(ctypes.c_void_p))
    np.testing.assert_array_equal(found, np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name)).astype(np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_numbers_round_once(library: ctypes.CDLL, name: str) -> None:
    dtype, x = getattr(ml_dtypes, name), numbers(name)
    found = np.zeros(x.size, np.uint8)
    library[f"round_{name}"](x.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(x.size), found.ctypes.data_as(ctypes.c_void_p))
    same(found, to_storage(x, BY_NAME[name].ir).view(np.uint8), dtype)
    exact = x.astype(np.float32) == x  # ml_dtypes rounds f64 by way of f32
    with np.errstate(all="ignore"):
        same(found[exact], x[exact].astype(dtype).view(np.uint8), dtype)
    written = np.array([stored(float(n), BY_NAME[name].ir) for n in x])
    np.testing.assert_array_equal(written, found.view(dtype).astype(np.float64))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_pairs_saturate(library: ctypes.CDLL, name: str) -> None:
    largest = float(ml_dtypes.finfo(name).max)
    with np.errstate(over="ignore"):
        x = numbers(name).astype(np.float32)
    pairs = np.zeros(x.size, np.uint16)
    library[f"saturate_{name}"](x.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(x.size), pairs.ctypes.data_as(ctypes.c_void_p))
    want = to_storage(np.clip(x, -largest, largest).astype(np.float64), BY_NAME[name].ir).view(np.uint8)
    same((pairs & 255).astype(np.uint8), want, getattr(ml_dtypes, name))
    same((pairs >> 8).astype(np.uint8), want[::-1], getattr(ml_dtypes, name))


def quotients(library: ctypes.CDLL, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found = np.zeros(a.size, np.float32)
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (a, b, found)]
    library.divide(*pointers[:2], ctypes.c_int64(a.size), pointers[2])
    return found


def test_quotients_lie_on_the_side_of_the_exact_ones(library: ctypes.CDLL) -> None:
    """Of each number halfway between two 8-bit floats, an odd number below 32 times a power of 2. That this holds for all 2^23
    significands of the divisor was computed once; here it is for some of them, at several powers of 2."""
    random = np.random.default_rng(0)
    b = (1 + random.integers(0, 1 << 23, 3000) / 2.0**23) * 2.0 ** random.choice([-126, -100, -64, -9, 0, 64, 120], 3000)
    middle = np.arange(1, 32, 2) * 2.0**-7
    near = (b[:, None] * middle).astype(np.float32)[..., None].view(np.uint32) + np.arange(-4, 5).astype(np.uint32)
    a = near.view(np.float32).reshape(3000, -1)
    by, limit = np.broadcast_to(b[:, None].astype(np.float32), a.shape), np.repeat(middle, 9)
    found = quotients(library, a.ravel(), np.ascontiguousarray(by).ravel()).reshape(a.shape)
    with np.errstate(all="ignore"):
        normal = np.abs(a) >= 2.0**-126
        np.testing.assert_array_equal(np.sign(found - limit)[normal], np.sign(a / by - limit)[normal])


def test_quotients_of_extreme_numbers(library: ctypes.CDLL) -> None:
    numbers = [0, 1, 3, 1e-30, 1e-38, 1e-45, 1e30, 3.4e38, np.inf]
    x = np.array([*numbers, *(-n for n in numbers), np.nan], np.float32)
    a, b = (np.ascontiguousarray(m).ravel() for m in np.meshgrid(x, x))
    with np.errstate(all="ignore"):
        want = np.clip(a / b, -57344, 57344)
    found = np.clip(quotients(library, a, b), -57344, 57344)
    np.testing.assert_allclose(found, want, rtol=2e-7, atol=1e-6)
    signed = (b > 0) & (want == 0)
    np.testing.assert_array_equal(np.signbit(found[signed]), np.signbit(want[signed]))


def test_floats_saturate_in_4_bits(library: ctypes.CDLL) -> None:
    x = np.array([-1e9, -9, -8.5, -7.9, -0.5, 0.5, 7.9, 8, 15.5, 16, 88, 1e9, np.inf, -np.inf, np.nan], np.float32)
    signed, unsigned = np.zeros(x.size, np.int8), np.zeros(x.size, np.uint8)
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (x, signed, unsigned)]
    library.to_4_bits(pointers[0], ctypes.c_int64(x.size), *pointers[1:])
    whole = np.trunc(np.nan_to_num(x, nan=0.0))
    assert signed.tolist() == np.clip(whole, -8, 7).astype(int).tolist()
    assert unsigned.tolist() == np.clip(whole, 0, 15).astype(int).tolist()
