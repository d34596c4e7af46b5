"""Numbers and conditions that floats compute from one dim, tried for each of its values."""

from __future__ import annotations

import math
import operator
from collections.abc import Generator, Mapping
from typing import Any

from ait_mlir.dims import Expr, Scope, sym

MOST_TRIED = 1 << 16
"""The most values of a dim for which floats are tried."""
QUOTIENTS = ("FloatTrueDiv", "IntTrueDiv")
_OPERATOR: Any = operator  # some of its functions have no complete types


def _sum(*terms: Any) -> Any:
    return sum(terms)


def _product(*factors: Any) -> Any:
    return math.prod(factors)


_FUNCTIONS: dict[str, Any] = {
    **dict.fromkeys(QUOTIENTS, _OPERATOR.truediv),
    **dict.fromkeys(("FloorDiv", "CleanDiv"), _OPERATOR.floordiv),
    **dict.fromkeys(("Mod", "PythonMod"), _OPERATOR.mod),
    **dict.fromkeys(("Pow", "PowByNatural", "FloatPow"), _OPERATOR.pow),
    **{
        f"OpaqueUnaryFn_{name}": getattr(math, name)
        for name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "exp", "log", "log2")
    },
    "ToFloat": float,
    "CeilToInt": math.ceil,
    "FloorToInt": math.floor,
    "TruncToInt": math.trunc,
    "Add": _sum,
    "Mul": _product,
    "Max": max,
    "Min": min,
    "Equality": operator.eq,
    "Unequality": operator.ne,
    "LessThan": operator.le,
    "StrictLessThan": operator.lt,
    "GreaterThan": operator.ge,
    "StrictGreaterThan": operator.gt,
}
"""Functions and relations of SymPy, as Python computes them."""


class Unknown(Exception):
    """An expression has several dims, too many values, or a part whose value is not certain."""


def values(e: Any, symbols: Mapping[Any, Expr], scope: Scope) -> Generator[tuple[str, int, Any]]:
    """The name of the one dim, each of its values, and that of an expression or relation of SymPy; None for a division
    by 0. `symbols` has the values of the SymPy symbols. Raises `Unknown`.
    """
    names = {name for value in symbols.values() for name in value.symbols}
    if len(names) != 1:
        raise Unknown
    (name,) = names
    low, high = scope.bounds(sym(name))
    if high - low > MOST_TRIED:
        raise Unknown
    for n in range(low, high + 1):
        try:
            yield name, n, _value(e, {symbol: value.evaluate({name: n}) for symbol, value in symbols.items()})
        except (ZeroDivisionError, ValueError, OverflowError):
            yield name, n, None


def _value(e: Any, env: Mapping[Any, int]) -> Any:
    if e.is_Symbol:
        return env[e]
    if e.is_number:
        return int(e) if e.is_Integer else float(e)
    kind, operands = type(e).__name__, [_value(argument, env) for argument in e.args]
    if kind not in _FUNCTIONS:
        raise Unknown
    if (
        kind in ("Add", "Mul")
        and any(isinstance(n, float) for n in operands)
        and sum(abs(n) != 1 for n in operands) > 2
    ):
        raise Unknown  # SymPy does not keep the order of more than two floats
    return _FUNCTIONS[kind](*operands)
