"""Pads the rows of products with zeros to whole accesses of 16 bytes.

Kernels with bulk copies or the widest loads need rows that start at multiples of 16 bytes. Weights are padded when the
model is compiled, if their data are known then. Other operands are concatenated with zeros, so that the op that
computes them can write into the larger tensor; the estimates count a launch that copies them, or for an operand that
elementwise ops compute for this product alone, the launch that writes the zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.elementwise import ElementwiseOp
from ait_mlir.dialects.ait.gemm import BmmOp, ContractionOp, GemmOp
from ait_mlir.dialects.ait.pad import PadOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ExpandOp, SliceOp
from ait_mlir.elements.gemm import has_vector
from ait_mlir.lowering.candidates import standalone
from ait_mlir.lowering.estimates import table_for
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import Standalone, points_between
from ait_mlir.passes.by_estimate import ByEstimatePass
from ait_mlir.passes.grouping import GAIN, best_seconds
from ait_mlir.reference.folds import is_worth_storing
from ait_mlir.rewrites.conv import follows_from_params
from ait_mlir.rewrites.gemm.padding import EIGHT, More, fill_up, filled, is_narrow

GAIN_BESIDE = 1.1
"""The factor by which a padded product must be estimated to be faster if an operand needs no copy: the estimates of
both products are fitted, and one of them copies that operand. A weight must also save as much as a launch takes."""


@dataclass(frozen=True)
class PadProductsPass(ByEstimatePass):
    """Pad the rows of products of two-byte elements to a multiple of 8.

    With a target, only where estimates that are fitted to it say that it is faster at all sizes. With `weights`, only
    products with a factor that depends only on params, which is padded at compile time.
    """

    name = "pad-products"

    weights: bool = False

    def rewrite(self, block: Block, target: Target | None) -> bool:
        return pad_products(block, target, self.weights)


def pad_products(block: Block, target: Target | None, weights: bool = False) -> bool:
    """Pad the rows of a block's products, with a target only where it is faster; returns whether anything changed."""
    if target is not None and table_for(target.arch) is None:
        return False
    changed = False
    known: dict[object, More | None] = {}
    larger: dict[tuple[SSAValue, TensorType], SSAValue] = {}
    for op in list(block.ops):
        if isinstance(op, GemmOp | BmmOp) and is_narrow(op):
            free = tuple(weights and follows_from_params(v) for v in (op.a, op.b))
            if (weights and not any(free)) or not any(fill_up(op, EIGHT)):
                continue
            if target is not None and has_vector(op):  # loops read rows that start on any address
                continue
            key = (type(op), *op.operand_types, op.layout, free)
            if key not in known:
                known[key] = fill_up(op, EIGHT) if target is None else best(op, free, target)
            if (more := known[key]) is not None:
                replace(op, more, larger)
                changed = True
    return changed


def best(op: ContractionOp, free: Sequence[bool], target: Target) -> More | None:
    """The zeros for M, N and K with the fastest padded product at the largest sizes; None if none is faster at all
    sizes.

    Either only K is padded, or M and N as well; then the result is cut.
    """
    every = fill_up(op, EIGHT)
    found: dict[More, float] = {}
    for more in dict.fromkeys([(0, 0, every[2]), every]):
        if any(more) and (seconds := seconds_if_faster(op, more, free, target)) is not None:
            found[more] = seconds
    return min(found, key=lambda more: found[more], default=None)


def seconds_if_faster(op: ContractionOp, more: More, free: Sequence[bool], target: Target) -> float | None:
    """The estimated seconds of a padded product at the largest sizes, including the launches that pad operands (except
    `free` ones) and cut the result; None unless it is faster at all sizes by the factor `GAIN`, or `GAIN_BESIDE`."""
    block = op.parent
    assert block is not None
    new = filled(op, more)
    block.insert_ops_before(new, op)
    product = next(n for n in new if isinstance(n, ContractionOp))
    whole, plain = Standalone(*standalone(product)), Standalone(*standalone(op))
    pads = [o for o in new if isinstance(o, PadOp) and not is_free(o, op, free)]
    beside = [o for o in pads if is_written(o, op)]
    moved = [*(o for o in pads if o not in beside), *(o for o in new if isinstance(o, SliceOp))]
    gain = GAIN_BESIDE if beside or any(free) else GAIN
    least = target.launch_seconds if any(free) and not beside else 0.0
    seconds = None
    for point in points_between(whole.scope):
        env = whole.environment(point)
        copies = sum(seconds_of_copy(o, env, target) for o in moved) + len(beside) * target.launch_seconds
        seconds = best_seconds(whole.at(point), target) + copies
        before = best_seconds(plain.at(tuple(env[dim.name] for dim in plain.scope.dims)), target)
        if gain * seconds + least >= before:
            seconds = None
            break
    for o in reversed(new):
        o.detach()
        o.erase()
    return seconds


def is_free(pad: PadOp, op: ContractionOp, free: Sequence[bool]) -> bool:
    """Whether a pad costs nothing in a run: its operand depends only on params, and its result is worth storing."""
    follows = any(f and pad.input is v for f, v in zip(free, (op.a, op.b), strict=True))
    return follows and is_worth_storing(tensor_type(pad.output), [tensor_type(pad.input)])


def is_written(pad: PadOp, op: ContractionOp) -> bool:
    """Whether elementwise ops or a concat make a pad's operand for a product alone: then they write into the larger
    tensor."""
    owner = pad.input.owner
    writes = isinstance(owner, ElementwiseOp | FusedElementwiseOp | ConcatOp)
    return writes and {use.operation for use in pad.input.uses} <= {pad, op}


def seconds_of_copy(op: PadOp | SliceOp, env: dict[str, int], target: Target) -> float:
    """The estimated seconds of a launch that reads and writes the result of a pad or a slice."""
    return target.launch_seconds + 2 * tensor_type(op.output).byte_size().evaluate(env) / target.bandwidth


def replace(op: ContractionOp, more: More, larger: dict[tuple[SSAValue, TensorType], SSAValue]) -> None:
    """Replace a product by a padded product. Products with the same operand share its padded value (`larger`)."""
    block = op.parent
    assert block is not None
    new = filled(op, more)
    for o in new:
        steps: list[Operation] = [o]
        if isinstance(o, PadOp):
            key = o.input, tensor_type(o.output)
            if key in larger:
                steps = []
            elif not follows_from_params(o.input):
                steps = beside_zeros(o)
            value = larger.setdefault(key, steps[-1].results[0] if steps else o.output)
            if value is not o.output:
                o.output.replace_all_uses_with(value)
                o.erase()
        for step in steps:
            step.location = op.location
            block.insert_op_before(step, op)
    new[-1].results[0].name_hint = op.output.name_hint
    Rewriter.replace_op(op, [], new[-1].results)


def beside_zeros(pad: PadOp) -> list[Operation]:
    """Operations that compute a pad as a concat, so that the op of its operand can write into the larger tensor."""
    value, dims, t = pad.input, list(tensor_type(pad.input).dims), tensor_type(pad.output)
    zero = ConstantOp(0.0, TensorType.get((), t.element_type))
    made: list[Operation] = [zero]
    for axis, behind in enumerate(pad.behind()):
        if behind.as_int() != 0:
            zeros = ExpandOp(zero.output, [*dims[:axis], behind, *dims[axis + 1 :]])
            made += [zeros, ConcatOp([*pieces(value, axis, pad), zeros.output], axis)]
            value, dims[axis] = made[-1].results[0], t.dims[axis]
    return made


def pieces(value: SSAValue, axis: int, pad: PadOp) -> Sequence[SSAValue]:
    """The operands of `value`'s concat, if it has the same dim and one user besides the pad; else `value`."""
    joined = value.owner
    alone = len({use.operation for use in value.uses} - {pad}) == 1
    return joined.operands if isinstance(joined, ConcatOp) and joined.dim.value.data == axis and alone else [value]
