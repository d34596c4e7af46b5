"""Recurrent layers, whole and on sequences of different lengths."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Value
from ait_mlir.compositions import recurrent
from ait_mlir.compositions.recurrent import Cell, gru_cell, lstm_cell, plain_cell
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.torch.call import Call, NotSupported, Row


def layers(cell: Cell, several: bool = False) -> Row:
    """A row for `aten.NAME.input`. `several`: `hx` is a list of tensors [layers * directions, B, size]."""

    def row(c: Call) -> Sequence[Value]:
        x, first = c.tensor("input"), c["hx"] if several else [c["hx"]]
        output, *ends = _written(c, cell, c.w.permute(x, (1, 0, 2)) if c["batch_first"] else x, first)
        return [c.w.permute(output, (1, 0, 2)) if c["batch_first"] else output, *ends]

    return row


def packed_layers(cell: Cell) -> Row:
    """A row for a layer on sequences [S, B, I] of different lengths [B]: the state does not change after a sequence's
    end.
    """

    def row(c: Call) -> Sequence[Value]:
        x, lengths = c.tensor("x"), c.tensor("lengths")
        steps = c.w.full(Affine((tensor_type(x).dims[0], const(1)), (const(1), const(0)), const(0)))
        return _written(c, cell, x, c["hx"], c.w.compare("lt", steps, c.w.cast(lengths, i64)))

    return row


def _written(c: Call, cell: Cell, x: SSAValue, first: Sequence[Value], seen: SSAValue | None = None) -> list[SSAValue]:
    if c["train"] and c["dropout"]:
        raise NotSupported("dropout between the layers is for training; call model.eval() before the export")
    params = [c.w.full(p) for p in c["params"]]
    weights = recurrent.weights_of(params, c["has_biases"], c["num_layers"], 2 if c["bidirectional"] else 1)
    return recurrent.layers(c.w, cell, x, [c.w.full(h) for h in first], weights, seen)


ROWS: dict[str, Row] = {
    "ait_packed.lstm.default": packed_layers(lstm_cell),
    "ait_packed.gru.default": packed_layers(gru_cell),
    "ait_packed.rnn_tanh.default": packed_layers(plain_cell("tanh")),
    "ait_packed.rnn_relu.default": packed_layers(plain_cell("relu")),
    "aten.lstm.input": layers(lstm_cell, several=True),
    "aten.gru.input": layers(gru_cell),
    "aten.rnn_tanh.input": layers(plain_cell("tanh")),
    "aten.rnn_relu.input": layers(plain_cell("relu")),
}
