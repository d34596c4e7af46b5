"""Inputs that are sequences or optionals: a model is imported for the form of an example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute

from ait_mlir.importers.errors import ImportFailure
from ait_mlir.importers.onnx.known import element_type


@dataclass(frozen=True)
class Part:
    """A tensor of an input, which is an input of the module."""

    name: str
    shape: tuple[int, ...]
    element: Attribute


Form = Part | None | list[Any]
"""A tensor, an optional without a value, or the forms of the elements of a sequence."""


def is_tensor(type_: Any) -> bool:
    return type_.WhichOneof("value") == "tensor_type"


def is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def form_of(name: str, type_: Any, example: Any) -> Form:
    """The form of an example of an input; its tensors have the names `NAME_0`, `NAME_1`, ..."""
    match type_.WhichOneof("value"):
        case "optional_type":
            return None if example is None else form_of(name, type_.optional_type.elem_type, example)
        case "sequence_type":
            if not is_list(example):
                raise ImportFailure(f"forms: input {name!r} is a sequence, found {type(example).__name__}")
            items = cast("Sequence[Any]", example)
            return [form_of(f"{name}_{i}", type_.sequence_type.elem_type, item) for i, item in enumerate(items)]
        case "tensor_type":
            if example is None or is_list(example):
                raise ImportFailure(f"forms: input {name!r} is a tensor, found {type(example).__name__}")
            return Part(name, np.shape(example), element_type(type_.tensor_type.elem_type))
        case kind:
            raise ImportFailure(f"input {name!r} is a {kind}, expected a tensor, a sequence or an optional")


def parts_of(form: Form) -> list[Part]:
    """The tensors of a form in their order."""
    if isinstance(form, list):
        return [part for item in form for part in parts_of(item)]
    return [] if form is None else [form]


def sizes_of(type_: Any, form: Form) -> dict[str, set[int]]:
    """The sizes that the named dims of an input have in its elements."""
    found: dict[str, set[int]] = {}
    match type_.WhichOneof("value"), form:
        case "optional_type", _:
            return {} if form is None else sizes_of(type_.optional_type.elem_type, form)
        case "sequence_type", list():
            for item in form:
                for name, sizes in sizes_of(type_.sequence_type.elem_type, item).items():
                    found.setdefault(name, set()).update(sizes)
        case "tensor_type", Part():
            for dim, n in zip(type_.tensor_type.shape.dim, form.shape, strict=False):
                if dim.dim_param:
                    found.setdefault(dim.dim_param, set()).add(n)
        case _:
            pass
    return found


def flat(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors of inputs by the names that they have in the module."""
    found: dict[str, Any] = {}
    for name, value in inputs.items():
        if is_list(value):
            items = cast("Sequence[Any]", value)
            found.update(flat({f"{name}_{i}": item for i, item in enumerate(items)}))
        elif value is not None:
            found[name] = value
    return found
