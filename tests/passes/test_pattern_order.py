"""The launches of real networks' parts do not depend on the order in which patterns are declared."""

from __future__ import annotations

import re
from random import Random

import pytest

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes import patterns
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import passes_between
from ait_mlir.rewrites.engine.language import PatternSet
from tests.mutate.run import LIT

NETWORKS = (LIT.parent / "passes" / "launches.mlir").read_text()


def launches() -> dict[str, list[str]]:
    """The launches of each program, sorted, without the numbers of their kernels."""
    module = parse_text(context(), NETWORKS)
    run_passes(
        context(), module, parse_passes(passes_between("imported", "bufferized", "cuda", "sm_90a")), verify="end"
    )
    found: dict[str, list[str]] = {}
    for program in str(module).split("ait_rt.program @")[1:]:
        names = re.findall(r"ait_rt\.(?:launch @(\w+?)_\d+ |(copy))", program)
        found[program.split(" ", 1)[0]] = sorted(name or copy for name, copy in names)
    return found


@pytest.fixture(scope="module")
def declared() -> dict[str, list[str]]:
    return launches()


@pytest.mark.full
@pytest.mark.parametrize("seed", range(8))
def test_shuffled_patterns_give_the_same_launches(
    seed: int, declared: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = patterns.pattern_set

    def shuffled(*names: str) -> PatternSet:
        families = list(real(*names).families)
        Random(seed).shuffle(families)
        return PatternSet(tuple(families))

    monkeypatch.setattr(patterns, "pattern_set", shuffled)
    assert launches() == declared
