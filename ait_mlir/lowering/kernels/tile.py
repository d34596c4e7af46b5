"""Template arguments of a kernel as a configuration in the IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self


@dataclass(frozen=True)
class Tile:
    """What a kernel template is instantiated with: the fields of a subclass, which stand in the IR under `keys`."""

    kernel: ClassVar[str]
    """The kernel as errors call it, as in `native gemm`."""
    keys: ClassVar[tuple[str, ...]]

    @classmethod
    def first(cls) -> Self:
        """The tile whose entries stand in for those that a configuration leaves out."""
        raise NotImplementedError

    def problems(self) -> Mapping[str, bool]:
        """What the template asserts and the device asks for, and whether it holds; asked only of positive entries."""
        raise NotImplementedError

    def values(self) -> tuple[int, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def config(self, prefix: str = "") -> dict[str, int]:
        """As it stands in the IR; `prefix` goes before each key."""
        return {prefix + key: value for key, value in zip(self.keys, self.values(), strict=True)}

    @classmethod
    def of(cls, config: Mapping[str, int], prefix: str = "") -> Self:
        """The tile of a config; missing entries are those of the first tile. `ValueError` if there is no such tile."""
        tile = cls(*(int(config.get(key, value)) for key, value in cls.first().config(prefix).items()))
        tile.check()
        return tile

    def check(self) -> None:
        """Raise `ValueError` if an entry is not positive or one of the `problems` does not hold."""
        problems = self.problems() if min(self.values()) > 0 else {"every entry is at least 1": False}
        if wrong := [what for what, holds in problems.items() if not holds]:
            raise ValueError(f"no {self.kernel} has the tile {self.config()}: {'; '.join(wrong)}")
