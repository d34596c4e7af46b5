"""Every way through the attention pattern matches what it is for, and nothing that differs in one precondition."""

from __future__ import annotations

import pytest
from xdsl.dialects import pdl
from xdsl.dialects.builtin import FloatAttr, f64

from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.rewrites.apply import rewrite, universe
from ait_mlir.rewrites.attention import ATTENTION
from ait_mlir.rewrites.engine.compile import compile_patterns
from tests.rewrites.attention_cases import VARIANTS, Attention, breaking, matching
from tests.rewrites.support import names, parse, rewritten

ABOUT_SCALES = ("zero", "different_constants", "constant_enlarges")
"""What is wrong with the scale of queries leaves it in front of the attention, which is made of the scaled queries."""


def check_variant(pattern: pdl.PatternOp, case: Attention) -> None:
    """The pattern makes attention of its graph, and of no graph that breaks a precondition."""
    module, statistics = rewritten(case.text(), [pattern])
    assert statistics.rewrites == 1
    assert names(module).count("ait.attention") == 1
    assert "ait.softmax" not in names(module)
    if case.scale != "no_scale":
        assert f"ait.{case.scale.split('_')[1]}" not in names(module), "the scale is left over"
    for name, broken in breaking(case):
        module, statistics = rewritten(broken.text(), [pattern])
        if case.scale.startswith("query") and name in ABOUT_SCALES:
            assert f"ait.{case.scale.split('_')[1]}" in names(module), f"{name}: lost the scale\n{broken.text()}"
        else:
            assert statistics.rewrites == 0, f"{name}: matched\n{broken.text()}"


@pytest.mark.parametrize(("rank", "scale", "mask"), VARIANTS)
def test_variant(rank: int, scale: str, mask: str) -> None:
    (one,) = ATTENTION.patterns
    check_variant(one, matching(rank, scale, mask))


@pytest.mark.parametrize(("rank", "scale", "mask"), VARIANTS)
def test_meaning(rank: int, scale: str, mask: str) -> None:
    module = parse(matching(rank, scale, mask).text())
    checker = SemanticsChecker(module)
    rewrite(module, ATTENTION)
    assert "ait.attention" in names(module)
    assert checker.after("fuse-attention", module, lambda copy: rewrite(copy, ATTENTION) and None) == []


def test_scales_of_queries_and_scores_multiply() -> None:
    text = matching(4, "query_div_1", "mask_0").text()
    first, second = (line for line in text.splitlines() if "ait.bmm rcr" in line or "ait.add" in line)
    scores = first.rpartition(" : ")[2]
    scaled = f"{first}\n  %t = ait.mul %s0, %c : {scores}\n{second.replace('%s0', '%t')}"
    module = parse(text.replace(f"{first}\n{second}", scaled).replace("constant 0.25", "constant 0.5"))
    checker = SemanticsChecker(module)
    rewrite(module, ATTENTION)
    (attention,) = [op for op in module.walk() if op.name == "ait.attention"]
    assert attention.properties["scale"] == FloatAttr(1.0, f64)
    assert checker.after("fuse-attention", module, lambda copy: rewrite(copy, ATTENTION) and None) == []


def test_one_pattern_says_all_and_is_compiled_quickly() -> None:
    """Its source grows with the parts of the formula, not with the ways through it."""
    compiled = compile_patterns(ATTENTION.patterns, universe())
    assert len(ATTENTION.patterns) == 1
    assert len(compiled.source.splitlines()) < 150
