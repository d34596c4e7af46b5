"""Shared by the operators: keys of graphs, and their execution on tensors of PyTorch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import torch

from ait_mlir.graph.enums import data_type
from ait_mlir.graph.errors import cudnnGraphNotSupportedError
from ait_mlir.graph.ops import handle_of
from ait_mlir.graph.pygraph import pygraph
from ait_mlir.graph.tensor import tensor


def lies(given: torch.Tensor | None) -> Hashable:
    """The facts about an argument that a graph depends on."""
    return None if given is None else (given.shape, given.stride(), given.dtype, given.device)


def new_graph(like: torch.Tensor) -> pygraph:
    """A graph that reads and writes the type of a tensor, and computes in FLOAT."""
    return pygraph(
        handle=handle_of(like),
        io_data_type=like.dtype,
        intermediate_data_type=data_type.FLOAT,
        compute_data_type=data_type.FLOAT,
    )


def declare(graph: pygraph, given: Mapping[str, torch.Tensor | None]) -> dict[str, tensor | None]:
    """The tensors of a graph for arguments, by the names of these."""
    return {name: None if t is None else graph.tensor_like(t).set_name(name) for name, t in given.items()}


def run(graph: pygraph, given: Mapping[str, torch.Tensor | None], result: torch.Tensor, name: str) -> torch.Tensor:
    """Run a graph on arguments, by the names of its tensors, with a workspace of its own."""
    workspace = torch.empty(graph.get_workspace_size(), dtype=torch.uint8, device=result.device)
    pack = {n: t for n, t in given.items() if t is not None}
    graph.execute({**pack, name: result}, workspace, handle=handle_of(result))
    return result


def refuse_gradients(function: str, *given: torch.Tensor | None) -> None:
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in given):
        raise cudnnGraphNotSupportedError(f"{function} has no gradient: detach its tensors, or use torch.no_grad()")
