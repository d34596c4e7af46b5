"""Lets attention store its result in 8 bits, in place of a launch that reads the result and quantises it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr, f32, f64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.dtypes import BY_IR, is_byte, is_float8
from ait_mlir.dialects.ait.elementwise import AbsOp, CastOp, ClampOp, DivOp, MaxOp, RoundOp
from ait_mlir.dialects.ait.loops import AtOp, FoldOp, LoopsOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp
from ait_mlir.dims import Expr, product, sym
from ait_mlir.elements import NoElements, form_loops
from ait_mlir.lowering.candidates import standalone
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import Standalone, points_between
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.grouping import best_seconds
from ait_mlir.rewrites.engine.numbers import splat

TURNED = (0, 2, 1)
"""The order of batch, heads and rows in which other ops read the result: heads lie along the rows."""


@dataclass(frozen=True)
class QuantizeAttentionPass(ByEstimatePass):
    """Let attention store its result in 8 bits, with one scale or with a scale for each row of a head.

    An `ait.loops` that only quantises the result, with heads along the rows, becomes a part of the attention; with a
    target, where estimates say that this is faster at all sizes.
    """

    name = "quantize-attention"

    def rewrite(self, block: Block, target: Target | None) -> bool:
        changed = False
        for loops in [op for op in block.ops if isinstance(op, LoopsOp)]:
            attention = loops.operands[0].owner if len(loops.operands) == 1 else None
            if not isinstance(attention, AttentionOp) or (given := scales_of(loops, attention)) is None:
                continue
            made = with_numbers(attention, given, loops)
            block.insert_op_before(made, attention)
            if target is None or is_faster(made, [attention, loops], target):
                replace(block, made, attention, loops)
                changed = True
            else:
                made.detach()
                made.erase()
        return changed


def scales_of(loops: LoopsOp, attention: AttentionOp) -> dict[str, Attribute] | None:
    """How loops divide the result of an attention op, as properties of this op; None if they do anything else."""
    value = attention.output
    selected = "kernel" in attention.attributes or "kernel" in loops.attributes
    if attention.quantises or selected or len(list(value.uses)) != 1:
        return None
    numbers = tensor_type(loops.results[0]).element_type
    if not (is_float8(numbers) or is_byte(numbers)) or tensor_type(value).element_type == f64:
        return None
    quotient = unrounded(loops.yielded[0], numbers)
    read = quotient.operands[0].owner if isinstance(quotient, DivOp) else None
    if quotient is None or not isinstance(read, AtOp) or (index := heads_along_rows(loops, value)) is None:
        return None
    if not same_index(read, index):
        return None
    scale = quotient.operands[1]
    if len(loops.results) == 1:
        number = splat(scale)
        return None if number is None else {"result_scale": FloatAttr(float(number), f64)}
    by_row = row_scale(scale, index, loops)
    return by_row if len(loops.results) == 2 and loops.yielded[1] is scale else None


def unrounded(value: SSAValue, element: Attribute) -> Operation | None:
    """The op whose result, rounded to numbers of 8 bits in their range, is a value."""
    owner = value.owner
    if is_byte(element):
        rounded = owner.input.owner if isinstance(owner, CastOp) and value.type == element else None
        found = rounded.operands[0].owner if isinstance(rounded, RoundOp) else None
        return found if isinstance(found, Operation) else None
    narrow = owner.input.owner if isinstance(owner, CastOp) and value.type == f32 else None
    clamp = narrow.input.owner if isinstance(narrow, CastOp) and narrow.results[0].type == element else None
    largest = BY_IR[element].largest
    if not isinstance(clamp, ClampOp) or clamp.bounds != (-largest, largest):
        return None
    found = clamp.input.owner
    return found if isinstance(found, Operation) else None


def heads_along_rows(loops: LoopsOp, value: SSAValue) -> list[Expr] | None:
    """The index of [B, H, S, E] at which loops read the element of [B, S, H, E] with their own place in order; None if
    the loops have another number of elements."""
    scope, sizes = scope_of(loops), loops.sizes
    if not scope.equal(product(sizes), product(tensor_type(value).dims)):
        return None
    turned = PermuteOp(value, (*TURNED, 3))
    shaped = ReshapeOp(turned.results[0], sizes)
    found: list[Expr] = []
    try:
        whole = form_loops([shaped.output], {turned, shaped}, scope)
        read = whole.yielded[0].owner
        found = [e for e in read.index() if isinstance(e, Expr)] if isinstance(read, AtOp) else []
        whole.erase()
    except NoElements:
        pass
    shaped.erase()
    turned.erase()
    return found if len(found) == 4 else None


def same_index(read: AtOp, index: Sequence[Expr]) -> bool:
    """Whether an element is read at an index, and never outside of the tensor."""
    return read.otherwise is None and all(a is b for a, b in zip(read.index(), index, strict=True))


def row_scale(scale: SSAValue, index: Sequence[Expr], loops: LoopsOp) -> dict[str, Attribute] | None:
    """The properties of a scale that is the largest magnitude of a row of a head over a number, at least another."""
    most = scale.owner
    if not isinstance(most, MaxOp) or not isinstance(quotient := most.operands[0].owner, DivOp):
        return None
    fold = quotient.operands[0].owner
    if not isinstance(fold, FoldOp) or fold.kind.data != "max":
        return None
    iterations, last = fold.iterations.data, loops.iterations.data[-1]
    magnitude = fold.yielded.owner
    read = magnitude.operands[0].owner if isinstance(magnitude, AbsOp) else None
    largest, least = splat(quotient.operands[1]), splat(most.operands[1])
    if not isinstance(read, AtOp) or len(iterations) != 1 or largest is None or least is None:
        return None
    (inner,) = iterations
    if index[-1] is not sym(last.name) or not scope_of(loops).equal(inner.count, last.count):
        return None
    if not same_index(read, [e.substitute({last.name: sym(inner.name)}) for e in index]):
        return None
    if not (largest > 0 and least > 0):
        return None
    return {"largest": FloatAttr(float(largest), f64), "least": FloatAttr(float(least), f64)}


def with_numbers(attention: AttentionOp, given: dict[str, Attribute], loops: LoopsOp) -> AttentionOp:
    """The attention op that stores numbers; in no block."""
    dims = tensor_type(attention.output).dims
    types = [TensorType.get(dims, tensor_type(loops.results[0]).element_type), *(r.type for r in attention.sums)]
    if "largest" in given:
        types.append(TensorType.get(dims[:3], f32))
    region = attention.change
    made = AttentionOp.create(
        operands=list(attention.operands),
        result_types=types,
        properties=attention.properties | given,
        attributes=dict(attention.attributes),
        regions=[] if region is None else [region.clone()],
    )
    made.location = attention.location
    return made


def is_faster(one: Operation, others: Sequence[Operation], target: Target) -> bool:
    """Whether an op is estimated to be faster than others in turn, at all sizes for which kernels are chosen."""
    whole, parts = Standalone(*standalone(one)), [Standalone(*standalone(op)) for op in others]
    for point in points_between(whole.scope):
        env = whole.environment(point)
        apart = sum(best_seconds(part.at(tuple(env[d.name] for d in part.scope.dims)), target) for part in parts)
        if best_seconds(whole.at(point), target) >= apart:
            return False
    return True


def replace(block: Block, made: AttentionOp, attention: AttentionOp, loops: LoopsOp) -> None:
    """Let others use the numbers and scales of `made`, and erase what made them before."""
    values = [made.results[0], *([made.results[-1]] if made.largest is not None else [])]
    place: Operation = made
    for value, result, order in zip(values, loops.results, ((*TURNED, 3), TURNED), strict=False):
        turned = PermuteOp(value, order)
        shaped = ReshapeOp(turned.results[0], tensor_type(result).dims)
        shaped.output.name_hint = result.name_hint
        for op in (turned, shaped):
            block.insert_op_after(op, place)
            place = op
        result.replace_all_uses_with(shaped.output)
    for before, after in zip(attention.sums, made.results[1:], strict=False):
        before.replace_all_uses_with(after)
    for op in (loops, attention):
        op.detach()
        op.erase()
