"""What an importer assumes stands in the module, and only passes that need it ask."""

from __future__ import annotations

import pytest

from ait_mlir.driver import run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import PassError
from ait_mlir.passes.assumptions import assume, assumes
from tests.lit.runner import run_ait_opt

WIDENED = """ait.graph @f(%x: !ait.tensor<4 x 8 x f16>) {
  %w = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %s = ait.softmax %w dim 1 : !ait.tensor<4 x 8 x f32>
  %n = ait.cast %s : !ait.tensor<4 x 8 x f16>
  ait.output "y" %n : !ait.tensor<4 x 8 x f16>
}
"""
STATED = f'builtin.module attributes {{ait.assumes = ["framework_rounding"]}} {{\n{WIDENED}}}\n'


def test_canonical_keeps_what_is_not_assumed() -> None:
    assert "ait.cast" in str(run_to_phase(parse_text(context(), WIDENED), "canonical"))
    module = run_to_phase(parse_text(context(), STATED), "canonical")
    assert "ait.cast" not in str(module)
    assert assumes(parse_text(context(), str(module)), "framework_rounding")
    assert str(run_to_phase(module.clone(), "canonical")) == str(module)


def test_only_what_is_stated_is_assumed() -> None:
    module = parse_text(context(), STATED)
    assert not assumes(module, "finite_scores")
    assume(module, "framework_rounding", "finite_scores")
    assert assumes(module, "finite_scores")


@pytest.mark.parametrize("stated", ['"framework_rounding"', '["rounding"]', "[1]"])
def test_what_nothing_knows_is_refused(stated: str) -> None:
    module = parse_text(context(), STATED.replace('["framework_rounding"]', stated))
    with pytest.raises(PassError, match="expected a list of 'framework_rounding', 'finite_images', 'finite_scores'"):
        assumes(module, "framework_rounding")


def test_the_reference_does_not_judge_what_an_assumption_allows() -> None:
    """What comes after is compared with the result of the pass that assumes."""
    outcome = run_ait_opt(["-", "-p", "narrow-row-ops,simplify", "--check-semantics"], STATED)
    assert outcome.code == 0, outcome.stderr
    assert "ait.cast" not in outcome.stdout
