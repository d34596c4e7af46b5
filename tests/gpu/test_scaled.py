"""Products with scales of blocks on the card: every tile of wgmma and of mma.sync."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import library_of
from tests.kernels.harness import Library
from tests.kernels.scaled import scaled_cases
from tests.specs.gemm import SCALED_GEMM

pytestmark = pytest.mark.gpu

CASES = scaled_cases()


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return library_of(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_tiles(library: Library, name: str) -> None:
    SCALED_GEMM.close.on_gpu().check(library, CASES[name], name.rpartition("-")[2])
