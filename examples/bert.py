"""BERT-base from Python: written with our layers, compiled once, run at any batch and sequence length.

    python examples/bert.py                      # on the GPU if there is one, else on the CPU
    python examples/bert.py --device cpu --layers 2

Weights are random; the same ones go into a plain PyTorch model, which says whether we are right. Right means: our error
against float64 is at most twice the error that PyTorch itself makes at the same dtype.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.errors import AitError
from ait_mlir.frontend import IntVar, Tensor, compile_model, detect_target
from ait_mlir.runtime import Model
from benchmarks import measure
from benchmarks.peers import bert as peer
from examples.models.bert import BertConfig, BertEncoder

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
SIZES = {"cpu": [(1, 1), (1, 128), (3, 37), (2, 200)], "cuda": [(1, 1), (1, 128), (7, 50), (32, 128), (8, 384)]}


def build(config: BertConfig) -> Tensor:
    """The encoder on hidden states [batch, seq, hidden], for every batch up to 64 and every length up to 512."""
    batch = IntVar([1, 64], name="batch")
    seq = IntVar([1, 128, 512], name="seq")
    x = Tensor(shape=[batch, seq, config.hidden_size], dtype=config.dtype, name="x", is_input=True)
    encoder = BertEncoder(config)
    encoder.name_parameter_tensor(separator=".")  # the names of the state dict below
    return encoder(x).mark_as_output("y")


def compile_bert(theirs: peer.BertEncoder, config: BertConfig, device: str, workdir: str | Path) -> Model:
    """Our encoder with the weights of `theirs`."""
    return compile_model(build(config), device, workdir, "bert", constants=theirs.state_dict())


def main() -> int:
    parser = argparse.ArgumentParser(description="BERT-base from Python, beside PyTorch.")
    parser.add_argument("--device", choices=SIZES, help="default: cuda where there is a CUDA device, else cpu")
    parser.add_argument("--dtype", choices=DTYPES, help="default: f32 on the CPU, f16 on the GPU")
    parser.add_argument("--layers", type=int, default=12, help="encoder layers (default: %(default)s)")
    parser.add_argument("--workdir", help="where to put the artifact (default: a temporary directory)")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each time (default: %(default)s)")
    args = parser.parse_args()
    device = args.device or ("cuda" if detect_target().name() == "cuda" else "cpu")
    dtype = DTYPES[args.dtype or ("f16" if device == "cuda" else "f32")]
    on_gpu = device == "cuda"
    if on_gpu and not torch.cuda.is_available():
        parser.error("PyTorch finds no CUDA device; use --device cpu")

    torch.manual_seed(0)
    sizes = peer.BertConfig(num_hidden_layers=args.layers)
    theirs = peer.randomize(peer.BertEncoder(sizes)).to(dtype).eval()
    exactly = copy.deepcopy(theirs).double().to(device)
    config = BertConfig(num_hidden_layers=args.layers, dtype=str(dtype).removeprefix("torch."))
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch, torch.inference_mode():
        ours = compile_bert(theirs, config, device, args.workdir or scratch)
        print(f"compiled {args.layers} layers for {device}, {config.dtype}, in {time.perf_counter() - start:.1f} s")
        theirs.to(device)
        rows = [["batch", "seq", "ours ms", "torch ms", "max error", "over eager's", "rmse over eager's"]]
        passed = True
        for batch, seq in SIZES[device]:
            x = torch.randn(batch, seq, config.hidden_size).to(device, dtype)
            y = torch.full_like(x, float("nan"))
            run = {
                "ours": lambda x=x, y=y: ours.run_with_tensors({"x": x}, {"y": y}, graph_mode=on_gpu)["y"],
                "torch": lambda x=x: theirs(x),
            }
            result = measure.accuracy(run["ours"](), run["torch"](), exactly(x.double()))
            seconds = measure.median_seconds(run, device, args.budget)
            passed = passed and result.passed
            times = [f"{seconds[side] * 1e3:.2f}" for side in run]
            errors = [f"{result.max_error:.1e}", f"{result.max_ratio:.2f}", f"{result.rmse_ratio:.2f}"]
            rows.append([str(batch), str(seq), *times, *errors])
        print(measure.table(rows))
    limits = f"{measure.MAX_RATIO:g} times eager's max error and {measure.RMSE_RATIO:g} times its RMSE, against float64"
    print(f"{'OK: every' if passed else 'FAILED: not every'} result is within {limits}")
    return 0 if passed else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AitError as error:
        sys.exit(f"error: {error}")
