"""Single operations beside PyTorch: what is drawn, how results are judged, processes that end early, and resuming."""

from __future__ import annotations

import os
import time

import pytest
import torch

from ait_mlir.errors import AitError
from benchmarks import operations
from benchmarks.operation_cases import F32, TABLE, Input, called, distinct, taken
from benchmarks.random_networks import FAMILIES as FAMILIES_OF_NETWORKS
from benchmarks.random_networks import networks
from benchmarks.random_operations import FAMILIES
from benchmarks.random_operations import operations as drawn
from benchmarks.shared import Done, Results
from benchmarks.workers import outcomes


def test_a_seed_always_draws_the_same():
    assert [case.name for case in drawn(3, 20)] == [case.name for case in drawn(3, 20)]
    assert [case.name for case in drawn(3, 20)] != [case.name for case in drawn(4, 20)]
    assert len({case.name for case in TABLE}) == len(TABLE)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_drawn_runs(seed: int):
    """Every family, with its neighbours, in PyTorch."""
    count = sum(parts for _, parts in FAMILIES.values())
    with torch.inference_mode():
        for case in drawn(seed, count, small=True):
            outputs = operations.listed(case.module()(*case.values("cpu")))
            assert case.seen(case.values("cpu"), outputs), case.name


@pytest.mark.parametrize("family", FAMILIES_OF_NETWORKS)
def test_drawn_networks_run(family: str):
    torch.manual_seed(0)
    for net in networks(1, 2, small=True, families=[family]):
        with torch.inference_mode():
            found = net.make().eval()(*net.inputs(2, torch.float32))
        assert found.isfinite().all() and found.any(), net.text


def test_sizes_fill_a_card():
    sizes = [sum(given.bytes for given in case.inputs) for case in drawn(5, 100)]
    assert sorted(sizes)[50] > 16 << 20 and max(sizes) < 4 << 30


def test_distinct_places():
    places = Input((3, 5), torch.int64, distinct(1, 8)).values("cpu", torch.Generator().manual_seed(0))
    assert all(len(set(row.tolist())) == 5 and set(row.tolist()) <= set(range(8)) for row in places)


def judged(ours: list[torch.Tensor], x: torch.Tensor) -> bool:
    case = called("top", lambda x: x.topk(2, 1), Input(tuple(x.shape), F32), seen=taken(1))
    module = case.module()
    return operations.judged(case, module, [x], ours, module(x)).passed


def test_places_of_equal_values_are_right_and_others_wrong():
    x = torch.tensor([[1.0, 3.0, 3.0, 2.0]])
    values = torch.tensor([[3.0, 3.0]])
    assert judged([values, torch.tensor([[2, 1]])], x) and judged([values, torch.tensor([[1, 2]])], x)
    assert not judged([values, torch.tensor([[1, 3]])], x)
    assert not judged([torch.tensor([[3.0, 2.0]]), torch.tensor([[1, 2]])], x)
    assert not judged([torch.tensor([[3.0, float("nan")]]), torch.tensor([[1, 2]])], x)


def start(text: str):
    if text == "refused":
        raise AitError("no card")

    def work(task: str) -> str:
        if task == "crash":
            os._exit(7)
        if task == "hang":
            time.sleep(60)
        if task == "raise":
            raise AitError("it is refused")
        return f"{text} {task} {os.getpid()}"

    return work


def test_a_task_that_ends_its_process_does_not_end_the_others():
    assert not any(error for _, _, error in outcomes(["a"], start, [("done",)], limit=120))  # the first loads PyTorch
    tasks = ["a", "crash", "b", "raise", "hang", "c", "d"]
    found = {task: (result, error) for task, result, error in outcomes(tasks, start, [("done",)] * 2, limit=5)}
    assert set(found) == set(tasks)
    assert found["crash"] == (None, "the process ended with 7")
    assert found["raise"] == (None, "AitError: it is refused")
    assert found["hang"] == (None, "not done after 5 s")
    assert all(found[task][0].startswith(f"done {task} ") for task in "abcd")


def test_processes_that_do_not_start():
    assert list(outcomes(["a", "b"], start, [("refused",)], limit=15)) == [
        ("a", None, "AitError: no card"),
        ("b", None, "AitError: no card"),
    ]


def test_results_are_kept_and_not_made_again(tmp_path, monkeypatch, capfd):
    """One drawn operation on the CPU from import to its row; the second run only prints."""
    place, case = next((i, c) for i, c in enumerate(drawn(2, 30, small=True)) if c.name.startswith("log_softmax over"))
    rows = tmp_path / "rows.jsonl"
    options = ["--target", "cpu", "--seed", "2", "--count", "30", "--only", str(place), "--budget", "0.01"]
    monkeypatch.setattr("sys.argv", ["operations", *options, "--rows", str(rows), "--workdir", str(tmp_path / "work")])
    assert operations.main() == 0
    (done,) = Results(rows).read()
    assert isinstance(done, Done) and done.rows[0].passed and done.rows[0].cells[0] == f"2.{place} {case.name}"
    assert "1 of 1 compiled" in capfd.readouterr().out
    assert operations.main() == 0
    out = capfd.readouterr().out
    assert "compiled" not in out and "of 1 operations: geometric mean" in out


def test_wrong_options(monkeypatch, capsys):
    for options, text in (
        (["--shard", "3/2"], "expected I/N with I from 1 to N"),
        (["--peers", "jax"], "no peer jax"),
        (["--jobs", "0"], "are at least 1"),
    ):
        monkeypatch.setattr("sys.argv", ["operations", *options])
        with pytest.raises(SystemExit):
            operations.main()
        assert text in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["operations", "--table", "no such operation"])
    with pytest.raises(AitError, match="no operation has such a name"):
        operations.main()
