"""What a model widened for one function alone is computed from the narrow type.

Kernels compute a row of f16 or bf16 in f32 and round once, when they store it. A model that converts to f32, normalises
and converts back means the same, but its conversion rounds where the store does: to the reference, for which only a
conversion rounds, that is another value. So the importer applies these patterns, whose measure is PyTorch's own error,
and no pass of the compiler does.
"""

from __future__ import annotations

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.spellings import SPELLINGS


@pattern(over=("softmax", "rms_norm"))
def row_op_of_widened(p: PatternBuilder, mnemonic: str) -> None:
    """cast(f(cast(x))) = f(x), where f computes in the wide type anyway"""
    x = p.value()
    wide = p.result(p.op("ait.cast", [x]))
    inner = p.op(f"ait.{mnemonic}", [wide])
    root = p.op("ait.cast", [p.result(inner)])
    p.require("is_compute_type_of", wide, x)
    p.require("same_type", p.result(root), x)
    p.require("one_use", p.result(inner))
    if mnemonic != "softmax":
        p.require("no_region", inner)
    p.require("no_attribute", inner, "kernel")
    p.replace(root, "on_narrow", inner, x)


NARROW = patterns(row_op_of_widened) + SPELLINGS
