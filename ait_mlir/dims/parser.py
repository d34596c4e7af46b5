"""Parses dim expressions from text.

sum     := product (('+' | '-') product)*
product := factor (('*' | 'floordiv' | 'ceildiv' | 'mod') factor)*       left to right, as in MLIR
factor  := '-' factor | NUMBER | NAME | '(' sum ')' | ('min' | 'max') '(' sum (',' sum)* ')'
"""

from __future__ import annotations

import copyreg
import re
from collections.abc import Callable, Iterator
from typing import NoReturn

from ait_mlir.dims import expr
from ait_mlir.dims.errors import DimError, DimSyntaxError
from ait_mlir.dims.expr import MAX_LITERAL, Atom, Expr, const, sym, total
from ait_mlir.dims.rules import ceildiv, floordiv, maximum, minimum, mod

MAX_PARENTHESES = 100
_CACHE: dict[str, Expr] = {}
_CACHE_LIMIT = 100_000
_TOKEN = re.compile(r"[ \t\r\n]*(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|([^ \t\r\n]))")

_PRODUCTS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "*": lambda a, b: a * b,
    "floordiv": floordiv,
    "ceildiv": ceildiv,
    "mod": mod,
}
_CALLS: dict[str, Callable[..., Expr]] = {"min": minimum, "max": maximum}


def parse(text: str) -> Expr:
    """The expression in `text`. Raises DimSyntaxError with the offset of the error."""
    if (found := _CACHE.get(text)) is not None:
        return found
    tokens = Tokens(text)
    result = parse_expr(tokens)
    tokens.expect_end()
    if len(_CACHE) > _CACHE_LIMIT:
        _CACHE.clear()
    return _CACHE.setdefault(text, result)


def forget_unused() -> None:
    """Forget the expressions and texts that nobody uses. No other thread may make expressions meanwhile."""
    _CACHE.clear()
    expr.forget_unused()


class Tokens:
    """The tokens of a text. `text`, `kind` and `offset` describe the next token."""

    def __init__(self, text: str):
        self._tokens: Iterator[tuple[str, str, int]] = _tokenize(text)
        self.nesting = 0
        self.next()

    def next(self) -> None:
        """Move on by one token."""
        self.kind, self.text, self.offset = next(self._tokens)

    def accept(self, text: str) -> bool:
        """Move on if the next token is `text`."""
        if self.kind == "end" or self.text != text:
            return False
        self.next()
        return True

    def expect(self, text: str, why: str) -> None:
        """Move past `text`, or raise DimSyntaxError."""
        if not self.accept(text):
            self.fail(f"expected {text!r} {why}, found {self.describe()}")

    def expect_end(self) -> None:
        """Raise DimSyntaxError if tokens are left."""
        if self.kind != "end":
            self.fail(f"expected an operator or the end of the dim expression, found {self.describe()}")

    def describe(self) -> str:
        """The next token as text for an error message."""
        return "the end of the text" if self.kind == "end" else repr(self.text[:40])

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        """Raise DimSyntaxError at the next token or at `offset`."""
        raise DimSyntaxError(message, self.offset if offset is None else offset)

    def number(self, why: str) -> int:
        """Move past a number and return its value."""
        if self.kind != "number":
            self.fail(f"expected a number {why}, found {self.describe()}")
        if len(self.text) > 19 or int(self.text) > MAX_LITERAL:
            self.fail(f"the number {self.text[:24]}{'...' if len(self.text) > 24 else ''} is beyond 64 bits")
        value = int(self.text)
        self.next()
        return value


def _tokenize(text: str) -> Iterator[tuple[str, str, int]]:
    end = 0
    while (match := _TOKEN.match(text, end)) is not None:
        group = match.lastindex or 3
        start, end = match.span(group)
        if group == 1 and end < len(text) and (text[end].isalnum() or text[end] in "_."):
            shown = text[start : min(end + 1, start + 24)]
            raise DimSyntaxError(f"{shown!r} is no decimal number: a letter follows the digits", start)
        yield ("number", "name", "sign")[group - 1], match.group(group), start
    while True:
        yield "end", "", len(text)


def parse_expr(tokens: Tokens) -> Expr:
    """Parse one expression from `tokens` and leave the tokens after it."""
    tokens.nesting += 1
    if tokens.nesting > MAX_PARENTHESES:
        tokens.fail(f"a dim expression is nested more than {MAX_PARENTHESES} levels deep")
    terms = [_parse_product(tokens)]
    while tokens.kind == "sign" and tokens.text in "+-":
        offset, minus = tokens.offset, tokens.text == "-"
        tokens.next()
        term = _parse_product(tokens)
        terms.append(_at(tokens, offset, lambda t=term: -t) if minus else term)
        if len(terms) == 64:  # few enough that a long sum of distinct terms ends early, at the limit of terms
            terms = [_at(tokens, offset, lambda t=terms: total(t))]
    tokens.nesting -= 1
    return terms[0] if len(terms) == 1 else _at(tokens, tokens.offset, lambda: total(terms))


def _parse_product(tokens: Tokens) -> Expr:
    result = _parse_factor(tokens)
    while (operator := _PRODUCTS.get(tokens.text)) is not None and tokens.kind != "end":
        offset = tokens.offset
        tokens.next()
        factor = _parse_factor(tokens)
        result = _at(tokens, offset, lambda f=operator, a=result, b=factor: f(a, b))
    return result


def _parse_factor(tokens: Tokens) -> Expr:
    offset, minus = tokens.offset, False
    while tokens.accept("-"):
        minus = not minus
    factor = _parse_unsigned(tokens, offset)
    return -factor if minus else factor


def _parse_unsigned(tokens: Tokens, offset: int) -> Expr:
    if tokens.kind == "number":
        return const(tokens.number("here"))
    if tokens.accept("("):
        inner = parse_expr(tokens)
        tokens.expect(")", "to close the parenthesis")
        return inner
    if tokens.kind == "name":
        name = tokens.text
        tokens.next()
        if (call := _CALLS.get(name)) is not None:
            return _parse_call(tokens, name, call, offset)
        return _at(tokens, offset, lambda: sym(name))
    tokens.fail(f"expected a number, a dim or '(' in a dim expression, found {tokens.describe()}")


def _parse_call(tokens: Tokens, name: str, call: Callable[..., Expr], offset: int) -> Expr:
    tokens.expect("(", f"after {name!r}")
    args = [parse_expr(tokens)]
    while tokens.accept(","):
        args.append(parse_expr(tokens))
    tokens.expect(")", f"to close {name!r}")
    return _at(tokens, offset, lambda: call(*args))


def _at(tokens: Tokens, offset: int, compute: Callable[[], Expr]) -> Expr:
    """The result of `compute()`; a DimError gets the offset."""
    try:
        return compute()
    except DimSyntaxError:
        raise
    except DimError as error:
        tokens.fail(str(error), offset)


# ** pickling: as text, so that an expression is interned again **


def _atom_from_text(text: str) -> Atom:
    return parse(text).terms()[0][1][0]


def _reduce_expr(e: Expr) -> tuple[Callable[[str], Expr], tuple[str]]:
    return parse, (str(e),)


def _reduce_atom(atom: Atom) -> tuple[Callable[[str], Atom], tuple[str]]:
    return _atom_from_text, (str(atom),)


copyreg.pickle(Expr, _reduce_expr)
copyreg.pickle(Atom, _reduce_atom)
