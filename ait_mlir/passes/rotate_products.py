"""Fuses rotary position embeddings into the product that computes their heads, as `ait.rotated_gemm`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait.dtypes import is_computed_float
from ait_mlir.dialects.ait.elementwise import AddOp, MulOp, SubOp
from ait_mlir.dialects.ait.gemm import GemmOp, RotatedGemmOp
from ait_mlir.dialects.ait.types import Shape, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, PermuteOp, ReshapeOp, SliceOp, SplitOp
from ait_mlir.dims import const
from ait_mlir.lowering.candidates import standalone
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.points import Standalone, points_between
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.grouping import best_seconds, sort
from ait_mlir.rewrites.rotary import is_half


@dataclass(frozen=True)
class RotateProductsPass(ByEstimatePass):
    """Fuse a gemm and the rotations of its first columns, which are heads of one size, into a rotated product.

    With a target, only where estimates say that it is faster at all sizes than the product and a launch that rotates
    these columns.
    """

    name = "rotate-products"

    def rewrite(self, block: Block, target: Target | None) -> bool:
        return rotate_products(block, target)


def rotate_products(block: Block, target: Target | None) -> bool:
    """Fuse products and rotations of a block, with a target only where it is faster, and sort the block again; returns
    whether anything changed."""
    place = {op: i for i, op in enumerate(block.ops)}
    known: dict[object, bool] = {}
    changed = [rotate(gemm, target, known, place) for gemm in place if isinstance(gemm, GemmOp)]
    if any(changed):
        sort(block)
    return any(changed)


@dataclass(frozen=True)
class Turned:
    """The rotation of a part of a product: its heads and tables, its result, and all its ops in order."""

    heads: int
    size: int
    cosines: SSAValue
    sines: SSAValue
    axis: int
    """The axis of the heads in `heads_of`."""
    heads_of: SSAValue
    """The part reshaped to heads, with its dims in the order of the result."""
    ops: tuple[Operation, ...]

    @property
    def tables(self) -> tuple[SSAValue, SSAValue, int, int]:
        """The cosines, sines, axis and head size, which all rotations of one product must share."""
        return self.cosines, self.sines, self.axis, self.size


def rotate(gemm: GemmOp, target: Target | None, known: dict[object, bool], place: Mapping[Operation, int]) -> bool:
    """Replace a product and the rotations of its first parts by a rotated product where it is faster.

    Returns whether it did. `known` caches the decision by sizes, because layers repeat. `place` is the original order
    of the block.
    """
    found = rotations(gemm)
    if not found:
        return False
    first = found[0]
    if any(follows(table, gemm, place) for table in (first.cosines, first.sines)):
        return False
    cosines, sines = (ReshapeOp(table, rows_of(table, first)) for table in (first.cosines, first.sines))
    heads = sum(turned.heads for turned in found)
    one = RotatedGemmOp(gemm.a, gemm.b, cosines.output, sines.output, heads, first.size)
    block = gemm.parent
    assert block is not None
    block.insert_ops_before([cosines, sines, one], gemm)
    key = (*one.operand_types, heads, first.size)
    if target is not None and key not in known:
        known[key] = pays(gemm, one, target)
    if not known.get(key, True):
        for op in (one, cosines, sines):
            op.detach()
            op.erase()
        return False
    one.output.name_hint = gemm.output.name_hint
    one.location = gemm.location
    for turned in found:
        turned.ops[-1].results[0].replace_all_uses_with(turned.heads_of)
        for op in reversed(turned.ops):
            op.detach()
            op.erase()
    gemm.output.replace_all_uses_with(one.output)
    gemm.detach()
    gemm.erase()
    return True


def follows(value: SSAValue, gemm: GemmOp, place: Mapping[Operation, int]) -> bool:
    """Whether a value depends on a product. Operations before the product in the original block, and new operations
    that are not in `place`, do not."""
    seen, pending = set[Operation](), [value]
    while pending:
        op = pending.pop().owner
        if not isinstance(op, Operation) or op in seen or place.get(op, -1) < place[gemm]:
            continue
        if op is gemm:
            return True
        seen.add(op)
        pending += op.operands
    return False


def pays(gemm: GemmOp, one: RotatedGemmOp, target: Target) -> bool:
    """Whether a kernel computes the rotated product and is estimated to be faster, at all sizes for which kernels are
    chosen, than the product and a launch that reads and writes the rotated columns."""
    if not kernels_for(one, target):
        return False
    whole, plain = Standalone(*standalone(one)), Standalone(*standalone(gemm))
    for point in points_between(whole.scope):
        env = whole.environment(point)
        rotated, product = whole.at(point), plain.at(tuple(env[dim.name] for dim in plain.scope.dims))
        assert isinstance(rotated, RotatedGemmOp)
        if best_seconds(rotated, target) >= best_seconds(product, target) + seconds_of_pass(rotated, target):
            return False
    return True


def seconds_of_pass(op: RotatedGemmOp, target: Target) -> float:
    """The estimated seconds of a launch that rotates the heads of a product of known size."""
    result = tensor_type(op.output)
    turned = 2 * result.byte_size().evaluate({}) * op.turned / max(1, result.dims[-1].evaluate({}))
    tables = sum(tensor_type(table).byte_size().evaluate({}) for table in (op.cosines, op.sines))
    return target.launch_seconds + (turned + tables) / target.bandwidth


def rotations(gemm: GemmOp) -> list[Turned]:
    """The rotations of the first parts of a product, up to the first part without one or with other tables or sizes."""
    if gemm.layout.data != "rcr" or gemm.epilogue.blocks or "kernel" in gemm.attributes:
        return []
    if not is_computed_float(tensor_type(gemm.a).element_type):
        return []
    split = reader(gemm.output)
    last = tensor_type(gemm.output).rank - 1
    parts: Sequence[SSAValue] = [gemm.output]
    if isinstance(split, SplitOp) and split.dim.value.data == last:
        parts = split.results
    found: list[Turned] = []
    for part in parts:
        turned = rotation_of(part)
        if turned is None or (found and turned.tables != found[0].tables):
            break
        found.append(turned)
    return found


def rotation_of(part: SSAValue) -> Turned | None:
    """The rotation of a part [..., heads * size] reshaped to [..., heads, size] and perhaps permuted; else None."""
    reshape = reader(part)
    if not isinstance(reshape, ReshapeOp):
        return None
    rows, dims = tensor_type(part).dims[:-1], tensor_type(reshape.output).dims
    heads, size = (d.as_int() for d in dims[-2:]) if len(dims) > 1 else (None, None)
    if dims[:-2] != rows or heads is None or size is None:
        return None
    x, axis = reshape.output, len(dims) - 2
    permute = reader(x)
    if isinstance(permute, PermuteOp):
        order = permute.order()
        axis = order.index(len(dims) - 2)
        others = [place for place in order if place != len(dims) - 2]
        if order[-1] != len(dims) - 1 or others != sorted(others):
            return None
        x = permute.results[0]
    halves = halves_of(x)
    if halves is None:
        return None
    ops, a, b = halves
    found = turned_halves(a, b)
    if found is None:
        return None
    cosines, sines, steps = found
    if not all(is_table(table, x, axis) for table in (cosines, sines)) or steps[-1].results[0].type != x.type:
        return None
    return Turned(heads, size, cosines, sines, axis, x, (*ops, *steps))


def halves_of(x: SSAValue) -> tuple[tuple[Operation, ...], SSAValue, SSAValue] | None:
    """The ops that halve a value, and the halves: two slices of the last dim or a split, the only users; else None."""
    users = [use.operation for use in x.uses]
    if len(users) == 1 and isinstance(split := users[0], SplitOp) and len(split.results) == 2:
        return (split,), split.results[0], split.results[1]
    slices = [user for user in users if isinstance(user, SliceOp)]
    if len(users) != 2 or len(slices) != 2:
        return None
    for first, second in (slices, slices[::-1]):
        if is_half(first, IntegerAttr(0, i64)) and is_half(second, IntegerAttr(1, i64)):
            return (first, second), first.output, second.output
    return None


def turned_halves(a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue, tuple[Operation, ...]] | None:
    """The cosines c, sines s and ops of concat(a * c - b * s, b * c + a * s), if a, b and all values between have no
    other use; else None."""
    of_a, of_b = products_of(a), products_of(b)
    if len(of_a) != 2 or set(of_a) != set(of_b):
        return None
    for cosines, sines in (tuple(of_a), tuple(of_a)[::-1]):
        steps = of_a[cosines], of_b[sines], of_b[cosines], of_a[sines]
        straight, crossed, second, first = (op.results[0] for op in steps)
        minus, plus = reader(straight), reader(second)
        if not isinstance(minus, SubOp) or tuple(minus.operands) != (straight, crossed):
            continue
        if not isinstance(plus, AddOp) or set(plus.operands) != {second, first}:
            continue
        halves = minus.results[0], plus.results[0]
        joined = reader(halves[0])
        last = tensor_type(a).rank - 1
        if isinstance(joined, ConcatOp) and tuple(joined.operands) == halves and joined.dim.value.data == last:
            return (cosines, sines, (*steps, minus, plus, joined)) if reader(halves[1]) is joined else None
    return None


def reader(value: SSAValue) -> Operation | None:
    """The operation of a value's only use; None if there are several uses or none."""
    return value.get_user_of_unique_use()


def products_of(value: SSAValue) -> dict[SSAValue, Operation]:
    """The multiplications that use a value, by the other factor; empty if it has other users, or if a multiplication
    does not have exactly one use."""
    found: dict[SSAValue, Operation] = {}
    for use in value.uses:
        op = use.operation
        if not isinstance(op, MulOp) or reader(op.results[0]) is None:
            return {}
        found[op.operands[1 - use.index]] = op
    return found


def is_table(table: SSAValue, x: SSAValue, axis: int) -> bool:
    """Whether a factor of the halves of x is the same for all heads, and its last dim is half of x's."""
    full, dims = tensor_type(x).dims, padded(table, x)
    half = scope_of(x.owner).equal(dims[-1] * 2, full[-1]) if isinstance(x.owner, Operation) else False
    return half and dims[axis].as_int() == 1


def padded(table: SSAValue, x: SSAValue) -> Shape:
    """The dims of a table with leading literal 1s up to the rank of x."""
    dims = tensor_type(table).dims
    return (*(const(1) for _ in range(tensor_type(x).rank - len(dims))), *dims)


def rows_of(table: SSAValue, turned: Turned) -> Shape:
    """The dims of a table without the dim of the heads."""
    dims = padded(table, turned.heads_of)
    return (*dims[: turned.axis], *dims[turned.axis + 1 :])
