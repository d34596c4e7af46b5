"""The times that the package brings along are found for the tasks of the models that they were taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

import ait_mlir
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import points_of
from ait_mlir.selection.shortlist import worth_timing
from ait_mlir.selection.timings import shipped_for
from benchmarks.timings import migrate, tasks_of
from benchmarks.workloads import MODELS

H200 = Target("cuda", "sm_90a")


@pytest.mark.parametrize("name", ["bert", "vit", "gpt2"])
def test_every_task_with_a_choice_is_known(name: str):
    shipped = shipped_for("sm_90a")
    assert shipped is not None
    sizes = [(b, s) for b in MODELS[name].batches for s in MODELS[name].lengths]
    tasks = [t for t in tasks_of(name, sizes, H200) if len(worth_timing(t, points_of(t.scope), H200)) > 1]
    missing = [t.op.name for t in tasks if not shipped.by_op.get(t.key)]
    assert len(tasks) >= 4 and not missing


def test_keys_of_an_older_structure_are_migrated(tmp_path: Path):
    today = (Path(ait_mlir.__file__).parent / "timings" / "h200.json").read_text()
    old = tmp_path / "old.json"
    old.write_text(today.replace('"structure": 1', '"structure": 0').replace(" : i64", ":i64"))
    migrate(old)
    assert old.read_text() == today
