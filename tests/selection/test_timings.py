"""The cache of timings: every part of a key counts, writers share it; shipped times are text."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from ait_mlir.dims import parse
from ait_mlir.errors import AitError
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.choices import Choice
from ait_mlir.selection.ranges import Times
from ait_mlir.selection.timings import (
    Record,
    Setting,
    Shipped,
    TimingCache,
    TimingKey,
    joined,
    read_shipped,
    write_shipped,
)
from tests.selection.cards import SETTING

KEY = TimingKey("ait.graph ...", "1,128", '[null,[["native",{}]]]', "0" * 64, SETTING)


def test_every_part_of_a_key_counts(tmp_path: Path):
    cache = TimingCache(tmp_path / "t.sqlite3")
    cache.keep_times({KEY: Times(1e-6, 0.01)})
    assert cache.times([KEY]) == {KEY: Times(1e-6, 0.01)}
    others = [replace(KEY, setting=replace(SETTING, **{f.name: "other"})) for f in fields(Setting)]
    for f in fields(TimingKey):
        if f.name != "setting":
            others.append(replace(KEY, **{f.name: 99 if f.name == "method" else "other"}))
    assert len(others) == len(fields(Setting)) + len(fields(TimingKey)) - 1
    assert len({k.digest() for k in [KEY, *others]}) == len(others) + 1
    assert cache.times(others) == {}


def test_what_cannot_run_is_remembered(tmp_path: Path):
    cache = TimingCache(tmp_path / "t.sqlite3")
    cache.keep_times({KEY: None})
    assert cache.times([KEY]) == {KEY: None}
    assert cache.known() == []


def test_choices(tmp_path: Path):
    cache = TimingCache(tmp_path / "t.sqlite3")
    assert cache.choice("k", str) is None
    cache.keep_choice("k", "one")
    cache.keep_choice("k", "two")
    assert cache.choice("k", str) == "two"


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from ait_mlir.selection.ranges import Times
from ait_mlir.selection.timings import TimingCache
from tests.selection.test_timings import KEY
path, number = sys.argv[1], int(sys.argv[2])
for i in range(20):
    TimingCache(Path(path)).keep_times({replace(KEY, point=f"{number},{i}"): Times(number + i, 0.0)})
"""


def test_writers_share_it(tmp_path: Path):
    path = tmp_path / "t.sqlite3"
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [
        subprocess.Popen([*command, str(n)], cwd=root, env={**os.environ, "PYTHONPATH": str(root)}) for n in range(4)
    ]
    assert [w.wait(120) for w in writers] == [0] * 4
    keys = {replace(KEY, point=f"{n},{i}"): Times(n + i, 0.0) for n in range(4) for i in range(20)}
    assert TimingCache(path).times(keys) == keys


def test_a_file_of_the_cache_that_is_no_database_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("AIT_TIMINGS", raising=False)
    cache = TimingCache()
    cache.path.write_bytes(b"no database, but long enough to be read as one" * 100)
    cache.keep_times({KEY: Times(1e-6, 0.0)})
    assert cache.times([KEY]) and len(list(cache.path.parent.glob("*.broken-*"))) == 1


def test_a_directory_in_its_place_is_an_error(tmp_path: Path):
    (tmp_path / "t.sqlite3").mkdir()
    with pytest.raises(AitError, match="cannot be used"):
        TimingCache(tmp_path / "t.sqlite3").choice("k", str)


def test_rows_that_hold_nothing_are_as_if_not_there(tmp_path: Path):
    cache = TimingCache(tmp_path / "t.sqlite3")
    other = replace(KEY, point="2,128")
    cache.keep_times({KEY: Times(1e-6, 0.01), other: Times(2e-6, 0.01)})
    ranges = Choice(
        (Candidate.of(None, [("native", {})]), Candidate.of("epilogue 1", [("native", {}), ("native", {})])),
        (4,),
        parse("b*2"),
    )
    for key, text in (("good", ranges.text), ("cut", ranges.text[:-3]), ("number", "7"), ("list", "[[], 1, 2]")):
        cache.keep_choice(key, text)
    with sqlite3.connect(cache.path) as connection:
        connection.execute("UPDATE times SET seconds = 'fast' WHERE key = ?", [KEY.digest()])
        connection.execute("UPDATE times SET what = '{}' WHERE key = ?", [other.digest()])
    assert cache.times([KEY, other]) == {other: Times(2e-6, 0.01)}
    assert cache.known() == []
    assert cache.choice("good", Choice.read) == ranges
    assert [cache.choice(key, Choice.read) for key in ("cut", "number", "list")] == [None] * 3


def test_a_place_that_cannot_be_made_is_an_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AitError, match=r"file cannot be made: File exists; AIT_TIMINGS names another file"):
        TimingCache(tmp_path / "file" / "t.sqlite3").choice("k", str)


def test_shipped_times_survive(tmp_path: Path):
    candidate = Candidate.of("epilogue 1", [("cublaslt", {"algo": 2}), ("native", {})])
    record = Record('["op"]', (1, 128), "s", {candidate: Times(5.25e-6, 0.01, "a" * 16)})
    shipped = Shipped("sm_90a", SETTING, (record,))
    write_shipped(tmp_path / "x.json", shipped, "a command")
    found = read_shipped(tmp_path / "x.json")
    assert found.setting == SETTING and found.arch == "sm_90a"
    (again,) = found.records
    assert again.op == '["op"]' and again.point == (1, 128) and again.times == record.times
    first = (tmp_path / "x.json").read_bytes()
    write_shipped(tmp_path / "y.json", found, "a command")
    assert (tmp_path / "y.json").read_bytes() == first


def test_times_of_two_runs_do_not_stand_at_one_point():
    fast, slow, new = (Candidate.of(None, [("native", {"tile_m": m})]) for m in (32, 64, 128))
    a, b = Times(1e-6, 0.0, "a" * 16), Times(2e-6, 0.0, "b" * 16)
    before = (Record("op", (1,), "s", {fast: a, slow: b}), Record("op", (2,), "t", {fast: a}))
    raced_again = Record("op", (1,), "s", {slow: a, new: b})
    only_new = Record("op", (2,), "t", {new: b})
    other = Record("other", (1,), "u", {new: b})
    assert [(r.op, r.point, r.times) for r in joined(before, (raced_again, only_new, other))] == [
        ("op", (1,), {slow: a, new: b}),
        ("op", (2,), {fast: a, new: b}),
        ("other", (1,), {new: b}),
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"method": 1, "arch": "x", "setting": {}, "records": []}'])
def test_other_files_are_refused(tmp_path: Path, text: str):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(AitError, match="no file of shipped timings"):
        read_shipped(tmp_path / "x.json")


@pytest.mark.parametrize("version", ["method", "structure"])
def test_times_of_another_method_or_kind_of_key_are_left_out(tmp_path: Path, version: str):
    candidate = Candidate.of(None, [("native", {})])
    write_shipped(
        tmp_path / "x.json",
        Shipped("sm_90a", SETTING, (Record('["op"]', (1,), "s", {candidate: Times(1e-6, 0, "b")}),)),
        "c",
    )
    data = json.loads((tmp_path / "x.json").read_text())
    data[version] += 1
    (tmp_path / "x.json").write_text(json.dumps(data))
    assert read_shipped(tmp_path / "x.json").records == ()
