"""Compiles that are killed, and compiles that share a cache: an artifact is whole or not there, and the cache stays good."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.host.cache import Scratch
from ait_mlir.runtime import Model
from tests.runtime.killed import weights

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("moments", [4, pytest.param(50, marks=pytest.mark.full)])
def test_a_killed_compile_leaves_no_half_artifact_and_no_poisoned_cache(
    tmp_path: Path, moments: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses = _run("kill", tmp_path, moments)
    assert len(statuses) == moments and set(statuses) <= {0, -signal.SIGKILL}
    assert statuses[::2] == [-signal.SIGKILL] * len(statuses[::2]), "those that kill themselves"
    for i, status in enumerate(statuses):
        _check(tmp_path / f"again{i}.ait")
        if status == 0 or (tmp_path / f"{i}.ait").exists():
            _check(tmp_path / f"{i}.ait")
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "cache"))
    with Scratch() as folder:
        assert [path for path in folder.parent.iterdir() if path.is_dir()] == [folder]


def test_scratch_folders_of_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path))
    with Scratch() as one, Scratch() as other:
        (one.parent / "build-left").mkdir()
        (one.parent / "build-left" / ".held").write_text("")
        with Scratch() as third:
            assert sorted(one.parent.iterdir()) == sorted((one, other, third))
    assert not one.exists() and not other.exists()


@pytest.mark.parametrize("processes", [2, pytest.param(8, marks=pytest.mark.full)])
def test_processes_on_one_cache_agree(tmp_path: Path, processes: int) -> None:
    assert _run("agree", tmp_path, processes) == [0] * processes
    first, *others = [(tmp_path / f"{i}.ait").read_bytes() for i in range(processes)]
    assert all(other == first for other in others)
    _check(tmp_path / "0.ait")


def _run(what: str, folder: Path, count: int) -> list[int]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "AIT_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-m", "tests.runtime.killed", what, str(folder), str(count)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _check(path: Path) -> None:
    """The artifact is whole and computes what it should."""
    with Model(path) as model:
        (width,) = model.constant_shape("w")
        x = np.random.default_rng(0).random((2, width), np.float32) - np.float32(0.5)
        np.testing.assert_array_equal(model.run_with_tensors([x])["y"], np.maximum(x + weights(width), 0))
