"""`torch.compile(model, backend="ait")`: compiles the graphs that PyTorch finds in a model.

A graph is compiled again for a call whose sizes are outside of the compiled ranges. PyTorch runs a graph that cannot be
imported. If anything fails while a graph is imported, compiled or called, PyTorch runs it, too; the model behaves as
before. One `FallbackWarning` for each graph says so, with the reason and the place. The log `ait_mlir.torch_compile`
lists compiled and refused graphs, and each call that runs in PyTorch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ait_mlir import callers
from ait_mlir.dims import MAX_DIM
from ait_mlir.errors import AitError, InputError, RunError
from ait_mlir.frontend.target import as_target
from ait_mlir.importers.torch.compiled import CompiledModule, build, from_torch, graph_device
from ait_mlir.importers.torch.constants import is_code
from ait_mlir.importers.torch.dims import UNBOUNDED
from ait_mlir.importers.torch.errors import ImportFailure, place_of
from ait_mlir.importers.torch.fast_path import OPERATIONS
from ait_mlir.importers.torch.library import quiet, torch
from ait_mlir.importers.torch.run_numbers import is_number_input, may_vary
from ait_mlir.importers.torch.views import parted
from ait_mlir.options import CompileOptions

LOG = logging.getLogger("ait_mlir.torch_compile")
OF_THE_MODEL = ("graph_mode", "num_runtimes")
OPTIONS = ("measure", "budget", "precision", "deterministic", "freeze", *OF_THE_MODEL)
MODES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "reduce-overhead": {"graph_mode": True},
    "max-autotune": {"graph_mode": True, "measure": True},
    "max-autotune-no-cudagraphs": {"measure": True},
}
"""The modes of `torch.compile`, as options."""
MOST_VARIANTS = 8
"""How many times a graph is compiled for different values of the numbers that its code must know, and with these, for
sizes outside of the ranges compiled before.
"""
LEAST_ROOM = 16
"""The least maximum of a free dim."""


class FallbackWarning(UserWarning):
    """A graph of `torch.compile`, or a call of one, runs in PyTorch. `warnings.simplefilter("error", ...)` with this
    class makes it an error."""


def backend(
    graph: Any, example_inputs: Sequence[Any], options: Mapping[str, Any] | None = None, mode: str = "default"
) -> Callable[..., Any]:
    """A callable like `graph`: compiled, or `graph` itself if it cannot be imported.

    `options` are the arguments of `ait_mlir.compile` that `OPTIONS` names; without `precision`, it is
    `torch.get_float32_matmul_precision()`. With `freeze`, the model copies the weights, in the order in which its
    kernels read them fastest. `mode` is one of `torch.compile`: "reduce-overhead" replays CUDA graphs, "max-autotune"
    also chooses all kernels by time; `options` go before it.
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
    if not isinstance(freeze := given.pop("freeze", False), bool):
        raise ImportFailure(f"the option 'freeze' of the backend 'ait' is {freeze!r}, expected True or False")
    try:
        chosen = CompileOptions(**given)
    except AitError as error:
        raise ImportFailure(str(error)) from None
    if torch.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in example_inputs):
        _fall_back(f"{_title(graph)} runs in PyTorch: it needs gradients; call the model under torch.no_grad()")
        return graph.forward
    try:
        return Graph(graph, example_inputs, chosen, load, freeze)
    except Exception as error:  # on any error of ours, the program runs as without us
        failure = error
    _fall_back(f"{_title(graph)} runs in PyTorch: {_told(failure)}", failure)
    return graph.forward


def register() -> None:
    """Make the backend known as "ait" where the package's entry points are not installed."""
    if "ait" not in torch._dynamo.list_backends(exclude_tags=None):
        torch._dynamo.register_backend(backend, name="ait")


class Graph:
    """A graph of dynamo as a callable: a compiled part, and a part that PyTorch runs on the results of the first.

    Floats of Python are arguments of the graph. Those that kernels can read are inputs of the compiled part; for the
    values of the others, such as the epsilon of a norm, it is compiled again. Integers that kernels can read are
    inputs, too; others become dims, which are not negative. If no graph with these dims can be compiled, it is compiled
    again for the values of integers, too.
    """

    def __init__(
        self,
        graph: Any,
        example_inputs: Sequence[Any],
        options: CompileOptions,
        load: Mapping[str, Any],
        freeze: bool,
    ) -> None:
        self._graph = graph
        self._eager = graph.forward
        self._parts = parted(graph)
        self._how = options, load, freeze
        holders = [n for n in graph.graph.nodes if n.op == "placeholder"]
        floats = [i for i, (n, x) in enumerate(zip(holders, example_inputs, strict=True)) if is_number_input(n, x)]
        integers = [i for i, x in enumerate(example_inputs) if not hasattr(x, "shape") and _is_no_size(holders, i)]
        self._fixed = [i for i in floats if not may_vary(holders[i])]
        self._variants: dict[tuple[int | float, ...], Variants] = {}
        self._largest: dict[tuple[int, int], int] = {}
        """The largest size for which the graph was compiled, by position of the argument and axis."""
        self._warned = False
        if not self._parts.computes:
            LOG.info("a graph of %s makes only views and sizes, as PyTorch does", _operations(graph))
            return
        ways = [(self._fixed, True)]
        ways += [(floats, True)] if self._fixed != floats else []
        ways += [(floats, False)] if any(not hasattr(x, "shape") for x in example_inputs) else []
        ways += [(sorted({*floats, *integers}), False)] if integers else []
        for n, (self._fixed, self._reads_integers) in enumerate(ways):
            try:
                self._compile(example_inputs)
                break
            except Exception:
                if n == len(ways) - 1:
                    raise

    def __call__(self, *args: Any) -> Any:
        """Run compiled, in PyTorch where the arguments do not fit."""
        if not self._parts.computes or (variants := self._variants_for(args)) is None:
            return self._eager(*args)
        try:
            found = self._run(variants, args)
        except Refused as error:
            self._call_falls_back(error.cause, error.reason)
            return self._eager(*args)
        return found if self._parts.finish is None else self._parts.finish.forward(*args, *found)

    def _run(self, variants: Variants, args: Sequence[Any]) -> Any:
        """The results of the first compiled part that takes these arguments, or of a new one for their sizes. Raises
        `Refused` if there is none.
        """
        refused: Refused | None = None
        for part in variants.parts:
            try:
                return part.run(args)
            except Refused as error:
                refused = error
        assert refused is not None, "there are parts"
        if not isinstance(refused.cause, InputError) or not variants.may_grow:
            raise refused
        variants.may_grow = False  # unless the new part takes the arguments
        try:
            self._compile(args)
        except Exception as error:
            raise Refused(_told(error), error) from error
        found = variants.parts[0].run(args)
        variants.may_grow = len(variants.parts) < MOST_VARIANTS
        return found

    def _variants_for(self, args: Sequence[Any]) -> Variants | None:
        """The compiled parts for these numbers; None if there are none."""
        key = tuple(_number(args[i]) for i in self._fixed)
        if key not in self._variants:
            if len(self._variants) >= MOST_VARIANTS:
                self._call_falls_back(None, f"it was compiled for {MOST_VARIANTS} values of its numbers before")
                return None
            try:
                self._compile(args)
            except Exception as error:  # as for the first values
                self._variants[key] = Variants()
                self._call_falls_back(error, _told(error))
        return self._variants[key] if self._variants[key].parts else None

    def _compile(self, args: Sequence[Any]) -> None:
        """Add a part for these numbers and sizes. A free dim has room for 4,096, or, if the graph cannot be compiled
        so, for about twice the largest size of a call.
        """
        numbers = {i: _number(args[i]) for i in self._fixed}
        for place, size in _sizes_of(args):
            self._largest[place] = max(size, self._largest.get(place, 0))
        rooms = {place: max(LEAST_ROOM, 1 << (2 * size - 1).bit_length()) for place, size in self._largest.items()}
        ways = ({place: max(UNBOUNDED, room) for place, room in rooms.items()}, rooms)
        for most in ways:
            try:
                part = Part(self._parts.computed, args, numbers, most, self._reads_integers, *self._how)
                break
            except Exception:
                if most is rooms or not _is_dynamic(self._graph):
                    raise
        else:
            raise AssertionError("the last way returns or raises")
        self._variants.setdefault(tuple(numbers.values()), Variants()).parts.insert(0, part)
        LOG.info("a graph of %s is compiled", _operations(self._graph))

    def _call_falls_back(self, error: Exception | None, reason: str) -> None:
        text = f"a call of {_title(self._graph)} runs in PyTorch: {reason}"
        if self._warned:
            _log(text, error)
        else:
            self._warned = True
            _fall_back(text, error)


@dataclass
class Variants:
    """The compiled parts of a graph for the same floats and different ranges of sizes, the newest first."""

    parts: list[Part] = field(default_factory=list["Part"])
    may_grow: bool = True
    """Whether the graph is compiled again for sizes that no part takes."""


class Refused(Exception):
    """The compiled part does not accept a call. Nothing was written."""

    def __init__(self, reason: str, cause: Exception | None = None) -> None:
        super().__init__(reason)
        self.reason, self.cause = reason, cause


class Part:
    """A compiled graph. It reads the tensors of each call where they are, weights among them.

    Integers that the importer takes for positions or masks become code; a call with others is refused. With `freeze`,
    weights are copied, and copied again if PyTorch's count of writes or their place says that they have changed.
    Tensors that the graph writes, such as a static cache, are written in place in the caller's memory.
    """

    def __init__(
        self,
        graph: Any,
        example_inputs: Sequence[Any],
        numbers: Mapping[int, int | float],
        most: Mapping[tuple[int, int], int],
        reads_integers: bool,
        options: CompileOptions,
        load: Mapping[str, Any],
        freeze: bool,
    ) -> None:
        holders = [n for n in graph.graph.nodes if n.op == "placeholder"]
        tensors = {i: x for i, x in enumerate(example_inputs) if isinstance(x, torch.Tensor) and i not in numbers}
        weights = {i for i, x in tensors.items() if _is_weight(holders[i], x)}
        inner = {i: tensors[i] for i in weights if freeze or is_code(tensors[i])}
        self._extents = {i: _extent(tensors[i]) for i in weights}
        self._taken = [i for i in tensors if i not in inner]
        given = {
            i: _source(holders, i, self._taken)
            for i, x in enumerate(example_inputs)
            if not hasattr(x, "shape") and i not in numbers
        }
        self._numbers = [i for i, source in given.items() if source is None]
        """The positions of integer arguments that are not the size of a tensor: each becomes the size of an empty
        tensor, or is held by a tensor.
        """
        self._held = {i for i in self._numbers if reads_integers and may_vary(holders[i])}
        carried = {i: (len(self._taken) + n, None if i in self._held else 0) for n, i in enumerate(self._numbers)}
        sizes = {i: source or carried[i] for i, source in given.items()}
        self._device = graph_device([*tensors.values(), *_made(graph)])
        self._moved = {
            i
            for i in self._taken
            if is_moved(holders[i], tensors[i], self._device) or is_number_input(holders[i], tensors[i])
        }
        """The positions of single numbers on the CPU that the graph copies to its device."""
        values = (*(_real(x, i in weights) for i, x in self._inputs(example_inputs)), *self._carriers(example_inputs))
        shapes = (
            *(_dynamic_axes(holders[i]) for i in self._taken),
            *({} if i in self._held else {0: torch.export.Dim.AUTO} for i in self._numbers),
        )
        symbols = [_symbols(holders[i]) for i in self._taken]
        same = {(leaf, axis): name for leaf, axes in enumerate(symbols) for axis, name in axes.items()}
        leaves = {i: n for n, i in enumerate(self._taken)} | {i: n for i, (n, _) in carried.items()}
        rooms = {
            (leaves[i], axis): min(room, _declared_maximum(holders[i], axis))
            for (i, axis), room in most.items()
            if i in leaves
        }
        module = _Bound(graph, len(holders), inner, sizes, numbers, self._taken, self._moved).eval()
        guards = torch._guards  # what this export assumes must not be checked at each call of the outer one
        dynamic = (shapes,) if shapes else None
        with quiet(), guards.tracing(None), guards.compile_context(None):
            imported = from_torch(module, values, dynamic_shapes=dynamic, name="graph", same_dims=same, most=rooms)
        devices = {self._device.type, *(x.device.type for x in (*values, *inner.values()))}
        if len(devices) > 1:
            raise ImportFailure(f"the graph uses several devices: {', '.join(sorted(devices))}")
        places = {name: i for i, name in module.names.items()}
        self._state = {name: places[buffer] for name, buffer in imported.state_names.items()}
        """The positions among the arguments of the tensors that the graph writes, other than its inputs."""
        imported.state.clear()  # each call passes the caller's tensors
        self._compiled: CompiledModule = build(
            imported, replace(options, target=as_target(self._device.type).kind), **load
        )
        self._written = [*self._state.values(), *(self._taken[leaf] for leaf in self._compiled.changed_leaves())]
        self._copied = {name: i for name, i in places.items() if name in imported.constants}
        states = imported.state_names.values()
        self._coded = [i for n, i in places.items() if n not in imported.constants and n not in states]
        self._seen = _marks(example_inputs, self._copied.values())
        self._assumed = [(i, _marks(example_inputs, (i,)), example_inputs[i].clone()) for i in self._coded]

    def run(self, args: Sequence[Any]) -> Any:
        """The results of the graph. Raises `Refused`, and `RunError` where the graph has written something already."""
        for i, marks, value in self._assumed:  # on a card, a comparison of the numbers would wait for it
            same = torch.equal(args[i], value) if value.device.type == "cpu" else _marks(args, (i,)) == marks
            if not same:
                raise Refused(f"argument {i}, whose numbers are part of the code, has changed")
        if self._written and (i := self._overlapping(args)) is not None:
            raise Refused(f"it writes into a tensor that shares memory with its argument {i}")
        try:
            self._copy_weights(args)
            inputs = *(x for _, x in self._inputs(args)), *self._carriers(args)
            state = {name: args[i] for name, i in self._state.items()}
            result = self._compiled.run(inputs, state)
        except Refused:
            raise
        except Exception as error:
            if self._written and isinstance(error, RunError):
                raise  # some of the state is written: PyTorch would start from another one
            raise Refused(_told(error), error) from error
        for i in self._written:
            if not args[i].is_inference():
                torch.autograd.graph.increment_version(args[i])
        return result

    def _copy_weights(self, args: Sequence[Any]) -> None:
        if (seen := _marks(args, self._copied.values())) == self._seen:
            return
        if _is_captured(self._compiled.model.target):
            raise Refused("the call is captured, and weights were written to; call once before")
        for name, i in self._copied.items():
            self._compiled.model.set_constant(name, args[i].detach().contiguous())
        self._seen = seen

    def _overlapping(self, args: Sequence[Any]) -> int | None:
        """An argument that shares memory with another one that the graph writes."""
        spans: dict[int, tuple[int, int]] = {}
        for i, x in enumerate(args):
            if isinstance(x, torch.Tensor) and (extent := self._extents.get(i) or _extent(x)):
                spans[i] = (start := x.data_ptr()), start + extent
        written = [(i, spans[i]) for i in self._written if i in spans]
        return next((i for i, (a, b) in spans.items() for j, (c, d) in written if i != j and a < d and c < b), None)

    def _inputs(self, args: Sequence[Any]) -> list[tuple[int, Any]]:
        """The tensors that are given at each call, with their positions."""
        given = ((i, args[i]) for i in self._taken)
        return [
            (i, x.to(self._device) if i in self._moved else x.detach() if type(x) is not torch.Tensor else x)
            for i, x in given
        ]

    def _carriers(self, args: Sequence[Any]) -> list[Any]:
        """For each integer argument, a tensor that holds it, or an empty tensor with that size, which carries the
        integer as a dim. Raises `InputError` for a number that is no size.
        """
        numbers = {i: args[i].node.hint if isinstance(args[i], torch.SymInt) else args[i] for i in self._numbers}
        if wrong := [x for i, x in numbers.items() if not isinstance(x, int) or (x < 0 and i not in self._held)]:
            raise InputError(f"an argument of the graph is the number {wrong[0]!r}, expected a whole number from 0 on")
        return [
            torch.tensor(x, device=self._device) if i in self._held else torch.empty((x, 0), device=self._device)
            for i, x in numbers.items()
        ]


@dataclass(frozen=True)
class _Number:
    """A float that is a constant of the code; it replaces the tensor in which PyTorch passes it."""

    value: float

    def item(self) -> float:
        return self.value


def _bound_class() -> Any:
    class Autocasting(torch.fx.Interpreter):
        """Runs a graph of dynamo: enters the autocasts that the graph names, writes layers as their parts, and runs
        what a training would compute again.
        """

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target is torch.amp.autocast_mode._enter_autocast:
                kind, dtype, enabled, caches = args
                entered = torch.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=caches)
                entered.__enter__()
                return entered
            if target is torch.amp.autocast_mode._exit_autocast:
                return args[0].__exit__(None, None, None)
            if target is torch.ops.higher_order.tag_activation_checkpoint:
                return Autocasting(args[0]).run(*args[1:])
            return torch.fx.Interpreter.call_function(self, OPERATIONS.get(target, target), args, kwargs)

    class Bound(torch.nn.Module):
        """A graph with some weights and floats inside, and its sizes taken from its tensors."""

        def __init__(
            self,
            graph: Any,
            count: int,
            weights: Mapping[int, Any],
            sizes: Mapping[int, tuple[int, int | None]],
            numbers: Mapping[int, int | float],
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
            self.numbers = {i: v if isinstance(v, int) else _Number(v) for i, v in numbers.items()}
            self.taken = list(taken)
            self.moved = frozenset(moved)

        def forward(self, *inputs: Any) -> Any:
            given: list[Any] = [None] * self.count
            for i, name in self.names.items():
                given[i] = getattr(self, name)
            for i, value in zip(self.taken, inputs, strict=False):  # then those that carry a number
                given[i] = value.clone() if i in self.moved else value  # a copy for the graph, too, which may write it
            for i, number in self.numbers.items():
                given[i] = number
            for i, (position, axis) in self.sizes.items():
                given[i] = inputs[position].item() if axis is None else inputs[position].shape[axis]
            with torch.fx.traceback.preserve_node_meta():  # keeps the places in the model's source
                return Autocasting(self.graph).run(*given)

    return Bound


_Bound: Any = _bound_class()


def _marks(args: Sequence[Any], places: Iterable[int]) -> list[tuple[int, ...]]:
    """For each of some arguments, its address, strides, and PyTorch's count of writes to it."""
    found = (args[i] for i in places)
    return [(x.data_ptr(), *x.stride(), 0 if x.is_inference() else x._version) for x in found]


def _is_captured(target: str) -> bool:
    """Whether launches are now captured into a CUDA graph; then no copies from the host are allowed."""
    return target != "cpu" and bool(torch.cuda.is_current_stream_capturing())


def _is_weight(node: Any, value: Any) -> bool:
    attributes: Mapping[str, Any] = node.meta.get("tensor_dict") or {}
    return isinstance(value, torch.nn.Parameter) or "_dynamo_static_input_type" in attributes


def is_moved(node: Any, value: Any, device: Any) -> bool:
    """Whether an input is a single number on the CPU that the graph only uses to make tensors on its own device."""
    if value.dim() or value.device.type != "cpu" or device.type == "cpu":
        return False
    made = [user.meta.get("example_value") for user in node.users]
    return all(isinstance(x, torch.Tensor) and x.device.type == device.type for x in made)


def _real(value: Any, is_weight: bool) -> Any:
    """A tensor to trace with: a copy, because the export marks tensors, and guards would see the marks. A weight is not
    copied.
    """
    return value.detach() if is_weight else value.detach().clone()


def _extent(value: Any) -> int:
    """The bytes from the first element of a tensor to the end of its last one; 0 without elements."""
    if not value.numel():
        return 0
    steps = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    return (steps + 1) * value.element_size()


def _made(graph: Any) -> list[Any]:
    """The tensors of a graph as it was traced."""
    values = (n.meta.get("example_value") for n in graph.graph.nodes)
    return [value for value in values if isinstance(value, torch.Tensor)]


def _source(holders: Sequence[Any], index: int, taken: Sequence[int]) -> tuple[int, int] | None:
    """The tensor (its position in `taken`) and axis whose size is the integer at `index`; None if it is no size."""
    wanted = str(holders[index].meta.get("example_value"))
    for position, i in enumerate(taken):
        for axis, size in enumerate(holders[i].meta["example_value"].shape):
            if isinstance(size, torch.SymInt) and str(size) == wanted:
                return position, axis
    return None


def _is_no_size(holders: Sequence[Any], index: int) -> bool:
    """Whether the integer at `index` is no size of a tensor argument."""
    tensors = [i for i, n in enumerate(holders) if isinstance(n.meta.get("example_value"), torch.Tensor)]
    return _source(holders, index, tensors) is None


def _number(value: Any) -> int | float:
    """The value of an argument that is a number: an integer, that of its example in a trace, or a float in a tensor."""
    if isinstance(value, torch.SymInt):
        return int(value.node.hint)
    return value if isinstance(value, int) else float(value)


def _dynamic_axes(node: Any) -> dict[int, Any]:
    value = node.meta.get("example_value")
    sizes = value.shape if value is not None else ()
    return {axis: torch.export.Dim.AUTO for axis, size in enumerate(sizes) if isinstance(size, torch.SymInt)}


def _is_dynamic(graph: Any) -> bool:
    """Whether a size of an input, or an integer among them, may change."""
    values = (n.meta.get("example_value") for n in graph.graph.nodes if n.op == "placeholder")
    sizes = (size for x in values for size in (x.shape if isinstance(x, torch.Tensor) else (x,)))
    return any(isinstance(size, torch.SymInt) for size in sizes)


def _sizes_of(args: Sequence[Any]) -> list[tuple[tuple[int, int], int]]:
    """The sizes of arguments by position and axis; an integer is the size of one axis."""
    found: list[tuple[tuple[int, int], int]] = []
    for i, x in enumerate(args):
        sizes = x.shape if isinstance(x, torch.Tensor) else (x,) if isinstance(x, int | torch.SymInt) else ()
        known = (size.node.hint if isinstance(size, torch.SymInt) else size for size in sizes)
        found += [((i, axis), size) for axis, size in enumerate(known) if size is not None]
    return found


def _declared_maximum(node: Any, axis: int) -> int:
    """The maximum that `mark_dynamic` sets to an axis of an argument, else that of any dim."""
    value = node.meta.get("example_value")
    size = value.shape[axis] if isinstance(value, torch.Tensor) else value
    if not isinstance(size, torch.SymInt):
        return MAX_DIM
    bounds = size.node.shape_env.var_to_range.get(size.node.expr)
    return int(bounds.upper) if bounds is not None and bounds.upper.is_Integer else MAX_DIM


def _symbols(node: Any) -> dict[int, str]:
    """PyTorch's symbol of each dynamic axis. PyTorch's guards check that axes with the same symbol
    have the same size.
    """
    value = node.meta.get("example_value")
    sizes = value.shape if value is not None else ()
    return {axis: str(size) for axis, size in enumerate(sizes) if isinstance(size, torch.SymInt)}


def _is_fault(error: Exception) -> bool:
    """Whether an error is a bug of the compiler rather than a refusal; bugs are logged with their place."""
    return not isinstance(error, AitError)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if _is_fault(error) else str(error)


def _operations(graph: Any) -> str:
    count = sum(n.op.startswith("call") for n in graph.graph.nodes)
    return f"{count} operation{'' if count == 1 else 's'}"


def _title(graph: Any) -> str:
    """A graph by its size and the place of its first operation."""
    first = next((n for n in graph.graph.nodes if n.op.startswith("call") and n.meta.get("stack_trace")), None)
    return f"a graph of {_operations(graph)}" + (f" at {place_of(first)}" if first is not None else "")


def _fall_back(text: str, error: Exception | None = None) -> None:
    _log(text, error)
    callers.warn(text, FallbackWarning)


def _log(text: str, error: Exception | None) -> None:
    LOG.info(text, exc_info=error if error is not None and _is_fault(error) else None)
