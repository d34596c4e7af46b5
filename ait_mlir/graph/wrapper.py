"""`Graph`: a graph that is built when its `with` block ends, and called like a function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Literal, Self, cast

import numpy as np

from ait_mlir.dtypes import numpy_dtype
from ait_mlir.errors import InputError
from ait_mlir.graph.enums import data_type, heur_mode
from ait_mlir.graph.errors import GraphError, StepError
from ait_mlir.graph.handle import Handle
from ait_mlir.graph.nodes import Node
from ait_mlir.graph.operations import OPERATIONS
from ait_mlir.graph.pygraph import pygraph
from ait_mlir.graph.tensor import tensor
from ait_mlir.runtime.data import empty_strided


class Graph:
    """A graph that allocates its workspace and its outputs.

    ```python
    with Graph(inputs=["conv::image", "conv::weight"], outputs=["conv::Y"]) as g:
        y = g.conv_fprop(image=x, weight=w, padding=[1, 1], name="conv")  # x and w are tensors of PyTorch
        y.set_output(True)
    result = g(x, w, handle=handle)
    results = g({"conv::image": x, "conv::weight": w})
    results["conv::Y"]
    ```

    Operations take tensors of PyTorch or NumPy as well as tensors of the graph. A tensor of a call is named by itself,
    its name, its UID, the data that an operation was given, or as an argument of a node: "conv::image", or "conv::0"
    for its first. With `workspace_alloc=False` each call needs a `workspace`.
    """

    def __init__(
        self,
        *,
        handle: Handle | Literal["auto"] | None = None,
        inputs: Sequence[Any] | None = None,
        outputs: Sequence[Any] | None = None,
        heuristics: Sequence[heur_mode] | None = None,
        workspace_alloc: bool = True,
        io_data_type: Any = data_type.NOT_SET,
        intermediate_data_type: Any = data_type.FLOAT,
        compute_data_type: Any = data_type.FLOAT,
        **kwargs: Any,
    ) -> None:
        self.graph = pygraph(
            handle=None if handle == "auto" else handle,
            io_data_type=io_data_type,
            intermediate_data_type=intermediate_data_type,
            compute_data_type=compute_data_type,
            **kwargs,
        )
        self._heuristics = list(heuristics or (heur_mode.A, heur_mode.FALLBACK))
        self._inputs = _listed(inputs, "inputs")
        self._outputs = _listed(outputs, "outputs")
        self._allocates = workspace_alloc
        self._workspace: Any = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.graph, name)
        return self._with_own_name(found) if name in OPERATIONS else found

    def _with_own_name(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method of an operation, which refuses the name of a node that exists: "name::port" names one tensor."""

        @wraps(method)
        def add(*args: Any, **kwargs: Any) -> Any:
            name = kwargs.get("name")
            if name and self.graph.get_node(name) is not None:
                raise GraphError(f"graph '{self.graph.name}' has a node '{name}' already: give each node its own name")
            return method(*args, **kwargs)

        return add

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        io = self.graph.io_data_type
        if io is data_type.NOT_SET:
            self.graph.io_data_type = next((t.dtype for t in self.graph.inputs()), data_type.FLOAT)
        self.graph.build(self._heuristics)
        self.set_io_tuples(self._inputs, self._outputs)

    def set_io_tuples(self, inputs: Sequence[Any] | None, outputs: Sequence[Any] | None) -> Self:
        """The order of the inputs and of the outputs of a call, which together are all tensors in memory."""
        self._inputs, self._outputs = _listed(inputs, "inputs"), _listed(outputs, "outputs")
        if self._is_built:
            self._check_tuple("inputs", self._inputs, self._free_inputs())
            self._check_tuple("outputs", self._outputs, self.graph.outputs())
        return self

    def __call__(self, *args: Any, handle: Handle | None = None, workspace: Any = None, **named: Any) -> Any:
        """Run the graph.

        Inputs are given in the order of `inputs`, or by keywords. Returns the outputs in the order of `outputs`, a
        single one without a tuple. One dict by name instead is returned with the outputs that it lacks added under
        "node::port".
        """
        if not self._is_built:
            raise StepError(f"graph '{self.graph.name}' is called inside its `with` block: it is built at the end")
        if len(args) == 1 and not named and isinstance(args[0], dict):
            given = cast("dict[Any, Any]", args[0])
            self._run({self._tensor(key): value for key, value in given.items()}, handle, workspace, given)
            return given
        inputs = self._free_inputs() if self._inputs is None else [self._tensor(t) for t in self._inputs]
        if len(args) > len(inputs) or (not named and len(args) < len(self._needed(inputs))):
            names = ", ".join(t.name for t in inputs)
            raise InputError(f"graph '{self.graph.name}' takes {len(inputs)} inputs ({names}), got {len(args)}")
        pack: dict[tensor, Any] = dict(zip(inputs, args, strict=False))
        pack |= {self._tensor(name): value for name, value in named.items()}
        outputs = self.graph.outputs() if self._outputs is None else [self._tensor(t) for t in self._outputs]
        self._run(pack, handle, workspace)
        found = [pack[t] for t in outputs]
        return found[0] if len(found) == 1 else tuple(found)

    def _run(
        self, pack: dict[tensor, Any], handle: Handle | None, workspace: Any, into: dict[Any, Any] | None = None
    ) -> None:
        """Execute with new tensors for the outputs that the pack lacks; `into` gets them by their names."""
        for t in self.graph.outputs():
            if t not in pack:
                pack[t] = self._empty(t)
                if into is not None:
                    into[self._port_of(t)] = pack[t]
        self.graph.execute(pack, self._space(workspace), handle=handle)

    def _space(self, workspace: Any) -> Any:
        size = self.graph.get_workspace_size()
        if workspace is not None or size == 0:
            return workspace
        if not self._allocates:
            raise InputError(
                f"graph '{self.graph.name}' was made with workspace_alloc=False: pass a workspace of {size} bytes"
            )
        if self._workspace is None:
            self._workspace = self._bytes(size)
        return self._workspace

    @property
    def _is_built(self) -> bool:
        return self.graph.get_execution_plan_count() > 0

    def _free_inputs(self) -> list[tensor]:
        return self.graph.get_inputs()

    def _needed(self, inputs: Sequence[tensor]) -> list[tensor]:
        """The inputs that a call must pass: not scalars with a number, nor data that an operation was given."""
        return [t for t in inputs if t.value is None and t not in self.graph.bound]

    def _check_tuple(self, what: str, named: list[Any] | None, all_of_them: Sequence[tensor]) -> None:
        """Raise unless a list names each of these tensors once."""
        if named is None:
            return
        found: list[tensor] = []
        for name in named:
            t = self._tensor(name)
            if t in found:
                raise InputError(f"graph '{self.graph.name}': {what} name {t.label} twice")
            if t not in all_of_them:
                raise InputError(f"graph '{self.graph.name}': {t.label} is none of the {what}")
            found.append(t)
        needed = self._needed(all_of_them) if what == "inputs" else all_of_them
        if missing := [t.label for t in needed if t not in found and t not in self.graph.bound]:
            raise InputError(f"graph '{self.graph.name}': {what} lack {', '.join(missing)}")

    def _tensor(self, which: Any) -> tensor:
        """A tensor of the graph, by itself, name, UID, data, or as an argument of a node."""
        if isinstance(which, tensor):
            return which
        if not isinstance(which, str | int):
            found = next((t for t, data in self.graph.bound.items() if data is which), None)
        else:
            found = self.graph.find_tensor(which)
        if found is None and isinstance(which, str) and "::" in which:
            node_name, _, port = which.rpartition("::")
            node = self.graph.get_node(node_name)
            found = None if node is None else _port(node, port)
        if found is None:
            named = which if isinstance(which, str | int) else f"a {type(which).__name__} that no operation was given"
            raise InputError(f"graph '{self.graph.name}' has no tensor {named!r}; it has {', '.join(self._names())}")
        return found

    def _names(self) -> list[str]:
        """The inputs and outputs as arguments of nodes."""
        return [self._port_of(t) for t in (*self._free_inputs(), *self.graph.outputs())]

    def _port_of(self, t: tensor) -> str:
        """The name NODE::PORT of a tensor: as an output of the node that computes it, else as an input of the first
        reader.
        """
        for node in self.graph.nodes:
            ports = node.outputs if t.producer is not None else node.inputs
            for port, other in ports.items():
                if other is t:
                    return f"{node.name}::{port}"
        return t.name

    def _empty(self, t: tensor) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None:
            dtype = getattr(torch, t.dtype.value)
            return torch.empty_strided(t.get_dim(), t.get_stride(), dtype=dtype, device=self.graph.device)
        return empty_strided(numpy_dtype(t.dtype.value), t.get_dim(), t.get_stride())

    def _bytes(self, size: int) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None:
            return torch.empty(size, dtype=torch.uint8, device=self.graph.device)
        return np.empty(size, np.uint8)


def _listed(names: object, what: str) -> list[Any] | None:
    """A list of tensors or names; None if there is none."""
    if names is None:
        return None
    if not isinstance(names, list | tuple):
        raise InputError(f"{what} are {names!r}, expected a list of tensors or names")
    return list(cast("Sequence[Any]", names)) or None


def _port(node: Node, port: str) -> tensor | None:
    """The tensor of a node by the name of an argument or an output, or by the position of an argument."""
    ports: Mapping[str, tensor] = {**node.inputs, **node.outputs}
    if port.isdigit():
        names = (*node.operation.lists, *node.operation.tensors)
        return ports.get(names[int(port)]) if int(port) < len(names) else None
    return ports.get(port)
