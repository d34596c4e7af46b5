"""Many pieces in one launch on a card."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import library_of
from tests.kernels.copies import copies_cases
from tests.kernels.harness import Library
from tests.specs.tolerance import BITS

pytestmark = pytest.mark.gpu

CASES = copies_cases()


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return library_of(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_copies(library: Library, name: str) -> None:
    BITS.on_gpu().check(library, CASES[name], name.rpartition("-")[2])
