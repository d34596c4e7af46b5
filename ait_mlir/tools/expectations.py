"""`--verify-diagnostics`: compares the errors of a text with its `// expected-error {{...}}` comments, as MLIR does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ait_mlir.ir.source import Diagnostic, SourceError, SourceText

_KIND = r"\bexpected-(?P<kind>error|warning|note|remark)\b"
_BEGUN = re.compile(r"//.*\bexpected-\w")
_COMMENT = re.compile(
    rf"{_KIND}(?P<re>-re)? *(?:@ *(?P<where>above|below|unknown|[+-]\d+))? *"
    r"\{\{(?P<text>(?:\{\{.*?\}\}|(?!\}\}(?!\})).)*)\}\}"
)
_FORM = "expected-error {{part of the message}}, with @above, @below, @+N, @-N or @unknown before the braces"


@dataclass(frozen=True)
class Expectation:
    """A comment that announces a diagnostic: its kind (`error`), its line (None: any), and a part of its message."""

    kind: str
    line: int | None
    text: str
    pattern: str
    at: tuple[int, int]
    """Line and column of the comment."""

    def accepts(self, found: Diagnostic) -> bool:
        """Whether a diagnostic is the announced one."""
        return (
            found.severity == self.kind
            and self.line in (None, found.line)
            and re.search(self.pattern, found.message) is not None
        )


def expectations(source: SourceText) -> list[Expectation]:
    """The expectations of a text, in order; raises `SourceError` for a comment that begins like one and is none.

    `@above` and `@below` mean the next line in that direction without an expectation, so several may be stacked.
    """
    lines = source.text.split("\n")
    rows = [[] if _BEGUN.search(line) is None else list(_COMMENT.finditer(line)) for line in lines]
    found: list[Expectation] = []
    for i, (line, row) in enumerate(zip(lines, rows, strict=True)):
        number = i + source.line_offset + 1
        if _BEGUN.search(line) is not None and len(row) < max(1, len(re.findall(_KIND, line))):
            column = line.index("expected-") + 1
            message = f"this expectation cannot be read; its form is {_FORM}"
            raise SourceError([Diagnostic(source.name, number, column, message, line)])
        for match in row:
            meant = _meant_line(match["where"], i, rows)
            at = (number, match.start() + 1)
            try:
                pattern = _pattern(match["text"]) if match["re"] else re.escape(match["text"])
            except re.error as error:
                message = f"{{{{{error.pattern}}}}} is no regular expression: {error.msg}"
                raise SourceError([Diagnostic(source.name, *at, message, line)]) from None
            line_number = None if meant is None else meant + source.line_offset + 1
            found.append(Expectation(match["kind"], line_number, match["text"], pattern, at))
    return found


def _meant_line(where: str | None, i: int, rows: Sequence[Sequence[object]]) -> int | None:
    """The index of the line that an expectation at index `i` means; None for any."""
    if where == "unknown":
        return None
    if where not in ("above", "below"):
        return i + int(where or 0)
    step = 1 if where == "below" else -1
    i += step
    while 0 <= i < len(rows) and rows[i]:
        i += step
    return i


def _pattern(text: str) -> str:
    """The regular expression of an `expected-error-re`: text in `{{ }}` is a regular expression, other text is literal.
    """
    parts = re.split(r"\{\{(.*?)\}\}", text)
    for part in parts[1::2]:
        re.compile(part)
    return "".join(f"(?:{part})" if i % 2 else re.escape(part) for i, part in enumerate(parts))


def unmet(source: SourceText, wanted: Sequence[Expectation], found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The differences: expected diagnostics that were not produced, and diagnostics that were not expected."""
    problems: list[Diagnostic] = []
    rest = list(found)
    for expectation in wanted:
        match = next((d for d in rest if expectation.accepts(d)), None)
        if match is not None:
            rest.remove(match)
            continue
        place = "any line" if expectation.line is None else f"line {expectation.line}"
        message = f'expected {expectation.kind} "{expectation.text}" was not produced at {place}'
        problems.append(Diagnostic(source.name, *expectation.at, message, source.line_text(expectation.at[0])))
    for d in rest:
        message = f"unexpected {d.severity}: {d.message}"
        problems.append(Diagnostic(d.file, d.line, d.column, message, d.line_text))
    return problems
