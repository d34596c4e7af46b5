"""Symbols of dims in SymPy, under their documented names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import sympy

_values: dict[str, tuple[int, ...] | None] = {}
"""The values of the symbols that `create_new_symbol` made."""


def create_new_symbol(name: str, values: Sequence[int] | None = None, check_duplicate: bool = False) -> sympy.Symbol:
    """The symbol of a dim: an integer, positive if all `values` are positive.

    With `check_duplicate`, raises `ValueError` if the name was used with other values.
    """
    given = None if values is None else tuple(sorted(set(values)))
    if check_duplicate and _values.get(name, given) != given:
        raise ValueError(f"the symbol {name} has the values {_values[name]} already; found {given}")
    _values.setdefault(name, given)
    sign = {"positive": True} if given and given[0] >= 1 else {"nonnegative": True}
    return sympy.Symbol(name, integer=True, **sign)


def is_symbolic(value: object) -> bool:
    """Whether a value is an expression of SymPy."""
    return isinstance(value, sympy.Basic)


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number: an int, or an expression that simplifies to one."""
    if isinstance(value, sympy.Basic):
        simple: Any = cast(Any, sympy).simplify(value)
        return bool(simple.is_number and simple.is_real and float(simple).is_integer())
    return isinstance(value, int) and not isinstance(value, bool)


def simplify_intvar_values(value: Any) -> Any:
    """An expression of SymPy in its shortest form."""
    return cast(Any, sympy).simplify(value)
