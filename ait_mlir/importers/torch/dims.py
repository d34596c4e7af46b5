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


class DimTable:
    """The dims of one program by PyTorch's symbols."""

    def __init__(self) -> None:
        self._dims: dict[str, Dim] = {}
        self._known: dict[str, Expr] = {}
        self._scope: Scope | None = None
        self._converted: dict[Any, Expr] = {}

    def declare(self, symbol: str, name: str, lo: int, hi: int, hints: Sequence[int] = ()) -> None:
        """Give a symbol its name and range; a second declaration changes nothing."""
        if symbol in self._dims:
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
        """Say what a symbol is that PyTorch takes for a value of a tensor; the import knows it from the dims."""
        self._known[symbol] = self.scope().simplified(value)
        self._converted.clear()

    def bind(self, symbol: str, upper: Expr) -> None:
        """Give a symbol that an operation binds its name, and the most that it may be."""
        most = self.scope().bounds(upper)[1]
        self.declare(symbol, "count", 0, most)
        self._set(symbol, replace(self._dims[symbol], upper=upper))

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._dims

    def scope(self) -> Scope:
        """The dims in the order in which they were declared."""
        if self._scope is None:
            self._scope = Scope(self._dims.values())
        return self._scope

    def expr(self, size: Any) -> Expr:
        """An int or a `SymInt` of the program over the named dims, as short as their ranges allow."""
        if isinstance(size, int):
            return const(size)
        source = size.node.expr
        if (found := self._converted.get(source)) is None:
            found = self._converted[source] = self.scope().simplified(self._convert(source))
        return found

    def shape(self, sizes: Sequence[Any]) -> Shape:
        """The sizes of a tensor of the program."""
        return tuple(self.expr(size) for size in sizes)

    def _convert(self, e: Any) -> Expr:
        if e.is_Integer:
            return const(int(e))
        if e.is_Symbol:
            if (value := self._known.get(e.name)) is not None:
                return value
            if (found := self._dims.get(e.name)) is None:
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
