"""Passes in random order on random graphs, and the command that does so for many."""

from __future__ import annotations

import pytest

from tests.fuzz import run


@pytest.mark.parametrize("first", range(100_000, 100_000 + 2 * run.RANGE, run.RANGE))
def test_passes_in_any_order(first: int) -> None:
    tried = run.try_range(first)
    assert not tried.failures, tried.failures[0][1]
    assert tried.checks > 10 * run.RANGE


def test_a_pass_that_changes_the_meaning_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(run, "random_graph", lambda seed: BROKEN)
    monkeypatch.setattr(run, "VALUE_PASSES", ["simplify"] * run.ORDER)
    monkeypatch.setattr(run, "checked", lambda text, pipeline, twice=False: (_ for _ in ()).throw(AssertionError("no")))
    checks, told = run.try_seed(7)
    assert checks == 0 and told.startswith("seed 7 (simplify,") and "AssertionError: no" in told and BROKEN in told


BROKEN = 'ait.graph @g(%x: !ait.tensor<2 x f32>) {\n  ait.output "y" %x : !ait.tensor<2 x f32>\n}\n'


def test_a_pass_that_is_not_idempotent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from ait_mlir.passes.patterns import PatternPass

    apply, calls = PatternPass.apply, []

    def grow(self, ctx, op) -> None:
        apply(self, ctx, op)
        calls.append(op)
        graph = next(iter(op.ops))
        graph.sym_name = type(graph.sym_name)(f"g{len(calls)}")

    monkeypatch.setattr(PatternPass, "apply", grow)
    with pytest.raises(AssertionError):
        run.checked(BROKEN, "fuse-epilogue", twice=True)


DROPPED = """\
ait.graph @g(%x: !ait.tensor<n x f32>) dims {n = 1 to 9} {
  %t, %g = ait.fused_elementwise(%x) {
  ^bb0(%a: f32):
    %b = ait.neg %a : f32
    %c = ait.fast_gelu %b : f32
    ait.yield %b, %c : f32, f32
  } : !ait.tensor<n x f32>, !ait.tensor<n x f32>
  %m = ait.mul %t, %t : !ait.tensor<n x f32>
  ait.output "y" %m : !ait.tensor<n x f32>
}
"""


def test_operations_of_results_that_are_gone_go_with_them() -> None:
    assert run.checked(DROPPED, "fuse-elementwise", twice=True) > 0
