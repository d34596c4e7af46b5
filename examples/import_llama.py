"""A Llama of `transformers` as it is: exported, imported, compiled once, run at several batches and lengths.

    python examples/import_llama.py                      # on the GPU if there is one, else on the CPU
    python examples/import_llama.py --device cpu --layers 2

Weights are random and nothing is downloaded. Right means: our error against float64 is at most twice the error that
PyTorch itself makes at the same dtype.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from pathlib import Path

import torch
from torch.export import Dim

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ait_mlir
from ait_mlir.errors import AitError
from ait_mlir.frontend import detect_target
from benchmarks import measure

SIZES = {"cpu": [(1, 7), (2, 33), (4, 64)], "cuda": [(1, 128), (4, 512), (8, 100)]}


def main() -> int:
    parser = argparse.ArgumentParser(description="A Llama of transformers, imported and beside PyTorch.")
    parser.add_argument("--device", choices=SIZES, help="default: cuda where there is a CUDA device, else cpu")
    parser.add_argument("--layers", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--hidden", type=int, default=256, help="default: %(default)s")
    args = parser.parse_args()
    try:
        from transformers import LlamaConfig, LlamaModel
    except ImportError:
        print("error: this example needs transformers; pip install transformers", file=sys.stderr)
        return 1
    device = args.device or ("cuda" if detect_target().name() == "cuda" else "cpu")
    dtype = torch.float32 if device == "cpu" else torch.float16
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=args.hidden,
        intermediate_size=args.hidden * 3,
        num_hidden_layers=args.layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        vocab_size=1000,
        max_position_embeddings=1024,
        use_cache=False,
    )
    model = LlamaModel(config).to(device, dtype).eval()
    batch, seq = Dim("batch", min=1, max=16), Dim("seq", min=1, max=1024)
    example = {"input_ids": torch.randint(0, 1000, (2, 9), device=device)}
    start = time.perf_counter()
    compiled = ait_mlir.compile(
        model, (), example, dynamic_shapes={"input_ids": {0: batch, 1: seq}}, target=device, name="llama"
    )
    print(f"exported, imported and compiled in {time.perf_counter() - start:.1f} s: {compiled}")
    exact = copy.deepcopy(model).double()
    failed = False
    for rows, length in SIZES[device]:
        ids = torch.randint(0, 1000, (rows, length), device=device)
        with torch.inference_mode():
            ours, eager, truth = (m(input_ids=ids).last_hidden_state for m in (compiled, model, exact))
        result = measure.accuracy(ours, eager, truth)
        failed |= not result.passed
        print(
            f"batch {rows} x {length}: max error {result.max_error:.1e}, {result.max_ratio:.2f} of PyTorch's; "
            f"rmse {result.rmse_ratio:.2f} of PyTorch's  {'ok' if result.passed else 'TOO LARGE'}"
        )
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
