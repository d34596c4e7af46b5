"""The signature of a program: its inputs, its weights and the dims of its inputs; refuses unsupported programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ait_mlir.dims import MAX_DIM, product
from ait_mlir.importers.torch.constants import Stored
from ait_mlir.importers.torch.dims import UNBOUNDED, DimTable
from ait_mlir.importers.torch.errors import ImportFailure
from ait_mlir.importers.torch.library import torch


@dataclass(frozen=True)
class TensorInput:
    """A tensor that the caller passes: its name, its position among the leaves of the arguments, its node."""

    name: str
    leaf: int
    node: Any


@dataclass(frozen=True)
class StateInput:
    """A buffer that the program changes: its name, its node, its value before the first call."""

    name: str
    node: Any
    value: Any


@dataclass
class Inputs:
    """The inputs, buffers and weights of a program."""

    tensors: list[TensorInput] = field(default_factory=list[TensorInput])
    state: list[StateInput] = field(default_factory=list[StateInput])
    """The buffers that the program changes, each once; they are inputs after the tensors."""
    changed: dict[str, str] = field(default_factory=dict[str, str])
    """For each node that is the new value of a buffer or of a tensor, the name of that input."""
    fixed: dict[int, Any] = field(default_factory=dict[int, Any])
    """Leaves that are no tensors, with the value that the export has taken for granted."""
    sizes: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """Whole numbers that are inputs, by node; they follow from the sizes of tensors."""
    stored: dict[Any, Stored] = field(default_factory=dict[Any, Stored])
    in_spec: Any = None


def read_inputs(program: Any) -> Inputs:
    """Sort the placeholders of a program. Raises `ImportFailure` for weights without data."""
    result = Inputs(in_spec=program.call_spec.in_spec)
    nodes: dict[Any, Any] = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    kinds = torch.export.graph_signature.InputKind
    first_of: dict[Any, str] = {}
    without_data: list[str] = []
    leaf = 0
    changed_buffers = set(program.graph_signature.buffers_to_mutate.values())
    places: dict[Any, str] = {}
    for spec in program.graph_signature.input_specs:
        node: Any = nodes.get(getattr(spec.arg, "name", None))
        if spec.kind == kinds.USER_INPUT:
            val = None if node is None else node.meta.get("val")
            if node is not None and isinstance(val, torch.Tensor):
                result.tensors.append(TensorInput(node.name, leaf, node))
            elif isinstance(val, torch.SymInt):
                result.sizes[node] = val
            else:
                result.fixed[leaf] = getattr(spec.arg, "value", None)
            leaf += 1
            continue
        if spec.kind not in (kinds.PARAMETER, kinds.BUFFER, kinds.CONSTANT_TENSOR):
            raise ImportFailure(f"input {spec.target!r} is a {spec.kind.name.lower()}, which is not supported")
        tensor = stored_tensor(program, spec)
        if tensor.device.type == "meta":
            without_data.append(spec.target)
            continue
        if spec.target in changed_buffers:
            if (other := places.setdefault(tensor.untyped_storage().data_ptr(), spec.target)) != spec.target:
                raise ImportFailure(
                    f"the model changes its buffer {spec.target!r}, which shares memory with {other!r}; "
                    "give each a tensor of its own"
                )
            result.state.append(StateInput(spec.target, node, tensor))
            continue
        key = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
        name = first_of.setdefault(key, spec.target) if tensor.numel() else spec.target
        is_weight = spec.kind == kinds.PARAMETER or (spec.kind == kinds.BUFFER and tensor.is_floating_point())
        result.stored[node] = Stored(name, tensor, is_weight)
    signature = program.graph_signature
    if changed := list(getattr(signature, "parameters_to_mutate", {}).values()):
        raise ImportFailure(f"the model changes its parameter {changed[0]!r}; make it a buffer, which is state")
    result.changed = {**signature.buffers_to_mutate, **signature.user_inputs_to_mutate}
    if without_data:
        raise ImportFailure(
            f"{len(without_data)} weights are on the meta device and have no data, the first {without_data[0]!r}; "
            "load the model's weights, or make the model on a real device"
        )
    return result


def skeleton(spec: Any) -> Any:
    """Arguments or results of this structure, with small tensors as leaves, because the constructor of a cache reads
    them.
    """
    return torch.utils._pytree.tree_unflatten([torch.empty(1, 1, 1, 1)] * spec.num_leaves, spec)


def stored_tensor(program: Any, spec: Any) -> Any:
    """The data of a param, buffer or constant."""
    if spec.target in program.state_dict:
        return program.state_dict[spec.target]
    return program.constants[spec.target]


def declare_dims(
    table: DimTable,
    program: Any,
    inputs: Inputs,
    names: Mapping[tuple[int, int], str],
    hints: Mapping[str, Sequence[int]],
    same: Mapping[tuple[int, int], str] | None = None,
    most: Mapping[tuple[int, int], int] | None = None,
) -> None:
    """Name each symbol of the inputs' shapes and give it its range; axes with the same name in `same` are one dim.
    `most` has maxima for dims to which the program sets none, by leaf and axis.
    """
    first: dict[str, str] = {}
    for item in inputs.tensors if same else ():
        for axis, size in enumerate(item.node.meta["val"].shape):
            if not isinstance(size, int) and size.node.expr.is_Symbol and (item.leaf, axis) in (same or {}):
                symbol = str(size.node.expr)
                table.unite(first.setdefault((same or {})[item.leaf, axis], symbol), symbol)
    ranges = {str(symbol): r for symbol, r in program.range_constraints.items()}
    for named in (True, False):  # a dim `n` gives its symbol a better name than a dim `2*n + 1`
        for item in inputs.tensors:
            for axis, size in enumerate(item.node.meta["val"].shape):
                if isinstance(size, int) or size.node.expr.is_Integer:
                    continue
                expression = size.node.expr
                if expression.is_Symbol != named:
                    continue
                for symbol in sorted(expression.free_symbols, key=str):
                    default = f"{item.name}_dim_{axis}"
                    name = names.get((item.leaf, axis), default) if len(expression.free_symbols) == 1 else default
                    free = (most or {}).get((item.leaf, axis), UNBOUNDED) if named else UNBOUNDED
                    lo, hi = _bounds(ranges.get(str(symbol)), free)
                    if wrong := [hint for hint in hints.get(name, ()) if not lo <= hint <= hi]:
                        raise ImportFailure(f"hints: {name!r} has the hint {wrong[0]} outside its range {lo} to {hi}")
                    least = min(table.least.get(str(symbol), 0), hi)
                    lo = max(lo, least) if same is not None else lo or least  # a declared minimum stays
                    table.declare(str(symbol), name, lo, hi, hints.get(name, ()))


def examples_of(inputs: Inputs) -> dict[str, int]:
    """The value of each symbol of the inputs' shapes in the exported example."""
    sizes = [size for item in inputs.tensors for size in item.node.meta["val"].shape if not isinstance(size, int)]
    return {str(s.node.expr): s.node.hint for s in sizes if s.node.expr.is_Symbol and s.node.has_hint()}


NONE = slice(0, 0)
SELECTING = {
    "aten.masked_select.default": slice(0, 2),
    "aten.nonzero.default": slice(0, 1),
    "aten.unique_consecutive.default": slice(0, 1),
    "aten._unique2.default": slice(0, 1),
    "aten.unique_dim.default": slice(0, 1),
    "torchvision.nms.default": slice(1, 2),
}
"""Operations whose result size depends on values, with the arguments that bound it."""


def bind_dims(table: DimTable, program: Any) -> None:
    """Declare the sizes that operations bind, for example the number of true elements of a mask. A mask that the model
    computes again has the same number.
    """
    equal, first = _first_equals(program.graph), dict[Any, str]()
    for node in program.graph.nodes:
        target = str(node.target)
        among: list[Any] = list(
            node.args[1] if target == "aten.index.Tensor" else node.args[SELECTING.get(target, NONE)]
        )
        found: Any = node.meta.get("val")
        value: Any = found[0] if among and not hasattr(found, "shape") else found
        if not among or not isinstance(value, torch.Tensor) or not value.dim():
            continue
        symbols = (d for d in value.shape if not isinstance(d, int) and d.node.expr.is_Symbol)
        if (size := next((d for d in symbols if str(d) not in table), None)) is None:
            continue
        of_masks = target in ("aten.index.Tensor", "aten.nonzero.default")
        same = first.setdefault(tuple(equal.get(n) for n in among) if of_masks else equal[node], str(size))
        if same != str(size):
            table.unite(same, str(size))
            continue
        shapes = [table.shape(n.meta["val"].shape) for n in among if n is not None]
        if (axis := _axis_of_distinct(node)) is not None and shapes[0]:
            shapes = [(shapes[0][axis],)]
        table.bind(str(size), max((product(shape) for shape in shapes), key=lambda e: table.scope().bounds(e)[1]))


def _first_equals(graph: Any) -> dict[Any, Any]:
    """For each node of a graph, the first one that computes the same from the same."""
    first: dict[Any, Any] = {}
    found: dict[Any, Any] = {}
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or (schema is not None and schema.is_mutable) or _is_random(node.target):
            found[node] = node
        else:
            # as text, since slices and lists have no hash
            found[node] = first.setdefault(
                (node.target, str(torch.fx.node.map_arg((node.args, node.kwargs), found.__getitem__))), node
            )
    return found


def _is_random(target: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def _axis_of_distinct(node: Any) -> int | None:
    """The dim along which an operation looks for distinct slices; None if it looks at single elements."""
    if not str(node.target).startswith("aten.unique"):
        return None
    names = [a.name for a in node.target._schema.arguments]
    place = names.index("dim")
    return node.args[place] if place < len(node.args) else node.kwargs.get("dim")


def _bounds(found: Any, most: int) -> tuple[int, int]:
    """A symbol's range; without a maximum, up to `most`."""
    if found is None:
        return 1, most
    lo, hi = found.lower, found.upper
    low = max(int(lo), 0) if _is_finite(lo) else 0
    high = int(hi) if _is_finite(hi) and int(hi) <= MAX_DIM else max(most, low)
    return low, high


def _is_finite(bound: Any) -> bool:
    return getattr(bound, "is_finite", True) is not False and "oo" not in str(bound)
