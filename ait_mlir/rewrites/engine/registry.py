"""How constraints and native rewrites are registered: a closed table from names to typed functions.

A constraint is a predicate over matched things: it tests and never returns an operation. A native rewrite changes the IR through the
`Rewriter`. Parameters are annotated `Operation`, `SSAValue`, `Attribute` (or a subclass), and a call from a pattern is checked
against them; a first parameter annotated `Rewriter` is supplied by the driver.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_origin, get_type_hints

from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.rewrites.engine.driver import Rewriter

Kind = Literal["operation", "value", "attribute", "values"]


@dataclass(frozen=True)
class Entry:
    """A registered function: its name in patterns, the kinds of its arguments, and whether it takes the rewriter first."""

    name: str
    function: Callable[..., Any]
    params: tuple[Kind, ...]
    takes_rewriter: bool

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.function.__doc__ or "").strip().split("\n")[0]


class Registry:
    """A named table of functions that patterns may call."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.entries: dict[str, Entry] = {}

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a function under its own name; used as a decorator."""
        name = function.__name__
        if name in self.entries:
            raise ValueError(f"{self.what} '{name}' is registered twice")
        if not function.__doc__:
            raise ValueError(f"{self.what} '{name}' has no docstring")
        hints = get_type_hints(function)
        annotations = [hints[parameter] for parameter in inspect.signature(function).parameters]
        takes_rewriter = bool(annotations) and annotations[0] is Rewriter
        kinds = tuple(_kind(annotation) for annotation in annotations[takes_rewriter:])
        self.entries[name] = Entry(name, function, kinds, takes_rewriter)
        return function

    def get(self, name: str) -> Entry | None:
        return self.entries.get(name)


def _kind(annotation: Any) -> Kind:
    annotation = get_origin(annotation) or annotation
    for base, kind in ((Operation, "operation"), (SSAValue, "value"), (Attribute, "attribute")):
        if issubclass(annotation, base):
            return kind
    raise TypeError(f"a parameter of a registered function is an Operation, SSAValue or Attribute, not {annotation}")
