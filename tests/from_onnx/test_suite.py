"""onnx's backend suite: what the reference semantics of imported tests give, and a few tests compiled for the CPU."""

from __future__ import annotations

import collections
from typing import Any

import pytest

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")

import onnx
import onnx.backend.base

from ait_mlir.importers.onnx import backend
from tests import tiers
from tests.from_onnx import suite

INEXACT = ("_bf16", "dft_inverse", "dynamicquantizelinear")
"""Parts of names of tests that expect the rounding of every step, which the reference does not do."""
LEAST = 1670
"""The least number of tests of the whole suite that pass."""


def outcomes(cases: list[Any]) -> dict[str, suite.Outcome]:
    return {case.name: suite.outcome(case) for case in cases}


def check(found: dict[str, suite.Outcome]) -> None:
    """Every test passes, or is refused with a reason."""
    failed = {n: o.reason for n, o in found.items() if o.kind == "failed"}
    assert not {n: r for n, r in failed.items() if not any(part in n for part in INEXACT)}
    assert all(o.reason for o in found.values() if o.kind == "refused")


def test_a_sample_passes_or_is_refused_with_a_reason() -> None:
    every = suite.cases()
    found = outcomes(every if tiers.FULL else every[::6])
    check(found)
    counts = collections.Counter(o.kind for o in found.values())
    assert counts["passed"] >= (LEAST if tiers.FULL else LEAST // 6 - 20)


COMPILED = ("test_conv_with_strides_padding", "test_gather_negative_indices", "test_layer_normalization_4d_axis2")
"""Tests that are compiled in the sample, one of each kind of kernel."""


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_tests_pass_by_the_backend(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(c for c in suite.cases(("node",)) if c.name == name)
    assert suite.outcome(case, backend.compiled) == suite.Outcome("passed")


def test_the_backend_is_one_of_onnx() -> None:
    assert issubclass(backend.AitBackend, onnx.backend.base.Backend)
    assert backend.supports_device("CPU") and not backend.supports_device("TPU")
    node = onnx.helper.make_node("Reshape", ["x", "shape"], ["y"])
    import numpy as np

    (found,) = backend.run_node(node, [np.arange(6, dtype=np.float32), np.array([2, -1])])
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]
