"""Contractions as several ops: a product with part of its epilogue, then one fused op with the rest."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.dtypes import STORED_ONLY, compute_type
from ait_mlir.dialects.ait.elementwise import AddOp, MulOp, SubOp
from ait_mlir.dialects.ait.gemm import GatedGemmOp, GemmOp, RotatedGemmOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp, YieldOp
from ait_mlir.dialects.ait.syntax import rounding
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ReshapeOp, SplitOp
from ait_mlir.dims import const, floordiv
from ait_mlir.lowering.kernels.base import Target
from ait_mlir.lowering.kernels.cuts import Cut
from ait_mlir.lowering.kernels.gemm_rotated import HopperRotatedGemm


class EpilogueCut(Cut[HasEpilogue]):
    """Cuts an epilogue of one accumulator: its first ops stay in the contraction, the rest becomes one fused op, which
    writes all results.

    The value between the two ops is stored in the operands' element type, so it is rounded once more than in the whole
    op. This pays only on GPUs, with their libraries.
    """

    name = "epilogue"
    ops = (HasEpilogue,)

    def places(self, op: HasEpilogue, target: Target) -> range:
        return range(len(_inner(op.epilogue)) if op.epilogue.blocks and _is_simple(op) and target.is_gpu else 0)

    def parts(self, op: HasEpilogue, place: int) -> tuple[Operation, ...] | None:
        """The ops on both sides of the cut; None unless a single value crosses it."""
        if not op.epilogue.blocks or not _is_simple(op) or not 0 <= place < len(_inner(op.epilogue)):
            return None
        block, accumulator = op.epilogue.block, op.epilogue.block.args[0]
        inner, last = _inner(op.epilogue), block.last_op
        assert last is not None
        head, tail = inner[:place], inner[place:]
        crossing = head[-1].results[0] if head else accumulator
        made = {accumulator, *(r for o in head for r in o.results)} - {crossing}
        if any(v in made for o in (*tail, last) for v in o.operands):
            return None
        element = tensor_type(op.operands[0]).element_type
        if crossing.type != compute_type(element) or element in STORED_ONLY:
            return None
        extras = list(op.epilogue_operands)
        operands, region = _copy_ops(block, head, accumulator, [crossing], extras) if head else ([], Region())
        first = op.with_epilogue(operands, region, element)
        operands, region = _copy_ops(block, tail, crossing, last.operands, extras)
        return first, FusedElementwiseOp([first.results[0], *operands], op.result_types, region)


def _is_simple(op: HasEpilogue) -> bool:
    """Whether the op has one accumulator, and all results come from its epilogue."""
    assert op.epilogue.block.last_op is not None
    return op.SUMS == 1 and len(op.results) == len(op.epilogue.block.last_op.operands)


class HalvesCut(Cut[GatedGemmOp]):
    """A gated product as a product, a split, and a fused op that applies the epilogue to both halves.

    Few kernels compute two accumulators for a result, so selection tries this cut as thoroughly as the whole op, on
    every target.
    """

    name = "halves"
    ops = (GatedGemmOp,)
    usual = True

    def places(self, op: GatedGemmOp, target: Target) -> range:
        return range(1)

    def parts(self, op: GatedGemmOp, place: int) -> tuple[Operation, ...] | None:
        if place != 0:
            return None
        result = tensor_type(op.output)
        *rows, columns = result.dims
        whole = TensorType.get((*rows, op.split_b()[2]), tensor_type(op.a).element_type)
        product = GemmOp(op.layout.data, op.a, op.b, (), None, whole)
        product.properties |= rounding(op)
        halves = SplitOp(product.output, result.rank - 1, [columns, columns])
        rest = FusedElementwiseOp([*halves.results, *op.epilogue_operands], [result], op.epilogue.clone())
        return product, halves, rest


def _inner(epilogue: Region) -> list[Operation]:
    """The ops of the epilogue without its terminator."""
    return [op for op in epilogue.block.ops if op.name not in ("ait.yield", "ait.constant")]


def _copy_ops(
    block: Block, ops: Sequence[Operation], first: SSAValue, results: Sequence[SSAValue], extras: Sequence[SSAValue]
) -> tuple[list[SSAValue], Region]:
    """The extra tensors that `ops` read, and a region with copies of `ops` that starts from `first` and yields
    `results`."""
    new = Block(arg_types=[first.type])
    mapped: dict[SSAValue, SSAValue] = {first: new.args[0]}
    operands: list[SSAValue] = []

    def bring(values: Sequence[SSAValue]) -> None:
        for v in values:
            if v in mapped:
                continue
            owner = v.owner
            if isinstance(owner, Block):
                index = list(block.args).index(v)  # pyright: ignore[reportArgumentType]
                mapped[v] = new.insert_arg(v.type, len(new.args))
                operands.append(extras[index - 1])
            else:
                constant = owner.clone()
                new.add_op(constant)
                mapped[v] = constant.results[0]

    for op in ops:
        bring(op.operands)
        clone = op.clone(mapped)
        new.add_op(clone)
        mapped.update(zip(op.results, clone.results, strict=True))
    bring(results)
    new.add_op(YieldOp(*(mapped[result] for result in results)))
    return operands, Region(new)


class RotationCut(Cut[RotatedGemmOp]):
    """A rotated product as a product and a pass that rotates its heads, for targets without a kernel that does both.

    Columns outside of the heads are copied, so no compiler pass makes rotated products for such targets.
    """

    name = "rotation"
    ops = (RotatedGemmOp,)

    def places(self, op: RotatedGemmOp, target: Target) -> range:
        return range(0 if HopperRotatedGemm().matches(op, target) else 1)

    def parts(self, op: RotatedGemmOp, place: int) -> tuple[Operation, ...] | None:
        if place != 0:
            return None
        result = tensor_type(op.output)
        kind, (*rows, columns) = result.element_type, result.dims
        heads, size, turned = const(op.heads.value.data), const(op.size.value.data), const(op.turned)
        whole = GemmOp("rcr", op.a, op.b, (), None, result)
        rest = columns - turned
        pieces = [turned] if rest is const(0) else [turned, rest]
        split = SplitOp(whole.output, result.rank - 1, pieces)
        parted = ReshapeOp(split.results[0], (*rows, heads, size))
        halves = SplitOp(parted.output, result.rank, [floordiv(size, 2)] * 2)
        tables = [_beside_heads(table) for table in (op.cosines, op.sines)]
        half = TensorType.get((*rows, heads, floordiv(size, 2)), kind)
        pair = FusedElementwiseOp(
            [*halves.results, *(t.output for t in tables)], [half, half], _turn(compute_type(kind))
        )
        joined = ConcatOp(pair.results, result.rank)
        flat = ReshapeOp(joined.output, (*rows, turned))
        found = (whole, split, parted, halves, *tables, pair, joined, flat)
        return found if len(pieces) == 1 else (*found, ConcatOp([flat.output, split.results[1]], result.rank - 1))


def _beside_heads(table: SSAValue) -> ReshapeOp:
    """The table reshaped with a dim of 1 in the place of the heads."""
    t = tensor_type(table)
    return ReshapeOp(table, (*t.dims[:-1], const(1), t.dims[-1]))


def _turn(kind: Attribute) -> Region:
    """A region that computes the rotation of a pair: `a c - b s` and `b c + a s`."""
    block = Block(arg_types=[kind] * 4)
    a, b, c, s = block.args
    products = [MulOp(x, y) for x, y in ((a, c), (b, s), (b, c), (a, s))]
    first, second = SubOp(*(op.results[0] for op in products[:2])), AddOp(*(op.results[0] for op in products[2:]))
    block.add_ops([*products, first, second, YieldOp(first.results[0], second.results[0])])
    return Region(block)


CUTS = (EpilogueCut(), HalvesCut(), RotationCut())
