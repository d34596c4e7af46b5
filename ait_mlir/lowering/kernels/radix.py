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


CLUSTER_WIDTH, CLUSTER_EACH, CLUSTER_ROWS = 4096, 16, 16
"""The threads of a cluster of blocks that sorts a row in one launch, the most elements of a thread, and the most rows:
`kRadixClusterWidth`, `kRadixEach` and `kRadixClusterRows` of `gpu/radix_cluster.cuh`.
"""
CLUSTER_BLOCKS, CLUSTER_COUNTS = 8, 26_688
"""`kRadixClusterBlocks`, and the bytes of `RadixClusterCounts`."""
CLUSTER_PASS_SECONDS, CLUSTER_ITEM_SECONDS = 1.5e-6, 1e-7
"""Of a pass of that sort: two barriers of the cluster and the sums over its digits; and of an element of each thread,
which is ranked by eight votes and moved twice through shared memory. Of 40,000 indices of 8 bytes that name one of
10,000 elements the floor is 2.3 us, a launch and 0.8 us in which 8 multiprocessors read and write. The estimate is
6.5 us; the gap is the two passes, which wait for shared memory and barriers. These times are counted, not measured:
networks that sort 40,000 and 8,000 indices became 11 and 8 us faster with this sort (H200).
"""


def cluster_seconds(rows: int, length: int, passes: int, key_bytes: int, target: Target) -> float | None:
    """Estimated seconds of a sort of rows of keys by clusters of blocks, in one launch; None where the sort has a
    launch for each pass.
    """
    each = -(-length // CLUSTER_WIDTH)
    if not target.has("clusters") or rows > CLUSTER_ROWS or not TILE < length <= CLUSTER_EACH * CLUSTER_WIDTH:
        return None
    if CLUSTER_COUNTS + 2 * each * CLUSTER_WIDTH // CLUSTER_BLOCKS * (key_bytes + 4) > target.shared_bytes:
        return None
    return target.launch_seconds + passes * (CLUSTER_PASS_SECONDS + each * CLUSTER_ITEM_SECONDS)


def order_seconds(rows: int, places: int, most: int, target: Target) -> float:
    """Estimated seconds of a sort of rows of places by the element, one of `most`, that each names."""
    passes = max(1, -(-(most - 1).bit_length() // DIGIT_BITS))
    if (seconds := cluster_seconds(rows, places, passes, 4 if most <= 2**32 else 8, target)) is not None:
        return seconds
    launches = 2 if places <= TILE else 2 + 2 * passes
    return launches * target.launch_seconds + passes * 16 * rows * places / target.bandwidth
