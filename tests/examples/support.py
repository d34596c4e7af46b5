"""Where things are, and how examples are run: as a user would, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {"ait": "ait_mlir.tools.cli", "ait-opt": "ait_mlir.tools.ait_opt"}


def make_tools(folder: Path) -> dict[str, str]:
    """An environment whose PATH has the commands of this checkout in front."""
    folder.mkdir(exist_ok=True)
    for name, module in TOOLS.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}:$PYTHONPATH" exec "{sys.executable}" -m {module} "$@"\n')
        script.chmod(0o755)
    path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}


def run(command: list[str] | str, cwd: Path, env: dict[str, str]) -> str:
    """The output of a command; fails with all of it unless the command succeeds."""
    shell = isinstance(command, str)
    done = subprocess.run(command, shell=shell, cwd=cwd, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
