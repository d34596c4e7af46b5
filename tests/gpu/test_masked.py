"""Launches that read the value of a bound dim on the card, and graphs of programs that wait for one."""

from __future__ import annotations

import pytest
import torch

import ait_mlir
from tests.gpu.libraries import library_of
from tests.importers.test_bound_dims import Select
from tests.kernels.harness import Library
from tests.kernels.masked import check_masked, masked_cases

pytestmark = pytest.mark.gpu

CASES = masked_cases()


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    return library_of(request, CASES)


@pytest.mark.parametrize("name", CASES)
def test_masked(library: Library, name: str) -> None:
    check_masked(library, CASES[name], name)


def test_the_parts_between_waits_are_recorded() -> None:
    compiled = ait_mlir.compile(Select().eval(), (torch.randn(5, 3).cuda(),), target="cuda", graph_mode=True)
    x = torch.randn(5, 3).cuda()
    for i in range(6):
        x.copy_(torch.randn(5, 3) if i % 3 else torch.ones(5, 3))
        for ours, want in zip(compiled(x), Select()(x), strict=True):
            torch.testing.assert_close(ours, want)
    stats = compiled.model.graph_stats()
    assert stats["fallbacks"] == 0 and stats["captures"] > 0, stats
    assert stats["warmups"] + stats["captures"] + stats["hits"] == 12, "two parts a run"
