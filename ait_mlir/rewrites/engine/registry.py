"""Constraints, finders and native rewrites: how a module offers them, and the tables in which patterns look them up.

A constraint is a predicate over parts of a match; it changes nothing. A finder yields candidates, operations or values,
that operands do not lead to. A native rewrite changes the IR through the `Rewriter`. Parameters are annotated
`Operation`, `SSAValue`, `Attribute` or a subclass, or `Sequence[SSAValue]` for a range, and a call from a pattern is
checked against them; a parameter `... | None` accepts a value that may be missing. A first parameter annotated
`Rewriter` is supplied by the driver.

A decorator only marks a function. A `Registry`, made from a list of modules, holds the functions that patterns may
call; it does not depend on other imports.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from types import ModuleType, NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.errors import RewriteError

Kind = Literal["operation", "value", "attribute", "values"]
"""The kind of argument that a parameter accepts: an `Operation`, an `SSAValue`, an `Attribute`, or several values."""

_KINDS: tuple[tuple[type, Kind], ...] = (
    (Operation, "operation"),
    (SSAValue, "value"),
    (Attribute, "attribute"),
    (Sequence, "values"),
)

_MARK = "_pattern_function"

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def constraint(function: FunctionT) -> FunctionT:
    """Offer a predicate to patterns, under its own name."""
    setattr(function, _MARK, "constraint")
    return function


def native(function: FunctionT) -> FunctionT:
    """Offer a native rewrite to patterns, under its own name."""
    setattr(function, _MARK, "native rewrite")
    return function


def finder(function: FunctionT) -> FunctionT:
    """Offer a generator of candidates to patterns, under its own name."""
    setattr(function, _MARK, "finder")
    return function


@dataclass(frozen=True)
class Entry:
    """A function that patterns may call: its name in patterns, the kinds of its arguments, and whether it takes the
    rewriter."""

    name: str
    function: Callable[..., Any]
    params: tuple[Kind, ...]
    takes_rewriter: bool
    optional: frozenset[int]
    """Which arguments may be missing."""
    may_lack_result: bool
    """Whether the native accepts a missing optional operand and returns None for it."""
    place: str
    """File and line of the function."""

    @property
    def summary(self) -> str:
        """The first paragraph of the function's docstring, on one line."""
        paragraph = (self.function.__doc__ or "").strip().split("\n\n")[0]
        return " ".join(paragraph.split())


class Registry:
    """All functions of one kind in a list of modules, each imported when no module before it has a requested name."""

    def __init__(self, what: str, modules: Sequence[str]) -> None:
        self.what = what
        self._unread = list(modules)
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Entry | None:
        """The function of this name; None if no module of the list has one."""
        while name not in self._entries and self._unread:
            self._read()
        return self._entries.get(name)

    @property
    def entries(self) -> dict[str, Entry]:
        """All functions by name; imports all modules of the list."""
        while self._unread:
            self._read()
        return self._entries

    def add_module(self, module: ModuleType) -> None:
        """Also offer the functions of a module outside the list. A file that runs again replaces its functions."""
        known = self.entries
        for entry in self._entries_of(module):
            other = known.get(entry.name, entry)
            if other.place.rpartition(":")[0] != entry.place.rpartition(":")[0]:
                raise ValueError(f"two {self.what}s are called '{entry.name}': {other.place} and {entry.place}")
            self._entries[entry.name] = entry

    def _read(self) -> None:
        """Add the functions of the next module. Several threads may call this; only one adds each module."""
        for name in self._unread[:1]:
            entries = self._entries_of(import_module(name))  # outside of the lock: imports have locks of their own
            with self._lock:
                if self._unread[:1] == [name]:
                    for entry in entries:
                        self._add(entry)
                    self._unread.pop(0)

    def _add(self, entry: Entry) -> None:
        other = self._entries.setdefault(entry.name, entry)
        if other is not entry:
            raise ValueError(f"two {self.what}s are called '{entry.name}': {other.place} and {entry.place}")

    def _entries_of(self, module: ModuleType) -> list[Entry]:
        functions = [f for f in vars(module).values() if getattr(f, _MARK, None) == self.what]
        return [self._entry(f) for f in functions if f.__module__ == module.__name__]

    def _entry(self, function: Callable[..., Any]) -> Entry:
        """The entry of a function. Calls check arguments annotated with a subclass, as `inner: PermuteOp`."""
        code = function.__code__
        place = f"{code.co_filename}:{code.co_firstlineno}"
        if not function.__doc__:
            raise ValueError(f"{place}: the {self.what} '{function.__name__}' has no docstring")
        hints = get_type_hints(function)
        annotations = [hints[p] for p in inspect.signature(function).parameters]
        takes_rewriter = bool(annotations) and annotations[0] is Rewriter
        annotations = annotations[takes_rewriter:]
        optional = frozenset(i for i, hint in enumerate(annotations) if NoneType in get_args(hint))
        classes = [_class(hint) for hint in annotations]
        kinds: tuple[Kind, ...] = tuple(_kind(cls) for cls in classes)
        checks = [
            (i + takes_rewriter, cls)
            for i, cls in enumerate(classes)
            if i not in optional and cls not in [base for base, _ in _KINDS]
        ]
        called = self._checked(function, checks) if checks else function
        may_lack_result = NoneType in get_args(hints.get("return"))
        return Entry(function.__name__, called, kinds, takes_rewriter, optional, may_lack_result, place)

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


def _class(hint: Any) -> type:
    """The class of an annotation, without `| None` and type parameters."""
    parts = [part for part in get_args(hint) if part is not NoneType]
    hint = parts[0] if NoneType in get_args(hint) else hint
    return get_origin(hint) or hint


def _kind(cls: type) -> Kind:
    for base, kind in _KINDS:
        if issubclass(cls, base):
            return kind
    raise TypeError(f"a parameter of a registered function is an Operation, SSAValue, Attribute or Sequence, not {cls}")
