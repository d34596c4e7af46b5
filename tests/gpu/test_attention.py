"""The attention kernels of Hopper on the card: every form that they take, every tile."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import hopper_library
from tests.kernels import attention_ragged
from tests.kernels.attention_gpu import NUMBER_ULPS, hopper_cases, number_cases, split_cases
from tests.kernels.harness import Library, check

pytestmark = pytest.mark.gpu

HOPPER = hopper_cases()
NUMBERS = number_cases()
SPLIT = split_cases()
RAGGED = attention_ragged.hopper_cases()
# The weights are rounded to the element type before the second product.
FLOOR = {"f16": 1e-3, "bf16": 8e-3}


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return hopper_library(request, HOPPER, NUMBERS, SPLIT, RAGGED)


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
