"""Shorter forms of expressions, which are equal for all values of the dims within the ranges of one scope.

`max(64 - seq, 0)` is `64 - seq` if seq is at most 64. The normal form itself ignores ranges (`rules.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ait_mlir.dims.expr import Atom, Expr, const, product, total
from ait_mlir.dims.rules import FLOORDIV, MAX, MIN, MOD


class Ranges(Protocol):
    """The questions about ranges that a scope answers."""

    def bounds(self, e: Expr | int) -> tuple[int, int]: ...
    def le(self, a: Expr | int, b: Expr | int) -> bool: ...
    def lt(self, a: Expr | int, b: Expr | int) -> bool: ...


def simplified(e: Expr, scope: Ranges) -> Expr:
    """`e` without arguments of `min` and `max` that are never the result, and with divisions replaced by their results
    where the ranges determine these.
    """
    if all(atom.op is None for _, mono in e.terms() for atom in mono):
        return e
    return total(product([const(c), *(_atom(atom, scope) for atom in mono)]) for c, mono in e.terms())


def _atom(atom: Atom, scope: Ranges) -> Expr:
    if atom.op is None:
        return atom.expr()
    args = [simplified(arg, scope) for arg in atom.args]
    if atom.op is MAX:
        return atom.op.build(_undominated(args, scope.le))
    if atom.op is MIN:
        return atom.op.build(_undominated(args, lambda a, b: scope.le(b, a)))
    a, b = args
    if atom.op is MOD and scope.le(0, a) and scope.lt(a, b):
        return a
    if atom.op is FLOORDIV and (n := b.as_int()) is not None:
        low, high = (bound // n for bound in scope.bounds(a))
        if low == high:
            return const(low)
    return atom.op.build(args)


def _undominated(args: Sequence[Expr], dominated: Callable[[Expr, Expr], bool]) -> list[Expr]:
    """The arguments of a `min` or `max` that may be the result; of equal arguments, the last."""
    kept = list(args)
    for arg in args:
        if any(dominated(arg, other) for other in kept if other is not arg):
            kept.remove(arg)
    return kept
