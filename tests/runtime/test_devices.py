"""The CUDA runtime on machines without a card: `devices_inside.py`, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ait_mlir.errors import ToolchainError
from ait_mlir.lowering.toolchain import cuda_home


@pytest.mark.full
def test_two_devices_of_a_fake() -> None:
    try:
        cuda_home()
    except ToolchainError:
        pytest.skip("CUDA's headers are not installed")
    inside = Path(__file__).with_name("devices_inside.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(inside)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
