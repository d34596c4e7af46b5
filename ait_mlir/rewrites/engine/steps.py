"""The steps of a matcher: conditions in Python over canonical names, choices between alternatives, and loops.

A name is a path from the root `o`: `o_1` is its operand 1, `o_1d` the operation that defines that value, `o_1d_0` its
operand 0. Two patterns with the same condition therefore spell it alike, and `compile.py` merges common prefixes by
comparing text. Names, attributes and types from IR enter through the constants table and appear as `K0`, `K1`, ...
"""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import pdl
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.dialects.ait.traits import INTERFACES
from ait_mlir.rewrites.engine.errors import PatternError, unknown
from ait_mlir.rewrites.engine.registry import Entry, Registry


class Constants:
    """The table through which values reach the generated code; equal attributes share an entry."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self._names: dict[Hashable, str] = {}

    def name(self, value: Hashable) -> str:
        """The name of a value in the generated code."""
        entry: Hashable = (type(value), value)
        name = self._names.get(entry)
        if name is None:
            name = self._names[entry] = f"K{len(self._names)}"
            self.namespace[name] = value
        return name


@dataclass(frozen=True)
class Universe:
    """The names that patterns may use: operation classes, constraints, native rewrites and finders."""

    operations: Mapping[str, type[Operation]]
    constraints: Registry
    natives: Registry
    finders: Registry

    def with_trait(self, trait: str) -> frozenset[type[Operation]]:
        """The operations that have a trait of this class name, or implement the interface of this name."""
        return frozenset(cls for cls in self.operations.values() if trait in names_of_traits(cls))

    def trait_names(self) -> set[str]:
        return {name for cls in self.operations.values() for name in names_of_traits(cls)}


@functools.cache
def names_of_traits(cls: type[Operation]) -> frozenset[str]:
    """The class names of the traits and interfaces of an operation."""
    interfaces = {name for name, interface in INTERFACES.items() if issubclass(cls, interface)}
    return frozenset({type(t).__name__ for t in cls.traits} | interfaces)


IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Step:
    """One condition; `subject` and `constant` are set for `SUBJECT == CONSTANT`, whose siblings become a switch."""

    condition: str
    subject: str = ""
    constant: str = ""

    def names(self) -> list[str]:
        """The name that the condition binds, if any."""
        head, walrus, _ = self.condition.partition(" := ")
        return [head.removeprefix("(")] if walrus else []

    def mentions(self) -> set[str]:
        """All identifiers in the text of the condition."""
        return set(IDENTIFIER.findall(self.condition))


@dataclass(frozen=True)
class Loop:
    """A loop that tries the following steps for each candidate until they match."""

    name: str
    candidates: str

    def names(self) -> list[str]:
        return [self.name]

    def mentions(self) -> set[str]:
        return set(IDENTIFIER.findall(self.candidates))


@dataclass(frozen=True)
class Alternative:
    """One alternative of a choice: its steps, and an expression for each exported name, `None` for a missing value."""

    steps: tuple[AnyStep, ...]
    exports: tuple[str, ...]

    def mentions(self) -> set[str]:
        found = set(IDENTIFIER.findall(" ".join(self.exports)))
        return found.union(*(step.mentions() for step in self.steps))


@dataclass(frozen=True)
class Choice:
    """A choice that tries the following steps after each matching alternative, in order, until they match."""

    exported: tuple[str, ...]
    alternatives: tuple[Alternative, ...]

    def names(self) -> list[str]:
        return list(self.exported)

    def mentions(self) -> set[str]:
        return set[str]().union(*(alternative.mentions() for alternative in self.alternatives))


AnyStep = Step | Loop | Choice


@dataclass
class PatternSteps:
    """A lowered pattern: its steps, the values they bind, and which of these values may be missing."""

    name: str
    roots: frozenset[type[Operation]]
    steps: list[AnyStep]
    bound: dict[SSAValue, str]
    optional: frozenset[SSAValue]


def operation_class(op: Operation, name: str, universe: Universe) -> type[Operation]:
    """The class of a named operation; PatternError if there is none."""
    found = universe.operations.get(name)
    if found is None:
        raise PatternError(op, unknown("operation", name, universe.operations))
    return found


def check_arguments(op: Operation, entry: Entry, arguments: list[SSAValue], what: str) -> None:
    """Raise PatternError unless a call from a pattern fits the registered function."""
    kinds: dict[type[Attribute], str] = {
        pdl.OperationType: "operation",
        pdl.ValueType: "value",
        pdl.AttributeType: "attribute",
        pdl.TypeType: "attribute",
        pdl.RangeType: "values",
    }
    found = tuple(kinds.get(type(argument.type), str(argument.type)) for argument in arguments)
    if found != entry.params:
        want = ", ".join(entry.params) or "nothing"
        raise PatternError(op, f"{what} '{entry.name}' takes ({want}), got ({', '.join(found)})")


def attr(op: Operation, name: str) -> Attribute | None:
    """A property or attribute of an operation; generated matchers call it."""
    found = op.properties.get(name)
    return op.attributes.get(name) if found is None else found


def same_values(a: Sequence[SSAValue], b: Sequence[SSAValue]) -> bool:
    """Whether two lists hold the same values in the same order; generated matchers call it."""
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
