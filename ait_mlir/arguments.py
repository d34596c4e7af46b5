"""Checks arguments of functions against their type annotations."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin

import numpy as np

WORDS: dict[Any, str] = {int: "an int", float: "a number", bool: "True or False", str: "a string", NoneType: "None"}
LONGEST = 80
"""The most characters of a value in a message."""

F = TypeVar("F", bound=Callable[..., Any])


class Mismatch(Exception):
    """An argument that the annotations of a function do not allow."""


class NotTaken(Mismatch):
    """Arguments that the signature of a function does not have, or lacks."""


class Annotations:
    """The parameters of a function with the types that their annotations name; unknown types allow every value."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.signature = inspect.signature(function)
        names = getattr(inspect.unwrap(function), "__globals__", {})
        self.types: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            try:
                found = parameter.annotation
                found = eval(found, names) if isinstance(found, str) else found
                self.types[name] = Any if found in (inspect.Parameter.empty, object) else found
            except NameError:  # a type that only a type checker imports
                self.types[name] = Any

    def fitted(self, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
        """The arguments by name, converted to the types of the annotations.

        Raises `Mismatch`; `NotTaken` for arguments that the function does not take.
        """
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            takes = ", ".join(name for name in self.signature.parameters if name != "self")
            raise NotTaken(f"{error}; it takes ({takes})") from None
        for name, value in bound.arguments.items():
            kind, hint = self.signature.parameters[name].kind, self.types[name]
            if kind is inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = {key: _taken(key, v, hint) for key, v in value.items()}
            else:
                several = kind is inspect.Parameter.VAR_POSITIONAL
                bound.arguments[name] = _taken(name, value, tuple[hint, ...] if several else hint)
        return bound


def checked(error: type[Exception]) -> Callable[[F], F]:
    """A decorator of a function that makes it raise `error`, with its name, for arguments of other types than its
    annotations name.
    """

    def decorate(function: F) -> F:
        annotations = functools.cache(lambda: Annotations(function))

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                bound = annotations().fitted(*args, **kwargs)
            except Mismatch as wrong:
                name = function.__qualname__.removesuffix(".__init__")
                raise error(f"{name}: {wrong}") from None
            return function(*bound.args, **bound.kwargs)

        return cast(F, call)

    return decorate


def _taken(name: str, value: Any, hint: Any) -> Any:
    try:
        return fit(value, hint)
    except TypeError:
        raise Mismatch(f"{name} must be {words(hint)}; found {_shown(value)}") from None


def _shown(value: Any) -> str:
    """A value as Python writes it if that is short, else its type."""
    is_plain = isinstance(value, bool | int | float | str | bytes | list | tuple | dict | NoneType)
    text = repr(cast(object, value)) if is_plain else ""
    return text if 0 < len(text) <= LONGEST else f"a {type(value).__name__}"


def fit(value: Any, hint: Any) -> Any:
    """`value`, converted to the type `hint`: NumPy integers and constant dims become `int` if an `int` is declared.
    Raises `TypeError` if it does not fit.
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        for part in parts:
            try:
                return fit(value, part)
            except TypeError:
                continue
        raise TypeError
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise TypeError
        entries = cast(Mapping[Any, Any], value)
        found = {key: fit(entry, parts[1]) for key, entry in entries.items()}
        return entries if all(found[key] is entries[key] for key in found) else found
    if isinstance(origin, type) and issubclass(origin, Sequence):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise TypeError
        elements = cast(Sequence[Any], value)
        fitted = [fit(element, parts[0]) for element in elements]
        return elements if all(a is b for a, b in zip(fitted, elements, strict=True)) else fitted
    hint = origin if isinstance(origin, type) else hint
    if hint is int:
        return value if isinstance(value, int) else operator.index(value)
    if hint is float and isinstance(value, Real) and not isinstance(value, int | float):
        return int(value) if isinstance(value, Integral) else float(value)
    kinds = {float: (Real,), bool: (Integral, np.bool_)}.get(hint, (hint,))
    if hint is not Any and isinstance(hint, type) and not isinstance(value, kinds):
        raise TypeError
    return value


def words(hint: Any) -> str:
    """A type in an error message: `an int or None`, `a list, each element a Tensor`."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(words(part) for part in sorted(parts, key=lambda part: bool(get_args(part))))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a dict" if parts[1] in (Any, object) else f"a dict, each value {words(parts[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return "a list or tuple" if parts[0] is Any else f"a list, each element {words(parts[0])}"
    name = getattr(hint, "__name__", str(hint))
    return WORDS.get(hint, f"{'an' if name[0] in 'AEIOU' else 'a'} {name}")
