"""Everyday manners of the commands: doctor, versions, completions, and the line that shows progress."""

from __future__ import annotations

import io
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ait_mlir.host import progress
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes.parse import parse_passes
from ait_mlir.tools import ait_opt
from ait_mlir.tools.cli import main
from ait_mlir.tools.commands import doctor
from ait_mlir.version import __version__


def test_doctor_lists_what_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = {row["part"]: row for row in json.loads(capsys.readouterr().out)}
    assert found["ait_mlir"]["found"].startswith(__version__) and found["g++"]["state"] == "ok"
    assert all(row["found"] for row in found.values())
    assert all(row["cost"] for row in found.values() if row["state"] != "ok")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    missing = [row for row in found.values() if row["state"] != "ok"]
    assert all(f"  {row['part']}: {row['cost']}\n" in out for row in missing)


def test_doctor_says_what_a_missing_part_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("AIT_OPENBLAS", "/no/such/library.so")
    monkeypatch.setenv("AIT_CACHE_DIR", "/proc/none")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "needed" in out and "no-such-compiler" in out and "apt-get install g++" in out
    costs = out.partition("without them:\n")[2]
    for part, cost in (("g++", "nothing can be compiled"), ("OpenBLAS", "fewer kernels"), ("cache", "AIT_CACHE_DIR")):
        assert f"  {part}: " in costs and cost in costs


@pytest.mark.parametrize("tool", [main, ait_opt.main])
def test_versions(tool: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        tool(["--version"])  # type: ignore[operator]
    first, *others = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0 and first.startswith(f"ait_mlir {__version__} (xDSL ")
    assert [line.split(" ")[0].rstrip(":") for line in others] == [f.part for f in doctor.toolchains()]


def test_the_completions_are_a_script_of_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completions"
    script.write_text(capsys.readouterr().out)
    asked = f"""source {script}
COMP_WORDS=(ait update-checks --d); COMP_CWORD=2; _shtab_ait; echo "${{COMPREPLY[@]}}"
COMP_WORDS=(ait-opt --mlir-t); COMP_CWORD=1; _shtab_ait_opt; echo "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["--diff", "--mlir-timing"] and done.stderr == ""


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and tells when something was written."""

    def __init__(self, is_terminal: bool = True) -> None:
        super().__init__()
        self.is_terminal, self.written = is_terminal, threading.Event()

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, text: str) -> int:
        count = super().write(text)
        self.written.set()
        return count


TEXT = 'ait.graph @g(%x: !ait.tensor<4 x f32>) {\n  ait.output "y" %x : !ait.tensor<4 x f32>\n}\n'


def test_a_terminal_shows_the_running_pass_and_is_left_clean() -> None:
    terminal, other = Terminal(), Terminal(is_terminal=False)
    with progress.shown(terminal, patience=0.0), progress.shown(other, patience=0.0):
        run_passes(context(), parse_text(context(), TEXT), parse_passes("simplify,fuse-norm"))
        assert terminal.written.wait(60)
    assert terminal.getvalue().startswith("\r\x1b[Kpass ") and terminal.getvalue().endswith("\r\x1b[K")
    assert other.getvalue() == ""
    before = terminal.getvalue()
    progress.step("no command runs")
    assert terminal.getvalue() == before


def test_nothing_is_shown_early() -> None:
    terminal = Terminal()
    with progress.shown(terminal, patience=3600.0):
        progress.step("pass simplify")
        progress.hide()
    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("built_runtime")
def test_scripts_read_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g.mlir").write_text(
        TEXT.replace("4 x", "b x 4 x")
        .replace("{\n", "dims {b = 1 to 8} {\n  %0 = ait.relu %x : !ait.tensor<b x 4 x f32>\n", 1)
        .replace('"y" %x', '"y" %0')
    )
    assert main(["compile", "g.mlir", "-o", "g.ait"]) == 0
    capsys.readouterr()

    def printed(*command: str) -> dict[str, Any]:
        assert main([*command, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    inspected = printed("inspect", "g.ait", "--dim", "b=3")
    assert inspected["manifest"]["dims"][0]["name"] == "b" and inspected["bytes"]["library"] > 0
    launch = {"read": 48, "written": 48, "flops": 12}
    assert [{k: row[k] for k in launch} for row in inspected["launches"]] == [launch]
    assert printed("inspect", "g.mlir", "--dim", "b=3")["launches"] == inspected["launches"]
    timed = printed("bench", "g.ait", "--dim", "b=3", "--count", "2", "--repeat", "2")
    assert timed["dims"] == {"b": 3} and timed["ms"] > 0 and timed["arena_bytes"] >= 0
    ran = printed("run", "g.ait", "--dim", "b=3", "--compare", "reference")
    assert (ran["outputs"]["y"]["dtype"], ran["outputs"]["y"]["shape"]) == ("float32", [3, 4])
    assert ran["outputs"]["y"]["min"] == 0 and ran["errors"]["y"]["good"] and "errors" in printed("run", "g.ait")
    np.save("x.npy", np.full((3, 4), np.inf, np.float32))
    np.save("zeros.npy", np.zeros((3, 4), np.float32))
    assert main(["run", "g.ait", "--input", "x=@x.npy", "--compare", "zeros.npy", "--json"]) == 1
    ran = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert ran["outputs"]["y"] == {"dtype": "float32", "shape": [3, 4], "not_finite": 12}
    assert ran["errors"]["y"]["misplaced"] == 12 and not ran["errors"]["y"]["good"]
    assert printed("cache")["parts"]["libraries"]["files"] > 0
    assert main(["inspect", "g.ait", "--ir", "--json"]) == 1 and "leave out" in capsys.readouterr().err
