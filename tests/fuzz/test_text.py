"""Malformed texts: a sample of the campaign, and what the campaign does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tiers
from tests.fuzz import text
from tests.fuzz.ranges import Campaign


@pytest.mark.parametrize("first", range(0, (4 if tiers.FULL else 1) * text.RANGE, text.RANGE))
def test_a_text_is_refused_with_a_place_or_reads_back(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "SECONDS", float("inf"))  # calls are counted, which other load does not change
    population = text.Population(first)
    for seed in range(first, first + text.RANGE):
        assert not (told := population.try_next(seed)), told
    assert 0.02 * text.RANGE < population.counts["accepted"] < 0.9 * text.RANGE
    assert population.finds > 50


def test_a_range_is_the_same_each_time() -> None:
    texts: list[list[str]] = []
    for _ in range(2):
        population = text.Population(7000)
        texts.append([])
        for seed in range(7000, 7030):
            assert not population.try_next(seed)
            texts[-1].append(population.next(seed)[1])
    assert texts[0] == texts[1]


def test_a_failure_is_told_and_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: str) -> None:
        raise KeyError("dim")

    monkeypatch.setattr(text, "RANGE", 30)
    monkeypatch.setattr(text, "check_pipeline", fail)
    tried = text.try_range(0)
    assert [seed for seed, _ in tried.failures] == [0, 10, 20]
    assert tried.failures[1][1].startswith("seed 10: KeyError: 'dim'\n")
    text.save(10, tmp_path)
    assert (tmp_path / "seed_10.mlir").read_text() == tried.failures[1][1].partition("\n")[2]


def test_too_many_calls_are_a_failure() -> None:
    with pytest.raises(AssertionError, match="more than 5 calls"), text.calls_of(5):
        for _ in range(6):
            len([])


def test_the_command_is_in_the_makefile() -> None:
    assert isinstance(text.CAMPAIGN, Campaign)
    assert "fuzz-text: $(STAMP)\n\t$(BIN)/python -m tests.fuzz.text" in (text.ROOT / "Makefile").read_text()
