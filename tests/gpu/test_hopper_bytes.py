"""Products of 8-bit floats and integers by the Hopper gemm on the card: every tile of 8-bit floats."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import hopper_library
from tests.kernels.harness import Library
from tests.kernels.hopper import byte_cases
from tests.specs.tolerance import PRODUCTS

pytestmark = pytest.mark.gpu

CASES = byte_cases()


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return hopper_library(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_products(library: Library, name: str) -> None:
    PRODUCTS.on_gpu().check(library, CASES[name], name.rpartition("-")[2])
