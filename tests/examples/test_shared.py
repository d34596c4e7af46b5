"""Results that several processes share: who measures what, what is done, and folders of one process."""

from __future__ import annotations

import argparse
import multiprocessing
from pathlib import Path

import pytest

from ait_mlir.errors import AitError
from benchmarks.networks import add_options, settle_options
from benchmarks.shared import Done, Results, Row, own_folder

ONE = Done("one", "a card", [Row(["one", "1", "0.5"], 0.5, True)])


def test_what_is_done_is_not_taken_again(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    results = Results(path)
    with results.taken("one") as mine:
        assert mine
        with Results(path).taken("one") as other:
            assert not other
        with Results(path).taken("two") as other:
            assert other
        results.add(ONE)
    with Results(path).taken("one") as mine:
        assert not mine
    assert Results(path).read() == [ONE]


def test_a_line_that_was_not_written_to_its_end_is_left_out(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    Results(path).add(ONE)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20])
    assert Results(path).read() == [ONE]
    failed = Done("two", "a card", [], "it does not import")
    Results(path).add(failed)
    assert Results(path).read() == [ONE, failed]


def test_another_file_is_refused(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"problem": 1}\n')
    with pytest.raises(AitError, match="no file of results"):
        Results(path).read()


def test_without_a_file_all_is_taken():
    results = Results(None)
    with results.taken("one") as mine:
        assert mine
        results.add(ONE)
    assert results.read() == [ONE]


def test_the_clock_of_a_thread_is_for_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    def settled(*options: str) -> argparse.Namespace:
        parser = argparse.ArgumentParser()
        add_options(parser)
        args = parser.parse_args(["--workdir", str(tmp_path / "work"), "--own-clock", *options])
        settle_options(parser, args)
        return args

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with pytest.raises(SystemExit):
        settled("--device", "cpu")
    assert "set OMP_NUM_THREADS=1" in capsys.readouterr().err
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert settled("--device", "cpu").own_clock
    with pytest.raises(SystemExit):
        settled("--device", "cuda")


def test_two_processes_have_two_folders(tmp_path: Path):
    wanted = str(tmp_path / "work")
    assert own_folder(wanted) == Path(wanted)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(own_folder, (wanted,)) == Path(f"{wanted}-2")


def test_the_table_has_what_several_processes_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys):
    from benchmarks import unseen

    def share(entries, results: Results, args: argparse.Namespace) -> None:
        cells = ["of two processes", "8", "0.5", "1.0", "0.50 (eager)", "0.1", "0.90", "0.80"]
        for name in entries:
            results.add(Done(name, "a card", [Row([name, *cells[1:]], 0.5, True)]))

    monkeypatch.setattr(unseen, "share", share)
    options = ["--count", "2", "--jobs", "2", "--device", "cpu", "--workdir", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["unseen", *options])
    assert unseen.main() == 0
    printed = capsys.readouterr().out
    assert "of 2 rows: geometric mean 0.500" in printed and "not measured" not in printed


def test_a_launch_for_nothing_has_no_share():
    from benchmarks.launches import share_of

    assert share_of(1.0, 4.0) == "25%" and share_of(0.0, 0.0) == "-"
