"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from ait_mlir.building.formulas import Affine
from ait_mlir.compositions.rearrange import flip
from ait_mlir.compositions.recurrent import (
    Cell,
    Weights,
    gru_cell,
    gru_cell_of_reset_state,
    layers,
    lstm_cell,
    plain_cell,
)
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.importers.onnx.call import Call, NotSupported, Result, Row, as_number

LSTM_ORDER = (0, 2, 3, 1)
"""ONNX has the gates in the order i, o, f, c; the cell in the order i, f, c, o."""
GRU_ORDER = (1, 0, 2)
"""ONNX has z, r, h; the cell r, z, h."""


def recurrent(states: int, gates: int, order: Sequence[int], quantised: bool = False) -> Row:
    """A row for a layer of one or two directions; the products of a quantised one round x and h to 8 bits, for
    weights of 8 bits.
    """

    def row(c: Call) -> Result:
        cell = _cell(c, gates)
        x = c.tensor(0)
        plain = (c.tensor(1), None), (c.tensor(2), None)
        matrices = (_of_bytes(c, 1, 8), _of_bytes(c, 2, 10)) if quantised else plain
        batch_first = bool(c.attr("layout", 0))
        x = c.w.permute(x, [1, 0, 2]) if batch_first else x
        steps, batch, _ = tensor_type(x).dims
        hidden = as_number(tensor_type(matrices[1][0]).dims[2])
        direction = c.attr("direction", "forward")
        count = 2 if direction == "bidirectional" else 1
        if direction not in ("forward", "reverse", "bidirectional"):
            raise NotSupported(f"direction is {direction!r}, expected forward, reverse or bidirectional")
        biases = c.optional(3)
        weights = [_weights(c, matrices, biases, d, hidden, order) for d in range(count)]
        initial: list[SSAValue] = []
        for i in range(states):
            given = c.optional(5 + i)
            if given is None:
                given = c.w.filled(0, (count, batch, hidden), tensor_type(x).element_type)
            elif batch_first:
                given = c.w.permute(given, [1, 0, 2])
            initial.append(given)
        seen = _seen(c, x)
        backwards = direction == "reverse"
        if backwards:
            x = c.w.full(flip(c.w, x, [0]))
            seen = None if seen is None else c.w.full(flip(c.w, seen, [0]))
        output, *ends = layers(c.w, cell, x, initial, [weights], seen)
        if seen is not None:  # behind the end of a sequence the output is 0
            mask = c.w.reshape(seen, (*tensor_type(seen).dims, 1))
            output = c.w.where(mask, output, 0.0)
        if backwards:
            output = c.w.full(flip(c.w, output, [0]))
        y = c.w.permute(c.w.reshape(output, (steps, batch, count, hidden)), [0, 2, 1, 3])
        if batch_first:
            y = c.w.permute(y, [2, 0, 1, 3])
            ends = [c.w.permute(h, [1, 0, 2]) for h in ends]
        return (y, *ends)

    return row


Matrix = tuple[SSAValue, SSAValue | None]
"""The weights [directions, gates * H, columns], and of whole numbers their scale [directions, gates * H or 1]."""


def _of_bytes(c: Call, index: int, scale_at: int) -> Matrix:
    """Weights [directions, columns, gates * H] of 8 bits as whole floats without their zero point, and their scale."""
    weight, scale, zero = c.tensor(index), c.tensor(scale_at), c.tensor(scale_at + 1)
    directions, _, rows = tensor_type(weight).dims
    each = rows if tensor_type(scale).rank == 2 else const(1)
    scale, zero = c.w.reshape(scale, (directions, each)), c.w.reshape(zero, (directions, 1, each))
    whole = c.w.sub(c.w.cast(weight, i32), c.w.cast(zero, i32))
    return c.w.permute(c.w.cast(whole, tensor_type(scale).element_type), [0, 2, 1]), scale


def _cell(c: Call, gates: int) -> Cell:
    """The cell of a layer; refuses activations and options that it lacks."""
    directions = 2 if c.attr("direction", "forward") == "bidirectional" else 1
    usual = {4: ["Sigmoid", "Tanh", "Tanh"], 3: ["Sigmoid", "Tanh"], 1: ["Tanh"]}[gates]
    given = c.attr("activations", usual * directions)
    if c.attr("clip") is not None:
        raise NotSupported("clip is not supported")
    if gates == 1 and len(set(given)) == 1 and given[0] in ("Tanh", "Relu", "Sigmoid"):
        return plain_cell(given[0].lower())
    if [a.lower() for a in given] != [a.lower() for a in usual * directions]:
        raise NotSupported(f"activations are {', '.join(given)}, expected {', '.join(usual)}")
    if gates == 4:
        if c.attr("input_forget", 0):
            raise NotSupported("input_forget is not supported")
        return lstm_cell
    return gru_cell if c.attr("linear_before_reset", 0) else gru_cell_of_reset_state


def _weights(
    c: Call,
    matrices: tuple[Matrix, Matrix],
    biases: SSAValue | None,
    direction: int,
    hidden: int,
    order: Sequence[int],
) -> Weights:
    """The weights of a direction, with the gates in the order of the cell."""

    def own(value: SSAValue) -> SSAValue:
        return c.w.reshape(c.w.slice(value, 0, direction, 1), tensor_type(value).dims[1:])

    def ordered(value: SSAValue) -> SSAValue:
        if list(order) == list(range(len(order))):
            return value
        return c.w.concat([c.w.slice(value, 0, gate * hidden, hidden) for gate in order], 0)

    def of_rows(scale: SSAValue) -> SSAValue:
        return scale if tensor_type(scale).dims[0].as_int() == 1 else ordered(scale)

    width = hidden * len(order)
    peepholes = own(c.tensor(7)) if len(order) == 4 and c.has(7) else None
    first = second = None
    if biases is not None:
        both = own(biases)
        first, second = (ordered(c.w.slice(both, 0, at, width)) for at in (0, width))
    (ih, scale_ih), (hh, scale_hh) = matrices
    scales = [None if s is None else of_rows(own(s)) for s in (scale_ih, scale_hh)]
    return Weights(ordered(own(ih)), ordered(own(hh)), first, second, None, peepholes, *scales)


def _seen(c: Call, x: SSAValue) -> SSAValue | None:
    """Whether a step [S, B] is within its sequence; None where all have the same length."""
    if not c.has(4):
        return None
    steps = c.w.full(Affine((tensor_type(x).dims[0], const(1)), (const(1), const(0)), const(0)))
    return c.w.compare("lt", steps, c.w.cast(c.tensor(4), i64))


ROWS: dict[str, Row] = {
    "LSTM": recurrent(2, 4, LSTM_ORDER),
    "GRU": recurrent(1, 3, GRU_ORDER),
    "RNN": recurrent(1, 1, (0,)),
    "com.microsoft.DynamicQuantizeLSTM": recurrent(2, 4, LSTM_ORDER, quantised=True),
}
