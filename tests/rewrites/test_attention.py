"""Every variant of the attention pattern matches what it is for, and nothing that differs in one precondition."""

from __future__ import annotations

import pytest
from xdsl.dialects import pdl

from ait_mlir.passes.check_semantics import SemanticsChecker
from ait_mlir.rewrites.apply import rewrite
from ait_mlir.rewrites.attention import ATTENTION, MASKS, RANKS, SCALES
from tests.rewrites.attention_cases import Attention, breaking, matching
from tests.rewrites.support import names, parse, rewritten

VARIANTS = [(rank, scale, mask) for rank in RANKS for scale in SCALES for mask in MASKS]


def pattern_of(rank: int, scale: str, mask: str) -> pdl.PatternOp:
    """The variant's pattern."""
    name = f"softmax_attention_{rank}_{scale}_{mask}"
    return next(p for p in ATTENTION.patterns if p.sym_name is not None and p.sym_name.data == name)


def check_variant(pattern: pdl.PatternOp, case: Attention) -> None:
    """The pattern makes attention of its graph, and of no graph that breaks a precondition."""
    module, statistics = rewritten(case.text(), [pattern])
    assert statistics.rewrites == 1
    assert names(module).count("ait.attention") == 1
    assert "ait.softmax" not in names(module)
    for name, broken in breaking(case):
        module, statistics = rewritten(broken.text(), [pattern])
        assert statistics.rewrites == 0, f"{name}: matched\n{broken.text()}"


@pytest.mark.parametrize(("rank", "scale", "mask"), VARIANTS)
def test_variant(rank: int, scale: str, mask: str) -> None:
    check_variant(pattern_of(rank, scale, mask), matching(rank, scale, mask))


@pytest.mark.parametrize(("rank", "scale", "mask"), VARIANTS)
def test_meaning(rank: int, scale: str, mask: str) -> None:
    module = parse(matching(rank, scale, mask).text())
    checker = SemanticsChecker(module)
    rewrite(module, ATTENTION)
    assert "ait.attention" in names(module)
    assert checker.after("fuse-attention", module, lambda copy: rewrite(copy, ATTENTION) and None) == []
