"""The shards of `make test-full`: a partition, that every machine makes alike, and what has passed is not run again."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tests import full, tiers
from tests.conftest import shard_unit


def test_shards_are_a_partition(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> None:
    units = sorted({shard_unit(item) for item in request.session.items})
    parts = [units[number - 1 :: 8] for number in range(1, 9)]
    assert sorted(unit for part in parts for unit in part) == units
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["", "3", "0/8", "9/8", "1/0", "a/b", "-1/8"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no shard; expected one like 3/8"):
        full.shard(text)


def test_a_shard_that_passed_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ran: list[int] = []

    def commands(number: int, count: int, jobs: int) -> list[list[str]]:
        ran.append(number)
        return [["-c", f"raise SystemExit({int(number == 2 and len(ran) < 4)})"]]

    monkeypatch.setattr(full, "commands", commands)
    assert [full.run(number, 3, 1, tmp_path) for number in (1, 2, 3)] == [True, False, True]
    assert [full.run(number, 3, 1, tmp_path) for number in (1, 2, 3)] == [True, True, True]
    assert ran == [1, 2, 3, 2]
    assert "shard 3/3: passed before" in capfd.readouterr().out


def test_the_digest_follows_the_sources(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    before = full.sources_digest(tmp_path)
    (tmp_path / "tests" / "a.py").write_text("x = 1")
    first = full.sources_digest(tmp_path)
    (tmp_path / "tests" / "a.py").write_text("x = 2")
    assert len({before, first, full.sources_digest(tmp_path)}) == 3


def test_the_sample_is_a_part_of_all() -> None:
    assert tiers.pairs(["a", "b", "c"], ["f16", "f32"]) == [("a", "f16"), ("b", "f32"), ("c", "f16")]
    assert tiers.pairs(["a"], ["f16", "f32"]) == [("a", "f16"), ("a", "f32")]
    assert tiers.one_in(2, "abcde", 0) == set("ace") and tiers.one_in(2, "abcde", 1) == set("bd")
