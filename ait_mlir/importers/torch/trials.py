"""Numbers and conditions of dims, tried for their values: floats of one dim for each, comparisons for some."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from ait_mlir.dims import Expr, Scope, sym

MOST_TRIED = 1 << 16
"""The most values of a dim for which floats are tried."""
SMALLEST = 17
"""How many of the smallest values of a dim are tried to find one for which a comparison does not hold."""
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


_ROUNDED = ("CeilToInt", "FloorToInt", "TruncToInt")
_LOG2 = "OpaqueUnaryFn_log2"


def of_base(base: float) -> Callable[[float], float]:
    """The logarithm to a base, as Python computes it."""
    return math.log if base == math.e else functools.partial(_of_base, base)


def _of_base(base: float, x: float) -> float:
    return math.log(x, base)


_FACTORS = {1 / math.log2(base): of_base(base) for base in (math.e, *range(3, 65))}
"""By the factor of log2 in `size_floats`: the logarithm that it stands for."""


def _log2_in(e: Any) -> Any:
    return next((a for a in e.args if type(a).__name__ == _LOG2), None)


def _logarithm(e: Any) -> Callable[[float], float] | None:
    """The function of `math` that is meant by log2 with a constant factor or divisor, such as `math.log10`; None for
    others.
    """
    number = next((a for a in e.args if a.is_number), None)
    if len(e.args) != 2 or number is None or _log2_in(e) is None:
        return None
    if type(e).__name__ == "Mul":
        return _FACTORS.get(float(number))
    is_decimal = type(e).__name__ in QUOTIENTS and e.args[1] == number and float(number) == math.log2(10)
    return math.log10 if is_decimal else None


def _is_certain(e: Any) -> bool:
    """Whether floats of Python give exactly the computed value.

    A logarithm with a factor that `math` has no function for may differ in the last digit.
    """
    is_plain = type(e).__name__ == _LOG2 or _logarithm(e) is not None
    return is_plain or not any(type(part).__name__ == _LOG2 for part in _parts(e))


def _parts(e: Any) -> Generator[Any]:
    yield e
    for argument in e.args:
        yield from _parts(argument)


def _is_near_whole(x: float) -> bool:
    return x != 0 and abs(x - round(x)) < 1e-9


class Unknown(Exception):
    """An expression has several dims, too many values, or a part whose value is not certain."""


def tried(low: int, high: int, numbers: Iterable[int]) -> list[int]:
    """The values of a dim from `low` to `high` that are tried to find one for which a comparison has another result:
    the smallest, the largest, and the numbers of the comparison with their neighbours.
    """
    found = {*range(low, low + SMALLEST), high, *(n + by for n in numbers for by in (-1, 0, 1))}
    return [n for n in sorted(found) if low <= n <= high]


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
    if (logarithm := _logarithm(e)) is not None:
        return logarithm(_value(_log2_in(e).args[0], env))
    kind, operands = type(e).__name__, [_value(argument, env) for argument in e.args]
    if kind in _ROUNDED and not _is_certain(e.args[0]) and _is_near_whole(operands[0]):
        raise Unknown
    if kind not in _FUNCTIONS:
        raise Unknown
    if (
        kind in ("Add", "Mul")
        and any(isinstance(n, float) for n in operands)
        and sum(abs(n) != 1 for n in operands) > 2
    ):
        raise Unknown  # SymPy does not keep the order of more than two floats
    return _FUNCTIONS[kind](*operands)
