"""Results of rows that turn in shared memory before a block stores them.

The rows of a block are neighbours in memory along `side`, an axis of rows. If a result is contiguous along the other
direction than the one in which neighbouring threads compute it, a block keeps a tile of it and stores the tile in the
order of memory: a permute behind a norm needs no launch of its own.

- `rows`: neighbouring threads compute neighbours of a row; a result that is contiguous along `side` turns.
- `columns`: neighbouring threads compute neighbours along `side`; a result that is contiguous along a row turns.
"""

from __future__ import annotations

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.lowering.loops.nest import Axis, Nest, step
from ait_mlir.lowering.loops.rows import Rows, best_lane


def side_of(nest: Nest, rows: Rows) -> Axis | None:
    """The axis of rows along which a result that depends on the elements of a row is contiguous; None if there is none.
    """
    for axis in reversed(rows.group):
        if any(_is_contiguous(nest, i, axis) for i in _whole_results(nest, rows)):
            return axis
    return None


def turned_across_rows(nest: Nest, rows: Rows) -> tuple[int, ...]:
    """The results that are transposed in shared memory, if neighbouring threads compute neighbours of one row."""
    side = side_of(nest, rows)
    return tuple(i for i in _whole_results(nest, rows) if side is not None and _is_contiguous(nest, i, side))


def turned_along_rows(nest: Nest, rows: Rows) -> tuple[int, ...]:
    """The results that are transposed in shared memory, if neighbouring threads compute neighbouring rows."""
    if best_lane(nest, rows.group) is None or not rows.rest:
        return ()
    return tuple(i for i in _whole_results(nest, rows) if _is_contiguous(nest, i, rows.rest[-1]))


def _whole_results(nest: Nest, rows: Rows) -> list[int]:
    """The positions of the results that have a different element at each index of a row; none if threads fold segments.
    """
    if not rows.steps or not rows.rest or rows.segments:
        return []
    return [i for i in range(len(nest.yields)) if not nest.once_along(i)]


def _is_contiguous(nest: Nest, result: int, axis: Axis) -> bool:
    by = step(nest.offsets[result], axis.name)
    return by is not None and by.as_int() == 1


def tiles_bytes(nest: Nest, results: tuple[int, ...], elements: int) -> int:
    """The bytes of the tiles of results, of `elements` each."""
    return sum(BY_IR[nest.elements[i]].bytes for i in results) * elements
