"""The cost of a call of a model in addition to its launches: `python -m benchmarks.runtime [--target cuda]`.

The model is one small launch, so that all but the call itself is little. On a card the peer is the replay of a CUDA
graph of PyTorch's with the same kernel, timed in the same run, each call followed by no wait. Times are the smallest of
many short rounds, because others use the machine, too. `--load ARTIFACT` times the first answer of a model instead.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tvm_ffi

import ait_mlir
from ait_mlir.driver import compile_module, read_module
from ait_mlir.export import export_module
from ait_mlir.options import CompileOptions
from ait_mlir.runtime.model import Model
from benchmarks import record

TEXT = """
ait.graph @tiny(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 64} {
  %y = ait.relu %x : !ait.tensor<b x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 8 x f32>
}
"""
CALLS, ROUNDS = 200, 500


class Relu(torch.nn.Module):
    """The tiny model."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def microseconds(call: Callable[[], object], wait: Callable[[], object]) -> float:
    """Microseconds of one call: the smallest mean of a round; `wait` is called between rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        wait()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - start)
    return best / CALLS * 1e6


def in_cpp(model: Model, x: torch.Tensor, y: torch.Tensor, graph: bool) -> float:
    """Microseconds of a run that C++ calls."""
    return min(model.benchmark([x], [y], count=CALLS, repeat=1, graph_mode=graph)[0] for _ in range(ROUNDS)) * 1e3


def calls(target: str, save: Path | None) -> None:
    """Print a row for each way to call the tiny model."""
    gpu = target != "cpu"
    place = "cuda" if gpu else "cpu"
    wait = torch.cuda.synchronize if gpu else lambda: None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.mlir"
        path.write_text(TEXT)

        def module() -> Any:
            return read_module(path)[0]

        model = Model(compile_module(module(), CompileOptions(target), output=Path(folder) / "tiny.ait"))
        exported = tvm_ffi.load_module(
            str(export_module(module(), CompileOptions(target), output=Path(folder) / "tiny.so"))
        ).tiny
        x, y = torch.randn(2, 8, device=place), torch.empty(2, 8, device=place)
        compiled = ait_mlir.compile(Relu().eval(), (x,), target=target)
        for _ in range(3):
            model.run([x], [y], None, True, gpu)
        rows: dict[str, float] = {"the launches, from C++": in_cpp(model, x, y, gpu)}
        if gpu:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                torch.relu(x)
            rows["torch.cuda.CUDAGraph.replay()"] = microseconds(graph.replay, wait)
        rows["Model.run, torch tensors"] = microseconds(lambda: model.run([x], [y], None, not gpu, gpu), wait)
        inputs, outputs = {"x": x}, {"y": y}
        rows["Model.run, torch tensors by name"] = microseconds(
            lambda: model.run(inputs, outputs, None, not gpu, gpu), wait
        )
        if not gpu:
            a, b = x.numpy().copy(), y.numpy().copy()
            rows["Model.run, NumPy arrays"] = microseconds(lambda: model.run([a], [b]), wait)
        rows["exported, outputs of the caller"] = microseconds(lambda: exported(x, y), wait)
        rows["exported, outputs returned"] = microseconds(lambda: exported(x), wait)
        rows["CompiledModule"] = microseconds(lambda: compiled(x), wait)
        rows["eager PyTorch"] = microseconds(lambda: torch.relu(x), wait)
    base = rows["torch.cuda.CUDAGraph.replay()" if gpu else "the launches, from C++"]
    heads = ["call", "us", f"beyond {'replay' if gpu else 'C++'}"]
    record.show(save, heads, [[name, f"{us:.2f}", f"{us - base:.2f}"] for name, us in rows.items()], place)


def load(path: str) -> None:
    """Print the seconds to the first answer of an artifact, beside a plain copy of its weights."""
    for verify in (True, False):
        start = time.perf_counter()
        model = Model(path, verify_weights=verify)
        opened = time.perf_counter() - start
        shapes = model.input_shapes({name: lo for name, (lo, _) in model.dims.items()})
        place = "cpu" if model.target == "cpu" else "cuda"
        dtypes = {name: getattr(torch, model.get_input_dtype(name)) for name in shapes}
        inputs = {name: torch.zeros(shape, dtype=dtypes[name], device=place) for name, shape in shapes.items()}
        model.run_with_tensors(inputs)
        first = time.perf_counter() - start
        data = np.fromfile(path, np.uint8)
        start = time.perf_counter()
        copy = torch.from_numpy(data).to(place, copy=True)
        copied = time.perf_counter() - start
        print(
            f"{'with' if verify else 'without'} the hash of the weights: opened in {opened:.3f} s, first answer after "
            f"{first:.3f} s; a copy of the {copy.numel() / 2**20:.0f} MiB takes {copied:.3f} s"
        )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--load", metavar="ARTIFACT", help="time the first answer of this model instead")
    record.add_save(parser)
    options = parser.parse_args()
    if options.load:
        load(options.load)
    else:
        calls(options.target, options.save)


if __name__ == "__main__":
    main()
