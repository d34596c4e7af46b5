"""The times that the package brings along can be read and choose for BERT, on a machine without a card."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import ait_mlir
from ait_mlir.dims import const
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.choices import Choice
from ait_mlir.lowering.estimates import in_a_model
from ait_mlir.lowering.kernels import Target
from ait_mlir.selection.budget import selector
from ait_mlir.selection.matching import axis_of_key
from ait_mlir.selection.measure import Selector, is_alone, static_digest
from ait_mlir.selection.ranges import MOST_NOISE, SWITCH
from ait_mlir.selection.tasks import Task
from ait_mlir.selection.timings import METHOD, Record, read_shipped, shipped_for
from tests.selection.cards import task_of, tasks_of

H200 = Target("cuda", "sm_90a")
FOLDER = Path(ait_mlir.__file__).parent / "timings"
TEXT = """
ait.graph @g(%x: !ait.tensor<n x s x 3072 x f16>, %r: !ait.tensor<n x s x 768 x f16>) dims {n = 1 to 64, s = 1 to 512} {
  %w = ait.param "w" : !ait.tensor<768 x 3072 x f16>
  %b = ait.param "b" : !ait.tensor<768 x f16>
  %0 = ait.gemm rcr %x, %w epilogue(%b, %r) {
  ^bb0(%acc: f32, %1: f32, %2: f32):
    %3 = ait.add %acc, %1 : f32
    %4 = ait.add %3, %2 : f32
    ait.yield %4 : f32
  } : !ait.tensor<n x s x 768 x f16>
  ait.output "y" %0 : !ait.tensor<n x s x 768 x f16>
}
"""


def test_every_file_is_whole():
    for path in FOLDER.glob("*.json"):
        shipped = read_shipped(path)
        assert shipped.records and shipped.setting.card and shipped.arch.startswith("sm_")
        assert f'"method": {METHOD}' in path.read_text()
        for record in shipped.records[:4]:
            assert record.static == static_digest(record.op, record.point)
            assert all(0 < t.seconds < 1 for t in record.times.values())


def test_bert_is_known_on_the_h200():
    assert shipped_for("sm_90a") is not None and shipped_for("sm_80") is None
    (choice,) = selector(H200, measure=False).choose(tasks_of(TEXT))
    assert choice is not None


def test_every_record_is_of_a_task_of_today():
    """No change of the dialect has left times behind: a task that is made of what a key says has that key."""
    found = dict(records())
    assert sum(len(known) for known in found.values()) == len(shipped_records()) > 0
    for key in found:
        assert task_of(key).key == key


def candidate_at(choice: Choice, place: int) -> Candidate:
    return choice.candidates[sum(place > limit for limit in choice.upto)]


def usable(choosing: Selector, task: Task, record: Record) -> dict[Candidate, float]:
    """The seconds, in a model, of the candidates that may be chosen."""
    trusted = [w for w in record.times if choosing._can_be_trusted(task, w)]  # pyright: ignore[reportPrivateUsage]
    alone = {w for w in trusted if is_alone(task.op, w, choosing.target)}
    return {w: in_a_model(record.times[w].seconds, w in alone) for w in trusted}


def shipped_records() -> tuple[Record, ...]:
    shipped = shipped_for("sm_90a")
    assert shipped is not None
    return shipped.records


def records() -> Iterator[tuple[str, list[Record]]]:
    """The shipped times of each task, by its key."""
    shipped = shipped_for("sm_90a")
    assert shipped is not None and shipped.by_op
    yield from shipped.by_op.items()


def test_choices_without_a_card_are_near_the_best():
    """Within noise and what a branch must gain, over all points of an op; two points of one size share a kernel."""
    choosing = selector(H200, measure=False)
    for key, known in records():
        task = task_of(key)
        (choice,) = choosing.choose([task])
        lost = list[float]()
        for record in known:
            if not (times := usable(choosing, task, record)):
                continue
            assert choice is not None, key
            candidate = candidate_at(choice, size_of(key, record))
            if candidate in times:  # not every candidate was timed at every point
                lost.append(math.log(times[candidate] / min(times.values())))
        assert len(lost) * 2 >= len(known) or choice is None, key
        assert not lost or sum(lost) / len(lost) <= MOST_NOISE + SWITCH, (key, lost)


def size_of(key: str, record: Record) -> int:
    return axis_of_key(key).evaluate({f"d{i}": n for i, n in enumerate(record.point)})


def test_a_model_of_one_size_gets_the_best_of_that_size():
    choosing = selector(H200, measure=False)
    for key, known in records():
        for record in known:
            if not record.point:
                continue
            task = task_of(key, {f"d{i}": const(n) for i, n in enumerate(record.point)})
            (choice,) = choosing.choose([task])
            if choice is None:
                assert not usable(choosing, task, record)
                continue
            (candidate,) = choice.candidates
            size = size_of(key, record)
            shapes = [r for r in known if size_of(key, r) == size] if task.op.name == "ait.gemm" else [record]
            found = [times for times in (usable(choosing, task, r) for r in shapes) if candidate in times]
            assert any(times[candidate] <= min(times.values()) * (1 + MOST_NOISE) for times in found), (
                key,
                record.point,
            )
