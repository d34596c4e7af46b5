"""`model.generate` of transformers with `torch.compile(backend="ait")` beside PyTorch: times and tokens.

    python -m benchmarks.generate                          # on the GPU if there is one, else on the CPU
    python -m benchmarks.generate --hidden 64 --layers 2   # small

The model is a Llama with random weights. Each program generates twice, and the second time counts, without compilation.
Times are milliseconds a token. With a static cache on a GPU, transformers compiles the steps by itself, with inductor
and CUDA graphs (column "compile"); "eager" is without. Ours takes inductor's place ("ait graphs", by
`CompileConfig(backend="ait")`) or compiles the whole model ("ait"). In half precision, tokens may differ where two are
equally likely but for rounding.
"""

from __future__ import annotations

import argparse
import logging
import time
from typing import Any

import torch

from ait_mlir.importers.torch.dynamo import register
from benchmarks import record

WAYS = ("eager", "compile", "ait", "ait graphs")


def main() -> None:
    parser = argparse.ArgumentParser(description="model.generate with torch.compile, beside eager.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--layers", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--hidden", type=int, default=512, help="default: %(default)s")
    parser.add_argument("--batch", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=64, help="tokens to generate (default: %(default)s)")
    record.add_save(parser)
    args = parser.parse_args()
    from transformers import CompileConfig, LlamaConfig, LlamaForCausalLM

    logging.basicConfig(format="%(message)s")
    logging.getLogger("ait_mlir.torch_compile").setLevel(logging.WARNING)  # says which graphs run in PyTorch
    register()
    torch.manual_seed(0)
    sizes = LlamaConfig(
        hidden_size=args.hidden,
        intermediate_size=args.hidden * 3,
        num_hidden_layers=args.layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        vocab_size=1000,
        max_position_embeddings=2048,
        eos_token_id=None,
        pad_token_id=0,
    )
    dtype = torch.float32 if args.device == "cpu" else torch.float16
    model = LlamaForCausalLM(sizes).to(args.device, dtype).eval()
    eager = model.forward
    prompt = torch.randint(1, 1000, (args.batch, 16), device=args.device)
    rows: list[list[str]] = []
    for cache in ("dynamic", "static"):
        options = {"max_new_tokens": args.steps, "do_sample": False, "attention_mask": torch.ones_like(prompt)}
        options |= {"cache_implementation": "static"} if cache == "static" else {}
        compiling = cache == "static" and args.device == "cuda"  # steps, by transformers
        tokens, cells = [], []
        for way in WAYS:
            if way in ("compile", "ait graphs") and not compiling:
                cells.append("-")
                continue
            torch._dynamo.reset()
            model.forward = torch.compile(eager, backend="ait") if way == "ait" else eager
            how: dict[str, Any] = {"disable_compile": True} if way in ("eager", "ait") else {}
            how |= {"compile_config": CompileConfig(backend="ait")} if way == "ait graphs" else {}
            model.generate(prompt, **options, **how)
            start = time.perf_counter()
            tokens.append(model.generate(prompt, **options, **how).tolist())
            cells.append(f"{(time.perf_counter() - start) / args.steps * 1e3:.2f}")
        rows.append([cache, *cells, "yes" if all(t == tokens[0] for t in tokens) else "no"])
        print("  ".join(rows[-1]), flush=True)
    record.show(args.save, ["cache", *(f"{way} ms" for way in WAYS), "same tokens"], rows, args.device)


if __name__ == "__main__":
    main()
