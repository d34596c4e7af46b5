"""Operators from outside of the package: one class is an op of the compiler.

>>> @operator
... class Cube(Elementwise):
...     name = "mine.cube"
...     x = operand_def()
...     y = result_def()
...     cpp = "x * x * x"
...     reference = staticmethod(lambda x: x**3)
>>> y = Cube.on(x)

`docs/add_an_operator.md` shows all that a class may have.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, prop_def, result_def, var_operand_def, var_result_def

from ait_mlir.dialects.ait.dtypes import ui8
from ait_mlir.dialects.ait.syntax import INT, INTS, NUMBER, SHAPE, STRING, Flag, Operand, Operands, Prop, Word
from ait_mlir.dialects.ait.traits import InPlace, RowLike
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType
from ait_mlir.dims import ceildiv, maximum, minimum
from ait_mlir.lowering.authored import Cpp, Ffi, Jinja
from ait_mlir.operators.definition import Elementwise, Op, operator
from ait_mlir.outside import OperatorError, load, remove
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern
from ait_mlir.rewrites.engine.registry import constraint, finder, native

__all__ = [
    "INT",
    "INTS",
    "NUMBER",
    "SHAPE",
    "STRING",
    "ArrayAttr",
    "Cpp",
    "Elementwise",
    "Ffi",
    "Flag",
    "FloatAttr",
    "InPlace",
    "IntegerAttr",
    "Jinja",
    "Op",
    "Operand",
    "Operands",
    "OperatorError",
    "PatternBuilder",
    "Prop",
    "Rewriter",
    "RowLike",
    "ShapeAttr",
    "StringAttr",
    "TensorType",
    "UnitAttr",
    "Word",
    "bf16",
    "ceildiv",
    "constraint",
    "f16",
    "f32",
    "f64",
    "finder",
    "i1",
    "i8",
    "i16",
    "i32",
    "i64",
    "load",
    "maximum",
    "minimum",
    "native",
    "operand_def",
    "operator",
    "opt_operand_def",
    "opt_prop_def",
    "pattern",
    "prop_def",
    "remove",
    "result_def",
    "ui8",
    "var_operand_def",
    "var_result_def",
]
