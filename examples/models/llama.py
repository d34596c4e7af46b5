"""Llama (arXiv:2302.13971, arXiv:2307.09288), its parameters named as in the published checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from ait_mlir.frontend import ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.attention import join_heads
from ait_mlir.frontend.nn.embedding import Embedding
from ait_mlir.frontend.nn.linear import Linear
from ait_mlir.frontend.nn.module import Module, ModuleList
from ait_mlir.frontend.nn.norm import RMSNorm
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.frontend.tensor import Tensor

KeyValue = tuple[Tensor, Tensor]
"""Keys and values of a layer, each [batch, kv heads, length, head size]."""


@dataclass(frozen=True)
class LlamaConfig:
    """The sizes of a Llama decoder; the defaults are Llama-2-7B. `sliding_window` is Mistral's addition."""

    vocab_size: int = 32000
    hidden_size: int = 4096
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int = 32
    intermediate_size: int = 11008
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    sliding_window: int | None = None
    dtype: str = "float16"

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads


class LlamaRotary(Module):
    """Positions [batch, seq], int32 or int64, to cosines and sines [batch, seq, 1, head size / 2].

    The angles are computed in float32. `inv_freq` brings its data; it is no part of the checkpoints.
    """

    def __init__(self, config: LlamaConfig):
        exponents = np.arange(0, config.head_size, 2) / config.head_size
        self.angle_dtype = "float64" if config.dtype == "float64" else "float32"
        self.dtype = config.dtype
        frequencies = (config.rope_theta**-exponents).astype(self.angle_dtype)
        self.inv_freq = Parameter([config.head_size // 2], self.angle_dtype, value=frequencies)

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        batch, seq = positions.shape()
        places = ops.cast()(ops.reshape()(positions, [batch, seq, 1, 1]), self.angle_dtype)
        angles = places * self.inv_freq.tensor()
        cos, sin = (ops.elementwise(f)(angles) for f in (FuncEnum.COS, FuncEnum.SIN))
        return ops.cast()(cos, self.dtype), ops.cast()(sin, self.dtype)


class LlamaAttention(Module):
    """Causal attention over [batch, seq, hidden] with rotated queries and keys, several query heads to a kv head."""

    def __init__(self, config: LlamaConfig):
        self.config = config
        hidden, size = config.hidden_size, config.head_size
        kv = config.num_key_value_heads * size
        self.q_proj = Linear(hidden, config.num_attention_heads * size, bias=False, dtype=config.dtype)
        self.k_proj = Linear(hidden, kv, bias=False, dtype=config.dtype)
        self.v_proj = Linear(hidden, kv, bias=False, dtype=config.dtype)
        self.o_proj = Linear(config.num_attention_heads * size, hidden, bias=False, dtype=config.dtype)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, past: KeyValue | None) -> tuple[Tensor, KeyValue]:
        """`past` has the keys and values of earlier positions; the second result has those of all positions.

        `step` has those of this call alone, for a caller that keeps them itself.
        """
        config = self.config
        batch, seq, _ = x.shape()
        sizes = (config.num_attention_heads, config.num_key_value_heads, config.num_key_value_heads)
        q, k, v = (
            ops.reshape()(linear(x), [batch, seq, heads, config.head_size])
            for linear, heads in zip((self.q_proj, self.k_proj, self.v_proj), sizes, strict=True)
        )
        q, k = (ops.rotary_embedding()(t, cos, sin) for t in (q, k))
        q, k, v = (ops.permute()(t, [0, 2, 1, 3]) for t in (q, k, v))
        self.step = k, v
        if past is not None:
            k, v = (ops.concatenate()([before, now], 2) for before, now in zip(past, (k, v), strict=True))
        y = ops.attention(causal=True, window=config.sliding_window)(q, k, v)
        return self.o_proj(join_heads(y)), (k, v)


class LlamaMLP(Module):
    """down(silu(gate(x)) * up(x)) (arXiv:2002.05202)."""

    def __init__(self, config: LlamaConfig):
        hidden, wide = config.hidden_size, config.intermediate_size
        self.gate_proj = Linear(hidden, wide, bias=False, dtype=config.dtype)
        self.up_proj = Linear(hidden, wide, bias=False, dtype=config.dtype)
        self.down_proj = Linear(wide, hidden, bias=False, dtype=config.dtype)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_proj.weight.tensor(), self.up_proj.weight.tensor()
        return self.down_proj(ops.dual_gemm_rcr_silu()(x, gate, up))


class LlamaDecoderLayer(Module):
    """Attention, then the feed-forward block, each on the norm of its input and added to it."""

    def __init__(self, config: LlamaConfig):
        self.self_attn = LlamaAttention(config)
        self.mlp = LlamaMLP(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, config.dtype)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, config.dtype)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, past: KeyValue | None) -> tuple[Tensor, KeyValue]:
        attended, present = self.self_attn(self.input_layernorm(x), cos, sin, past)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x)), present


class LlamaModel(Module):
    """Token ids and positions, each [batch, seq] and int32 or int64, to hidden states [batch, seq, hidden].

    With `past`, keys and values of earlier positions for each layer, `presents` holds those of all positions after
    the call, and `steps` those of the call alone.
    """

    def __init__(self, config: LlamaConfig):
        if config.hidden_size % (2 * config.num_attention_heads):
            raise BuildError(
                f"LlamaModel: {config.num_attention_heads} heads do not divide the {config.hidden_size} channels evenly"
            )
        self.embed_tokens = Embedding([config.vocab_size, config.hidden_size], config.dtype)
        self.layers = ModuleList(LlamaDecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, config.dtype)
        self.rotary_emb = LlamaRotary(config)
        self.presents: list[KeyValue] = []
        self.steps: list[KeyValue] = []

    def forward(self, input_ids: Tensor, position_ids: Tensor, past: Sequence[KeyValue] | None = None) -> Tensor:
        x = self.embed_tokens(input_ids)
        cos, sin = self.rotary_emb(position_ids)
        self.presents = []
        for layer, before in zip(self.layers, past or [None] * len(self.layers), strict=True):
            x, present = layer(x, cos, sin, before)
            self.presents.append(present)
        self.steps = [cast(LlamaDecoderLayer, layer).self_attn.step for layer in self.layers]
        return self.norm(x)


class LlamaForCausalLM(Module):
    """Token ids and positions, each [batch, seq], to logits [batch, seq, vocabulary]."""

    def __init__(self, config: LlamaConfig):
        self.model = LlamaModel(config)
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False, dtype=config.dtype)

    def forward(self, input_ids: Tensor, position_ids: Tensor, past: Sequence[KeyValue] | None = None) -> Tensor:
        return self.lm_head(self.model(input_ids, position_ids, past))
