"""The part of a graph that makes tensors and nodes."""

from __future__ import annotations

import inspect
import math
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, cast

from ait_mlir.callers import caller
from ait_mlir.errors import InputError
from ait_mlir.graph.binding import describe, number_of, rounded
from ait_mlir.graph.device import checked_properties
from ait_mlir.graph.enums import as_data_type, data_type, scalar_type
from ait_mlir.graph.errors import GraphArgumentError, GraphError, StepError, cudnnGraphNotSupportedError
from ait_mlir.graph.handle import Handle, checked, default_device, ordinal_of
from ait_mlir.graph.kernel_cache import checked_cache
from ait_mlir.graph.layout import row_major
from ait_mlir.graph.lowering import Lowered, lower
from ait_mlir.graph.nodes import REQUIRED, Node, Operation
from ait_mlir.graph.numbers import PORTS, Numbers
from ait_mlir.graph.operations import OPERATIONS, REFUSED
from ait_mlir.graph.plans import Planner
from ait_mlir.graph.tensor import flag, tensor, text, whole_number, whole_numbers
from ait_mlir.graph.validation import infer

EPSILON = 1e-5
"""The epsilon for which a plan is built before the caller passes one."""


class GraphBuilder:
    """A graph under construction: its tensors, nodes and UIDs."""

    def __init__(
        self,
        name: str,
        io_data_type: Any,
        intermediate_data_type: Any,
        compute_data_type: Any,
        handle: Handle | None = None,
        kernel_cache: Any = None,
        device_property: Any = None,
    ) -> None:
        self.name = name
        self.place = "{}:{}".format(*caller())
        """The line of the caller that made the graph."""
        self.io_data_type = as_data_type(io_data_type, "io_data_type")
        self.intermediate_data_type = as_data_type(intermediate_data_type, "intermediate_data_type")
        self.compute_data_type = as_data_type(compute_data_type, "compute_data_type")
        self.handle = None if handle is None else checked(handle)
        self.kernel_cache = checked_cache(kernel_cache)
        self.properties = checked_properties(device_property)
        """The device that the graph is compiled for, if the caller named one."""
        if self.handle is not None and self.properties is not None and self.handle.kind != self.properties.kind:
            raise InputError(f"the handle is of {self.handle.device}, but device_property of {self.properties.device}")
        if self.intermediate_data_type is data_type.NOT_SET:
            self.intermediate_data_type = self.compute_data_type
        if self.intermediate_data_type is data_type.NOT_SET:
            self.intermediate_data_type = self.io_data_type
        self.nodes: list[Node] = []
        self.ordered: list[Node] = []
        """The nodes of a validated graph, each after the nodes whose outputs it reads."""
        self.tensors: list[tensor] = []
        self.bound: dict[tensor, Any] = {}
        """The data that a caller passed to an operation in place of a tensor of the graph, by the tensor made for
        it."""
        self.template_device: str | None = None
        self.is_open = True
        self._given: weakref.WeakKeyDictionary[Any, tensor] = weakref.WeakKeyDictionary()

    def check_open(self, what: str) -> None:
        """Raise if the graph can no longer be changed."""
        if not self.is_open:
            raise StepError(f"graph '{self.name}': {what} after build_operation_graph; make another graph")
        self._changed()

    def _changed(self) -> None:
        """Discard earlier checks, because the graph has changed."""

    # ** tensors **

    def tensor(
        self,
        dim: Sequence[int],
        stride: Sequence[int] | None = None,
        data_type: Any = None,
        is_virtual: bool = False,
        is_pass_by_value: bool = False,
        ragged_offset: tensor | None = None,
        reordering_type: Any = None,
        name: str = "",
        uid: int | None = None,
        ragged_offset_multiplier: int = 1,
        alignment_value: int = 1,
    ) -> tensor:
        """An input of the graph, row-major without `stride`. Without a data type it takes the graph's io_data_type."""
        self.check_open("tensor()")
        t = self._new(name)
        t.dims = whole_numbers(dim, f"the dims of {t.label}")
        t.strides = row_major(t.dims) if stride is None else whole_numbers(stride, f"the strides of {t.label}")
        if len(t.dims) != len(t.strides):
            raise GraphError(f"{t.label} has dims {list(t.dims)}, but strides {list(t.strides)}: give one for each dim")
        t.has_own_dims = t.has_own_strides = True
        t.dtype = as_data_type(data_type, t.label)
        t.is_by_value = flag(is_pass_by_value, f"is_pass_by_value of {t.label}")
        if flag(is_virtual, f"is_virtual of {t.label}"):
            raise GraphError(f"{t.label} is virtual, but no node computes it; only outputs of nodes can be virtual")
        if reordering_type is not None:
            t.set_reordering_type(reordering_type)
        t.set_ragged_offset(ragged_offset).set_ragged_offset_multiplier(ragged_offset_multiplier)
        whole_number(alignment_value, f"alignment_value of {t.label}", least=1)
        if uid is not None and uid != -1:
            t.set_uid(uid)
        return t

    def tensor_like(
        self, template: Any = None, name: str = "", is_virtual: bool = False, *, input: Any = None, pyobj: Any = None
    ) -> tensor:
        """An input with the dims, strides and data type of a tensor: of a graph, PyTorch, NumPy or DLPack.

        One element in host memory is passed by value if the graph runs on another device. `input` and `pyobj` are other
        names of `template`.
        """
        given = [t for t in (template, input, pyobj) if t is not None]
        if len(given) != 1:
            raise GraphArgumentError(f"tensor_like() takes one tensor, got {len(given)}")
        template = given[0]
        if isinstance(template, tensor):
            like = self.tensor(template.get_dim(), template.get_stride(), template.dtype, name=name)
            like.is_by_value = template.is_by_value
            return like
        _, dtype, dims, strides, device = describe(f"tensor_like('{name}')", template)
        t = self.tensor(dims, strides, dtype, is_virtual, name=name)
        if device != "cpu":
            self.template_device = self.template_device or device
        elif all(n == 1 for n in dims):
            t.is_by_value = True
        return t

    def tensor_scalar(self, value: Any, scalar_type: Any = scalar_type.COMPILE_TIME_CONST, name: str = "") -> tensor:
        """A scalar. COMPILE_TIME_CONST: part of the code. RUNTIME_PARAM: a variant pack may pass another number."""
        t = self.tensor([1, 1, 1, 1], name=name, is_pass_by_value=True)
        try:
            number = number_of(t.label, value)
        except InputError as error:
            raise GraphError(str(error)) from None
        t.value = number
        whole = isinstance(number, int) and not isinstance(number, bool)
        t.dtype = data_type.INT32 if whole else data_type.FLOAT
        t.is_constant = getattr(scalar_type, "name", "") == "COMPILE_TIME_CONST"
        return t

    def _constant(self, name: str, value: float) -> tensor:
        """A scalar that no variant pack passes."""
        t = self._new(name)
        t.dims = t.strides = (1, 1, 1, 1)
        t.has_own_dims = t.has_own_strides = t.is_by_value = t.is_constant = True
        t.value, t.dtype = value, data_type.FLOAT
        return t

    def _new(self, name: str, producer: Node | None = None) -> tensor:
        label = text(name or f"tensor_{len(self.tensors)}", "the name of a tensor")
        t = tensor(self, label, producer)
        self.tensors.append(t)
        return t

    def _as_tensor(self, value: Any, node: str, port: str) -> tensor:
        """A tensor of this graph: the given tensor, or a new tensor made for the caller's data."""
        if isinstance(value, tensor):
            if value.graph is not self:
                raise GraphError(f"node '{node}': {port} is {value.origin}, not of {self.origin}")
            return value
        for known, data in self.bound.items():
            if data is value:
                return known
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = self.tensor_scalar(value, name=f"{node}::{port}")
            number.dims = number.strides = (1,)  # the result has the rank of the other operand
            return number
        try:
            t = self.tensor_like(value, name=f"{node}::{port}")
        except InputError as error:
            raise GraphError(f"node '{node}': {port} is no tensor: {error}") from None
        self.bound[t] = value
        return t

    # ** UIDs **

    def give_uid(self, t: tensor, uid: int) -> None:
        """Give a tensor a UID; `validate` refuses two tensors with one UID."""
        for other in self.tensors:
            if other is not t and other.uid == uid and not other.has_own_uid:
                other.uid = None
        t.uid, t.has_own_uid = uid, True

    def uid_of(self, t: tensor) -> int:
        """The UID of a tensor; the next free number if it has none."""
        if t.uid is None:
            taken = {other.uid for other in self.tensors}
            t.uid = next(n for n in range(1, len(taken) + 2) if n not in taken)
        return t.uid

    # ** nodes **

    def add_node(self, operation: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Add a node from the arguments of a method; returns its output, or a list of several outputs."""
        self.check_open(f"{operation.name}()")
        kwargs = _with_positional(operation, args, kwargs)
        name = kwargs.pop("name", None)
        given = "" if name is None else text(name, f"the name of a node ({operation.name})")
        if operation.expand is not None:
            name = given or f"{operation.name}.{sum(n.operation is operation for n in self.nodes)}"
            if (made := operation.expand(self, name, kwargs)) is not None:
                return made
        compute = as_data_type(kwargs.pop("compute_data_type", None), operation.name)
        out_dims = kwargs.pop("out_dims", None)
        name = given or f"{operation.name}.{sum(n.operation is operation for n in self.nodes)}"
        node = Node(name, operation, {}, {}, dict(operation.attributes), compute)
        if compute is data_type.NOT_SET:
            node.compute = self.compute_data_type
        order = _arguments(operation)
        if unknown := kwargs.keys() - {*order}:
            raise GraphArgumentError(
                f"{operation.name}() has no argument {', '.join(map(repr, sorted(unknown)))}; it has {', '.join(order)}"
            )
        self._take(node, kwargs)
        self._make_outputs(node, kwargs)
        _set_dims(node, out_dims)
        self.nodes.append(node)
        self._infer_early(node)
        if len(operation.outputs) == 1:
            return node.outputs[operation.outputs[0]]
        return [node.outputs.get(o) for o in operation.outputs]

    def _take(self, node: Node, values: dict[str, Any]) -> None:
        operation = node.operation
        for port in operation.tensors:
            value = values.get(port)
            if value is not None:
                node.inputs[port] = self._as_tensor(value, node.name, port)
            elif port not in operation.optional:
                raise GraphArgumentError(f"{operation.name}() of node '{node.name}' needs the tensor {port!r}")
        for port in operation.lists:
            several = values.get(port)
            if not isinstance(several, list | tuple):
                raise GraphArgumentError(f"{operation.name}() of node '{node.name}' needs {port!r}, a list of tensors")
            node.lists[port] = [
                self._as_tensor(v, node.name, f"{port}_{i}") for i, v in enumerate(cast("Sequence[Any]", several))
            ]
        for attribute, default in operation.attributes.items():
            value = values.get(attribute, default)
            if value is REQUIRED:
                raise GraphArgumentError(f"{operation.name}() of node '{node.name}' needs {attribute!r}")
            if isinstance(value, int) and abs(value) > sys.float_info.max:
                raise node.wrong(f"{attribute} is beyond the range of floats")
            if isinstance(default, bool) or (attribute in operation.flags and value is not None):
                value = flag(value, f"{node.label}: {attribute}")
            if attribute in operation.counts and value is not None:
                value = whole_number(value, f"{node.label}: {attribute}")
            if attribute in PORTS and value is not None and not isinstance(value, bool):
                if isinstance(value, int | float) and math.isfinite(value):
                    node.inputs[attribute] = self._constant(f"{node.name}::{attribute}", float(value))
                    value = None
                elif not isinstance(value, int | float):
                    node.inputs[attribute] = self._as_tensor(value, node.name, attribute)
                    value = None
            node.attributes[attribute] = value

    def _make_outputs(self, node: Node, values: dict[str, Any]) -> None:
        operation = node.operation
        present = operation.outputs if operation.present is None else operation.present(node)
        for port in operation.outputs:
            if port in present:
                node.outputs[port] = self._new(f"{node.name}::{port}", node)
        for port in operation.adopted:
            t = values.get(port)
            if t is None:
                continue
            if isinstance(t, tensor) and t.graph is not self:
                raise GraphError(f"node '{node.name}': {port} is {t.origin}, not of {self.origin}")
            if not isinstance(t, tensor) or t.producer is not None:
                raise GraphError(f"node '{node.name}': {port} is {t!r}, expected a tensor of this graph without a node")
            t.producer = node
            node.outputs[port] = t

    def _infer_early(self, node: Node) -> None:
        """Set the dims of the outputs if they are known already; `validate` reports errors later."""
        try:
            infer(node)
        except (GraphError, cudnnGraphNotSupportedError):
            for t in node.outputs.values():
                if not t.has_own_dims and node.operation.name not in ("reduction", "reshape"):
                    t.dims = None

    def empty_copy(self) -> Self:
        """A graph of this name, these types and this device, without tensors and nodes."""
        copy = type(self)(
            name=self.name,
            io_data_type=self.io_data_type,
            intermediate_data_type=self.intermediate_data_type,
            compute_data_type=self.compute_data_type,
            handle=self.handle,
            kernel_cache=self.kernel_cache,
            device_property=self.properties,
        )
        copy.template_device = self.template_device
        return copy

    @property
    def origin(self) -> str:
        """The graph in messages about two graphs, whose names may be equal."""
        return f"graph '{self.name}' (made at {self.place})"

    # ** its device, and its `ait` ops **

    @property
    def kind(self) -> Any:
        """The target: "cpu" or "cuda"."""
        return "cpu" if self.device == "cpu" else "cuda"

    @property
    def ordinal(self) -> int:
        """The number of the device."""
        return ordinal_of(self.device)

    @property
    def device(self) -> str:
        """The graph's device: the handle's, else that of the device properties, else that of the first template passed
        to `tensor_like`, else the default."""
        if self.handle is not None:
            return self.handle.device
        if self.properties is not None:
            return self.properties.device
        return self.template_device or default_device()

    @property
    def arch(self) -> str:
        """The architecture that the graph is compiled for; "" is that of this machine."""
        return "" if self.properties is None else self.properties.arch

    @property
    def symbol(self) -> str:
        """The name of the graph in the IR."""
        name = "".join(c if c.isalnum() or c == "_" else "_" for c in self.name)
        return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"

    def sides(self) -> tuple[list[tensor], list[tensor]]:
        """The inputs in memory and the outputs."""
        code = self.code_scalars()
        return [t for t in self.inputs() if not t.is_constant and t not in code], self.outputs()

    def lowered(self, numbers: Numbers) -> Lowered:
        """The graph as `ait` ops, for exactly its sizes and with these numbers."""
        return lower(self.symbol, self.ordered, *self.sides(), numbers)

    def planner_of(self, lowered: Lowered) -> Planner:
        """The planner of a module of this graph."""
        return Planner(lowered.module, self.kind, self.ordinal, self.arch)

    # ** queries **

    def inputs(self) -> list[tensor]:
        """The tensors that nodes read and no node computes, in the order in which they were made."""
        read = {t for node in self.nodes for t in node.reads()}
        return [t for t in self.tensors if t in read and t.producer is None]

    def get_inputs(self) -> list[tensor]:
        """The tensors that a variant pack has and no node computes."""
        return [t for t in self.inputs() if not t.is_constant]

    def outputs(self) -> list[tensor]:
        """The tensors that `execute` writes."""
        made = {t for node in self.nodes for t in node.outputs.values()}
        return [t for t in self.tensors if t in made and not t.is_virtual]

    def code_scalars(self) -> dict[tensor, float]:
        """The scalars passed by value that are arguments or constants of the code, with the number assumed for each."""
        usual = self.usual_numbers()
        return {t: n if t.value is None else rounded(float(t.value), t.dtype) for t, n in usual.items()}

    def usual_numbers(self, is_constant: bool = False) -> dict[tensor, float]:
        """The scalars with their usual numbers; with `is_constant`, the scalars that no variant pack passes."""
        found: dict[tensor, float] = {}
        for node in self.nodes:
            for port in PORTS:
                t = node.inputs.get(port)
                if t is not None and t.is_by_value and t.is_constant is is_constant:
                    found[t] = rounded(_assumed(node, port), t.dtype)
        return found

    def find_tensor(self, name_or_uid: str | int) -> tensor | None:
        """A tensor by name or UID."""
        return next((t for t in self.tensors if name_or_uid in (t.name, t.uid)), None)

    def get_node(self, name: str) -> Node | None:
        """A node by name."""
        return next((n for n in self.nodes if n.name == name), None)

    def query_tensor_attributes_of_uid(self, uid: int) -> tensor:
        """The tensor with this UID."""
        found = next((t for t in self.tensors if t.uid == uid), None)
        if found is None:
            raise InputError(f"graph '{self.name}' has no tensor with UID {uid!r}")
        return found

    get_outputs = outputs

    def inspect(self) -> dict[str, Any]:
        """The graph as plain data: its name, its tensors, and its nodes with the names of their tensors."""
        return {
            "name": self.name,
            "tensors": [
                {"name": t.name, "uid": t.uid, "dim": t.get_dim(), "stride": t.get_stride(), "data_type": t.dtype.name}
                for t in self.tensors
            ],
            "nodes": [
                {
                    "name": n.name,
                    "operation": n.operation.name,
                    "inputs": {port: t.name for port, t in n.inputs.items()},
                    "outputs": {port: t.name for port, t in n.outputs.items()},
                }
                for n in self.nodes
            ],
        }


def _arguments(operation: Operation) -> tuple[str, ...]:
    """The arguments of an operation, without the arguments that all operations have."""
    return (*operation.lists, *operation.tensors, *operation.attributes, *operation.adopted)


def _with_positional(operation: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """All arguments by their names. Raises `TypeError` for too many arguments, and for an argument given twice."""
    order = _arguments(operation)
    if operation.positional:
        order = (*operation.tensors, *operation.positional)
    if len(args) > len(order):
        wanted = f"takes {len(order)} arguments, got {len(args)}: {', '.join(order)}"
        raise GraphArgumentError(f"{operation.name}() {wanted}")
    values = dict(zip(order, args, strict=False))
    if twice := values.keys() & kwargs.keys():
        raise GraphArgumentError(f"{operation.name}() got {', '.join(sorted(twice))} twice")
    return values | kwargs


def _set_dims(node: Node, out_dims: Any) -> None:
    """Set the dims of outputs to the caller's `out_dims`: dims of the first output, or a dict of dims by output."""
    if out_dims is None:
        return
    by_name = cast("dict[str, Any]", out_dims) if isinstance(out_dims, dict) else {node.operation.outputs[0]: out_dims}
    for port, dims in by_name.items():
        if port not in node.outputs:
            raise node.wrong(f"out_dims are for {port!r}; the outputs are {', '.join(node.outputs)}")
        node.outputs[port].set_dim(dims)


def _assumed(node: Node, port: str) -> float:
    """The usual number of a scalar, for which a plan is built before the caller passes one."""
    if port == "epsilon":
        return EPSILON
    return max(1, int((node.inputs["q"].dims or (1,))[-1])) ** -0.5


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods of a graph that add nodes, and the methods of unsupported operations, which raise."""
    for operation in OPERATIONS.values():
        yield operation.name, _method(operation)
    yield "scaled_dot_product_flash_attention", _method(OPERATIONS["sdpa"])
    for name, reason in REFUSED.items():
        yield name, _refusal(name, reason)


def _method(operation: Operation) -> Callable[..., Any]:
    def method(self: GraphBuilder, *args: Any, **kwargs: Any) -> Any:
        return self.add_node(operation, args, kwargs)

    named = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("self", named)]
    has_default = False
    for name in (*operation.lists, *operation.tensors):
        has_default |= name in operation.optional
        default: Any = None if has_default else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, named, default=default))
    keyword = inspect.Parameter.KEYWORD_ONLY
    defaults: dict[str, Any] = {"compute_data_type": None, "name": "", **operation.attributes}
    for name in operation.positional:
        default = inspect.Parameter.empty if defaults[name] is REQUIRED else defaults[name]
        parameters.append(inspect.Parameter(name, named, default=default))
    others = [n for n in (*operation.attributes, "compute_data_type", "name") if n not in operation.positional]
    for name in others:
        default = inspect.Parameter.empty if defaults[name] is REQUIRED else defaults[name]
        parameters.append(inspect.Parameter(name, keyword, default=default))
    parameters += [inspect.Parameter(name, keyword, default=None) for name in (*operation.adopted, "out_dims")]
    cast(Any, method).__signature__ = inspect.Signature(parameters)
    method.__name__ = operation.name
    method.__qualname__ = f"pygraph.{operation.name}"
    method.__doc__ = f"{operation.doc or f'Pointwise {operation.name}.'} Returns {', '.join(operation.outputs)}."
    return method


def _refusal(name: str, reason: str) -> Callable[..., Any]:
    def method(self: GraphBuilder, *args: Any, **kwargs: Any) -> Any:
        node = kwargs.get("name") or name
        raise cudnnGraphNotSupportedError(f"node '{node}' ({name}): {reason}")

    method.__name__ = name
    method.__qualname__ = f"pygraph.{name}"
    method.__doc__ = f"Not supported: {reason}."
    return method
