"""Convolutions on Hopper's matrix instruction, on the card: every form that they match, every tile."""

from __future__ import annotations

import pytest

from tests.gpu.hopper import hopper_library
from tests.kernels.conv import hopper_cases
from tests.kernels.harness import Library
from tests.specs.tolerance import PRODUCTS

pytestmark = pytest.mark.gpu

CASES = dict(hopper_cases("gpu"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return hopper_library(list(CASES.values()), tmp_path_factory, "conv_hopper")


@pytest.mark.parametrize("name", CASES)
def test_against_the_reference(library: Library, name: str) -> None:
    PRODUCTS.on_gpu().check(library, CASES[name], name.rpartition("-")[2])
