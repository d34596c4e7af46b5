"""Rewrites products with repeated, transposed or joined operands or results to products of other shapes, without
copies."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.base import broadcast_shapes
from ait_mlir.dialects.ait.data import ParamOp
from ait_mlir.dialects.ait.elementwise import AddOp
from ait_mlir.dialects.ait.gemm import BmmOp, ContractionOp, GemmOp
from ait_mlir.dialects.ait.syntax import int_list
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ExpandOp, PermuteOp, ReshapeOp, SplitOp
from ait_mlir.dims import Expr, product
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native


@pattern(over=(0, 1))
def expand_of_batch(p: PatternBuilder, position: int) -> None:
    """bmm(expand(x), y) = bmm(x, y), where the expand only repeats x for the batch of y, which bmm does by itself"""
    expand = p.op("ait.expand", [p.value()])
    root = p.op("ait.bmm", [*([p.value()] if position else []), p.result(expand), p.rest()])
    p.require("no_attribute", root, "kernel")
    p.require("repeats_for_batch", root, position)
    p.replace(root, "product_of_repeated", root, position)


@pattern(over=("gemm", "bmm"))
def transposed_product(p: PatternBuilder, mnemonic: str) -> None:
    """permute(x @ y) = x @ y with the other result layout, where the permute exchanges the last two dims"""
    order = p.attr()
    inner = p.op(f"ait.{mnemonic}", p.values(2))
    root = p.op("ait.permute", [p.result(inner)], {"permutation": order})
    p.require("one_use", p.result(inner))
    p.require("swaps_last_two", order)
    p.require("no_region", inner)
    p.require("no_attribute", inner, "kernel")
    if mnemonic == "gemm":
        # The leading dims of A belong to M in layout r only.
        p.require("has_rank", p.result(inner), 2)
    p.replace(root, "stored_transposed", inner, root)


@pattern()
def heads_of_product(p: PatternBuilder) -> None:
    """permute(reshape(x @ w^T), [0, 2, 1, 3]) = x' @ w'^T, batched over the heads"""
    gemm = p.op("ait.gemm", p.values(2), {"layout": "rcr"})
    parted = p.op("ait.reshape", [p.result(gemm)])
    root = p.op("ait.permute", [p.result(parted)])
    p.require("one_use", p.result(gemm))
    p.require("one_use", p.result(parted))
    p.require("no_region", gemm)
    p.require("no_attribute", gemm, "kernel")
    p.require("parts_into_heads", gemm, root)
    p.replace(root, "product_by_heads", gemm, root)


@pattern()
def products_side_by_side(p: PatternBuilder) -> None:
    """concat(split(x)[0] @ w0^T + b0, split(x)[1] @ w1^T + b1) = one bmm, of equal parts and weights of one shape"""
    root = p.op("ait.concat")
    p.require("joins_products_of_parts", root)
    p.replace(root, "batched_products", root)


REPEATED = patterns(expand_of_batch)
TRANSPOSED = patterns(transposed_product)
HEADS = patterns(heads_of_product)
SIDE_BY_SIDE = patterns(products_side_by_side)


# ** repeated and transposed **


@constraint
def repeats_for_batch(root: BmmOp, position: IntegerAttr) -> bool:
    """Operand `position` of a bmm is an expand of its batch, and without the expand the result has the same batch."""
    expand = root.operands[position.value.data].owner
    if not isinstance(expand, ExpandOp):
        return False
    source, repeated = tensor_type(expand.operands[0]).dims, tensor_type(expand.results[0]).dims
    if len(source) < 2 or source[-2:] != repeated[-2:]:
        return False
    other = tensor_type(root.operands[1 - position.value.data]).dims
    try:
        batch = broadcast_shapes(root, ("the batch of A", "the batch of B"), (source[:-2], other[:-2]))
    except VerifyException:
        return False
    return tuple(batch) == tensor_type(root.output).dims[:-2]


@native
def product_of_repeated(r: Rewriter, root: BmmOp, position: IntegerAttr) -> Operation:
    """The bmm that reads the expand's input in place of the expand."""
    operands = list(root.operands)
    expand = operands[position.value.data].owner
    assert isinstance(expand, ExpandOp)
    operands[position.value.data] = expand.operands[0]
    attributes = root.properties | root.attributes
    return r.create(BmmOp, operands, [root.output.type], attributes, [root.detach_region(root.epilogue)])


@constraint
def swaps_last_two(permutation: ArrayAttr[Attribute]) -> bool:
    """The permutation exchanges the last two dims and nothing else."""
    order = int_list(permutation)
    rank = len(order)
    return rank >= 2 and order == (*range(rank - 2), rank - 1, rank - 2)


@native
def stored_transposed(r: Rewriter, inner: ContractionOp, root: PermuteOp) -> Operation:
    """The product with the other layout of its result: c for r, r for c."""
    a, b, c = inner.layout.data
    layout = StringAttr(f"{a}{b}{'c' if c == 'r' else 'r'}")
    return r.create(type(inner), list(inner.operands), [root.results[0].type], {"layout": layout}, [Region()])


# ** heads **


@constraint
def parts_into_heads(gemm: GemmOp, root: PermuteOp) -> bool:
    """A product [M, N] is reshaped to [A, B, C, D], with M = A B and N = C D, and permuted to [A, C, B, D]."""
    if root.order() != (0, 2, 1, 3):
        return False
    a, b, c, d = tensor_type(root.operands[0]).dims
    *rows, columns = tensor_type(gemm.output).dims
    scope = scope_of(root)
    return scope.equal(product(rows), a * b) and scope.equal(columns, c * d)


@native
def product_by_heads(r: Rewriter, gemm: GemmOp, root: PermuteOp) -> Operation:
    """x as [A, 1, B, K] times w as [C, D, K]."""
    a, b, c, d = tensor_type(root.operands[0]).dims
    k = tensor_type(gemm.a).dims[-1]
    x = r.reshape(gemm.a, [a, 1, b, k])
    w = r.reshape(gemm.b, [c, d, k])
    return r.create(BmmOp, [x, w], [root.results[0].type], {"layout": StringAttr("rcr")}, [Region()])


# ** side by side **


@dataclass
class Parts:
    """The tensor whose parts are multiplied, and the weight and bias for each part; `biases` is empty without them."""

    source: SSAValue
    weights: list[SSAValue]
    biases: list[SSAValue]


def parts_of(concat: ConcatOp) -> Parts | None:
    """The products that a concat joins, if there is one for each part of a split, in order; else None."""
    t = tensor_type(concat.output)
    if t.rank != 2 or concat.dim.value.data != 1 or len(concat.operands) < 2:
        return None
    found: list[tuple[GemmOp, SSAValue | None]] = []
    for value in concat.operands:
        bias: SSAValue | None = None
        if isinstance(add := value.owner, AddOp):
            value, bias = add.operands[0], add.operands[1]
            if not isinstance(bias.owner, ParamOp) or tensor_type(bias).dims != tensor_type(add.results[0]).dims[1:]:
                return None
            if not add.results[0].has_one_use():
                return None
        gemm = value.owner
        if not isinstance(gemm, GemmOp) or not value.has_one_use() or gemm.epilogue.blocks:
            return None
        if "kernel" in gemm.attributes or gemm.layout.data != "rcr" or not isinstance(gemm.b.owner, ParamOp):
            return None
        found.append((gemm, bias))
    split = found[0][0].a.owner
    if not isinstance(split, SplitOp) or split.dim.value.data != 1 or len(split.results) != len(found):
        return None
    for i, (gemm, bias) in enumerate(found):
        part = gemm.a
        if not isinstance(part, OpResult) or part.owner is not split or part.index != i:
            return None
        if part.type != split.results[0].type or gemm.b.type != found[0][0].b.type:
            return None
        if (bias is None) != (found[0][1] is None):
            return None
    biases = [bias for _, bias in found if bias is not None]
    return Parts(split.operands[0], [gemm.b for gemm, _ in found], biases)


@constraint
def joins_products_of_parts(concat: ConcatOp) -> bool:
    """A concat along the columns joins a product for each part of a split, all with or all without a bias. Weights and
    biases are params, parts and weights have equal shapes, and the products have no other use."""
    return parts_of(concat) is not None


@native
def batched_products(r: Rewriter, concat: ConcatOp) -> Operation:
    """One bmm, with the parts as its batch."""
    found = parts_of(concat)
    assert found is not None, "batched_products needs joins_products_of_parts"
    rows, total = tensor_type(found.source).dims
    n, k = tensor_type(found.weights[0]).dims
    count = len(found.weights)
    assert total is k * count
    parted = r.permute(r.reshape(found.source, [rows, count, k]), [1, 0, 2])
    weights = _stack(r, found.weights, [count, n, k])
    y = r.create(BmmOp, [parted, weights], None, {"layout": StringAttr("rcr")}, [Region()])
    if found.biases:
        biases = _stack(r, found.biases, [count, 1, n])
        y = r.create(AddOp, [y.results[0], biases], [y.results[0].type])
    return r.create(ReshapeOp, [r.permute(y.results[0], [1, 0, 2])], [concat.results[0].type])


def _stack(r: Rewriter, params: list[SSAValue], dims: list[Expr | int]) -> SSAValue:
    """The params as one tensor of shape `dims`, joined along their first dim; the runtime packs them without a copy."""
    joined = r.create(ConcatOp, params, None, {"dim": IntegerAttr(0, i64)}).results[0]
    return r.reshape(joined, dims)
