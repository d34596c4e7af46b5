"""The products of tokens with the weights of their experts, as one operator of PyTorch."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch

from ait_mlir.errors import InputError
from ait_mlir.graph.decorators import graph_cache
from ait_mlir.graph.enums import moe_grouped_matmul_mode
from ait_mlir.graph.experimental.ops.running import declare, lies, new_graph, refuse_gradients, run
from ait_mlir.graph.pygraph import pygraph

MODES = {
    "none": moe_grouped_matmul_mode.NONE,
    "gather": moe_grouped_matmul_mode.GATHER,
    "scatter": moe_grouped_matmul_mode.SCATTER,
}
SCHEMA = (
    "(Tensor token, Tensor weight, Tensor first_token_offset, Tensor? token_index, Tensor? token_ks, str mode, "
    "int top_k) -> Tensor"
)


def moe_grouped_matmul(
    token: torch.Tensor,
    weight: torch.Tensor,
    first_token_offset: torch.Tensor,
    token_index: torch.Tensor | None = None,
    token_ks: torch.Tensor | None = None,
    mode: str = "none",
    top_k: int = 1,
) -> torch.Tensor:
    """The graph operation `moe_grouped_matmul` of token [1, rows, size] and weight [experts, size, columns]: [1, rows,
    columns].

    Expert i has the rows from `first_token_offset[i]`, int32 [experts, 1, 1], up to the next one. The modes are "none",
    "gather", which reads the rows `token_index`, int32 [1, rows, 1], and "scatter", which writes them and needs
    `token_ks`, int32 of the same shape, too. Raises `ValueError` for arguments that do not fit, and
    `cudnnGraphNotSupportedError` where a gradient is needed.
    """
    if mode not in MODES:
        raise InputError(f"moe_grouped_matmul: mode is {mode!r}, expected one of {', '.join(MODES)}")
    for name, given, needed in (
        ("token_index", token_index, mode != "none"),
        ("token_ks", token_ks, mode == "scatter"),
    ):
        if needed and given is None:
            raise InputError(f"moe_grouped_matmul: mode {mode!r} needs {name}")
    tensors = {"token": token, "weight": weight, "first_token_offset": first_token_offset}
    for name, given in {**tensors, "token_index": token_index, "token_ks": token_ks}.items():
        if given is not None and given.dim() != 3:
            raise InputError(f"moe_grouped_matmul: {name} has shape {list(given.shape)}, expected three dims")
    refuse_gradients("moe_grouped_matmul", token, weight)
    return OPERATOR(token, weight, first_token_offset, token_index, token_ks, mode, top_k)


def _products(
    token: torch.Tensor,
    weight: torch.Tensor,
    first_token_offset: torch.Tensor,
    token_index: torch.Tensor | None,
    token_ks: torch.Tensor | None,
    mode: str,
    top_k: int,
) -> torch.Tensor:
    given = {
        "token": token.detach(),
        "weight": weight.detach(),
        "first_token_offset": first_token_offset,
        "token_index": token_index,
        "token_ks": token_ks,
    }
    result = _result(token, weight, token_index, mode)
    return run(_graph(given, list(result.shape), mode, top_k), given, result, "y")


def _result(token: torch.Tensor, weight: torch.Tensor, token_index: torch.Tensor | None, mode: str) -> torch.Tensor:
    rows = token_index.shape[1] if mode == "gather" and token_index is not None else token.shape[1]
    return token.new_empty((1, rows, weight.shape[2]))


def _fake(*given: Any) -> torch.Tensor:
    token, weight, _, token_index, _, mode, _ = given
    return _result(token, weight, token_index, mode)


OPERATOR: Any = torch.library.custom_op("ait_graph::moe_grouped_matmul", _products, mutates_args=(), schema=SCHEMA)
OPERATOR.register_fake(_fake)


def _key(given: dict[str, torch.Tensor | None], shape: list[int], mode: str, top_k: int) -> Hashable:
    return tuple(lies(t) for t in given.values()), mode, top_k


@graph_cache(key_fn=_key)
def _graph(given: dict[str, torch.Tensor | None], shape: list[int], mode: str, top_k: int) -> pygraph:
    like = given["token"]
    assert like is not None
    graph: Any = new_graph(like)
    named = declare(graph, given)
    y = graph.moe_grouped_matmul(**named, mode=MODES[mode], top_k=top_k, name="moe")
    y.set_name("y").set_output(True).set_dim(shape).set_stride([shape[1] * shape[2], shape[2], 1])
    y.set_data_type(like.dtype)
    graph.build()
    return graph
