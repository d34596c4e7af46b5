"""The dims of an exported program: names and ranges for its symbols, and sympy's expressions as dim expressions."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from ait_mlir.dialects.ait.types import Shape
from ait_mlir.dims import (
    MAX_DIM,
    Dim,
    Expr,
    Scope,
    ceildiv,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    product,
    sym,
    total,
)
from ait_mlir.dims.expr import RESERVED
from ait_mlir.importers.torch.errors import NotSupported
from ait_mlir.importers.torch.trials import QUOTIENTS, Unknown, values

UNBOUNDED = 4096
"""The maximum of a dim to which neither `torch.export.Dim` nor the model set one."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class DimRequired(Exception):
    """An operation requires that a symbol, which is free in PyTorch's program, equals an expression of other symbols or
    has a smaller range.
    """

    def __init__(self, symbol: str, value: Expr | None = None, least: int = 0, most: int = MAX_DIM) -> None:
        super().__init__(f"{symbol} must be {f'from {least} to {most}' if value is None else value}")
        self.symbol, self.value, self.least, self.most = symbol, value, least, most


@dataclass
class Required:
    """The requirements of operations on the symbols of a program."""

    defined: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """Expressions over symbols that take the place of other symbols."""
    most: dict[str, int] = field(default_factory=dict[str, int])
    from_least: dict[str, int] = field(default_factory=dict[str, int])
    """Minima, of symbols with a declared one, too."""
    least: Mapping[str, int] = field(default_factory=dict[str, int])
    """The least values of symbols whose dims have no declared minimum."""
    multiples: Mapping[str, int] = field(default_factory=dict[str, int])
    """For symbols that are multiples of a number, that number."""

    def add(self, found: DimRequired) -> None:
        """Add the requirement of an operation."""
        if found.value is None:
            self.most[found.symbol] = min(found.most, self.most.get(found.symbol, MAX_DIM))
            self.from_least[found.symbol] = max(found.least, self.from_least.get(found.symbol, 0))
            return
        self.defined = {s: value.substitute({found.symbol: found.value}) for s, value in self.defined.items()}
        self.defined[found.symbol] = found.value


class DimTable:
    """The dims of one program by PyTorch's symbols.

    `examples` are values of the symbols. With them, if an operation needs two sizes to be equal, or one to fit into the
    other, and the example's do, the dims are restricted to that. A caller that passes examples must therefore run calls
    of other sizes elsewhere.
    """

    def __init__(self, required: Required | None = None, examples: Mapping[str, int] | None = None) -> None:
        self._dims: dict[str, Dim] = {}
        self._known: dict[str, Expr] = {}
        self._scope: Scope | None = None
        self._converted: dict[Any, Expr] = {}
        self._defined: dict[str, Expr] = dict(required.defined) if required else {}
        self._parts: dict[str, tuple[int, str]] = {}
        """For a symbol that is a multiple of a number: the number, and the symbol of the quotient."""
        self._most: dict[str, int] = dict(required.most) if required else {}
        self._from_least: dict[str, int] = dict(required.from_least) if required else {}
        self.least: Mapping[str, int] = required.least if required else {}
        self._examples: dict[str, int] = dict(examples or {})
        for symbol, by in required.multiples.items() if required else ():
            self._divide(symbol, by)

    def _divide(self, symbol: str, by: int) -> None:
        """Define a symbol as a multiple of a number, unless it is defined."""
        if symbol not in self._defined:
            by, part = self._parts[symbol] = by, f"{symbol}_by_{by}"
            self._defined[symbol] = (by * sym(part)).substitute(self._defined)
            if symbol in self._examples:
                self._examples[part] = self._examples[symbol] // by

    def declare(self, symbol: str, name: str, lo: int, hi: int, hints: Sequence[int] = ()) -> None:
        """Give a symbol its name and range; a second declaration changes nothing."""
        if (symbol := self.chief(symbol)) in self._defined:
            if symbol in self._parts:
                by, part = self._parts[symbol]
                self.declare(part, f"{name}_by_{by}", -(-lo // by), hi // by)
            return
        lo, hi = max(lo, self._from_least.get(symbol, lo)), min(hi, self._most.get(symbol, hi))
        if (known := self._dims.get(symbol)) is not None:
            low, high = max(known.lo, lo), min(known.hi, hi)
            if low <= high:  # a dim has the range common to all its symbols
                hints = tuple(h for h in known.hints if low <= h <= high)
                self._set(symbol, replace(known, lo=low, hi=high, hints=hints))
            return
        taken = {d.name for d in self._dims.values()}
        base = name if _IDENTIFIER.fullmatch(name) and name not in RESERVED else f"dim_{len(taken)}"
        unique, n = base, 1
        while unique in taken:
            unique, n = f"{base}_{n}", n + 1
        self._set(symbol, Dim(unique, lo, hi, tuple(h for h in hints if lo <= h <= hi)))

    def _set(self, symbol: str, dim: Dim) -> None:
        self._dims[symbol] = dim
        self._scope = None
        self._converted.clear()

    def fix(self, symbol: str, value: Expr) -> None:
        """Define a symbol by an expression over dims; PyTorch only knows that it is read from a tensor."""
        self._known[symbol] = self.scope().simplified(value)
        self._converted.clear()

    def unite(self, a: str, b: str) -> None:
        """Make two symbols one dim. Call it before either is declared."""
        a, b = self.chief(a), self.chief(b)
        if a != b:
            self._defined[b] = sym(a)
            if b in self._parts:
                self._divide(a, self._parts.pop(b)[0])

    def chief(self, symbol: str) -> str:
        """The symbol that represents all symbols equal to this one."""
        while (value := self._defined.get(symbol)) is not None and value.symbols == frozenset((str(value),)):
            symbol = str(value)
        return symbol

    def require_equal(self, a: Expr, b: Expr) -> None:
        """Raise `DimRequired` for sizes that are equal only if one dim is defined by others: `e` as `d + 1`, for
        example.
        """
        scope = self.scope()
        if scope.equal(a, b):
            return
        symbols = {d.name: symbol for symbol, d in self._dims.items() if d.upper is None}
        names = {name: sym(symbol) for name, symbol in symbols.items()}
        found: list[DimRequired] = []
        for name in sorted((a - b).symbols & symbols.keys()):
            factor = ((a - b).substitute({name: sym(name) + 1}) - (a - b)).as_int()
            if factor not in (1, -1):
                continue
            value = -factor * (a - b).substitute({name: 0})
            low, high = scope.bounds(value)
            dim = self._dims[symbols[name]]
            if value.symbols <= symbols.keys() and max(low, dim.lo) <= min(high, dim.hi):
                found.append(DimRequired(symbols[name], value.substitute(names)))
                if low >= dim.lo:  # all values of the other dims give a valid size
                    raise found[-1]
        if found:
            raise found[0]

    def require_room(self, size: Expr, extent: Expr) -> None:
        """Raise `DimRequired` for a size that fits into `extent` in the example, but is not proved to fit always.

        An extent that is a dim becomes at least as large as in the example. Of a sum of dims, the largest gets the room
        that the others leave; they become at most as large as in the example.
        """
        if not self._examples or self.scope().le(size, extent):
            return
        env = {d.name: self._examples[symbol] for symbol, d in self._dims.items() if symbol in self._examples}
        if not size.symbols | extent.symbols <= env.keys():
            return
        if size.evaluate(env) == extent.evaluate(env):
            self.require_equal(size, extent)
        symbols = {d.name: symbol for symbol, d in self._dims.items()}
        *others, largest = sorted(size.symbols, key=lambda name: env[name])
        rest, room = (size - total(map(sym, size.symbols))).as_int(), extent.evaluate(env)
        behind = (extent - total(map(sym, extent.symbols))).as_int()
        if rest is None or behind is None or extent.symbols & size.symbols or size.evaluate(env) > room:
            return
        for name in sorted(extent.symbols):
            if self._dims[symbols[name]].lo < env[name]:
                raise DimRequired(symbols[name], least=env[name])
        for name in others:
            if env[name] < self._dims[symbols[name]].hi:
                raise DimRequired(symbols[name], most=env[name])
        most = room - rest - sum(env[name] for name in others)
        if self._dims[symbols[largest]].lo <= most:
            raise DimRequired(symbols[largest], most=most)

    def bind(self, symbol: str, upper: Expr) -> None:
        """Give a name and an upper bound to the symbol of a size that an operation binds."""
        symbol = self.chief(symbol)
        most = self.scope().bounds(upper)[1]
        self.declare(symbol, "count", 0, most)
        self._set(symbol, replace(self._dims[symbol], upper=upper))

    def __contains__(self, symbol: str) -> bool:
        return self.chief(symbol) in self._dims

    def knows(self, symbol: str) -> bool:
        """Whether a symbol is a dim, or follows from dims."""
        return symbol in self or symbol in self._known or self.chief(symbol) in self._defined

    def scope(self) -> Scope:
        """The dims in the order in which they were declared."""
        if self._scope is None:
            self._scope = Scope(self._dims.values())
        return self._scope

    def expr(self, size: Any) -> Expr:
        """An int or a `SymInt` of the program as an expression over the named dims, simplified by their ranges."""
        return const(size) if isinstance(size, int) else self.converted(size.node.expr)

    def converted(self, source: Any) -> Expr:
        """A SymPy expression of the program over the named dims, simplified by their ranges."""
        if (found := self._converted.get(source)) is None:
            found = self._converted[source] = self.scope().simplified(self._convert(source))
        return found

    def shape(self, sizes: Sequence[Any]) -> Shape:
        """The sizes of a tensor of the program."""
        return tuple(self.expr(size) for size in sizes)

    def _convert(self, e: Any) -> Expr:
        if e.is_Integer:
            return const(int(e))
        if e.is_Symbol and (value := self._defined.get(self.chief(e.name))) is not None:
            return value.substitute({s: sym(self._dims[self.chief(s)].name) for s in value.symbols})
        if e.is_Symbol:
            if (value := self._known.get(e.name)) is not None:
                return value
            if (found := self._dims.get(self.chief(e.name))) is None:
                raise NotSupported(
                    f"the size {e.name} depends on the values of a tensor; shapes may depend on the shapes of the "
                    "inputs only, so the model has to compute with the largest size and mask what is left over"
                )
            return sym(found.name)
        if (rounded := _ROUNDED.get(type(e).__name__)) is not None:
            try:
                numerator, denominator = self.fraction(e.args[0])
            except NotSupported:
                if (found := self._by_trial(e)) is not None or (found := self._in_steps(e)) is not None:
                    return found
                raise
            denominator = const(denominator)
            if type(e).__name__ == "TruncToInt" and not self.scope().le(0, numerator):
                raise NotSupported(f"the size {e} may be rounded from a number below 0")
            found = rounded(numerator, denominator)
            if any(_divides(argument) for argument in e.args[0].args):
                self._is_tried(e, found)  # floats may be rounded before the last operation
            return found
        build = _FUNCTIONS.get(type(e).__name__)
        if build is None:
            raise NotSupported(f"the size {e} uses {type(e).__name__}, which no dim expression has")
        return build([self._convert(argument) for argument in e.args])

    def symbols_of(self, e: Any) -> dict[Any, Expr]:
        """The symbols of a SymPy expression over the named dims."""
        return {symbol: self._convert(symbol) for symbol in e.free_symbols}

    def _by_trial(self, e: Any) -> Expr | None:
        """A whole number that floats compute from one dim, such as ceil(1 / (1 / n)), as a dim expression, or None.
        Raises `NotSupported` unless floats give its number for every value of the dim.
        """
        scope, ratio = self.scope(), None
        with contextlib.suppress(NotSupported):
            ratio = self._ratio(e.args[0])
        if ratio is None or not scope.lt(0, ratio[1]):
            return None
        numerator, denominator = ratio
        whole = scope.simplified(floordiv(numerator, denominator))
        is_exact = scope.equal(whole * denominator, numerator)
        found = whole if is_exact else scope.simplified(_ROUNDED[type(e).__name__](numerator, denominator))
        return found if self._is_tried(e, found) else None

    def _is_tried(self, e: Any, found: Expr) -> bool:
        """Whether floats compute this number for every value of the one dim of a SymPy expression; False if it has
        several dims or too many values. Raises `NotSupported` for a value with another number.
        """
        try:
            for name, n, size in values(e, self.symbols_of(e), self.scope()):
                if size is None:  # an error in PyTorch, too
                    continue
                if size != (expected := found.evaluate({name: n})):
                    raise NotSupported(
                        f"the size {e} is {size} for {name} = {n}, because floats are rounded, where {found} is "
                        f"{expected}; use whole numbers, as in torch.arange(n) / n, or declare "
                        f"Dim({name!r}, max={n - 1})"
                    )
        except Unknown:
            return False
        return True

    def _in_steps(self, e: Any) -> Expr | None:
        """A dim expression for a whole number that PyTorch computes by floats from one dim, such as floor(log2(n)).

        The expression is the first value, plus a term with `min(1, n floordiv k)` for each `k` at which the value
        changes. None if it changes at more than `MOST_STEPS` places.
        """
        found: Expr | None = None
        before, steps = 0, 0
        try:
            for name, n, size in values(e, self.symbols_of(e), self.scope()):
                if size is None or (found is not None and size == before):  # None is an error in PyTorch, too
                    continue
                if found is None:
                    found = const(size)
                elif (steps := steps + 1) <= MOST_STEPS:
                    found = found + minimum(1, floordiv(sym(name), n)) * (size - before)
                else:
                    return None
                before = size
        except Unknown:
            return None
        return found

    def _ratio(self, e: Any) -> tuple[Expr, Expr] | None:
        """A real number of SymPy as a quotient of dim expressions, floats as the ratios that they stand for."""
        kind = type(e).__name__
        if e.is_number:
            exact = Fraction(float(e))
            value = exact if exact.denominator <= LARGEST_DENOMINATOR else exact.limit_denominator(LARGEST_DENOMINATOR)
            return const(value.numerator), const(value.denominator)
        if kind in ("Add", "Mul", *QUOTIENTS):
            parts = [self._ratio(argument) for argument in e.args]
            (a, b), *others = [part for part in parts if part is not None]
            if len(others) + 1 < len(parts):
                return None
            for c, d in others:
                pairs = {"Add": (a * d + b * c, b * d), "Mul": (a * c, b * d)}
                a, b = pairs.get(kind, (a * d, b * c))
            return a, b
        return self._convert(e.args[0] if kind == "ToFloat" else e), const(1)

    def fraction(self, e: Any) -> tuple[Expr, int]:
        """A real number of sympy as a fraction: a dim expression, divided by a whole number. Raises `NotSupported` for
        others.
        """
        match type(e).__name__:
            case "Float" | "Rational" | "Half":
                value = Fraction(float(e))
                if value.denominator <= 1 << 16:
                    return const(value.numerator), value.denominator
            case "ToFloat":
                return self._convert(e.args[0]), 1
            case "FloatTrueDiv" | "IntTrueDiv":
                (a, b), (c, d) = map(self.fraction, e.args)
                divisor = c.as_int()
                if divisor:
                    return a * (d if divisor > 0 else -d), b * abs(divisor)
            case "Mul":
                parts = [self.fraction(argument) for argument in e.args]
                return product([n for n, _ in parts]), math.prod(d for _, d in parts)
            case "Add":
                parts = [self.fraction(argument) for argument in e.args]
                common = math.lcm(*(d for _, d in parts))
                return total([n * (common // d) for n, d in parts]), common
            case _:
                return self._convert(e), 1
        raise NotSupported(f"the size is rounded from {e}, which floats do not compute exactly")


def _divides(e: Any) -> bool:
    """Whether a SymPy expression contains a quotient that floats may round: its divisor is not a power of 2."""
    kind = type(e).__name__
    return (kind in QUOTIENTS and not _is_power_of_2(e.args[1])) or any(map(_divides, e.args))


def _is_power_of_2(e: Any) -> bool:
    return bool(e.is_number) and math.frexp(float(e))[0] == 0.5


def _ceil(numerator: Expr, denominator: Expr) -> Expr:
    return floordiv(numerator + (denominator - 1), denominator)


_ROUNDED: Mapping[str, Callable[[Expr, Expr], Expr]] = {
    "CeilToInt": _ceil,
    "FloorToInt": floordiv,
    "TruncToInt": floordiv,
}
LARGEST_DENOMINATOR = 1 << 10
"""Of the ratio that a float stands for."""
MOST_STEPS = 64
"""The most changes of a number that is written as a sum of its steps."""


def _power(args: list[Expr]) -> Expr:
    exponent = args[1].as_int()
    if exponent is None or exponent < 0:
        raise NotSupported(f"the size {args[0]} ** {args[1]} is no dim expression")
    return product([args[0]] * exponent)


def _divided(args: list[Expr]) -> Expr:
    return floordiv(args[0], args[1])


def _remainder(args: list[Expr]) -> Expr:
    """`a % b`. If b is a number and `a` is `-x`, but for multiples of b, this pads x to a multiple of b. It is then
    written as `b * (x ceildiv b) - x`, so that x with the padding is a multiple in every form.
    """
    a, by = args[0], args[1].as_int()
    if by is None or by < 1:
        return mod(*args)
    x = -a
    for factor, atoms in x.terms():
        if len(atoms) == 1 and (op := atoms[0].op) is not None and op.name == "mod" and atoms[0].args[1].as_int() == by:
            x += factor * (atoms[0].args[0] - atoms[0].expr())
    offset = sum(factor for factor, atoms in x.terms() if not atoms)
    x -= by * (offset // by)
    is_padding = x.as_int() is None and all(factor > 0 for factor, _ in x.terms())
    return by * ceildiv(x, by) - x if is_padding else mod(*args)


_FUNCTIONS: Mapping[str, Callable[[list[Expr]], Expr]] = {
    "Add": total,
    "Mul": product,
    "Pow": _power,
    "PowByNatural": _power,
    "FloorDiv": _divided,
    "CleanDiv": _divided,
    "IntTrueDiv": _divided,
    "Mod": _remainder,
    "PythonMod": _remainder,
    "Max": lambda args: maximum(*args),
    "Min": lambda args: minimum(*args),
}
