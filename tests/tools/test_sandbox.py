"""All commands that write files, as root: nothing outside of temporary folders changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tools.sandbox import ROOT

UNSHARE = ["unshare", "--mount", "--propagation", "private"]


def can_mount() -> bool:
    """Whether this process may mount file systems where no other process sees them."""
    return os.geteuid() == 0 and subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_mount(), reason="only root can give a process devices of its own")


def inside(*arguments: str) -> str:
    """The output of a Python program that runs with its own mounts."""
    done = subprocess.run(
        [*UNSHARE, sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def sandboxed(*arguments: str) -> Any:
    return json.loads(inside("-m", "tests.tools.sandbox", *arguments).splitlines()[-1])


def test_commands_change_nothing_outside_of_temporary_folders(tmp_path: Path) -> None:
    assert sandboxed(str(tmp_path)) == {"failed": {}, "changed": {}}


def test_a_careless_command_is_noticed(tmp_path: Path) -> None:
    found = sandboxed(str(tmp_path), "--careless")
    assert list(found["changed"]) == ["/dev/null"]


def test_a_file_that_is_a_mount_is_written_in_place(tmp_path: Path) -> None:
    """As a container has them: `docker run -v output:/output`."""
    (tmp_path / "outside").write_text("old")
    (tmp_path / "mounted").write_text("hidden")
    program = (
        "import subprocess; from pathlib import Path; from ait_mlir.host.files import write_atomic;"
        f"folder = Path({str(tmp_path)!r});"
        "subprocess.run(['mount', '--bind', folder / 'outside', folder / 'mounted'], check=True);"
        "write_atomic(folder / 'mounted', b'new')"
    )
    inside("-c", program)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mounted", "outside"]
    assert ((tmp_path / "outside").read_text(), (tmp_path / "mounted").read_text()) == ("new", "hidden")
