"""`torch.compile(model, backend="ait")`: compiles the graphs that PyTorch finds in a model.

PyTorch runs a graph that cannot be imported, and a call whose sizes are outside of the compiled range. If anything
fails while a graph is imported, compiled or called, PyTorch runs it instead; the model behaves as before. The log
`ait_mlir.torch_compile` lists compiled and refused graphs, with the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ait_mlir.errors import AitError, InputError, RunError
from ait_mlir.frontend.target import as_target
from ait_mlir.importers.torch.compiled import CompiledModule, build, from_torch
from ait_mlir.importers.torch.errors import ImportFailure
from ait_mlir.importers.torch.library import quiet, torch
from ait_mlir.options import CompileOptions

LOG = logging.getLogger("ait_mlir.torch_compile")
OF_THE_MODEL = ("graph_mode", "num_runtimes")
OPTIONS = ("measure", "budget", "precision", *OF_THE_MODEL)
MODES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "reduce-overhead": {"graph_mode": True},
    "max-autotune": {"graph_mode": True, "measure": True},
    "max-autotune-no-cudagraphs": {"measure": True},
}
"""The modes of `torch.compile`, as options."""


def backend(
    graph: Any, example_inputs: Sequence[Any], options: Mapping[str, Any] | None = None, mode: str = "default"
) -> Callable[..., Any]:
    """A callable like `graph`: compiled, or `graph` itself if it cannot be imported.

    `options` are arguments of `ait_mlir.compile` listed in `OPTIONS`; `precision` is by default
    `torch.get_float32_matmul_precision()`. `mode` is a mode of `torch.compile`: "reduce-overhead" replays CUDA graphs,
    "max-autotune" also chooses all kernels by time; `options` override it.
    """
    if mode not in MODES:
        raise ImportFailure(f"unknown mode {mode!r} of the backend 'ait'; the modes are {', '.join(MODES)}")
    if unknown := sorted(set(options or {}) - set(OPTIONS)):
        raise ImportFailure(f"unknown option {unknown[0]!r} of the backend 'ait'; the options are {', '.join(OPTIONS)}")
    given: dict[str, Any] = {
        "measure": "auto",
        "precision": torch.get_float32_matmul_precision(),
        **MODES[mode],
        **(options or {}),
    }
    load = {name: given.pop(name) for name in OF_THE_MODEL if name in given}
    try:
        chosen = CompileOptions(**given)
    except AitError as error:
        raise ImportFailure(str(error)) from None
    if torch.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in example_inputs):
        LOG.warning("a graph runs in PyTorch: it needs gradients; call the model under torch.no_grad()")
        return graph.forward
    try:
        return Part(graph, example_inputs, chosen, load)
    except Exception as error:  # whatever fails here, the program must run as without this backend
        LOG.warning(
            "a graph of %d operations runs in PyTorch: %s", _operations(graph), _told(error), exc_info=_is_fault(error)
        )
        return graph.forward


def register() -> None:
    """Make the backend known as "ait" where the package's entry points are not installed."""
    if "ait" not in torch._dynamo.list_backends(exclude_tags=None):
        torch._dynamo.register_backend(backend, name="ait")


class Part:
    """A compiled graph with its weights. Weights that were written to are copied again.

    Tensors that the graph writes, such as a static cache, are written in place in the caller's memory.
    """

    def __init__(
        self, graph: Any, example_inputs: Sequence[Any], options: CompileOptions, load: Mapping[str, Any]
    ) -> None:
        holders = [n for n in graph.graph.nodes if n.op == "placeholder"]
        self._eager = graph.forward
        weights = {i: x for i, (n, x) in enumerate(zip(holders, example_inputs, strict=True)) if _is_weight(n, x)}
        self._taken = [i for i, x in enumerate(example_inputs) if isinstance(x, torch.Tensor) and i not in weights]
        given = {i: _source(holders, i, self._taken) for i, x in enumerate(example_inputs) if not hasattr(x, "shape")}
        self._numbers = [i for i, source in given.items() if source is None]
        """The positions of integer arguments that are not the size of a tensor: each becomes the size of an empty
        tensor.
        """
        carried = {i: (len(self._taken) + n, 0) for n, i in enumerate(self._numbers)}
        sizes = {i: source or carried[i] for i, source in given.items()}
        self._device = graph_device([*(example_inputs[i] for i in self._taken), *weights.values()])
        self._moved = {i for i in self._taken if is_moved(holders[i], example_inputs[i], self._device)}
        """The positions of single numbers on the CPU that the graph copies to its device."""
        values = (*(_real(x) for x in self._inputs(example_inputs)), *self._carriers(example_inputs))
        shapes = tuple(_dynamic_axes(holders[i]) for i in self._taken) + ({0: torch.export.Dim.AUTO},) * len(carried)
        symbols = [_symbols(holders[i]) for i in self._taken]
        same = {(leaf, axis): name for leaf, axes in enumerate(symbols) for axis, name in axes.items()}
        module = _Bound(graph, len(holders), weights, sizes, self._taken, self._moved).eval()
        guards = torch._guards  # this export must not add guards to the graph around it
        with quiet(), guards.tracing(None), guards.compile_context(None):
            imported = from_torch(module, values, dynamic_shapes=(shapes,), name="graph", same_dims=same)
        devices = {x.device.type for x in (*values, *weights.values())}
        if len(devices) > 1:
            raise ImportFailure(f"the graph uses several devices: {', '.join(sorted(devices))}")
        places = {name: i for i, name in module.names.items()}
        self._state = {name: places[buffer] for name, buffer in imported.state_names.items()}
        """The positions among the arguments of the tensors that the graph writes, other than its inputs."""
        imported.state.clear()  # each call passes the caller's tensors
        self._compiled: CompiledModule = build(
            imported, replace(options, target=as_target((devices or {"cpu"}).pop()).kind), **load
        )
        self._written = [*self._state.values(), *(self._taken[leaf] for leaf in self._compiled.changed_leaves())]
        self._weights = {name: i for i, name in module.names.items() if name in imported.constants}
        states = imported.state_names.values()
        self._folded = [i for i, n in module.names.items() if n not in imported.constants and n not in states]
        self._held, self._fixed = _seen(example_inputs, self._weights.values()), _seen(example_inputs, self._folded)
        LOG.info("a graph of %d operations is compiled", _operations(graph))

    def __call__(self, *args: Any) -> Any:
        """Run the compiled graph, or the graph in PyTorch if the arguments do not fit."""
        if not _unchanged(self._fixed, _seen(args, self._folded)):
            return self._eager(*args)  # a value that was compiled into the code has changed
        try:
            if not _unchanged(self._held, held := _seen(args, self._weights.values())):
                if _is_captured(self._compiled.model.target):
                    LOG.warning("a call that is captured runs in PyTorch: weights were written to; call once before")
                    return self._eager(*args)
                for name, i in self._weights.items():
                    self._compiled.model.set_constant(name, args[i].detach().contiguous())
                self._held = held
            inputs = *self._inputs(args), *self._carriers(args)
            state = {name: args[i] for name, i in self._state.items()}
            result = self._compiled.run(inputs, state)
        except Exception as error:
            if self._written and isinstance(error, RunError):
                raise  # some of the state is already updated: PyTorch would start from wrong values
            LOG.warning("a call runs in PyTorch: %s", _told(error), exc_info=_is_fault(error))
            return self._eager(*args)
        for i in self._written:
            if not args[i].is_inference():
                torch.autograd.graph.increment_version(args[i])
        return result

    def _inputs(self, args: Sequence[Any]) -> list[Any]:
        """The arguments that are inputs of the compiled graph, on its device."""
        return [args[i].to(self._device) if i in self._moved else args[i] for i in self._taken]

    def _carriers(self, args: Sequence[Any]) -> list[Any]:
        """For each integer argument, an empty tensor with that size: it carries the integer as a dim. Raises
        `InputError` for other numbers.
        """
        numbers = [args[i].node.hint if isinstance(args[i], torch.SymInt) else args[i] for i in self._numbers]
        if wrong := [x for x in numbers if not isinstance(x, int) or x < 0]:
            raise InputError(f"an argument of the graph is the number {wrong[0]!r}, expected a whole number from 0 on")
        return [torch.empty((x, 0), device=self._device) for x in numbers]


def _bound_class() -> Any:
    class Bound(torch.nn.Module):
        """A module that holds the weights of a graph and reads the graph's integers from the shapes of its inputs."""

        def __init__(
            self,
            graph: Any,
            count: int,
            weights: Mapping[int, Any],
            sizes: Mapping[int, tuple[int, int]],
            taken: Sequence[int],
            moved: Collection[int],
        ) -> None:
            torch.nn.Module.__init__(self)
            self.graph = graph
            self.count = count
            self.names = {i: f"weight_{i}" for i in weights}
            for i, weight in weights.items():
                held = weight.detach()  # also of integers, because the importer may read positions and masks from them
                if isinstance(weight, torch.nn.Parameter) and held.is_floating_point():
                    held = torch.nn.Parameter(held, requires_grad=False)
                    self.register_parameter(self.names[i], held)
                else:
                    self.register_buffer(self.names[i], held)
            self.sizes = dict(sizes)
            self.taken = list(taken)
            self.moved = frozenset(moved)

        def forward(self, *inputs: Any) -> Any:
            given: list[Any] = [None] * self.count
            for i, name in self.names.items():
                given[i] = getattr(self, name)
            for i, value in zip(self.taken, inputs, strict=False):  # after these come the tensors that carry integers
                given[i] = value.clone() if i in self.moved else value  # the graph may write to its copy
            for i, (position, axis) in self.sizes.items():
                given[i] = inputs[position].shape[axis]
            with torch.fx.traceback.preserve_node_meta():  # keeps the places in the model's source
                return torch.fx.Interpreter(self.graph).run(*given)

    return Bound


_Bound: Any = _bound_class()


def _seen(args: Sequence[Any], places: Iterable[int]) -> list[tuple[Any, int]]:
    """The arguments at some positions, and how often each has been written to."""
    return [(x, 0 if x.is_inference() else x._version) for x in (args[i] for i in places)]


def _unchanged(before: Sequence[tuple[Any, int]], now: Sequence[tuple[Any, int]]) -> bool:
    """Whether these are the same tensors, not written to in the meantime."""
    return all(a is b and m == n for (a, m), (b, n) in zip(before, now, strict=True))


def _is_captured(target: str) -> bool:
    """Whether launches are now captured into a CUDA graph; then no copies from the host are allowed."""
    return target != "cpu" and bool(torch.cuda.is_current_stream_capturing())


def _is_weight(node: Any, value: Any) -> bool:
    attributes: Mapping[str, Any] = node.meta.get("tensor_dict") or {}
    return isinstance(value, torch.nn.Parameter) or "_dynamo_static_input_type" in attributes


def graph_device(tensors: Iterable[Any]) -> Any:
    """Where a graph runs: the first device that is not the CPU, if there is one."""
    cpu = torch.device("cpu")
    return next((x.device for x in tensors if x.device != cpu), cpu)


def is_moved(node: Any, value: Any, device: Any) -> bool:
    """Whether an input is a single number on the CPU that the graph only uses to make tensors on its own device."""
    if value.dim() or value.device.type != "cpu" or device.type == "cpu":
        return False
    made = [user.meta.get("example_value") for user in node.users]
    return all(isinstance(x, torch.Tensor) and x.device.type == device.type for x in made)


def _real(value: Any) -> Any:
    """A copy of a tensor to trace with, because the export marks its tensors, and guards would see the marks."""
    return value.detach().clone()


def _source(holders: Sequence[Any], index: int, taken: Sequence[int]) -> tuple[int, int] | None:
    """The tensor (its position in `taken`) and axis whose size is the integer at `index`; None if it is no size."""
    wanted = str(holders[index].meta.get("example_value"))
    for position, i in enumerate(taken):
        for axis, size in enumerate(holders[i].meta["example_value"].shape):
            if isinstance(size, torch.SymInt) and str(size) == wanted:
                return position, axis
    return None


def _dynamic_axes(node: Any) -> dict[int, Any]:
    value = node.meta.get("example_value")
    sizes = value.shape if value is not None else ()
    return {axis: torch.export.Dim.AUTO for axis, size in enumerate(sizes) if isinstance(size, torch.SymInt)}


def _symbols(node: Any) -> dict[int, str]:
    """PyTorch's symbol of each dynamic axis. PyTorch's guards check that axes with the same symbol
    have the same size.
    """
    value = node.meta.get("example_value")
    sizes = value.shape if value is not None else ()
    return {axis: str(size) for axis, size in enumerate(sizes) if isinstance(size, torch.SymInt)}


def _is_fault(error: Exception) -> bool:
    """Whether an error is a bug of the compiler, not a refusal; bugs are logged with their place."""
    return not isinstance(error, AitError)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if _is_fault(error) else str(error)


def _operations(graph: Any) -> int:
    return sum(n.op in ("call_function", "call_method", "call_module") for n in graph.graph.nodes)
