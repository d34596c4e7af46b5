"""The attention kernels of Hopper on the card: every form that they take, every tile."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import hopper_library
from tests.kernels import attention_float8, attention_ragged
from tests.kernels.attention_gpu import NUMBER_ULPS, hopper_cases, number_cases, split_cases
from tests.kernels.harness import Library, check

pytestmark = pytest.mark.gpu

HOPPER = hopper_cases()
NUMBERS = number_cases()
SPLIT = split_cases()
RAGGED = attention_ragged.hopper_cases()
FLOAT8 = attention_float8.cases()
LONG = {f"{t}-{size}": attention_float8.long_case(t, size) for t in ("f16", "f8E4M3FN") for size in (64, 128)}
# The weights are rounded to the element type before the second product.
FLOOR = {"f16": 1e-3, "bf16": 8e-3}


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return hopper_library(request, HOPPER, NUMBERS, SPLIT, RAGGED, FLOAT8, LONG)


@pytest.mark.parametrize("name", HOPPER)
def test_hopper(library: Library, name: str) -> None:
    check(library, HOPPER[name], 0.6, FLOOR[name.rsplit("-", 1)[-1]])


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(library: Library, name: str) -> None:
    check(library, NUMBERS[name], NUMBER_ULPS, FLOOR[name.rsplit("-", 1)[-1]])


@pytest.mark.parametrize("name", SPLIT)
def test_split(library: Library, name: str) -> None:
    check(library, SPLIT[name], 0.6, FLOOR[name.rsplit("-", 1)[-1]])


@pytest.mark.parametrize("name", RAGGED)
def test_ragged(library: Library, name: str) -> None:
    """No NaN of a row that belongs to no sequence reaches a result."""
    attention_ragged.check_poisoned(library, RAGGED[name], 0.6, FLOOR[name.rsplit("-", 1)[-1]])


@pytest.mark.parametrize("name", FLOAT8)
def test_float8(library: Library, name: str) -> None:
    attention_float8.check(library, FLOAT8[name])


@pytest.mark.parametrize("name", LONG)
def test_the_error_of_long_rows(library: Library, name: str) -> None:
    """Weights of 4 significant bits have errors of 2.6 % at most on average; they do not grow with the number of columns,
    and cancel where v is nearly equal."""
    size = int(name.rpartition("-")[2])
    bounds = {"f16": (1e-3, 1e-3), "f8E4M3FN": (0.03, 4e-3)}[name.partition("-")[0]]
    for mean, bound in zip((0.0, 4.0), bounds, strict=True):
        assert attention_float8.long_error(library, LONG[name], attention_float8.long_inputs(size, mean)) < bound
