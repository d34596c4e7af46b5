"""Memory-bound kernels on a CUDA device, beside a large copy of the same run.

    python -m benchmarks.kernels                       # all families
    python -m benchmarks.kernels softmax reduce        # families, or words of labels
    python -m benchmarks.kernels --compile-only        # no card needed

Products and attention: benchmarks/contractions.py.

Bytes are those of the inputs and outputs, once each; "of copy" is bytes over time over the bandwidth of a large copy
(bytes read plus bytes written). Times are those of launches in a CUDA graph, in turn on sets of buffers that do not fit
the cache together. Errors are ours over those of PyTorch's eager op, both against float64.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import torch

from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
from benchmarks import measure, record
from benchmarks.kernel_cases import Measured, cases
from benchmarks.shared import own_folder
from tests.kernels.harness import Library

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i64": torch.int64}
CACHE = 100 << 20
"""Bytes that the sets of buffers have together at least, twice the L2 of an H200."""


def shape_of(measured: Measured, position: int) -> list[int]:
    values = (*measured.case.op.operands, *measured.case.op.results)
    return [d.evaluate(measured.env) for d in tensor_type(values[position]).dims]


def buffer(measured: Measured, position: int) -> torch.Tensor:
    """A random operand, or a result full of NaN, with the misalignment of the case."""
    values = (*measured.case.op.operands, *measured.case.op.results)
    dtype = DTYPES[str(tensor_type(values[position]).element_type)]
    shape = shape_of(measured, position)
    count = 1
    for n in shape:
        count *= n
    flat = torch.empty(count + measured.case.offset, dtype=dtype, device="cuda")[measured.case.offset :]
    if position >= len(measured.case.op.operands):
        flat.fill_(float("nan"))
    elif dtype == torch.int64:
        flat.random_(0, shape_of(measured, 0)[0])
    else:
        flat.normal_()
    return flat.view(shape)


def bytes_of(measured: Measured, buffers: Sequence[torch.Tensor]) -> int:
    return measured.moved or sum(b.nbytes for b in buffers)


def captured(launches: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """A function that replays the launches as a CUDA graph."""
    for launch in launches:
        launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for launch in launches:
            launch()
    return graph.replay


WARM = 0.03
"""Seconds of replays before the first that counts: clocks of a card that was idle take that long to rise."""


def seconds(replay: Callable[[], object], launches: int, turns: int = 7) -> float:
    """The median time of one launch."""
    times: list[float] = []
    start = time.perf_counter()
    while time.perf_counter() - start < WARM:
        replay()
        torch.cuda.synchronize()
    for _ in range(turns):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3 / launches)
    return statistics.median(times)


def row(measured: Measured, library: Library, bandwidth: float) -> list[str]:
    """Check one kernel, then time it."""
    inputs = len(measured.case.op.operands)
    positions = range(inputs + len(measured.case.op.results))
    sets = [[buffer(measured, i) for i in positions]]
    moved = bytes_of(measured, sets[0])
    while len(sets) * moved < CACHE and len(sets) < 24:
        sets.append([buffer(measured, i) for i in positions])
    size = measured.case.workspace_bytes(library.target, measured.env)
    workspace = torch.empty(size, dtype=torch.uint8, device="cuda")

    def ours(buffers: Sequence[torch.Tensor]) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        pointers = [b.data_ptr() for b in buffers]
        library.call(measured.case, measured.env, pointers, stream, workspace.data_ptr())

    ours(sets[0])
    torch.cuda.synchronize()
    operands = sets[0][:inputs]
    exact = measured.torch(*(b.double() if b.is_floating_point() else b for b in operands))
    accuracy = measure.accuracy(sets[0][inputs], measured.torch(*operands), exact)
    del exact
    launches = max(4, len(sets))
    chosen = [sets[i % len(sets)] for i in range(launches)]
    each = seconds(captured([lambda b=b: ours(b) for b in chosen]), launches)
    peer = seconds(captured([lambda b=b: measured.torch(*b[:inputs]) for b in chosen]), launches)
    return [
        measured.family,
        measured.label,
        measured.dtype,
        f"{moved / 1e6:.1f}",
        f"{each * 1e6:.2f}",
        f"{moved / each / 1e9:.0f}",
        f"{moved / each / bandwidth:.2f}",
        f"{peer * 1e6:.2f}",
        f"{accuracy.max_ratio:.2f}",
        f"{accuracy.rmse_ratio:.2f}" + ("" if accuracy.passed else " FAILED"),
    ]


HEADS = ["family", "shape", "dtype", "MB", "us", "GB/s", "of copy", "torch us", "max err / eager's", "rmse / eager's"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Memory-bound kernels beside the copy bandwidth of the same run.")
    parser.add_argument("words", nargs="*", help="families, or words of labels (default: all)")
    parser.add_argument("--compile-only", action="store_true", help="compile the kernels and stop")
    parser.add_argument("--workdir", default="build/benchmarks/kernels", help="default: %(default)s")
    record.add_save(parser)
    args = parser.parse_args()
    wanted = [
        m for m in cases() if not args.words or any(w in f"{m.family} {m.label} {m.dtype}".split() for w in args.words)
    ]
    if not wanted:
        parser.error(f"no kernel of {' '.join(args.words)}; families are {', '.join({m.family: 0 for m in cases()})}")
    library = Library([m.case for m in wanted], own_folder(args.workdir), Target("cuda", default_arch("cuda")))
    if args.compile_only:
        return 0
    bandwidth = measure.ceilings("cuda", torch.float16).bytes
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, copy {bandwidth / 1e9:.0f} GB/s", flush=True)
    work = [functools.partial(row, m, library, bandwidth) for m in wanted]
    return record.measured(args.save, HEADS, work, f"copy {bandwidth / 1e9:.0f} GB/s")


if __name__ == "__main__":
    sys.exit(main())
