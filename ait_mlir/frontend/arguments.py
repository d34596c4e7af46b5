"""Checks the arguments of operators against their type annotations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xdsl.utils.exceptions import VerifyException

from ait_mlir.arguments import Annotations, Mismatch, NotTaken
from ait_mlir.dims import DimError
from ait_mlir.frontend.errors import ArgumentError, BuildError

Method = Callable[..., Any]


def checked(method: Method) -> Method:
    """`method` of an operator, which raises `ArgumentError` for an argument that its annotations do not allow.

    Errors of types and dims in the method also become a `BuildError` that names the operator.
    """
    annotations = functools.cache(lambda: Annotations(method))

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = annotations().fitted(self, *args, **kwargs)
        except Mismatch as wrong:
            makes = f", and what it makes takes the inputs: {_name(self)}(...)(x)"
            of_class = isinstance(wrong, NotTaken) and method.__name__ == "__init__"
            raise ArgumentError(f"{_name(self)}: {wrong}{makes if of_class else ''}") from None
        try:
            return method(*bound.args, **bound.kwargs)
        except (VerifyException, DimError) as error:
            raise BuildError(f"{_name(self)}: {error}") from None

    return call


def _name(self: Any) -> str:
    return getattr(self, "name", None) or type(self).__name__
