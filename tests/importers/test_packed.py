"""Sequences of different lengths in recurrent layers: packed and padded again as users do it, against eager."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import ait_mlir
from ait_mlir.errors import RunError
from ait_mlir.importers.torch import from_torch
from ait_mlir.importers.torch.errors import ImportFailure
from ait_mlir.reference.graph import evaluate_graph

BATCH, SEQ = Dim("batch", min=1, max=6), Dim("seq", min=1, max=40)
LAYERS = {
    "lstm": nn.LSTM(5, 4, num_layers=2, bidirectional=True, batch_first=True),
    "projected": nn.LSTM(5, 4, proj_size=3),
    "gru": nn.GRU(5, 4, num_layers=2, dropout=0.5, bidirectional=True),
    "tanh": nn.RNN(5, 4, batch_first=True, bidirectional=True),
    "relu": nn.RNN(5, 4, nonlinearity="relu", bias=False),
}


class Padded(nn.Module):
    """A layer that is given its first state; its outputs have the length of the input and one step more."""

    def __init__(self, layer: nn.Module, is_sorted: bool) -> None:
        super().__init__()
        self.layer, self.is_sorted, self.first = layer, is_sorted, layer.batch_first

    def forward(self, x, lengths, h, c):
        packed = pack_padded_sequence(x, lengths, self.first, self.is_sorted)
        out, end = self.layer(packed, (h, c) if isinstance(self.layer, nn.LSTM) else h)
        total = x.shape[1 if self.first else 0] + 1
        return *pad_packed_sequence(out, self.first, 0.5, total), self.layer(packed)[1], end


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_a_packed_layer_means_what_pytorch_does(name: str, is_sorted: bool) -> None:
    torch.manual_seed(0)
    layer = LAYERS[name].double()
    model = Padded(layer, is_sorted).eval()
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    batch, seq = (0, 1) if layer.batch_first else (1, 0)

    def inputs(b: int, s: int) -> tuple[torch.Tensor, ...]:
        x = torch.randn((b, s, 5) if layer.batch_first else (s, b, 5), dtype=torch.float64)
        lengths = torch.randint(1, s + 1, (b,))
        hidden = layer.proj_size or layer.hidden_size
        states = (torch.randn(count, b, n, dtype=torch.float64) for n in (hidden, layer.hidden_size))
        return x, lengths.sort(descending=True)[0] if is_sorted else lengths, *states

    shapes = ({batch: BATCH, seq: SEQ}, {0: BATCH}, {1: BATCH}, {1: BATCH})
    imported = from_torch(model, inputs(2, 7), dynamic_shapes=shapes)
    imported.module.verify()
    for b, s in ((2, 7), (1, 1), (5, 9)):
        given = inputs(b, s)
        with torch.no_grad():
            want = torch.utils._pytree.tree_leaves(model(*given))
        arrays = {item.name: v.numpy() for item, v in zip(imported.inputs.tensors, given, strict=True)}
        got = evaluate_graph(imported.graph, arrays, imported.constants, {"batch": b, "seq": s})
        for (_, out), value in zip(imported.outputs, want, strict=True):
            np.testing.assert_allclose(got[out], value.numpy(), rtol=1e-9, atol=1e-9)


class Tagger(nn.Module):
    """Words of sentences of different lengths to classes, as long as the longest sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(100, 8), nn.Linear(12, 5)
        self.lstm = nn.LSTM(8, 6, bidirectional=True, batch_first=True)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.words(ids), lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, (h, _) = self.lstm(packed)
        tags, counts = pad_packed_sequence(out, batch_first=True)
        return self.head(tags), counts, torch.cat([h[-2], h[-1]], -1)


def test_a_tagger_agrees_with_eager() -> None:
    torch.manual_seed(0)
    model, ids = Tagger().eval(), torch.ones(2, 7, dtype=torch.int64)
    shapes = ({0: BATCH, 1: SEQ}, {0: BATCH})
    compiled = ait_mlir.compile(model, (ids, torch.tensor([7, 4])), dynamic_shapes=shapes)
    for lengths in ([7, 4], [1], [3, 9, 1, 9, 2]):
        given = torch.randint(0, 100, (len(lengths), 12)), torch.tensor(lengths)
        with torch.no_grad():
            torch.testing.assert_close(compiled(*given), model(*given))
    for wrong in (13, 0):
        with pytest.raises(RunError, match=r"gather: index 12 .* outside of its dim, which has 12"):
            compiled(torch.ones(2, 12, dtype=torch.int64), torch.tensor([2, wrong]))


class Cut(nn.Module):
    """Outputs of half the padded length; what stands behind is padding in every sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(5, 4)

    def forward(self, x, lengths):
        return pad_packed_sequence(self.gru(pack_padded_sequence(x, lengths))[0], total_length=x.shape[0] // 2)[0]


def test_a_total_length_that_cuts_a_sequence_is_refused_as_in_pytorch() -> None:
    torch.manual_seed(0)
    model, x = Cut().eval(), torch.randn(8, 2, 5)
    compiled = ait_mlir.compile(model, (x, torch.tensor([4, 3])), dynamic_shapes=({0: Dim("seq", min=4, max=40)}, None))
    with torch.no_grad():
        for steps in (8, 11):
            given = torch.randn(steps, 2, 5), torch.tensor([4, 1])
            torch.testing.assert_close(compiled(*given), model(*given))
        with pytest.raises(ValueError, match="at least the length of the longest"):
            model(x, torch.tensor([5, 1]))
    with pytest.raises(RunError, match=r"gather: index 4 .* outside of its dim, which has 4"):
        compiled(x, torch.tensor([5, 1]))


def test_lengths_that_grow_are_refused_as_in_pytorch_if_they_must_be_sorted() -> None:
    torch.manual_seed(0)
    model, x = Cut().eval(), torch.randn(8, 3, 5)
    compiled = ait_mlir.compile(model, (x, torch.tensor([4, 3, 3])))
    with torch.no_grad():
        for lengths in ([4, 4, 1], [2, 2, 2]):
            given = x, torch.tensor(lengths)
            torch.testing.assert_close(compiled(*given), model(*given))
        with pytest.raises(RuntimeError, match="sorted in decreasing order"):
            model(x, torch.tensor([3, 4, 1]))
    for lengths in ([3, 4, 1], [4, 1, 2]):
        with pytest.raises(RunError, match=r"gather: index 8 .* outside of its dim, which has 8"):
            compiled(x, torch.tensor(lengths))


class Reads(nn.Module):
    def __init__(self, read) -> None:
        super().__init__()
        self.lstm, self.read = nn.LSTM(5, 4), read

    def forward(self, x, lengths):
        return self.read(self.lstm(pack_padded_sequence(x, lengths))[0])


REFUSED = {
    "the data of a packed sequence have no sum here": lambda packed: packed.data.sum(),
    "must be Tensor, not Packed": lambda packed: torch.relu(packed.data),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_else_reads_a_packed_sequence_is_refused(message: str) -> None:
    with pytest.raises(ImportFailure, match=message):
        from_torch(Reads(REFUSED[message]).eval(), (torch.randn(7, 2, 5), torch.tensor([7, 4])))


def test_a_packed_sequence_is_no_result() -> None:
    with pytest.raises(ImportFailure):
        from_torch(Reads(lambda packed: packed).eval(), (torch.randn(7, 2, 5), torch.tensor([7, 4])))


def test_outside_of_a_trace_pytorch_packs() -> None:
    from_torch(Tagger().eval(), (torch.ones(2, 7, dtype=torch.int64), torch.tensor([7, 4])))
    packed = pack_padded_sequence(torch.randn(7, 2, 5), torch.tensor([7, 4]))
    assert packed.data.shape == (11, 5) and LAYERS["projected"].float()(packed)[0].data.shape == (11, 3)
