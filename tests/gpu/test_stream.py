"""The streaming gemm on the card: every tile, ends of tiles and steps, strides, epilogues."""

from __future__ import annotations

import pytest

from ait_mlir.lowering.toolchain import default_arch
from tests.gpu.test_hopper import InParts
from tests.kernels.harness import Library, check
from tests.kernels.stream import stream_cases

pytestmark = pytest.mark.gpu

CASES = stream_cases()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    if default_arch("cuda") != "sm_90a":
        pytest.skip("needs a card of compute capability 9.0")
    return InParts(list(CASES.values()), tmp_path_factory.mktemp("stream"))


@pytest.mark.parametrize("name", CASES)
def test_stream(library: Library, name: str) -> None:
    check(library, CASES[name], 0.6 if "wide" not in name else 2, 2e-6)
