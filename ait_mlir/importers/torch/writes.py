"""In-place operations on parts of computed tensors, as operations that make new tensors, without another trace.

PyTorch's own rewrite traces the whole program again, which takes longer than the rest of the import: an unrolled
recurrence writes each of its rows.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.rows import row_named

aten = torch.ops.aten
VIEWS = {
    "aten.alias.default", "aten.detach.default", "aten.expand.default", "aten.permute.default", "aten.select.int",
    "aten.slice.Tensor", "aten.squeeze.dim", "aten.squeeze.dims", "aten.transpose.int", "aten.unsqueeze.default",
    "aten.view.default",
}  # fmt: skip
"""Operations whose result always shares memory with their operand, and shows the same part of it whenever they run."""
FILLS = {
    "aten.fill_.Scalar": "aten.full_like.default",
    "aten.fill_.Tensor": "aten.copy.default",
    "aten.zero_.default": "aten.zeros_like.default",
}
"""Operations that make what an in-place operation of another name writes."""


class _Unknown(Exception):
    """The program has a write that only a trace can rewrite."""


def without_writes(program: Any, is_kept: Callable[[Any], bool]) -> Any:
    """The program with writes to computed tensors, and to views of them, as new tensors; None if it has others.

    `is_kept` are the writes that the importer reads as they are.
    """
    try:
        return _Rewriter(program, is_kept).run()
    except _Unknown:
        return None


class _Rewriter:
    """Copies a graph. A tensor that is written has a new node after each write; views are made again where they are
    used after a write."""

    def __init__(self, program: Any, is_kept: Callable[[Any], bool]) -> None:
        self.program, self.is_kept = program, is_kept
        self.graph = torch.fx.Graph()
        self.made: dict[Any, Any] = {}
        """The current node of each node of the program that is no view."""
        self.views: dict[Any, tuple[int, Any]] = {}
        """The last node of a view, and the number of writes before it."""
        self.operand: dict[Any, Any] = {}
        """The tensor whose memory a node shows: the operand of a view, the tensor that an operation writes."""
        self.may_share: dict[Any, tuple[Any, int]] = {}
        """For a node that may be a copy or a view, the tensor whose memory it would show, and the writes before it."""
        self.writes: dict[Any, int] = {}
        """How often a tensor has been written."""

    def run(self) -> Any:
        for node in self.program.graph.nodes:
            if node.op == "output":
                self.graph.output(torch.fx.node.map_arg(node.args[0], self.value))
            else:
                self.copy(node)
        module = torch.fx.GraphModule(self.program.graph_module, self.graph)
        module.meta.update(self.program.graph_module.meta)
        signature = copy.deepcopy(self.program.graph_signature)
        new = next(n for n in self.graph.nodes if n.op == "output")
        old = next(n for n in self.program.graph.nodes if n.op == "output")
        new.meta = dict(old.meta)
        leaves = (torch.utils._pytree.tree_leaves(n.args) for n in (old, new))
        names = {a.name: b.name for a, b in zip(*leaves, strict=True) if isinstance(a, torch.fx.Node)}
        for spec in signature.output_specs:
            if (name := getattr(spec.arg, "name", None)) in names:
                spec.arg.name = names[name]
        return self.program._update(module, signature)

    def copy(self, node: Any) -> None:
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable and not self.is_kept(node):
            self.write(node)
        elif str(node.target) in VIEWS and not (schema is not None and schema.is_mutable):
            self.operand[node] = node.args[0]  # made where it is used
        else:
            made = self.graph.node_copy(node, self.value)
            self.made[node] = made
            shared = self.shared(node, schema)
            if shared is not None:
                base = self.base(shared)
                self.may_share[node] = base, self.writes.get(base, 0)

    def shared(self, node: Any, schema: Any) -> Any:
        """An operand whose memory the result of an operation other than `VIEWS` may show; None for a new tensor."""
        if node.target is operator.getitem:
            return node.args[0]
        if schema is None or schema.is_mutable or all(r.alias_info is None for r in schema.returns):
            return None
        tensors = [a for a in node.all_input_nodes if isinstance(a.meta.get("val"), torch.Tensor)]
        return tensors[0] if tensors else None

    def base(self, node: Any) -> Any:
        """The tensor that owns the memory which a node shows."""
        while node in self.operand or node in self.may_share:
            node = self.operand[node] if node in self.operand else self.may_share[node][0]
        return node

    def value(self, node: Any) -> Any:
        """The node of the new graph that has the current value of a node of the program, after the writes so far."""
        if node in self.may_share:
            base, writes = self.may_share[node]
            if self.writes.get(base, 0) != writes:
                raise _Unknown
        if node not in self.operand:
            return self.made[node]
        if str(node.target) not in VIEWS:  # a write: its result is the tensor that it writes
            return self.value(self.operand[node])
        writes = self.writes.get(self.base(node), 0)
        if node not in self.views or self.views[node][0] != writes:
            made = self.graph.node_copy(node, self.value)
            self.views[node] = writes, made
        return self.views[node][1]

    def write(self, node: Any) -> None:
        written = node.args[0] if node.args else None
        base = None if written is None else self.base(written)
        if base is None or not self.is_new(base):
            raise _Unknown
        value = self.result(node, written)
        place = written
        while place in self.operand:
            value = self.put(place, value, node)
            place = self.operand[place]
        if place is not base:  # what may be a copy
            raise _Unknown
        self.made[base] = value
        self.writes[base] = self.writes.get(base, 0) + 1
        self.operand[node] = written

    def is_new(self, node: Any) -> bool:
        """Whether a node owns its memory, and no input of the program shares it."""
        schema = getattr(node.target, "_schema", None)
        return node.op == "call_function" and schema is not None and isinstance(node.meta.get("val"), torch.Tensor)

    def result(self, node: Any, written: Any) -> Any:
        """What an in-place operation writes, as the result of the operation that makes a new tensor."""
        name = FILLS.get(str(node.target), str(node.target).replace("_.", ".", 1))
        packet, _, overload = name.removeprefix("aten.").partition(".")
        target = getattr(getattr(aten, packet, None), overload, None)
        kinds = {a.meta["val"].dtype for a in node.all_input_nodes if isinstance(a.meta.get("val"), torch.Tensor)}
        is_copy = packet == "copy"
        if target is None or row_named(name) is None or (len(kinds) > 1 and not is_copy):
            raise _Unknown
        return self.call(target, node.args, node.kwargs, node, written)

    def put(self, place: Any, value: Any, node: Any) -> Any:
        """The operand of a view with `value` in the place of the view."""
        name, operand, rest = str(place.target), self.operand[place], place.args[1:]
        if name not in VIEWS or name in ("aten.alias.default", "aten.detach.default"):
            return value
        scatter = {"aten.slice.Tensor": aten.slice_scatter.default, "aten.select.int": aten.select_scatter.default}
        if name in scatter:
            return self.call(scatter[name], (operand, value, *rest), place.kwargs, node, operand)
        if name == "aten.transpose.int":
            return self.call(aten.transpose.int, (value, *rest), {}, node, operand)
        if name == "aten.unsqueeze.default":
            return self.call(aten.squeeze.dim, (value, *rest), {}, node, operand)
        raise _Unknown

    def call(self, target: Any, args: Any, kwargs: Any, node: Any, like: Any) -> Any:
        """A new operation in the place of `node`, with the type of `like`."""

        def here(a: Any) -> Any:
            return a if a.graph is self.graph else self.value(a)

        args, kwargs = (torch.fx.node.map_arg(part, here) for part in (args, kwargs))
        made = self.graph.create_node("call_function", target, args, kwargs, name="written")
        made.meta = {**node.meta, "val": like.meta["val"]}
        return made
