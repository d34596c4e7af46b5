"""Which tensors pass through shared memory where one thread computes a row.

Neighbouring threads have neighbouring rows. If these follow each other in memory, the rows of a block are one piece of
memory, which the block moves 16 bytes a thread at a time; each thread then reads and writes its row in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import Attribute

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dims import product
from ait_mlir.lowering.loops.nest import Axis, Nest, Read
from ait_mlir.lowering.loops.rows import Rows, lies_in_rows, nodes_of

BLOCK = 256
"""The most rows of a block."""
FEW_ROWS = 32
STAGED_BYTES = 24 * 1024
"""Bytes of shared memory of a block, so that a multiprocessor has several."""


@dataclass(frozen=True, eq=False)
class Staged:
    """Rows of `points` elements of an operand, which the reads `of` take, or of a result."""

    tensor: int
    element: Attribute
    points: int
    of: tuple[Read, ...] = ()

    @property
    def bytes(self) -> int:
        """The bytes of a row."""
        return self.points * BY_IR[self.element].bytes


@dataclass(frozen=True, eq=False)
class Staging:
    """The tensors that pass through shared memory, and the number of rows of a block."""

    rows: int
    reads: tuple[Staged, ...]
    results: tuple[Staged, ...]

    def array_of(self, result: Staged) -> Staged:
        """The tensor whose array a result takes: a read one with equal rows, or its own. A thread writes an element
        after it has read the one of the same place.
        """
        others = self.results[: self.results.index(result)]
        taken = {self.array_of(other) for other in others}
        same = (r for r in self.reads if (r.element, r.points) == (result.element, result.points) and r not in taken)
        return next(same, result)

    def arrays(self) -> list[Staged]:
        """The tensors that have an array in shared memory."""
        return [*self.reads, *(r for r in self.results if self.array_of(r) is r)]


@lru_cache(maxsize=64)
def staging_of(nest: Nest, rows: Rows) -> Staging | None:
    """What passes through shared memory; None if nothing does, or if its rows are too long."""
    found: dict[tuple[int, int], list[Read]] = {}
    for walk in rows.walks():
        for axes, nodes in nodes_of(walk, rows):
            for read in nodes:
                if isinstance(read, Read) and not read.gathers and not read.guards:
                    points = product(axis.count for axis in axes).as_int()
                    if points is not None and lies_in_rows(nest, rows, axes, read.offset):
                        found.setdefault((read.tensor, points), []).append(read)
    reads = [Staged(tensor, of[0].element, points, tuple(of)) for (tensor, points), of in found.items()]
    results = _results(nest, rows, rows.rest) if rows.rest else []
    staging = Staging(BLOCK, tuple(reads), tuple(results))
    bytes_ = sum(staged.bytes for staged in staging.arrays())
    block = BLOCK
    while block > FEW_ROWS and block * bytes_ > STAGED_BYTES:
        block //= 2
    if not bytes_ or block * bytes_ > STAGED_BYTES:
        return None
    return Staging(block, staging.reads, staging.results)


def _results(nest: Nest, rows: Rows, axes: Sequence[Axis]) -> list[Staged]:
    points = product(axis.count for axis in axes).as_int()
    return [
        Staged(i, element, points)
        for i, (element, offset) in enumerate(zip(nest.elements, nest.offsets, strict=True))
        if points is not None and lies_in_rows(nest, rows, axes, offset)
    ]
