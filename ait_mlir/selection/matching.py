"""Finds a timed task with more general dims that covers a given task, and maps the dims of one to the other.

A product of `d0 x d1` rows was timed at some values of both dims. A product of `8 x d0` rows, in a model with a fixed
batch, is the same product where the first dim is 8; in a product of `8 x 128` rows both dims are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from ait_mlir.dims import Expr, const, parse, sym
from ait_mlir.lowering.choices import Choice
from ait_mlir.selection.ranges import axis_of
from ait_mlir.selection.structures import first_output, taken_apart

Binding = tuple[int | str, ...]
"""For each dim of the timed task: a number, or the name of a dim of the other task."""


def match(timed: str, task: str) -> Binding | None:
    """The number or dim of a task for each dim of a timed task; None if the task is no special case of the timed one.

    Both are given by their keys, and have the same ops. All expressions of dims must agree.
    """
    (ops, unknown), (same, given) = taken_apart(timed), taken_apart(task)
    if ops != same:
        return None
    bound: dict[str, Expr] = {}
    rest: list[tuple[Expr, Expr]] = []
    for left, right in zip(unknown, given, strict=True):
        if isinstance(left, int):
            if left != right:
                return None
        elif left.isidentifier():
            value = parse(str(right))
            if bound.setdefault(left, value) is not value:
                return None
        else:
            rest.append((parse(left), parse(str(right))))
    if any(value.as_int() is None and not str(value).isidentifier() for value in bound.values()):
        return None
    for left, right in rest:
        missing = sorted(left.symbols - bound.keys())
        if missing:  # a dim that stands only in expressions
            bound |= _solve(left.substitute(bound), right, missing[0])
        if not left.symbols <= bound.keys() or left.substitute(bound) is not right:
            return None
    numbers = [bound[f"d{i}"] for i in range(len(bound))]
    return tuple(str(e) if (n := e.as_int()) is None else n for e in numbers)


def _solve(left: Expr, right: Expr, name: str) -> dict[str, Expr]:
    """The dim to substitute for `name` so that `left` equals `right`; empty if there is none."""
    found: dict[str, Expr] = {}
    for other in sorted(right.symbols):
        if left.substitute({name: sym(other)}) is right:
            found[name] = sym(other)
    return found


def axis_of_key(key: str) -> Expr:
    """The measure of a task's size, from its key: views after its op keep the number of elements."""
    return axis_of(first_output(key))


def bound_axis(timed: str, binding: Binding, names: Mapping[str, str]) -> Expr:
    """The axis of a timed task, in the dims of another task; `names` maps `d0`, `d1` ... to that task's dims."""
    values = {f"d{i}": const(v) if isinstance(v, int) else sym(names[v]) for i, v in enumerate(binding)}
    return axis_of_key(timed).substitute(values)


def within(choice: Choice, low: int, high: int) -> Choice:
    """The part of a choice that an axis from `low` to `high` can reach."""
    kept = [i for i in range(len(choice.candidates)) if _starts(choice, i) <= high and _ends(choice, i, high) >= low]
    candidates, upto = tuple(choice.candidates[i] for i in kept), tuple(choice.upto[i] for i in kept[:-1])
    return Choice(candidates, upto, choice.axis if upto else None)


def _starts(choice: Choice, i: int) -> int:
    return choice.upto[i - 1] + 1 if i > 0 else -1


def _ends(choice: Choice, i: int, high: int) -> int:
    return choice.upto[i] if i < len(choice.upto) else high


__all__ = ["Binding", "axis_of_key", "bound_axis", "match", "within"]
