"""Checks the arguments of operators against their type annotations."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dims import DimError
from ait_mlir.frontend.errors import ArgumentError, BuildError

Method = Callable[..., Any]

WORDS: dict[Any, str] = {int: "an int", float: "a number", bool: "True or False", str: "a string", NoneType: "None"}


def checked(method: Method) -> Method:
    """`method` of an operator, which raises `ArgumentError` for an argument that its annotations do not allow.

    NumPy integers and constant dims become `int` if an `int` is declared. Errors of types and dims in
    the method also become a `BuildError` that names the operator.
    """

    @functools.cache
    def declared() -> tuple[inspect.Signature, dict[str, Any]]:
        return inspect.signature(method), get_type_hints(method)

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        signature, hints = declared()
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            takes = f"it takes ({', '.join([*signature.parameters][1:])})"
            if method.__name__ == "__init__":
                takes += f", and what it makes takes the inputs: {_name(self)}(...)(x)"
            raise ArgumentError(f"{_name(self)}: {error}; {takes}") from None
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            if name not in hints:
                continue
            if kind is inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = {key: _taken(self, key, v, hints[name]) for key, v in value.items()}
                continue
            several = kind is inspect.Parameter.VAR_POSITIONAL
            bound.arguments[name] = _taken(self, name, value, tuple[hints[name], ...] if several else hints[name])
        try:
            return method(*bound.args, **bound.kwargs)
        except (VerifyException, DimError) as error:
            raise BuildError(f"{_name(self)}: {error}") from None

    return call


def _taken(self: Any, name: str, value: Any, hint: Any) -> Any:
    try:
        return fit(value, hint)
    except TypeError:
        raise ArgumentError(f"{_name(self)}: {name} must be {words(hint)}; found {value!r}") from None


def _name(self: Any) -> str:
    return getattr(self, "name", None) or type(self).__name__


def fit(value: Any, hint: Any) -> Any:
    """`value`, converted to the type `hint`. Raises `TypeError` if it does not fit."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        for part in parts:
            try:
                return fit(value, part)
            except TypeError:
                continue
        raise TypeError
    if origin is not None and isinstance(origin, type) and issubclass(origin, Sequence):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise TypeError
        elements = cast(Sequence[Any], value)
        found = [fit(element, parts[0]) for element in elements]
        return elements if all(a is b for a, b in zip(found, elements, strict=True)) else found
    if hint is int:
        return value if isinstance(value, int) else operator.index(value)
    if hint is float and isinstance(value, Real) and not isinstance(value, int | float):
        return int(value) if isinstance(value, Integral) else float(value)
    kinds = {float: (Real,), bool: (Integral, np.bool_)}.get(hint, (hint,))
    if isinstance(hint, type) and not isinstance(value, kinds):
        raise TypeError
    return value


def words(hint: Any) -> str:
    """A type in an error message: `an int or None`, `a list, each element a Tensor`."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(words(part) for part in parts)
    if parts:
        return f"a list, each element {words(parts[0])}"
    name = getattr(hint, "__name__", str(hint))
    return WORDS.get(hint, f"{'an' if name[0] in 'AEIOU' else 'a'} {name}")
