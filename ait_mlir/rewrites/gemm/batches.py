"""Rewrites products with repeated, transposed or joined operands or results to products of other shapes, without
copies."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.base import broadcast_shapes
from ait_mlir.dialects.ait.data import ParamOp
from ait_mlir.dialects.ait.elementwise import AddOp
from ait_mlir.dialects.ait.gemm import BATCH_LOOPS, BmmOp, ContractionOp, GemmOp, batch_loops
from ait_mlir.dialects.ait.syntax import int_list, rounding
from ait_mlir.dialects.ait.types import Shape, TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ConcatOp, ExpandOp, PermuteOp, ReshapeOp, SplitOp
from ait_mlir.dims import Expr, product
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native
from ait_mlir.rewrites.regions import take_regions


@pattern(over=(0, 1))
def expand_of_batch(p: PatternBuilder, position: int) -> None:
    """bmm(expand(x), y) = bmm(x, y), where the expand only repeats x for the batch of y, which bmm does by itself"""
    expand = p.op("ait.expand", [p.value()])
    root = p.op("ait.bmm", [*([p.value()] if position else []), p.result(expand), p.rest()])
    p.require("no_attribute", root, "kernel")
    p.require("repeats_for_batch", root, position)
    p.replace(root, "product_of_repeated", root, position)


@pattern()
def batch_in_many_loops(p: PatternBuilder) -> None:
    """bmm(x, y) = bmm(expand(x), expand(y)), where the batch has more loops than kernels"""
    root = p.op("ait.bmm", [p.rest()])
    p.require("no_attribute", root, "kernel")
    p.require("needs_more_loops", root)
    p.replace(root, "product_in_few_loops", root)


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


@pattern(over=("gemm", "bmm"))
def heads_of_product(p: PatternBuilder, mnemonic: str) -> None:
    """permute(reshape(x @ w), [0, 2, 1, 3]) = x' @ w', batched over the heads

    The product may have an epilogue whose operands have one element for each column, such as a bias.
    """
    inner = p.op(f"ait.{mnemonic}", [*p.values(2), p.rest()])
    parted = p.op("ait.reshape", [p.result(inner)])
    root = p.op("ait.permute", [p.result(parted)])
    p.require("one_use", p.result(inner))
    p.require("one_use", p.result(parted))
    p.require("no_attribute", inner, "kernel")
    p.require("stores_rows", inner)
    p.require("epilogue_of_columns", inner)
    p.require("parts_into_heads", inner, root)
    p.replace(root, "product_by_heads", inner, root)


@pattern()
def merged_heads(p: PatternBuilder) -> None:
    """permute(reshape(x @ y), [0, 2, 1, 3]) = permute(x' @ y'), where the reshape parts the batch of the product

    A product with the heads as a dim of its batch can be stored in the order of the permute.
    """
    inner = p.op("ait.bmm", p.values(2))
    parted = p.op("ait.reshape", [p.result(inner)])
    root = p.op("ait.permute", [p.result(parted)])
    p.require("one_use", p.result(inner))
    p.require("one_use", p.result(parted))
    p.require("no_attribute", inner, "kernel")
    p.require("no_region", inner)
    p.require("parts_the_batch", inner, root)
    p.replace(root, "product_with_heads", inner, root)


@pattern()
def products_beside_others(p: PatternBuilder) -> None:
    """concat(x0 @ w0^T + b0, x1 @ w1^T + b1, z) = concat(one bmm, z), of neighbours with factors of equal shapes"""
    root = p.op("ait.concat")
    p.require("joins_neighbouring_products", root)
    p.replace(root, "concat_of_batches", root)


@pattern()
def products_side_by_side(p: PatternBuilder) -> None:
    """concat(split(x)[0] @ w0^T + b0, split(x)[1] @ w1^T + b1) = one bmm, of equal parts and weights of one shape"""
    root = p.op("ait.concat")
    p.require("joins_products_of_parts", root)
    p.replace(root, "batched_products", root)


REPEATED = patterns(expand_of_batch)
MANY_LOOPS = patterns(batch_in_many_loops)
TRANSPOSED = patterns(transposed_product)
HEADS = patterns(heads_of_product, merged_heads)
MERGED_HEADS = patterns(merged_heads)
SIDE_BY_SIDE = patterns(products_side_by_side)
NEIGHBOURS = patterns(products_beside_others)


# ** repeated and transposed **


@constraint
def repeats_for_batch(root: BmmOp, position: IntegerAttr) -> bool:
    """Operand `position` of a bmm is an expand of its batch, and without the expand the result has the same batch and
    kernels have enough loops.
    """
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
    return tuple(batch) == tensor_type(root.output).dims[:-2] and batch_loops(source[:-2], other[:-2]) <= BATCH_LOOPS


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
def needs_more_loops(root: BmmOp) -> bool:
    """The product, of contiguous operands, has more loops over its batch than all kernels have."""
    return batch_loops(*_batches(root)) > BATCH_LOOPS


def _batches(root: BmmOp) -> list[Shape]:
    """The batch dims of both factors."""
    return [tensor_type(factor).dims[:-2] for factor in root.operands[:2]]


@native
def product_in_few_loops(r: Rewriter, root: BmmOp) -> Operation:
    """The product with the batches of both factors expanded, or of only one factor if kernels can address the result.
    """
    batch, operands, batches = tensor_type(root.output).dims[:-2], list(root.operands), _batches(root)
    for position in (1, 0):
        if batches[position] != batch and batch_loops(*batches) > BATCH_LOOPS:
            t = tensor_type(operands[position])
            wide = TensorType.get((*batch, *t.dims[-2:]), t.element_type)
            operands[position] = r.create(ExpandOp, [operands[position]], [wide]).results[0]
            batches[position] = batch
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
    return r.create(
        type(inner), list(inner.operands), [root.results[0].type], {"layout": layout} | rounding(inner), [Region()]
    )


# ** heads **


@constraint
def epilogue_of_columns(inner: ContractionOp) -> bool:
    """The product has one result, and each operand of its epilogue one element for each column, or one in all."""
    columns = tensor_type(inner.output).dims[-1]
    return len(inner.results) == 1 and all(
        all(dim.as_int() == 1 for dim in dims[:-1]) and (not dims or dims[-1] is columns or dims[-1].as_int() == 1)
        for dims in (tensor_type(value).dims for value in inner.epilogue_operands)
    )


def parted(root: PermuteOp) -> tuple[Expr, Expr, Expr, Expr] | None:
    """The dims [A, B, C, D] that a permute to [A, C, B, D] reads; None for another permute."""
    if root.order() != (0, 2, 1, 3):
        return None
    a, b, c, d = tensor_type(root.operands[0]).dims
    return a, b, c, d


@constraint
def parts_into_heads(inner: ContractionOp, root: PermuteOp) -> bool:
    """A product [M, N] is reshaped to [A, B, C, D], with M = A B and N = C D, and permuted to [A, C, B, D]. A bmm
    [A, B, N] has one batch dim, and its second factor that or none."""
    if (found := parted(root)) is None:
        return False
    a, b, c, d = found
    *rows, columns = tensor_type(inner.output).dims
    scope = scope_of(root)
    if not scope.equal(columns, c * d):
        return False
    if isinstance(inner, BmmOp):
        whole = len(rows) == 2 and scope.equal(rows[0], a) and scope.equal(rows[1], b)
        return whole and inner.layout.data[0] == "r" and tensor_type(inner.a).rank == 3
    return inner.layout.data[0] == "r" and scope.equal(product(rows), a * b)


@native
def product_by_heads(r: Rewriter, inner: ContractionOp, root: PermuteOp) -> Operation:
    """The product with its columns split into heads: x as [A, 1, B, K] times w as [C, D, K], or as [C, K, D] where K
    is the first dim of w. The weights of a bmm keep their batch in front. Columns of the epilogue's operands become
    [C, 1, D].
    """
    found = parted(root)
    assert found is not None, "product_by_heads needs parts_into_heads"
    _, b, c, d = found
    k = tensor_type(inner.a).dims[-1]
    batch = tensor_type(inner.a).dims[0] if isinstance(inner, BmmOp) else found[0]
    x = r.reshape(inner.a, [batch, 1, b, k])
    before = tensor_type(inner.b).dims[:-2]
    if inner.layout.data[1] == "c":
        w = r.reshape(inner.b, [*before, c, d, k])
    else:
        n = len(before)
        w = r.permute(r.reshape(inner.b, [*before, k, c, d]), [*range(n), n + 1, n, n + 2])
    columns = tensor_type(inner.output).dims[-1]
    extras = [
        r.reshape(value, [c, 1, d]) if (dims := tensor_type(value).dims) and dims[-1] is columns else value
        for value in inner.epilogue_operands
    ]
    layout = {"layout": StringAttr(f"r{inner.layout.data[1]}r")} | rounding(inner)
    return r.create(BmmOp, [x, w, *extras], [root.results[0].type], layout, take_regions(inner))


@constraint
def parts_the_batch(inner: BmmOp, root: PermuteOp) -> bool:
    """A bmm [A B, M, N], whose factors both have this batch, is reshaped to [A, B, M, N] and permuted to
    [A, M, B, N]."""
    dims = tensor_type(inner.output).dims
    if (found := parted(root)) is None or len(dims) != 3:
        return False
    scope = scope_of(root)
    factors = [tensor_type(value).dims for value in (inner.a, inner.b)]
    return (
        scope.equal(found[2], dims[1])
        and scope.equal(found[3], dims[2])
        and all(len(factor) == 3 and factor[0] is dims[0] for factor in factors)
    )


@native
def product_with_heads(r: Rewriter, inner: BmmOp, root: PermuteOp) -> Operation:
    """The permute of a bmm whose factors have the two dims of the reshape as batch."""
    parted = tensor_type(root.operands[0])
    factors = [r.reshape(value, [*parted.dims[:2], *tensor_type(value).dims[1:]]) for value in (inner.a, inner.b)]
    made = r.create(BmmOp, factors, [parted], {"layout": inner.layout} | rounding(inner), [Region()])
    return r.create(PermuteOp, [made.results[0]], [root.results[0].type], dict(root.properties))


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
    k = tensor_type(found.weights[0]).dims[1]
    assert total is k * len(found.weights)
    return r.create(ReshapeOp, [_batched(r, found.source, found, rows, k)], [concat.results[0].type])


@dataclass
class Neighbours:
    """Neighbouring operands of a concat, from `first` on, that are products of factors of equal shapes."""

    first: int
    sources: list[SSAValue]
    weights: list[SSAValue]
    biases: list[SSAValue]
    """Empty without biases."""


def plain_product(value: SSAValue) -> tuple[GemmOp, SSAValue | None] | None:
    """The gemm of a matrix with a param, and the param that is added to its result as a bias, if any.

    None if `value` is no such gemm, or if the gemm or its first operand has another user.
    """
    bias = None
    if isinstance(add := value.owner, AddOp) and value.has_one_use():
        gemm_first = isinstance(add.operands[0].owner, GemmOp)
        value, bias = (add.operands[0], add.operands[1]) if gemm_first else (add.operands[1], add.operands[0])
        if not isinstance(bias.owner, ParamOp) or tensor_type(bias).dims != tensor_type(add.results[0]).dims[-1:]:
            return None
    gemm = value.owner
    if not isinstance(gemm, GemmOp) or not value.has_one_use() or gemm.epilogue.blocks or "kernel" in gemm.attributes:
        return None
    if gemm.layout.data != "rcr" or not isinstance(gemm.b.owner, ParamOp) or not gemm.a.has_one_use():
        return None
    return (gemm, bias) if tensor_type(gemm.a).rank == 2 and tensor_type(gemm.a).dims[1].as_int() is not None else None


def neighbours_of(concat: ConcatOp) -> Neighbours | None:
    """The first two or more neighbouring operands of a concat of columns that can be one batched product."""
    t = tensor_type(concat.output)
    if t.rank != 2 or concat.dim.value.data != 1:
        return None
    found = [plain_product(value) for value in concat.operands]
    keys = [None if row is None else (row[0].a.type, row[0].b.type, row[1] is None) for row in found]
    at = 0
    for key, group in groupby(keys):
        count = len(list(group))
        rows = [row for row in found[at : at + count] if row is not None]
        if key is not None and count > 1:
            biases = [bias for _, bias in rows if bias is not None]
            return Neighbours(at, [gemm.a for gemm, _ in rows], [gemm.b for gemm, _ in rows], biases)
        at += count
    return None


@constraint
def joins_neighbouring_products(concat: ConcatOp) -> bool:
    """A concat along the columns joins two or more neighbouring products of tensors of one shape with params of one
    shape, all with or all without a bias; nothing else reads the products or the tensors."""
    return neighbours_of(concat) is not None


@native
def concat_of_batches(r: Rewriter, concat: ConcatOp) -> Operation:
    """The concat with neighbouring products replaced by one bmm: a batch for each product."""
    found = neighbours_of(concat)
    assert found is not None, "concat_of_batches needs joins_neighbouring_products"
    rows, k = tensor_type(found.sources[0]).dims
    n = tensor_type(found.weights[0]).dims[0]
    count = len(found.weights)
    joined = r.create(ConcatOp, found.sources, None, {"dim": IntegerAttr(1, i64)}).results[0]
    y = _batched(r, joined, Parts(joined, found.weights, found.biases), rows, k)
    element = tensor_type(concat.output).element_type
    whole = r.create(ReshapeOp, [y], [TensorType.get((rows, n * count), element)])
    if count == len(concat.operands):
        return whole
    operands = [*concat.operands[: found.first], whole.results[0], *concat.operands[found.first + count :]]
    return r.create(ConcatOp, operands, [concat.output.type], dict(concat.properties))


def _batched(r: Rewriter, source: SSAValue, parts: Parts, rows: Expr, k: Expr) -> SSAValue:
    """The products of the parts of a tensor, side by side, as [rows, count, N]."""
    n = tensor_type(parts.weights[0]).dims[0]
    count = len(parts.weights)
    parted = r.permute(r.reshape(source, [rows, count, k]), [1, 0, 2])
    weights = _stack(r, parts.weights, [count, n, k])
    y = r.create(BmmOp, [parted, weights], None, {"layout": StringAttr("rcr")}, [Region()])
    if parts.biases:
        biases = _stack(r, parts.biases, [count, 1, n])
        y = r.create(AddOp, [y.results[0], biases], [y.results[0].type])
    return r.permute(y.results[0], [1, 0, 2])


def _stack(r: Rewriter, params: list[SSAValue], dims: list[Expr | int]) -> SSAValue:
    """The params as one tensor of shape `dims`, joined along their first dim; the runtime packs them without a copy."""
    joined = r.create(ConcatOp, params, None, {"dim": IntegerAttr(0, i64)}).results[0]
    return r.reshape(joined, dims)
