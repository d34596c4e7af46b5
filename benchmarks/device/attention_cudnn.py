"""Attention on cuDNN through the runtime's service: error against float64 and time beside PyTorch's, for each plan.

    python3 benchmarks/device/attention_cudnn.py [--out DIR]

Needs nvcc, cuDNN 9 and a PyTorch with CUDA. Times are medians of CUDA-graph replays in microseconds; q, k and v are
parts of one buffer, as a merged projection writes them. Exits with 1 where an error is over twice that of PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from replays import graph_of, seconds
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.attention_cudnn import MAX_PLANS
from ait_mlir.runtime.loading import cudnn_candidates
from tests.kernels.cudnn import cudnn_attention
from tests.kernels.library_gemm import ConfiguredCase, GemmLibrary, on_kernel

DIMS = "dims {b = 1 to 64, s = 1 to 4096}"
SHAPES = (
    (1, 12, 128, 64, False),
    (32, 12, 128, 64, False),
    (1, 12, 384, 64, False),
    (32, 12, 384, 64, False),
    (1, 12, 197, 64, False),
    (32, 12, 197, 64, False),
    (1, 32, 512, 128, True),
    (4, 32, 512, 128, True),
    (4, 32, 2048, 128, True),
)
SCALE = 0.125


def packed(heads: int, depth: int, causal: bool, plan: int) -> ConfiguredCase:
    """An attention over parts of one buffer [b, s, 3, heads, depth]."""
    row = heads * depth
    part = (f"{3 * row}*s", str(depth), str(3 * row), "1")
    strides = {0: part, 1: part, 2: part, 3: (f"{row}*s", str(depth), str(row), "1")}
    sizes = {"heads": heads, "groups": heads, "depth": str(depth), "width": str(depth)}
    flags = "causal" if causal else ""
    case = cudnn_attention("f16", (), cols="s", flags=flags, sizes=DIMS, strides=strides, **sizes)  # type: ignore[arg-type]
    return on_kernel(case, "cudnn", {"algo": plan})


def time_graph(function: Callable[[], object], count: int = 40) -> float:
    """Microseconds of one call, median over replays of a graph of `count` calls."""
    graph = graph_of(lambda _: function(), count)
    times = [seconds(graph) * 1e6 / count for _ in range(9)]
    return round(sorted(times)[4], 2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.environ.get("OUT"), help="folder for attention_cudnn.json")
    parser.add_argument("--build-only", action="store_true", help="compile into the cache, run nothing")
    options = parser.parse_args()
    os.environ.setdefault("AIT_CUDNN", cudnn_candidates()[0])
    kinds = sorted({(heads, depth, causal) for _, heads, _, depth, causal in SHAPES})
    cases = {(kind, plan): packed(*kind, plan) for kind in kinds for plan in range(MAX_PLANS)}
    library = GemmLibrary(list(cases.values()), Path(tempfile.mkdtemp()), Target("cuda", "sm_90a"))
    if options.build_only:
        return 0
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    failed, results = False, []
    for batch, heads, rows, depth, causal in SHAPES:
        qkv = torch.randn(batch, rows, 3, heads, depth, device="cuda", dtype=torch.float16)
        q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))
        o = torch.empty((batch, rows, heads, depth), device="cuda", dtype=torch.float16).transpose(1, 2)
        pointers = [x.data_ptr() for x in (q, k, v, o)]

        def theirs() -> torch.Tensor:
            return scaled_dot_product_attention(q, k, v, is_causal=causal, scale=SCALE)  # noqa: B023

        want = exact(q, k, v, causal)
        bound = float((theirs().double() - want).abs().max())
        peers = {"torch": time_graph(theirs)}
        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
            with sdpa_kernel(backend):
                peers[backend.name.lower()] = time_graph(theirs)
        plans: list[dict[str, float]] = []
        for plan in range(MAX_PLANS):
            case = cases[(heads, depth, causal), plan]

            def ours() -> None:
                stream = torch.cuda.current_stream().cuda_stream
                library.call(case, {"b": batch, "s": rows}, pointers, stream)  # noqa: B023

            o.fill_(float("nan"))
            start = time.perf_counter()
            ours()
            torch.cuda.synchronize()
            first = round((time.perf_counter() - start) * 1e3, 1)
            error = float((o.double() - want).abs().max())
            failed |= not error <= 2 * bound
            plans.append({"us": time_graph(ours), "first_ms": first, "error": error})
        results.append({"shape": [batch, heads, rows, depth, causal], "peers": peers, "error": bound, "plans": plans})
        ours_text = "; ".join(f"{p['us']} us (first call {p['first_ms']} ms, error {p['error']:.1e})" for p in plans)
        print(f"batch {batch} heads {heads} rows {rows} depth {depth}{' causal' if causal else ''}: "
              f"{peers} error {bound:.1e} | plans {ours_text}", flush=True)  # fmt: skip
    if options.out:
        (Path(options.out) / "attention_cudnn.json").write_text(json.dumps(results, indent=1))
    return int(failed)


def exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """In float64, one batch element at a time."""
    parts: list[torch.Tensor] = []
    for one in range(q.shape[0]):
        scores = q[one].double() @ k[one].double().mT * SCALE
        if causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
        parts.append(scores.softmax(-1) @ v[one].double())
    return torch.stack(parts)


if __name__ == "__main__":
    sys.exit(main())
