"""GPT-2 (Radford et al., 2019), its parameters named as in the published checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from ait_mlir.frontend import ops
from ait_mlir.frontend.nn.attention import join_heads, split_heads
from ait_mlir.frontend.nn.embedding import Embedding
from ait_mlir.frontend.nn.module import Module, ModuleList
from ait_mlir.frontend.nn.norm import LayerNorm
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.frontend.tensor import Tensor


@dataclass(frozen=True)
class GPT2Config:
    """The sizes of a GPT-2 decoder; the defaults are the smallest one's."""

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    layer_norm_epsilon: float = 1e-5
    dtype: str = "float16"


class Conv1D(Module):
    """y = x @ weight + bias: the checkpoints store the weight as [in_channels, out_channels]."""

    def __init__(self, in_channels: int, out_channels: int, dtype: str = "float16"):
        self.weight = Parameter([in_channels, out_channels], dtype)
        self.bias = Parameter([out_channels], dtype)

    def forward(self, x: Tensor) -> Tensor:
        return ops.gemm_rrr_bias()(x, self.weight.tensor(), self.bias.tensor())


class GPT2Attention(Module):
    """Causal self attention over [batch, seq, n_embd]."""

    def __init__(self, config: GPT2Config):
        self.heads = config.n_head
        self.c_attn = Conv1D(config.n_embd, 3 * config.n_embd, config.dtype)
        self.c_proj = Conv1D(config.n_embd, config.n_embd, config.dtype)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(t, self.heads) for t in ops.chunk()(self.c_attn(x), 3, dim=-1))
        return self.c_proj(join_heads(ops.attention(causal=True)(q, k, v)))


class GPT2MLP(Module):
    """c_proj(gelu(c_fc(x))), with the tanh form of gelu."""

    def __init__(self, config: GPT2Config):
        self.c_fc = Conv1D(config.n_embd, 4 * config.n_embd, config.dtype)
        self.c_proj = Conv1D(4 * config.n_embd, config.n_embd, config.dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(ops.elementwise(FuncEnum.FASTGELU)(self.c_fc(x)))


class GPT2Block(Module):
    """Attention, then the feed-forward block, each on the norm of its input and added to it."""

    def __init__(self, config: GPT2Config):
        self.ln_1 = LayerNorm(config.n_embd, config.layer_norm_epsilon, config.dtype)
        self.attn = GPT2Attention(config)
        self.ln_2 = LayerNorm(config.n_embd, config.layer_norm_epsilon, config.dtype)
        self.mlp = GPT2MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2Model(Module):
    """Token ids and positions, each [batch, seq] and int32 or int64, to hidden states [batch, seq, n_embd]."""

    def __init__(self, config: GPT2Config):
        self.wte = Embedding([config.vocab_size, config.n_embd], config.dtype)
        self.wpe = Embedding([config.n_positions, config.n_embd], config.dtype)
        self.h = ModuleList(GPT2Block(config) for _ in range(config.n_layer))
        self.ln_f = LayerNorm(config.n_embd, config.layer_norm_epsilon, config.dtype)

    def forward(self, input_ids: Tensor, position_ids: Tensor) -> Tensor:
        x = self.wte(input_ids) + self.wpe(position_ids)
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class GPT2LMHeadModel(Module):
    """Token ids and positions, each [batch, seq], to logits [batch, seq, vocabulary]; the head is the token table."""

    def __init__(self, config: GPT2Config):
        self.transformer = GPT2Model(config)

    def forward(self, input_ids: Tensor, position_ids: Tensor) -> Tensor:
        hidden = self.transformer(input_ids, position_ids)
        return ops.gemm_rcr()(hidden, self.transformer.wte.tensor())
