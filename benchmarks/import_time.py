"""The time of an import in addition to `torch.export`, by the number of layers.

    python -m benchmarks.import_time
    python -m benchmarks.import_time LlamaModel --layers 12,96

Models of `transformers` at small widths, which do not matter: weights are not read. Seconds of CPU time on one thread.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.importers.torch import import_program
from benchmarks import record

SIZE = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "BertModel": ("BertConfig", SIZE),
    "GPT2Model": ("GPT2Config", {"n_embd": 64, "n_head": 4, "vocab_size": 100, "use_cache": False}),
    "LlamaModel": ("LlamaConfig", {**SIZE, "use_cache": False}),
}


def seconds(name: str, layers: int) -> tuple[float, float, int]:
    """Seconds of the export and of the import, and the operations of the program."""
    import transformers

    config, sizes = MODELS[name]
    key = "n_layer" if name == "GPT2Model" else "num_hidden_layers"
    model = getattr(transformers, name)(getattr(transformers, config)(**sizes, **{key: layers})).eval()
    tokens = {0: Dim("batch", min=1, max=16), 1: Dim("seq", min=1, max=256)}
    start = time.process_time()
    with torch.no_grad():
        program = torch.export.export(
            model, (), {"input_ids": torch.zeros(2, 9, dtype=torch.long)}, dynamic_shapes={"input_ids": tokens}
        )
    middle = time.process_time()
    imported = import_program(program)
    return middle - start, time.process_time() - middle, imported.operations


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(MODELS)} (default: all)")
    parser.add_argument("--layers", default="12,24,48,96", help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args()
    torch.set_num_threads(1)
    seconds(next(iter(MODELS)), 1)  # modules and patterns are loaded once
    rows: list[list[str]] = []
    for name in args.models or MODELS:
        for layers in map(int, args.layers.split(",")):
            exported, imported, operations = seconds(name, layers)
            cells = [f"{exported:.2f}", f"{imported:.2f}", f"{imported / layers * 1e3:.1f}"]
            rows.append([name, str(layers), str(operations), *cells])
    heads = ["model", "layers", "operations", "torch.export s", "import s", "import ms a layer"]
    record.show(args.save, heads, rows, "cpu")


if __name__ == "__main__":
    main()
