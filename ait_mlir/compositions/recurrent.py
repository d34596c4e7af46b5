"""Recurrent layers as loops; one product before each loop covers the inputs of all steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.compositions.contraction import product_with_rows
from ait_mlir.compositions.quantize import rounded_to_bytes
from ait_mlir.dialects.ait.types import tensor_type


@dataclass(frozen=True)
class Weights:
    """The weights of one direction of a layer, by PyTorch's names; all but the matrices may be missing."""

    ih: SSAValue
    hh: SSAValue
    bias_ih: SSAValue | None = None
    bias_hh: SSAValue | None = None
    hr: SSAValue | None = None
    peepholes: SSAValue | None = None
    """Of an LSTM: the factors [3 * H] of the cell in the gates i, o and f."""
    scale_ih: SSAValue | None = None
    """Of a matrix that holds whole numbers: the scale of each row [gates * H], or of all [1]; see `product`."""
    scale_hh: SSAValue | None = None


Cell = Callable[[Writer, SSAValue, Sequence[SSAValue], Weights], Sequence[SSAValue]]
"""One step: takes the products with the inputs [B, gates * H], the state and the weights; returns the next state."""


def lstm_cell(w: Writer, given: SSAValue, state: Sequence[SSAValue], weights: Weights) -> Sequence[SSAValue]:
    """The new h and c of an LSTM; gates in the order i, f, g, o (Hochreiter and Schmidhuber 1997, with the forget
    gate).
    """
    i, f, g, o = _gates(w, w.add(given, product(w, state[0], weights.hh, weights.bias_hh, weights.scale_hh)), 4)
    before = state[1]
    peeps = [] if weights.peepholes is None else _parts(w, weights.peepholes, 0, 3)
    if peeps:
        i, f = w.add(i, w.mul(peeps[0], before)), w.add(f, w.mul(peeps[2], before))
    kept = w.mul(w.pointwise("sigmoid", f), before)
    cell = w.add(kept, w.mul(w.pointwise("sigmoid", i), w.pointwise("tanh", g)))
    o = w.add(o, w.mul(peeps[1], cell)) if peeps else o
    hidden = w.mul(w.pointwise("sigmoid", o), w.pointwise("tanh", cell))
    return (hidden if weights.hr is None else product(w, hidden, weights.hr)), cell


def gru_cell(w: Writer, given: SSAValue, state: Sequence[SSAValue], weights: Weights) -> Sequence[SSAValue]:
    """The new h of a GRU; gates in the order r, z, n (arXiv:1406.1078; the reset follows the product, as in cuDNN)."""
    (h,) = state
    r, z, n = _gates(w, given, 3)
    hr, hz, hn = _gates(w, product(w, h, weights.hh, weights.bias_hh, weights.scale_hh), 3)
    r, z = w.pointwise("sigmoid", w.add(r, hr)), w.pointwise("sigmoid", w.add(z, hz))
    n = w.pointwise("tanh", w.add(n, w.mul(r, hn)))
    return (w.add(n, w.mul(z, w.sub(h, n))),)


def gru_cell_of_reset_state(
    w: Writer, given: SSAValue, state: Sequence[SSAValue], weights: Weights
) -> Sequence[SSAValue]:
    """The new h of a GRU whose reset comes before the product; gates in the order r, z, n (arXiv:1406.1078)."""
    (h,) = state
    size = tensor_type(h).dims[1]
    parts = [w.slice(weights.hh, 0, size * i, size) for i in range(3)]
    biases = [None if weights.bias_hh is None else w.slice(weights.bias_hh, 0, size * i, size) for i in range(3)]
    gates = _gates(w, given, 3)
    r, z = (w.pointwise("sigmoid", w.add(gates[i], product(w, h, parts[i], biases[i]))) for i in (0, 1))
    n = w.pointwise("tanh", w.add(gates[2], product(w, w.mul(r, h), parts[2], biases[2])))
    return (w.add(n, w.mul(z, w.sub(h, n))),)


def plain_cell(activation: str) -> Cell:
    """A cell that computes act(x W_ih + b_ih + h W_hh + b_hh)."""

    def cell(w: Writer, given: SSAValue, state: Sequence[SSAValue], weights: Weights) -> Sequence[SSAValue]:
        inner = product(w, state[0], weights.hh, weights.bias_hh, weights.scale_hh)
        return (w.pointwise(activation, w.add(given, inner)),)

    return cell


def product(
    w: Writer, x: SSAValue, weight: SSAValue, bias: SSAValue | None = None, scale: SSAValue | None = None
) -> SSAValue:
    """x @ weight^T + bias. With the `scale` of a weight of whole numbers, x is rounded to 256 numbers of its range; the
    sums are of whole numbers and get both scales at their end, as if they were computed in integers.
    """
    if scale is None:
        y = product_with_rows(w, x, weight)
    else:
        whole, own = rounded_to_bytes(w, x)
        y = w.mul(product_with_rows(w, whole, weight), w.mul(own, scale))
    return y if bias is None else w.add(y, bias)


def _gates(w: Writer, gates: SSAValue, count: int) -> list[SSAValue]:
    """The gates [B, count * H] split into `count` tensors [B, H]."""
    width = tensor_type(gates).dims[1].as_int()
    if width is None or width % count:
        raise w.unsupported(f"the gates have {tensor_type(gates).dims[1]} columns, expected a multiple of {count}")
    return _parts(w, gates, 1, count)


def _parts(w: Writer, value: SSAValue, axis: int, count: int) -> list[SSAValue]:
    """A tensor split along an axis into `count` tensors of one size."""
    size = (tensor_type(value).dims[axis].as_int() or 0) // count
    return [w.slice(value, axis, i * size, size) for i in range(count)]


def layers(
    w: Writer,
    cell: Cell,
    x: SSAValue,
    initial: Sequence[SSAValue],
    weights: Sequence[Sequence[Weights]],
    seen: SSAValue | None = None,
) -> list[SSAValue]:
    """All layers on x [S, B, I]: the outputs [S, B, directions * H] and the final states.

    `initial` are the states [layers * directions, B, size]; `weights` has those of each direction of each layer. `seen`
    [S, B] is false after the end of a sequence: then the state does not change.
    """
    finals: list[Sequence[SSAValue]] = []
    for layer in weights:
        outputs: list[SSAValue] = []
        for direction, own in enumerate(layer):
            at = len(finals)
            state = [w.reshape(w.slice(h, 0, at, 1), tensor_type(h).dims[1:]) for h in initial]
            *last, output = _one(w, cell, x, state, own, seen, reverse=direction == 1)
            finals.append(last)
            outputs.append(output)
        x = w.concat(outputs, 2)
    ends = ([w.reshape(h, (1, *tensor_type(h).dims)) for h in state] for state in zip(*finals, strict=True))
    return [x, *(w.concat(end, 0) for end in ends)]


def weights_of(params: Sequence[SSAValue], biased: bool, num_layers: int, directions: int) -> list[list[Weights]]:
    """The weights of each direction of each layer: W_ih, W_hh, then the biases, then the projection."""
    each = len(params) // (num_layers * directions)
    found: list[Weights] = []
    for i in range(num_layers * directions):
        own = params[i * each : (i + 1) * each]
        biases = (own[2], own[3]) if biased else (None, None)
        rest = own[4:] if biased else own[2:]
        found.append(Weights(own[0], own[1], *biases, rest[0] if rest else None))
    return [found[i : i + directions] for i in range(0, len(found), directions)]


def _one(
    w: Writer,
    cell: Cell,
    x: SSAValue,
    state: Sequence[SSAValue],
    weights: Weights,
    seen: SSAValue | None,
    reverse: bool,
) -> Sequence[SSAValue]:
    """One direction of one layer on x [S, B, I]: the state after the last step, and the outputs [S, B, H]."""
    given = product(w, x, weights.ih, weights.bias_ih, weights.scale_ih)
    names = ("hh", "bias_hh", "hr", "peepholes", "scale_hh")
    captured = {n: v for n in names if (v := getattr(weights, n)) is not None}

    def step(before: Sequence[SSAValue], slices: Sequence[SSAValue], inner: Sequence[SSAValue]) -> list[SSAValue]:
        now, *going = slices
        after = cell(w, now, before, Weights(weights.ih, **dict(zip(captured, inner, strict=True))))
        if going:
            goes = w.reshape(going[0], (*tensor_type(going[0]).dims, 1))
            after = [w.where(goes, new, old) for new, old in zip(after, before, strict=True)]
        return [*after, after[0]]

    return w.scan(state, [given] if seen is None else [given, seen], [*captured.values()], step, reverse)
