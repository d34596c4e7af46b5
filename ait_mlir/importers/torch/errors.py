"""What the importer says when a model cannot be imported."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ait_mlir.errors import CompileError

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n?\s*([^\n]*)')
_LIBRARIES = ("/torch/", "/ait_mlir/importers/")


class ImportFailure(CompileError):
    """A PyTorch model that cannot become an `ait` module. The message names the place in the model's source."""


@dataclass(frozen=True)
class Unsupported:
    """All uses of one operation that the importer cannot translate."""

    operation: str
    count: int
    place: str
    """The first use: `file.py:12 in forward: code`."""
    advice: str

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count} times"
        return f"{self.operation}, used {times}, first at {self.place}\n    {self.advice}"


class UnsupportedOps(ImportFailure):
    """Every unsupported operation of a model at once; `found` has them one by one."""

    def __init__(self, found: Iterable[Unsupported]) -> None:
        self.found = tuple(found)
        count = len(self.found)
        lines = [f"{count} operation{'s' if count > 1 else ''} of the model cannot be imported:"]
        lines += [f"  {item}" for item in self.found]
        super().__init__("\n".join(lines))


def place_in_source(stack_trace: str | None) -> str:
    """The innermost frame of a stack trace that is not PyTorch's own, as `file.py:12 in forward: code`."""
    frames = _FRAME.findall(stack_trace or "")
    if not frames:
        return "an unknown place (the program was saved without stack traces)"
    frames = [f for f in frames if not f[0].startswith("<")] or frames
    mine = [f for f in frames if not any(part in f[0] for part in _LIBRARIES)]
    file, line, function, code = (mine or frames)[-1]
    return f"{file}:{line} in {function}" + (f": {code.strip()}" if code.strip() else "")


def place_of(node: Any) -> str:
    """Where in the model's Python source a node of an exported graph comes from."""
    return place_in_source(node.meta.get("stack_trace") or node.stack_trace)
