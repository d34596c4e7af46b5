"""Llama in plain PyTorch: the peer of `examples/models/llama.py`, with the parameter names of the checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class LlamaConfig:
    """The sizes of a Llama decoder; the defaults are Llama-2-7B."""

    vocab_size: int = 32000
    hidden_size: int = 4096
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int = 32
    intermediate_size: int = 11008
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    sliding_window: int | None = None


KeyValue = tuple[torch.Tensor, torch.Tensor]


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class LlamaAttention(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.config = config
        self.size = config.hidden_size // config.num_attention_heads
        kv = config.num_key_value_heads * self.size
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv, bias=False)
        self.o_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)

    def project(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> list[torch.Tensor]:
        """Queries, keys and values [batch, heads, seq, head size], rotated."""
        batch, seq, _ = x.shape
        q, k, v = (p(x).view(batch, seq, -1, self.size) for p in (self.q_proj, self.k_proj, self.v_proj))
        return [t.transpose(1, 2) for t in (rotate(q, cos, sin), rotate(k, cos, sin), v)]

    def step(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, cache: KeyValue) -> torch.Tensor:
        """One token a sequence: its key and value go to the last place of the cache, in place."""
        q, *new = self.project(x, cos, sin)
        for whole, value in zip(cache, new, strict=True):
            whole[:, :, -1:] = value
        grouped = {"enable_gqa": True} if cache[0].shape[1] != q.shape[1] else {}
        y = F.scaled_dot_product_attention(q, *cache, **grouped)
        return self.o_proj(y.transpose(1, 2).reshape(x.shape))

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, past: KeyValue | None
    ) -> tuple[torch.Tensor, KeyValue]:
        batch, seq, hidden = x.shape
        q, k, v = self.project(x, cos, sin)
        if past is not None:
            k, v = (torch.cat([before, now], 2) for before, now in zip(past, (k, v), strict=True))
        grouped = {"enable_gqa": True} if k.shape[1] != q.shape[1] else {}
        length, window = k.shape[2], self.config.sliding_window
        if window is None and length == seq:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, **grouped)
        else:
            place = torch.arange(length - seq, length, device=x.device)[:, None]
            column = torch.arange(length, device=x.device)
            visible = column <= place
            if window is not None:
                visible &= column > place - window
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible, **grouped)
        return self.o_proj(y.transpose(1, 2).reshape(batch, seq, hidden)), (k, v)


class LlamaMLP(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.self_attn = LlamaAttention(config)
        self.mlp = LlamaMLP(config)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, past: KeyValue | None
    ) -> tuple[torch.Tensor, KeyValue]:
        attended, present = self.self_attn(self.input_layernorm(x), cos, sin, past)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x)), present

    def step(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, cache: KeyValue) -> torch.Tensor:
        x = x + self.self_attn.step(self.input_layernorm(x), cos, sin, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaModel(nn.Module):
    """Token ids and positions, each [batch, seq], to hidden states; `presents` are the keys and values of the call."""

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(LlamaDecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.presents: list[KeyValue] = []

    def rotations(self, x: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of the positions, in the dtype of x."""
        size = self.config.hidden_size // self.config.num_attention_heads
        angle_type = torch.float64 if x.dtype == torch.float64 else torch.float32
        exponents = torch.arange(0, size, 2, device=x.device, dtype=torch.float64) / size
        frequencies = (self.config.rope_theta**-exponents).to(angle_type)
        angles = positions[..., None, None].to(angle_type) * frequencies
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)

    def forward(self, ids: torch.Tensor, positions: torch.Tensor, past: list[KeyValue] | None = None) -> torch.Tensor:
        x = self.embed_tokens(ids)
        cos, sin = self.rotations(x, positions)
        self.presents = []
        for i, layer in enumerate(self.layers):
            x, present = layer(x, cos, sin, None if past is None else past[i])
            self.presents.append(present)
        return self.norm(x)


class LlamaStep(LlamaModel):
    """One token a sequence, ids and positions [batch, 1], to hidden states [batch, 1, hidden].

    `cache` are keys and values of each layer in turn, [batch, kv heads, length, head size], whose last place is free
    for the new token.
    """

    def forward(self, ids: torch.Tensor, positions: torch.Tensor, *cache: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        x = self.embed_tokens(ids)
        cos, sin = self.rotations(x, positions)
        for i, layer in enumerate(self.layers):
            x = layer.step(x, cos, sin, (cache[2 * i], cache[2 * i + 1]))
        return self.norm(x)


class LlamaForCausalLM(nn.Module):
    """Token ids and positions, each [batch, seq], to logits [batch, seq, vocabulary]."""

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.model = LlamaModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, ids: torch.Tensor, positions: torch.Tensor, past: list[KeyValue] | None = None) -> torch.Tensor:
        return self.lm_head(self.model(ids, positions, past))
