"""The CUDA runtime on machines without a card: `devices_inside.py` and `ranges_inside.py`, each in its own process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ait_mlir.errors import ToolchainError
from ait_mlir.lowering.toolchain import cuda_home


@pytest.mark.full
@pytest.mark.parametrize("name", ["devices_inside.py", "ranges_inside.py"])
def test_devices_of_a_fake(name: str) -> None:
    try:
        cuda_home()
    except ToolchainError:
        pytest.skip("CUDA's headers are not installed")
    inside = Path(__file__).with_name(name)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(inside)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
