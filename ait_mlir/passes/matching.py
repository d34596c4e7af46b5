"""Tasks that were timed with other dims: which of them a task is a case of, and what its size is in their terms.

A product of `d0 x d1` rows was timed at some values of both dims. One of `8 x d0` rows, in a model with a fixed batch,
is the same product where the first dim is 8; one of `8 x 128` rows where both are numbers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from ait_mlir.dims import Expr, const, parse, sym
from ait_mlir.lowering.choices import Choice
from ait_mlir.passes.ranges import axis_of

_DIM = re.compile(r"\bd(\d+)\b")
_OUTPUT = re.compile(r'ait\.output "y0" %\w+ : !ait\.tensor<(.*) x \w+>')

Binding = tuple[int | str, ...]
"""For each dim of the text that was timed a number, or a dim of the task."""


@functools.lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    """What matches the text with numbers or other dims for its dims."""
    seen: set[str] = set()
    parts: list[str] = []
    end = 0
    for found in _DIM.finditer(text):
        name = found[0]
        parts += [re.escape(text[end : found.start()]), f"(?P={name})" if name in seen else rf"(?P<{name}>d?\d+)"]
        seen.add(name)
        end = found.end()
    return re.compile("".join(parts) + re.escape(text[end:]))


def match(timed: str, task: str) -> Binding | None:
    """How the canonical text of a task is a case of a text that was timed; None where it is none."""
    found = _pattern(timed).fullmatch(task)
    if found is None:
        return None
    values = [found[f"d{i}"] for i in range(len(found.groupdict()))]
    return tuple(int(v) if v.isdecimal() else v for v in values)


def axis_of_text(text: str) -> Expr:
    """What the size of a task is measured by, from its canonical text: views after its op keep the elements."""
    found = _OUTPUT.search(text)
    return axis_of([parse(part) for part in found[1].split(" x ")] if found is not None else [])


def bound_axis(timed: str, binding: Binding, names: Mapping[str, str]) -> Expr:
    """The axis of a text that was timed, in the dims of a task; `names` are its own by the canonical ones."""
    values = {f"d{i}": const(v) if isinstance(v, int) else sym(names[v]) for i, v in enumerate(binding)}
    return axis_of_text(timed).substitute(values)


def within(choice: Choice, low: int, high: int) -> Choice:
    """The part of a choice that an axis from `low` to `high` can reach."""
    kept = [i for i in range(len(choice.ways)) if _starts(choice, i) <= high and _ends(choice, i, high) >= low]
    ways, upto = tuple(choice.ways[i] for i in kept), tuple(choice.upto[i] for i in kept[:-1])
    return Choice(ways, upto, choice.axis if upto else None)


def _starts(choice: Choice, i: int) -> int:
    return choice.upto[i - 1] + 1 if i > 0 else -1


def _ends(choice: Choice, i: int, high: int) -> int:
    return choice.upto[i] if i < len(choice.upto) else high


__all__ = ["Binding", "axis_of_text", "bound_axis", "match", "within"]
