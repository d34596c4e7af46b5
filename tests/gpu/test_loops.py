"""Generated loops on the card: each form on each schedule."""

from __future__ import annotations

import pytest

from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
from tests.kernels import loops
from tests.kernels.harness import Library

pytestmark = pytest.mark.gpu

CASES = dict(loops.cases(Target("cuda", "sm_90a")))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(list(CASES.values()), tmp_path_factory.mktemp("loops"), Target("cuda", default_arch("cuda")))


@pytest.mark.parametrize("name", CASES)
def test_loops(library: Library, name: str) -> None:
    loops.check_loops(library, CASES[name], name)
