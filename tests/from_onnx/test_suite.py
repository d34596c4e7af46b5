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

ROUNDED = (
    "test_attention_3d_causal_bf16",
    "test_attention_4d_attn_mask_causal_bf16",
    "test_attention_4d_causal_bf16",
    "test_attention_4d_causal_padded_kv_bf16",
    "test_attention_4d_padded_kv_bf16",
)
INEXACT: dict[str, tuple[float, str]] = {
    **{
        f"{name}{suffix}": (2.0**-8, "onnx rounds each step to bf16; the reference rounds the result alone")
        for name in ROUNDED
        for suffix in ("", "_expanded")
    },
    **dict.fromkeys(
        ("test_dft_inverse", "test_dft_inverse_opset19"),
        (2e-6, "onnx has the rounding errors of f32 where the sum is 0; its absolute tolerance is 1e-7"),
    ),
    **dict.fromkeys(
        ("test_dynamicquantizelinear", "test_dynamicquantizelinear_expanded"),
        (1.0, "a quotient is a tie in f32, which onnx rounds to the even number, and none in f64"),
    ),
}
"""The tests whose expected numbers are not those of the reference: how far they are apart, and why."""
LEAST = 1940
"""The least number of tests of the whole suite that pass."""


def outcomes(cases: list[Any]) -> dict[str, suite.Outcome]:
    return {case.name: suite.outcome(case) for case in cases}


def check(found: dict[str, suite.Outcome]) -> None:
    """Every test passes, is refused with a reason, or fails by the rounding that `INEXACT` names."""
    failed = {n: o for n, o in found.items() if o.kind == "failed"}
    assert not {n: o.reason for n, o in failed.items() if o.error > INEXACT.get(n, (-1.0,))[0]}
    assert INEXACT.keys() & found.keys() == failed.keys()
    assert all(o.reason for o in found.values() if o.kind == "refused")


def test_a_sample_passes_or_is_refused_with_a_reason() -> None:
    every = suite.cases()
    found = outcomes(every if tiers.FULL else every[::6])
    check(found)
    counts = collections.Counter(o.kind for o in found.values())
    assert counts["passed"] >= (LEAST if tiers.FULL else LEAST // 6 - 20)


COMPILED = ("test_conv_with_strides_padding", "test_gather_negative_indices", "test_layer_normalization_4d_axis2")
"""Tests that are compiled in the sample, one of each kind of kernel."""


TIES = ("test_dynamicquantizelinear", "test_dynamicquantizelinear_expanded")
"""Tests that the reference fails and the compiled model passes, which computes in f32."""


@pytest.mark.parametrize("name", [*COMPILED, *(pytest.param(n, marks=pytest.mark.full) for n in TIES)])
def test_compiled_tests_pass_by_the_backend(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(c for c in suite.cases(("node",)) if c.name == name)
    assert suite.outcome(case, backend.compiled) == suite.Outcome("passed")


PARTS = 40
"""The parts in which all tests are compiled, each within some minutes."""


@pytest.mark.full
@pytest.mark.parametrize("part", range(PARTS))
def test_tests_that_the_reference_passes_pass_compiled(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tiers.quickly(monkeypatch)
    passed = [case for case in suite.cases()[part::PARTS] if suite.outcome(case).kind == "passed"]
    assert passed
    found = {case.name: (case, suite.outcome(case, backend.compiled)) for case in passed}
    failed = {name: (case, o.reason) for name, (case, o) in found.items() if o.kind != "passed"}
    assert not {n: reason for n, (case, reason) in failed.items() if n not in suite.NEARER or not suite.as_near(case)}


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(case.name for case in suite.cases(("real",))))
def test_networks_at_full_size_pass_compiled(name: str) -> None:
    case = next(case for case in suite.cases(("real",)) if case.name == name)
    assert suite.outcome(case, backend.compiled) == suite.Outcome("passed")


def test_the_backend_is_one_of_onnx() -> None:
    assert issubclass(backend.AitBackend, onnx.backend.base.Backend)
    assert backend.supports_device("CPU") and not backend.supports_device("TPU")
    node = onnx.helper.make_node("Reshape", ["x", "shape"], ["y"])
    import numpy as np

    (found,) = backend.run_node(node, [np.arange(6, dtype=np.float32), np.array([2, -1])])
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]
