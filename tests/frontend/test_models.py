"""Llama, GPT-2 and ViT against plain PyTorch: exactly through the reference, and compiled for the CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.driver import run_to_phase
from ait_mlir.frontend import BuildError, IntVar, Tensor, build_module, compile_model, ops
from ait_mlir.options import CompileOptions
from benchmarks import measure
from benchmarks.peers import gpt2 as gpt2_peer
from benchmarks.peers import llama as llama_peer
from benchmarks.peers import vit as vit_peer
from benchmarks.peers.bert import randomize
from examples.models import gpt2, llama, vit
from tests import tiers
from tests.frontend.support import evaluate

LLAMA = {
    "vocab_size": 50,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
}
GPT2 = {"vocab_size": 50, "n_positions": 16, "n_embd": 64, "n_layer": 2, "n_head": 4}
VIT = {"img_size": 24, "patch_size": 8, "embed_dim": 64, "depth": 2, "num_heads": 4, "mlp_dim": 96, "num_classes": 10}
WINDOW = {**LLAMA, "sliding_window": 3, "num_key_value_heads": 4}


@dataclass(frozen=True)
class Model:
    """A model in both frameworks, and its inputs."""

    ours: Callable[[str], Any]
    theirs: Callable[[], torch.nn.Module]
    images: bool = False

    def inputs(self, dtype: str) -> list[Tensor]:
        batch, seq = IntVar([1, 8], name="batch"), IntVar([1, 16], name="seq")
        if self.images:
            return [Tensor(shape=[batch, 3, 24, 24], dtype=dtype, name="images", is_input=True)]
        names = ("input_ids", "position_ids")
        return [Tensor(shape=[batch, seq], dtype="int64", name=n, is_input=True) for n in names]

    def data(self, batch: int, seq: int, dtype: torch.dtype) -> list[torch.Tensor]:
        if self.images:
            return [torch.randn(batch, 3, 24, 24).to(dtype)]
        return [torch.randint(0, 50, (batch, seq)), torch.arange(seq).expand(batch, seq).contiguous()]


MODELS = {
    "llama": Model(
        lambda t: llama.LlamaForCausalLM(llama.LlamaConfig(**LLAMA, dtype=t)),
        lambda: llama_peer.LlamaForCausalLM(llama_peer.LlamaConfig(**LLAMA)),
    ),
    "mistral": Model(
        lambda t: llama.LlamaForCausalLM(llama.LlamaConfig(**WINDOW, dtype=t)),
        lambda: llama_peer.LlamaForCausalLM(llama_peer.LlamaConfig(**WINDOW)),
    ),
    "gpt2": Model(
        lambda t: gpt2.GPT2LMHeadModel(gpt2.GPT2Config(**GPT2, dtype=t)),
        lambda: gpt2_peer.GPT2LMHeadModel(gpt2_peer.GPT2Config(**GPT2)),
    ),
    "vit": Model(
        lambda t: vit.VisionTransformer(vit.ViTConfig(**VIT, dtype=t)),
        lambda: vit_peer.VisionTransformer(vit_peer.ViTConfig(**VIT)),
        images=True,
    ),
}


def build(model: Model, dtype: str) -> tuple[Any, list[Tensor]]:
    ours = model.ours(dtype)
    ours.name_parameter_tensor(separator=".")
    return ours, model.inputs(dtype)


def values_of(ours: Any, theirs: torch.nn.Module) -> dict[str, np.ndarray]:
    """The parameters of the peer, and parameters with data of their own."""
    weights = {name: value.numpy() for name, value in theirs.state_dict().items()}
    own = {name: p.value() for name, p in ours.named_parameters() if p.value() is not None}
    assert {name for name, _ in ours.named_parameters()} - set(own) == set(weights)
    return weights | own


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batch, seq", [(1, 1), (3, 7)])
def test_reference_answers_like_torch(name: str, batch: int, seq: int) -> None:
    torch.manual_seed(0)
    model = MODELS[name]
    theirs = randomize(model.theirs()).double().eval()
    ours, inputs = build(model, "float64")
    data = model.data(batch, seq, torch.float64)
    named = {t.name: d.numpy() for t, d in zip(inputs, data, strict=True)}
    dims = {"batch": batch} | ({} if model.images else {"seq": seq})
    (got,) = evaluate(ours(*inputs), named, values_of(ours, theirs), **dims)
    with torch.inference_mode():
        want = theirs(*data)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-8, atol=1e-9)


DTYPES = (torch.float32, torch.float16)
COMPILED = [(name, dtype) for name in MODELS for dtype in DTYPES]


@pytest.mark.parametrize(("name", "dtype"), tiers.params(COMPILED, tiers.pairs(list(MODELS), DTYPES)), ids=str)
def test_compiled_answers_like_torch(name: str, dtype: torch.dtype, tmp_path: Any) -> None:
    model = MODELS[name]
    theirs = randomize(model.theirs()).to(dtype).eval()
    exactly = copy.deepcopy(theirs).double()
    ours, inputs = build(model, str(dtype).removeprefix("torch."))
    y = ours(*inputs).mark_as_output("y")
    torch.manual_seed(0)
    with compile_model(y, "cpu", tmp_path, name, constants=theirs.state_dict()) as compiled, torch.inference_mode():
        assert not compiled.get_constant_names(unset_only=True)
        for batch, seq in ((2, 5), (8, 16)):
            data = model.data(batch, seq, dtype)
            got = compiled.run_with_tensors({t.name: d for t, d in zip(inputs, data, strict=True)})["y"]
            wide = [d.double() if d.is_floating_point() else d for d in data]
            result = measure.accuracy(got, theirs(*data), exactly(*wide))
            assert result.passed, (batch, seq, result)


@pytest.mark.parametrize("kept", ["presents", "steps"])
def test_a_step_with_past_keys_and_values(kept: str, tmp_path: Any) -> None:
    """Prefill and one more token give what all tokens at once give, whoever lays the keys and values end to end."""
    theirs = randomize(MODELS["llama"].theirs()).float().eval()
    ours, (ids, places) = build(MODELS["llama"], "float32")
    config = llama.LlamaConfig(**LLAMA)
    length = IntVar([0, 32], name="past")
    shape = [ids.shape()[0], config.num_key_value_heads, length, config.head_size]
    names = [(f"k{i}", f"v{i}") for i in range(config.num_hidden_layers)]
    past = [
        tuple(Tensor(shape=shape, dtype="float32", name=f"past_{n}", is_input=True) for n in pair) for pair in names
    ]
    outputs = [ours(ids, places, past).mark_as_output("y")]
    for pair, present in zip(names, getattr(ours.model, kept), strict=True):
        outputs += [t.mark_as_output(n) for n, t in zip(pair, present, strict=True)]
    # What is new is copied to where it is returned, at once; where the caches are returned, those of each layer are.
    made = launches(outputs)
    assert made.count("model_copies") == {"presents": 2, "steps": 1}[kept] and "model_copy" not in made
    tokens, positions = torch.randint(0, 50, (2, 9)), torch.arange(9).expand(2, 9).contiguous()
    with compile_model(outputs, "cpu", tmp_path, "step", constants=theirs.state_dict()) as model:
        state = {f"past_{n}": torch.zeros(2, 2, 0, 16) for pair in names for n in pair}
        for cut in (slice(0, 6), slice(6, 7), slice(7, 9)):
            inputs = {"input_ids": tokens[:, cut].contiguous(), "position_ids": positions[:, cut].contiguous()}
            got = model.run_with_tensors({**inputs, **state})
            new = {f"past_{n}": got[n] for pair in names for n in pair}
            state = new if kept == "presents" else {n: torch.cat([state[n], t], 2) for n, t in new.items()}
    with torch.inference_mode():
        want = theirs(tokens, positions)[:, 7:]
    torch.testing.assert_close(got["y"], want, rtol=1e-4, atol=1e-4)


def launches(outputs: Tensor | list[Tensor]) -> list[str]:
    module = build_module(outputs)
    run_to_phase(module, "planned", CompileOptions("cpu", "native"))
    names = [op.kernel.string_value() for op in module.walk() if isinstance(op, LaunchOp)]
    return [name.rsplit("_", 1)[0] for name in names]


def test_a_llama_layer_is_nine_launches() -> None:
    """One product for q, k, v; one launch for both rotations; both halves of the feed-forward block
    as one; residuals in epilogues.
    """
    config = llama.LlamaConfig(**LLAMA, dtype="float16")
    model = llama.LlamaModel(replace(config, num_hidden_layers=2))
    model.name_parameter_tensor(separator=".")
    names = launches(model(*MODELS["llama"].inputs("float16")).mark_as_output("y"))
    assert not [n for n in names if n.startswith(("copy", "concat", "permute", "slice", "split"))], names
    assert sum(n.startswith("gemm") for n in names) == 2 * 4
    assert sum(n.endswith("rms_norm") or n.startswith("loops") for n in names) == 2 * 2 + 1  # short rows
    # around the layers: the tokens, cosines and sines of their places, the last norm
    assert len(names) == 2 + 2 * 9 + 1, names


def test_query_and_key_of_as_many_heads_are_rotated_at_once() -> None:
    config = llama.LlamaConfig(**{**LLAMA, "num_key_value_heads": LLAMA["num_attention_heads"]}, dtype="float16")
    model = llama.LlamaModel(replace(config, num_hidden_layers=2))
    model.name_parameter_tensor(separator=".")
    names = launches(model(*MODELS["llama"].inputs("float16")).mark_as_output("y"))
    assert len(names) == 2 + 2 * 9 + 1, names


def test_models_say_what_does_not_fit() -> None:
    with pytest.raises(BuildError, match="3 heads do not divide the 64 channels"):
        llama.LlamaModel(llama.LlamaConfig(**{**LLAMA, "num_attention_heads": 3}))
    with pytest.raises(BuildError, match="patches of 7 do not divide an image of 24"):
        vit.VisionTransformer(vit.ViTConfig(**{**VIT, "patch_size": 7}))
    x = Tensor(shape=[2, 7], name="x", is_input=True)
    half = Tensor(shape=[2, 4], name="half", is_input=True)
    with pytest.raises(BuildError, match="must be an even number"):
        ops.rotary_embedding()(x, half, half)
    with pytest.raises(BuildError, match="last dim of sin must be 2"):
        ops.rotary_embedding()(half, Tensor(shape=[2]), half)
    with pytest.raises(BuildError, match="the second factor must be like b"):
        ops.dual_gemm_rcr_silu()(x, Tensor(shape=[3, 7]), Tensor(shape=[4, 7]))
