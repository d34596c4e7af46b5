"""Convolutions on Hopper's matrix instruction, on the card: every form that they match, every tile."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import hopper_library
from tests.kernels.conv import hopper_cases
from tests.kernels.harness import Library
from tests.specs.tolerance import PRODUCTS

pytestmark = pytest.mark.gpu

CASES = dict(hopper_cases("gpu"))


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return hopper_library(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_against_the_reference(library: Library, name: str) -> None:
    PRODUCTS.on_gpu().check(library, CASES[name], name.rpartition("-")[2])
