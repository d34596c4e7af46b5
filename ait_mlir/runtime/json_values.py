"""Reads JSON from files that may be malformed: a caller asks for a value of a kind, and errors name the place."""

from __future__ import annotations

import json
from typing import Any, NoReturn, cast

from ait_mlir.dtypes import BY_NAME

_DEEPEST = 64
_LARGEST = (1 << 63) - 1
_SHOWN = 60


class JsonError(ValueError):
    """A JSON text is malformed, or a value in it is not of the kind expected."""


class JsonValue:
    """A value in a JSON text, and its place there."""

    def __init__(self, value: object, place: str) -> None:
        self._value: object = value
        self._place = place

    def refuse(self, expected: str) -> NoReturn:
        """Raise `JsonError` with the found and the expected value."""
        shown = repr(self._value)
        raise JsonError(f"{self._place} is {shown[:_SHOWN]}{'...' * (len(shown) > _SHOWN)}, expected {expected}")

    def members(self) -> dict[str, JsonValue]:
        """The members of an object."""
        if not isinstance(value := self._value, dict):
            self.refuse("an object")
        values = cast("dict[str, object]", value)
        return {name: JsonValue(value, f"{self._place}.{name}") for name, value in values.items()}

    def at(self, name: str) -> JsonValue:
        """A member of an object."""
        members = self.members()
        if name not in members:
            raise JsonError(f"{self._place} has no '{name}'")
        return members[name]

    def get(self, name: str, default: object) -> JsonValue:
        """A member of an object that may be missing."""
        return self.members().get(name, JsonValue(default, f"{self._place}.{name}"))

    def items(self) -> list[JsonValue]:
        """The items of a list."""
        if not isinstance(value := self._value, list):
            self.refuse("a list")
        values = cast("list[object]", value)
        return [JsonValue(value, f"{self._place}[{i}]") for i, value in enumerate(values)]

    def text(self) -> str:
        """A string that is valid Unicode without NUL, so that it can be a name or a path."""
        if not isinstance(self._value, str):
            self.refuse("a string")
        if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in self._value):
            self.refuse("a string without NUL and without halves of surrogate pairs")
        return self._value

    def is_text(self) -> bool:
        """Whether the value is a string."""
        return isinstance(self._value, str)

    def texts(self) -> tuple[str, ...]:
        """The strings of a list."""
        return tuple(item.text() for item in self.items())

    def whole(self, low: int = 0, high: int = _LARGEST) -> int:
        """A whole number in a range."""
        if not isinstance(self._value, int) or isinstance(self._value, bool) or not low <= self._value <= high:
            self.refuse(f"a whole number from {low} to {high}")
        return self._value

    def wholes(self, low: int = 0) -> tuple[int, ...]:
        """The whole numbers of a list."""
        return tuple(item.whole(low) for item in self.items())

    def number(self) -> float:
        """A number."""
        if not isinstance(value := self._value, int | float) or isinstance(value, bool):
            self.refuse("a number")
        try:
            return float(value)
        except OverflowError:
            self.refuse("a number that a float can hold")

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self._value, bool):
            self.refuse("true or false")
        return self._value

    def is_null(self) -> bool:
        """Whether it is null."""
        return self._value is None

    def dtype(self) -> str:
        """The name of an element type."""
        name = self.text()
        if name not in BY_NAME:
            self.refuse(f"one of {', '.join(BY_NAME)}")
        return name

    def digest(self) -> str:
        """A hash of 256 bits: 64 hexadecimal digits in lower case."""
        found = self.text()
        if len(found) != 64 or not set(found) <= set("0123456789abcdef"):
            self.refuse("64 hexadecimal digits")
        return found


def parse_json(text: bytes, place: str, *, constants: bool = False) -> JsonValue:
    """The value of a JSON text; errors call the text `place`. With `constants`, NaN and Infinity are numbers.

    Raises `JsonError` for a text that is malformed, too deep, or has a name twice in an object.
    """
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=_object, parse_constant=float if constants else _refuse_constant
        )
    except RecursionError:
        raise JsonError(f"{place} is nested deeper than {_DEEPEST} levels") from None
    except ValueError as error:
        raise JsonError(f"{place} is no JSON: {error}") from None
    if _depth_exceeds(value, _DEEPEST):
        raise JsonError(f"{place} is nested deeper than {_DEEPEST} levels")
    return JsonValue(value, place)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise JsonError(f"an object has {twice!r} twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is no number of JSON")


def _depth_exceeds(value: object, limit: int) -> bool:
    level: list[object] = [value]
    for _ in range(limit + 1):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner += cast("dict[str, object]", one).values()
            elif isinstance(one, list):
                inner += cast("list[object]", one)
        if not inner:
            return False
        level = inner
    return True
