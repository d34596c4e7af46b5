"""Compiles small models in forked processes: kills these at moments of a compile, or starts several at once.

    python -m tests.runtime.killed kill|agree FOLDER COUNT

prints the exit statuses of the processes as JSON. They share the cache of `AIT_CACHE_DIR`.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ait_mlir.driver import compile_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import decode

TEXT = """
ait.graph @net(%x: !ait.tensor<batch x WIDTH x f32>) dims {batch = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<WIDTH x f32>
  %0 = ait.add %x, %w : !ait.tensor<batch x WIDTH x f32>
  %1 = ait.relu %0 : !ait.tensor<batch x WIDTH x f32>
  ait.output "y" %1 : !ait.tensor<batch x WIDTH x f32>
}
"""
WIDTH = 1 << 17
"""The fewest weights; so many bytes are hashed by several threads."""
CHANGES = {"fcntl.flock", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree", "subprocess.Popen"}
"""Audit events of Python before which a killed compile leaves different files; opening a file to write is another."""

HANGS = 600
"""Seconds after which a compile hangs."""


def weights(width: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(width).random(width, np.float32) - np.float32(0.5)


def compile_net(width: int, output: Path) -> None:
    """Each width is another model: nothing of it is in the cache."""
    text = TEXT.replace("WIDTH", str(width))
    module = parse_source(context(), decode(text.encode(), "net.mlir"))
    compile_module(module, constants={"w": weights(width)}, output=output)


def start(width: int, output: Path, first: Callable[[], None] = lambda: None) -> int:
    """A process, the leader of a new group, that calls `first` and compiles; returns its id."""
    if (process := os.fork()) != 0:
        os.setpgid(process, process)  # whoever of the two is first
        return process
    status = 1
    try:
        os.setpgid(0, 0)
        signal.alarm(HANGS)
        first()
        compile_net(width, output)
        status = 0
    finally:
        os._exit(status)


def ended(process: int) -> int:
    """The exit status of a process; minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def at_changes(action: Callable[[int], None]) -> None:
    """Call `action` with 0, 1 ... before each change that this process makes to files."""
    count = 0

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal count
        writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes or event in CHANGES:
            action(count)
            count += 1

    sys.addaudithook(hook)


def at_change(last: int, end: Callable[[int, int], None]) -> None:
    """Let this process end before a change to files."""
    at_changes(lambda n: end(os.getpid(), signal.SIGKILL) if n == last else None)


def kill(folder: Path, count: int) -> list[int]:
    """Kill a compile at `count` moments, by turns before a change to files and after a time, with and without the
    processes that it started; then compile the same model again.
    """
    read, write = os.pipe()

    def tell(_: int) -> None:
        os.write(write, b".")

    begin = time.monotonic()
    if status := ended(start(WIDTH, folder / "timed.ait", lambda: at_changes(tell))):
        return [status]
    seconds, changes = time.monotonic() - begin, len(os.read(read, 1 << 16))
    statuses: list[int] = []
    for i in range(count):
        width, output, part = WIDTH + 1 + i, folder / f"{i}.ait", (i + 0.5) / count
        end = os.killpg if i // 2 % 2 else os.kill
        if i % 2:
            process = start(width, output)
            time.sleep(seconds * part)
            end(process, signal.SIGKILL)
        else:
            process = start(width, output, functools.partial(at_change, int(changes * part), end))
        statuses.append(ended(process))
        compile_net(width, folder / f"again{i}.ait")
    return statuses


def agree(folder: Path, count: int) -> list[int]:
    """Compile one model in `count` processes at once."""
    return [ended(process) for process in [start(WIDTH, folder / f"{i}.ait") for i in range(count)]]


if __name__ == "__main__":
    compile_net(WIDTH - 1, Path(sys.argv[2]) / "first.ait")  # forked processes need not work out what all models share
    what = {"kill": kill, "agree": agree}[sys.argv[1]]
    print(json.dumps(what(Path(sys.argv[2]), int(sys.argv[3]))))
