"""Operators that onnx itself defines by other operators: their bodies, for a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ait_mlir.importers.onnx.call import Call, element_of, shape_of
from ait_mlir.importers.onnx.known import onnx_type
from ait_mlir.importers.onnx.library import onnx


def function_of(c: Call) -> Any:
    """The `FunctionProto` of a node's operator, with the node's types; None if the operator is no function."""
    domain = "" if c.node.domain == "ai.onnx" else c.node.domain
    try:
        schema = onnx.defs.get_schema(c.node.op_type, c.version, domain)
    except onnx.defs.SchemaError:
        return None
    if schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= max(c.version, 1)]
        versions = versions or list(schema.context_dependent_function_opset_versions)
        types = [_type_of(v).SerializeToString() for v in c.inputs]
        try:
            body = schema.get_context_dependent_function_with_opset_version(
                max(versions), c.node.SerializeToString(), types
            )
        except (RuntimeError, ValueError, TypeError):
            return None
        return onnx.FunctionProto.FromString(body) if body else None
    if schema.has_function:
        return schema.function_body
    return None


def _type_of(value: Any) -> Any:
    """The type of an input, with the sizes that are numbers."""
    made = onnx.TypeProto()
    if value is None or isinstance(value, list):
        return made
    made.tensor_type.elem_type = onnx_type(element_of(value))
    made.tensor_type.shape.SetInParent()
    for dim in shape_of(value):
        one = made.tensor_type.shape.dim.add()
        if (number := dim.as_int()) is not None:
            one.dim_value = number
    return made


def bind_attributes(node: Any, given: Mapping[str, Any]) -> None:
    """Replace the references of a function's node to attributes of the call; those that are missing are left out."""
    kept = list(node.attribute)
    del node.attribute[:]
    for attribute in kept:
        if attribute.ref_attr_name:
            if (source := given.get(attribute.ref_attr_name)) is None:
                continue
            name = attribute.name
            attribute = onnx.AttributeProto()
            attribute.CopyFrom(source)
            attribute.name = name
        elif attribute.type == onnx.AttributeProto.GRAPH:
            for inner in attribute.g.node:
                bind_attributes(inner, given)
        node.attribute.append(attribute)
