"""How expressions are written: as text that `parse` reads back to the same object, and as C++."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from ait_mlir.dims.errors import DimError

if TYPE_CHECKING:
    from ait_mlir.dims.expr import Atom, Expr, Terms


def terms_text(terms: Terms) -> str:
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


def atom_text(atom: Atom) -> str:
    """The text of an atom, without parentheses around it."""
    if atom.op is None:
        return atom.name
    if not atom.op.infix:
        return f"{atom.op.name}({', '.join(str(a) for a in atom.args)})"
    if (ceil := as_ceildiv(atom)) is not None:
        return f"{_operand_text(ceil[0])} ceildiv {ceil[1]}"
    return f"{_operand_text(atom.args[0])} {atom.op.name} {_operand_text(atom.args[1])}"


def terms_cpp(terms: Terms, names: Mapping[str, str]) -> str:
    """The C++ of a polynomial, in parentheses unless it is one name, one number or one call."""
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


def as_ceildiv(atom: Atom) -> tuple[Expr, int] | None:
    """`(a, n)` where the atom is a floordiv that is `a ceildiv n`, because its constant is n - 1."""
    if atom.op is None or atom.op.name != "floordiv" or (n := atom.args[1].as_int()) is None:
        return None
    last = atom.args[0].terms()[-1]
    return (atom.args[0] - (n - 1), n) if last == (n - 1, ()) else None


def missing(name: str, known: Mapping[str, object]) -> NoReturn:
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
            missing(atom.name, names)
        return name
    if (ceil := as_ceildiv(atom)) is not None:
        return f"ait::ceildiv({ceil[0].cpp(names)}, {ceil[1]})"
    args = [arg.cpp(names) for arg in atom.args]
    text = args[-1]
    for arg in reversed(args[:-1]):
        text = f"ait::{atom.op.name}({arg}, {text})"
    return text
