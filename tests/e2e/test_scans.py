"""Scans as loops of launches on the CPU, against the reference."""

from __future__ import annotations

import itertools

import pytest

from tests.e2e.scans import SCANS
from tests.e2e.support import Compiled, compile_graph, joined


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """All graphs side by side in one library."""
    return compile_graph(joined(list(SCANS.values())), tmp_path_factory.mktemp("scans"))


@pytest.mark.parametrize("point", list(itertools.product((0, 1, 3), (0, 1, 2, 5))), ids=str)
def test_against_the_reference(compiled: Compiled, point: tuple[int, int]) -> None:
    dims = {f"{name}{i}": size for i in range(len(SCANS)) for name, size in zip("bs", point, strict=True)}
    problems = compiled.problems(dims, special=point == (3, 5))
    assert not problems, "\n".join(problems)
