"""Traces a condition by the value of a tensor as a choice between what its sides compute; functions that `loops` has
converted call this module.

Both sides run, one after the other, and variables become `torch.where` of what the sides set them to. So a side must
not change what the other one reads. And in PyTorch, a variable that a side leaves alone is still the same tensor under
all of its names, while here it is a new one: nothing may write into tensors that were chosen between.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Generator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from ait_mlir.importers.torch.library import torch


class ChoiceError(BaseException):
    """A condition by the value of a tensor cannot become a choice: the fault, which a place may follow, and advice.
    Models must not catch this.
    """

    def __init__(self, fault: str, advice: str) -> None:
        super().__init__(f"{fault}; {advice}")
        self.fault, self.advice = fault, advice


# ** what conditions compute **


def is_tensor(test: Any) -> bool:
    """Whether the two sides of a condition must both be computed."""
    return isinstance(test, torch.Tensor)


def is_false(test: Any) -> bool:
    """Whether Python leaves out the rest of an `and`."""
    return not is_tensor(test) and not test


def is_true(test: Any) -> bool:
    """Whether Python leaves out the rest of an `or`."""
    return not is_tensor(test) and bool(test)


def negated(test: Any) -> Any:
    """`not test`"""
    return _bool(test).logical_not() if is_tensor(test) else not test


def both(a: Any, b: Any) -> Any:
    """`a and b`, of which `a` is no false value of Python."""
    if not is_tensor(a) or not is_tensor(b):
        return b if not is_tensor(a) or not b else a
    return _bool(a) & _bool(b)


def either(a: Any, b: Any) -> Any:
    """`a or b`, of which `a` is no true value of Python."""
    if not is_tensor(a) or not is_tensor(b):
        return b if not is_tensor(a) or b else a
    return _bool(a) | _bool(b)


def _bool(test: Any) -> Any:
    """The value of a test as a tensor of rank 0."""
    if any(size != 1 for size in test.shape):
        raise ChoiceError(f"a condition has the shape {tuple(test.shape)}", "test one element, as of any() or all()")
    return test.reshape(()).bool()


class Unset:
    """The value of a variable that has none."""


def before(variables: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    """The values of some variables."""
    return tuple(variables.get(name, Unset) for name in names)


def chosen(test: Any, then: Sequence[Any], otherwise: Sequence[Any], names: Mapping[str, bool]) -> tuple[Any, ...]:
    """The values of the variables that a condition sets, by name; those that are not read afterwards need none."""
    test = _bool(test)
    found: list[Any] = []
    for a, b, (name, is_read) in zip(then, otherwise, names.items(), strict=True):
        if a is not b and is_tensor(a) and is_tensor(b) and a.dtype == b.dtype and _is_same_shape(a, b):
            found.append(torch.where(test, a, b))
            _chosen_between.get().extend((a, b, found[-1]))
        elif a is b or not is_read:
            found.append(a)
        else:
            raise ChoiceError(
                f"{name} depends on a condition by the values of a tensor",
                "choose between tensors of one shape and dtype",
            )
    return tuple(found)


def _is_same_shape(a: Any, b: Any) -> bool:
    return a.dim() == b.dim() and all(m is n or bool(m == n) for m, n in zip(a.shape, b.shape, strict=True))


# ** what may not be done to tensors **

_Mode: Any = torch.overrides.TorchFunctionMode
_chosen_between: ContextVar[list[Any]] = ContextVar("ait_mlir_chosen_between")
"""The tensors of all choices of a trace, and what they gave."""


@contextlib.contextmanager
def watched() -> Generator[None]:
    """A context for a trace with choices: raises `ChoiceError` where something writes into a tensor of a choice."""
    before = _chosen_between.set([])
    try:
        with _Watched():
            yield
    finally:
        _chosen_between.reset(before)


class _Watched(_Mode):  # pyright: ignore[reportUntypedBaseClass]
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return func(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        if known := _chosen_between.get():
            memory = {_memory(t) for t in known}
            if any(_memory(t) in memory for t in _written(func, args, kwargs)):
                raise ChoiceError(
                    "an operation in place changes a tensor that a condition by the values of a tensor has chosen, or "
                    "has not chosen",
                    "set a variable to a new tensor instead",
                )
        return func(*args, **kwargs)


@contextlib.contextmanager
def one_side() -> Generator[None]:
    """A context for a side of a condition, both of whose sides run: raises `ChoiceError` for an operation in place, and
    where an attribute of a module is set, which the other side would see.
    """
    kind, kept = torch.nn.Module, torch.nn.Module.__setattr__

    def set_attribute(module: Any, name: str, value: Any) -> None:
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        if caller is not None and caller.f_globals.get("__name__", "").startswith("torch.fx"):
            return kept(module, name, value)  # a constant of the trace
        raise ChoiceError(
            f"a side of a condition by the values of a tensor sets the attribute {name!r}", "set variables instead"
        )

    kind.__setattr__ = set_attribute
    try:
        with _Pure():
            yield
    finally:
        kind.__setattr__ = kept


class _Pure(_Mode):  # pyright: ignore[reportUntypedBaseClass]
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _written(func, args, kwargs):
            raise ChoiceError(
                "a side of a condition by the values of a tensor changes a tensor in place", "set variables instead"
            )
        return func(*args, **kwargs)


def _memory(tensor: Any) -> int:
    return tensor.untyped_storage()._cdata


_OPERATORS = "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift"
_IN_PLACE = {"__setitem__", *(f"__i{name}__" for name in _OPERATORS.split())}


def _written(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The tensors that a call of PyTorch writes into."""
    name = getattr(func, "__name__", "").split(".")[0]
    is_named = (name.endswith("_") and not name.endswith("__")) or name in _IN_PLACE
    is_named |= name == "__set__" and getattr(func, "__self__", None) is torch.Tensor.data
    given = args[:1] if args else tuple(kwargs.values())[:1]
    found = [*given] if is_named or _is_in_place(func, args, kwargs) else []
    leaves = torch.utils._pytree.tree_leaves((found, kwargs.get("out")))
    return [value for value in leaves if is_tensor(value)]


def _is_in_place(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the parameter `inplace` of a function is true, as in `relu(x, inplace=True)`."""
    if "inplace" in kwargs:
        return bool(kwargs["inplace"])
    at = _position_of_inplace(func)
    return at is not None and at < len(args) and bool(args[at])


@functools.cache
def _position_of_inplace(func: Any) -> int | None:
    try:
        names = list(inspect.signature(func).parameters)
    except (TypeError, ValueError):
        return None
    return names.index("inplace") if "inplace" in names else None
