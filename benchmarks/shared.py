"""Results in a file that several processes fill: no network is measured twice.

A line of the file is one network with its rows, written when all of them are measured. Where a process ended early, the
same command goes on; two cards fill one file twice as fast.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from ait_mlir.errors import AitError

_held: list[BinaryIO] = []
"""Folders belong to their process until it ends."""


@dataclass(frozen=True)
class Row:
    """One line of a table: its cells, ours over the best peer, and whether the result is right."""

    cells: list[str]
    ratio: float
    passed: bool


@dataclass(frozen=True)
class Done:
    """The outcome of a network: the card, its rows, and the error if there was one."""

    network: str
    device: str
    rows: list[Row]
    error: str = ""


class Results:
    """The measured networks, in a file or, without a file, in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.kept: list[Done] = []
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)

    def read(self) -> list[Done]:
        """All results; an incomplete last line is left out. `AitError` for another kind of file."""
        if self.path is None:
            return self.kept
        if not self.path.exists():
            return []
        try:
            lines = [json.loads(line) for line in self.path.read_text(encoding="utf-8").split("\n")[:-1] if line]
            return [Done(**line | {"rows": [Row(**row) for row in line["rows"]]}) for line in lines]
        except (ValueError, TypeError, KeyError) as error:
            raise AitError(f"{self.path} is no file of results: {error}") from error

    def add(self, done: Done) -> None:
        """Keep a network's results."""
        if self.path is None:
            self.kept.append(done)
            return
        with self.path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if file.tell() and not self.path.read_bytes().endswith(b"\n"):
                file.truncate(self.path.read_bytes().rfind(b"\n") + 1)  # another process ended while it wrote
            file.write(json.dumps(asdict(done), separators=(",", ":")).encode() + b"\n")

    @contextlib.contextmanager
    def taken(self, network: str) -> Generator[bool]:
        """Whether this process may measure a network: it has no result, and no other process measures it."""
        if self.path is None:
            yield True
            return
        folder = self.path.with_name(f"{self.path.name}.taken")
        folder.mkdir(exist_ok=True)
        with (folder / hashlib.sha256(network.encode()).hexdigest()[:16]).open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
                return
            yield all(done.network != network for done in self.read())


def own_folder(path: str) -> Path:
    """A folder that only this process uses: `path` or, while another process uses it, `path` with a number."""
    for number in range(1, 1000):
        folder = Path(path if number == 1 else f"{path}-{number}")
        folder.mkdir(parents=True, exist_ok=True)
        held = (folder / ".held").open("ab")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            held.close()
            continue
        _held.append(held)
        return folder
    raise AitError(f"{path} and all folders beside it are in use")
