"""The workspace of radix sorts on a GPU (`gpu/radix.cuh`)."""

from __future__ import annotations

from ait_mlir.dims import Expr, Scope, ceildiv, const, floordiv, minimum
from ait_mlir.lowering.target import Target

TILE = 4096
"""The elements that a block sorts: `kRadixTile`."""
THREADS, DIGIT_BITS, FAN = 256, 8, 16
"""`kRadixThreads`, `kRadixBits` and `kRadixFan`."""
FEW = 1 << 20
"""Elements that need tiles of a quarter of the size to fill a card."""


def radix_each(rows: Expr, length: Expr, scope: Scope) -> int:
    """The elements of a thread in sorts of rows that have several blocks each."""
    return TILE // THREADS // (4 if scope.bounds(rows * length)[1] <= FEW else 1)


def radix_bytes(rows: Expr, length: Expr, bits: int, key_bytes: int, scope: Scope, kept: bool = False) -> Expr:
    """The bytes of a `RadixWorkspace` that sorts rows of keys of `bits` bits; 0 if a row fits into a block. With
    `kept`, the sorted keys stay in the workspace.
    """
    if scope.bounds(length)[1] <= TILE:
        return const(0)
    passes = max(1, -(-bits // DIGIT_BITS))
    tiles = ceildiv(length, THREADS * radix_each(rows, length, scope))
    groups = ceildiv(tiles, FAN)
    messages = tiles + groups + ceildiv(groups, FAN)
    cleared = passes * (rows * 4 * 2**DIGIT_BITS + rows * messages * 8 * 2**DIGIT_BITS + 16)
    buffers = min(2, passes if kept else passes - 1)
    elements = rows * length * (key_bytes + 4) + 32
    # no row of a run may be longer than a tile, though one could be
    return minimum(floordiv(length, TILE + 1), 1) * (cleared + buffers * elements)


def order_seconds(rows: int, places: int, most: int, target: Target) -> float:
    """Estimated seconds of a sort of rows of places by the element, one of `most`, that each names."""
    passes = max(1, -(-(most - 1).bit_length() // DIGIT_BITS))
    launches = 2 if places <= TILE else 2 + 2 * passes
    return launches * target.launch_seconds + passes * 16 * rows * places / target.bandwidth
