"""Calls of operators from outside: from the Python builder, and rows for the PyTorch importer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import OptOperandDef, OptPropertyDef, VarOperandDef, VarResultDef

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.outside import attribute_of
from ait_mlir.outside import OperatorError, counted, message_of

if TYPE_CHECKING:
    from ait_mlir.frontend.tensor import Tensor


class Callable_(AitOp):
    """An op that the Python builder can call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            name = type(self).__name__
            raise OperatorError(
                f"{name}(...) is an op in the text of a model, made of its values; {message_of(error)}. "
                f"In Python, add it to a model with {_spelled(type(self))}"
            ) from error

    @classmethod
    def on(cls, *tensors: Any, **properties: Any) -> Any:
        """Add the op to the model that is being built; returns its result, or a list if the op declares several.

        Tensors are given in the order of the operands, or by their names; a list for operands of any number, None for
        one that is left out. Raises `BuildError` if they do not fit.
        """
        from ait_mlir.frontend.operator import Operator

        operator = Operator()
        operator.label = cls.name.rpartition(".")[2]
        groups = _operands(cls, operator, tensors, properties)
        given = [tensor for group in groups for tensor in group]
        operator.begin(*given)
        try:
            attributes = _properties(cls, groups, properties)
        except TypeError as error:
            raise operator.fail(str(error)) from None
        results = _results(cls)
        operator.outputs = operator.emit(cls, given, attributes, num_results=results)
        operator.record()
        return operator.outputs[0] if results == 1 else list(operator.outputs)


def _spelled(cls: type[AitOp]) -> str:
    """The text of the builder's call of an op: `Rotate.on(x, angle=...)`."""
    definition = cls.get_irdl_definition()
    required = [
        f"{name}=..."
        for name, prop in definition.properties.items()
        if name != "operandSegmentSizes" and not isinstance(prop, OptPropertyDef)
    ]
    return f"{cls.__name__}.on({', '.join([*(name for name, _ in definition.operands), *required])})"


def _operands(cls: type[AitOp], operator: Any, tensors: tuple[Any, ...], named: dict[str, Any]) -> list[list[Tensor]]:
    """The tensors of each operand; tensors given by name are removed from `named`."""
    definition = cls.get_irdl_definition()
    if len(tensors) > len(definition.operands):
        raise operator.fail(f"takes {counted(len(definition.operands), 'operand')}; found {len(tensors)}")
    groups: list[list[Tensor]] = []
    for i, (name, operand) in enumerate(definition.operands):
        value = tensors[i] if i < len(tensors) else named.pop(name, None)
        optional = isinstance(operand, OptOperandDef)
        several = isinstance(operand, VarOperandDef) and not optional
        if value is None and not optional and not several:
            raise operator.fail(f"the operand {name} is missing")
        groups.append(list(value or ()) if several else [] if value is None else [value])
    return groups


def _properties(cls: type[AitOp], groups: list[list[Any]], given: Mapping[str, Any]) -> dict[str, Attribute]:
    """The properties of the op; `TypeError` for a missing or unknown property, or another type."""
    declared = cls.get_irdl_definition().properties
    if unknown := [name for name in given if name not in declared]:
        raise TypeError(f"there is no {unknown[0]!r}; it takes {', '.join(declared) or 'no properties'}")
    found: dict[str, Attribute] = {}
    for name, prop in declared.items():
        if name == "operandSegmentSizes":
            found[name] = DenseArrayBase.from_list(i32, [len(group) for group in groups])
        elif name in given:
            if (attribute := attribute_of(cls, name, given[name])) is not None:
                found[name] = attribute
        elif not isinstance(prop, OptPropertyDef):
            if prop.default_value is None:
                raise TypeError(f"{name} is missing")
            found[name] = prop.default_value
    return found


def _results(cls: type[AitOp]) -> int:
    results = cls.get_irdl_definition().results
    if any(isinstance(result, VarResultDef) for _, result in results):
        raise OperatorError(f"{cls.name}: the builder needs a fixed number of results")
    return len(results)


def torch_rows(cls: type[AitOp]) -> Mapping[str, Callable[[Any], Any]]:
    """The rows of the PyTorch importer, by the name of the overload.

    `torch = "mine::rotate"` passes the arguments of the operation on by the names of operands and properties; a dict
    has a function of the importer's `Call` for each name.
    """
    given = getattr(cls, "torch", {})
    if isinstance(given, str):
        return {_overload(cls, given): lambda call: _row(cls, call)}
    if not isinstance(given, Mapping):
        raise OperatorError(f"{cls.name}: torch is {given!r}; expected a name, 'mine::rotate', or rows by name")
    rows = cast("Mapping[str, Callable[[Any], Any]]", given)
    return {_overload(cls, name): row for name, row in rows.items()}


def _overload(cls: type[AitOp], name: str) -> str:
    """`mine::rotate` and `mine.rotate.default` as PyTorch prints the overload."""
    parts = name.replace("::", ".").split(".")
    if len(parts) not in (2, 3) or not all(parts):
        raise OperatorError(f"{cls.name}: {name!r} is no operation of PyTorch; expected one like 'mine::rotate'")
    return ".".join(parts if len(parts) == 3 else (*parts, "default"))


def _row(cls: type[AitOp], call: Any) -> Any:
    """Write the op with the arguments of a call."""
    from ait_mlir.importers.torch.errors import NotSupported

    groups: list[list[SSAValue]] = []
    left = dict(call.arguments)
    for name, operand in cls.get_irdl_definition().operands:
        found = left.pop(name, None)
        if isinstance(operand, VarOperandDef) and not isinstance(operand, OptOperandDef):
            groups.append([call.w.full(value) for value in found or ()])
        else:
            groups.append([] if found is None else [call.tensor(name)])
    try:
        properties = _properties(cls, groups, left)
    except TypeError as error:
        raise NotSupported(f"{cls.name}: {error}") from None
    operands = [value for group in groups for value in group]
    results = list(call.w.ops(cls, *operands, properties=properties, count=_results(cls)))
    return results[0] if len(results) == 1 else results
