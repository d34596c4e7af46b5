"""Dims of an exported program: its symbols with names and ranges, and sympy's expressions as ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ait_mlir.dialects.ait.types import Shape
from ait_mlir.dims import Dim, Expr, Scope, const, floordiv, maximum, minimum, mod, product, sym, total
from ait_mlir.dims.expr import RESERVED
from ait_mlir.importers.torch.errors import NotSupported

UNBOUNDED = 4096
"""The maximum of a dim to which neither `torch.export.Dim` nor the model set one."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class MustBeEqual(Exception):
    """An operation requires that two symbols of the program, which PyTorch tells apart, are equal."""

    def __init__(self, symbols: tuple[str, str]) -> None:
        super().__init__(f"{symbols[0]} and {symbols[1]} must be equal")
        self.symbols = symbols


class DimTable:
    """The dims of one program by PyTorch's symbols; the symbols of a pair in `equal` are one dim."""

    def __init__(self, equal: Sequence[tuple[str, str]] = ()) -> None:
        self._dims: dict[str, Dim] = {}
        self._same: dict[str, str] = {}
        for a, b in equal:
            self.unite(a, b)

    def declare(self, symbol: str, name: str, lo: int, hi: int, hints: Sequence[int] = ()) -> None:
        """Give a symbol its name and range; a second declaration changes nothing."""
        symbol = self._chief(symbol)
        if (known := self._dims.get(symbol)) is not None:
            low, high = max(known.lo, lo), min(known.hi, hi)
            if low <= high:  # the range of a dim is that of all its symbols
                self._dims[symbol] = replace(known, lo=low, hi=high, hints=tuple(h for h in known.hints if low <= h <= high))
            return
        taken = {d.name for d in self._dims.values()}
        base = name if _IDENTIFIER.fullmatch(name) and name not in RESERVED else f"dim_{len(taken)}"
        unique, n = base, 1
        while unique in taken:
            unique, n = f"{base}_{n}", n + 1
        self._dims[symbol] = Dim(unique, lo, hi, tuple(h for h in hints if lo <= h <= hi))

    def unite(self, a: str, b: str) -> None:
        """Make two symbols one dim. Call it before either is declared."""
        a, b = self._chief(a), self._chief(b)
        if a != b:
            self._same[b] = a

    def _chief(self, symbol: str) -> str:
        """The symbol that stands for all those that are equal to one."""
        while symbol in self._same:
            symbol = self._same[symbol]
        return symbol

    def require_equal(self, a: Expr, b: Expr) -> None:
        """Raise `MustBeEqual` for sizes that are equal only if two dims are one, as `d + 1` and `e + 1` are."""
        symbols = {d.name: symbol for symbol, d in self._dims.items() if d.upper is None}
        own, other = sorted(a.symbols - b.symbols), sorted(b.symbols - a.symbols)
        if len(own) != 1 or len(other) != 1 or not {own[0], other[0]} <= symbols.keys():
            return
        one, two = (self._dims[symbols[name]] for name in (own[0], other[0]))
        overlap = max(one.lo, two.lo) <= min(one.hi, two.hi)
        if overlap and self.scope().equal(a.substitute({own[0]: sym(other[0])}), b):
            raise MustBeEqual((symbols[own[0]], symbols[other[0]]))

    def bind(self, symbol: str, upper: Expr) -> None:
        """Give a symbol that an operation binds its name, and the most that it may be."""
        symbol = self._chief(symbol)
        most = self.scope().bounds(upper)[1]
        self.declare(symbol, "count", 0, most)
        self._dims[symbol] = replace(self._dims[symbol], upper=upper)

    def __contains__(self, symbol: str) -> bool:
        return self._chief(symbol) in self._dims

    def scope(self) -> Scope:
        """The dims in the order in which they were declared."""
        return Scope(self._dims.values())

    def expr(self, size: Any) -> Expr:
        """An int or a `SymInt` of the program as an expression over the named dims."""
        if isinstance(size, int):
            return const(size)
        return self._convert(size.node.expr)

    def shape(self, sizes: Sequence[Any]) -> Shape:
        """The sizes of a tensor of the program."""
        return tuple(self.expr(size) for size in sizes)

    def _convert(self, e: Any) -> Expr:
        if e.is_Integer:
            return const(int(e))
        if e.is_Symbol:
            if (found := self._dims.get(self._chief(e.name))) is None:
                raise NotSupported(
                    f"the size {e.name} depends on the values of a tensor; shapes may depend on the shapes of the "
                    "inputs only, so the model has to compute with the largest size and mask what is left over"
                )
            return sym(found.name)
        build = _FUNCTIONS.get(type(e).__name__)
        if build is None:
            raise NotSupported(f"the size {e} uses {type(e).__name__}, which no dim expression has")
        return build([self._convert(argument) for argument in e.args])


def _power(args: list[Expr]) -> Expr:
    exponent = args[1].as_int()
    if exponent is None or exponent < 0:
        raise NotSupported(f"the size {args[0]} ** {args[1]} is no dim expression")
    return product([args[0]] * exponent)


def _divided(args: list[Expr]) -> Expr:
    return floordiv(args[0], args[1])


_FUNCTIONS: Mapping[str, Callable[[list[Expr]], Expr]] = {
    "Add": total,
    "Mul": product,
    "Pow": _power,
    "PowByNatural": _power,
    "FloorDiv": _divided,
    "CleanDiv": _divided,
    "IntTrueDiv": _divided,
    "Mod": lambda args: mod(args[0], args[1]),
    "PythonMod": lambda args: mod(args[0], args[1]),
    "Max": lambda args: maximum(*args),
    "Min": lambda args: minimum(*args),
}
