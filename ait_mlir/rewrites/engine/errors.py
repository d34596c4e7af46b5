"""Errors of pattern sets, pointing at the PDL operation at fault."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from xdsl.utils.exceptions import PassFailedException

from ait_mlir.ir.parser import op_place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdsl.ir import Operation


class PatternError(ValueError):
    """A pattern that cannot be compiled. `op` is the PDL operation at fault; its location is in a pattern file or in
    the Python source of the pattern."""

    def __init__(self, op: Operation, message: str) -> None:
        place = op_place(op)
        super().__init__(message if place is None else f"{place[0]}:{place[1]}: {message}")
        self.op = op
        self.message = message


class RewriteError(PassFailedException):
    """A pattern that cannot be applied. The message names the pattern; `op` is the operation it was applied to."""

    def __init__(self, message: str, op: Operation | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.op = op


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The error text for an unknown name, with the closest known names."""
    close = get_close_matches(name, list(known), 3, 0.75)
    hint = f"; did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
    return f"unknown {what} {name!r}{hint}"
