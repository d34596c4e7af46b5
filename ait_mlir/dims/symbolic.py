"""Converts dim expressions to SymPy expressions and back. SymPy is imported only here, at the first call.

Both conversions go node by node: no text is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ait_mlir.dims.errors import DimError
from ait_mlir.dims.expr import Atom, Expr, const, product, sym, total
from ait_mlir.dims.rules import ceildiv, floordiv, maximum, minimum, mod

if TYPE_CHECKING:
    from ait_mlir.dims.scope import Scope


def to_sympy(expr: Expr, scope: Scope | None = None, names: Mapping[str, str] | None = None) -> Any:
    """`expr` as a SymPy expression over integer symbols.

    A symbol is positive if its dim is at least 1 in the scope, else non-negative. `names` maps dims to other names for
    their symbols.
    """
    import sympy

    def symbol(name: str) -> Any:
        positive = scope is not None and name in scope and scope[name].lo >= 1
        assumption = {"positive": True} if positive else {"nonnegative": True}
        return sympy.Symbol((names or {}).get(name, name), integer=True, **assumption)

    def floor_of(a: Any, b: Any) -> Any:
        return sympy.floor(a / b)

    functions: dict[str, Callable[..., Any]] = {
        "floordiv": floor_of,
        "mod": cast(Any, sympy.Mod),
        "min": cast(Any, sympy.Min),
        "max": cast(Any, sympy.Max),
    }

    def atom(a: Atom) -> Any:
        return symbol(a.name) if a.op is None else functions[a.op.name](*map(convert, a.args))

    def convert(e: Expr) -> Any:
        terms = (sympy.Mul(sympy.Integer(c), *map(atom, mono)) for c, mono in e.terms())
        return sympy.Add(*terms)

    return convert(expr)


def from_sympy(value: object) -> Expr:
    """The dim expression of a SymPy expression over integer symbols, or of an `int`.

    Sums, products, powers, `floor` and `ceiling` of quotients, `Mod`, `Min` and `Max` are supported. Raises `DimError`
    for anything else: a division that is not rounded, a symbol that is not an integer or whose name cannot be a dim's.
    """
    import sympy

    if isinstance(value, int) and not isinstance(value, bool):
        return const(value)
    if not isinstance(value, sympy.Expr):
        raise DimError(f"expected a SymPy expression or an int, found {value!r} of type {type(value).__name__}")
    return _from(value)


def _from(e: Any) -> Expr:
    if e.is_Integer:
        return const(int(e))
    if e.is_Symbol:
        if not e.is_integer:
            raise DimError(f"the symbol {e} is not an integer: make it with sympy.Symbol({e.name!r}, integer=True)")
        return sym(e.name)
    build = _BUILD.get(type(e).__name__)
    if build is None:
        raise DimError(f"{e} is {type(e).__name__}, which no dim expression has")
    return build(e)


def _arguments(build: Callable[..., Expr]) -> Callable[[Any], Expr]:
    return lambda e: build(*map(_from, e.args))


def _sequence(build: Callable[[Sequence[Expr]], Expr]) -> Callable[[Any], Expr]:
    return lambda e: build([_from(a) for a in e.args])


def _rounded(build: Callable[[Expr, Expr], Expr]) -> Callable[[Any], Expr]:
    """The conversion of `floor` or `ceiling` of a quotient."""

    def rounded(e: Any) -> Expr:
        numerator, denominator = e.args[0].as_numer_denom()
        return build(_from(numerator), _from(denominator))

    return rounded


def _power(e: Any) -> Expr:
    base, exponent = e.args
    if not (exponent.is_Integer and exponent >= 0):
        raise DimError(f"{e} is no dim expression: an exponent is a whole number, and a quotient is rounded by floor")
    return product([_from(base)] * int(exponent))


_BUILD: Mapping[str, Callable[[Any], Expr]] = {
    "Add": _sequence(total),
    "Mul": _sequence(product),
    "Pow": _power,
    "floor": _rounded(floordiv),
    "ceiling": _rounded(ceildiv),
    "Mod": _arguments(mod),
    "Min": _arguments(minimum),
    "Max": _arguments(maximum),
}
