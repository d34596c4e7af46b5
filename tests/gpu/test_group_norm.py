"""Group norm in one launch on the card: what a thread keeps, clusters, odd groups and addresses, the UNet's sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.libraries import hopper_library
from tests.kernels.group_norm import group_norm, group_norm_cases, plan
from tests.kernels.harness import Library, check, random_inputs

pytestmark = pytest.mark.gpu

UNET = {"b": 2, "s": 1366}
CASES = {
    **group_norm_cases(),
    "unet-320-f16": group_norm("f16", 320, 32, plan(40, 8, 8), envs=[UNET], constants=(1, 2)),
    "unet-960-f16": group_norm("f16", 960, 32, plan(120, 8, 16), envs=[UNET]),
}


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return hopper_library(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_group_norm(library: Library, name: str) -> None:
    t = name.rpartition("-")[2]
    check(library, CASES[name], {"f16": 0.6, "bf16": 0.51, "f32": 16.0}[t], 2e-6)


def test_the_same_in_every_run(library: Library) -> None:
    case = CASES["unet-320-f16"]
    inputs = random_inputs(case, UNET)
    runs = [library.run(case, UNET, inputs)[0] for _ in range(3)]
    assert all(np.array_equal(runs[0], run) for run in runs[1:])
