"""Recurrent layers as scans: `LSTM`, `GRU` and `RNN`, with PyTorch's weights by PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ait_mlir.frontend import ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.frontend.tensor import Tensor


class Direction(Module):
    """One direction of one layer: its weights, with PyTorch's names."""

    def __init__(self, gates: int, input_size: int, hidden_size: int, bias: bool, suffix: str, dtype: str):
        rows = gates * hidden_size
        shapes = {"weight_ih": [rows, input_size], "weight_hh": [rows, hidden_size]}
        if bias:
            shapes |= {"bias_ih": [rows], "bias_hh": [rows]}
        self.suffix = suffix
        for name, shape in shapes.items():
            setattr(self, name + suffix, Parameter(shape, dtype))

    def product(self, x: Tensor, which: str) -> Tensor:
        """The product of the inputs ("ih") or of the state ("hh") with its weight, plus bias: [..., gates]."""
        weight: Parameter = getattr(self, f"weight_{which}{self.suffix}")
        bias: Parameter | None = getattr(self, f"bias_{which}{self.suffix}", None)
        if bias is None:
            return ops.gemm_rcr()(x, weight.tensor())
        return ops.gemm_rcr_bias()(x, weight.tensor(), bias.tensor())


class _Recurrent(Module):
    """Layers and directions. One product before the loop covers the inputs of all steps."""

    GATES: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        bidirectional: bool = False,
        dtype: str = "float16",
    ):
        self.hidden_size, self.batch_first, self.dtype = hidden_size, batch_first, dtype
        ends = ("", "_reverse") if bidirectional else ("",)
        self.parts = [
            [
                Direction(
                    self.GATES,
                    input_size if layer == 0 else hidden_size * len(ends),
                    hidden_size,
                    bias,
                    f"_l{layer}{end}",
                    dtype,
                )
                for end in ends
            ]
            for layer in range(num_layers)
        ]
        for part in (part for layer in self.parts for part in layer):
            vars(self).update(part.named_parameters())

    def step(self, given: Tensor, part: Direction, *state: Tensor) -> Sequence[Tensor]:
        """The state after a step, given the products with the inputs, [batch, gates], and the state before it."""
        raise NotImplementedError

    def run(self, x: Tensor, state: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
        """The outputs of all steps, and the states after the last one, with the rank of the given states."""
        if self.batch_first:
            x = ops.permute102()(x)
        count = sum(len(layer) for layer in self.parts)
        if any(s is not None and s.rank == 2 for s in state) and count > 1:
            raise BuildError(
                f"the state must be [{count}, batch, {self.hidden_size}]: layers and directions have one each"
            )
        given = [s if s is not None else self._zeros(x, count) for s in state]
        slots = [[s] if s.rank == 2 else ops.split()(s, 1, 0) for s in given]
        slots = [[s if s.rank == 2 else ops.squeeze(0)(s) for s in of] for of in slots]
        finals: list[list[Tensor]] = [[] for _ in state]
        at = 0
        for layer in self.parts:
            outputs: list[Tensor] = []
            for reverse, part in enumerate(layer):
                last, output = self._one(x, part, [of[at] for of in slots], bool(reverse))
                outputs.append(output)
                for of, one in zip(finals, last, strict=True):
                    of.append(one)
                at += 1
            x = outputs[0] if len(outputs) == 1 else ops.concatenate()(outputs, 2)
        ends = [of[0] if s.rank == 2 else _stacked(of) for s, of in zip(given, finals, strict=True)]
        return (ops.permute102()(x) if self.batch_first else x, *ends)

    def _one(self, x: Tensor, part: Direction, state: Sequence[Tensor], reverse: bool) -> tuple[list[Tensor], Tensor]:
        def step(given: Tensor, *before: Tensor) -> tuple[list[Tensor], list[Tensor]]:
            after = list(self.step(given, part, *before))
            return after, after[:1]

        last, [output] = ops.scan(step, reverse=reverse)([part.product(x, "ih")], state)
        return last, output

    def _zeros(self, x: Tensor, count: int) -> Tensor:
        return ops.full()([count, x.shape()[1], self.hidden_size], 0.0, self.dtype)


class LSTM(_Recurrent):
    """`torch.nn.LSTM`: x [seq, batch, input_size], or [batch, seq, input_size] with `batch_first`.

    h and c are [layers * directions, batch, hidden_size], or [batch, hidden_size] of one layer and direction; zeros if
    left out. A call returns the states of all steps, [seq, batch, directions * hidden_size], and the last h and c.
    """

    GATES = 4

    def forward(self, x: Tensor, h: Tensor | None = None, c: Tensor | None = None) -> tuple[Tensor, ...]:
        return self.run(x, (h, c))

    def step(self, given: Tensor, part: Direction, *state: Tensor) -> Sequence[Tensor]:
        h, c = state
        gates = ops.split()(given + part.product(h, "hh"), self.hidden_size, -1)
        i, f, o = (_sigmoid(gates[n]) for n in (0, 1, 3))
        after = f * c + i * _tanh(gates[2])
        return o * _tanh(after), after


class GRU(_Recurrent):
    """`torch.nn.GRU`: x, h and the results as in `LSTM`, without c."""

    GATES = 3

    def forward(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, ...]:
        return self.run(x, (h,))

    def step(self, given: Tensor, part: Direction, *state: Tensor) -> Sequence[Tensor]:
        (h,) = state
        r, z, n = ops.split()(given, self.hidden_size, -1)
        hr, hz, hn = ops.split()(part.product(h, "hh"), self.hidden_size, -1)
        n = _tanh(n + _sigmoid(r + hr) * hn)
        return (n + _sigmoid(z + hz) * (h - n),)


class RNN(_Recurrent):
    """`torch.nn.RNN` with tanh: x, h and the results as in `LSTM`, without c."""

    def forward(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, ...]:
        return self.run(x, (h,))

    def step(self, given: Tensor, part: Direction, *state: Tensor) -> Sequence[Tensor]:
        return (_tanh(given + part.product(state[0], "hh")),)


def _stacked(parts: Sequence[Tensor]) -> Tensor:
    rows = [ops.unsqueeze(0)(p) for p in parts]
    return rows[0] if len(rows) == 1 else ops.concatenate()(rows, 0)


def _sigmoid(x: Tensor) -> Tensor:
    return ops.elementwise(FuncEnum.SIGMOID)(x)


def _tanh(x: Tensor) -> Tensor:
    return ops.elementwise(FuncEnum.TANH)(x)
