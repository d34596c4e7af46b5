"""Decoders of transformers as they come: their result holds a cache of keys and values."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim

from ait_mlir.errors import InputError
from ait_mlir.importers.torch import from_torch
from ait_mlir.importers.torch.capture import explain
from ait_mlir.importers.torch.compiled import build
from ait_mlir.options import CompileOptions


def test_a_returned_cache_is_a_cache_of_our_results() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = transformers.LlamaConfig(**sizes, intermediate_size=32, vocab_size=50)
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    batch, length = Dim("batch", min=1, max=4), Dim("length", min=1, max=16)
    imported = from_torch(model, (torch.ones(2, 7, dtype=torch.long),), dynamic_shapes=({0: batch, 1: length},))
    ours = build(imported, CompileOptions())
    tokens = torch.randint(0, 50, (3, 5))
    with torch.no_grad():
        wanted = model(tokens)
    found = ours(tokens)
    assert type(found) is type(wanted) and isinstance(found.past_key_values, transformers.DynamicCache)
    torch.testing.assert_close(found.logits, wanted.logits)
    for mine, theirs in zip(found.past_key_values.layers, wanted.past_key_values.layers, strict=True):
        torch.testing.assert_close(mine.keys, theirs.keys)
        torch.testing.assert_close(mine.values, theirs.values)
    with pytest.raises(InputError, match=r"the arguments are \(_, _\), but the model was exported with \(_\)"):
        ours(tokens, tokens)


def test_a_cache_for_each_of_two_attentions() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 50, "max_position_embeddings": 32}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    torch.manual_seed(0)
    model = transformers.BlenderbotModel(transformers.BlenderbotConfig(**sizes, **heads)).eval()
    given = {"input_ids": torch.ones(2, 7, dtype=torch.long), "decoder_input_ids": torch.ones(2, 5, dtype=torch.long)}
    module = from_torch(
        model,
        (),
        given,
        dynamic_shapes={"input_ids": {0: Dim("batch", max=4)}, "decoder_input_ids": {0: Dim("batch", max=4)}},
    )
    names = [name for name in str(module.module).splitlines() if "ait.output" in name]
    assert any('"past_key_values_cross_attention_cache_key_cache_0"' in name for name in names), names


def test_a_cache_that_pytorch_cannot_return_is_said():
    """Caches with states of convolutions, as those of LFM2."""
    error = RuntimeError("This pytree flattening function should be applied to DynamicCache containing only layers")
    told = explain(error, lambda: None)
    assert told.endswith("(RuntimeError); set use_cache=False if you need no cache of keys and values")
