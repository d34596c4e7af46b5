"""`Graph`: a graph that is built when its `with` block ends, and called like a function."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from ait_mlir.dtypes import numpy_dtype
from ait_mlir.errors import InputError
from ait_mlir.graph.enums import data_type, heur_mode
from ait_mlir.graph.handle import Handle
from ait_mlir.graph.pygraph import pygraph
from ait_mlir.graph.tensor import tensor


class Graph:
    """A graph that allocates its workspace and its outputs.

    ```python
    with Graph() as g:
        y = g.conv_fprop(image=x, weight=w, padding=[1, 1], name="conv")  # x and w are tensors of PyTorch
        y.set_output(True)
    g.set_io_tuples(["conv::image", "conv::weight"], ["conv::Y"])
    result = g(x, w)
    ```

    Operations take tensors of PyTorch or NumPy as well as tensors of the graph. A call takes the inputs in the order of
    `set_io_tuples`, or by name, and returns the outputs in that order, or a single output without a tuple.
    """

    def __init__(
        self,
        handle: Handle | None = None,
        heuristics: Sequence[heur_mode] = (heur_mode.A,),
        inputs: Sequence[Any] | None = None,
        outputs: Sequence[Any] | None = None,
        io_data_type: Any = data_type.NOT_SET,
        intermediate_data_type: Any = data_type.FLOAT,
        compute_data_type: Any = data_type.FLOAT,
        **kwargs: Any,
    ) -> None:
        self.graph = pygraph(
            handle=handle,
            io_data_type=io_data_type,
            intermediate_data_type=intermediate_data_type,
            compute_data_type=compute_data_type,
            **kwargs,
        )
        self._heuristics = list(heuristics)
        self._inputs = None if inputs is None else list(inputs)
        self._outputs = None if outputs is None else list(outputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.graph, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            io = self.graph.io_data_type
            if io is data_type.NOT_SET:
                self.graph.io_data_type = next((t.dtype for t in self.graph.inputs()), data_type.FLOAT)
            self.graph.build(self._heuristics)

    def set_io_tuples(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Self:
        """The order of the inputs and of the outputs of a call: tensors, names such as "conv::image", or UIDs."""
        self._inputs, self._outputs = list(inputs), list(outputs)
        return self

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the graph; returns the outputs as new tensors of the inputs' framework."""
        inputs = [self._tensor(t) for t in self._inputs] if self._inputs is not None else self._free_inputs()
        if len(args) > len(inputs):
            raise InputError(f"graph '{self.graph.name}' has {len(inputs)} inputs, but {len(args)} were given")
        pack: dict[Any, Any] = dict(zip(inputs, args, strict=False))
        pack |= {self._tensor(name): value for name, value in named.items()}
        outputs = [self._tensor(t) for t in self._outputs] if self._outputs is not None else self.graph.outputs()
        for t in self.graph.outputs():
            pack.setdefault(t, self._empty(t))
        size = self.graph.get_workspace_size()
        self.graph.execute(pack, self._bytes(size) if size else None)
        found = [pack[t] for t in outputs]
        return found[0] if len(found) == 1 else tuple(found)

    def _free_inputs(self) -> list[tensor]:
        return [t for t in self.graph.inputs() if not t.is_constant]

    def _tensor(self, which: Any) -> tensor:
        """A tensor of the graph, by itself, by name or UID, or as the argument of a node: "conv::image"."""
        if isinstance(which, tensor):
            return which
        found = self.graph.find_tensor(which)
        if found is None and isinstance(which, str) and "::" in which:
            node_name, _, port = which.rpartition("::")
            node = self.graph.get_node(node_name)
            if node is not None:
                found = {**node.inputs, **node.outputs}.get(port)
        if found is None:
            raise InputError(f"graph '{self.graph.name}' has no tensor {which!r}")
        return found

    def _empty(self, t: tensor) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None:
            dtype = getattr(torch, t.dtype.value)
            return torch.empty_strided(t.get_dim(), t.get_stride(), dtype=dtype, device=self.graph.device)
        block = np.empty(int(np.prod(t.get_dim())), numpy_dtype(t.dtype.value))
        strides = [s * block.itemsize for s in t.get_stride()]
        return np.lib.stride_tricks.as_strided(block, t.get_dim(), strides)

    def _bytes(self, size: int) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None:
            return torch.empty(size, dtype=torch.uint8, device=self.graph.device)
        return np.empty(size, np.uint8)
