"""Dim expressions as SymPy expressions; SymPy is imported only here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import sympy

from ait_mlir.dims import Expr


def _floordiv(a: Any, b: Any) -> Any:
    return sympy.floor(a / b)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floordiv": _floordiv,
    "mod": cast(Any, sympy.Mod),
    "min": cast(Any, sympy.Min),
    "max": cast(Any, sympy.Max),
}


def to_sympy(expr: Expr, names: Mapping[str, str]) -> Any:
    """`expr` over symbols called `names[...]`, each a non-negative integer."""
    result: Any = sympy.Integer(0)
    for coefficient, atoms in expr.terms():
        term: Any = sympy.Integer(coefficient)
        for atom in atoms:
            if atom.op is None:
                term *= sympy.Symbol(names.get(atom.name, atom.name), integer=True, nonnegative=True)
            else:
                term *= _FUNCTIONS[atom.op.name](*(to_sympy(arg, names) for arg in atom.args))
        result += term
    return result
