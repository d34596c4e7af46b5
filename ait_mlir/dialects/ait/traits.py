"""Traits that patterns and passes ask for, instead of listing ops."""

from __future__ import annotations

from xdsl.traits import Commutative, OpTrait, Pure

__all__ = ["Commutative", "Contraction", "Elementwise", "Norm", "OpTrait", "Pure", "RowOp", "UpdatesOperand", "View"]


class Elementwise(OpTrait):
    """Computes each element of the result from the elements at the same (broadcast) place; also defined on scalars."""


class Contraction(OpTrait):
    """A sum of products with an optional epilogue region whose first argument is the accumulator."""


class View(OpTrait):
    """Moves elements and computes nothing: it may become a view of a buffer instead of a copy."""


class Norm(OpTrait):
    """A `NormOp`: normalises rows, and may compute what it normalises in a prologue."""


class RowOp(OpTrait):
    """Reduces over some dims of each row and keeps the shape: softmax and the norms."""


class UpdatesOperand(OpTrait):
    """The result is the first operand with some elements replaced: kernels write these alone, over the operand, which
    bufferisation copies first where its old value is still needed."""
