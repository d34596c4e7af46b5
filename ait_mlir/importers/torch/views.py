"""Results of a graph of `torch.compile` that PyTorch makes itself: views of arguments and of each other, and sizes.

A compiled model returns new tensors. If a result shares memory with an argument or with another result, the model
returns the tensor that owns the memory, and PyTorch repeats the view operations on it at each call.
"""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ait_mlir.importers.torch.errors import ImportFailure, place_of
from ait_mlir.importers.torch.library import torch

_WRITING_OPERATORS = frozenset(
    getattr(operator, name) for name in dir(operator) if name.startswith("i") and hasattr(operator, f"__{name}__")
)
"""Functions of Python's in-place operators, such as `operator.iadd`."""


@dataclass(frozen=True)
class Parted:
    """A graph in two parts: one that is compiled, and one that PyTorch runs on the results of the first."""

    computed: Any
    """The graph with the tensors as results from which `finish` makes the results of the whole."""
    finish: Any
    """A graph of the arguments and of the results of `computed`; None if these are the results of the whole."""
    computes: bool = True
    """Whether `computed` has results, or writes into arguments."""


def parted(graph: Any) -> Parted:
    """Part a graph of dynamo. Raises `ImportFailure` for a result that neither part can make."""
    holders = [n for n in graph.graph.nodes if n.op == "placeholder"]
    output = next(n for n in graph.graph.nodes if n.op == "output")
    results = list(output.args[0])
    nodes = dict.fromkeys(n for n in results if isinstance(n, torch.fx.Node))
    sharing = Counter(_storage(n) for n in nodes if _is_tensor(n))
    remade = [n for n in nodes if not _is_tensor(n) or _root(n).op == "placeholder" or sharing[_storage(n)] > 1]
    if not remade:
        return Parted(graph, None)
    kept: dict[Any, None] = dict.fromkeys(n for n in nodes if n not in remade)
    finish = _Finish(holders, kept)
    made = {n: finish.node(n) for n in nodes}
    finish.graph.output(tuple(made.get(n, n) if isinstance(n, torch.fx.Node) else n for n in results))
    computes = bool(kept) or any(n.target is operator.setitem or _writes(n) for n in graph.graph.nodes)
    return Parted(_returning(graph, list(kept)), torch.fx.GraphModule(graph, finish.graph), computes)


class _Finish:
    """Writes the graph that PyTorch runs. `kept` gets the tensors that the compiled part has to return."""

    def __init__(self, holders: list[Any], kept: dict[Any, None]) -> None:
        self.graph = torch.fx.Graph()
        self._kept = kept
        self._made: dict[Any, Any] = {n: self.graph.placeholder(n.name) for n in holders}
        self._last = next(reversed(self._made.values()), None)
        for node in kept:
            self._take(node)

    def node(self, node: Any) -> Any:
        """The node of the new graph for one of the old."""
        if node in self._made:
            return self._made[node]
        if node.op == "get_attr":
            self._made[node] = self.graph.get_attr(node.target)
            return self._made[node]
        source = _source(node) if _is_tensor(node) else None
        if source is None and _is_tensor(node):
            self._kept[node] = None
            self._take(node)
        elif source is not None and _writes(node):
            if _geometry(node) != _geometry(source):
                raise ImportFailure(f"{place_of(node)}: an in-place operation changes the shape of a result")
            self._made[node] = self.node(source)
        else:
            inputs = {n: self.node(n) for n in node.all_input_nodes}
            self._made[node] = self.graph.node_copy(node, inputs.__getitem__)
        return self._made[node]

    def _take(self, node: Any) -> None:
        """A result of the compiled part: one more argument, after the earlier ones."""
        place = self.graph.inserting_before() if self._last is None else self.graph.inserting_after(self._last)
        with place:
            self._last = self._made[node] = self.graph.placeholder(node.name)


def _returning(graph: Any, kept: list[Any]) -> Any:
    """A copy of a graph that returns the values of some of its nodes."""
    copy, made = torch.fx.Graph(), dict[Any, Any]()
    for node in graph.graph.nodes:
        if node.op != "output":
            made[node] = copy.node_copy(node, made.__getitem__)
    copy.output(tuple(made[n] for n in kept))
    return torch.fx.GraphModule(graph, copy)


def _root(node: Any) -> Any:
    """The node that owns the memory of a tensor."""
    while (source := _source(node)) is not None:
        node = source
    return node


def _source(node: Any) -> Any:
    """The tensor whose memory a node shares, as its view or as the result of a write to it; None for a new tensor."""
    inner = node
    while inner.op in ("call_function", "call_method", "call_module"):
        found = next((n for n in inner.all_input_nodes if _storage(node) in _storages(n)), None)
        if found is None:
            return None
        if _is_tensor(found):
            return found
        inner = found  # several tensors at once, such as the parts of `split`
    return None


def _is_tensor(node: Any) -> bool:
    return isinstance(node.meta.get("example_value"), torch.Tensor)


def _storage(node: Any) -> int:
    return next(iter(_storages(node)))


def _storages(node: Any) -> set[int]:
    leaves = torch.utils._pytree.tree_leaves(node.meta.get("example_value"))
    return {x.untyped_storage()._cdata for x in leaves if isinstance(x, torch.Tensor)}


def _geometry(node: Any) -> Any:
    value = node.meta["example_value"]
    return list(map(str, (*value.shape, *value.stride(), value.storage_offset())))


def _writes(node: Any) -> bool:
    """Whether an operation writes into its operand and returns it."""
    if node.kwargs.get("inplace") is True or node.kwargs.get("out") is not None:
        return True
    if node.op == "call_function" and node.target in _WRITING_OPERATORS:
        return True
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return node.op.startswith("call") and name.endswith("_") and not name.endswith("__")
