"""What stock `xdsl-opt` finds through the `xdsl.universe` entry point: our dialects and passes, loaded on first use."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from xdsl.context import Context
from xdsl.ir import Dialect
from xdsl.universe import Universe

# pass name -> module, class
PASSES: dict[str, tuple[str, str]] = {
    "simplify": ("ait_mlir.passes.simplify", "SimplifyPass"),
    "fuse-attention": ("ait_mlir.passes.fuse_attention", "FuseAttentionPass"),
    "fuse-masked-attention": ("ait_mlir.passes.fuse_masked_attention", "FuseMaskedAttentionPass"),
    "merge-parallel-gemms": ("ait_mlir.passes.merge_parallel_gemms", "MergeParallelGemmsPass"),
    "fuse-epilogue": ("ait_mlir.passes.fuse_epilogue", "FuseEpiloguePass"),
    "fuse-norm": ("ait_mlir.passes.fuse_norm", "FuseNormPass"),
    "fuse-elementwise": ("ait_mlir.passes.fuse_elementwise", "FuseElementwisePass"),
    "fuse-siblings": ("ait_mlir.passes.fuse_siblings", "FuseSiblingsPass"),
    "gate-products": ("ait_mlir.passes.gate_products", "GateProductsPass"),
    "narrow-row-ops": ("ait_mlir.passes.narrow_row_ops", "NarrowRowOpsPass"),
    "apply-patterns": ("ait_mlir.passes.apply_patterns", "ApplyPatternsPass"),
    "select": ("ait_mlir.passes.select", "SelectPass"),
    "bufferize": ("ait_mlir.passes.bufferize", "BufferizePass"),
    "remove-copies": ("ait_mlir.passes.remove_copies", "RemoveCopiesPass"),
    "lower-copies": ("ait_mlir.passes.lower_copies", "LowerCopiesPass"),
    "plan-memory": ("ait_mlir.passes.plan_memory", "PlanMemoryPass"),
    "verify-plan": ("ait_mlir.passes.verify_plan", "VerifyPlanPass"),
}


def _ait() -> Dialect:
    from ait_mlir.dialects.ait import AIT

    return AIT


def _ait_rt() -> Dialect:
    from ait_mlir.dialects.ait_rt import AIT_RT

    return AIT_RT


def _pass(module: str, name: str) -> Callable[[], Any]:
    return lambda: getattr(import_module(module), name)


DIALECTS: dict[str, Callable[[], Dialect]] = {"ait": _ait, "ait_rt": _ait_rt}
AIT_UNIVERSE = Universe(
    all_dialects=DIALECTS, all_passes={name: _pass(*where) for name, where in PASSES.items()}, all_targets={}
)


def context() -> Context:
    """A context that knows the dialects of this project, `builtin`, and those that pattern files are written in."""
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.pdl import PDL

    ctx = Context()
    ctx.register_dialect("builtin", lambda: Builtin)
    ctx.register_dialect("pdl", lambda: PDL)
    for name, factory in DIALECTS.items():
        ctx.register_dialect(name, factory)
    return ctx
