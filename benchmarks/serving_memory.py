"""The memory of replicas of one model, with weights of their own, and with weights that they share (docs/serving.md).

    python -m benchmarks.serving_memory

Each replica is a process with what a replica of Ray Serve has of this package; Ray is not needed. A row is a number of
replicas. PSS divides a page among the processes that have it, so that a sum is what the machine needs; RSS counts it in
each. `changed`: PSS after all replicas took other weights from a file.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import re
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

from ait_mlir.driver import compile_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.options import CompileOptions
from ait_mlir.serve.server import Server
from benchmarks import measure

WIDTH, LAYERS = 4096, 4


def text() -> str:
    """Products with 64 MiB of weights each."""
    row, weight = f"!ait.tensor<b x {WIDTH} x f32>", f"!ait.tensor<{WIDTH} x {WIDTH} x f32>"
    lines: list[str] = []
    for i in range(LAYERS):
        lines += [f'%w{i} = ait.param "w{i}" : {weight}', f"%x{i + 1} = ait.gemm rcr %x{i}, %w{i} : {row}"]
    body = "\n  ".join([*lines, f'ait.output "y" %x{LAYERS} : {row}'])
    return f"ait.graph @wide(%x0: {row}) dims {{b = 1 to 8}} {{\n  {body}\n}}"


def weights(scale: float) -> dict[str, Any]:
    return {f"w{i}": np.eye(WIDTH, dtype=np.float32) * scale for i in range(LAYERS)}


def replica(artifact: str, map_weights: bool, commands: Connection) -> None:
    """Serve: run the model for each file of weights that comes, and send the first element of the answer."""

    async def serve() -> None:
        server = Server(artifact, map_weights=map_weights)
        while (file := await asyncio.to_thread(commands.recv)) is not None:
            await server.set_weights(file or None)
            (answer,) = server.submit([server.request({"x0": np.ones((1, WIDTH), np.float32)})])
            commands.send(float((await answer)["y"][0, 0]))

    asyncio.run(serve())


def megabytes(word: str, processes: list[Any]) -> str:
    """The sum of `Rss` or `Pss` of processes."""
    texts = [Path(f"/proc/{process.pid}/smaps_rollup").read_text() for process in processes]
    sizes = [int(re.findall(rf"^{word}:\s+(\d+) kB", text, re.MULTILINE)[0]) for text in texts]
    return str(round(sum(sizes) / 1024))


def measured(artifact: Path, changed: Path, count: int, map_weights: bool) -> list[str]:
    """RSS and PSS of some replicas, and PSS after a change of weights."""
    spawn = multiprocessing.get_context("spawn")
    pipes = [spawn.Pipe() for _ in range(count)]
    processes = [spawn.Process(target=replica, args=(str(artifact), map_weights, own)) for _, own in pipes]
    for process in processes:
        process.start()
    found: list[str] = []
    for file, value, words in (("", 1.0, ("Rss", "Pss")), (str(changed), 2.0**LAYERS, ("Pss",))):
        for commands, _ in pipes:
            commands.send(file)
        answers = [commands.recv() for commands, _ in pipes]
        assert answers == [value] * count, answers
        found += [megabytes(word, processes) for word in words]
    for (commands, _), process in zip(pipes, processes, strict=True):
        commands.send(None)
        process.join()
    return found


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2, 4], help="numbers of replicas")
    options = parser.parse_args()
    head = [f"{what}, {whose}" for whose in ("own", "shared") for what in ("RSS", "PSS", "changed")]
    rows = [["replicas (MiB)", *head]]
    with tempfile.TemporaryDirectory() as folder:
        artifact, changed = Path(folder) / "wide.ait", Path(folder) / "twice.safetensors"
        compile_module(parse_text(context(), text()), CompileOptions("cpu"), output=artifact, constants=weights(1))
        save_file(weights(2), changed)
        for count in options.replicas:
            sizes = [size for maps in (False, True) for size in measured(artifact, changed, count, maps)]
            rows.append([str(count), *sizes])
    print(measure.table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
