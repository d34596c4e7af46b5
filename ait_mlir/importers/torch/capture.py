"""`torch.export` with its refusals as clear errors, and names for the dims that it finds."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ait_mlir.importers.torch.errors import ImportFailure, place_in_source
from ait_mlir.importers.torch.library import quiet, torch

DimNames = dict[tuple[int, int], str]
"""Names of dims by leaf of the example inputs and axis."""


def capture(
    module: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> tuple[Any, DimNames]:
    """The exported program of a module on example inputs, and the names that `dynamic_shapes` gives its dims.

    Raises `ImportFailure` with the place in the model's source for what cannot be exported: control flow that depends
    on values, a dim that the model fixes although it was to be dynamic, weights without data.
    """
    if not isinstance(module, torch.nn.Module):
        raise ImportFailure(f"expected a torch.nn.Module, found {type(module).__name__}")
    if module.training:
        raise ImportFailure("the model is in training mode; call model.eval() first")
    missing = [n for n, t in (*module.named_parameters(), *module.named_buffers()) if t.device.type == "meta"]
    if missing:
        raise ImportFailure(
            f"{len(missing)} weights are on the meta device and have no data, the first {missing[0]!r}; "
            "load the model's weights, or make the model on a real device"
        )
    kwargs = dict(kwargs or {})
    names = _dim_names(module, args, kwargs, dynamic_shapes)
    try:
        with torch.no_grad(), quiet():
            program = torch.export.export(
                module, tuple(args), kwargs or None, dynamic_shapes=dynamic_shapes, strict=False
            )
    except ImportFailure:
        raise
    except Exception as error:
        raise ImportFailure(explain(error)) from error
    return program, names


def explain(error: Exception) -> str:
    """What an error of `torch.export` means for the model, where, and what to do."""
    text = str(error)
    place = place_in_source("".join(traceback.format_tb(error.__traceback__)))
    kind = type(error).__name__
    if "specialized" in text or "Constraints violated" in text or ("marked" in text and "dynamic" in text):
        return f"a dim that was to be dynamic is not: {_essence(text)}"
    if "DataDependent" in kind or "data-dependent" in text or "data dependent" in text or "unbacked" in text:
        return (
            f"the model decides by the values of a tensor at {place}; what is computed may depend on shapes only: "
            "compute both sides and choose with torch.where"
        )
    if "dynamic_shapes" in text:
        return f"dynamic_shapes does not fit the example inputs: {_essence(text)}"
    return f"torch.export cannot trace the model ({kind}) at {place}: {_essence(text)}"


def _essence(text: str) -> str:
    """The lines of a message that say what is wrong, without the debugging help after them."""
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if line.startswith("- ")]
    kept = told or [line for line in lines if line][:2]
    message = " ".join(kept)
    return re.sub(r"\s+", " ", message)[:600]


def _dim_names(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> DimNames:
    """The names of the `torch.export.Dim`s of a specification, by leaf and axis."""
    if dynamic_shapes is None:
        return {}
    leaves: list[object] = torch.utils._pytree.tree_leaves((tuple(args), dict(kwargs)))
    leaf_of: dict[int, int] = {}
    for i, leaf in enumerate(leaves):
        leaf_of.setdefault(id(leaf), i)
    names: DimNames = {}
    if isinstance(dynamic_shapes, Mapping):
        try:
            bound: Any = dict(inspect.signature(module.forward).bind(*args, **kwargs).arguments)
        except TypeError:
            bound = dict(kwargs)
    else:
        bound = [*args, *kwargs.values()]
    _collect(bound, dynamic_shapes, leaf_of, names)
    return names


def _collect(value: Any, spec: Any, leaf_of: Mapping[int, int], names: DimNames) -> None:
    if spec is None:
        return
    if isinstance(value, torch.Tensor):
        for axis, dim in _items(spec):
            name = getattr(dim, "__name__", None)
            if id(value) in leaf_of and isinstance(axis, int) and isinstance(name, str) and name.isidentifier():
                names[leaf_of[id(value)], axis % max(value.dim(), 1)] = name
        return
    specs = dict(_items(spec))
    for i, (key, inner) in enumerate(_items(value)):
        _collect(inner, specs.get(key, specs.get(i)), leaf_of, names)


def _items(tree: Any) -> list[tuple[Any, Any]]:
    """What a dict, list or tuple holds, by key or number."""
    if isinstance(tree, Mapping):
        return list(cast("Mapping[Any, Any]", tree).items())
    return list(enumerate(cast("Sequence[Any]", tree))) if isinstance(tree, list | tuple) else []
