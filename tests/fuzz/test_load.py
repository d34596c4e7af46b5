"""Damaged and forged files in the loaders, and the command that does so for many."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ait_mlir.errors import AitError
from tests.fuzz import load
from tests.fuzz.ranges import Campaign


@pytest.mark.parametrize("first", range(1_000_000, 1_000_000 + 5 * load.RANGE, load.RANGE))
def test_a_loader_takes_a_file_or_refuses_it(first: int) -> None:
    tried = load.try_range(first)
    assert not tried.failures, tried.failures[0][1]


def test_the_files_get_past_the_hashes(tmp_path: Path) -> None:
    """Each kind of file has those that are taken, and those that are refused for different reasons."""
    path = tmp_path / "file"
    taken: Counter[str] = Counter()
    reasons: dict[str, set[str]] = {kind: set() for kind in load.KINDS}
    for seed in range(1000):
        kind, data = load.case(seed)
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        try:
            load.load(kind, path)
            taken[kind] += 1
        except AitError as error:
            reasons[kind].add(str(error).replace(str(path), "")[:80])
    assert all(taken[kind] for kind in load.KINDS if kind != "bytes" and not kind.endswith("text"))
    assert all(len(found) > (1 if kind == "ir" else 4) for kind, found in reasons.items())


def test_an_error_of_another_kind_is_found_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(kind: str, path: Path) -> None:
        if path.name == "7.file":
            raise KeyError("offset")

    monkeypatch.setattr(load, "load", fail)
    monkeypatch.setattr("tests.fuzz.ranges.concurrent.futures.ProcessPoolExecutor", _InThisProcess)
    campaign = Campaign("files", "checks", load.RANGE, load.try_range, load.save)
    assert campaign.run(0, 2 * load.RANGE, 1, tmp_path) == 1
    assert "seed 7 (weights): KeyError: 'offset'" in capsys.readouterr().out
    assert (tmp_path / "seed_7.file").read_bytes() == load.case(7)[1]
    assert campaign.run(0, 2 * load.RANGE, 1, tmp_path) == 1
    assert f"{2 * load.RANGE} files from seed 0, {load.RANGE} to try" in capsys.readouterr().out


class _InThisProcess:
    def __init__(self, jobs: int) -> None:
        self.map = map

    def __enter__(self) -> _InThisProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass
