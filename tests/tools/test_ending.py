"""How commands end: what a signal leaves behind, and standard output that cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ait_mlir.host.cache import FOLDER
from tests.tools.test_cli import MODEL

ROOT = Path(__file__).parents[2]
COMPILER = """#!/bin/sh
case "$*" in *--version*) exec g++ --version;; esac
sleep 600 &
echo $$ $! > "$PIDS/new.$$"
mv "$PIDS/new.$$" "$PIDS/$$"
wait
"""
"""A compiler that takes long, and whose work is done by a program that it starts."""
IN_THREADS = """
import sys, threading
from pathlib import Path
from typing import Any
from ait_mlir.host.cache import Scratch
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.target import Target
from ait_mlir.tools.ending import ended_cleanly

def build(name):
    with Scratch() as folder:
        build_library({f"{name}.cc": f"int {name};"}, Target("cpu", "native"), folder)

def command():
    threads = [threading.Thread(target=build, args=(name,)) for name in "ab"]
    [t.start() for t in threads]
    try:
        threading.Event().wait()
    finally:
        [t.join() for t in threads]

sys.exit(ended_cleanly("test", command))
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.mlir"
    path.write_text(MODEL)
    return path


def hear_signals() -> None:
    """Undo what `nohup` and a shell's `&` do: they make a process ignore signals."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(arguments: Sequence[str], folder: Path, **options: Any) -> subprocess.Popen[str]:
    """A process with a compiler that takes long."""
    options.setdefault("preexec_fn", hear_signals)
    (folder / "pids").mkdir()
    compiler = folder / "slow"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "AIT_CACHE_DIR": str(folder / "cache"),
        "CXX": str(compiler),
        "PIDS": str(folder / "pids"),
    }
    return subprocess.Popen([sys.executable, *arguments], stderr=subprocess.PIPE, text=True, env=environment, **options)


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for something; the test hangs, and is stopped, if it never comes."""
    while not holds():
        time.sleep(0.02)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def compilers(folder: Path) -> list[int]:
    return [int(pid) for path in (folder / "pids").glob("[0-9]*") for pid in path.read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_compilers_and_leaves_nothing(tmp_path: Path, model: Path, number: signal.Signals) -> None:
    output = tmp_path / "tiny.ait"
    process = start(["-m", "ait_mlir.tools.cli", "compile", str(model), "-o", str(output)], tmp_path)
    wait_until(lambda: bool(compilers(tmp_path)))
    started = compilers(tmp_path)
    assert all(map(runs, started))
    process.send_signal(number)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (128 + number, f"ait: ended by {number.name}\n")
    wait_until(lambda: not any(map(runs, started)))
    assert not list((tmp_path / "cache" / FOLDER / "tmp").iterdir())
    assert sorted(os.listdir(tmp_path)) == ["cache", "pids", "slow", "tiny.mlir"]


def test_a_signal_ends_compilers_of_other_threads(tmp_path: Path) -> None:
    process = start(["-c", IN_THREADS], tmp_path)
    wait_until(lambda: len(compilers(tmp_path)) == 4)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    wait_until(lambda: not any(map(runs, compilers(tmp_path))))
    assert not list((tmp_path / "cache" / FOLDER / "tmp").iterdir())


def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path, model: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = start(["-m", "ait_mlir.tools.cli", "compile", str(model)], tmp_path, preexec_fn=ignore)
    wait_until(lambda: bool(compilers(tmp_path)))
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert process.communicate()[1] == "ait: ended by SIGTERM\n"


COMMANDS = {
    "ait-opt": ["ait_mlir.tools.ait_opt", "tiny.mlir"],
    "ait": ["ait_mlir.tools.cli", "compile", "tiny.mlir", "--to", "planned"],
    "ait --help": ["ait_mlir.tools.cli", "--help"],
}


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_an_error(command: str, model: Path, buffered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "" if buffered else "1")
    with open("/dev/full", "w") as full:
        done = run(command, model, stdout=full)
    assert done.returncode == 1
    assert done.stderr == f"{command.split()[0]}: error: standard output: No space left on device\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_is_gone_ends_a_command_quietly(command: str, model: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as pipe:
        done = run(command, model, stdout=pipe)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_without_standard_output_nothing_is_told(command: str, model: Path) -> None:
    done = run(command, model, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["ait-opt", "ait"])
def test_an_output_on_a_full_disk_is_named(command: str, model: Path) -> None:
    done = run(command, model, "-o", "/dev/full", stdout=subprocess.PIPE)
    assert done.returncode == 1 and done.stderr.startswith(f"{command}: error: ")
    assert "/dev/full: No space left on device" in done.stderr and len(done.stderr.splitlines()) == 1


def run(command: str, model: Path, *more: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *COMMANDS[command], *more],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=model.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        **options,
    )
