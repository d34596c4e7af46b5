"""The edits behind the hints of errors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ait_mlir.errors import Fix
from ait_mlir.ir.source import Diagnostic
from ait_mlir.tools.language.document import Document, Edit, Part
from ait_mlir.tools.language.outline import Place, Statement
from ait_mlir.tools.language.tokens import Token, tokens_of


def edits_of(document: Document, d: Diagnostic, fix: Fix) -> list[Edit]:
    """The changes of a document that a fix of one of its errors makes; none if its place is not found."""
    part = document.part_at(d.line - 1)
    if part is None:
        return []
    line = d.line - 1 - part.first
    s = part.outline.at(line)
    match fix.place:
        case "end":
            last = len(document.lines) - 1
            end = len(document.lines[last])
            return [Edit(last, end, last, end, fix.text if end == 0 else f"{document.line_end}{fix.text}")]
        case "word":
            token = next((t for t in tokens_of(part.outline.lines[line]) if t.start <= d.column - 1 < t.end), None)
            return [] if token is None else [_instead(part, Place(line, token), fix.text)]
        case "dim" if s is not None:
            old, _, new = fix.text.partition(">")
            uses = (p for p in part.outline.tokens(s) if p.token.kind == "dim" and p.token.text == old)
            return [_instead(part, p, new) for p in uses]
        case "result" if s is not None:
            spans = list(_result_types(part, s))
            if fix.index >= len(spans):
                return []
            start, end = spans[fix.index]
            at = s.last + part.first
            return [Edit(at, start, at, end, fix.text)]
        case "swap" if s is not None:
            values = [p for p in part.outline.tokens(s, nested=False) if p.token.kind == "value"]
            first, second = values[len(part.outline.results(s)) :][:2]
            return [_instead(part, first, second.token.text), _instead(part, second, first.token.text)]
        case "dims" if s is not None:
            return _declared(part, s, fix.text)
        case "after" if s is not None:
            tokens = [t for t in tokens_of(part.outline.lines[s.last]) if t.kind != "comment"]
            end = tokens[-1].end if tokens else 0
            return [Edit(s.last + part.first, end, s.last + part.first, end, fix.text)]
        case _:
            return []


def _instead(part: Part, place: Place, text: str) -> Edit:
    line = place.line + part.first
    return Edit(line, place.token.start, line, place.token.end, text)


def _result_types(part: Part, s: Statement) -> Iterator[tuple[int, int]]:
    """The columns of the types after the last colon of a statement, in its last line."""
    tokens = [t for t in tokens_of(part.outline.lines[s.last]) if t.kind != "comment"]
    depth, colon = 0, -1
    for i, t in enumerate(tokens):
        depth += _depth(t)
        if t.text in (":", "->") and depth == 0:
            colon = i
    if colon < 0 or colon + 1 >= len(tokens):
        return
    start = tokens[colon + 1].start
    for i, t in enumerate(tokens[colon + 1 :], colon + 1):
        depth += _depth(t)
        if depth == 0 and t.text == ",":
            yield start, tokens[i - 1].end
            start = tokens[i + 1].start if i + 1 < len(tokens) else t.end
    yield start, tokens[-1].end


def _depth(t: Token) -> int:
    return (t.text in ("(", "[", "{", "<")) - (t.text in (")", "]", "}", ">"))


def _declared(part: Part, s: Statement, text: str) -> list[Edit]:
    """Add a declaration to the dims of the outermost op around a statement."""
    top = list(s.around())[-1]
    inside = [a for a in s.around() if part.outline.op(a).rpartition(".")[2] in ("graph", "kernel", "program")]
    head = list(part.outline.tokens(inside[0] if inside else top, nested=False))
    for before, place in pairwise(head):
        if before.token.text == "dims" and place.token.text == "{":
            closings = (p for p in head if p.line == place.line and p.token.start > place.token.start)
            closing = next((p for p in closings if p.token.text == "}"), None)
            if closing is None:
                return []
            comma = ", " if closing.token.start > place.token.end else ""
            at = closing.line + part.first
            return [Edit(at, closing.token.start, at, closing.token.start, comma + text)]
    opening = next((p for p in head if p.token.text == "{"), None)
    if opening is None:
        return []
    at = opening.line + part.first
    return [Edit(at, opening.token.start, at, opening.token.start, f"dims {{{text}}} ")]
