"""Lays out generated C++: lines of at most 120 columns, and the identifiers that code uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ait_mlir.lowering.cpp import CppText

WIDTH = 120
_INDENT = 4
"""More spaces before the rest of a line than before its start."""

_DEEPEST = 3
"""The most brackets around the start of a line that add to its indentation."""

_STRING = r'"(?:\\[0-7]{3}|\\.|[^"\\])*"'
_TOKEN = re.compile(
    rf"//.*|/\*.*?\*/|{_STRING}|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*<(?![ =<])|[A-Za-z_]\w*|->|[\w.]+|::|\s+|.",
)
_PIECE = re.compile(r"\\[0-7]{3}|\\.|[^\"\\]")
_OPENS, _CLOSES = "({[", ")}]"
_OPERATORS = frozenset(("+", "-", "*", "/", "?", ":", "&&", "||"))
_RAW = re.compile(r'R"|/\* ')
"""The start of text of an author: a raw string, or an expression after a comment that names its operator."""


def identifiers(code: str) -> frozenset[str]:
    """The identifiers in code, without its comments and strings."""
    return frozenset(
        word for token in _TOKEN.findall(code) if (word := token.rstrip("<")).isidentifier() and word[0] not in "\"'/"
    )


def grouped(fields: Iterable[str]) -> list[list[str]]:
    """The fields of a struct of sizes, grouped in lines: first all fields without a buffer, then those of each
    buffer."""
    groups: dict[str, list[str]] = {"": []}
    for name in fields:
        groups.setdefault(name.rpartition("_")[0], []).append(name)
    return [names for names in groups.values() if names]


def laid_out(code: CppText) -> CppText:
    """The code with lines of at most `WIDTH` columns, and at most one empty line in a row.

    Long calls and lists go on in the next line after a comma or an operator, as far out of their brackets as
    possible; long strings become adjacent ones; a comment that is too long goes above its line. Lines of the
    preprocessor and text of an author stay as they are.
    """
    if type(code) is not CppText:
        raise TypeError(f"only C++ can be laid out, found {code!r}")
    ours, author, rest = code.partition("\n#line ")
    lines = [part for line in ours.split("\n") for part in _lines(line.rstrip())]
    kept = [line for i, line in enumerate(lines) if line or (i > 0 and lines[i - 1])]
    return CppText("\n".join(kept).rstrip("\n") + (author + rest if author else "\n"))


def _lines(line: str) -> Iterator[str]:
    if len(line) <= WIDTH or line.lstrip().startswith("#") or line.endswith("\\") or _RAW.search(line):
        yield line
        return
    start = " " * (len(line) - len(line.lstrip()))
    tokens = _TOKEN.findall(line.strip())
    if tokens[-1].startswith("//"):
        yield from _comment(tokens.pop(), start)
    code = "".join(tokens).rstrip()
    if code:
        yield from _wrapped(code, start)


def _comment(text: str, start: str) -> Iterator[str]:
    """A comment in lines, broken at spaces, or within a word that is longer than a line."""
    rest = text.removeprefix("//").strip()
    room = WIDTH - len(start) - len("// ")
    while len(rest) > room:
        end = rest.rfind(" ", 1, room + 1)
        end = end if end > 0 else room
        yield f"{start}// {rest[:end].rstrip()}"
        rest = rest[end:].lstrip()
    yield f"{start}// {rest}"


def _wrapped(code: str, start: str) -> Iterator[str]:
    """A statement in lines; each line ends at the outermost possible break that fits."""
    indent, depth, tokens = start, 0, _short_strings(_TOKEN.findall(code))
    while tokens:
        end, inside = _break(tokens, WIDTH - len(indent))
        yield indent + "".join(tokens[:end]).rstrip()
        tokens, depth = tokens[end:], depth + inside
        while tokens and tokens[0].isspace():
            tokens.pop(0)
        indent = start + " " * _INDENT * max(1, min(depth, _DEEPEST))


def _break(tokens: list[str], room: int) -> tuple[int, int]:
    """The number of tokens of the next line (all if they fit, else up to the best break), and of brackets left open."""
    length, depth = 0, 0
    best: tuple[int, int] | None = None  # depth, and the tokens before
    angles: list[bool] = []  # of the brackets around: whether it is one of a template
    for i, token in enumerate(tokens):
        length += len(token.rstrip() if i + 1 < len(tokens) and tokens[i + 1].isspace() else token)
        if token in _OPENS or token.endswith("<"):
            angles.append(token.endswith("<"))
            depth += 1
        elif token in _CLOSES or (token == ">" and angles and angles[-1]):
            depth -= 1
            if angles:
                angles.pop()
        if length > room and best is not None:
            return best[1], best[0]
        if _breaks_after(tokens, i) and i + 1 < len(tokens) and (best is None or depth <= best[0]):
            best = depth, i + 1
    return len(tokens), depth


def _breaks_after(tokens: list[str], i: int) -> bool:
    token = tokens[i]
    if token in _OPENS:
        condition = i > 1 and tokens[i - 2] in {"if", "for"}
        return i + 1 < len(tokens) and tokens[i + 1] not in _CLOSES and not condition
    spaced = i + 1 < len(tokens) and tokens[i + 1].isspace()
    strings = token[0] == '"' and spaced and i + 2 < len(tokens) and tokens[i + 2][0] == '"'
    return strings or (spaced and (token in {",", ";"} or (token in _OPERATORS and i > 0 and tokens[i - 1].isspace())))


def _short_strings(tokens: list[str], room: int = WIDTH - 40) -> list[str]:
    """The tokens, with each long string as several adjacent strings."""
    found: list[str] = []
    for token in tokens:
        if token[0] != '"' or len(token) <= room:
            found.append(token)
            continue
        part = ""
        for piece in _PIECE.findall(token[1:-1]):
            if len(part) + len(piece) + 2 > room:
                found += [f'"{part}"', " "]
                part = ""
            part += piece
        found.append(f'"{part}"')
    return found
