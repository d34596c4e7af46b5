"""Products of 8-bit floats and integers, and products that store them, by the Hopper gemm on the card: every tile of 8-bit floats."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import hopper_library
from tests.kernels.harness import Library
from tests.kernels.hopper import byte_cases, check_quotients, number_cases
from tests.specs.tolerance import PRODUCTS

pytestmark = pytest.mark.gpu

CASES = byte_cases() | number_cases()


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return hopper_library(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_products(library: Library, name: str) -> None:
    PRODUCTS.on_gpu().check(library, CASES[name], name.rpartition("-")[2])


@pytest.mark.parametrize("name", ["rows-numbers-in-lines-f16", "apart-numbers-in-lines-f16"])
def test_quotients_are_rounded_once(library: Library, name: str) -> None:
    check_quotients(library, CASES[name])
