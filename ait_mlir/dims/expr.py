"""Integer expressions over named dims, interned, in one normal form.

An `Expr` is a polynomial with integer coefficients over atoms. An atom is a named dim, or a non-polynomial operator
(`floordiv`, `mod`, `min`, `max`; see `rules.py`) applied to expressions. Equal normal forms are the same object, so
equality is identity and hashing costs nothing.

    2*batch*seq + seq floordiv 64 + 1   has the terms   (2, (batch, seq)), (1, (seq floordiv 64,)), (1, ())
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn
from weakref import ref

from ait_mlir.dims.errors import DimError

MAX_LITERAL = 2**63 - 1
MAX_TERMS = 1024  # of one polynomial
MAX_SIZE = 2048  # nodes of one expression, written as a tree
MAX_NESTING = 48  # operators inside operators
_MEMO_LIMIT = 100_000

Monomial = tuple["Atom", ...]
Terms = tuple[tuple[int, Monomial], ...]


@dataclass(frozen=True, eq=False)
class Operator:
    """A non-polynomial operator, which makes atoms. `build` applies the rules; `apply` computes on integers."""

    name: str
    infix: bool
    apply: Callable[[Sequence[int]], int]
    build: Callable[[Sequence[Expr]], Expr]


OPERATORS: dict[str, Operator] = {}
"""The operators by name; `rules.py` fills it."""


class Fields(dict[str, str]):
    """C++ names for code that does not depend on sizes: every printed expression is a field of a struct.

    `exprs` holds the fields with their values. Expressions with different names are different fields even if they are
    equal, so two ops that differ only in sizes get the same code.
    """

    def __init__(self, names: Mapping[str, str], struct: str) -> None:
        super().__init__(names)
        self.struct = struct
        self.exprs: dict[str, Expr] = {}

    def place(self, expr: Expr, called: str) -> str:
        """The C++ of a field `called` with the value `expr`; a number is appended if the name has another value."""
        name = called = called or f"size{len(self.exprs)}"
        number = 1
        while self.exprs.setdefault(name, expr) is not expr:
            number += 1
            name = f"{called}_{number}"
        return f"{self.struct}.{name}"


class Noted(dict[str, str]):
    """C++ names of dims; it records each expression printed with them, with `noted_for` at its first use."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__(names)
        self.noted_for = ""
        self.exprs: dict[Expr, str] = {}

    def note(self, expr: Expr) -> None:
        """Record an expression."""
        self.exprs.setdefault(expr, self.noted_for)


class Atom:
    """A named dim (`op` is None, `name` set), or an operator applied to expressions. Interned."""

    __slots__ = ("args", "key", "name", "nesting", "op", "size")

    def __init__(self, name: str, op: Operator | None, args: tuple[Expr, ...]):
        self.name = name
        self.op = op
        self.args = args
        self.nesting: int = 0 if op is None else 1 + max(a.nesting for a in args)
        self.size: int = 1 + sum(a.size for a in args)
        if self.size > MAX_SIZE or self.nesting > MAX_NESTING:
            raise DimError(
                f"a dim expression of {self.size} parts, nested {self.nesting} deep, is too large; "
                f"at most {MAX_SIZE} parts and {MAX_NESTING} levels are allowed"
            )
        self.key: tuple[int, str] = (0, name) if op is None else (1, _atom_text(self))

    def expr(self) -> Expr:
        """The expression that consists of this atom."""
        return _intern(((1, (self,)),))

    def __str__(self) -> str:
        return self.key[1]

    def __repr__(self) -> str:
        return f"Atom({self})"

    def __copy__(self) -> Atom:
        return self

    def __deepcopy__(self, memo: object) -> Atom:
        return self


class Expr:
    """An integer expression over named dims, made with `const`, `sym`, `parse` and arithmetic."""

    __slots__ = ("__weakref__", "_int", "_symbols", "_terms", "_text", "nesting", "size")

    def __init__(self, terms: Terms):
        self._terms = terms
        self._int: int | None = None
        if not terms:
            self._int = 0
        elif len(terms) == 1 and not terms[0][1]:
            self._int = terms[0][0]
        self._symbols: frozenset[str] | None = None
        self._text: str | None = None
        self.nesting: int = max((a.nesting for _, mono in terms for a in mono), default=0)
        self.size: int = sum(1 + sum(a.size for a in mono) for _, mono in terms)

    def terms(self) -> Terms:
        """The polynomial as `((coefficient, (atom, ...)), ...)`, highest degree first, the constant `(c, ())` last."""
        return self._terms

    def as_int(self) -> int | None:
        """The value if this is a constant, else None."""
        return self._int

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all dims that occur."""
        if self._symbols is None:
            names: set[str] = set()
            for _, mono in self._terms:
                for atom in mono:
                    if atom.op is None:
                        names.add(atom.name)
                    for arg in atom.args:
                        names |= arg.symbols
            self._symbols = frozenset(names)
        return self._symbols

    def divisors(self) -> frozenset[Expr]:
        """All divisors in the expression except literals: each must be proved to be at least 1."""
        found: set[Expr] = set()
        for _, mono in self._terms:
            for atom in mono:
                for arg in atom.args:
                    found |= arg.divisors()
                if atom.op is not None and atom.op.infix and atom.args[1].as_int() is None:
                    found.add(atom.args[1])
        return frozenset(found)

    def largest_coefficient(self) -> int:
        """The largest absolute value of a coefficient of the polynomial; 0 for 0."""
        return max((abs(c) for c, _ in self._terms), default=0)

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value for the dims in `env`. Raises DimError for a missing dim or a divisor below 1."""
        if self._int is not None:
            return self._int
        value = 0
        for coefficient, mono in self._terms:
            for atom in mono:
                coefficient *= _evaluate_atom(atom, env)
            value += coefficient
        return value

    def substitute(self, env: Mapping[str, Expr | int]) -> Expr:
        """This expression with the dims in `env` replaced."""
        if self.symbols.isdisjoint(env):
            return self
        return total(
            product([const(coefficient), *(_substitute_atom(atom, env) for atom in mono)])
            for coefficient, mono in self._terms
        )

    def cpp(self, names: Mapping[str, str], called: str = "") -> str:
        """A C++ expression of type int64_t, in parentheses unless it is one name, one number or one call.

        `names` gives the C++ identifier of each dim, `ait/dims.h` the helpers. `called` is a name for the number, which
        `Fields` uses. Raises DimError for a missing dim.
        """
        if isinstance(names, Fields):
            return names.place(self, called)
        if isinstance(names, Noted):
            names.note(self)
        return _terms_cpp(self._terms, names)

    def __add__(self, other: Expr | int) -> Expr:
        return _memo_binary(_ADDED, self, _expr(other), _add)

    def __radd__(self, other: int) -> Expr:
        return const(other) + self

    def __sub__(self, other: Expr | int) -> Expr:
        return self + _scale(_expr(other), -1)

    def __rsub__(self, other: int) -> Expr:
        return const(other) - self

    def __neg__(self) -> Expr:
        return _scale(self, -1)

    def __mul__(self, other: Expr | int) -> Expr:
        return _memo_binary(_MULTIPLIED, self, _expr(other), _multiply)

    def __rmul__(self, other: int) -> Expr:
        return const(other) * self

    def __floordiv__(self, other: Expr | int) -> Expr:
        return OPERATORS["floordiv"].build([self, _expr(other)])

    def __mod__(self, other: Expr | int) -> Expr:
        return OPERATORS["mod"].build([self, _expr(other)])

    def __index__(self) -> int:
        """The value of a constant; raises `DimError` for an expression of dims, also in `int()` and `float()`."""
        if self._int is None:
            raise DimError(f"{self} depends on dims, expected a number that is the same in each run")
        return self._int

    def __float__(self) -> float:
        return float(self.__index__())

    def __str__(self) -> str:
        if self._text is None:
            self._text = _terms_text(self._terms)
        return self._text

    def __repr__(self) -> str:
        return f"Expr({self})"

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: object) -> Expr:
        return self


# ** making **

_EXPRS: dict[Terms, Expr] = {}
_CONSTS: dict[int, Expr] = {}
_SYMS: dict[str, Expr] = {}
_ATOMS: dict[tuple[Operator, tuple[Expr, ...]], Atom] = {}
_ADDED: dict[tuple[Expr, Expr], Expr] = {}
_MULTIPLIED: dict[tuple[Expr, Expr], Expr] = {}


def const(value: int) -> Expr:
    """The constant `value`. Raises DimError beyond 64 bits."""
    if (found := _CONSTS.get(value)) is not None:
        return found
    made = _intern(((int(value), ()),) if value else ())
    return _CONSTS.setdefault(int(value), made)


def sym(name: str) -> Expr:
    """The dim called `name`. Raises DimError for an invalid name or a reserved word."""
    if (found := _SYMS.get(name)) is not None:
        return found
    check_name(name)
    return _SYMS.setdefault(name, Atom(name, None, ()).expr())


def make_atom(op: Operator, args: Sequence[Expr]) -> Expr:
    """The atom of `op` applied to `args`, without simplification; only `rules.py` calls it."""
    key = (op, tuple(args))
    if (found := _ATOMS.get(key)) is None:
        found = _ATOMS.setdefault(key, Atom("", op, key[1]))
    return found.expr()


def from_terms(terms: Iterable[tuple[int, Monomial]]) -> Expr:
    """The sum of `terms`, in any order and with repetitions; the atoms of each monomial are in normal order."""
    sums: dict[Monomial, int] = {}
    for coefficient, mono in terms:
        sums[mono] = sums.get(mono, 0) + coefficient
    return _from_sums(sums)


def total(exprs: Iterable[Expr | int]) -> Expr:
    """The sum of any number of expressions; 0 without any."""
    return from_terms(term for e in exprs for term in _expr(e).terms())


def product(exprs: Iterable[Expr | int]) -> Expr:
    """The product of any number of expressions; 1 without any."""
    result = const(1)
    for e in exprs:
        result = result * e
    return result


_KEYWORDS = ("x", "to", "hints", "min", "max", "mod", "floordiv", "ceildiv", "jagged")
_INTEGERS = ("i1", "i4", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "ui4", "ui8")
_ELEMENT_TYPES = ("f8", "f8E4M3FN", "f8E5M2", "f8E8M0FNU", "f16", "bf16", "f32", "f64", *_INTEGERS)
RESERVED = frozenset(_KEYWORDS + _ELEMENT_TYPES)


def check_name(name: str) -> None:
    """Raise DimError unless `name` can name a dim: 1 to 128 ASCII letters, digits or `_`, not reserved."""
    if name in RESERVED:
        raise DimError(f"{name!r} is a reserved word and cannot name a dim; choose another name")
    if not name or len(name) > 128 or not name.isascii() or not name.isidentifier():
        raise DimError(
            f"{name[:40]!r} cannot name a dim; a name has 1 to 128 ASCII letters, digits and '_', and no digit first"
        )


def interned() -> int:
    """The number of expressions that are remembered."""
    return len(_EXPRS)


def forget_unused() -> None:
    """Forget the expressions that only these tables know. No other thread may make expressions meanwhile."""
    known = [ref(e) for e in _EXPRS.values()]
    for table in (_EXPRS, _CONSTS, _SYMS, _ATOMS, _ADDED, _MULTIPLIED):
        table.clear()
    gc.collect()
    used = [e for r in known if (e := r()) is not None]
    _EXPRS.update((e.terms(), e) for e in used)
    for atom in {atom for e in used for _, mono in e.terms() for atom in mono}:
        if atom.op is None:
            _SYMS[atom.name] = atom.expr()
        else:
            _ATOMS[atom.op, atom.args] = atom
    _CONSTS.update((n, e) for e in used if (n := e.as_int()) is not None)


# ** arithmetic on normal forms **


def _expr(value: Expr | int) -> Expr:
    return value if isinstance(value, Expr) else const(value)


def _intern(terms: Terms) -> Expr:
    if (found := _EXPRS.get(terms)) is not None:
        return found
    for coefficient, _ in terms:
        if abs(coefficient) > MAX_LITERAL:
            raise DimError("a number in a dim expression is beyond 64 bits; dims are at most 2^40")
    if len(terms) > MAX_TERMS:
        raise DimError(f"a dim expression is the sum of {len(terms)} terms; at most {MAX_TERMS} are allowed")
    made = Expr(terms)
    if made.size > MAX_SIZE:
        raise DimError(f"a dim expression of {made.size} parts is too large; at most {MAX_SIZE} are allowed")
    return _EXPRS.setdefault(terms, made)


def _term_order(term: tuple[Monomial, int]) -> tuple[int, list[tuple[int, str]]]:
    return -len(term[0]), [a.key for a in term[0]]


def _from_sums(sums: dict[Monomial, int]) -> Expr:
    left = [item for item in sums.items() if item[1]]
    if len(left) > 1:
        left.sort(key=_term_order)
    return _intern(tuple([(c, mono) for mono, c in left]))


def _memo_binary(memo: dict[tuple[Expr, Expr], Expr], a: Expr, b: Expr, compute: Callable[[Expr, Expr], Expr]) -> Expr:
    if (found := memo.get((a, b))) is not None:
        return found
    if len(memo) > _MEMO_LIMIT:
        memo.clear()
    made = memo[a, b] = compute(a, b)
    return made


def _add(a: Expr, b: Expr) -> Expr:
    if not a.terms():
        return b
    if not b.terms():
        return a
    return from_terms(a.terms() + b.terms())


def _scale(a: Expr, factor: int) -> Expr:
    return _intern(tuple((c * factor, mono) for c, mono in a.terms())) if factor else const(0)


def _multiply(a: Expr, b: Expr) -> Expr:
    if (value := a.as_int()) is not None:
        return _scale(b, value)
    if (value := b.as_int()) is not None:
        return _scale(a, value)
    if len(a.terms()) * len(b.terms()) > MAX_TERMS * 4:
        raise DimError(f"a product of {len(a.terms())} and {len(b.terms())} terms is too large for a dim expression")
    return from_terms((ca * cb, merge(ma, mb)) for ca, ma in a.terms() for cb, mb in b.terms())


def merge(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials, atoms in normal order."""
    if not a or not b:
        return a or b
    return tuple(sorted(a + b, key=lambda atom: atom.key))


def content(terms: Iterable[tuple[int, Monomial]]) -> int:
    """The greatest common divisor of the coefficients; 0 without any."""
    return math.gcd(*(c for c, _ in terms))


def _evaluate_atom(atom: Atom, env: Mapping[str, int]) -> int:
    if atom.op is not None:
        return atom.op.apply([arg.evaluate(env) for arg in atom.args])
    value = env.get(atom.name)
    if value is None:
        _missing(atom.name, env)
    return value


def _substitute_atom(atom: Atom, env: Mapping[str, Expr | int]) -> Expr:
    if atom.op is not None:
        return atom.op.build([arg.substitute(env) for arg in atom.args])
    value = env.get(atom.name)
    return atom.expr() if value is None else _expr(value)


# ** text: `parse` reads it back to the same object; and C++ **


def _terms_text(terms: Terms) -> str:
    """The text of a polynomial."""
    if not terms:
        return "0"
    text = ""
    for coefficient, mono in terms:
        size = abs(coefficient)
        if len(mono) == 1 and size == 1:
            # a leading minus binds to the first factor, so an infix operator needs parentheses after it
            body = f"({mono[0]})" if coefficient < 0 and not text and _is_infix(mono[0]) else str(mono[0])
        else:
            factors = [f"({a})" if _is_infix(a) else str(a) for a in mono]
            body = "*".join(factors if size == 1 and factors else [str(size), *factors])
        if coefficient < 0:
            text += f" - {body}" if text else f"-{body}"
        else:
            text += f" + {body}" if text else body
    return text


def _atom_text(atom: Atom) -> str:
    """The text of an atom, without parentheses around it."""
    if atom.op is None:
        return atom.name
    if not atom.op.infix:
        return f"{atom.op.name}({', '.join(str(a) for a in atom.args)})"
    if (ceil := _as_ceildiv(atom)) is not None:
        return f"{_operand_text(ceil[0])} ceildiv {ceil[1]}"
    return f"{_operand_text(atom.args[0])} {atom.op.name} {_operand_text(atom.args[1])}"


def _terms_cpp(terms: Terms, names: Mapping[str, str]) -> str:
    """The C++ of a polynomial, in parentheses unless it is a name, a number or a call."""
    if not terms:
        return "0"
    text = ""
    for coefficient, mono in terms:
        factors = [_atom_cpp(atom, names) for atom in mono]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = " - " if coefficient < 0 else " + "
        text += (sign if text else sign.strip(" +")) + " * ".join(factors)
    alone = len(terms) == 1 and terms[0][0] > 0 and (not terms[0][1] or (terms[0][0] == 1 and len(terms[0][1]) == 1))
    return text if alone else f"({text})"


def _as_ceildiv(atom: Atom) -> tuple[Expr, int] | None:
    """`(a, n)` if the atom is `(a + n - 1) floordiv n`, which is `a ceildiv n`; else None."""
    if atom.op is None or atom.op.name != "floordiv" or (n := atom.args[1].as_int()) is None:
        return None
    last = atom.args[0].terms()[-1]
    return (atom.args[0] - (n - 1), n) if last == (n - 1, ()) else None


def _missing(name: str, known: Mapping[str, object]) -> NoReturn:
    """Raise the error for a dim that has no value or no C++ name."""
    raise DimError(f"dim {name!r} has no value here; known: {', '.join(sorted(known)) or 'none'}")


def _is_infix(atom: Atom) -> bool:
    return atom.op is not None and atom.op.infix


def _operand_text(e: Expr) -> str:
    value = e.as_int()
    terms = e.terms()
    simple = value is not None and value >= 0
    if len(terms) == 1 and len(terms[0][1]) == 1:
        simple = terms[0][0] == 1 and not _is_infix(terms[0][1][0])
    return str(e) if simple else f"({e})"


def _atom_cpp(atom: Atom, names: Mapping[str, str]) -> str:
    if atom.op is None:
        if (name := names.get(atom.name)) is None:
            _missing(atom.name, names)
        return name
    if (ceil := _as_ceildiv(atom)) is not None:
        return f"ait::ceildiv({ceil[0].cpp(names)}, {ceil[1]})"
    args = [arg.cpp(names) for arg in atom.args]
    text = args[-1]
    for arg in reversed(args[:-1]):
        text = f"ait::{atom.op.name}({arg}, {text})"
    return text
