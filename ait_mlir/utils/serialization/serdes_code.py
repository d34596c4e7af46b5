"""Writes the graph of a model to a file, and makes its tensors from the file.

AITemplate's files are Python programs. These are texts of the IR, which `ait inspect`, `ait compile` and `ait-opt`
read, too; reading one executes no code. The data of weights are not part of the text: `compile_model(constants=)` takes
them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.driver import read_module
from ait_mlir.errors import InputError
from ait_mlir.frontend.graph import build_module
from ait_mlir.frontend.intvar import IntVar
from ait_mlir.frontend.lift import Emission, lift
from ait_mlir.frontend.tensor import Tensor

__all__ = ["dump_program", "get_inputs_from_graph", "get_program"]


def dump_program(
    sorted_graph: Tensor | Sequence[Tensor],
    file_path: str | os.PathLike[str],
    indent: str = "    ",
    random_constants: bool = False,
) -> None:
    """Write the model that computes tensors to a file. Of a list, outputs are the tensors that are marked as outputs,
    or all if none is. `indent` and `random_constants` have no effect."""
    tensors = [sorted_graph] if isinstance(sorted_graph, Tensor) else list(sorted_graph)
    path = Path(file_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    module = build_module([t for t in tensors if t.is_output] or tensors)
    path.write_text(str(module) + "\n", encoding="utf-8")


def get_program(file_path: str | os.PathLike[str]) -> tuple[list[Tensor], list[Tensor]]:
    """The outputs of a model in a file, and all its tensors, sorted. Raises `SourceError` for a text that does not
    parse, `InputError` for one without a model."""
    module, _ = read_module(file_path)
    if [type(op) for op in module.ops] != [GraphOp]:
        raise InputError(f"{os.fspath(file_path)} has no model before its compilation: expected one ait.graph")
    graph = lift(Emission(module, {}, {}, marked=True))
    outputs = {tensor.name: tensor for tensor in graph if tensor.is_output}
    (model,) = module.ops
    assert isinstance(model, GraphOp)
    return [outputs[op.output_name.data] for op in model.outputs()], graph


def get_inputs_from_graph(file_path: str | os.PathLike[str]) -> dict[str, list[IntVar]]:
    """The shapes of the inputs of a model in a file, by name."""
    _, graph = get_program(file_path)
    return {tensor.name or "": tensor.shape() for tensor in graph if tensor.is_input}
