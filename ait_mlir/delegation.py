"""Methods of an object that call methods of one of its parts, with their docstrings and signatures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
Owner = TypeVar("Owner")
Part = TypeVar("Part")
T = TypeVar("T")


class Delegation(Generic[Owner]):
    """Makes methods of `Owner` from methods of its parts."""

    def method(
        self, part: Callable[[Owner], Part], method: Callable[Concatenate[Part, P], T]
    ) -> Callable[Concatenate[Owner, P], T]:
        """A method that calls `method` of the part and returns its result."""

        @functools.wraps(method)
        def call(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return method(part(self), *args, **kwargs)

        return call

    def chained(
        self, part: Callable[[Owner], Part], method: Callable[Concatenate[Part, P], Any]
    ) -> Callable[Concatenate[Owner, P], Owner]:
        """A method that calls `method` of the part and returns the object, for calls in a chain."""

        @functools.wraps(method)
        def call(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> Owner:
            method(part(self), *args, **kwargs)
            return self

        return call
