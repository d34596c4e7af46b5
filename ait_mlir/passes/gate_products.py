"""Let products whose halves are all that an elementwise operation makes its result of compute that result."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ait_mlir.rewrites.engine.apply import rewrite
from ait_mlir.rewrites.gemm import GATED_PRODUCTS


@dataclass(frozen=True)
class GateProductsPass(ModulePass):
    """Let what alone reads both halves of a product, silu(gate) * up, be the product's epilogue."""

    name = "gate-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, GATED_PRODUCTS)
