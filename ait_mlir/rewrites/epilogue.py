"""Elementwise operations that alone use a contraction join its epilogue."""

from __future__ import annotations

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns

# (number of operands, which of them is the contraction); the condition of a where is none
OPERAND_POSITIONS = ((1, 0), (2, 0), (2, 1), (3, 1), (3, 2))

MAX_OPERANDS = 16
"""A, B and the epilogue's: every kernel of a contraction takes so many."""


@pattern(over=OPERAND_POSITIONS)
def join_epilogue(p: PatternBuilder, arity: int, position: int) -> None:
    """The other operands broadcast to the contraction's result, which keeps its shape; the result is a float."""
    acc = p.op(trait="Contraction")
    root = p.op(
        operands=[*p.values(position), p.result(acc), *p.values(arity - 1 - position)],
        trait="Elementwise",
    )
    p.require("only_user", p.result(acc), root)
    if arity > 1:
        p.require("result_has_shape_of", root, p.result(acc))
    if arity < 3:
        p.require("is_floating", p.result(root))
    p.require("no_attribute", acc, "kernel")
    if arity > 1:
        p.require("operands_fit", acc, root, MAX_OPERANDS)
    p.replace(root, "append_to_epilogue", acc, root)


@pattern()
def join_epilogue_together(p: PatternBuilder) -> None:
    """What reads a contraction twice, by different ways, joins at once with all on the ways: x * sigmoid(c * x)"""
    root = p.op(trait="Elementwise")
    p.require("ends_group", root, MAX_OPERANDS)
    p.apply(root, "append_group_to_epilogue", root, MAX_OPERANDS)


EPILOGUE = patterns(join_epilogue, join_epilogue_together)
