"""Base classes of ops from outside of the package: their syntax, and their properties as Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerAttr, StringAttr, UnitAttr, f64, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import OptOperandDef, OptPropertyDef, PropertyDef, VarOperandDef

from ait_mlir.dialects.ait.base import AitOp, PureOp
from ait_mlir.dialects.ait.elementwise import ElementwiseOp
from ait_mlir.dialects.ait.syntax import INT, INTS, NUMBER, SHAPE, STRING, Clause, Flag, Kind, Operands, Prop, Syntax
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import ShapeAttr
from ait_mlir.dims import Expr, const
from ait_mlir.outside import OperatorError, bases

KINDS: Mapping[type[Attribute], Kind] = {
    IntegerAttr: INT,
    FloatAttr: NUMBER,
    StringAttr: STRING,
    ArrayAttr: INTS,
    ShapeAttr: SHAPE,
}
"""The syntax of a property by the class of its attribute; `UnitAttr` is a flag."""


class Op(Cost, PureOp):
    """Base of an operator from outside: `name`, operands, properties and results as IRDL fields, `infer_result_types`.

    By default its text is the operands, then each property after its name: `mine.rotate %x angle 0.5 : T`.
    """

    TAKES_STORED: ClassVar[bool] = True


class Elementwise(ElementwiseOp):
    """Base of an elementwise operator from outside: one definition for tensors, with broadcasting, and for scalars.

    `cpp` is a C++ expression of one element. It names operands and properties; floats narrower than f32 arrive
    as f32, and the functions of `ait/math.h` are `ait::exp(x)`, `ait::max<T>(x, y)` and so on, with `T` for the type of
    the result.
    """

    CPP: ClassVar[str] = ""


bases += [Op, Elementwise]


def default_syntax(cls: type[AitOp]) -> Syntax:
    """The default syntax: operands, then each property after its name; `OperatorError` if that is ambiguous."""
    definition = cls.get_irdl_definition()
    several = [name for name, operand in definition.operands if isinstance(operand, VarOperandDef | OptOperandDef)]
    if len(several) > 1:
        raise OperatorError(
            f"{cls.name}: the operands {' and '.join(several)} both vary in number; "
            "say how the op is written: SYNTAX = (Operands(('x',)), Operand('bias', 'bias', optional=True))"
        )
    clauses: list[Clause] = [Operands()]
    for name, prop in definition.properties.items():
        if name == "operandSegmentSizes":
            continue
        kind = property_class(cls, name, prop)
        if kind is UnitAttr:
            clauses.append(Flag(name))
        else:
            clauses.append(Prop(name, KINDS[kind], optional=isinstance(prop, OptPropertyDef)))
    return tuple(clauses)


def property_class(cls: type[AitOp], name: str, prop: PropertyDef) -> type[Attribute]:
    """The attribute class of a property: one of `KINDS`, or `UnitAttr`."""
    for base in prop.constr.get_bases() or ():
        for kind in (*KINDS, UnitAttr):
            if issubclass(base, kind):
                return kind
    names = ", ".join(kind.__name__ for kind in (*KINDS, UnitAttr))
    raise OperatorError(f"{cls.name}: the property {name!r} is declared as {prop.constr}; expected one of {names}")


def attribute_of(cls: type[AitOp], name: str, value: object) -> Attribute | None:
    """The attribute of a Python value for a property; None if it is left out, `TypeError` if it does not fit."""
    prop = cls.get_irdl_definition().properties[name]
    kind = property_class(cls, name, prop)
    if isinstance(value, kind):
        return value
    if value is None and isinstance(prop, OptPropertyDef):
        return None
    if (made := _made(kind, value)) is None:
        raise TypeError(f"{name} must be {_WORDS[kind]}; found {value!r}")
    return None if made is LEFT_OUT else made


LEFT_OUT = UnitAttr()
"""Stands for a flag that is False."""


def _made(kind: type[Attribute], value: Any) -> Attribute | None:
    """The attribute of class `kind` for a value; None if the value does not fit."""
    is_list = isinstance(value, list | tuple)
    items = cast("Sequence[Any]", value if is_list else ())
    if kind is IntegerAttr and _is_int(value):
        return IntegerAttr(cast(int, value), i64)
    if kind is FloatAttr and (isinstance(value, float) or _is_int(value)):
        return FloatAttr(float(cast(float, value)), f64)
    if kind is StringAttr and isinstance(value, str):
        return StringAttr(value)
    if kind is UnitAttr and isinstance(value, bool):
        return UnitAttr() if value else LEFT_OUT
    if kind is ArrayAttr and is_list and all(map(_is_int, items)):
        return ArrayAttr([IntegerAttr(item, i64) for item in items])
    if kind is ShapeAttr and is_list and all(_is_int(item) or isinstance(item, Expr) for item in items):
        return ShapeAttr(tuple(item if isinstance(item, Expr) else const(item) for item in items))
    return None


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_WORDS: Mapping[type[Attribute], str] = {
    IntegerAttr: "an int",
    FloatAttr: "a number",
    StringAttr: "a string",
    ArrayAttr: "a list of ints",
    ShapeAttr: "a list of dims",
    UnitAttr: "True or False",
}


def python_value(attribute: Attribute | None) -> Any:
    """The Python value of a property: a number, a string, a list, True; dims are `Expr`."""
    match attribute:
        case IntegerAttr():
            number = cast("IntegerAttr[Any]", attribute)
            return bool(number.value.data) if number.type == i1 else number.value.data
        case FloatAttr():
            return cast("FloatAttr[Any]", attribute).value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return [python_value(item) for item in attribute]
        case ShapeAttr():
            return list(attribute.data)
        case UnitAttr():
            return True
        case _:
            return None


def python_values(op: AitOp) -> dict[str, Any]:
    """The properties of an op by name. A flag is True or False; a missing property is None."""
    found: dict[str, Any] = {}
    for name, prop in type(op).get_irdl_definition().properties.items():
        if not isinstance(op.properties.get(name), DenseArrayBase):
            value = python_value(op.properties.get(name))
            is_flag = value is None and property_class(type(op), name, prop) is UnitAttr
            found[name] = False if is_flag else value
    return found


def fields(op: AitOp) -> list[tuple[str, list[SSAValue], bool]]:
    """The operands of an op by field: name, values, and whether the field takes any number of them."""
    found: list[tuple[str, list[SSAValue], bool]] = []
    for name, operand in type(op).get_irdl_definition().operands:
        value = cast("SSAValue | Sequence[SSAValue] | None", getattr(op, name))
        values = [value] if isinstance(value, SSAValue) else list(value or ())
        found.append((name, values, isinstance(operand, VarOperandDef) and not isinstance(operand, OptOperandDef)))
    return found
