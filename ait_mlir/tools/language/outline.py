"""The statements of a text: which lines each op takes, what it names, and where names are visible.

Any text has an outline. It needs no parser: a statement starts in a line that begins as an op does, and ends before the
next statement that is nested as deeply.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ait_mlir.tools.language.lines import ByLine
from ait_mlir.tools.language.tokens import Token, tokens_of

SYMBOLS = frozenset(("ait.graph", "ait_rt.kernel", "ait_rt.program", "pdl.pattern", "func.func", "builtin.module"))
"""The ops whose first symbol is their own name."""
PARAMS = frozenset(("ait.param", "ait_rt.constant"))
"""The ops whose strings are names of params."""


@dataclass(eq=False)
class Statement:
    """An op: its lines, counted from 0, without the blank lines and comments after it."""

    first: int
    last: int
    parent: Statement | None
    index: int
    """Among the statements beside it."""
    children: list[Statement] = field(default_factory=list["Statement"])

    def around(self) -> Iterator[Statement]:
        """The statement and those around it, the innermost first."""
        at: Statement | None = self
        while at is not None:
            yield at
            at = at.parent


@dataclass(frozen=True)
class Place:
    """A token in a line."""

    line: int
    token: Token


@dataclass(frozen=True, slots=True)
class _Line:
    """What matters of a line for the outline."""

    starts: bool
    """Whether a statement may start here."""
    blank: bool
    closes: int
    """Braces that close before any opens."""
    change: int
    """Braces that open, less those that close."""
    results: tuple[Token, ...]
    """The values before an equals sign."""
    op: Token | None


@ByLine
def _line(line: str) -> _Line:
    tokens = [t for t in tokens_of(line) if t.kind != "comment"]
    depth = least = 0
    for t in tokens:
        if t.kind == "mark":
            depth += (t.text == "{") - (t.text == "}")
            least = min(least, depth)
    results, op = _head(tokens)
    starts = bool(results) or (op is not None and op is tokens[0])
    return _Line(starts, not tokens, -least, depth, results, op)


def _head(tokens: Sequence[Token]) -> tuple[tuple[Token, ...], Token | None]:
    """The results and the op at the start of a line; an op in the generic form is a string."""
    equals = next((i for i, t in enumerate(tokens[:400]) if t.text == "=" and tokens[0].kind == "value"), -1)
    if equals < 0 and all(t.kind in ("value", "number") or t.text in (",", ":") for t in tokens):
        equals = len(tokens)
    results = tokens[:equals] if equals > 0 else ()
    if any(t.kind not in ("value", "number") and t.text not in (",", ":") for t in results):
        return (), None
    rest = tokens[equals + 1 :]
    if not rest:
        return tuple(t for t in results if t.kind == "value"), None
    is_op = rest[0].kind == "op" or (rest[0].kind == "string" and len(rest) > 1 and rest[1].text in ("(", "<"))
    op = rest[0] if is_op or (results and rest[0].kind == "word") else None
    return tuple(t for t in results if t.kind == "value"), op


class Outline:
    """The statements of a text of lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.roots: list[Statement] = []
        self.statements: list[Statement] = []
        """In the order of the text."""
        self.by_line: dict[int, Statement] = {}
        """The statements by their first lines."""
        depth, last = 0, -1
        stack: list[tuple[Statement, int]] = []  # with the depth of braces outside
        for number, text in enumerate(lines):
            line = _line(text)
            if line.blank:
                continue
            inside = depth - line.closes
            while stack and (stack[-1][1] > inside or (line.starts and stack[-1][1] >= depth)):
                stack.pop()[0].last = last
            if line.starts:
                parent = stack[-1][0] if stack else None
                beside = self.roots if parent is None else parent.children
                found = Statement(number, number, parent, len(beside))
                beside.append(found)
                self.statements.append(found)
                self.by_line[number] = found
                stack.append((found, depth))
            depth = max(0, depth + line.change)
            last = number
            for open_, _ in stack[-1:]:
                open_.last = number
        for statement, _ in stack:
            statement.last = max(statement.last, last)
        self._firsts = [s.first for s in self.statements]

    def at(self, line: int) -> Statement | None:
        """The innermost statement that has a line."""
        i = bisect_right(self._firsts, line) - 1
        found = self.statements[i] if i >= 0 else None
        while found is not None and found.last < line:
            found = found.parent
        return found

    def following(self, s: Statement) -> Statement | None:
        """The statement beside another one that comes next, if there are only blank lines and comments between."""
        beside = self.roots if s.parent is None else s.parent.children
        found = beside[s.index + 1] if s.index + 1 < len(beside) else None
        return None if found is None or self.has_code(range(s.last + 1, found.first)) else found

    def has_code(self, lines: range) -> bool:
        """Whether any of these lines has more than a comment."""
        return any(not _line(self.lines[number]).blank for number in lines)

    def text(self, s: Statement) -> str:
        """The lines of a statement."""
        return self.lines[s.first] if s.first == s.last else "\n".join(self.lines[s.first : s.last + 1])

    def op_token(self, s: Statement) -> Token | None:
        return _line(self.lines[s.first]).op

    def op(self, s: Statement) -> str:
        """The name of the op of a statement."""
        token = self.op_token(s)
        return "" if token is None else token.text.strip('"')

    def results(self, s: Statement) -> tuple[Token, ...]:
        """The values that a statement defines."""
        return _line(self.lines[s.first]).results

    def tokens(self, s: Statement, nested: bool = True) -> Iterator[Place]:
        """The tokens of a statement, comments left out; those of the statements in it if `nested`."""
        inner = {} if nested else {c.first: c.last for c in s.children}
        number = s.first
        while number <= s.last:
            if number in inner:
                number = inner[number] + 1
                continue
            for token in tokens_of(self.lines[number]):
                if token.kind != "comment":
                    yield Place(number, token)
            number += 1

    # ** names **

    def arguments(self, s: Statement) -> list[Place]:
        """The values that a statement defines for the statements in it: `%x` of `(%x: TYPE)`."""
        found: list[Place] = []
        before: Place | None = None
        depth = 0
        for place in self.tokens(s, nested=False):
            text = place.token.text
            if text == ":" and depth > 0 and before is not None and before.token.kind == "value":
                found.append(before)
            depth += (text == "(") - (text == ")")
            before = place
        return found

    def value_definition(self, line: int, name: str) -> tuple[Place, Statement | None] | None:
        """Where the value that `name` stands for in a line is defined, and the statement around it; None around
        the definitions of the text."""
        s = self.at(line)
        for token in self.results(s) if s is not None and s.first == line else ():
            if token.text == name:
                assert s is not None
                return Place(line, token), s.parent
        while True:
            for place in self.arguments(s) if s is not None else ():
                if place.token.text == name:
                    return place, s
            for other in s.children if s is not None else self.roots:
                for token in self.results(other):
                    if token.text == name:
                        return Place(other.first, token), s
            if s is None:
                return None
            s = s.parent

    def values_in_scope(self, line: int) -> dict[str, Place]:
        """The values that a line may use, by name; the innermost of equal names."""
        found: dict[str, Place] = {}
        s = self.at(line)
        scope = s
        if s is not None and s.first == line and self.results(s):
            scope = s.parent
        while True:
            for other in scope.children if scope is not None else self.roots:
                if other.first >= line:
                    break
                for token in self.results(other):
                    found.setdefault(token.text, Place(other.first, token))
            if scope is None:
                return found
            for place in self.arguments(scope):
                found.setdefault(place.token.text, place)
            scope = scope.parent

    def symbols(self) -> dict[str, Place]:
        """The symbols that statements define, without `@`."""
        found: dict[str, Place] = {}
        for s in self.statements:
            if self.op(s) in SYMBOLS:
                own = next((p for p in self.tokens(s, nested=False) if p.token.kind == "symbol"), None)
                if own is not None:
                    found.setdefault(own.token.text[1:].strip('"'), own)
        return found

    def dims(self, s: Statement) -> dict[str, Place]:
        """The dims that a statement declares, by `dims {...}` or `for (...)`."""
        found: dict[str, Place] = {}
        declares = False
        before: list[Place] = []
        for place in self.tokens(s, nested=False):
            text = place.token.text
            if text in ("{", "(") and before and before[-1].token.text in ("dims", "for"):
                declares = True
            elif text in ("}", ")") and declares and text == "}":
                declares = False
            elif text == "=" and declares and before and before[-1].token.kind in ("dim", "word"):
                found.setdefault(before[-1].token.text, before[-1])
            before = [place]
        return found

    def dims_in_scope(self, line: int) -> dict[str, tuple[Place, Statement]]:
        """The dims that a line may use, by name, with the statements that declare them."""
        found: dict[str, tuple[Place, Statement]] = {}
        s = self.at(line)
        for around in s.around() if s is not None else ():
            for name, place in self.dims(around).items():
                found.setdefault(name, (place, around))
        return found
