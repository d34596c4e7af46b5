"""Texts of one module over time in which a value keeps its name, so that a difference is a change of the program.

The usual text numbers values by their places: one that goes renames all that follow.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.printer import Printer


@dataclass
class Names:
    """The name of each value that was printed: its hint, or a number; with one behind it where that was taken."""

    of: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    taken: set[str] = field(default_factory=set[str])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    """The next number to try behind a hint; of values without a hint behind "". """

    def name(self, value: SSAValue) -> str:
        """The name of a value, the same as ever."""
        if value not in self.of:
            hint = value.name_hint or ""
            name = hint
            while not name or name in self.taken:
                number = self.numbers[hint] = self.numbers.get(hint, -1) + 1
                name = f"{hint}_{number}" if hint else str(number)
            self.of[value] = name
            self.taken.add(name)
        return self.of[value]


@dataclass(eq=False, repr=False)
class SteadyPrinter(Printer):
    """A printer that takes the names of values from `names`."""

    names: Names = field(default_factory=Names)

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self.names.name(value)
        self.print_string(f"%{name}")
        return name


def steady_text(module: ModuleOp, names: Names) -> str:
    """The text of a module with values as they are called in `names`, which gets the new ones."""
    stream = io.StringIO()
    SteadyPrinter(stream=stream, names=names).print_op(module)
    return stream.getvalue()
