"""Gemm and bmm on the CPU: every layout, type and epilogue, strided operands, sizes 0 and 1, natively and on OpenBLAS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernels.contractions import gemm_cases
from tests.kernels.harness import Case, Library, check

CASES = gemm_cases()
ULPS = {"f16": 0.6, "bf16": 0.6, "f32": 2, "f64": 2, "where": 2, "compare": 0}
# Sums of products cancel: their error is measured against the largest result.
FLOOR = {"f16": 1e-6, "bf16": 1e-6, "f32": 6e-7, "f64": 1e-14, "where": 6e-7, "compare": 0}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    yield Library(list(CASES.values()), tmp_path_factory.mktemp("gemm"))


@pytest.mark.parametrize("name", CASES)
def test_native(library: Library, name: str) -> None:
    kind = name.rsplit("-", 1)[-1]
    check(library, CASES[name], ULPS[kind], FLOOR[kind])
