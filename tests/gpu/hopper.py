"""Libraries of kernels for a card of Hopper's, whose translation units compile side by side."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import pytest

from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
from tests.kernels.harness import Case, Library, sources_of


class InParts(Library):
    """A library of small translation units, which compile side by side."""

    def __init__(self, cases: Sequence[Case], workdir: Path) -> None:
        self.target = Target("cuda", "sm_90a")
        self.index = {id(case): i for i, case in enumerate(cases)}
        self.lib = ctypes.CDLL(str(build_library(sources_of(cases, self.target, 4), self.target, workdir)))


def hopper_library(cases: Sequence[Case], paths: pytest.TempPathFactory, name: str) -> Library:
    """The cases as one library for the card at hand; the test is skipped where that is another card."""
    if default_arch("cuda") != "sm_90a":
        pytest.skip("needs a card of compute capability 9.0")
    return InParts(cases, paths.mktemp(name))
