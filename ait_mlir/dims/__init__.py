"""Integer expressions over named dims: parse, print, normal form, bounds, proofs."""

from __future__ import annotations

from ait_mlir.dims.errors import DimError, DimSyntaxError
from ait_mlir.dims.expr import (
    MAX_LITERAL,
    RESERVED,
    Atom,
    Expr,
    Fields,
    Noted,
    check_name,
    const,
    from_terms,
    interned,
    product,
    sym,
    total,
)
from ait_mlir.dims.parser import forget_unused, parse
from ait_mlir.dims.rules import ceildiv, floordiv, maximum, minimum, mod
from ait_mlir.dims.scope import MAX_DIM, Dim, Jagged, Scope, jagged_dim

__all__ = [
    "MAX_DIM",
    "MAX_LITERAL",
    "RESERVED",
    "Atom",
    "Dim",
    "DimError",
    "DimSyntaxError",
    "Expr",
    "Fields",
    "Jagged",
    "Noted",
    "Scope",
    "ceildiv",
    "check_name",
    "const",
    "floordiv",
    "forget_unused",
    "from_terms",
    "interned",
    "jagged_dim",
    "maximum",
    "minimum",
    "mod",
    "parse",
    "product",
    "sym",
    "total",
]
