"""The Hopper gemm on the card: layouts, batches, strides, edges of tiles, every tile."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import hopper_library
from tests.kernels.harness import Library, check
from tests.kernels.hopper import hopper_cases, padded_cases

pytestmark = pytest.mark.gpu

CASES = hopper_cases() | padded_cases()


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return hopper_library(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_hopper(library: Library, name: str) -> None:
    check(library, CASES[name], 0.6 if "wide" not in name else 2, 2e-6)
