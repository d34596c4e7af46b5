"""Greedy decoding with caches that the program owns: from plain PyTorch, and written with our operators.

    python examples/decode.py                      # on the GPU if there is one, else on the CPU
    python examples/decode.py --device cpu --layers 2 --hidden 64

Three programs run the same small decoder with random weights, one token a step for each sequence of a batch. Each
writes the keys and values of the new token into its caches in place and must choose the tokens that PyTorch chooses:

- "imported" compiles the PyTorch module. Its caches are buffers, which become the state of the compiled module.
- "contiguous" is a graph whose caches are inputs. The sequences are at different places: the second one starts later.
- "paged" keeps the rows of all sequences in pages of one pool, and takes a page only when a sequence needs it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ait_mlir
from ait_mlir.errors import AitError
from ait_mlir.frontend import Tensor, compile_model, detect_target, ops

BATCH, HEADS, GROUPS, VOCAB, EPS = 2, 4, 2, 512, 1e-5
STARTS = (0, 9)
"""The step at which each sequence starts, where sequences may be at different places."""


@dataclass(frozen=True)
class Config:
    hidden: int = 256
    layers: int = 2
    capacity: int = 96
    """Rows of a cache for each sequence."""
    page: int = 8

    @property
    def size(self) -> int:
        return self.hidden // HEADS


class Block(nn.Module):
    """Attention over a cache, and two products with gelu between them."""

    def __init__(self, c: Config, batch: int) -> None:
        super().__init__()
        self.size = c.size
        self.norm1, self.norm2 = nn.RMSNorm(c.hidden, EPS), nn.RMSNorm(c.hidden, EPS)
        self.qkv = nn.Linear(c.hidden, (HEADS + 2 * GROUPS) * c.size, bias=False)
        self.proj = nn.Linear(c.hidden, c.hidden, bias=False)
        self.up, self.down = nn.Linear(c.hidden, 2 * c.hidden), nn.Linear(2 * c.hidden, c.hidden)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(batch, GROUPS, c.capacity, c.size), persistent=False)

    def forward(self, x: torch.Tensor, at: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        y = self.qkv(self.norm1(x)).unflatten(-1, (-1, self.size)).transpose(1, 2)
        q, k, v = y.split([HEADS, GROUPS, GROUPS], 1)
        self.keys.index_copy_(2, at, k)
        self.values.index_copy_(2, at, v)
        y = F.scaled_dot_product_attention(q, self.keys, self.values, seen, enable_gqa=True)
        x = x + self.proj(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    """One step: ids [batch, 1] at the place `at` [1] give logits [batch, vocabulary]."""

    def __init__(self, c: Config, batch: int = BATCH) -> None:
        super().__init__()
        self.ids, self.places = nn.Embedding(VOCAB, c.hidden), nn.Embedding(c.capacity, c.hidden)
        self.blocks = nn.ModuleList(Block(c, batch) for _ in range(c.layers))
        self.norm, self.head = nn.RMSNorm(c.hidden, EPS), nn.Linear(c.hidden, VOCAB, bias=False)
        self.capacity = c.capacity

    def forward(self, ids: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        seen = torch.arange(self.capacity, device=ids.device) <= at
        x = self.ids(ids) + self.places(at)
        for block in self.blocks:
            x = block(x, at, seen[None, None, None])
        return self.head(self.norm(x[:, -1]))


def build(c: Config, dtype: str, paged: bool) -> list[Tensor]:
    """The same step with our operators; the first result has the logits, the others take the place of the caches."""
    pages = c.capacity // c.page

    def given(name: str, *shape: int, dtype: str = "int64") -> Tensor:
        return Tensor(shape=list(shape), dtype=dtype, name=name, is_input=True)

    def weight(name: str, *shape: int) -> Tensor:
        return Tensor(shape=list(shape), dtype=dtype, name=name)

    ids, at, to = given("ids", BATCH, 1), given("at", BATCH, 1), given("to", BATCH, 1)
    lengths, table = given("lengths", BATCH), given("table", BATCH, pages) if paged else None
    written: list[Tensor] = []

    def cached(rows: Tensor, name: str) -> Tensor:
        """The cache with the new rows [batch, groups, 1, size], as attention reads it."""
        shape = (BATCH * pages, c.page, GROUPS, c.size) if paged else (BATCH, GROUPS, c.capacity, c.size)
        cache = given(name, *shape, dtype=dtype)
        new = ops.permute()(rows, [0, 2, 1, 3]) if paged else rows
        after = ops.update_cache(paged=paged)(cache, new, to)
        written.append(after.mark_as_output(f"{name} (new)", in_place_of=cache))
        return ops.permute()(after, [0, 2, 1, 3]) if paged else after

    def norm(x: Tensor, name: str) -> Tensor:
        return ops.rms_norm([c.hidden])(x, weight(f"{name}.weight", c.hidden), eps=EPS)

    x = ops.embedding()(weight("ids.weight", VOCAB, c.hidden), ids)
    x = x + ops.embedding()(weight("places.weight", c.capacity, c.hidden), at)
    for i in range(c.layers):
        name, wide = f"blocks.{i}", (HEADS + 2 * GROUPS) * c.size
        y = ops.gemm_rcr()(norm(x, f"{name}.norm1"), weight(f"{name}.qkv.weight", wide, c.hidden))
        y = ops.permute()(ops.reshape()(y, [BATCH, 1, HEADS + 2 * GROUPS, c.size]), [0, 2, 1, 3])
        q, k, v = ops.split()(y, [HEADS, GROUPS, GROUPS], dim=1)
        k, v = cached(k, f"keys_{i}"), cached(v, f"values_{i}")
        y = ops.ragged_attention(causal=True)(q, k, v, lengths_kv=lengths, pages=table)
        y = ops.reshape()(ops.permute()(y, [0, 2, 1, 3]), [BATCH, 1, c.hidden])
        x = ops.gemm_rcr()(y, weight(f"{name}.proj.weight", c.hidden, c.hidden)) + x
        y = norm(x, f"{name}.norm2")
        up = (weight(f"{name}.up.weight", 2 * c.hidden, c.hidden), weight(f"{name}.up.bias", 2 * c.hidden))
        down = (weight(f"{name}.down.weight", c.hidden, 2 * c.hidden), weight(f"{name}.down.bias", c.hidden))
        x = ops.gemm_rcr_bias()(ops.gemm_rcr_bias_gelu()(y, *up), *down) + x
    y = ops.gemm_rcr()(norm(x, "norm"), weight("head.weight", VOCAB, c.hidden))
    return [ops.reshape()(y, [BATCH, VOCAB]).mark_as_output("logits"), *written]


class Pages:
    """The pages of a pool that sequences have; refuses a sequence that is longer than its part of the pool."""

    def __init__(self, c: Config) -> None:
        self.page, self.most = c.page, c.capacity // c.page
        self.free = list(range(BATCH * self.most - 1, -1, -1))
        self.of: list[list[int]] = [[] for _ in range(BATCH)]

    def place(self, sequence: int, at: int) -> int:
        """The place in the pool of row `at` of a sequence; takes a new page at the start of a page."""
        mine = self.of[sequence]
        if at == len(mine) * self.page:
            if len(mine) == self.most:
                raise AitError(
                    f"the cache of sequence {sequence} is full: it has {len(mine)} pages of {self.page} rows"
                )
            mine.append(self.free.pop())
        return mine[at // self.page] * self.page + at % self.page

    def table(self) -> list[list[int]]:
        return [[*mine, *[0] * (self.most - len(mine))] for mine in self.of]


Step = Callable[[list[int], list[int]], torch.Tensor]
"""The logits of a step, from the id and the place of each sequence."""


def generate(step: Step, prompts: list[list[int]], steps: int, starts: tuple[int, ...]) -> list[list[int]]:
    """`steps` tokens after each prompt. Before its start a sequence repeats its first token at place 0."""
    tokens = [list(prompt) for prompt in prompts]
    wanted = [len(prompt) + steps for prompt in prompts]
    for now in range(max(start + most for start, most in zip(starts, wanted, strict=True)) - 1):
        places = [min(max(now - start, 0), most - 2) for start, most in zip(starts, wanted, strict=True)]
        chosen = step([row[at] for row, at in zip(tokens, places, strict=True)], places).argmax(-1).tolist()
        for row, at, token, most in zip(tokens, places, chosen, wanted, strict=True):
            if at == len(row) - 1 and len(row) < most:
                row.append(token)
    return tokens


def written_by_hand(c: Config, weights: dict[str, Any], device: str, dtype: torch.dtype, paged: bool, to: str) -> Step:
    """A step of the graph, with caches of its own."""
    name = "paged" if paged else "contiguous"
    model = compile_model(build(c, str(dtype).removeprefix("torch."), paged), device, to, name, constants=weights)
    shape = (BATCH * (c.capacity // c.page), c.page, GROUPS, c.size)
    shape = shape if paged else (BATCH, GROUPS, c.capacity, c.size)
    caches = {t: torch.zeros(shape, device=device, dtype=dtype) for t in model.state}
    pages = Pages(c)

    def step(ids: list[int], places: list[int]) -> torch.Tensor:
        full = [b for b, at in enumerate(places) if at >= c.capacity]
        if full:
            raise AitError(f"the cache of sequence {full[0]} is full: it has {c.capacity} rows")
        to = [pages.place(b, at) for b, at in enumerate(places)] if paged else places
        numbers: dict[str, Any] = {"ids": [[i] for i in ids], "at": [[p] for p in places], "to": [[p] for p in to]}
        numbers |= {"lengths": [p + 1 for p in places]} | ({"table": pages.table()} if paged else {})
        inputs = {n: torch.tensor(v, device=device) for n, v in numbers.items()}
        return model.run_with_tensors({**inputs, **caches})["logits"]

    return step


def main() -> int:
    parser = argparse.ArgumentParser(description="Greedy decoding with caches, beside PyTorch.")
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), help="default: cuda where there is a CUDA device, else cpu"
    )
    parser.add_argument("--layers", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--hidden", type=int, default=256, help="a multiple of 4 heads (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=64, help="tokens to generate (default: %(default)s)")
    args = parser.parse_args()
    device = args.device or ("cuda" if detect_target().name() == "cuda" else "cpu")
    c = Config(args.hidden, args.layers, capacity=-(-(args.steps + 8) // 8) * 8)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    eager = Decoder(c).to(device).eval()
    prompts = torch.randint(0, VOCAB, (BATCH, 5)).tolist()

    def of(module: Callable[..., torch.Tensor]) -> Step:
        def step(ids: list[int], places: list[int]) -> torch.Tensor:
            (at,) = set(places)
            return module(torch.tensor([[i] for i in ids], device=device), torch.tensor([at], device=device))

        return step

    example = (
        torch.zeros(BATCH, 1, dtype=torch.int64, device=device),
        torch.zeros(1, dtype=torch.int64, device=device),
    )
    weights = {n: w.detach() for n, w in eager.named_parameters()}
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        imported = ait_mlir.compile(eager, example, target=device, name="imported")
        programs: dict[str, tuple[Step, tuple[int, ...]]] = {
            "torch": (of(eager), (0, 0)),
            "imported": (of(imported), (0, 0)),
            "contiguous": (written_by_hand(c, weights, device, torch.float32, False, scratch), STARTS),
            "paged": (written_by_hand(c, weights, device, torch.float32, True, scratch), STARTS),
        }
        passed, wanted = True, generate(of(eager), prompts, args.steps, (0, 0))
        for name, (step, starts) in programs.items():
            before = time.perf_counter()
            same = generate(step, prompts, args.steps, starts) == wanted
            count = args.steps + len(prompts[0]) - 1 + max(starts)
            print(f"{name:>10}: {(time.perf_counter() - before) / count * 1e3:.3f} ms a step, same tokens: {same}")
            passed = passed and same
    print("OK: all programs choose the tokens of PyTorch" if passed else "FAILED: other tokens")
    return 0 if passed else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
