"""The errors for models that cannot be imported."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr, UnknownLoc

from ait_mlir.importers.errors import ImportFailure, NotSupported

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n?\s*([^\n]*)')
_RESUMED = re.compile(r"torch_dynamo_resume_in_(\w+)_at_\d+")  # the rest of a function after a graph break
_LIBRARIES = ("-packages/torch/", "/lib/python3.")

__all__ = [
    "ImportFailure",
    "NotSupported",
    "Unsupported",
    "UnsupportedOps",
    "location_of",
    "place_in_source",
    "place_of",
]


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
    """The model has unsupported operations; `found` lists all of them."""

    def __init__(self, found: Iterable[Unsupported]) -> None:
        self.found = tuple(found)
        count = len(self.found)
        lines = [f"{count} operation{'s' if count > 1 else ''} of the model cannot be imported:"]
        lines += [f"  {item}" for item in self.found]
        super().__init__("\n".join(lines))


NO_PLACE = "an unknown place (the program has no stack traces)"


def _is_library(file: str) -> bool:
    """Whether a file is PyTorch's, Python's or the importer's own; other packages count as the user's models."""
    return any(part in file for part in _LIBRARIES) and not ("-packages/" in file and "-packages/torch/" not in file)


def _frames(stack_trace: str | None) -> list[tuple[str, str, str, str]]:
    """The frames of a stack trace outside of the importer: file, line, function, code."""
    frames = _FRAME.findall(stack_trace or "")
    return [f for f in frames if not f[0].startswith("<") and "/ait_mlir/importers/" not in f[0]]


def place_in_source(stack_trace: str | None, fallback: str | None = None) -> str:
    """The innermost frame of a stack trace that is not PyTorch's own, as `file.py:12 in forward: code`.

    If all frames are PyTorch's, `fallback`, or the innermost frame without a fallback.
    """
    frames = _frames(stack_trace)
    mine = [f for f in frames if not _is_library(f[0])]
    if not frames or (not mine and fallback is not None):
        return NO_PLACE if fallback is None else fallback
    file, line, function, code = (mine or frames)[-1]
    function = _RESUMED.sub(r"\1", function)
    return f"{file}:{line} in {function}" + (f": {code.strip()}" if code.strip() else "")


def place_of(node: Any) -> str:
    """Where in the model's Python source a node of an exported graph comes from."""
    return place_in_source(_stack_trace(node))


def location_of(node: Any) -> LocationAttr:
    """The line of the model's Python source that a node of an exported graph comes from."""
    frames = [] if node is None else _frames(_stack_trace(node))
    if not frames:
        return UnknownLoc()
    file, line, _, _ = ([f for f in frames if not _is_library(f[0])] or frames)[-1]
    return FileLineColLoc(StringAttr(file), IntAttr(int(line)), IntAttr(1))


def _stack_trace(node: Any) -> str | None:
    return node.meta.get("stack_trace") or node.stack_trace
