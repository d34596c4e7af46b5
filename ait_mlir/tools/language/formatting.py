"""Formats a text: what `ait-opt` prints, with the comments, blank lines and names of the text.

The result reads back as the same module with the same comments, or the text is refused and stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.printer import Printer

from ait_mlir.ir.parser import check, parse_source
from ait_mlir.ir.source import SourceError, SourceText
from ait_mlir.tools.language.document import Document, Part, Refused
from ait_mlir.tools.language.outline import Outline, Statement
from ait_mlir.tools.language.tokens import Token, tokens_of


def formatted(document: Document, ctx: Context) -> str:
    """The formatted text; `Refused` says why a text cannot be formatted."""
    if document.problem is not None:
        raise Refused(f"not formatted: {document.problem.message}")
    texts: list[str] = []
    for part in document.parts:
        texts.append(_formatted(part, ctx) if part.source.text.strip() else part.source.text)
    marks = [line for line in document.lines if line.startswith("// -----")]
    found = texts[0] if texts else ""
    for mark, text in zip(marks, texts[1:], strict=True):
        found += ("" if found.endswith("\n") or not found else "\n") + mark + "\n" + text
    return found.replace("\n", document.line_end)


def _formatted(part: Part, ctx: Context) -> str:
    if not any(_code(line) for line in part.outline.lines):
        return part.source.text
    try:
        module = parse_source(ctx, part.source)
        check(module, part.source)
    except SourceError as e:
        d = e.diagnostics[0]
        raise Refused(f"not formatted: the text has an error in line {d.line}: {d.message}") from None
    printed = Outline(_print(module, part.outline).split("\n"))
    lines = _Merge(part.outline, printed, part.first).lines()
    text = "\n".join(lines).rstrip("\n") + "\n"
    try:
        again = parse_source(ctx, SourceText(part.source.name, text))
    except SourceError as e:
        raise Refused(f"not formatted: the result would not read back: {e.diagnostics[0].message}") from None
    if not again.is_structurally_equivalent(module) or _comments(text.split("\n")) != _comments(part.outline.lines):
        raise Refused("not formatted: the result would not be the same module with the same comments")
    return text


def _print(module: ModuleOp, outline: Outline) -> str:
    """The text of a module, without `builtin.module` if the text has none."""
    stream = StringIO()
    printer = Printer(stream=stream)
    is_named = any(outline.op(s) == "builtin.module" for s in outline.roots)
    ops: Sequence[Operation] = [module] if is_named else list(module.ops)
    for op in ops:
        printer.print_op(op)
        stream.write("\n")
    return stream.getvalue().rstrip("\n")


def _code(line: str) -> list[Token]:
    """The tokens of a line that are no comments."""
    return [t for t in tokens_of(line) if t.kind != "comment"]


def _comments(lines: Sequence[str]) -> list[str]:
    return [t.text.rstrip() for line in lines for t in tokens_of(line) if t.kind == "comment"]


class _Merge:
    """Puts what the printer drops back into a printed text: comments, blank lines, names of values."""

    def __init__(self, old: Outline, new: Outline, first: int) -> None:
        self.old, self.new, self.first = old, new, first
        self.result = list(new.lines)
        self.before: dict[int, list[str]] = {}
        """Comments and blank lines to stand before a printed line."""
        same = [old.op(s) for s in old.statements] == [new.op(s) for s in new.statements]
        if not same or any(len(old.results(a)) != len(new.results(b)) for a, b in self._pairs()):
            raise Refused("not formatted: a line has more than one op, or an alias; write each op in its own line")

    def _pairs(self) -> list[tuple[Statement, Statement]]:
        return list(zip(self.old.statements, self.new.statements, strict=True))

    def lines(self) -> list[str]:
        starts = {a.first: b.first for a, b in self._pairs()}
        ends = {a.last: b.last for a, b in self._pairs() if a.last != a.first}
        above: list[str] = []
        for number, line in enumerate(self.old.lines):
            comment = next((t.text.rstrip() for t in tokens_of(line) if t.kind == "comment"), None)
            if not _code(line):
                above.append("" if comment is None else comment)
                continue
            at = starts.get(number, ends.get(number))
            self._put_above(above, at, number)
            above = []
            if comment is not None:
                if at is None:
                    self._refuse(number)
                assert at is not None
                self.result[at] += f"  {comment}"
        self._keep_names()
        found: list[str] = []
        for number, line in enumerate(self.result):
            indent = line[: len(line) - len(line.lstrip())]
            found += [f"{indent}{text}" if text else "" for text in self.before.get(number, ())]
            found.append(line)
        found += above
        return [b for a, b in pairwise(["x", *found]) if a or b]  # no two blank lines

    def _put_above(self, above: list[str], at: int | None, number: int) -> None:
        if at is not None:
            is_end = number not in {s.first for s in self.old.statements}
            kept = [text for text in above if text] if is_end else above
            self.before.setdefault(at, []).extend(kept)
        elif any(above):
            self._refuse(number - 1)

    def _refuse(self, number: int) -> None:
        raise Refused(
            f"not formatted: the comment in line {number + self.first + 1} stands inside of an op and would be lost; "
            "move it above the op"
        )

    def _keep_names(self) -> None:
        """Give the values their names in the old text: the printer numbers equal names of different regions."""
        for a, b in self._pairs():
            names = [p.token.text for p in self.old.tokens(a, nested=False) if p.token.kind in ("value", "block")]
            places = [p for p in self.new.tokens(b, nested=False) if p.token.kind in ("value", "block")]
            if len(names) != len(places):
                continue
            for place, name in reversed(list(zip(places, names, strict=True))):
                line = self.result[place.line]
                self.result[place.line] = line[: place.token.start] + name + line[place.token.end :]
