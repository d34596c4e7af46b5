"""Cumulative sums on the card whose blocks pass sums on: right, and the same in every run."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.corpus import chained_cumsums
from tests.gpu.libraries import library_of
from tests.kernels.harness import Library, random_inputs
from tests.kernels.library_gemm import on_kernel
from tests.specs.cumulative import CUMULATIVE
from tests.specs.tolerance import SUMS

pytestmark = pytest.mark.gpu

LARGE = {
    f"large-{name}-{t}": on_kernel(CUMULATIVE.case(CUMULATIVE.find(name), t), "chained")
    for name, t in (("last", "f32"), ("vector", "f16"), ("wide", "f32"), ("wide", "bf16"), ("middle", "i32"))
}
ENV = {"b": 2, "s": 99999}
CASES = {**chained_cumsums(), **LARGE}


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return library_of(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_chained(library: Library, name: str) -> None:
    case = CASES[name]
    case.envs = [ENV] if name in LARGE else case.envs
    SUMS.check(library, case, name.rpartition("-")[2])


@pytest.mark.parametrize("name", LARGE)
def test_the_same_in_every_run(library: Library, name: str) -> None:
    (x,) = random_inputs(CASES[name], ENV)
    runs = [library.run(CASES[name], ENV, [x])[0] for _ in range(5)]
    assert all(np.array_equal(runs[0], run) for run in runs[1:])
