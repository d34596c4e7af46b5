"""Operators with their own templates: their functions are registered, and their calls become ops."""

# `_attrs` is the documented name.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition

from ait_mlir import outside
from ait_mlir.dialects.ait.view import ReshapeOp
from ait_mlir.frontend import registry
from ait_mlir.frontend.external import (
    DIALECT,
    ExternalOp,
    encoded,
    external_reference,
    place_of_class,
    register_class,
)
from ait_mlir.frontend.external_kernel import TemplateKernel
from ait_mlir.frontend.intvar import merge_symbols
from ait_mlir.frontend.operator import Operator, mark_operator
from ait_mlir.frontend.registry import Function, functions_of, place_of
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.writer import TensorWriter
from ait_mlir.outside import OperatorError, Outside

FunctionT = TypeVar("FunctionT", bound=Function)
STANDARD = ("op", "name", "depth", "nop", "inputs", "outputs")
"""Entries of `_attrs` that are not options of an operator."""


def define(name: str, place: str) -> type[ExternalOp]:
    """The op class of an operator, which is defined at its first use or when its functions are registered."""
    full = f"{DIALECT}.{name}"
    if (row := outside.rows().get(full)) is not None:
        return cast("type[ExternalOp]", row.op)
    annotations: dict[str, Any] = {}
    members: dict[str, Any] = {
        "name": full,
        "__module__": ExternalOp.__module__,
        "__doc__": f"The operator {name} at {place}.",
        "__annotations__": annotations,
    }
    op = irdl_op_definition(cast("type[ExternalOp]", type(f"External_{name}", (ExternalOp,), members)))
    outside.add(Outside(op, place, external_reference, (TemplateKernel(op, name),)))
    return op


def reg(key: str, func: Function | None = None) -> Any:
    """Register a function under a key like "cuda.add_one.gen_function"; a decorator if only the key is given.

    Raises `RegistryError` for a key that is taken, with both places, or malformed.
    """

    def register(function: FunctionT) -> FunctionT:
        operator = registry.add(key, function)
        try:
            define(operator, place_of(function))
        except OperatorError:
            registry.discard(key)
            raise
        return function

    return register if func is None else register(func)


# ** from operators to ops **


def materialize(operator: Operator) -> list[Tensor]:
    """Add the op of an operator with its own templates, whose call added none; returns its results."""
    name = cast(str, operator._attrs["op"])
    if type(operator).gen_function is Operator.gen_function and not functions_of(name):
        raise operator.fail("the operator was not called on its inputs, so nothing computes its results")
    if not operator.inputs or not operator.outputs:
        raise operator.fail('its call has to set _attrs["inputs"] and _attrs["outputs"]')
    if not isinstance(name, str) or not name.isidentifier():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise operator.fail(f'_attrs["op"] is {name!r}; expected letters, digits and _')
    inputs, outputs = operator.inputs, operator.outputs
    symbols = merge_symbols(*(tensor.symbols for tensor in (*inputs, *outputs)))
    values = [tensor.value for tensor in inputs]
    types = [output.type for output in outputs]
    if operator._attrs.get("nop"):
        if len(inputs) != 1 or len(outputs) != 1 or inputs[0].dtype() != outputs[0].dtype():
            raise operator.fail('_attrs["nop"] is for one input and one output of the same dtype')
        op_class, properties = ReshapeOp, {}
    else:
        register_class(name, type(operator))
        op_class, properties = define(name, place_of_class(type(operator))), _properties(operator)
    results = TensorWriter(symbols).ops(op_class, *values, properties=properties, results=types)
    operator.called_with = inputs[:]
    mark_operator(cast(Operation, results[0].owner), operator)
    operator.made = [Tensor.of(result, symbols) for result in results]
    return operator.made


def _properties(operator: Operator) -> dict[str, Attribute]:
    """The arguments of the operator's constructor and call, as properties of the op."""
    found: dict[str, Attribute] = {}
    try:
        if given := operator._get_op_attributes():
            found["options"] = encoded(given, ())
        args, kwargs = operator.call_arguments
        if (
            kwargs
            or len(args) != len(operator.inputs)
            or any(a is not b for a, b in zip(args, operator.inputs, strict=True))
        ):
            found["call"] = encoded({"args": list(args), "kwargs": dict(kwargs)}, operator.inputs)
        fresh = type(operator)(**operator._get_op_attributes())._attrs
        later = {k: v for k, v in operator._attrs.items() if k not in STANDARD and _differs(fresh, k, v)}
        if later:
            found["attrs"] = encoded(later, ())
    except TypeError as error:
        raise operator.fail(f"cannot be written as text: {error}") from None
    return found


def _differs(fresh: Mapping[str, Any], key: str, value: object) -> bool:
    """Whether an entry was set after the constructor, to a value that the IR can hold."""
    if key in fresh and (fresh[key] is value or type(fresh[key]) is type(value)):
        if fresh[key] is value:
            return False
        try:
            return encoded({"v": value}, ()) != encoded({"v": fresh[key]}, ())
        except TypeError:
            return False
    try:
        encoded({"v": value}, ())
    except TypeError:
        return False
    return True
