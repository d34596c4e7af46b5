"""Recurrent layers as scans: `LSTM` and `GRU`, with PyTorch's weights by PyTorch's names."""

from __future__ import annotations

from typing import ClassVar

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.frontend.tensor import Tensor


class _Recurrent(Module):
    """One layer, one direction. The products with the inputs of all steps are one product, in front of the loop."""

    GATES: ClassVar[int]

    def __init__(self, input_size: int, hidden_size: int, dtype: str = "float16"):
        rows = self.GATES * hidden_size
        self.hidden_size = hidden_size
        self.weight_ih_l0 = Parameter([rows, input_size], dtype)
        self.weight_hh_l0 = Parameter([rows, hidden_size], dtype)
        self.bias_ih_l0 = Parameter([rows], dtype)
        self.bias_hh_l0 = Parameter([rows], dtype)

    def from_inputs(self, x: Tensor) -> Tensor:
        """What the inputs add to the gates, [seq, batch, gates]."""
        return ops.gemm_rcr_bias()(x, self.weight_ih_l0.tensor(), self.bias_ih_l0.tensor())

    def from_state(self, h: Tensor) -> Tensor:
        """What the state adds to the gates, [batch, gates]."""
        return ops.gemm_rcr_bias()(h, self.weight_hh_l0.tensor(), self.bias_hh_l0.tensor())


class LSTM(_Recurrent):
    """`torch.nn.LSTM` of one layer: x [seq, batch, input_size], h and c [batch, hidden_size].

    A call returns the states of all steps, [seq, batch, hidden_size], and h and c after the last.
    """

    GATES = 4

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        def step(given: Tensor, h: Tensor, c: Tensor) -> tuple[list[Tensor], list[Tensor]]:
            gates = ops.split()(given + self.from_state(h), self.hidden_size, -1)
            i, f, o = (_sigmoid(gates[n]) for n in (0, 1, 3))
            after = f * c + i * _tanh(gates[2])
            state = o * _tanh(after)
            return [state, after], [state]

        [last, cell], [states] = ops.scan(step)([self.from_inputs(x)], [h, c])
        return states, last, cell


class GRU(_Recurrent):
    """`torch.nn.GRU` of one layer: x [seq, batch, input_size], h [batch, hidden_size].

    A call returns the states of all steps, [seq, batch, hidden_size], and the last one.
    """

    GATES = 3

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        def step(given: Tensor, h: Tensor) -> tuple[list[Tensor], list[Tensor]]:
            r, z, n = ops.split()(given, self.hidden_size, -1)
            hr, hz, hn = ops.split()(self.from_state(h), self.hidden_size, -1)
            z = _sigmoid(z + hz)
            n = _tanh(n + _sigmoid(r + hr) * hn)
            state = n + z * (h - n)
            return [state], [state]

        [last], [states] = ops.scan(step)([self.from_inputs(x)], [h])
        return states, last


def _sigmoid(x: Tensor) -> Tensor:
    return ops.elementwise(FuncEnum.SIGMOID)(x)


def _tanh(x: Tensor) -> Tensor:
    return ops.elementwise(FuncEnum.TANH)(x)
