"""Errors of the dims package: all of them are `DimError`, which is a `ValueError`."""

from __future__ import annotations


class DimError(ValueError):
    """An invalid dim expression or declaration; the message names the text and the allowed forms."""


class DimSyntaxError(DimError):
    """Text that is not a dim expression or declaration.

    Attributes:
        message: the found and the expected text, without a position.
        offset: the place in the parsed text, in characters from its start.
    """

    def __init__(self, message: str, offset: int):
        super().__init__(f"{message} (at offset {offset})")
        self.message = message
        self.offset = offset
