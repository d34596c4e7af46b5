"""The products of Llama on an sm_90 device, the gated one among them: build, check against f64, time beside cuBLASLt.

    python3 benchmarks/device/gemm_gated.py [--rows M,M,...] [--checks-only | --few] [--library DIR]

A gated product is silu(a @ b0^T) * (a @ b1^T), where one product of twice the columns would need a pass of its own.
Needs nvcc and a PyTorch with CUDA; reads nothing outside the repository. Ways take turns in CUDA-graph replays, with
rests and then without; medians in microseconds. Exits with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import gemm_problem as base
import torch
from gemm_hopper import SOURCE, Part, build, cpp, library_parts
from replays import graph_of, seconds

Tile = tuple[int, ...]
"""Rows, columns (of both halves), stages, cluster, teams, groups of a team, split."""
GATED: list[Tile] = [
    (128, 224, 4, 2, 1, 2, 1), (128, 224, 5, 2, 1, 2, 1), (64, 224, 5, 2, 2, 1, 1), (64, 256, 4, 2, 2, 1, 1),
    (128, 256, 4, 2, 1, 2, 1), (128, 192, 4, 1, 2, 1, 1), (128, 192, 4, 2, 2, 1, 1), (128, 128, 5, 1, 2, 1, 1),
    (128, 224, 5, 1, 1, 2, 1), (128, 256, 4, 1, 1, 2, 1), (64, 256, 4, 1, 2, 1, 1),
]  # fmt: skip
WIDE: list[Tile] = [
    (128, 224, 4, 2, 1, 2, 1), (64, 224, 5, 2, 2, 1, 1), (64, 256, 4, 2, 2, 1, 1), (128, 256, 4, 2, 1, 2, 1),
    (128, 192, 4, 1, 2, 1, 1), (128, 192, 4, 2, 2, 1, 1), (64, 192, 6, 2, 2, 1, 1), (128, 192, 4, 1, 1, 2, 1),
]  # fmt: skip
NARROW: list[Tile] = [
    (128, 128, 5, 1, 2, 1, 1), (128, 128, 5, 1, 2, 2, 1), (128, 128, 6, 1, 1, 2, 1), (128, 256, 4, 2, 1, 2, 1),
    (128, 128, 6, 4, 1, 2, 1), (128, 256, 3, 1, 1, 2, 2), (256, 128, 3, 1, 1, 4, 2),
]  # fmt: skip
# tile, element, whether K is contiguous in a and in b, whether rows of the result start on 16 bytes
LAYOUTS = [
    ((128, 128, 4, 1, 2, 1, 1), "bfloat16", 1, 1, "true"), ((128, 128, 4, 2, 1, 2, 1), "half", 1, 0, "true"),
    ((128, 128, 4, 1, 1, 2, 1), "half", 0, 0, "true"), ((64, 64, 4, 1, 1, 1, 1), "half", 0, 1, "true"),
    ((128, 224, 4, 1, 1, 2, 1), "half", 1, 1, "false"), ((128, 128, 4, 1, 1, 2, 1), "half", 1, 1, "false"),
]  # fmt: skip
PRODUCTS = (("12288", 12288, 4096, 0, WIDE), ("22016", 22016, 4096, 0, WIDE), ("4096", 4096, 4096, 4, NARROW),
            ("11008 -> 4096", 4096, 11008, 4, NARROW))  # fmt: skip
"""Name, columns, K, epilogue (none or a residual), tiles."""


def gated(tile: Tile) -> str:
    return cpp(tile)[:-1] + ", true>"


def parts() -> list[Part]:
    made: list[Part] = []
    plain = {"PART": "4", "ELEMENT": "ait::half", "AK": "1", "BK": "1", "ALIGNED": "true", "EPILOGUES": "3"}
    made += [(SOURCE, {**plain, "NAME": f"gated_{i}", "TILE": gated(t)}) for i, t in enumerate(GATED)]
    for i, (tile, element, a_k, b_k, aligned) in enumerate(LAYOUTS):
        names = {"ELEMENT": f"ait::{element}", "AK": str(a_k), "BK": str(b_k), "ALIGNED": aligned}
        made.append((SOURCE, {**plain, **names, "NAME": f"gated_layout_{i}", "TILE": gated(tile)}))
    for name, tiles, epilogues in (("wide", WIDE, 1), ("narrow", NARROW, 16)):
        for i, tile in enumerate(tiles):
            made.append((SOURCE, {"PART": "0", "NAME": f"{name}_{i}", "TILE": cpp(tile), "EPILOGUES": str(epilogues)}))
    return [*made, *library_parts()]


class Gated(base.Gemm):
    """A gated product: `n` columns of the result, b has twice as many."""

    def __init__(self, lib: ctypes.CDLL, m: int, n: int, k: int, **more: object) -> None:
        super().__init__(lib, m, 2 * n, k, **more)  # pyright: ignore[reportArgumentType]
        self.n = n
        self.residual = torch.randn(self.batch, m, n + self.pad, device="cuda").to(self.dtype)
        self.d = torch.full((self.batch, m, n + self.pad), float("nan"), device="cuda", dtype=self.dtype)

    def wanted(self, residual: bool) -> torch.Tensor:
        a = self.a[..., : self.k if self.a_k else self.m].double()
        b = self.b[0][..., : self.k if self.b_k else 2 * self.n].double()
        y = (a if self.a_k else a.mT) @ (b.mT if self.b_k else b)
        y = torch.nn.functional.silu(y[..., : self.n]) * y[..., self.n :]
        return y + self.residual[..., : self.n].double() if residual else y


def check(lib: ctypes.CDLL, few: bool) -> tuple[int, int]:
    good = total = 0

    def run(problem: Gated, what: str, function: Callable[..., int]) -> None:
        nonlocal good, total
        for epilogue in range(2):
            problem.run(function, epilogue, early=epilogue == 0)
            good += problem.check(f"{what} epilogue {epilogue}", problem.wanted(epilogue == 1))
            total += 1

    shapes = [(1, 8, 8, 1, 0), (127, 264, 200, 1, 0), (300, 136, 72, 3, 0), (600, 1032, 320, 1, 8), (96, 130, 64, 2, 8),
              (130, 137, 71, 1, 3), (64, 64, 0, 1, 8), (2600, 11008, 512, 1, 0)]  # fmt: skip
    for m, n, k, batch, pad in shapes[1:6] if few else shapes:
        problem = Gated(lib, m, n, k, batch=batch, pad=pad)
        for i, tile in enumerate(GATED):
            run(problem, f"gated {tile}", getattr(lib, f"gated_{i}"))
    for i, (tile, element, a_k, b_k, aligned) in enumerate(LAYOUTS):
        dtype = torch.float16 if element == "half" else torch.bfloat16
        for m, n, k, batch, pad in (
            (136, 264, 200, 3, 0),
            (8, 8, 8, 1, 0),
            (200, 1416, 264, 1, 0),
            (72, 135, 96, 2, 1),
        ):
            problem = Gated(lib, m, n, k, batch=batch, dtype=dtype, a_k=bool(a_k), b_k=bool(b_k), pad=pad)
            run(problem, f"gated {tile} {element} {a_k} {b_k} aligned {aligned}", getattr(lib, f"gated_layout_{i}"))
    for kind, tiles, epilogue in (("wide", WIDE, 0), ("narrow", NARROW, 4)):
        for m, n, k in ((300, 1032, 320), (512, 4096, 1024))[: 1 if few else 2]:
            problem = base.Gemm(lib, m, n, k)
            want = problem.reference(**base.MODEL_NATIVE[epilogue])
            for i, tile in enumerate(tiles):
                problem.run(getattr(lib, f"{kind}_{i}"), epilogue)
                good += problem.check(f"{kind} {tile}", want)
                total += 1
    return good, total


def race(ways: dict[str, torch.cuda.CUDAGraph], count: int, rest: float) -> dict[str, float]:
    """Median microseconds of a launch, ways in turns; after each a rest, in times of its own."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(9):
        for name, graph in ways.items():
            took = seconds(graph)
            times[name].append(took * 1e6 / count)
            time.sleep(rest * took)
    return {name: statistics.median(t) for name, t in times.items()}


def show(title: str, ways: dict[str, torch.cuda.CUDAGraph], count: int, operations: float) -> None:
    rested, hot = race(ways, count, 2.0), race(ways, count, 0.0)
    print(f"{title}: with rests | without, us")
    for name in sorted(ways, key=lambda n: rested[n]):
        print(
            f"  {rested[name]:8.2f} | {hot[name]:8.2f}  {operations / rested[name] * 1e-6:5.0f} TFLOP/s  {name}",
            flush=True,
        )


def measure(lib: ctypes.CDLL, rows: Sequence[int]) -> None:
    workspace = torch.empty(32 << 20, device="cuda", dtype=torch.uint8)
    for m in rows:
        count = 8 if m <= 512 else 4
        for title, n, k, epilogue, tiles in PRODUCTS:
            problem = base.Gemm(lib, m, n, k, copies=max(2, (200 << 20) // (2 * n * k)))
            kind = "wide" if tiles is WIDE else "narrow"
            ways: dict[str, torch.cuda.CUDAGraph] = {}
            for i, tile in enumerate(tiles):
                function = getattr(lib, f"{kind}_{i}")
                ways["x".join(map(str, tile))] = graph_of(
                    lambda j, f=function, p=problem, e=epilogue: p.run(f, e, 1, j, True), count
                )
            for algorithm in range(6):
                try:
                    ways[f"cublaslt {algorithm}"] = graph_of(
                        lambda j, a=algorithm, p=problem, e=epilogue: p.library(0, e == 4, a, workspace, j), count
                    )
                except RuntimeError:
                    continue
            show(f"{m} rows, {title}", ways, count, 2.0 * m * n * k)
            if title == "22016":
                problem = Gated(lib, m, 11008, 4096, copies=2)
                ways = {
                    "x".join(map(str, tile)): graph_of(
                        lambda j, i=i, p=problem: p.run(getattr(lib, f"gated_{i}"), 0, 1, j, True), count
                    )
                    for i, tile in enumerate(GATED)
                }
                show(f"{m} rows, gated 2 x 11008", ways, count, 2.0 * m * n * k)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="512,2048", help="sizes of M")
    parser.add_argument("--checks-only", action="store_true", help="no timing")
    parser.add_argument("--few", action="store_true", help="few checks and no timing: for compute-sanitizer")
    parser.add_argument("--no-checks", action="store_true", help="times alone")
    parser.add_argument("--library", type=Path, help="where the compiled kernels are kept; made if absent")
    options = parser.parse_args()
    base.find_cublaslt()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        library = (options.library or Path(folder)) / "libgated.so"
        if not library.exists():
            library.parent.mkdir(parents=True, exist_ok=True)
        lib = ctypes.CDLL(str(library)) if library.exists() else build(library, parts())
        print(f"built in {time.monotonic() - start:.0f} s", flush=True)
        if not torch.cuda.is_available():
            return
        good, total = (0, 0) if options.no_checks else check(lib, options.few)
        print(f"{good} of {total} checks passed, {time.monotonic() - start:.0f} s", flush=True)
        if not (options.checks_only or options.few):
            measure(lib, [int(m) for m in options.rows.split(",")])
    sys.exit(good != total)


if __name__ == "__main__":
    main()
