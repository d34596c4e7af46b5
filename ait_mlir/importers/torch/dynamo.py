"""`torch.compile(model, backend="ait")`: compiles the graphs that PyTorch finds in a model.

PyTorch runs a graph that cannot be imported, and a call whose sizes are outside of the compiled range. The model
behaves as before, and parts of it are faster. The log `ait_mlir.torch_compile` lists compiled and refused graphs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ait_mlir.errors import AitError, InputError
from ait_mlir.frontend.target import as_target
from ait_mlir.importers.torch.capture import capture
from ait_mlir.importers.torch.compiled import CompiledModule, build
from ait_mlir.importers.torch.errors import ImportFailure
from ait_mlir.importers.torch.library import quiet, torch
from ait_mlir.importers.torch.program import import_program

LOG = logging.getLogger("ait_mlir.torch_compile")
OPTIONS = ("measure", "graph_mode", "num_runtimes")


def backend(graph: Any, example_inputs: Sequence[Any], options: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """A callable like `graph`: compiled, or `graph` itself if it cannot be imported.

    `options` are those of `ait_mlir.compile` among `measure`, `graph_mode` and `num_runtimes`.
    """
    if unknown := sorted(set(options or {}) - set(OPTIONS)):
        raise ImportFailure(f"unknown option {unknown[0]!r} of the backend 'ait'; the options are {', '.join(OPTIONS)}")
    if torch.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in example_inputs):
        LOG.warning("a graph runs in PyTorch: it needs gradients; call the model under torch.no_grad()")
        return graph.forward
    try:
        return Part(graph, example_inputs, options or {})
    except AitError as error:
        LOG.warning("a graph of %d operations runs in PyTorch: %s", _operations(graph), error)
        return graph.forward


def register() -> None:
    """Make the backend known as "ait" where the package's entry points are not installed."""
    if "ait" not in torch._dynamo.list_backends(exclude_tags=None):
        torch._dynamo.register_backend(backend, name="ait")


class Part:
    """A graph that is compiled, with its weights, which are copied again when they have been written to."""

    def __init__(self, graph: Any, example_inputs: Sequence[Any], options: Mapping[str, Any]) -> None:
        holders = [n for n in graph.graph.nodes if n.op == "placeholder"]
        self._eager = graph.forward
        weights = {i: x for i, (n, x) in enumerate(zip(holders, example_inputs, strict=True)) if _is_weight(n, x)}
        self._taken = [i for i, x in enumerate(example_inputs) if isinstance(x, torch.Tensor) and i not in weights]
        sizes = {
            i: _source(holders, i, self._taken) for i, x in enumerate(example_inputs) if not isinstance(x, torch.Tensor)
        }
        values = tuple(_real(example_inputs[i]) for i in self._taken)
        shapes = tuple(_dynamic_axes(holders[i]) for i in self._taken)
        module = _Bound(graph, len(holders), weights, sizes, self._taken).eval()
        guards = torch._guards  # what this export assumes must not be checked at each call of the outer one
        with quiet(), guards.tracing(None), guards.compile_context(None):
            program, names = capture(module, values, dynamic_shapes=(shapes,), may_call=False)
            imported = import_program(program, "graph", dim_names=names)
        if imported.graph.donated():
            raise ImportFailure("the graph changes its inputs or buffers, which belong to the model that PyTorch runs")
        devices = {x.device.type for x in (*values, *weights.values())}
        if len(devices) > 1:
            raise ImportFailure(f"the graph uses several devices: {', '.join(sorted(devices))}")
        self._compiled: CompiledModule = build(imported, as_target((devices or {"cpu"}).pop()), **options)
        held = {f"weight_{i}": weight.detach() for i, weight in weights.items()}
        self._weights = {name: held.pop(name) for name in imported.constants if name in held}
        self._folded = held
        self._versions, self._folded_versions = _versions(self._weights), _versions(self._folded)
        LOG.info("a graph of %d operations is compiled", _operations(graph))

    def __call__(self, *args: Any) -> Any:
        """Run compiled, in PyTorch where the arguments do not fit."""
        if _versions(self._folded) != self._folded_versions:
            return self._eager(*args)  # what was compiled into the code has changed
        if (versions := _versions(self._weights)) != self._versions:
            if _is_captured(self._compiled.model.target):
                LOG.warning("a call that is captured runs in PyTorch: weights were written to; call once before")
                return self._eager(*args)
            for name, weight in self._weights.items():
                self._compiled.model.set_constant(name, weight.contiguous())
            self._versions = versions
        try:
            return self._compiled(*(args[i] for i in self._taken))
        except InputError as error:
            LOG.warning("a call runs in PyTorch: %s", error)
            return self._eager(*args)


def _bound_class() -> Any:
    class Bound(torch.nn.Module):
        """A graph with its weights inside and its sizes taken from its tensors."""

        def __init__(
            self,
            graph: Any,
            count: int,
            weights: Mapping[int, Any],
            sizes: Mapping[int, tuple[int, int]],
            taken: Sequence[int],
        ) -> None:
            torch.nn.Module.__init__(self)
            self.graph = graph
            self.count = count
            self.names = {i: f"weight_{i}" for i in weights}
            for i, weight in weights.items():
                held = weight.detach()  # of integers, too, which the importer may take for positions or masks
                if held.is_floating_point():
                    held = torch.nn.Parameter(held, requires_grad=False)
                    self.register_parameter(self.names[i], held)
                else:
                    self.register_buffer(self.names[i], held)
            self.sizes = dict(sizes)
            self.taken = list(taken)

        def forward(self, *inputs: Any) -> Any:
            given: list[Any] = [None] * self.count
            for i, name in self.names.items():
                given[i] = getattr(self, name)
            for i, value in zip(self.taken, inputs, strict=True):
                given[i] = value
            for i, (position, axis) in self.sizes.items():
                given[i] = inputs[position].shape[axis]
            with torch.fx.traceback.preserve_node_meta():  # the places in the model's source go over into the export
                return torch.fx.Interpreter(self.graph).run(*given)

    return Bound


_Bound: Any = _bound_class()


def _versions(weights: Mapping[str, Any]) -> list[int]:
    """How often each tensor has been written to."""
    return [0 if w.is_inference() else w._version for w in weights.values()]


def _is_captured(target: str) -> bool:
    """Whether what is launched now goes into a CUDA graph, where nothing may be copied from the host."""
    return target != "cpu" and bool(torch.cuda.is_current_stream_capturing())


def _is_weight(node: Any, value: Any) -> bool:
    told: Mapping[str, Any] = node.meta.get("tensor_dict") or {}
    return isinstance(value, torch.nn.Parameter) or "_dynamo_static_input_type" in told


def _real(value: Any) -> Any:
    """A tensor to trace with, of its own: the export leaves marks on tensors, which guards would see."""
    return value.detach().clone()


def _source(holders: Sequence[Any], index: int, taken: Sequence[int]) -> tuple[int, int]:
    """The tensor, by position, and axis whose size a whole number is."""
    wanted = str(holders[index].meta.get("example_value"))
    for position, i in enumerate(taken):
        for axis, size in enumerate(holders[i].meta["example_value"].shape):
            if isinstance(size, torch.SymInt) and str(size) == wanted:
                return position, axis
    raise ImportFailure(f"the number {wanted} is an input of the graph and the size of none of its tensors")


def _dynamic_axes(node: Any) -> dict[int, Any]:
    value = node.meta.get("example_value")
    sizes = value.shape if value is not None else ()
    return {axis: torch.export.Dim.AUTO for axis, size in enumerate(sizes) if isinstance(size, torch.SymInt)}


def _operations(graph: Any) -> int:
    return sum(n.op in ("call_function", "call_method", "call_module") for n in graph.graph.nodes)
