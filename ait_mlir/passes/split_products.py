"""Splits products with few tiles along K, so that they use the whole card.

A product of few rows and columns has few tiles, and one block or one cluster of blocks computes a tile. If K is long
and most multiprocessors would wait, the product becomes a batch of products, each with a part of K and with results in
the type of the sums. A reduction then adds the batch, in the same order in every run. What equal parts leave of K is a
product of its own, whose sums are added last. Rows of K off 16 bytes are filled up with zeros instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ait_mlir.dialects.ait.dtypes import accumulator_type
from ait_mlir.dialects.ait.elementwise import AddOp, CastOp
from ait_mlir.dialects.ait.gemm import BmmOp, GemmOp
from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.reduce import ReduceOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.syntax import rounding
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp, SliceOp
from ait_mlir.dims import floordiv
from ait_mlir.lowering.candidates import standalone
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.amounts import element_bytes
from ait_mlir.lowering.points import Standalone, points_between
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.grouping import GAIN, best_seconds

LEAST_K = 1 << 14
"""Shorter sums are shared by the blocks of a cluster."""
TILE = 64
"""Rows and columns of a tile."""
EIGHT = 8
"""A part of K is a multiple of it, so that its rows start on 16 bytes."""
WIDE = 4
"""Bytes of an element from which on kernels multiply rows that start anywhere."""
MOST_PARTS = 1024
NEAR = 0.75
"""The least share of the wanted parts of a number of equal ones for which no rest is left instead."""
SHARES = 4
"""A product is split where its tiles are at most the multiprocessors over this number."""
MULTIPROCESSORS = 132
"""Without a target: those of an H100."""


@dataclass(frozen=True)
class SplitProductsPass(ByEstimatePass):
    """Split a product with few tiles and a long K into a batch of products over parts of K, and add their results.

    With a target, only on GPUs and only if estimates say that this is faster at all sizes.
    """

    name = "split-products"

    def rewrite(self, block: Block, target: Target | None) -> bool:
        if target is not None and not target.is_gpu:
            return False
        return any([split(op, target) for op in list(block.ops) if isinstance(op, GemmOp)])


def split(op: GemmOp, target: Target | None) -> bool:
    """Split a product into the fastest number of parts; returns False if no split is faster."""
    most = MULTIPROCESSORS if target is None else target.multiprocessors
    times = {n: 0.0 if target is None else seconds_if_faster(op, n, target) for n in parts_of(op, most)}
    faster = {n: seconds for n, seconds in times.items() if seconds is not None}
    if not faster:
        return False
    new = in_parts(op, min(faster, key=lambda n: faster[n] * (1 if leaves_none(op, n) else GAIN)))
    for made in new:
        made.location = op.location
    Rewriter.replace_op(op, new)
    return True


def parts_of(op: GemmOp, multiprocessors: int) -> list[int]:
    """The numbers of parts to compare, which give each multiprocessor one, two or four tiles: divisors of K, and where
    none is near, numbers that leave a rest. Empty for a product with many tiles, a short K, an epilogue or a chosen
    kernel.
    """
    a, (rows, columns) = tensor_type(op.a), tensor_type(op.output).dims[-2:]
    k = op.split_a()[2].as_int()
    if a.rank != 2 or k is None or k < LEAST_K or op.layout.data[2] != "r":
        return []
    if op.epilogue.blocks or "kernel" in op.attributes:
        return []
    scope = scope_of(op)
    tiles = -(-scope.bounds(rows)[1] // TILE) * -(-scope.bounds(columns)[1] // TILE)
    if tiles == 0 or tiles * SHARES > multiprocessors:
        return []
    fitting = [n for n in range(2, MOST_PARTS + 1) if k % (n * EIGHT) == 0]
    wanted = [multiprocessors * waves / tiles for waves in (1, 2, 4)]
    found = [max(n for n in fitting if n <= w) for w in wanted if any(n <= w for n in fitting)]
    found += [min(int(w), MOST_PARTS) for w in wanted if not any(NEAR * w <= n <= w for n in fitting)]
    return [n for n in dict.fromkeys(found) if n > 1]


def leaves_none(op: GemmOp, parts: int) -> bool:
    """Whether K is a multiple of the parts, so that no rest is left."""
    k = op.split_a()[2].as_int()
    return k is not None and k % (parts * EIGHT) == 0


def is_filled(op: GemmOp, k: int) -> bool:
    """Whether the parts of K would not start on 16 bytes in rows of narrow elements, which are then copied to longer
    rows, filled with zeros.
    """
    return op.layout.data[:2] != "cr" and k % EIGHT != 0 and element_bytes(tensor_type(op.a)) < WIDE


def in_parts(op: GemmOp, parts: int) -> list[Operation]:
    """The ops that compute a product in parts: views, a batched product, its sum, the product of the rest, and a
    cast. Without a rest, if operands are filled up to a multiple of the parts.
    """
    result, kind = tensor_type(op.output), accumulator_type(tensor_type(op.a).element_type)
    new: list[Operation] = []
    k = op.split_a()[2].as_int()
    assert k is not None
    fills = is_filled(op, k)
    whole = (k + fills * (parts * EIGHT - 1)) // (parts * EIGHT) * (parts * EIGHT)

    def piece(value: SSAValue, k_first: bool, begin: int, end: int) -> SSAValue:
        """The elements from `begin` to `end` along K."""
        first, second = tensor_type(value).dims
        if (begin, end) == (0, k):
            return value
        if end > k:
            new.append(PadOp("constant", value, [0, 0], (end, second) if k_first else (first, end)))
            return new[-1].results[0]
        offsets, dims = ([begin, 0], [end - begin, second]) if k_first else ([0, begin], [first, end - begin])
        new.append(SliceOp(value, offsets, dims))
        return new[-1].results[0]

    def view(value: SSAValue, k_first: bool) -> SSAValue:
        """[parts, K / parts, other] or [parts, other, K / parts]"""
        value = piece(value, k_first, 0, whole)
        first, second = tensor_type(value).dims
        if k_first:
            new.append(ReshapeOp(value, (parts, floordiv(first, parts), second)))
        else:
            new.append(ReshapeOp(value, (first, parts, floordiv(second, parts))))
            new.append(PermuteOp(new[-1].results[0], [1, 0, 2]))
        return new[-1].results[0]

    def unrounded() -> Region:
        block = Block(arg_types=[kind])
        block.add_op(YieldOp(block.args[0]))
        return Region(block)

    sides = (op.a, op.layout.data[0] == "c"), (op.b, op.layout.data[1] == "r")
    a, b = (view(*side) for side in sides)
    new.append(BmmOp(op.layout.data, a, b, (), unrounded(), TensorType.get((parts, *result.dims), kind)))
    new[-1].properties |= rounding(op)
    new.append(ReduceOp("sum", new[-1].results[0], [0]))
    if whole < k:
        total = new[-1].results[0]
        a, b = (piece(*side, whole, k) for side in sides)
        new.append(GemmOp(op.layout.data, a, b, (), unrounded(), TensorType.get(result.dims, kind)))
        new[-1].properties |= rounding(op)
        new.append(AddOp(total, new[-1].results[0]))
    if result.element_type != kind:
        new.append(CastOp(new[-1].results[0], result.element_type))
    return new


def seconds_if_faster(op: GemmOp, parts: int, target: Target) -> float | None:
    """The estimated seconds of a product in parts at the largest sizes; None unless the parts are faster by the factor
    `GAIN` at all sizes.
    """
    block = op.parent
    assert block is not None
    new = in_parts(op, parts)
    block.insert_ops_before(new, op)
    launched = [Standalone(*standalone(o)) for o in new if not isinstance(o, ReshapeOp | PermuteOp | SliceOp)]
    plain, seconds = Standalone(*standalone(op)), None
    for point in points_between(plain.scope):
        env = plain.environment(point)
        seconds = sum(best_seconds(o.at(tuple(env[d.name] for d in o.scope.dims)), target) for o in launched)
        if GAIN * seconds >= best_seconds(plain.at(point), target):
            seconds = None
            break
    for o in reversed(new):
        o.detach()
        o.erase()
    return seconds
