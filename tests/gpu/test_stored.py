"""Products with stored weights on the card: every tile with every way to unpack and to scale."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import library_of
from tests.kernels.harness import Library
from tests.kernels.stored import stored_cases
from tests.specs.gemm import STORED_GEMM

pytestmark = pytest.mark.gpu

CASES = stored_cases()


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return library_of(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_tiles(library: Library, name: str) -> None:
    STORED_GEMM.close.on_gpu().check(library, CASES[name], name.rpartition("-")[2])
