"""Patterns that are compiled as far as a module needs them do what all of them do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ait_mlir import outside
from ait_mlir.driver import read_module, run_to_phase
from ait_mlir.host.cache import cache_dir
from ait_mlir.options import CompileOptions
from ait_mlir.rewrites import apply, on_demand
from ait_mlir.rewrites.engine.language import PatternBuilder, PatternFamily, PatternSet, pattern, patterns
from ait_mlir.rewrites.view import VIEWS

ROOT = Path(__file__).parents[2]
TEXTS = ("examples/bert_layer.mlir", "examples/llama_layer.mlir", "examples/ffn.mlir")


@pytest.fixture(autouse=True)
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, nothing compiled, and no operators from outside."""
    monkeypatch.setattr(outside, "_table", {})
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path))
    apply._compiled.cache_clear()


def planned(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], int]:
    """The programs of texts, planned as by a new process, and the number of pattern families that this traced."""
    traced: set[str] = set()
    trace = PatternFamily.trace

    def counted(self: PatternFamily) -> object:
        traced.add(self.name)
        return trace(self)

    apply._compiled.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(PatternFamily, "trace", counted)
        patch.setattr("ait_mlir.rewrites.engine.language.PatternSet.patterns", property(all_patterns))
        texts = [
            str(run_to_phase(read_module(ROOT / text)[0], "planned", CompileOptions("cuda", "sm_90a")))
            for text in TEXTS
        ]
    apply._compiled.cache_clear()
    return texts, len(traced)


def all_patterns(self: PatternSet) -> tuple[object, ...]:
    """The patterns of a set, traced each time."""
    return tuple(found for family in self.families for found in family.trace())


def test_a_warm_cache_gives_the_same_programs_with_fewer_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    everything, of_all = planned(monkeypatch)
    again, of_some = planned(monkeypatch)
    assert again == everything and 0 < of_some < 0.9 * of_all


def test_each_class_has_the_patterns_of_the_whole_set() -> None:
    whole = apply.compiled(VIEWS)
    apply._compiled.cache_clear()
    found = apply.compiled(VIEWS)
    assert isinstance(found, on_demand.OnDemand) and not isinstance(whole, on_demand.OnDemand)
    assert {cls for cls in apply.universe().operations.values() if found.get(cls) is not None} == set(whole.dispatch)


def test_roots_count_only_for_the_sources_that_they_were_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    apply.compiled(VIEWS)
    assert on_demand.known_roots(VIEWS, "ait") is not None
    for path in (cache_dir() / "patterns").iterdir():
        kept = path.read_bytes()
        path.write_bytes(b"[]")
        assert on_demand.known_roots(VIEWS, "ait") is None
        path.write_bytes(kept)
    for sources in ("other", None):
        monkeypatch.setattr(on_demand, "package_digest", lambda found=sources: found)
        assert on_demand.known_roots(VIEWS, "ait") is None


def test_patterns_from_outside_are_compiled_at_once() -> None:
    @pattern()
    def split_into_one(p: PatternBuilder) -> None:
        x = p.value()
        p.replace(p.op("ait.split", [x], results=1), x)

    for _ in range(2):
        apply._compiled.cache_clear()
        assert not isinstance(apply.compiled(patterns(split_into_one)), on_demand.OnDemand)
    assert not (cache_dir() / "patterns").exists()
