"""Computes constant parts of a model, such as the frequencies of a rotation, once during the import."""

from __future__ import annotations

import operator
from typing import Any

from ait_mlir.importers.torch.constants import Stored
from ait_mlir.importers.torch.library import torch

LARGEST = 1 << 20
"""The most elements of a tensor that is computed by the import and stored with the weights."""


_FROM_FILE = torch.ops.aten.from_file.default


def _may_open_files(node: Any) -> bool:
    """Whether an operation may take the name of a file: importing a program must not read or write files."""
    if node.target.namespace in ("aten", "prims"):
        return node.target is _FROM_FILE
    return any(isinstance(value, str) for value in (*node.args, *node.kwargs.values()))


class Folder:
    """Finds the nodes of a program that depend on no input and no weight, and computes them when they are asked for.

    Integers and booleans are left to the rows of the table, which keep them as formulas.
    """

    def __init__(self, graph: Any) -> None:
        self._constant: set[Any] = set()
        self._values: dict[Any, Any] = {}
        for node in graph.nodes:
            if node.op == "call_function" and self._depends_on_numbers_alone(node):
                self._constant.add(node)

    def _depends_on_numbers_alone(self, node: Any) -> bool:
        value = node.meta.get("val")
        if (
            node.target is operator.getitem
            or not isinstance(value, torch.Tensor)
            or not isinstance(node.target, torch._ops.OpOverload)
        ):
            return False
        if torch.Tag.nondeterministic_seeded in node.target.tags or node.target._schema.is_mutable:
            return False
        if _may_open_files(node):
            return False
        if not all(isinstance(d, int) for d in value.shape) or value.numel() > LARGEST:
            return False
        return all(source in self._constant for source in node.all_input_nodes)

    def stored(self, node: Any) -> Stored | None:
        """The value of a node with floats that are computed only from numbers, under a new name; else None."""
        if not self._is_folded(node):
            return None
        return Stored(f"constant.{node.name}", self._value(node), is_weight=False)

    def is_inner(self, node: Any) -> bool:
        """Whether a node is computed here and only used by nodes that are computed here."""
        return self._is_folded(node) and all(self._is_folded(user) for user in node.users)

    def _is_folded(self, node: Any) -> bool:
        return node in self._constant and node.meta["val"].dtype.is_floating_point

    def _value(self, node: Any) -> Any:
        pending = [node]
        while pending:
            current = pending[-1]
            missing = [n for n in current.all_input_nodes if n not in self._values]
            if missing:
                pending += missing
                continue
            args, kwargs = torch.fx.node.map_arg((current.args, current.kwargs), self._values.__getitem__)
            self._values[pending.pop()] = current.target(*args, **kwargs)
        return self._values[node]
