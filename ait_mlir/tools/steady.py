"""Prints a module at several times with stable names of values, so that each difference is a change of the program.

The usual text numbers values by position, so a removed value renames all later values.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.printer import Printer


@dataclass
class Names:
    """The name of each printed value: its hint, or a number; a taken hint gets a number as suffix."""

    of: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    taken: set[str] = field(default_factory=set[str])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    """The next number to try as suffix of each hint; "" is for values without a hint."""

    def name(self, value: SSAValue) -> str:
        """The name of a value, the same at each call."""
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
    """The text of a module with the names of values from `names`; new values are added to `names`."""
    stream = io.StringIO()
    SteadyPrinter(stream=stream, names=names).print_op(module)
    return stream.getvalue()
