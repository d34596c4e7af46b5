"""Merges products of one input with several params into one product, and the biases of its parts into one add. A gate,
the only reader of both halves of a product, joins the product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.base import same_type
from ait_mlir.dialects.ait.data import ParamOp
from ait_mlir.dialects.ait.dtypes import is_computed_float
from ait_mlir.dialects.ait.elementwise import AddOp, ClampOp, ElementwiseOp, UnaryOp
from ait_mlir.dialects.ait.gemm import ContractionOp, GatedGemmOp, GemmOp
from ait_mlir.dialects.ait.quantize import DequantizeOp
from ait_mlir.dialects.ait.region import FusedElementwiseOp, YieldOp
from ait_mlir.dialects.ait.syntax import rounding
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, SplitOp
from ait_mlir.dims import const
from ait_mlir.rewrites.engine.constraints import not_output
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native
from ait_mlir.rewrites.gemm.epilogue import MAX_OPERANDS


@pattern()
def parallel_gemms(p: PatternBuilder) -> None:
    """gemm(x, w0), gemm(x, w1) = split(gemm(x, concat(w0, w1))), such as query, key and value; not for a product with
    an activation of its own"""
    root = p.op("ait.gemm", [p.value(), p.result(p.op("ait.param", []))])
    p.require("has_parallel_gemms", root)
    p.apply(root, "merge_parallel_gemms", root)


@pattern(benefit=2)
def parallel_stored_gemms(p: PatternBuilder) -> None:
    """gemm(x, dequantize(q0, s0)), gemm(x, dequantize(q1, s1)) = split(gemm(x, dequantize(concat(q0, q1),
    concat(s0, s1)))), of params of 8-bit floats; not for a product with an activation of its own"""
    weight = p.op("ait.dequantize", [p.rest()])
    root = p.op("ait.gemm", [p.value(), p.result(weight)])
    p.require("stores_float8", weight)
    p.require("has_parallel_gemms", root)
    p.apply(root, "merge_parallel_gemms", root)


@pattern()
def single_source_gemms(p: PatternBuilder) -> None:
    """gemm(x, w0), gemm(x, w1) = split(gemm(x, concat(w0, w1))), whatever reads them

    Gemms with a bias become one, and those without one another.
    """
    root = p.op("ait.gemm", [p.value(), p.result(p.op("ait.param", []))])
    p.require("has_gemms_of_one_source", root)
    p.apply(root, "merge_gemms_of_one_source", root)


@pattern()
def bias_of_parts(p: PatternBuilder) -> None:
    """split(x)[0] + b0, split(x)[1] + b1 = split(x + concat(b0, b1))"""
    x = p.value()
    root = p.op("ait.split", [x], results=None)
    p.require("one_use", x)
    p.require("each_part_gets_bias", root)
    p.apply(root, "add_before_split", root)


@pattern(over=(0, 1))
def gated_product(p: PatternBuilder, first: int) -> None:
    """f(split(x @ w)[0], split(x @ w)[1]) = gated_gemm(x, w): silu(gate) * up, with both sums at hand

    The product's epilogue, such as a bias, is applied to each half.
    """
    product = p.op("ait.gemm", [*p.values(2), p.rest()])
    halves = p.op("ait.split", [p.result(product)], results=2)
    root = p.op("ait.fused_elementwise", [p.result(halves, first), p.rest()])
    p.require("one_use", p.result(product))
    p.require("reads_once", root, p.result(halves, 0))
    p.require("reads_once", root, p.result(halves, 1))
    p.require("along_last_dim", halves)
    p.require("same_type", p.result(halves, 0), p.result(halves, 1))
    p.require("same_shape", p.result(root), p.result(halves, 0))
    p.require("is_floating", p.result(root))
    p.require("stores_rows", product)
    p.require("no_attribute", product, "kernel")
    p.require("no_attribute", root, "kernel")
    p.require("gates_with", product, root, MAX_OPERANDS)
    p.require("stays_in_batch_loops", product, root)
    p.replace(root, "gate_product", product, halves, root)


PARALLEL_GEMMS = patterns(parallel_gemms, bias_of_parts)
SINGLE_SOURCE = patterns(single_source_gemms, bias_of_parts)
STORED = patterns(parallel_stored_gemms)
GATED_PRODUCTS = patterns(gated_product)


# ** constraints and natives **


MOST_FOLLOWERS = 32
"""Most elementwise operations visited after a product."""


def gemms_of_one_input(root: Operation) -> list[Operation]:
    """The plain gemms, root included, that multiply the root's A with params [N_i, K] in layout rcr. Gemms followed by
    an activation of their own are left out: a separate product computes it in its epilogue, a merged product cannot."""
    found = gemms_of_one_source(root)
    behind = [followers(op.results[0]) for op in found]
    times = Counter(op for ops in behind for op in ops)
    return [
        op
        for op, ops in zip(found, behind, strict=True)
        if any(times[other] > 1 for other in ops) or not any(isinstance(other, UnaryOp | ClampOp) for other in ops)
    ]


def gemms_of_one_source(root: Operation) -> list[Operation]:
    """All plain gemms, root included, that multiply the root's A with params [N_i, K] in layout rcr."""
    return [use.operation for use in root.operands[0].uses if is_parallel(use.operation, root)]


def gemms_of_one_kind(root: Operation) -> list[Operation]:
    """The gemms of one source that have a bias, as the root has, or that have none."""
    has_bias = bias_of(root.results[0]) is not None
    return [op for op in gemms_of_one_source(root) if (bias_of(op.results[0]) is not None) == has_bias]


def bias_of(value: SSAValue) -> tuple[Operation, SSAValue] | None:
    """The add that is the only user of a value, and the param with an element for each column that it adds."""
    add = value.get_user_of_unique_use()
    if not isinstance(add, AddOp) or not isinstance(value.owner, Operation) or add.parent is not value.owner.parent:
        return None
    bias = add.operands[1] if add.operands[0] is value else add.operands[0]
    is_bias = isinstance(bias.owner, ParamOp) and tensor_type(bias).dims == tensor_type(value).dims[-1:]
    return (add, bias) if is_bias else None


def followers(value: SSAValue) -> set[Operation]:
    """The elementwise operations that a value reaches through elementwise operations only."""
    found, pending = set[Operation](), [value]
    while pending and len(found) < MOST_FOLLOWERS:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, ElementwiseOp) and op not in found:
                found.add(op)
                pending += op.results
    return found


def kind_of(weight: SSAValue) -> object:
    """A key that is equal for weights whose rows may be joined: params, or stored params with scales for their rows or
    blocks of rows. None for others."""
    owner = weight.owner
    if isinstance(owner, ParamOp):
        return tensor_type(weight).element_type
    if not isinstance(owner, DequantizeOp) or owner.zero is not None or tensor_type(weight).rank != 2:
        return None
    if not isinstance(owner.input.owner, ParamOp) or not isinstance(owner.scale.owner, ParamOp):
        return None
    block, rows, scale = owner.block(), tensor_type(weight).dims[0], tensor_type(owner.scale)
    size = const(1) if block is None else block[0]
    if scale.rank != 2 or not scope_of(owner).equal(scale.dims[0] * size, rows):
        return None
    types = tensor_type(owner.input).element_type, scale.element_type, tensor_type(weight).element_type
    return (*types, block, scale.dims[1])


def is_parallel(op: Operation, root: Operation) -> bool:
    """Whether an operation is a plain gemm of the root's A with a weight like the root's, in the root's block."""
    return (
        isinstance(op, GemmOp)
        and op.parent is root.parent
        and len(op.operands) == 2
        and op.operands[0] is root.operands[0]
        and (kind := kind_of(op.b)) is not None
        and kind == kind_of(root.operands[1])
        and op.layout.data == "rcr"
        and rounding(op) == rounding(root)
        and not op.epilogue.blocks
        and "kernel" not in op.attributes
        and not_output(op.results[0])
    )


@constraint
def has_parallel_gemms(r: Rewriter, root: GemmOp) -> bool:
    """The gemm is the first of several gemms of one input with params; none has a kernel or is an output."""
    return is_parallel(root, root) and is_first(r, root, gemms_of_one_input(root))


@constraint
def has_gemms_of_one_source(r: Rewriter, root: GemmOp) -> bool:
    """The gemm is the first of several gemms of one input with params, all with a bias or all without one; none has a
    kernel or is an output."""
    return is_parallel(root, root) and is_first(r, root, gemms_of_one_kind(root))


def is_first(r: Rewriter, root: Operation, group: Sequence[Operation]) -> bool:
    """Whether the root comes first in a group of at least two."""
    return len(group) > 1 and root in group and all(root is other or r.is_before(root, other) for other in group)


@native
def merge_parallel_gemms(r: Rewriter, root: GemmOp) -> None:
    """Replace the gemms by one with joined weights (free: the runtime packs params) and a split of its result."""
    merge_gemms(r, root, gemms_of_one_input(root))


@native
def merge_gemms_of_one_source(r: Rewriter, root: GemmOp) -> None:
    """Replace the gemms of one kind by one with joined weights, and a split of its result."""
    merge_gemms(r, root, gemms_of_one_kind(root))


def merge_gemms(r: Rewriter, root: GemmOp, gemms: Sequence[Operation]) -> None:
    """One gemm at the root's place for several, with joined weights, and a split of its result."""
    group = sorted(gemms, key=r.position)
    results = [tensor_type(op.results[0]) for op in group]
    weight = joined_rows(r, [op.operands[1] for op in group], root)
    properties = {"layout": StringAttr("rcr")} | rounding(root)
    product = r.create(GemmOp, [root.operands[0], weight], None, properties, [Region()]).results[0]
    parts = r.create(SplitOp, [product], results, {"dim": IntegerAttr(results[0].rank - 1, i64)})
    for op, part in zip(group, parts.results, strict=True):
        r.replace(op, [part])


def joined_rows(r: Rewriter, weights: Sequence[SSAValue], before: Operation) -> SSAValue:
    """The rows of weights of one kind, one after the other."""

    def joined(params: Sequence[SSAValue]) -> SSAValue:
        hoisted = [hoist(r, param, before) for param in params]
        return r.create(ConcatOp, hoisted, None, {"dim": IntegerAttr(0, i64)}).results[0]

    stored = [owner for w in weights if isinstance(owner := w.owner, DequantizeOp)]
    if not stored:
        return joined(weights)
    numbers, scale = joined([op.input for op in stored]), joined([op.scale for op in stored])
    block = stored[0].block()
    return r.put(DequantizeOp(numbers, scale, tensor_type(weights[0]).element_type, None, block))


def bias_adds(split: SplitOp) -> list[tuple[Operation, SSAValue]] | None:
    """For each part of a split, the add that is its only user and the param [N_i] it adds; None if a part has none."""
    found = [bias_of(part) for part in split.results]
    return [row for row in found if row is not None] if None not in found else None


@constraint
def each_part_gets_bias(split: SplitOp) -> bool:
    """Every part of a split along the last dim is used by one add of a param with as many elements as that dim."""
    t = tensor_type(split.operands[0])
    return split.dim.value.data == t.rank - 1 and bias_adds(split) is not None


@native
def add_before_split(r: Rewriter, split: SplitOp) -> None:
    """Replace the adds of biases after a split by one add of the joined biases before it."""
    adds = bias_adds(split)
    assert adds is not None, "add_before_split needs each_part_gets_bias"
    biases = [hoist(r, bias, split) for _, bias in adds]
    bias = r.create(ConcatOp, biases, None, {"dim": IntegerAttr(0, i64)}).results[0]
    total = r.create(AddOp, [split.operands[0], bias], [split.operands[0].type]).results[0]
    parts = r.create(SplitOp, [total], [result.type for result in split.results], dict(split.properties))
    for (add, _), part in zip(adds, parts.results, strict=True):
        r.replace(add, [part])
    # The old split has no users left and is dead.
    r.push(split)


def hoist(r: Rewriter, param: SSAValue, before: Operation) -> SSAValue:
    """The param, moved before an operation if it is defined after it."""
    op = param.owner
    assert isinstance(op, ParamOp)
    if not r.is_before(op, before):
        r.move(op, before=before)
    return param


# ** gates **


@constraint
def stores_rows(contraction: ContractionOp) -> bool:
    """The result of a contraction is row-major."""
    return contraction.layout.data[2] == "r"


def is_halved(product: GemmOp, value: SSAValue) -> bool | None:
    """Whether an epilogue operand has one element per column of the product; False if it broadcasts, else None."""
    dims = tensor_type(value).dims
    if not dims or dims[-1].as_int() == 1:
        return False
    return True if scope_of(product).equal(dims[-1], tensor_type(product.output).dims[-1]) else None


@constraint
def gates_with(product: GemmOp, root: FusedElementwiseOp, limit: IntegerAttr) -> bool:
    """The epilogue of a product of floats can be computed for each half of its columns, and with the root there are at
    most `limit` operands."""
    halved = [is_halved(product, value) for value in product.epilogue_operands]
    count = sum(2 if both else 1 for both in halved) + len(root.operands)  # a and b for the halves
    return None not in halved and count <= limit.value.data and is_computed_float(tensor_type(product.a).element_type)


@native
def gate_product(r: Rewriter, product: GemmOp, halves: SplitOp, root: FusedElementwiseOp) -> Operation:
    """One gated product for a product, its halves and the root. The region's arguments are the two sums, the epilogue's
    operands for the first half, those for the second half, and the root's other operands."""
    block = Block()
    scalars: dict[SSAValue, SSAValue] = {}

    def scalar(value: SSAValue, argument: SSAValue) -> SSAValue:
        if value not in scalars:
            scalars[value] = block.insert_arg(argument.type, len(block.args))
            scalars[value].name_hint = argument.name_hint
        return scalars[value]

    read = dict(zip(root.operands, root.body.block.args, strict=True))
    sums = [scalar(half, read[half]) for half in halves.results]
    if product.epilogue.blocks:
        parts = [_halves(r, product, value, halves) for value in product.epilogue_operands]
        arguments = product.epilogue.block.args[1:]
        given = [[scalar(part[i], x) for part, x in zip(parts, arguments, strict=True)] for i in range(2)]
        done = [_inlined(product.epilogue, [sums[i], *given[i]], block) for i in range(2)]
    else:
        done = sums
    scalars |= dict(zip(halves.results, done, strict=True))
    result = _inlined(root.body, [scalar(value, argument) for value, argument in read.items()], block)
    block.add_op(YieldOp(result))
    operands = [*product.own_operands, *(value for value in scalars if value not in halves.results)]
    return r.create(
        GatedGemmOp, operands, [root.results[0].type], {"layout": product.layout} | rounding(product), [Region(block)]
    )


def _halves(r: Rewriter, product: GemmOp, value: SSAValue, halves: SplitOp) -> tuple[SSAValue, SSAValue]:
    """An operand of the product's epilogue for each half of the columns."""
    if not is_halved(product, value):
        return value, value
    t = tensor_type(value)
    half = TensorType.get((*t.dims[:-1], tensor_type(halves.results[0]).dims[-1]), t.element_type)
    joined = value.owner.operands if isinstance(value.owner, ConcatOp) else ()
    if len(joined) == 2 and all(same_type(part.type, half, scope_of(product)) for part in joined):
        return joined[0], joined[1]  # two such halves can only be joined along the last dim
    parts = r.create(SplitOp, [value], [half, half], {"dim": IntegerAttr(t.rank - 1, i64)})
    return parts.results[0], parts.results[1]


def _inlined(region: Region, arguments: Sequence[SSAValue], block: Block) -> SSAValue:
    """The only result of a region whose operations are cloned to the end of a block."""
    mapped: dict[SSAValue, SSAValue] = dict(zip(region.block.args, arguments, strict=True))
    for op in region.block.ops:
        if isinstance(op, YieldOp):
            return mapped[op.operands[0]]
        block.add_op(op.clone(mapped))
    raise AssertionError("a region ends with a yield")
