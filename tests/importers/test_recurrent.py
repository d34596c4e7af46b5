"""Recurrent layers of PyTorch: the meaning of what is imported, and a text classifier on the CPU, against eager."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import ait_mlir
from ait_mlir.importers.torch import decomposition, from_torch
from ait_mlir.importers.torch.errors import ImportFailure
from ait_mlir.reference.graph import evaluate_graph
from tests.importers.meaning import B, S, check_meaning

BATCH, SEQ = Dim("batch", min=1, max=6), Dim("seq", min=1, max=200)
LAYERS = {
    "lstm": nn.LSTM(5, 4, num_layers=2, bidirectional=True, proj_size=3),
    "gru": nn.GRU(5, 4, num_layers=2, batch_first=True, dropout=0.5),
    "gru_both": nn.GRU(5, 4, bias=False, bidirectional=True),
    "tanh": nn.RNN(5, 4),
    "relu": nn.RNN(5, 4, nonlinearity="relu", bidirectional=True),
}


class WithState(nn.Module):
    """A layer that is given its first state."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x, h, c):
        out, end = self.layer(x, (h, c) if isinstance(self.layer, nn.LSTM) else h)
        return out, end


@pytest.mark.parametrize("name", LAYERS)
def test_the_row_means_what_pytorch_does(name: str) -> None:
    torch.manual_seed(0)
    layer = LAYERS[name].double()
    model = WithState(layer).eval()
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    batch, seq = (0, 1) if layer.batch_first else (1, 0)

    def inputs(b: int, s: int) -> tuple[torch.Tensor, ...]:
        x = torch.randn((b, s, 5) if layer.batch_first else (s, b, 5), dtype=torch.float64)
        hidden = layer.proj_size or layer.hidden_size
        return x, *(torch.randn(count, b, n, dtype=torch.float64) for n in (hidden, layer.hidden_size))

    shapes = ({batch: BATCH, seq: SEQ}, {1: BATCH}, {1: BATCH})
    imported = from_torch(model, inputs(2, 7), dynamic_shapes=shapes)
    imported.module.verify()
    for b, s in ((2, 7), (1, 1), (3, 5)):
        given = inputs(b, s)
        with torch.no_grad():
            want = torch.utils._pytree.tree_leaves(model(*given))
        arrays = {item.name: v.numpy() for item, v in zip(imported.inputs.tensors, given, strict=True)}
        got = evaluate_graph(imported.graph, arrays, imported.constants, {"batch": b, "seq": s})
        for (_, out), value in zip(imported.outputs, want, strict=True):
            np.testing.assert_allclose(got[out], value.numpy(), rtol=1e-9, atol=1e-9)


class Classifier(nn.Module):
    """A text classifier: two directions of an LSTM over embedded words, the last states to classes."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, bidirectional=True, batch_first=True)
        self.head = nn.Linear(48, 5)

    def forward(self, ids):
        _, (h, _) = self.lstm(self.words(ids))
        return self.head(torch.cat([h[-2], h[-1]], -1))


def test_a_text_classifier_agrees_with_eager() -> None:
    torch.manual_seed(0)
    model = Classifier().eval()
    compiled = ait_mlir.compile(model, (torch.ones(2, 7, dtype=torch.int64),), dynamic_shapes=({0: BATCH, 1: SEQ},))
    for shape in ((1, 1), (2, 7), (5, 180)):
        ids = torch.randint(0, 100, shape)
        with torch.no_grad():
            torch.testing.assert_close(compiled(ids), model(ids))


def test_steps_of_few_rows_on_a_cpu_agree_with_eager() -> None:
    """130 columns are no multiple of a run of columns, and enough for several threads."""
    torch.manual_seed(0)
    model = nn.LSTM(9, 130, num_layers=2, bidirectional=True).eval()
    x = torch.randn(11, 5, 9)
    compiled = ait_mlir.compile(model, (x,), dynamic_shapes=({0: SEQ, 1: BATCH},))
    for steps, batch in ((1, 1), (11, 5)):
        with torch.no_grad():
            torch.testing.assert_close(compiled(x[:steps, :batch]), model(x[:steps, :batch]))


def test_the_product_with_the_inputs_stands_in_front_of_the_loop() -> None:
    ids = torch.ones(2, 7, dtype=torch.int64)
    text = str(from_torch(Classifier().eval(), (ids,), dynamic_shapes=({1: SEQ},)).module)
    for loop in text.split("ait.scan")[1:]:
        assert loop.split("ait.yield")[0].count("ait.gemm") == 1


class Decoder(nn.Module):
    """A layer over the whole sequence, then cells, which PyTorch has to decompose."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.GRU(5, 4, batch_first=True), nn.GRUCell(4, 4)

    def forward(self, x):
        out, end = self.encoder(x)
        return out, self.decoder(out[:, -1], end[0])


def test_a_layer_beside_a_decomposed_cell_keeps_its_dynamic_length() -> None:
    torch.manual_seed(0)
    check_meaning(Decoder().double().eval(), (torch.randn(2, 7, 5, dtype=torch.float64),), ({0: B, 1: S},))


def test_a_decomposition_that_fixes_a_dynamic_dim_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(decomposition, "whole_layers", contextlib.nullcontext)
    x = torch.randn(2, 7, 5)
    with pytest.raises(ImportFailure, match=r"makes a number of a dynamic dim of x where it decomposes aten.gru_cell"):
        from_torch(Decoder().eval(), (x,), dynamic_shapes=({0: B, 1: S},))
