"""The devices on which the tests of graphs run."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(
    scope="module",
    params=[
        "reference",
        pytest.param("cpu", marks=pytest.mark.full),
        pytest.param("cuda:0", marks=pytest.mark.gpu),
    ],
)
def place(request: pytest.FixtureRequest) -> str:
    """Where cases run whose kernels take long to compile: `make test` evaluates the ops with the reference."""
    return request.param
