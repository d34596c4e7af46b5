"""The data of the planner and its verifier: lifetimes, sizes, offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ait_mlir.dims import Expr

ALIGNMENT = 64  # bytes; every offset is a multiple for all values of the dims


class MemoryPlanError(ValueError):
    """Buffers that cannot be planned; the message says which property is wrong."""


@dataclass(frozen=True)
class Buffer:
    """`size` bytes that are needed at the program positions `start <= position < end`.

    `id` is any name that is unique within one plan; a number or text, for messages.
    """

    id: int | str
    start: int
    end: int
    size: Expr


@dataclass(frozen=True)
class Plan:
    """The offset of each buffer by id, and the size of the arena that holds them, in bytes.

    `peak` is the most bytes that are live at one position with the largest dims: no arena can be smaller there.
    `optimal` says that a smaller arena is proved to be impossible at this alignment; otherwise there may be one.
    `stopped` says that the search ended at its time limit.
    """

    offsets: Mapping[int | str, Expr]
    arena: Expr
    optimal: bool
    peak: int
    stopped: bool = False
