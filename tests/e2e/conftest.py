"""Fixtures of tests of compiled programs."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from ait_mlir.runtime.loading import runtime_library


@pytest.fixture(params=["matrix unit", "vector unit"])
def unit(request: pytest.FixtureRequest) -> Generator[None]:
    """Runs a test with products on the matrix unit, and again on the vector unit."""
    runtime = runtime_library("cpu")
    if request.param == "matrix unit" and not runtime.may_use_amx():
        pytest.skip("needs a processor with AMX (amx_tile, amx_bf16) and a kernel that permits it")
    before = runtime.set_amx(request.param == "matrix unit")
    yield
    runtime.set_amx(before)
