"""The cost of large weights: memory and time of a compile, time of a load with and without verification.

    python -m benchmarks.large
    python -m benchmarks.large --layers 2 --keep /tmp/large.ait

A model in f32 of ten layers of width 2,048, each with four square products and two of width 8,192: 1.9 GiB. Each step
runs in a process of its own. Its memory is the peak of the anonymous memory beyond what the process had before the
weights were made or the artifact was opened; pages of mapped files, which the kernel may drop, are not part of it. The
weights themselves are part of the memory of a compile. The load is timed with the file in the page cache, beside a copy
of as many bytes to new memory on one thread (NumPy).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import record

WIDTH, INNER = 2048, 8192
WEIGHTS = {
    **{f"{name}.weight": (WIDTH, WIDTH) for name in "qkvo"},
    "up.weight": (INNER, WIDTH),
    "down.weight": (WIDTH, INNER),
}


def model_text(layers: int) -> str:
    """A stack of gated products and feed-forward layers, for 1 to 64 rows."""
    x = f"!ait.tensor<rows x {WIDTH} x f32>"
    wide = f"!ait.tensor<rows x {INNER} x f32>"
    lines = [f"ait.graph @large(%x0: {x}) dims {{rows = 1 to 64}} {{"]
    for n in range(layers):
        for name, (rows, columns) in WEIGHTS.items():
            lines.append(f'  %{name[:-7]}w{n} = ait.param "layers.{n}.{name}" : !ait.tensor<{rows} x {columns} x f32>')
        lines += [f"  %{name}{n} = ait.gemm rcr %x{n}, %{name}w{n} : {x}" for name in "qkv"]
        lines += [
            f"  %qk{n} = ait.mul %q{n}, %k{n} : {x}",
            f"  %qkv{n} = ait.add %qk{n}, %v{n} : {x}",
            f"  %o{n} = ait.gemm rcr %qkv{n}, %ow{n} : {x}",
            f"  %up{n} = ait.gemm rcr %o{n}, %upw{n} : {wide}",
            f"  %act{n} = ait.relu %up{n} : {wide}",
            f"  %x{n + 1} = ait.gemm rcr %act{n}, %downw{n} : {x}",
        ]
    return "\n".join([*lines, f'  ait.output "y" %x{layers} : {x}', "}", ""])


def weights(layers: int) -> dict[str, np.ndarray[Any, Any]]:
    """Random weights, the same for every run."""
    random = np.random.default_rng(0)
    return {
        f"layers.{n}.{name}": random.random(shape, np.float32) / np.float32(shape[1])
        for n in range(layers)
        for name, shape in WEIGHTS.items()
    }


def anonymous() -> int:
    """The bytes of resident anonymous memory of this process."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(fields["RssAnon"].split()[0]) << 10


class AnonymousPeak:
    """The largest anonymous memory during a block, sampled by a thread."""

    def __enter__(self) -> AnonymousPeak:
        self.peak, self._done = 0, threading.Event()
        self._start = anonymous()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._done.wait(0.005):
            self.peak = max(self.peak, anonymous() - self._start)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def step_compile(layers: int, path: str) -> dict[str, float]:
    """Compile to `path`."""
    from ait_mlir.driver import compile_module
    from ait_mlir.ir.context import context
    from ait_mlir.ir.parser import parse_source
    from ait_mlir.ir.source import decode

    def compiled(n: int, data: dict[str, np.ndarray[Any, Any]], output: str) -> None:
        module = parse_source(context(), decode(model_text(n).encode(), "large.mlir"))
        compile_module(module, constants=data, output=output)

    compiled(1, weights(1), path)  # imports all, builds the runtime library
    with AnonymousPeak() as memory:
        data = weights(layers)
        size = sum(w.nbytes for w in data.values())
        start = time.perf_counter()
        compiled(layers, data, path)
        seconds = time.perf_counter() - start
    return {"weights": size, "seconds": seconds, "memory": memory.peak / size}


def step_load(layers: int, path: str, verify: bool) -> dict[str, float]:
    """Load `path` and run it once."""
    from ait_mlir.runtime import Model
    from ait_mlir.runtime.loading import runtime_library

    runtime_library("cpu")
    size = sum(4 * rows * columns for rows, columns in WEIGHTS.values()) * layers
    blob = np.ones(size, np.uint8)
    start = time.perf_counter()
    blob.copy()
    copied = time.perf_counter() - start
    del blob
    with AnonymousPeak() as memory:
        used = resource.getrusage(resource.RUSAGE_SELF)
        start = time.perf_counter()
        model = Model(path, verify_weights=verify)
        seconds = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_SELF)
    x = np.ones((1, WIDTH), np.float32)
    y = model.run_with_tensors([x])["y"]
    assert np.isfinite(y).all()
    busy = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return {"seconds": seconds, "rate": size / seconds, "cpu": busy, "copy": copied, "memory": memory.peak / size}


def in_process(step: str, *args: object) -> dict[str, float]:
    """The result of a step in a new process."""
    command = [sys.executable, "-m", "benchmarks.large", "--step", json.dumps([step, *args])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--layers", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--keep", metavar="FILE", help="where to write the artifact (default: a temporary file)")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    record.add_save(parser)
    args = parser.parse_args()
    if args.step:
        name, *rest = json.loads(args.step)
        print(json.dumps({"compile": step_compile, "load": step_load}[name](*rest)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or str(Path(folder) / "large.ait")
        made = in_process("compile", args.layers, path)
        size = made["weights"]
        print(f"weights: {size / 2**30:.2f} GiB, {args.layers} layers")
        rows = [["compile", f"{made['seconds']:.1f}", "-", "-", f"{made['memory']:.2f}", "-"]]
        for verify in (True, False):
            row = in_process("load", args.layers, path, verify)
            cells = [f"{row['seconds']:.2f}", f"{row['rate'] / 1e9:.1f}", f"{row['cpu']:.2f}", f"{row['memory']:.2f}"]
            step = f"load {'with' if verify else 'without'} verification"
            rows.append([step, *cells, f"{row['seconds'] / row['copy']:.1f}"])
        heads = ["step", "seconds", "GB/s", "CPU seconds", "memory / weights", "time of copies"]
        record.show(args.save, heads, rows, "cpu")


if __name__ == "__main__":
    main()
