"""Reduces a module to the smallest module that still fails, by trial: `ait reduce`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count as numbers

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException

from ait_mlir.dialects.ait.data import GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.layouts import strides_by_name
from ait_mlir.dialects.ait.types import DimsAttr, TensorType
from ait_mlir.dims import Dim, Scope

Edit = Callable[[GraphOp, Sequence[int]], None]


@dataclass
class Reducer:
    """Reduces a module while `fails` returns True for the smaller module.

    `fails` is only called with modules that verify. `tried` counts its calls.
    """

    fails: Callable[[ModuleOp], bool]
    tried: int = 0
    seen: set[str] = field(default_factory=set[str])

    def reduce(self, module: ModuleOp) -> ModuleOp:
        """The smallest failing module found; `module` must fail and is not changed."""
        while True:
            before = str(module)
            module = self._drop_graphs(module)
            for i in range(len(_graphs(module))):
                module = self._fewer(module, i, len(_graphs(module)[i].outputs()), drop_outputs)
                module = self._fewer(module, i, len(_body(_graphs(module)[i])), bypass_ops)
                module = self._fewer(module, i, len(_body(_graphs(module)[i])), cut_ops)
                module = self._fewer(module, i, len(_body(_graphs(module)[i])), part_ops)
                module = self._fewer(module, i, len(_graphs(module)[i].scope.dims), fix_dims)
            if str(module) == before:
                return module

    def _drop_graphs(self, module: ModuleOp) -> ModuleOp:
        i = 0
        while len(_graphs(module)) > 1 and i < len(_graphs(module)):
            smaller = module.clone()
            graph = _graphs(smaller)[i]
            graph.detach()
            graph.erase()
            if self._is_good(smaller):
                module = smaller
            else:
                i += 1
        return module

    def _fewer(self, module: ModuleOp, graph: int, count: int, edit: Edit) -> ModuleOp:
        """Apply an edit to as many of `count` numbered items as possible: first to halves, then to smaller parts."""
        size = max(1, count // 2)
        left = list(range(count))
        while size >= 1 and left:
            i = 0
            while i < len(left):
                # things keep their numbers: an edit is tried on the module as it was, with all that went well before
                chosen = [n for n in range(count) if n not in left] + left[i : i + size]
                smaller = module.clone()
                edit(_graphs(smaller)[graph], chosen)
                if self._is_good(smaller):
                    del left[i : i + size]
                else:
                    i += size
            size //= 2
        done = [n for n in range(count) if n not in left]
        if not done:
            return module
        smaller = module.clone()
        edit(_graphs(smaller)[graph], done)
        return smaller

    def _is_good(self, module: ModuleOp) -> bool:
        """Whether a module verifies and fails."""
        text = str(module)
        if text in self.seen:
            return False
        try:
            module.verify()
        except DiagnosticException:
            self.seen.add(text)
            return False
        self.tried += 1
        if self.fails(module):
            return True
        self.seen.add(text)
        return False


def drop_outputs(graph: GraphOp, chosen: Sequence[int]) -> None:
    """Remove outputs, by number, and the ops that only they need."""
    outputs = graph.outputs()
    for number in chosen:
        outputs[number].detach()
        outputs[number].erase()
    sweep(graph)


def bypass_ops(graph: GraphOp, chosen: Sequence[int]) -> None:
    """Replace the results of ops, by number, by an operand of the same type, or for outputs by any operand."""
    ops = _body(graph)
    for number in chosen:
        given = [v for v in ops[number].operands if isinstance(v.type, TensorType)]
        for result in ops[number].results:
            same = [v for v in given if v.type == result.type]
            if not same and all(isinstance(use.operation, OutputOp) for use in result.uses):
                same = given
            if same:
                result.replace_all_uses_with(same[0])
    sweep(graph)


def cut_ops(graph: GraphOp, chosen: Sequence[int]) -> None:
    """Replace the results of ops, by number, by new inputs, and remove ops that no output needs any more."""
    ops = _body(graph)
    for number in chosen:
        feed(graph, ops[number])
    sweep(graph)


def part_ops(graph: GraphOp, chosen: Sequence[int]) -> None:
    """Remove only these ops, by number: values that only they read become outputs, their results become inputs."""
    ops = _body(graph)
    gone = {ops[number] for number in chosen}
    stay = set(ops) - gone
    read = dict.fromkeys(v for number in chosen for v in ops[number].operands if v.owner in stay)
    ends = [v for v in read if isinstance(v.type, TensorType) and all(use.operation in gone for use in v.uses)]
    for number in chosen:
        feed(graph, ops[number])
    taken = {output.output_name.data for output in graph.outputs()}
    for value in ends:
        taken.add(name := next(n for n in (f"part{i}" for i in numbers()) if n not in taken))
        graph.block.add_op(OutputOp(name, value))
    sweep(graph)


def feed(graph: GraphOp, op: Operation) -> None:
    """Replace the results of an op by new inputs."""
    names = {name.data for name in graph.input_names.data}
    for result in op.results:
        if isinstance(result.type, TensorType) and result.uses:
            name = next(n for n in (f"cut{i}" for i in numbers(len(names))) if n not in names)
            names.add(name)
            graph.input_names = ArrayAttr([*graph.input_names.data, StringAttr(name)])
            result.replace_all_uses_with(graph.block.insert_arg(result.type, len(graph.block.args)))


def fix_dims(graph: GraphOp, chosen: Sequence[int]) -> None:
    """Restrict dims, by number, to their smallest value, without hints."""
    dims = [Dim(d.name, d.lo, d.lo) if i in chosen and d.upper is None else d for i, d in enumerate(graph.scope.dims)]
    graph.dims = DimsAttr(Scope(dims))


def sweep(graph: GraphOp) -> None:
    """Remove ops without uses, last first, then inputs without uses."""
    for op in reversed(list(graph.block.ops)):
        if not isinstance(op, OutputOp) and op.results and not any(r.uses for r in op.results):
            op.detach()
            op.erase()
    donated = set(graph.donated())
    names = list(graph.input_names.data)
    for i in reversed(range(len(names))):
        if not graph.block.args[i].uses and names[i].data not in donated:
            graph.block.erase_arg(graph.block.args[i])
            del names[i]
    graph.input_names = ArrayAttr(names)
    left = {name.data for name in names}
    graph.input_strides = strides_by_name({name: s for name, s in graph.strides().items() if name in left})


def _graphs(module: ModuleOp) -> list[GraphOp]:
    return [op for op in module.ops if isinstance(op, GraphOp)]


def _body(graph: GraphOp) -> list[Operation]:
    """The ops that can be cut, last first, because cutting a late op also removes the ops that only it needs."""
    return [op for op in reversed(list(graph.block.ops)) if not isinstance(op, OutputOp | ParamOp)]


__all__ = ["Reducer", "feed", "sweep"]
