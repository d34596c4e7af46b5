"""Attention on the CPU: every float type, masks that broadcast, causal, q, k and v read in place, sizes 0 and 1."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernels.contractions import attention_cases
from tests.kernels.harness import Library, check

CASES = attention_cases()
ULPS = {"f16": 0.6, "bf16": 0.6, "f32": 2, "f64": 2}
# Scores reach a few tens, so their rounding alone changes the weights by some 1e-6.
FLOOR = {"f16": 1e-5, "bf16": 1e-5, "f32": 1e-5, "f64": 3e-14}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    yield Library(list(CASES.values()), tmp_path_factory.mktemp("attention"))


@pytest.mark.parametrize("name", CASES)
def test_native(library: Library, name: str) -> None:
    kind = name.rsplit("-", 1)[-1]
    check(library, CASES[name], ULPS[kind], FLOOR[kind])
