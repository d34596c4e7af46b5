"""The measured models on both sides: ours written with the builder, the peer in plain PyTorch, with the same weights.

A model takes a size (batch, length): tokens, or for one step of decoding the tokens in the cache. ViT has one length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from ait_mlir.frontend import IntVar, Tensor
from benchmarks.peers import bert as peer_bert
from benchmarks.peers import gpt2 as peer_gpt2
from benchmarks.peers import llama as peer_llama
from benchmarks.peers import vit as peer_vit
from examples.models import bert as our_bert
from examples.models import gpt2 as our_gpt2
from examples.models import llama as our_llama
from examples.models import vit as our_vit

Size = tuple[int, int]
Inputs = dict[str, torch.Tensor]

VOCABULARY = 32000
"""Token ids of Llama."""


@dataclass(frozen=True)
class Workload:
    """A model on both sides, and how much work it is at a size.

    The first output is compared; `inputs` are ours by name, on a device, and `arguments` makes the peer's of them.
    """

    outputs: list[Tensor]
    peer: nn.Module
    inputs: Callable[[Size, str], Inputs]
    flops: Callable[[Size], float]
    bytes: Callable[[Size], float]
    arguments: Callable[[Mapping[str, torch.Tensor]], list[torch.Tensor]] = lambda inputs: list(inputs.values())


@dataclass(frozen=True)
class Model:
    """How to build a workload for (dtype, layers, sizes), and the sizes and layers that it is shown at."""

    build: Callable[[torch.dtype, int, Sequence[Size]], Workload]
    layers: int
    batches: tuple[int, ...] = (1, 32)
    lengths: tuple[int, ...] = (128,)
    any_length: bool = True


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _dims(sizes: Sequence[Size], batch: int, length: int, name: str = "seq") -> tuple[IntVar, IntVar]:
    """A batch from 1 to at least `batch`, and a length up to at least `length`, with the wanted ones as hints."""
    batches, lengths = (sorted(set(values)) for values in zip(*sizes, strict=True))
    return (
        IntVar([1, max(batch, *batches)], name="batch", hints=batches),
        IntVar([1, max(length, *lengths)], name=name, hints=lengths),
    )


def _generator(size: Size) -> torch.Generator:
    return torch.Generator().manual_seed(size[0] * 1000 + size[1])


def _token_inputs(size: Size, vocabulary: int, device: str) -> Inputs:
    seq = size[1]
    ids = torch.randint(0, vocabulary, size, generator=_generator(size))
    return {"input_ids": ids.to(device), "position_ids": torch.arange(seq, device=device).expand(size).contiguous()}


def _token_tensors(batch: IntVar, seq: IntVar | int) -> list[Tensor]:
    names = ("input_ids", "position_ids")
    return [Tensor(shape=[batch, seq], dtype="int64", name=name, is_input=True) for name in names]


def _weight_bytes(module: nn.Module, tables: Iterable[str] = ()) -> float:
    """Bytes of all parameters, except tables of which only some rows are read."""
    return float(sum(p.nbytes for name, p in module.named_parameters() if not name.endswith(tuple(tables))))


def bert(dtype: torch.dtype, layers: int, sizes: Sequence[Size]) -> Workload:
    """The BERT-base encoder on hidden states [batch, seq, 768]."""
    config = peer_bert.BertConfig(num_hidden_layers=layers)
    hidden, wide = config.hidden_size, config.intermediate_size
    peer = peer_bert.randomize(peer_bert.BertEncoder(config)).to(dtype).eval()
    encoder = our_bert.BertEncoder(our_bert.BertConfig(num_hidden_layers=layers, dtype=_name(dtype)))
    encoder.name_parameter_tensor(separator=".")
    x = Tensor(shape=[*_dims(sizes, 64, 512), hidden], dtype=_name(dtype), name="x", is_input=True)
    weights = _weight_bytes(peer)

    def inputs(size: Size, device: str) -> Inputs:
        return {"x": torch.randn(*size, hidden, generator=_generator(size)).to(device, dtype)}

    def flops(size: Size) -> float:
        batch, seq = size
        per_token = 2 * (4 * hidden * hidden + 2 * hidden * wide) + 4 * seq * hidden
        return float(layers * batch * seq * per_token)

    def moved(size: Size) -> float:
        return weights + 2 * size[0] * size[1] * hidden * dtype.itemsize

    return Workload([encoder(x).mark_as_output("y")], peer, inputs, flops, moved)


def vit(dtype: torch.dtype, layers: int, sizes: Sequence[Size]) -> Workload:
    """ViT-B/16 on images [batch, 3, 224, 224]; the length is always 197."""
    config = peer_vit.ViTConfig(depth=layers)
    hidden, wide, side = config.embed_dim, config.mlp_dim, config.img_size
    tokens, pixels = (side // config.patch_size) ** 2, config.in_chans * config.patch_size**2
    peer = peer_bert.randomize(peer_vit.VisionTransformer(config)).to(dtype).eval()
    ours = our_vit.VisionTransformer(our_vit.ViTConfig(depth=layers, dtype=_name(dtype)))
    ours.name_parameter_tensor(separator=".")
    batches = sorted({b for b, _ in sizes})
    batch = IntVar([1, max(64, *batches)], name="batch", hints=batches)
    x = Tensor(shape=[batch, 3, side, side], dtype=_name(dtype), name="images", is_input=True)
    weights = _weight_bytes(peer)

    def inputs(size: Size, device: str) -> Inputs:
        return {"images": torch.randn(size[0], 3, side, side, generator=_generator(size)).to(device, dtype)}

    def flops(size: Size) -> float:
        seq = tokens + 1
        per_layer = seq * (2 * (4 * hidden * hidden + 2 * hidden * wide) + 4 * seq * hidden)
        around = 2 * tokens * pixels * hidden + 2 * hidden * config.num_classes
        return float(size[0] * (layers * per_layer + around))

    def moved(size: Size) -> float:
        return weights + size[0] * (3 * side * side + config.num_classes) * dtype.itemsize

    return Workload([ours(x).mark_as_output("y")], peer, inputs, flops, moved)


def gpt2(dtype: torch.dtype, layers: int, sizes: Sequence[Size]) -> Workload:
    """The smallest GPT-2 from token ids to logits."""
    config = peer_gpt2.GPT2Config(n_layer=layers)
    hidden, vocabulary = config.n_embd, config.vocab_size
    peer = peer_bert.randomize(peer_gpt2.GPT2LMHeadModel(config)).to(dtype).eval()
    ours = our_gpt2.GPT2LMHeadModel(our_gpt2.GPT2Config(n_layer=layers, dtype=_name(dtype)))
    ours.name_parameter_tensor(separator=".")
    weights = _weight_bytes(peer, ["wpe.weight"])

    def flops(size: Size) -> float:
        batch, seq = size
        per_token = layers * (2 * 12 * hidden * hidden + 2 * (seq + 1) * hidden) + 2 * hidden * vocabulary
        return float(batch * seq * per_token)

    def moved(size: Size) -> float:
        return weights + size[0] * size[1] * (vocabulary * dtype.itemsize + 16)

    return Workload(
        [ours(*_token_tensors(*_dims(sizes, 32, 512))).mark_as_output("y")],
        peer,
        lambda size, device: _token_inputs(size, vocabulary, device),
        flops,
        moved,
    )


def _llama_flops(config: peer_llama.LlamaConfig, tokens: int, pairs: float) -> float:
    """The operations for a number of tokens, which together attend to a number of positions."""
    hidden, wide = config.hidden_size, config.intermediate_size
    kv = hidden * config.num_key_value_heads // config.num_attention_heads
    per_token = 2 * (2 * hidden * hidden + 2 * hidden * kv + 3 * hidden * wide)
    return float(config.num_hidden_layers * (tokens * per_token + 4 * pairs * hidden))


def llama(dtype: torch.dtype, layers: int, sizes: Sequence[Size]) -> Workload:
    """Layers of Llama-2-7B from token ids to hidden states."""
    config = peer_llama.LlamaConfig(num_hidden_layers=layers, vocab_size=VOCABULARY)
    peer = peer_bert.randomize(peer_llama.LlamaModel(config)).to(dtype).eval()
    ours = our_llama.LlamaModel(our_llama.LlamaConfig(**dataclasses.asdict(config), dtype=_name(dtype)))
    ours.name_parameter_tensor(separator=".")
    weights = _weight_bytes(peer, ["embed_tokens.weight"])

    def moved(size: Size) -> float:
        return weights + size[0] * size[1] * (2 * config.hidden_size * dtype.itemsize + 16)

    return Workload(
        [ours(*_token_tensors(*_dims(sizes, 4, 2048))).mark_as_output("y")],
        peer,
        lambda size, device: _token_inputs(size, VOCABULARY, device),
        lambda size: _llama_flops(config, size[0] * size[1], size[0] * size[1] * (size[1] + 1) / 2),
        moved,
    )


def llama_decode(dtype: torch.dtype, layers: int, sizes: Sequence[Size]) -> Workload:
    """One step of layers of Llama-2-7B: a token a sequence, the keys and values of `length` tokens before it.

    Ours reads the cache [batch, heads, length, head size] of each layer and returns the keys and values of the new
    token beside the hidden states. The peer has a cache with room for the token and writes it there, in place.
    """
    config = peer_llama.LlamaConfig(num_hidden_layers=layers, vocab_size=VOCABULARY)
    heads, head = config.num_key_value_heads, config.hidden_size // config.num_attention_heads
    peer = peer_bert.randomize(peer_llama.LlamaStep(config)).to(dtype).eval()
    ours = our_llama.LlamaModel(our_llama.LlamaConfig(**dataclasses.asdict(config), dtype=_name(dtype)))
    ours.name_parameter_tensor(separator=".")
    batch, length = _dims(sizes, 16, 4096, "past")
    names = [f"{kind}{i}" for i in range(layers) for kind in "kv"]
    cache = [
        Tensor(shape=[batch, heads, length, head], dtype=_name(dtype), name=f"past_{n}", is_input=True) for n in names
    ]
    outputs = [ours(*_token_tensors(batch, 1), list(zip(cache[::2], cache[1::2], strict=True))).mark_as_output("y")]
    outputs += [t.mark_as_output(n) for n, t in zip(names, (t for pair in ours.steps for t in pair), strict=True)]
    weights = _weight_bytes(peer, ["embed_tokens.weight"])

    def inputs(size: Size, device: str) -> Inputs:
        batch, length = size
        made = _token_inputs((batch, 1), VOCABULARY, device)
        made["position_ids"].fill_(length)
        generator = torch.Generator(device).manual_seed(batch)
        for name in names:
            values = torch.randn(batch, heads, length, head, generator=generator, device=device, dtype=torch.float32)
            made[f"past_{name}"] = values.to(dtype)
        return made

    def arguments(inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        return [t if t.ndim < 4 else nn.functional.pad(t, (0, 0, 0, 1)) for t in inputs.values()]

    def moved(size: Size) -> float:
        per_token = 2 * layers * heads * head * dtype.itemsize
        return weights + size[0] * ((size[1] + 1) * per_token + 2 * config.hidden_size * dtype.itemsize)

    def flops(size: Size) -> float:
        return _llama_flops(config, size[0], size[0] * (size[1] + 1))

    return Workload(outputs, peer, inputs, flops, moved, arguments)


MODELS: dict[str, Model] = {
    "bert": Model(bert, 12, lengths=(128, 384)),
    "vit": Model(vit, 12, lengths=(197,), any_length=False),
    "gpt2": Model(gpt2, 12),
    "llama": Model(llama, 4, batches=(1, 4), lengths=(512,)),
    "llama-decode": Model(llama_decode, 4, batches=(1, 16), lengths=(2048,)),
}
"""The models by name."""
