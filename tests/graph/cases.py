"""Many small cases in one graph: one compilation, and a test for each output."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from xdsl.dialects.builtin import ModuleOp

import ait_mlir.graph as cudnn
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.graph.numbers import numbers_of
from ait_mlir.reference import evaluate_graph
from ait_mlir.runtime.data import to_numpy

TYPES = {
    torch.float16: cudnn.data_type.HALF,
    torch.bfloat16: cudnn.data_type.BFLOAT16,
    torch.float32: cudnn.data_type.FLOAT,
    torch.float64: cudnn.data_type.DOUBLE,
    torch.bool: cudnn.data_type.BOOLEAN,
    torch.int8: cudnn.data_type.INT8,
    torch.uint8: cudnn.data_type.UINT8,
    torch.int32: cudnn.data_type.INT32,
    torch.int64: cudnn.data_type.INT64,
}
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5, torch.float64: 1e-12}


def first_graph(module: ModuleOp) -> GraphOp:
    """The graph of a module."""
    return next(op for op in module.ops if isinstance(op, GraphOp))


class Cases:
    """A graph with an output for each case."""

    def __init__(self, place: str, **types: Any) -> None:
        self.is_evaluated = place == "reference"
        self.device = device = "cpu" if self.is_evaluated else place
        types = {"intermediate_data_type": cudnn.data_type.FLOAT, "compute_data_type": cudnn.data_type.FLOAT, **types}
        self.handle = cudnn.create_handle(device=device)
        self.graph = cudnn.pygraph(name="cases", handle=self.handle, **types)
        self.pack: dict[Any, Any] = {}
        self.expected: dict[str, tuple[torch.Tensor, torch.Tensor, float]] = {}

    def input(self, data: torch.Tensor, **options: Any) -> Any:
        """An input with these data."""
        data = data if options.get("is_pass_by_value") else data.to(self.device)
        t = self.graph.tensor(list(data.shape), list(data.stride()), TYPES[data.dtype], **options)
        self.pack[t] = data
        return t

    def output(
        self, name: str, t: Any, expected: torch.Tensor, like: torch.Tensor | None = None, tolerance: float = 0.0
    ) -> Any:
        """The result of a case; `like` has its dtype and strides, by default the expected ones."""
        like = expected if like is None else like
        made = torch.empty_strided(tuple(expected.shape), like.stride(), dtype=like.dtype, device=self.device)
        if made.dtype.is_floating_point:
            made.fill_(float("nan"))
        t.set_output(True).set_data_type(TYPES[like.dtype]).set_dim(list(made.shape)).set_stride(list(made.stride()))
        self.pack[t] = made
        assert name not in self.expected
        self.expected[name] = (made, expected, tolerance or TOLERANCE.get(like.dtype, 0.0))
        return t

    def evaluate(self) -> Cases:
        """Compute the outputs with the reference, without a compiler: the values of the ops, not of a kernel."""
        graph = self.graph
        graph.validate()
        graph.build_operation_graph()
        numbers = numbers_of(graph, graph.code_scalars())
        lowered = graph.lowered(numbers)
        module = lowered.module.clone()
        inputs = {}
        for slot, name in zip(lowered.inputs, (n for n, _ in first_graph(module).inputs()), strict=True):
            block = np.zeros(slot.layout.shape, numpy_dtype(slot.tensor.dtype.value))
            if not slot.is_donated:
                data = to_numpy(self.pack[slot.tensor])
                steps = [s * block.itemsize for s in slot.tensor.strides]
                strided = np.lib.stride_tricks.as_strided(block, slot.tensor.dims, steps)
                strided[...] = data.reshape(slot.tensor.dims)
            inputs[name] = block
        dims = dict(zip((d.name for d in first_graph(module).scope if d.is_given), numbers.bits, strict=True))
        results = evaluate_graph(first_graph(module), inputs, {}, dims)
        for slot, value in zip(lowered.outputs, results.values(), strict=True):
            block = np.ascontiguousarray(value)
            steps = [s * block.itemsize for s in slot.tensor.strides]
            logical = np.lib.stride_tricks.as_strided(block, slot.tensor.dims, steps)
            self.pack[slot.tensor].copy_(torch.from_numpy(logical.copy()))
        return self

    def run(self, mode: Any = cudnn.heur_mode.A) -> Cases:
        if self.is_evaluated:
            return self.evaluate()
        self.graph.build([mode])
        workspace = torch.empty(self.graph.get_workspace_size(), dtype=torch.uint8, device=self.device)
        self.graph.execute(self.pack, workspace, handle=self.handle)
        if self.device != "cpu":
            torch.cuda.synchronize()
        return self

    def check(self, name: str) -> None:
        """Compare an output with its expected value."""
        made, expected, tolerance = self.expected[name]
        made = made.cpu()
        if made.dtype.is_floating_point:
            torch.testing.assert_close(
                made.double(),
                expected.double(),
                atol=tolerance,
                rtol=tolerance,
                equal_nan=True,
                msg=lambda m: f"{name}: {m}",
            )
        else:
            assert torch.equal(made, expected.to(made.dtype)), f"{name}: {made} instead of {expected}"
