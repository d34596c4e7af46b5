"""Products without copies around them: a transposed result is the other layout, a repeated operand is broadcast."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, Region, SSAValue

from ait_mlir.dialects.ait.base import broadcasts_to, same_shape
from ait_mlir.dialects.ait.gemm import BmmOp, ContractionOp
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait.view import ExpandOp, PermuteOp
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native
from ait_mlir.rewrites.view import permute


@pattern(over=("gemm", "bmm"))
def transposed_product(p: PatternBuilder, mnemonic: str) -> None:
    """permute(x @ y) = x @ y, stored in the other order, where a permutation exchanges the last two dims"""
    order = p.attr()
    product = p.op(f"ait.{mnemonic}", p.values(2))
    rows = p.result(product)
    root = p.op("ait.permute", [rows], {"permutation": order})
    p.require("transposes_last_two", order)
    if mnemonic == "gemm":
        # The leading dims of A belong to M in a row-major result only.
        p.require("has_rank", rows, 2)
    p.require("one_use", rows)
    p.require("no_region", product)
    p.require("no_attribute", product, "kernel")
    p.replace(root, "other_order", product, root)


@pattern(over=(0, 1))
def product_of_repeated(p: PatternBuilder, position: int) -> None:
    """expand(x) @ y = x @ y, where only dims of the batch are expanded, and y has them, too"""
    expand = p.op("ait.expand", [p.value()])
    x, y = p.result(expand), p.value()
    root = p.op("ait.bmm", [y, x, p.rest()] if position else [x, y, p.rest()])
    p.require("expands_batch_of", expand, root)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "on_unexpanded", expand, root)


RESULTS = patterns(transposed_product, product_of_repeated)


@native
def other_order(r: Rewriter, product: ContractionOp, root: PermuteOp) -> Operation:
    """The product with its result stored in the other order; what is left of the permutation moves the batch."""
    order = list(root.order())
    order[-2:] = [order[-1], order[-2]]
    layout = product.layout.data
    dims = list(tensor_type(product.output).dims)
    dims[-2:] = [dims[-1], dims[-2]]
    made = r.create(
        type(product),
        product.operands,
        [TensorType.get(dims, tensor_type(product.output).element_type)],
        product.properties | {"layout": StringAttr(layout[:2] + ("r" if layout[2] == "c" else "c"))},
        [Region()],
    )
    return permute(r, made.results[0], order)


@constraint
def expands_batch_of(expand: ExpandOp, product: BmmOp) -> bool:
    """The expand keeps the matrices of one operand, and the other operand has the whole batch of the product."""
    if product.operands[0] is product.operands[1]:
        return False  # both expanded: the batch of the product would shrink
    before, after, scope = tensor_type(expand.input), tensor_type(expand.output), scope_of(product)
    if before.rank < 2 or not same_shape(before.dims[-2:], after.dims[-2:], scope):
        return False
    other = product.operands[1 if product.operands[0] is expand.output else 0]
    batch, whole = tensor_type(other).dims[:-2], tensor_type(product.output).dims[:-2]
    return same_shape(batch, whole, scope) and broadcasts_to(before.dims[:-2], batch, scope)


@native
def on_unexpanded(r: Rewriter, expand: ExpandOp, root: BmmOp) -> Operation:
    """The product of what is expanded."""
    operands: list[SSAValue] = [expand.input if value is expand.output else value for value in root.operands[:2]]
    epilogue = root.detach_region(root.epilogue)
    attributes = root.properties | root.attributes
    return r.create(BmmOp, [*operands, *root.operands[2:]], [root.output.type], attributes, [epilogue])
