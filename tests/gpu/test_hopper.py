"""The Hopper gemm on the card: layouts, batches, strides, edges of tiles, every tile."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import pytest

from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
from tests.kernels.harness import Case, Library, check, sources_of
from tests.kernels.hopper import hopper_cases

pytestmark = pytest.mark.gpu

CASES = hopper_cases()


class InParts(Library):
    """A library of small translation units, which compile side by side."""

    def __init__(self, cases: Sequence[Case], workdir: Path) -> None:
        self.target = Target("cuda", "sm_90a")
        self.index = {id(case): i for i, case in enumerate(cases)}
        self.lib = ctypes.CDLL(str(build_library(sources_of(cases, self.target, 4), self.target, workdir)))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    if default_arch("cuda") != "sm_90a":
        pytest.skip("needs a card of compute capability 9.0")
    return InParts(list(CASES.values()), tmp_path_factory.mktemp("hopper"))


@pytest.mark.parametrize("name", CASES)
def test_hopper(library: Library, name: str) -> None:
    check(library, CASES[name], 0.6 if "wide" not in name else 2, 2e-6)
