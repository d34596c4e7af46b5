"""Runs at the same time share the threads of the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target

SOURCE = Path(__file__).parent / "threads_model.cc"
CODE = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from ait_mlir.runtime import Model

def threads(model, begun):
    y = np.zeros(1, np.float32)
    model.run([np.full(1, begun, np.float32)], [y])
    return int(y[0])

with Model.from_library(sys.argv[1], "cpu", num_runtimes=4) as first, Model.from_library(sys.argv[1], "cpu") as second:
    for runs, begun in ((1, 1), (2, 3), (4, 7), (1, 8)):
        with ThreadPoolExecutor(runs) as callers:
            told = callers.map(lambda i: threads(second if i == 3 else first, begun), range(runs))
        print(*sorted(told, reverse=True))
"""


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (5, ["5", "5 1", "5 1 1 1", "5"]),
        (1, ["1", "1 1", "1 1 1 1", "1"]),
    ],
)
def test_runs_share_threads(count: int, told: list[str], tmp_path: Path) -> None:
    """The first takes what is free, every other one its caller's own; afterwards all are free again."""
    library = build_library({"model.cc": SOURCE.read_text()}, Target("cpu", "native"), tmp_path)
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", CODE, str(library)],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "AIT_NUM_THREADS": str(count), "PYTHONPATH": str(root)},
    )
    assert ran.stdout.splitlines() == told, ran.stderr
