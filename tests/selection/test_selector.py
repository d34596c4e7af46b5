"""The method of selection with a card that is a formula: points, ranges, what is measured once, what ships."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from ait_mlir.dims import Scope, sym
from ait_mlir.errors import AitError
from ait_mlir.ir.context import context
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.lowering.candidates import Candidate, candidates_of
from ait_mlir.lowering.choices import Choice
from ait_mlir.lowering.estimates import ALONE, ALONE_SHARE
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import MAX_POINTS, points_of
from ait_mlir.passes.parse import parse_passes
from ait_mlir.selection.matching import bound_axis, match, within
from ait_mlir.selection.measure import Selector, static_digest
from ait_mlir.selection.ranges import Times
from ait_mlir.selection.shortlist import worth_timing
from ait_mlir.selection.tasks import Task
from ait_mlir.selection.timings import Record, Shipped, TimingCache, digest_of
from tests.selection.cards import GEMM, SETTING, FakeMeter, Formula, gemm_task, parse, tasks_of

H200 = Target("cuda", "sm_90a")


def provider_of(candidate: Candidate) -> str:
    return candidate.kernels[0][0]


def crossing(candidate: Candidate, dims: dict[str, int]) -> float | None:
    """The library is best above a batch of 6, Hopper tiles of 128 rows below; the rest is slower by 5 % at least.

    Algorithms of the library are all alike, and so are tiles of as many rows.
    """
    if candidate.cut is not None:
        return 40e-6 + dims["batch"] * 1e-6
    if provider_of(candidate) == "cublaslt":
        return 12e-6 + dims["batch"] * 1e-6
    if provider_of(candidate) == "hopper":
        return (6e-6 + dims["batch"] * 2e-6) * (1.0 if dict(candidate.kernels[0][1])["tile_m"] == 128 else 1.05)
    return 30e-6 + dims["batch"] * 3e-6


def with_library(task_text: str = "relu") -> Task:
    """A product whose whole epilogue the library has."""
    return tasks_of(GEMM.format(lead="batch x 128", hints=" hints [1, 32]").replace("gelu", task_text))[0]


def selector(tmp_path: Path | None, formula: Formula = crossing, **fields: object) -> tuple[Selector, FakeMeter]:
    meter = FakeMeter(formula, noise=0.005)
    cache = None if tmp_path is None else TimingCache(tmp_path / "t.sqlite3")
    return Selector(H200, SETTING, cache, None, meter), meter


class ForgetsChoices(TimingCache):
    """Another cache without what was chosen; times and lists of algorithms are there."""

    def __init__(self, other: TimingCache | None) -> None:
        assert other is not None
        super().__init__(other.path)

    def choice(self, key, read):
        return super().choice(key, read) if key.startswith("algorithms ") else None


def only(found: list[Choice | None]) -> Choice:
    (choice,) = found
    assert choice is not None
    return choice


def test_ranges_end_where_the_times_cross():
    choosing, meter = selector(None)
    choice = only(choosing.choose([with_library()]))
    assert [provider_of(w) for w in choice.candidates] == ["hopper", "cublaslt"]
    assert str(choice.axis) == "batch" and 4 <= choice.upto[0] <= 8
    assert {p for p, _ in meter.raced} >= {(1,), (32,), (6,)}
    assert len(meter.raced) <= 5
    assert any("chosen: batch to" in line for line in choosing.log)


@pytest.mark.parametrize(("ahead", "chosen"), [(0.7, "hopper"), (1.3, "cublaslt")])
def test_a_launch_that_nothing_overlaps_has_to_gain_what_it_costs_others(ahead: float, chosen: str):
    """A library ahead by less than its launch is charged in a chain of its own launches is behind in a model."""

    def formula(candidate: Candidate, dims: dict[str, int]) -> float | None:
        if candidate.cut is not None:
            return 40e-6
        return 9e-6 - ahead * (ALONE + 9e-6 * ALONE_SHARE) if provider_of(candidate) == "cublaslt" else 9e-6

    choosing, meter = selector(None, formula)
    meter.noise = 0.0
    choice = only(choosing.choose([with_library()]))
    assert [provider_of(w) for w in choice.candidates] == [chosen]


def test_the_same_choice_whatever_the_noise():
    choices: set[Choice] = set()
    for seed in range(12):
        choosing, meter = selector(None)
        meter.seed = seed
        choices.add(only(choosing.choose([with_library()])))
    assert len({tuple(provider_of(w) for w in c.candidates) for c in choices}) == 1
    assert len(choices) == 1


def test_nothing_is_measured_twice(tmp_path: Path):
    choosing, meter = selector(tmp_path)
    first = only(choosing.choose([with_library()]))
    assert meter.raced and meter.built
    choosing, meter = selector(tmp_path)
    assert only(choosing.choose([with_library()])) == first
    assert not meter.raced and not meter.built


def test_times_outlive_choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    choosing, _ = selector(tmp_path)
    first = only(choosing.choose([with_library()]))
    monkeypatch.setattr("ait_mlir.selection.measure.code_digest", lambda task, target: "other code")
    choosing, meter = selector(tmp_path)
    assert only(choosing.choose([with_library()])) == first
    assert not meter.raced and not meter.built


@pytest.mark.parametrize("change", ["source", "card", "driver", "cuda", "libraries"])
def test_another_setting_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str):
    choosing, _ = selector(tmp_path)
    choosing.choose([with_library()])
    choosing, meter = selector(tmp_path)
    if change == "source":
        meter.revision = "r2"
        monkeypatch.setattr("ait_mlir.selection.measure.code_digest", lambda task, target: "other code")
    else:
        choosing.setting = replace(SETTING, **{change: "other"})
    choosing.choose([with_library()])
    assert meter.raced


def test_a_candidate_that_cannot_run_is_left_out(tmp_path: Path):
    def formula(candidate: Candidate, dims: dict[str, int]) -> float | None:
        return None if provider_of(candidate) == "hopper" else crossing(candidate, dims)

    choosing, _ = selector(tmp_path, formula)
    assert [provider_of(w) for w in only(choosing.choose([with_library()])).candidates] == ["cublaslt"]
    choosing, meter = selector(tmp_path, formula)
    choosing.choose([with_library()])
    assert not meter.raced


ALGORITHMS = {1: [(66, 1), (66, 2)], 32: [(66, 3), (66, 1)]}


def by_algorithm(candidate: Candidate, dims: dict[str, int]) -> float | None:
    """The third algorithm of the library is the best of all above a batch of 6, and worse than its own choice below."""
    if candidate.cut is not None or provider_of(candidate) != "cublaslt":
        return 50e-6
    tile = candidate.algorithm[1] if candidate.algorithm else 0
    factor = 1.0 if tile != 3 else 0.8 if dims["batch"] > 6 else 1.2
    return (12e-6 + dims["batch"] * 1e-6) * factor


def test_algorithms_of_a_library_are_timed_by_name(tmp_path: Path):
    choosing, meter = selector(tmp_path, by_algorithm)
    meter.library = lambda point: ALGORITHMS[point[0]]
    choice = only(choosing.choose([with_library()]))
    assert [w.algorithm[:2] for w in choice.candidates] == [(), (66, 3)]
    timed = {w.algorithm[:2] for p, candidates in meter.raced for w in candidates if w.cut is None and w.asks_a_library}
    assert timed == {(), (66, 1), (66, 2), (66, 3)}
    listed = meter.listed
    assert listed > 0
    choosing, meter = selector(tmp_path, by_algorithm)
    meter.library = lambda point: pytest.fail("asked again")
    choosing.cache = ForgetsChoices(choosing.cache)
    assert only(choosing.choose([with_library()])) == choice
    assert not meter.raced and not meter.built


def test_what_was_measured_chooses_the_same_where_it_ships(tmp_path: Path):
    choosing, meter = selector(tmp_path, by_algorithm)
    meter.library = lambda point: ALGORITHMS[point[0]]
    measured = only(choosing.choose([with_library()]))
    task = with_library()
    rows: dict[tuple[int, ...], dict[Candidate, Times]] = {}
    for (op, point), candidate, times in TimingCache(tmp_path / "t.sqlite3").known():
        assert op == task.key
        rows.setdefault(point, {})[candidate] = times
    records = tuple(Record(task.key, p, digest_of(task.key_at(p)), candidates) for p, candidates in rows.items())
    shipped = Shipped("sm_90a", SETTING, records)
    assert Selector(H200, SETTING, None, shipped).choose([with_library()]) == [measured]
    choosing, meter = selector(None, by_algorithm)
    choosing.shipped = shipped
    meter.library = lambda point: pytest.fail("asked for its algorithms")
    assert choosing.choose([with_library()]) == [measured]
    assert not meter.raced and not meter.built


def test_nothing_can_run():
    choosing, _ = selector(None, lambda candidate, dims: None)
    assert choosing.choose([with_library()]) == [None]


def shipped_of(task: Task, points: list[tuple[int, ...]], source: str = "") -> Shipped:
    meter = FakeMeter(crossing)
    records: list[Record] = []
    candidates = worth_timing(task, [(1,), (32,)], H200)
    for point in points:
        times = meter.race(task, point, candidates, 1e-6)
        rows = {w: replace(t, source=source or meter.source(task, w)[:16]) for w, t in times.items()}
        records.append(Record(task.key, point, digest_of(task.key_at(point)), rows))
    return Shipped("sm_90a", SETTING, tuple(records))


def test_shipped_times_choose_without_a_card():
    shipped = shipped_of(with_library(), [(1,), (6,), (32,)])
    choosing = Selector(H200, SETTING, None, shipped)
    choice = only(choosing.choose([with_library()]))
    assert [provider_of(w) for w in choice.candidates] == ["hopper", "cublaslt"]
    assert choosing.choose([gemm_task()]) == [None]  # another epilogue: nothing is known


def test_shipped_times_choose_for_a_fixed_size():
    shipped = shipped_of(with_library(), [(1,), (32,)])
    text = GEMM.format(lead="32 x 128", hints="").replace("gelu", "relu")
    (task,) = tasks_of(text)
    assert task.scope.dims == ()
    choice = only(Selector(H200, SETTING, None, shipped).choose([task]))
    assert [provider_of(w) for w in choice.candidates] == ["cublaslt"]


@pytest.mark.parametrize(
    ("batch", "seq", "provider"), [("3", "128", "hopper"), ("3", "7", "hopper"), ("24", "128", "cublaslt")]
)
def test_shipped_times_choose_for_a_size_between(batch: str, seq: str, provider: str):
    shipped = shipped_of(with_library(), [(1,), (32,)])
    text = GEMM.format(lead=f"{batch} x {seq}", hints="").replace("gelu", "relu")
    (choice,) = Selector(H200, SETTING, None, shipped).choose(tasks_of(text))
    if seq != "128":
        assert choice is None  # 128 is a number in what was timed
    else:
        assert choice is not None and [provider_of(w) for w in choice.candidates] == [provider] and choice.axis is None


def test_shipped_times_of_two_dims_choose_where_one_is_a_number():
    (timed,) = tasks_of(GEMM.format(lead="batch x seq", hints="").replace("gelu", "relu"))
    candidates = worth_timing(timed, [(1, 128), (32, 128)], H200)
    records: list[Record] = []
    for point in ((1, 128), (32, 128), (1, 64), (32, 64)):
        slow = 10.0 if point[1] == 64 else 1.0  # of the tiles that are best at 128
        times = FakeMeter(lambda w, d, s=slow: (crossing(w, d) or 0) * (s if provider_of(w) == "hopper" else 1)).race(
            timed, point, candidates, 1e-6
        )
        records.append(Record(timed.key, point, digest_of(timed.key_at(point)), times))
    choosing = Selector(H200, SETTING, None, Shipped("sm_90a", SETTING, tuple(records)))

    def chosen(lead: str) -> Choice:
        return only(choosing.choose(tasks_of(GEMM.format(lead=lead, hints="").replace("gelu", "relu"))))

    choice = chosen("batch x 128")
    assert [provider_of(w) for w in choice.candidates] == ["hopper", "cublaslt"] and str(choice.axis) == "128*batch"
    assert choice.upto[0] == math.isqrt(128 * 4096)
    assert [provider_of(w) for w in chosen("batch x 64").candidates] == ["cublaslt"]
    assert [provider_of(w) for w in chosen("2 x 128").candidates] == ["hopper"] and chosen("2 x 128").axis is None
    assert [provider_of(w) for w in chosen("2 x 64").candidates] == ["cublaslt"]
    few = GEMM.format(lead="batch x 128", hints="").replace("gelu", "relu").replace("1 to 64", "1 to 4")
    assert [provider_of(w) for w in only(choosing.choose(tasks_of(few))).candidates] == ["hopper"]


SOFTMAX = """
ait.graph @g(%x: !ait.tensor<LEAD x HEADS x f16>, %y: !ait.tensor<LEAD x (SEQ + 1) x f16>) dims {b = 1 to 8, s = 1 to 9} {
  %0 = ait.concat %x, %y dim 2 : !ait.tensor<LEAD x (SEQ + HEADS + 1) x f16>
  %1 = ait.softmax %0 dim 2 : !ait.tensor<LEAD x (SEQ + HEADS + 1) x f16>
  ait.output "y" %1 : !ait.tensor<LEAD x (SEQ + HEADS + 1) x f16>
}
"""


def softmax_key(lead: str = "b x s", seq: str = "s", heads: int = 12) -> str:
    text = SOFTMAX.replace("LEAD", lead).replace("HEADS", str(heads)).replace("SEQ", seq)
    return next(t for t in tasks_of(text) if t.op.name == "ait.softmax").key


def test_what_a_task_is_a_case_of():
    timed = softmax_key()
    assert match(timed, timed) == ("d0", "d1")
    assert match(timed, softmax_key("8 x s")) == (8, "d0")
    assert match(timed, softmax_key("8 x 4", "4")) == (8, 4)
    assert match(timed, softmax_key("s x b", "b")) == ("d1", "d0")
    assert match(timed, softmax_key("b x s", "b")) is None  # another dim in the sum
    assert match(timed, softmax_key("8 x 4", "5")) is None
    assert match(timed, softmax_key(heads=13)) is None
    assert match(softmax_key("8 x 4", "4"), timed) is None
    assert str(bound_axis(timed, (8, "d0"), {"d0": "seq"})) == "8*seq*seq + 104*seq"
    assert bound_axis(timed, (8, 4), {}).as_int() == 8 * 4 * (4 + 13)


def test_ops_properties_and_types_count_in_a_key():
    key = gemm_task().key
    for old, new in (("rcr", "rrr"), ("ait.gelu", "ait.relu"), ("f32", "f64"), ("512", "511"), ("[0,1]", "[1,0]")):
        assert old in key and match(key, key.replace(old, new, 1)) is None


def test_the_part_of_a_choice_that_can_be_reached():
    a, b, c = (Candidate.of(None, [("native", {"tile": n})]) for n in (1, 2, 3))
    choice = Choice((a, b, c), (10, 20), sym("n"))
    assert within(choice, 1, 100) == choice and within(choice, 10, 21) == choice
    assert within(choice, 11, 20) == Choice((b,)) and within(choice, 5, 5) == Choice((a,))
    assert within(choice, 21, 22) == Choice((c,)) and within(choice, 15, 40) == Choice((b, c), (20,), sym("n"))
    assert within(Choice((a,)), 1, 2) == Choice((a,))


def test_shipped_times_of_another_shape_of_the_size_count():
    """A product of 3 x 128 rows is one of 1 x 384, where the package knows a candidate that it does not know at 3 x 128."""
    many = gemm_task("batch x seq", "")
    candidates = [f for f in worth_timing(many, [(3, 128)], H200) if f.cut is None][:2]
    slow, fast = (Times(t, 0.0, "s" * 16) for t in (9e-6, 5e-6))
    rows = {
        (3, 128): {candidates[0]: slow},
        (1, 384): {candidates[0]: slow, candidates[1]: fast},
        (1, 512): {candidates[0]: fast},
    }
    records = tuple(Record(many.key, point, "-", times) for point, times in rows.items())
    choosing = Selector(H200, SETTING, None, Shipped("sm_90a", SETTING, records))
    assert only(choosing.choose([gemm_task("3 x 128", "")])).candidates == (candidates[1],)
    assert only(choosing.choose([gemm_task("1 x 512", "")])).candidates == (candidates[0],)


def test_shipped_times_out_of_range_do_not_count():
    shipped = shipped_of(with_library(), [(1,), (32,)])
    text = GEMM.format(lead="batch x 128", hints="").replace("gelu", "relu").replace("1 to 64", "16 to 64")
    choice = only(Selector(H200, SETTING, None, shipped).choose(tasks_of(text)))
    assert [provider_of(w) for w in choice.candidates] == ["cublaslt"]


def test_shipped_kernels_that_are_gone_are_left_out():
    task = with_library()
    candidate = Candidate.of(None, [("nobody", {})])
    old = Candidate.of(None, [("hopper", {"old_key": 1})])
    known = shipped_of(task, [(1,)]).records[0]
    fast = next(iter(known.times.values()))
    record = replace(known, times={candidate: fast, old: fast, **known.times})
    choice = only(Selector(H200, SETTING, None, Shipped("sm_90a", SETTING, (record,))).choose([task]))
    assert [provider_of(w) for w in choice.candidates] == ["hopper"] and choice.candidates[0] != old


def test_measuring_skips_what_ships():
    task = with_library()
    for shipped, measured in (
        (shipped_of(task, [(1,), (32,), (6,)]), False),
        (shipped_of(task, [(1,), (32,), (6,)], source="f" * 16), True),
        (replace(shipped_of(task, [(1,), (32,), (6,)]), setting=replace(SETTING, card="other")), True),
    ):
        choosing, meter = selector(None)
        choosing.shipped = shipped
        choosing.choose([with_library()])
        assert any(p in ((1,), (32,), (6,)) for p, _ in meter.raced) == measured


def test_times_of_the_package_do_not_race_against_new_ones():
    """Where one candidate has other code now, those that have not are timed again, too: cards differ by some percent."""
    task = with_library()
    full = shipped_of(task, [(1,), (32,), (6,)])
    first, *rest = full.records
    stale = next(iter(first.times))
    changed = replace(first, times={**first.times, stale: replace(first.times[stale], source="f" * 16)})
    choosing, meter = selector(None)
    choosing.shipped = replace(full, records=(changed, *rest))
    choosing.choose([with_library()])
    raced = {point: set(candidates) for point, candidates in meter.raced}
    assert set(first.times) <= raced[first.point]
    assert not any(r.point in raced for r in rest)


def test_points():
    scope = Scope.parse("batch = 1 to 64 hints [1, 32], seq = 1 to 512")
    assert points_of(scope) == [(1, 1), (1, 512), (32, 1), (32, 512)]
    assert points_of(scope, ["max"]) == [(64, 512)]
    assert points_of(scope, ["min", "max"]) == [(1, 1), (1, 512), (64, 1), (64, 512)]
    assert points_of(Scope.parse("")) == [()]
    many = points_of(Scope.parse("a = 0 to 9 hints [1, 2, 3], b = 1 to 9 hints [1, 2, 3], c = 1 to 9 hints [1, 2]"))
    assert len(many) == MAX_POINTS and many[0] == (1, 1, 1) and many[-1] == (3, 3, 2)


def test_unknown_points_are_refused():
    module = parse(GEMM.format(lead="batch x 128", hints=""))
    with pytest.raises(AitError, match="unknown points 'middle'"):
        run_passes(context(), module, parse_passes('select{target="cpu" points="middle"}'))


def test_tiles_for_few_rows_and_for_many_are_both_candidates():
    task = gemm_task()
    offered = set(worth_timing(task, [(1,), (64,)], H200))
    for point in ((1,), (64,)):
        best = min((f for f in candidates_of(task.at(point), H200) if f.cut is None), key=lambda f: f.seconds)
        assert best in offered


def test_views_belong_to_a_task():
    text = """
ait.graph @g(%x: !ait.tensor<b x s x 192 x f16>) dims {b = 1 to 8, s = 1 to 64} {
  %0 = ait.reshape %x : !ait.tensor<b x s x 3 x 64 x f16>
  %1 = ait.permute %0 [0, 2, 1, 3] : !ait.tensor<b x 3 x s x 64 x f16>
  %2 = ait.softmax %1 dim 3 : !ait.tensor<b x 3 x s x 64 x f16>
  %3 = ait.permute %2 [0, 2, 1, 3] : !ait.tensor<b x s x 3 x 64 x f16>
  %4 = ait.reshape %3 : !ait.tensor<b x s x 192 x f16>
  %5 = ait.exp %4 : !ait.tensor<b x s x 192 x f16>
  ait.output "y" %5 : !ait.tensor<b x s x 192 x f16>
}
"""
    softmax, exp = tasks_of(text)
    assert softmax.key.startswith('[[["d0","d1",192,"f16"]]')
    assert softmax.key.count("ait.permute") == softmax.key.count("ait.reshape") == 2
    assert "ait.permute" not in exp.key and "ait.reshape" not in exp.key  # the softmax writes it in order


def test_names_and_ranges_of_dims_do_not_count():
    text = GEMM.format(lead="batch x seq", hints="")
    other = text.replace("batch", "n").replace("1 to 64", "1 to 7")
    assert tasks_of(text)[0].key == tasks_of(other)[0].key
    assert gemm_task().key != tasks_of(text)[0].key
    assert [d.name for d in gemm_task().scope.dims] == ["batch"]
    assert static_digest(gemm_task().key, (4,)) == digest_of(gemm_task().key_at((4,)))
    assert gemm_task().key_at((4,)) == tasks_of(GEMM.format(lead="4 x 128", hints=""))[0].key
    assert [len(gemm_task().graph.block.args), len(gemm_task().graph.params())] == [1, 2]
