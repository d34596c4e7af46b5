"""`nn.MultiheadAttention` as it stands: the same results as PyTorch's own function, and no copies."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from ait_mlir.importers.torch import from_torch
from ait_mlir.importers.torch.multihead import heads_apart
from tests.importers.test_launches import launches

LENGTH, BATCH, WIDTH, HEADS = 5, 3, 16, 4
MASKS = [None, "rows", "heads"]


def layer(**options):
    torch.manual_seed(0)
    made = nn.MultiheadAttention(WIDTH, HEADS, **options).eval()
    for weight in made.parameters():
        nn.init.normal_(weight)
    return made


def inputs(made, batched, others):
    """Query, key and value; `others` are the inputs that differ."""

    def rows(length, width):
        shape = (BATCH, length, width) if made.batch_first else (length, BATCH, width)
        return torch.randn(shape if batched else (length, width))

    query = rows(LENGTH, WIDTH)
    key = rows(7, made.kdim) if others else query
    return query, key, rows(7, made.vdim) if others == 2 else key


def masks(kind, padded, boolean, batched, columns):
    def mask(*shape):
        if not boolean:
            return torch.randn(shape)
        found = torch.rand(shape) < 0.3
        found[..., 0] = False
        return found

    batch = BATCH if batched else 1
    shapes = {"rows": (LENGTH, columns), "heads": (batch * HEADS, LENGTH, columns)}
    padding = mask(*((BATCH, columns) if batched else (columns,))) if padded else None
    return {"attn_mask": mask(*shapes[kind]) if kind else None, "key_padding_mask": padding}


def both(made, given, options):
    """PyTorch's results, and those of the function that traces call."""
    with torch.no_grad():
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            exact = made(*given, **options)
            with heads_apart():
                return exact, made(*given, **options)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)


def check(made, given, options):
    exact, found = both(made, given, options)
    torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("first, batched", list(itertools.product([True, False], [True, False])))
@pytest.mark.parametrize("kind, padded, boolean", list(itertools.product(MASKS, [True, False], [True, False])))
def test_the_results_of_pytorch(first, batched, kind, padded, boolean):
    for others, weights, average in itertools.product((0, 1, 2), (True, False), (True, False)):
        made = layer(batch_first=first, bias=others != 1, **({"kdim": 6, "vdim": 10} if others == 2 else {}))
        given = inputs(made, batched, others)
        options = masks(kind, padded, boolean, batched, 7 if others else LENGTH)
        check(made, given, {**options, "need_weights": weights, "average_attn_weights": average})


@pytest.mark.parametrize("options", [{"add_bias_kv": True}, {"add_zero_attn": True}])
def test_rows_that_the_layer_adds(options):
    made = layer(**options)
    check(made, inputs(made, True, 0), {})


@pytest.mark.parametrize("weights", [True, False])
def test_a_causal_mask_and_the_hint_of_it(weights):
    made = layer(batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
    given = inputs(made, True, 0)
    check(made, given, {"attn_mask": mask, "is_causal": True, "need_weights": weights})
    with heads_apart(), pytest.raises(RuntimeError, match="Need attn_mask"):
        made(*given, is_causal=True)


class OfItself(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.layer, self.options = nn.MultiheadAttention(256, 4, batch_first=options.pop("batch_first", True)), options

    def forward(self, x):
        return self.layer(x, x, x, **self.options)[0]


@pytest.mark.parametrize("options", [{}, {"need_weights": False}, {"batch_first": False}])
def test_weights_that_nobody_reads_cost_nothing(options):
    """A product for queries, keys and values, attention, a product: no copy between them."""
    imported = from_torch(OfItself(**options).eval().half(), (torch.zeros(2, 64, 256, dtype=torch.float16),))
    assert [op for op, _, _ in launches(imported.module)] == ["attention", "gemm_rcr_bias", "gemm_rcr_bias"]


class Distances(nn.Module):
    def forward(self, x, y):
        return torch.cdist(x, y)


def test_distances_of_many_points_are_an_epilogue():
    """No launch writes differences: the largest result is the distances."""
    imported = from_torch(Distances().eval(), (torch.zeros(300, 16), torch.zeros(200, 16)))
    found = launches(imported.module)
    assert [op for op, _, _ in found if op.startswith("gemm")] == ["gemm_rcr_mul_sub_add_relu_sqrt"]
    assert sum("300x200" in shapes for _, _, shapes in found) == 1


def test_all_arguments_may_be_positional():
    """As WavLM calls PyTorch's function."""
    weight, out, x = torch.randn(3 * WIDTH, WIDTH), torch.randn(WIDTH, WIDTH), torch.randn(LENGTH, BATCH, WIDTH)
    padding = torch.zeros(BATCH, LENGTH)
    padding[:, -1] = -torch.inf
    given = (x, x, x, WIDTH, HEADS, weight, None, None, None, False, 0.0, out, None, False, padding, False)
    exact = nn.functional.multi_head_attention_forward(*given)
    with heads_apart():
        found = nn.functional.multi_head_attention_forward(*given)
    assert found[1] is exact[1] is None
    torch.testing.assert_close(found[0], exact[0], rtol=1e-4, atol=1e-4)
