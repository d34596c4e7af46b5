"""Operators with their own templates as ops of the dialect `external`: `%y = external.add_one %x : T`.

The op holds the arguments of the operator's constructor and of its call. The compiler makes a new instance of the
operator's class when it needs one: the instance's call is the shape function, and `gen_function` and the functions of
the registry are its kernel.
"""

# `_attrs` is the documented name.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation
from xdsl.irdl import opt_prop_def, var_operand_def, var_result_def
from xdsl.utils.exceptions import VerifyException

from ait_mlir.dialects.ait.base import ResultTypes
from ait_mlir.dialects.ait.syntax import Kind, Operands, Prop, Syntax
from ait_mlir.dialects.ait.types import TensorType, scope_of
from ait_mlir.dialects.outside import Op
from ait_mlir.dims import Scope
from ait_mlir.frontend.intvar import IntVar, Symbol, Symbols
from ait_mlir.frontend.operator import Operator, operator_of
from ait_mlir.frontend.registry import place_of
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.outside import OperatorError
from ait_mlir.reference.core import Arrays, Evaluation, EvaluationError
from ait_mlir.reference.outside import call_reference

DIALECT = "external"

_DICTIONARY = Kind(
    lambda parser: DictionaryAttr(parser.parse_optional_dictionary_attr_dict()),
    lambda printer, attribute: printer.print_attribute(attribute),
)


class ExternalOp(Op):
    """Base of the ops of operators with their own templates.

    `options` are the arguments of the constructor; `call` the arguments of the call, if there are more than the inputs;
    `attrs` the entries of `_attrs` that were set afterwards.

    ```mlir
    %y = external.add_one %x : !ait.tensor<16 x 512 x f16>
    ```
    """

    SYNTAX: ClassVar[Syntax] = (
        Operands(),
        Prop("options", _DICTIONARY, optional=True),
        Prop("call", _DICTIONARY, optional=True),
        Prop("attrs", _DICTIONARY, optional=True),
    )

    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    options = opt_prop_def(DictionaryAttr)
    call = opt_prop_def(DictionaryAttr)
    attrs = opt_prop_def(DictionaryAttr)

    def infer_result_types(self) -> ResultTypes:
        """The types of the outputs of a new instance, called on tensors like the operands."""
        operator = self.instance()
        symbols = symbols_of(scope_of(self))
        types = [self.expect_tensor(value, f"operand {i}") for i, value in enumerate(self.operands)]
        tensors = [Tensor.of(Block(arg_types=[t]).args[0], symbols) for t in types]
        try:
            arguments = cast("Mapping[str, Any]", decoded(self.call, tensors) if self.call else {"args": tensors})
            operator(*arguments.get("args", ()), **arguments.get("kwargs", {}))
        except Exception as error:
            raise self.fail(f"its call failed: {error}") from error
        if len(operator.outputs) != len(self.results):
            raise self.fail(f"has {len(self.results)} results, but its call makes {len(operator.outputs)}")
        return [output.type for output in operator.outputs]

    def instance(self) -> Operator:
        """A new operator with the options of the op; `VerifyException` if there is no class for it."""
        name = self.name.removeprefix(f"{DIALECT}.")
        if (cls := class_of(name)) is None:
            raise self.fail(
                f'it has no shape function: no class derived from Operator sets _attrs["op"] = "{name}"; '
                "give the file that has it with --load"
            )
        try:
            operator = cls(**(cast("dict[str, Any]", decoded(self.options, ())) if self.options else {}))
        except Exception as error:
            raise self.fail(f"its constructor failed: {error}") from error
        if self.attrs is not None:
            operator._attrs.update(cast("dict[str, Any]", decoded(self.attrs, ())))
        return operator


# ** the classes of ops and of operators **

_classes: dict[str, type[Operator]] = {}
"""The classes of operators that were called, by their `_attrs["op"]`."""


def class_of(name: str) -> type[Operator] | None:
    """The class of the operator `name`: a class that was called, else a class with this name or `_attrs["op"]`."""
    if name in _classes:
        return _classes[name]
    found = [cls for cls in _subclasses(Operator) if not cls.__module__.startswith("ait_mlir.")]
    for cls in sorted(found, key=lambda cls: cls.__name__ != name):
        if cls.__name__ == name or _says(cls) == name:
            return cls
    return None


def _subclasses(cls: type[Operator]) -> Iterator[type[Operator]]:
    for inner in reversed(cls.__subclasses__()):  # the latest definition first
        yield inner
        yield from _subclasses(inner)


def _says(cls: type[Operator]) -> object:
    try:
        return cls()._attrs["op"]
    except Exception:  # its constructor needs arguments
        return None


def register_class(name: str, cls: type[Operator]) -> None:
    """Register the class of an operator; `OperatorError` if another class has this name."""
    other = _classes.setdefault(name, cls)
    if other is not cls:
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise _two(name, other, cls)
        _classes[name] = cls  # the file of the class was run again


def _two(name: str, one: type[Operator], other: type[Operator]) -> OperatorError:
    first, second = (f"{cls.__name__} at {place_of_class(cls)}" for cls in (one, other))
    return OperatorError(
        f'two classes of operators have _attrs["op"] = {name!r}: {first} and {second}; it has to be unique'
    )


def check_classes(ops: Iterable[Operation]) -> None:
    """Raise `OperatorError` if operators of two classes have one name in a model: of two operators, or of two
    definitions of one. Ops of the name are then made with the class of this model."""
    found: dict[str, type[Operator]] = {}
    for op in ops:
        operator = operator_of(op) if isinstance(op, ExternalOp) else None
        if operator is None:
            continue
        name = op.name.removeprefix(f"{DIALECT}.")
        if (other := found.setdefault(name, type(operator))) is not type(operator):
            raise _two(name, other, type(operator))
    _classes.update(found)


def place_of_class(cls: type[Operator]) -> str:
    """File and line of the call of an operator's class."""
    return place_of(cls.__call__)


def external_reference(op: Operation, arrays: Arrays, ev: Evaluation) -> Arrays:
    """The reference results of an operator, from the method `reference` of its class on NumPy arrays."""
    operator = cast(ExternalOp, op).instance()
    function = cast("Callable[..., Any] | None", getattr(operator, "reference", None))
    if function is None:
        raise EvaluationError(
            f"{op.name} has no reference; give its class a method reference, which computes with NumPy"
        )
    return call_reference(function, arrays, {}, op, ev)


# ** values in the IR **


def encoded(value: Any, tensors: Sequence[Tensor]) -> Attribute:
    """A Python value as an attribute; a tensor becomes its number in `tensors`. `TypeError` for other types."""
    match value:
        case None:
            return UnitAttr()
        case bool():
            return IntegerAttr(int(value), i1)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case list() | tuple():
            return ArrayAttr([encoded(item, tensors) for item in cast("Sequence[Any]", value)])
        case dict():
            items = cast("dict[Any, Any]", value)
            return DictionaryAttr({str(key): encoded(item, tensors) for key, item in items.items()})
        case Tensor():
            place = next((i for i, tensor in enumerate(tensors) if tensor is value), None)
            if place is None:
                raise TypeError(f'{value.describe()} is not in _attrs["inputs"]')
            return IntegerAttr(place, IndexType())
        case IntVar() if (number := value.expr.as_int()) is not None:
            return IntegerAttr(number, i64)
        case _:
            raise TypeError(
                f"{value!r} is a {type(value).__name__}; expected numbers, strings, None, and lists and dicts of them"
            )


def decoded(attribute: Attribute, tensors: Sequence[Tensor]) -> Any:
    """The value that `encoded` wrote; `VerifyException` for another attribute."""
    match attribute:
        case UnitAttr():
            return None
        case IntegerAttr():
            number = cast("IntegerAttr[Any]", attribute)
            if isinstance(number.type, IndexType):
                if not 0 <= number.value.data < len(tensors):
                    raise VerifyException(f"there is no operand {number.value.data}")
                return tensors[number.value.data]
            return bool(number.value.data) if number.type == i1 else number.value.data
        case FloatAttr():
            return cast("FloatAttr[Any]", attribute).value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return [decoded(item, tensors) for item in attribute]
        case DictionaryAttr():
            return {key: decoded(item, tensors) for key, item in attribute.data.items()}
        case _:
            raise VerifyException(f"an operator has no option like {attribute}")


def symbols_of(scope: Scope) -> Symbols:
    """The dims of a graph as the builder's symbols."""
    return {d.name: Symbol(d.name, d.name, d.lo, d.hi, tuple(d.hints), d.upper, d.jagged) for d in scope.dims}
