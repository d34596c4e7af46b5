"""Packed sequences of PyTorch: sequences of different lengths in a recurrent layer.

PyTorch's packed tensor has the sum of the lengths as its size, which depends on values. Here a packed sequence is
opaque during a trace: it holds the padded tensor and the lengths. A layer on it becomes one operation with the lengths
as an operand, and the row of this operation writes a loop that stops each sequence at its length.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from ait_mlir.importers.torch.library import torch

LAYERS = {"lstm": 2, "gru": 1, "rnn_tanh": 1, "rnn_relu": 1}
"""The number of states of each layer."""


class Lengths:
    """The lengths [B] in place of PyTorch's `batch_sizes`, with the operations on them that PyTorch's modules use."""

    device = torch.device("cpu")

    def __init__(self, values: Any) -> None:
        self.values = values

    def __getitem__(self, step: int) -> Any:
        """The number of sequences; PyTorch asks for it as the number of sequences that have a first step."""
        assert step == 0
        return self.values.shape[0]

    def size(self, axis: int) -> Longest:
        """The number of steps, which depends on values."""
        assert axis == 0
        return LONGEST


class Longest:
    """The length of the longest sequence, unknown in a trace: comparisons accept any total length as long enough."""

    def __gt__(self, other: object) -> bool:
        return False


LONGEST = Longest()


class Packed:
    """A padded tensor [S, B, I] that only recurrent layers and `pad_packed_sequence` can read."""

    def __init__(self, padded: Any) -> None:
        self.padded = padded
        self.dtype, self.device = padded.dtype, padded.device

    def dim(self) -> int:
        return 2

    def size(self, axis: int) -> Any:
        assert axis == -1
        return self.padded.shape[-1]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"the data of a packed sequence have no {name} here: recurrent layers and pad_packed_sequence read them"
        )


def _pack(x: Any, lengths: Any, batch_first: bool) -> tuple[Packed, Lengths]:
    """A packed sequence of x and lengths. A run fails for lengths outside 1 to S and for lengths that are not
    descending: PyTorch has sorted them before, or demands it with `enforce_sorted`.
    """
    padded = x.transpose(0, 1) if batch_first else x
    falling = torch.where(lengths > lengths.cummin(0)[0], 0, lengths)
    return Packed(padded), Lengths(_at_most(padded.shape[0], falling))


def _at_most(longest: Any, lengths: Any) -> Any:
    """The lengths, computed so that a run fails unless all are from 1 to `longest`."""
    places = torch.where(lengths > 0, lengths - 1, longest)
    return torch.arange(1, longest + 1).gather(0, places)


def _pad(data: Packed, lengths: Lengths, batch_first: bool, value: float, total: int | Longest) -> tuple[Any, Any]:
    """The outputs [S, B, H], or [B, S, H] if the batch comes first, padded with `value` after each sequence. Without a
    total length, S is the length of the longest sequence.
    """
    x, ends = data.padded, lengths.values
    steps, is_any = torch.arange(x.shape[0]), isinstance(total, Longest)
    if not is_any and total is not x.shape[0]:
        ends = _at_most(total, ends)  # a run fails for sequences longer than the total length
    y = torch.where((steps[:, None] < ends)[..., None], x, value)
    if is_any:
        y = y[steps < ends.amax()]
    elif total is not x.shape[0]:
        y = torch.nn.functional.pad(y, (0, 0, 0, 0, 0, total - x.shape[0]), value=value)
    return y.transpose(0, 1) if batch_first else y, ends


class Functions:
    """`torch._VF` as PyTorch's modules see it; its layers take packed sequences, too."""

    def __init__(self) -> None:
        self._pack_padded_sequence, self._pad_packed_sequence = _pack, _pad

    def __getattr__(self, name: str) -> Any:
        found = getattr(torch._VF, name)
        return _layer(name, found) if name in LAYERS else found


def _layer(name: str, whole: Any) -> Any:
    def call(x: Any, *args: Any) -> Any:
        if not isinstance(x, Packed):
            return whole(x, *args)
        lengths, hx, *rest = args
        states: list[Any] = [hx] if isinstance(hx, torch.Tensor) else [*hx]
        output, *finals = getattr(operators(), name)(x.padded, lengths.values, states, *rest)
        return Packed(output), *finals

    return call


@cache
def operators() -> Any:
    """The layers on sequences of different lengths, as operations that a trace keeps."""
    library = torch.library.Library("ait_packed", "DEF")  # the cache keeps it alive
    arguments = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
    for name, states in LAYERS.items():
        results = ", ".join(["Tensor"] * (states + 1))
        library.define(f"{name}(Tensor x, Tensor lengths, Tensor[] hx, {arguments}) -> ({results})")
        torch.library.register_fake(f"ait_packed::{name}", _shapes, lib=library)
    return SimpleNamespace(library=library, **{name: getattr(torch.ops.ait_packed, name) for name in LAYERS})


def _shapes(x: Any, lengths: Any, hx: Sequence[Any], *options: Any) -> tuple[Any, ...]:
    both = options[-1]
    output = x.new_empty((x.shape[0], x.shape[1], (2 if both else 1) * hx[0].shape[2]))
    return output, *(torch.empty_like(h) for h in hx)


@contextlib.contextmanager
def packed_sequences() -> Generator[None]:
    """A context for a trace in which packed sequences are padded sequences with their lengths."""
    operators()
    utilities, layers = torch.nn.utils.rnn, torch.nn.modules.rnn
    kept = utilities._VF, layers._VF, layers.RNNBase.check_forward_args, layers.LSTM.check_forward_args

    def unless_packed(check: Any) -> Any:
        def checked(layer: Any, x: Any, hidden: Any, batch_sizes: Any) -> None:
            if isinstance(x, Packed):  # batch sizes are symbols in a trace
                layer.check_input(x, batch_sizes)
            else:
                check(layer, x, hidden, batch_sizes)

        return checked

    utilities._VF = layers._VF = Functions()
    layers.RNNBase.check_forward_args = unless_packed(kept[2])
    layers.LSTM.check_forward_args = unless_packed(kept[3])
    try:
        yield
    finally:
        utilities._VF, layers._VF = kept[:2]
        layers.RNNBase.check_forward_args, layers.LSTM.check_forward_args = kept[2:]
