"""Graphs whose ops become one `ait.loops`, and what both compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.data import GraphOp, OutputOp
from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.elements import form_loops, has_elements
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_text
from ait_mlir.reference.graph import evaluate_graph
from ait_mlir.reference.sampling import index_bound, random_input


def graph_of(module: ModuleOp) -> GraphOp:
    return next(op for op in module.ops if isinstance(op, GraphOp))


def as_loops(text: str) -> tuple[ModuleOp, LoopsOp]:
    """The module of a text whose ops with elements are one `ait.loops`, which computes all outputs."""
    module = parse_text(context(), text)
    graph = graph_of(module)
    members = {op for op in graph.block.ops if has_elements(op)}
    outputs = [op for op in graph.block.ops if isinstance(op, OutputOp)]
    loops = form_loops([op.value for op in outputs], members, graph.scope)
    graph.block.insert_op_before(loops, outputs[0])
    for op, result in zip(outputs, loops.results, strict=True):
        op.operands = [result]
    for op in reversed(list(graph.block.ops)):
        if op in members:
            op.detach()
            op.erase()
    check(module)
    return module, loops


def random_inputs(graph: GraphOp, dims: Mapping[str, int], seed: int, special: bool = False) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for name, value in zip(graph.input_names.data, graph.block.args, strict=True):
        t = tensor_type(value)
        shape = tuple(e.evaluate(dims) for e in t.dims)
        inputs[name.data] = random_input(name.data, shape, t, index_bound(value), seed, special)
    return inputs


def assert_same(text: str, made: ModuleOp, dims: Mapping[str, int], seed: int = 0, special: bool = False) -> None:
    """The outputs of a text and of a module made of it, on random inputs."""
    module = parse_text(context(), text)
    inputs = random_inputs(graph_of(module), dims, seed, special)
    expected = evaluate_graph(graph_of(module), inputs, {}, dims)
    found = evaluate_graph(graph_of(made), inputs, {}, dims)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-11, err_msg=f"{name} at {dims}")
