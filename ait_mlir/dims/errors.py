"""Errors of the dims package: all of them are `DimError`, which is a `ValueError`."""

from __future__ import annotations


class DimError(ValueError):
    """A dim expression or declaration that makes no sense: what was found, and what is allowed."""


class DimSyntaxError(DimError):
    """Text that is no dim expression or declaration.

    Attributes:
        message: what was found and what was expected, without a position.
        offset: the place in the parsed text, in characters from its start.
    """

    def __init__(self, message: str, offset: int):
        super().__init__(f"{message} (at offset {offset})")
        self.message = message
        self.offset = offset
