"""Keeps recurrent layers whole while `torch.export` traces a model.

PyTorch finds the shapes of an LSTM's results by running its steps one by one, which turns dynamic dims into numbers.
Here the shapes follow from those of the operands.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import Any

from ait_mlir.importers.torch.library import torch


def _output(x: Any, hidden: Any, directions: int) -> Any:
    """[S, B, directions * H], or [B, S, directions * H] if the batch comes first"""
    return x.new_empty((x.shape[0], x.shape[1], directions * hidden.shape[2]))


def _lstm(
    x: Any,
    hx: Sequence[Any],
    params: Any,
    biased: bool,
    layers: int,
    dropout: float,
    train: bool,
    both: bool,
    first: bool,
) -> tuple[Any, ...]:
    return _output(x, hx[0], 2 if both else 1), torch.empty_like(hx[0]), torch.empty_like(hx[1])


def _plain(
    x: Any, hx: Any, params: Any, biased: bool, layers: int, dropout: float, train: bool, both: bool, first: bool
) -> tuple[Any, ...]:
    return _output(x, hx, 2 if both else 1), torch.empty_like(hx)


SHAPES: dict[str, Callable[..., tuple[Any, ...]]] = {
    "lstm": _lstm,
    "gru": _plain,
    "rnn_tanh": _plain,
    "rnn_relu": _plain,
}


def is_cast_layer(op: Any, kind: str) -> bool:
    """Whether autocast computes a layer in its type: each on a CUDA card, on a CPU only an LSTM."""
    names = SHAPES if kind == "cuda" else ("lstm",)
    return any(op is getattr(torch.ops.aten, name).input for name in names)


@contextlib.contextmanager
def whole_layers() -> Generator[None]:
    """During a trace, give `aten.lstm.input` and its siblings results of the right shapes, without values."""
    keys = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)
    table = torch._decomp.decomposition_table  # PyTorch computes fake tensors of dynamic sizes with this table
    ops = {getattr(torch.ops.aten, name).input: shapes for name, shapes in SHAPES.items()}
    kept = {op: dict(op.py_kernels) for op in ops}
    composed = {op: table[op] for op in ops if op in table}
    try:
        for op, shapes in ops.items():
            op.py_kernels.update(dict.fromkeys(keys, shapes))
            op._dispatch_cache.clear()
            table[op] = shapes
        yield
    finally:
        for op, kernels in kept.items():
            op.py_kernels.clear()
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()
            table.pop(op)
        table.update(composed)
