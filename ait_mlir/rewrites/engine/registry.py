"""How constraints and native rewrites are registered: a closed table from names to typed functions.

A constraint is a predicate over matched things: it tests and never returns an operation. A native rewrite changes the
IR through the `Rewriter`. Parameters are annotated `Operation`, `SSAValue`, `Attribute` or a subclass, and a call from
a pattern is checked against them; a first parameter annotated `Rewriter` is supplied by the driver.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, TypeVar, get_origin, get_type_hints

from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.errors import RewriteError

Kind = Literal["operation", "value", "attribute"]
"""What a parameter takes: an `Operation`, an `SSAValue` or an `Attribute`."""

_KINDS: tuple[tuple[type, Kind], ...] = ((Operation, "operation"), (SSAValue, "value"), (Attribute, "attribute"))


@dataclass(frozen=True)
class Entry:
    """A registered function: its name in patterns, the kinds of its arguments, and whether it takes the rewriter."""

    name: str
    function: Callable[..., Any]
    params: tuple[Kind, ...]
    takes_rewriter: bool

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.function.__doc__ or "").strip().split("\n")[0]


FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class Registry:
    """A named table of functions that patterns may call."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.entries: dict[str, Entry] = {}

    def __call__(self, function: FunctionT) -> FunctionT:
        """Register a function under its own name; used as a decorator.

        A parameter that is annotated with a subclass, as in `inner: PermuteOp`, is checked when a pattern calls it.
        """
        name = function.__name__
        if name in self.entries:
            raise ValueError(f"{self.what} '{name}' is registered twice")
        if not function.__doc__:
            raise ValueError(f"{self.what} '{name}' has no docstring")
        hints = get_type_hints(function)
        classes = [get_origin(hints[p]) or hints[p] for p in inspect.signature(function).parameters]
        takes_rewriter = bool(classes) and classes[0] is Rewriter
        kinds: tuple[Kind, ...] = tuple(_kind(cls) for cls in classes[takes_rewriter:])
        checks = [(i, cls) for i, cls in enumerate(classes) if cls not in (Rewriter, *(base for base, _ in _KINDS))]
        called = self._checked(function, checks) if checks else function
        self.entries[name] = Entry(name, called, kinds, takes_rewriter)
        return function

    def get(self, name: str) -> Entry | None:
        return self.entries.get(name)

    def _checked(self, function: Callable[..., Any], checks: list[tuple[int, type]]) -> Callable[..., Any]:
        """The function, with a check of the classes of its arguments."""

        @wraps(function)
        def checked(*arguments: Any) -> Any:
            for i, cls in checks:
                if not isinstance(arguments[i], cls):
                    found = getattr(arguments[i], "name", type(arguments[i]).__name__)
                    raise RewriteError(f"{self.what} '{function.__name__}' needs {cls.__name__}, got '{found}'")
            return function(*arguments)

        return checked


def _kind(cls: type) -> Kind:
    for base, kind in _KINDS:
        if issubclass(cls, base):
            return kind
    raise TypeError(f"a parameter of a registered function is an Operation, SSAValue or Attribute, not {cls}")
