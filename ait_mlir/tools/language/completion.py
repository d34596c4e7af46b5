"""What may stand at a place of a text: ops, values, dims, element types, symbols, words of an op, attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from xdsl.context import Context

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.dtypes import BY_MLIR
from ait_mlir.dialects.ait.syntax import Word
from ait_mlir.tools.language.document import Document, Part
from ait_mlir.tools.language.hover import documentation
from ait_mlir.tools.language.outline import SYMBOLS
from ait_mlir.tools.language.tokens import Token, tokens_of

_OURS = ("ait.", "ait_rt.", "builtin.", "pdl.")


@dataclass(frozen=True)
class Item:
    """A text that may stand at a place, instead of what is there from column `start` on."""

    text: str
    kind: Literal["op", "value", "dim", "type", "symbol", "word", "attribute"]
    start: int
    detail: str = ""


def completions_at(document: Document, ctx: Context, line: int, column: int) -> list[Item]:
    """The texts that may stand at a place; the client filters them by what is typed already."""
    part = document.part_at(line)
    if part is None or line >= len(document.lines):
        return []
    before = document.lines[line][:column]
    tokens = tokens_of(before)
    last = tokens[-1] if tokens else None
    if last is not None and last.kind in ("comment", "string"):
        return []
    typed = last if last is not None and last.end == column and last.kind != "mark" else None
    if last is not None and last.end == column and last.text in ("!", "#"):
        typed = last
    start = typed.start if typed is not None else column
    return list(_items(part, ctx, line - part.first, tokens if typed is None else tokens[:-1], typed, start))


def _items(
    part: Part, ctx: Context, line: int, before: tuple[Token, ...], typed: Token | None, start: int
) -> Iterator[Item]:
    text = typed.text if typed is not None else ""
    if text.startswith("%"):
        for name, place in part.outline.values_in_scope(line).items():
            yield Item(name, "value", start, part.outline.lines[place.line].strip()[:120])
        return
    if text.startswith("@"):
        for name, place in part.outline.symbols().items():
            yield Item(f"@{name}", "symbol", start, part.outline.lines[place.line].strip()[:120])
        return
    if text.startswith(("!", "#")):
        for dialect in ctx.loaded_dialects:
            for attribute in dialect.attributes:
                if attribute.name.startswith(_OURS[:2]):
                    yield Item(text[0] + attribute.name, "type", start)
        return
    if (inside := _open_type(before)) is not None:
        if inside.kind in ("type", "attribute"):
            for name, (place, _) in part.outline.dims_in_scope(line).items():
                yield Item(name, "dim", start, part.outline.lines[place.line].strip()[:120])
            for name in BY_MLIR:
                yield Item(name, "type", start, "element type")
        return
    named = next((t for t in before if t.kind == "op"), None)
    if named is None:
        if not before or before[-1].text == "=":
            for dialect in (ctx.get_optional_op("ait.graph"), ctx.get_optional_op("ait_rt.program")):
                assert dialect is not None
            for op in (op for dialect in ctx.loaded_dialects for op in dialect.operations):
                if op.name.startswith(_OURS):
                    yield Item(op.name, "op", start, documentation(ctx, op.name).partition("\n")[0])
        return
    yield from _of_op(part, ctx, line, before, named, start)


def _open_type(before: tuple[Token, ...]) -> Token | None:
    """The type or attribute whose `<` is open at the end of the tokens."""
    stack: list[Token] = []
    for i, t in enumerate(before):
        if t.text == "<" and i > 0 and before[i - 1].kind in ("type", "attribute"):
            stack.append(before[i - 1])
        elif t.text == ">" and stack:
            stack.pop()
    return stack[-1] if stack else None


def _of_op(part: Part, ctx: Context, line: int, before: tuple[Token, ...], named: Token, start: int) -> Iterator[Item]:
    """The words of the op's syntax that are not there yet, dims where a bracket is open, and names of attributes."""
    cls = ctx.get_optional_op(named.text)
    if cls is None:
        return
    brackets = [t.text for t in before if t.kind == "mark" and t.text in "([{)]}"]
    depth = sum((b in "([{") - (b in ")]}") for b in brackets)
    if depth > 0:
        if brackets[-1] == "{" and before[-1].text in ("{", ","):
            definition: Any = getattr(cls, "get_irdl_definition", None)
            for name in definition().properties if definition is not None else ():
                yield Item(name, "attribute", start, f"of {named.text}")
            yield Item("kernel", "attribute", start, "the kernel that runs the op")
        for name, (place, _) in part.outline.dims_in_scope(line).items():
            yield Item(name, "dim", start, part.outline.lines[place.line].strip()[:120])
        return
    if named.text in SYMBOLS:
        for word in ("dims", "attributes"):
            yield Item(word, "word", start, f"of {named.text}")
    there = {t.text for t in before}
    for word, what in words_of(cls):
        if word not in there:
            yield Item(word, "word", start, f"{what} of {named.text}")


def words_of(cls: type) -> Iterator[tuple[str, str]]:
    """The words of an op's syntax, each with what it is."""
    if not issubclass(cls, AitOp):
        return
    for clause in cls.SYNTAX:
        if isinstance(clause, Word):
            for choice in clause.choices:
                yield choice, clause.name
            continue
        keyword = getattr(clause, "keyword", None)
        name = getattr(clause, "name", None) if keyword in (None, "") and not _is_bare(clause) else keyword
        if isinstance(name, str) and re.fullmatch(r"[a-z][a-z_ ]*", name):
            yield name, "clause"


def _is_bare(clause: Any) -> bool:
    """Whether a clause has no keyword in the text."""
    return getattr(clause, "keyword", None) == "" and type(clause).__name__ in ("Prop", "Operand")
