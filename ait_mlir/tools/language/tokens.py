"""The tokens of a text of the IR, with their roles. Any text has tokens: half-typed lines and other languages, too.

The parser drops tokens, names and comments when it has read them. Colours, completion, renaming and formatting need
them, and need them while a line is not complete yet. No token spans lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from sys import intern
from typing import Literal, NamedTuple, TypeAlias, cast

from ait_mlir.tools.language.lines import ByLine

Kind: TypeAlias = Literal[
    "comment",
    "string",
    "value",
    "symbol",
    "block",
    "type",
    "element",
    "attribute",
    "number",
    "op",
    "dim",
    "word",
    "mark",
]
"""The role of a token. `word` is a keyword of an op or the name of an attribute, `mark` is punctuation, `element` is an
element type, and `dim` is the name of a dim where a text declares or uses one."""


class Token(NamedTuple):
    """A part of a line: `line[start:end] == text`."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


TOKEN = re.compile(
    r"""(?P<comment>//.*)
      | (?P<string>"(?:[^"\\]|\\.)*+"?)
      | (?P<value>%(?:\d+|[A-Za-z$._-][\w$.-]*)?)
      | (?P<symbol>@(?:[A-Za-z_][\w$.]*|"(?:[^"\\]|\\.)*+"?)?)
      | (?P<block>\^(?:\d+|[A-Za-z$._-][\w$.-]*)?)
      | (?P<type>![A-Za-z_][\w$.]*)
      | (?P<attribute>\#(?:\d+|[A-Za-z_][\w$.]*)?)
      | (?P<number>0x[0-9A-Fa-f]+|\d+(?:\.\d*(?:[eE][+-]?\d+)?|[eE][+-]?\d+)?)
      | (?P<word>[A-Za-z_][\w$.]*)
      | (?P<mark>->|\{-\#|\#-\}|[^\s])""",
    re.VERBOSE | re.ASCII,
)
ELEMENT = re.compile(r"bf16|f8E\w+|f(?:16|32|64)|[su]?i\d+|index")
_OF_DIMS = frozenset(("to", "hints", "bound", "given", "jagged", "min", "max", "mod", "floordiv", "ceildiv"))
_LITERALS = frozenset(
    ("true", "false", "unit", "inf", "nan", "loc", "dense", "array", "constant", "max", "min", "mean")
)
_OPENING, _CLOSING = "([{<", ")]}>"

MAX_LINE = 20_000
"""Longer lines are one token of kind `mark`: they hold data, not text that one writes."""


def _tokens(line: str) -> tuple[Token, ...]:
    if len(line) > MAX_LINE:
        return (Token("mark", line, 0),)
    found: list[Token] = []
    brackets: list[str] = []  # per open bracket: what the names in it are
    before = ""
    for match in TOKEN.finditer(line):
        kind, text = cast("Kind", match.lastgroup), match.group()
        if kind == "word":
            kind = _role(text, brackets[-1] if brackets else "", line, match.end())
        elif text in _OPENING:
            brackets.append(_contents(text, before, found, brackets))
        elif text in _CLOSING and brackets:
            brackets.pop()
        found.append(Token(kind, intern(text), match.start()))
        before = text
    return tuple(found)


tokens_of = ByLine(_tokens)
"""The tokens of a line."""


def _contents(bracket: str, before: str, found: list[Token], brackets: list[str]) -> str:
    """The kind of the names in a bracket: `dims`, `range` for declarations of dims, or `keys` of attributes.

    `before` is the word before the bracket.
    """
    if bracket == "<":
        return "dims" if found and found[-1].kind in ("type", "attribute") else "keys"
    if bracket == "{":
        return "range" if before == "dims" else "keys"
    if bracket == "(" and before == "for":
        return "range"
    return "range" if brackets and brackets[-1] == "range" else "dims"


def _role(text: str, inside: str, line: str, end: int) -> Kind:
    if "." in text:
        return "op"
    if ELEMENT.fullmatch(text):
        return "element"
    if inside in ("", "keys") or text == "x":
        return "word"
    if text in _OF_DIMS or text in _LITERALS:
        return "word"
    return "word" if inside == "dims" and line[end : end + 3].lstrip().startswith("=") else "dim"


def scan(text: str) -> Iterator[tuple[int, Token]]:
    """The tokens of a text, each with the offset of its line."""
    offset = 0
    for line in text.split("\n"):
        for token in tokens_of(line):
            yield offset, token
        offset += len(line) + 1
