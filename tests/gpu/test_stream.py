"""The streaming gemm on the card: every tile, ends of tiles and steps, strides, epilogues."""

from __future__ import annotations

import pytest

from tests.gpu.libraries import hopper_library
from tests.kernels.harness import Library, check
from tests.kernels.stream import stream_cases

pytestmark = pytest.mark.gpu

CASES = stream_cases()


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return hopper_library(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_stream(library: Library, name: str) -> None:
    check(library, CASES[name], 0.6 if "wide" not in name else 2, 2e-6)
