"""Generated loops on the card: each form on each schedule."""

from __future__ import annotations

import pytest

from ait_mlir.lowering.kernels import Target
from tests.gpu.libraries import library_of
from tests.kernels import loops
from tests.kernels.harness import Library

pytestmark = pytest.mark.gpu

CASES = dict(loops.cases(Target("cuda", "sm_90a")))


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return library_of(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_loops(library: Library, name: str) -> None:
    loops.check_loops(library, CASES[name], name)
