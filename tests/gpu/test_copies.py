"""Many pieces in one launch on a card."""

from __future__ import annotations

import pytest

from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.target import DEFAULT_ARCH
from tests.kernels.copies import copies_cases
from tests.kernels.harness import Library
from tests.specs.tolerance import BITS

pytestmark = pytest.mark.gpu

CASES = copies_cases()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(list(CASES.values()), tmp_path_factory.mktemp("copies"), Target("cuda", DEFAULT_ARCH["cuda"]))


@pytest.mark.parametrize("name", CASES)
def test_copies(library: Library, name: str) -> None:
    BITS.on_gpu().check(library, CASES[name], name.rpartition("-")[2])
