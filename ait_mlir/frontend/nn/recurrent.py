"""Recurrent layers as scans: `LSTM`, `GRU` and `RNN`, with PyTorch's weights by PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.compositions import recurrent
from ait_mlir.frontend import ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor

__all__ = ["GRU", "LSTM", "RNN"]


class _Layers(Operator):
    """The layers of a module: the outputs of all steps, and the states after the last one."""

    def __init__(self, module: _Recurrent):
        self.module = module
        self.label = type(module).__name__

    def __call__(self, x: Tensor, state: Sequence[Tensor]) -> list[Tensor]:
        params = [p.tensor() for p in self.module.parameters()]
        self.begin(x, *state, *params)
        return self.write_all(self._layers, x, state, params)

    def _layers(
        self, w: Writer, x: SSAValue, state: Sequence[SSAValue], params: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        m = self.module
        weights = recurrent.weights_of(params, m.bias, m.num_layers, len(m.ends))
        return recurrent.layers(w, m.CELL[1], x, state, weights)


class _Recurrent(Module):
    """Layers and directions. One product before the loop covers the inputs of all steps."""

    CELL: ClassVar[tuple[int, recurrent.Cell]]
    """The number of gates, and the step."""

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
        self.hidden_size, self.num_layers, self.bias = hidden_size, num_layers, bias
        self.batch_first, self.dtype = batch_first, dtype
        self.ends = ("", "_reverse") if bidirectional else ("",)
        rows = self.CELL[0] * hidden_size
        for layer in range(num_layers):
            columns = input_size if layer == 0 else hidden_size * len(self.ends)
            shapes = {"weight_ih": [rows, columns], "weight_hh": [rows, hidden_size]}
            if bias:
                shapes |= {"bias_ih": [rows], "bias_hh": [rows]}
            for end in self.ends:
                for name, shape in shapes.items():
                    setattr(self, f"{name}_l{layer}{end}", Parameter(shape, dtype))

    def run(self, x: Tensor, state: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
        """The outputs of all steps, and the states after the last one, with the rank of the given states."""
        if self.batch_first:
            x = ops.permute102()(x)
        count = self.num_layers * len(self.ends)
        if any(s is not None and s.rank == 2 for s in state) and count > 1:
            raise BuildError(
                f"the state must be [{count}, batch, {self.hidden_size}]: layers and directions have one each"
            )
        zeros = [count, x.shape()[1], self.hidden_size]
        given = [s if s is not None else ops.full()(zeros, 0.0, self.dtype) for s in state]
        y, *ends = _Layers(self)(x, [ops.unsqueeze(0)(s) if s.rank == 2 else s for s in given])
        ends = [ops.squeeze(0)(end) if s.rank == 2 else end for s, end in zip(given, ends, strict=True)]
        return (ops.permute102()(y) if self.batch_first else y, *ends)


class LSTM(_Recurrent):
    """`torch.nn.LSTM`: x [seq, batch, input_size], or [batch, seq, input_size] with `batch_first`.

    h and c are [layers * directions, batch, hidden_size], or [batch, hidden_size] of one layer and direction; zeros if
    left out. A call returns the states of all steps, [seq, batch, directions * hidden_size], and the last h and c.
    """

    CELL = 4, recurrent.lstm_cell

    def forward(self, x: Tensor, h: Tensor | None = None, c: Tensor | None = None) -> tuple[Tensor, ...]:
        return self.run(x, (h, c))


class GRU(_Recurrent):
    """`torch.nn.GRU`: x, h and the results as in `LSTM`, without c."""

    CELL = 3, recurrent.gru_cell

    def forward(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, ...]:
        return self.run(x, (h,))


class RNN(_Recurrent):
    """`torch.nn.RNN` with tanh: x, h and the results as in `LSTM`, without c."""

    CELL = 1, recurrent.plain_cell("tanh")

    def forward(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, ...]:
        return self.run(x, (h,))
