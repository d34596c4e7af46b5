"""A text that an editor shows: its parts, and what is known of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.context import Context

from ait_mlir.ir.context import context
from ait_mlir.ir.source import Diagnostic, SourceError, SourceText, decode
from ait_mlir.tools.ait_opt import add_xdsl_dialects
from ait_mlir.tools.language.lines import make_room
from ait_mlir.tools.language.outline import Outline
from ait_mlir.tools.language.recovery import Analysis, Memory, analyse
from ait_mlir.tools.language.tokens import Token, tokens_of

MOST_CHARACTERS = 2_000_000
"""Longer texts are not analysed."""


@dataclass(frozen=True)
class Span:
    """A part of a line of a document; lines and columns count characters from 0."""

    line: int
    start: int
    end: int


@dataclass(frozen=True)
class Edit:
    """A text that replaces the one from a place to another place."""

    line: int
    start: int
    end_line: int
    end: int
    text: str


class Refused(Exception):
    """A request that cannot be answered; the message says why."""


@dataclass
class Part:
    """A document, or what stands between two lines `// -----`, with its own names."""

    source: SourceText
    outline: Outline
    memory: Memory = field(default_factory=Memory)
    analysis: Analysis | None = None

    @property
    def first(self) -> int:
        """The line of the document at which the part starts, counted from 0."""
        return self.source.line_offset


def new_context() -> Context:
    """The context that `ait-opt` parses with."""
    ctx = context()
    add_xdsl_dialects(ctx)
    return ctx


class Document:
    """A text with its outline, and with an analysis once there is one."""

    def __init__(self, name: str, text: str = "") -> None:
        self.name = name
        self.parts: list[Part] = []
        self.too_large = False
        self.problem: Diagnostic | None = None
        """Why the text is not analysed."""
        self.update(text)

    def update(self, text: str) -> None:
        """Set the text; nothing is parsed yet."""
        memories = [part.memory for part in self.parts]
        self.lines = text.replace("\r\n", "\n").split("\n")
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        self.problem = self._problem(text)
        self.parts = []
        if self.problem is not None:
            return
        make_room(len(text))
        first = 0
        for last, line in enumerate([*self.lines, "// -----"]):
            if line.startswith("// -----"):
                lines = self.lines[first:last]
                source = SourceText(self.name, "\n".join(lines), first)
                memory = memories[len(self.parts)] if len(self.parts) < len(memories) else Memory()
                self.parts.append(Part(source, Outline(lines), memory))
                first = last + 1

    def _problem(self, text: str) -> Diagnostic | None:
        if len(text) > MOST_CHARACTERS:
            message = (
                f"the text has {len(text) / 1e6:.1f} million characters, too many to be checked while you type "
                f"(at most {MOST_CHARACTERS / 1e6:g} million); ait-opt {self.name} checks it"
            )
            return Diagnostic(self.name, 1, 1, message, severity="warning")
        try:
            decode(text.encode(errors="replace"), self.name)
        except SourceError as e:
            return e.diagnostics[0]
        return None

    def analyse(
        self, ctx: Context, cancelled: Callable[[], bool] = lambda: False, verify_all_ops: bool = True
    ) -> list[Diagnostic]:
        """Parse and verify the text; returns its errors."""
        if self.problem is not None:
            return [self.problem]
        found: list[Diagnostic] = []
        for part in self.parts:
            if part.source.text.strip():
                part.analysis = analyse(ctx, part.source, part.outline, part.memory, cancelled, verify_all_ops)
                found += part.analysis.diagnostics
        return found

    def part_at(self, line: int) -> Part | None:
        """The part that has a line."""
        return next((p for p in reversed(self.parts) if p.first <= line), None)

    def token_at(self, line: int, column: int) -> Token | None:
        """The token at a place, or that ends there."""
        if not 0 <= line < len(self.lines):
            return None
        found = [t for t in tokens_of(self.lines[line]) if t.start <= column <= t.end]
        found.sort(key=lambda t: (t.kind == "mark", -t.start))
        return found[0] if found else None
