"""The functions that make the C++ of operators with their own templates, by `TARGET.OPERATOR.WHAT`.

`gen_function` returns the source, `func_decl` the declaration, and `func_call` the call.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from ait_mlir.outside import OperatorError

Function = Callable[..., Any]

_KEY = re.compile(r"([a-z]+)\.([A-Za-z_]\w*)\.([a-z_]\w*)")
_functions: dict[str, Function] = {}


class RegistryError(OperatorError, RuntimeError):
    """A key already has a function, or has none."""


def add(key: str, function: Function) -> str:
    """Register a function; returns the name of its operator."""
    found = _KEY.fullmatch(key)
    if found is None:
        raise RegistryError(f"{key!r} is no key; expected one like 'cuda.add_one.gen_function'")
    other = _functions.get(key, function)
    if other is not function and not _runs_again(other, function):
        raise RegistryError(
            f"{key!r} is registered twice: {place_of(other)} and {place_of(function)}; remove one, "
            "or call the second operator otherwise"
        )
    _functions[key] = function
    return found[2]


def discard(key: str) -> None:
    """Forget the function of a key."""
    del _functions[key]


def get(key: str) -> Function:
    """The function of a key; `RegistryError` if there is none."""
    if (found := _functions.get(key)) is None:
        close = get_close_matches(key, _functions, 1, 0.75)
        hint = f"did you mean {close[0]!r}?" if close else "register it with @registry.reg"
        raise RegistryError(f"no function is registered as {key!r}; {hint}")
    return found


def functions_of(operator: str, target: str = "") -> dict[str, Function]:
    """The functions of an operator by key, for one target or all."""
    parts = {key: key.split(".") for key in _functions}
    return {key: _functions[key] for key, (kind, name, _) in parts.items() if name == operator and target in ("", kind)}


def remove(operator: str) -> None:
    """Remove the functions of an operator."""
    for key in functions_of(operator):
        discard(key)


def _runs_again(old: Function, new: Function) -> bool:
    """Whether `new` is `old` from the same file, run again in another module."""
    same_file = getattr(old, "__code__", old) is not old and old.__code__.co_filename == getattr(
        getattr(new, "__code__", None), "co_filename", None
    )
    return same_file and getattr(old, "__globals__", None) is not getattr(new, "__globals__", None)


def place_of(function: Function) -> str:
    """File and line of a function."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "an unknown file" if code is None else f"{code.co_filename}:{code.co_firstlineno}"
