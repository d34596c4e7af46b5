"""Source text, places in it, and errors that point there."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from ait_mlir.errors import CompileError, Fix
from ait_mlir.version import ARTIFACT_MAGIC


@dataclass
class SourceText:
    """A file's text with a table of its lines. If it is a part of a file, `line_offset` counts the lines before it."""

    name: str
    text: str
    line_offset: int = 0
    starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            self.starts.append(at + 1)
            at = self.text.find("\n", at + 1)

    def line_column(self, offset: int) -> tuple[int, int]:
        """1-based line and column of a character offset."""
        line = bisect_right(self.starts, offset)
        return line + self.line_offset, offset - self.starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """The text of a 1-based line of the file."""
        index = line - self.line_offset - 1
        if not 0 <= index < len(self.starts):
            return ""
        end = self.text.find("\n", self.starts[index])
        return self.text[self.starts[index] : end if end >= 0 else len(self.text)]


@dataclass(frozen=True)
class Diagnostic:
    """An error with its place; prints as `FILE:LINE:COL: error: MESSAGE`, the line and a caret."""

    file: str
    line: int
    column: int
    message: str
    line_text: str = ""
    severity: str = "error"
    fixes: tuple[Fix, ...] = ()
    """Changes of the text that mend it."""

    def __str__(self) -> str:
        head = f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}"
        if not self.line_text:
            return head
        shown, column = _window(self.line_text, self.column)
        return f"{head}\n{shown}\n{' ' * (column - 1)}^"


def _window(text: str, column: int, width: int = 160) -> tuple[str, int]:
    """At most `width` characters of a line around a column, with tabs and control characters as blanks."""
    start = 0 if column <= width else column - width // 2
    shown = "".join(c if c.isprintable() else " " for c in text[start : start + width])
    return shown, column - start


class SourceError(CompileError):
    """One or more errors with places in a source text."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__("\n".join(map(str, diagnostics)))
        self.diagnostics = diagnostics


def error_at(source: SourceText, offset: int, message: str, fixes: tuple[Fix, ...] = ()) -> SourceError:
    """An error at a character offset; at the end of the text, it points at the last non-blank character."""
    if not source.text[offset:].strip():
        offset = max(0, len(source.text.rstrip()) - 1)
    line, column = source.line_column(max(0, min(offset, len(source.text))))
    return SourceError([Diagnostic(source.name, line, column, message, source.line_text(line), fixes=fixes)])


def decode(data: bytes, name: str, line_offset: int = 0) -> SourceText:
    """UTF-8 bytes as source text; anything else is an error at the first bad byte."""
    if data.startswith(ARTIFACT_MAGIC):
        advice = "it is an artifact, not text; `ait inspect --ir` prints its IR, `ait run` runs it"
        raise error_at(SourceText(name, "", line_offset), 0, advice)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        before = data[: e.start].decode("utf-8")
        source = SourceText(name, data.decode("utf-8", "replace"), line_offset)
        raise error_at(source, len(before), f"the file is not UTF-8: byte 0x{data[e.start]:02x}") from None
    if (at := text.find("\0")) >= 0:
        raise error_at(SourceText(name, text, line_offset), at, "the file holds a NUL character; it is not text")
    return SourceText(name, text, line_offset)
