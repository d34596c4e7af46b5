"""onnx's backend suite on the card: each test that the reference passes."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")

from ait_mlir.driver import compile_module
from ait_mlir.importers.onnx import backend
from ait_mlir.importers.onnx.program import Imported
from ait_mlir.options import CompileOptions
from tests.from_onnx import suite

pytestmark = pytest.mark.gpu

TESTS = 2024
"""The tests of the suite of onnx 1.23; to load them takes seconds, so that tests here have numbers."""


@functools.cache
def cases() -> list[Any]:
    return sorted(suite.cases(), key=lambda case: case.name)


@pytest.fixture
def case(number: int, tmp_path: Path) -> Any:
    """A test that the reference passes, with its kernels compiled for the card."""
    if number >= len(cases()):
        pytest.skip(f"the suite has {len(cases())} tests")
    found = cases()[number]

    def built(imported: Imported, target: str) -> Any:
        file, options = tmp_path / "model.ait", CompileOptions("cuda")
        compile_module(imported.module.clone(), options, output=file, constants=imported.constants)
        return suite.by_reference(imported, target)

    if (outcome := suite.outcome(found)).kind != "passed":
        pytest.skip(f"{found.name} is {outcome.kind} by the reference: {outcome.reason}")
    assert suite.outcome(found, built) == suite.Outcome("passed"), found.name
    return found


def compiled(imported: Imported, target: str) -> Any:
    return backend.compiled(imported, "cuda")


@pytest.mark.parametrize("number", range(TESTS))
def test_a_test_of_the_suite_passes(case: Any) -> None:
    outcome = suite.outcome(case, compiled)
    is_near = outcome.kind == "failed" and case.name in suite.NEARER and suite.as_near(case, compiled)
    assert outcome.kind == "passed" or is_near, f"{case.name}: {outcome.reason}"
