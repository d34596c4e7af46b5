"""Template arguments of a kernel as a configuration in the IR."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self, cast


@dataclass(frozen=True)
class Tile:
    """The template arguments of a kernel: fields of a subclass, written in the IR with the names in `keys`."""

    kernel: ClassVar[str]
    """The kernel's name in errors: `native gemm`."""
    keys: ClassVar[tuple[str, ...]]

    @classmethod
    def first(cls) -> Self:
        """The tile whose entries are the defaults of entries that a configuration leaves out."""
        raise NotImplementedError

    def problems(self) -> Mapping[str, bool]:
        """The requirements of template and device, by text, and whether they hold; called only for positive entries."""
        raise NotImplementedError

    def values(self) -> tuple[int, ...]:
        return tuple([getattr(self, name) for name in _entries(type(self))])

    def config(self, prefix: str = "") -> dict[str, int]:
        """The tile as a configuration in the IR; `prefix` goes before each key."""
        return {prefix + key: value for key, value in zip(self.keys, self.values(), strict=True)}

    @classmethod
    def of(cls, config: Mapping[str, int], prefix: str = "") -> Self:
        """The tile of a config; missing entries come from `first`. `ValueError` if there is no such tile."""
        return cast(Self, _tile_of(cls, tuple(config.items()), prefix))

    def check(self) -> None:
        """Raise `ValueError` if an entry is not positive or one of the `problems` does not hold."""
        problems = self.problems() if min(self.values()) > 0 else {"every entry is at least 1": False}
        if wrong := [what for what, holds in problems.items() if not holds]:
            raise ValueError(f"no {self.kernel} has the tile {self.config()}: {'; '.join(wrong)}")


@functools.cache
def _entries(cls: type[Tile]) -> tuple[str, ...]:
    """The names of the fields of a class."""
    return tuple(field.name for field in fields(cls))


@functools.lru_cache(maxsize=4096)
def _tile_of(cls: type[Tile], config: tuple[tuple[str, int], ...], prefix: str) -> Tile:
    """`Tile.of`: estimates of a network ask for the same few tiles thousands of times."""
    given = dict(config)
    tile = cls(*(int(given.get(key, value)) for key, value in cls.first().config(prefix).items()))
    tile.check()
    return tile
