"""C++ of index expressions, and lines of code."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ait_mlir.dims import Expr, Scope
from ait_mlir.dims.expr import Atom
from ait_mlir.lowering.loops.nest import grouped


@dataclass
class Numbers:
    """Numbers that depend only on dims, as literals or as arguments that the host computes."""

    names: dict[Expr, str] = field(default_factory=dict[Expr, str])

    def text(self, e: Expr) -> str:
        value = e.as_int()
        if value is not None:
            return str(value)
        return self.names.setdefault(e, f"size{len(self.names)}")


@dataclass
class IndexText:
    """Prints index expressions in the C++ type `Index`, with a C++ variable for each axis."""

    scope: Scope
    axes: frozenset[str]
    numbers: Numbers
    variables: dict[str, str] = field(default_factory=dict[str, str])

    def text(self, e: Expr) -> str:
        """The C++ of an expression; sums without parentheses around them."""
        text = ""
        for atoms, factor in grouped(e, self.axes):
            value = factor.as_int()
            negative = value is not None and value < 0
            number = self.numbers.text(-factor if negative else factor)
            factors = [self._atom(atom) for atom in atoms]
            term = " * ".join(factors if number == "1" and factors else [*factors, number])
            if not text:
                text = f"-{term}" if negative else term
            else:
                text += f" - {term}" if negative else f" + {term}"
        return text or "0"

    def _atom(self, atom: Atom) -> str:
        if atom.op is None:
            return self.variables[atom.name]
        args = [self.text(arg) for arg in atom.args]
        if atom.op.infix:
            signed = not self.scope.le(0, atom.args[0])
            word = {"floordiv": "quotient", "mod": "remainder"}[atom.op.name]
            return f"ait::{'floor_' if signed else ''}{word}<Index>({args[0]}, {args[1]})"
        text = args[-1]
        for arg in reversed(args[:-1]):
            text = f"ait::{atom.op.name}<Index>({arg}, {text})"
        return text


class Lines:
    """Lines of C++ with their indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def add(self, *lines: str) -> None:
        self.lines += [line if line.startswith("#") else "  " * self.depth + line for line in lines]

    @contextmanager
    def braces(self, head: str, end: str = "}") -> Generator[None]:
        """A context: the lines added in it stand between `head {` and `end`."""
        self.add(f"{head} {{" if head else "{")
        self.depth += 1
        yield
        self.depth -= 1
        self.add(end)

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


def comment_of(numbers: Mapping[Expr, str]) -> str:
    """`size0 = 2*seq, size1 = batch`: the numbers by their names."""
    return ", ".join(f"{name} = {e}" for e, name in numbers.items())
