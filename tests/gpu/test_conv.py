"""Convolutions on the kernels that the forms of the specification do not choose, on the card."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import library_of
from tests.kernels.conv import grouped_cases, mma_cases, patch_cases, planes_cases
from tests.kernels.harness import Library
from tests.specs.tolerance import PRODUCTS

pytestmark = pytest.mark.gpu

CASES = dict(mma_cases("gpu")) | dict(grouped_cases("gpu")) | dict(patch_cases("gpu")) | dict(planes_cases("gpu"))


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return library_of(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_against_the_reference(library: Library, name: str) -> None:
    PRODUCTS.on_gpu().check(library, CASES[name], name.rpartition("-")[2])
