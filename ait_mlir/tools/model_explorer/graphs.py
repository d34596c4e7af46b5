"""The graphs of a module in the JSON format of Model Explorer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from ait_mlir import driver
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait_rt.buffers import AllocOp, CopyOp, DestinationOp, ViewOp
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, ProgramOp
from ait_mlir.errors import InputError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_source
from ait_mlir.ir.source import SourceText
from ait_mlir.runtime import artifact
from ait_mlir.runtime.profile import launch_id

Values = Sequence[SSAValue]
_LONGEST = 300
"""The most characters of an attribute that a node shows."""


def read_graphs(path: str | os.PathLike[str]) -> dict[str, list[dict[str, Any]]]:
    """The graphs of IR text, or of the planned IR of an artifact. Raises `AitError` if the file has none."""
    if Path(path).suffix == ".ait":
        source = SourceText(os.fspath(path), artifact.read(path).ir_text)
        module = parse_source(context(), source)
        check(module, source)
    else:
        module, _ = driver.read_module(path)
    if not (found := graphs_of(module)):
        raise InputError(f"{os.fspath(path)} has no ait.graph, ait_rt.program or ait_rt.kernel to show")
    return found


def graphs_of(module: ModuleOp) -> dict[str, list[dict[str, Any]]]:
    """One graph for each `ait.graph` and program, and one for each kernel, which its launches link to."""
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    models = [op for op in module.ops if isinstance(op, GraphOp | ProgramOp)]
    kinds = {"model": models, "kernels": kernels.values()}
    return {kind: [_Nodes(kernels).graph(op) for op in ops] for kind, ops in kinds.items() if ops}


class _Nodes:
    """The nodes of one graph. The nodes of ops follow from the order of the text, as the launches of a profile do."""

    def __init__(self, kernels: Mapping[str, KernelOp]) -> None:
        self.kernels = kernels
        self.nodes: list[dict[str, Any]] = []
        self.launches = 0
        self.sources: dict[SSAValue, list[tuple[str, int]]] = {}
        """The node and the number of its output that compute a value. Views share the list of their buffer, so that
        all launches that write parts of a buffer are in it."""
        self.outputs: list[tuple[dict[str, Any], DestinationOp]] = []

    def graph(self, op: GraphOp | ProgramOp | KernelOp) -> dict[str, Any]:
        """The graph of a model or a kernel."""
        for i, value in enumerate(op.body.block.args):
            self.add(f"input_{i}", value.name_hint or f"input {i}", "", [], [value], {})
            self.sources[value] = [(f"input_{i}", 0)]
        self.add_block(op.body.block, "")
        for node, output in self.outputs:
            node["incomingEdges"] = self.edges([output.buffer])
        return {"id": op.sym_name.data, "nodes": self.nodes}

    def add_block(self, block: Block, namespace: str) -> None:
        """Add the ops of a block, and those in their regions."""
        for op in block.ops:
            if isinstance(op, AllocOp | ViewOp):
                self.sources[op.buffer] = self.sources[op.source] if isinstance(op, ViewOp) else []
            elif isinstance(op, LaunchOp):
                self.add_launch(op, namespace)
            else:
                self.add_op(op, namespace)

    def add_launch(self, op: LaunchOp, namespace: str) -> None:
        """Add a launch: an op that reads the buffers `ins` and writes the buffers `outs`."""
        kernel = self.kernels[op.kernel_name]
        name = launch_id(self.launches)
        self.launches += 1
        reads = [*op.ins, *([] if op.count is None else [op.count])]
        shown = {**_shown(op), "provider": kernel.provider.data}
        node = self.add(name, derived_name(kernel.compute_op()), namespace, reads, op.outs, shown)
        node["subgraphIds"] = [op.kernel_name]
        for i, value in enumerate(op.outs):
            self.sources[value].append((name, i))

    def add_op(self, op: Operation, namespace: str) -> None:
        """Add an op; with the ops in its regions it is a layer of its own."""
        name = f"{op.name}_{len(self.nodes)}"
        blocks = [block for region in op.regions for block in region.blocks]
        namespace = f"{namespace}/{name}".lstrip("/") if blocks else namespace
        named = [p.data for key, p in op.properties.items() if key.endswith("_name") and isinstance(p, StringAttr)]
        reads = [op.source] if isinstance(op, CopyOp) else op.operands
        node = self.add(name, " ".join([op.name, *named]), namespace, reads, op.results, _shown(op))
        for i, value in enumerate(op.results):
            self.sources[value] = [(name, i)]
        if isinstance(op, CopyOp):
            self.sources[op.target].append((name, 0))
        elif isinstance(op, DestinationOp):
            self.outputs.append((node, op))
            self.sources[op.buffer] = [] if op.in_place_of is None else self.sources[op.in_place_of]
        for block in blocks:
            self.sources |= {value: [(name, 0)] for value in block.args}
            self.add_block(block, namespace)

    def add(
        self, id: str, label: str, at: str, reads: Values, writes: Values, attributes: Mapping[str, str]
    ) -> dict[str, Any]:
        """Add a node in the namespace `at`."""
        types = [[{"key": "tensor_shape", "value": str(value.type)}] for value in writes]
        node: dict[str, Any] = {
            "id": id,
            "label": label,
            "namespace": at,
            "attrs": [{"key": key, "value": text} for key, text in attributes.items()],
            "incomingEdges": self.edges(reads),
            "outputsMetadata": [{"id": str(i), "attrs": attrs} for i, attrs in enumerate(types)],
        }
        self.nodes.append(node)
        return node

    def edges(self, values: Values) -> list[dict[str, str]]:
        """The edges from the nodes that compute these values."""
        return [
            {"sourceNodeId": name, "sourceNodeOutputId": str(output), "targetNodeInputId": str(i)}
            for i, value in enumerate(values)
            for name, output in self.sources[value]
        ]


def _shown(op: Operation) -> dict[str, str]:
    """The properties and the place of an op, as short texts."""
    texts = {key: str(value) for key, value in {**op.properties, **op.attributes}.items()}
    texts.pop("operandSegmentSizes", None)
    if isinstance(at := op.location, FileLineColLoc):
        texts["location"] = f"{at.filename.data}:{at.line.data}:{at.column.data}"
    return {key: text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..." for key, text in texts.items()}
