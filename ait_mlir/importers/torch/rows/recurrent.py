"""Recurrent layers as loops; one product before each loop covers the inputs of all steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine, Value
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.elementwise import (
    AddOp,
    CompareOp,
    MulOp,
    ReluOp,
    SigmoidOp,
    SubOp,
    TanhOp,
    WhereOp,
)
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.torch.call import Call, NotSupported, Row
from ait_mlir.importers.torch.scan import write_scan
from ait_mlir.importers.torch.writer import ImportWriter


@dataclass(frozen=True)
class Weights:
    """The weights of one direction of a layer, by PyTorch's names; biases and the projection may be missing."""

    ih: SSAValue
    hh: SSAValue
    bias_ih: SSAValue | None = None
    bias_hh: SSAValue | None = None
    hr: SSAValue | None = None

    def of_state(self) -> list[SSAValue]:
        """The weights that each step reads."""
        return [v for v in (self.hh, self.bias_hh, self.hr) if v is not None]


Cell = Callable[[ImportWriter, SSAValue, Sequence[SSAValue], Weights], Sequence[SSAValue]]
"""One step: takes the products with the inputs [B, gates * H], the state and the weights; returns the next state."""


def lstm_cell(w: ImportWriter, given: SSAValue, state: Sequence[SSAValue], weights: Weights) -> Sequence[SSAValue]:
    """The new h and c of an LSTM; gates in the order i, f, g, o (Hochreiter and Schmidhuber 1997, with the forget
    gate).
    """
    i, f, g, o = _gates(w, w.op(AddOp, given, product(w, state[0], weights.hh, weights.bias_hh)), 4)
    kept = w.op(MulOp, w.op(SigmoidOp, f), state[1])
    cell = w.op(AddOp, kept, w.op(MulOp, w.op(SigmoidOp, i), w.op(TanhOp, g)))
    hidden = w.op(MulOp, w.op(SigmoidOp, o), w.op(TanhOp, cell))
    return (hidden if weights.hr is None else product(w, hidden, weights.hr)), cell


def gru_cell(w: ImportWriter, given: SSAValue, state: Sequence[SSAValue], weights: Weights) -> Sequence[SSAValue]:
    """The new h of a GRU; gates in the order r, z, n (arXiv:1406.1078; the reset follows the product, as in cuDNN)."""
    (h,) = state
    r, z, n = _gates(w, given, 3)
    hr, hz, hn = _gates(w, product(w, h, weights.hh, weights.bias_hh), 3)
    r, z = w.op(SigmoidOp, w.op(AddOp, r, hr)), w.op(SigmoidOp, w.op(AddOp, z, hz))
    n = w.op(TanhOp, w.op(AddOp, n, w.op(MulOp, r, hn)))
    return (w.op(AddOp, n, w.op(MulOp, z, w.op(SubOp, h, n))),)


def plain_cell(activation: type[AitOp]) -> Cell:
    """A cell that computes act(x W_ih + b_ih + h W_hh + b_hh)."""

    def cell(w: ImportWriter, given: SSAValue, state: Sequence[SSAValue], weights: Weights) -> Sequence[SSAValue]:
        return (w.op(activation, w.op(AddOp, given, product(w, state[0], weights.hh, weights.bias_hh))),)

    return cell


def product(w: ImportWriter, x: SSAValue, weight: SSAValue, bias: SSAValue | None = None) -> SSAValue:
    """x @ weight^T + bias"""
    y = w.op(GemmOp, x, weight, properties={"layout": "rcr"}, regions=1)
    return y if bias is None else w.op(AddOp, y, bias)


def _gates(w: ImportWriter, gates: SSAValue, count: int) -> list[SSAValue]:
    """The gates [B, count * H] split into `count` tensors [B, H]."""
    width = tensor_type(gates).dims[1].as_int()
    if width is None or width % count:
        raise NotSupported(f"the gates have {tensor_type(gates).dims[1]} columns, expected a multiple of {count}")
    size = width // count
    return [w.slice(gates, 1, const(i * size), const(size)) for i in range(count)]


def layers(cell: Cell, states: int, several: bool) -> Row:
    """A row for `aten.NAME.input`. `several`: `hx` is a list of `states` tensors, [layers * directions, B, size]."""

    def row(c: Call) -> Sequence[Value]:
        x, first = c.tensor("input"), c["hx"] if several else [c["hx"]]
        output, *ends = _stacked(c, cell, c.w.permute(x, (1, 0, 2)) if c["batch_first"] else x, first, None)
        return [c.w.permute(output, (1, 0, 2)) if c["batch_first"] else output, *ends]

    return row


def packed_layers(cell: Cell) -> Row:
    """A row for a layer on sequences [S, B, I] of different lengths [B]: the state no longer changes after a sequence's
    end.
    """

    def row(c: Call) -> Sequence[Value]:
        x, lengths = c.tensor("x"), c.tensor("lengths")
        steps = c.w.full(Affine((tensor_type(x).dims[0], const(1)), (const(1), const(0)), const(0)))
        return _stacked(c, cell, x, c["hx"], c.w.put(CompareOp("lt", steps, c.w.cast(lengths, i64))))

    return row


def _stacked(c: Call, cell: Cell, x: SSAValue, first: Sequence[Value], seen: SSAValue | None) -> list[SSAValue]:
    """The outputs [S, B, directions * H] and the final states of all layers on x [S, B, I]. `seen` [S, B] is false
    after the end of a sequence.
    """
    if c["train"] and c["dropout"]:
        raise NotSupported("dropout between the layers is for training; call model.eval() before the export")
    w = c.w
    initial = [w.full(h) for h in first]
    directions = 2 if c["bidirectional"] else 1
    weights = _weights([w.full(p) for p in c["params"]], c["has_biases"], c["num_layers"] * directions)
    finals: list[Sequence[SSAValue]] = []
    for layer in range(c["num_layers"]):
        outputs: list[SSAValue] = []
        for direction in range(directions):
            at = layer * directions + direction
            own = [_slot(w, h, at) for h in initial]
            last, output = _one(w, cell, x, own, weights[at], seen, reverse=direction == 1)
            finals.append(last)
            outputs.append(output)
        x = outputs[0] if directions == 1 else w.concat(outputs, 2)
    count = range(len(initial))
    return [x, *(w.concat([w.reshape(f[i], (1, *tensor_type(f[i]).dims)) for f in finals], 0) for i in count)]


def _weights(params: Sequence[SSAValue], biased: bool, count: int) -> list[Weights]:
    """The weights of each layer and direction: W_ih, W_hh, then the biases, then the projection."""
    each = len(params) // count
    found: list[Weights] = []
    for i in range(count):
        own = params[i * each : (i + 1) * each]
        biases = (own[2], own[3]) if biased else (None, None)
        rest = own[4:] if biased else own[2:]
        found.append(Weights(own[0], own[1], *biases, rest[0] if rest else None))
    return found


def _slot(w: ImportWriter, h: SSAValue, at: int) -> SSAValue:
    """h[at], [B, size]"""
    dims = tensor_type(h).dims
    return w.reshape(w.slice(h, 0, const(at), const(1)), dims[1:])


def _one(
    w: ImportWriter,
    cell: Cell,
    x: SSAValue,
    state: Sequence[SSAValue],
    weights: Weights,
    seen: SSAValue | None,
    reverse: bool,
) -> tuple[Sequence[SSAValue], SSAValue]:
    """One direction of one layer on x [S, B, I]: the state after the last step, and the outputs [S, B, H]."""
    given = product(w, x, weights.ih, weights.bias_ih)
    hidden = tensor_type(state[0])
    types = [
        *(tensor_type(s) for s in state),
        TensorType.get((tensor_type(x).dims[0], *hidden.dims), hidden.element_type),
    ]

    def step(arguments: Sequence[SSAValue]) -> list[SSAValue]:
        before, now, inner = arguments[: len(state)], arguments[len(state)], list(arguments[len(state) + 1 :])
        going = None if seen is None else inner.pop(0)
        parts: list[Any] = [inner.pop(0) if v is not None else None for v in (weights.hh, weights.bias_hh, weights.hr)]
        after = cell(w, now, before, Weights(weights.ih, *(parts[0], None, parts[1], parts[2])))
        if going is not None:
            going = w.reshape(going, (*tensor_type(going).dims, 1))
            after = [w.op(WhereOp, going, new, old, results=[old.type]) for new, old in zip(after, before, strict=True)]
        return [*after, after[0]]

    results = write_scan(
        w, [list(state), [given, *([] if seen is None else [seen])], weights.of_state()], types, step, reverse
    )
    return results[:-1], results[-1]


ROWS: dict[str, Row] = {
    "ait_packed.lstm.default": packed_layers(lstm_cell),
    "ait_packed.gru.default": packed_layers(gru_cell),
    "ait_packed.rnn_tanh.default": packed_layers(plain_cell(TanhOp)),
    "ait_packed.rnn_relu.default": packed_layers(plain_cell(ReluOp)),
    "aten.lstm.input": layers(lstm_cell, 2, several=True),
    "aten.gru.input": layers(gru_cell, 1, several=False),
    "aten.rnn_tanh.input": layers(plain_cell(TanhOp), 1, several=False),
    "aten.rnn_relu.input": layers(plain_cell(ReluOp), 1, several=False),
}
