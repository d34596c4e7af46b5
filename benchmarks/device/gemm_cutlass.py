"""Kernels of CUTLASS beside our Hopper gemm and cuBLASLt, at the products of the models, on an sm_90 device.

    pip install --no-deps nvidia-cutlass==4.2.0.0        # headers alone; needs nvcc and a PyTorch with CUDA
    python3 benchmarks/device/gemm_cutlass.py [--rows M,...] [--checks-only] [--library DIR] [--out DIR]

CUTLASS has its collective builder for sm_90a (ping-pong and cooperative, clusters, stream-K and split-K, rasters) and,
for few rows, its sm_80 kernels (with stream-K): every candidate with the epilogue of the product as a visitor tree,
which rounds once, in particular with our own gelu. Launches of the former are dependent on the one before, but those of
stream-K, which in 4.2 does not compile with that, and whose counters are cleared before each launch.
The candidates of all three are timed for a moment; the best of each are then timed in turns, with rests, as graphs of
launches whose weights rotate through memory. All candidates are checked against float64 first.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import gemm_hopper
import gemm_problem as base
import torch
from replays import graph_of, seconds

SOURCE = Path(__file__).with_suffix(".cu").resolve()
NONE, GELU, BIAS_RESIDUAL, BIAS, RESIDUAL, TANH = range(6)
FEW, LARGE, ALL = (GELU, BIAS_RESIDUAL, BIAS), (NONE, GELU, BIAS_RESIDUAL, BIAS, RESIDUAL), range(6)
BIAS_FLAG, TANH_FLAG = 1, 4  # of ait_gemm_v2
FINALISTS = 3
FEW_ROWS = 256


@dataclass(frozen=True)
class Kernel:
    """One configuration of CUTLASS: what it is called, what is defined for it, and its epilogues."""

    name: str
    defines: dict[str, str]
    epilogues: tuple[int, ...]
    splits: tuple[int, ...] = (1,)
    """Ways to share k out, chosen at a launch: 1 for the whole of it, or as stream-K finds best."""

    @property
    def sm90(self) -> bool:
        return "TILE" in self.defines


def sm90(tile: tuple[int, int], cluster: tuple[int, int], how: str, epilogues: tuple[int, ...] | range) -> Kernel:
    """`how`: pingpong, cooperative, or streamk, which is cooperative."""

    def shape(*sizes: int) -> str:
        return f"cute::Shape<{', '.join(f'cute::_{size}' for size in sizes)}>"

    kind = "Pingpong" if how == "pingpong" else "Cooperative"
    defines = {
        "TILE": shape(*tile, 64),
        "CLUSTER": shape(*cluster, 1),
        "SCHEDULE": f"KernelTmaWarpSpecialized{kind}",
        "FINISH": "TmaWarpSpecialized" + ("" if how == "pingpong" else kind),
        "SCHEDULER": "StreamKScheduler" if how == "streamk" else "PersistentScheduler",
    }
    if how != "streamk":  # in 4.2 stream-K does not compile with it
        defines["CUTLASS_ENABLE_GDC_FOR_SM90"] = "1"
    name = f"{how} {tile[0]}x{tile[1]} by {cluster[0]}x{cluster[1]}"
    return Kernel(name, defines, tuple(epilogues), (1, 2, 4, 8) if how == "streamk" and tile[1] <= 128 else (1,))


def sm80(tile: tuple[int, int, int], warps: tuple[int, int], stages: int, streamk: bool) -> Kernel:
    defines = {
        "BLOCK": f"GemmShape<{', '.join(map(str, tile))}>",
        "WARPS": f"GemmShape<{warps[0]}, {warps[1]}, {tile[2]}>",
        "STAGES": str(stages),
        "SWIZZLE": "ThreadblockSwizzleStreamK" if streamk else "GemmIdentityThreadblockSwizzle<>",
    }
    name = f"sm80 {'x'.join(map(str, tile))}{' streamk' * streamk}"
    return Kernel(name, defines, FEW, (1, 2, 4) if streamk else (1,))


KERNELS = [
    sm90((64, 64), (1, 1), "pingpong", FEW),
    sm90((64, 128), (1, 1), "pingpong", FEW),
    sm90((64, 128), (2, 1), "pingpong", FEW),
    sm90((64, 256), (2, 1), "pingpong", LARGE),
    sm90((128, 128), (1, 1), "pingpong", LARGE),
    sm90((128, 128), (2, 1), "pingpong", ALL),
    sm90((128, 128), (1, 2), "pingpong", LARGE),
    sm90((128, 192), (2, 1), "pingpong", LARGE),
    sm90((128, 128), (2, 1), "cooperative", LARGE),
    sm90((128, 192), (2, 1), "cooperative", LARGE),
    sm90((128, 256), (1, 1), "cooperative", LARGE),
    sm90((128, 256), (2, 1), "cooperative", ALL),
    sm90((128, 256), (1, 2), "cooperative", LARGE),
    sm90((256, 128), (2, 1), "cooperative", ALL),
    sm90((128, 64), (1, 1), "streamk", FEW),
    sm90((128, 128), (1, 1), "streamk", LARGE),
    sm90((128, 256), (2, 1), "streamk", LARGE),
    sm80((64, 64, 64), (32, 32), 4, False),
    sm80((64, 64, 64), (32, 32), 4, True),
    sm80((128, 64, 64), (64, 32), 4, False),
    sm80((128, 64, 64), (64, 32), 4, True),
]

PRODUCTS = [
    *((m, n, k, e) for m in (128, 197, 4096, 6304) for n, k, e in
      ((2304, 768, BIAS), (768, 768, BIAS_RESIDUAL), (3072, 768, GELU), (768, 3072, BIAS_RESIDUAL))),
    *((m, 3072, 768, TANH) for m in (4096,)),
    *((m, n, k, e) for m in (512, 2048) for n, k, e in
      ((12288, 4096, NONE), (4096, 4096, RESIDUAL), (22016, 4096, NONE), (4096, 11008, RESIDUAL))),
]  # fmt: skip


def cutlass_parts() -> list[gemm_hopper.Part]:
    masks = [str(sum(1 << e for e in kernel.epilogues)) for kernel in KERNELS]
    return [
        (SOURCE, {"NAME": f"cutlass_{i}", "EPILOGUES": masks[i], **kernel.defines}) for i, kernel in enumerate(KERNELS)
    ]


def our_parts() -> list[gemm_hopper.Part]:
    tiles = [gemm_hopper.tile_part(f"gemm_{i}", t, EPILOGUES="63") for i, t in enumerate(gemm_hopper.TILES)]
    return [*gemm_hopper.library_parts(), *tiles]


def headers(given: Path | None) -> list[str]:
    """Options of the compiler for CUTLASS, of the package `nvidia-cutlass` unless told otherwise."""
    if given is None:
        spec = importlib.util.find_spec("cutlass_library")
        if spec is None or not spec.submodule_search_locations:
            sys.exit("no CUTLASS: pip install --no-deps nvidia-cutlass==4.2.0.0, or name its sources by --cutlass")
        given = Path(spec.submodule_search_locations[0]) / "source"
    return [f"-I{given / 'include'}", f"-I{given / 'tools/util/include'}", "--expt-relaxed-constexpr"]


Launch = Callable[[int], None]


@dataclass(frozen=True)
class Built:
    """The compiled kernels: ours with cuBLASLt, and those of CUTLASS but the ones that were left out."""

    ours: ctypes.CDLL
    cutlass: ctypes.CDLL
    without: str


def ours(lib: Built, problem: base.Gemm, epilogue: int) -> Iterator[tuple[str, Launch]]:
    """The tiles that gemm_hopper.py would time for so many rows; weights are copied ahead of the launch before."""
    for i, tile in enumerate(gemm_hopper.TILES):
        small = tile[0] * tile[1] < 2 * gemm_hopper.SMALL and tile[4] == 1
        if small if problem.m > 1024 else (problem.m <= 128 and not small):
            continue
        function = getattr(lib.ours, f"gemm_{i}")
        yield "x".join(map(str, tile)), lambda j, f=function: problem.run(f, epilogue, 1, j, True)


def cutlass(lib: Built, problem: base.Gemm, epilogue: int) -> Iterator[tuple[str, Launch]]:
    for i, kernel in enumerate(KERNELS):
        few = problem.m <= FEW_ROWS
        if epilogue not in kernel.epilogues or (not few and not kernel.sm90) or lib.without in kernel.name.split():
            continue
        swizzles = (1, 2, 8) if kernel.sm90 and problem.m >= 2048 else (1,)
        for split in kernel.splits if few else kernel.splits[:1]:
            for swizzle in swizzles:
                name = kernel.name + f" split {split}" * (split > 1) + f" swizzle {swizzle}" * (swizzle > 1)
                yield name, launcher(problem, getattr(lib.cutlass, f"cutlass_{i}"), epilogue, split, swizzle)


def launcher(problem: base.Gemm, function: Callable[..., int], epilogue: int, split: int, swizzle: int) -> Launch:
    return lambda j: problem.run(function, epilogue, split, j, swizzle)


def library(problem: base.Gemm, epilogue: int, workspace: torch.Tensor) -> Iterator[tuple[str, Launch]]:
    """cuBLASLt; beside an erf gelu it adds the bias only, as its gelu is the tanh form."""
    bias, residual = epilogue not in (NONE, RESIDUAL), epilogue in (BIAS_RESIDUAL, RESIDUAL)
    flags = BIAS_FLAG * bias | TANH_FLAG * (epilogue == TANH)
    for i in range(8):
        yield f"algorithm {i}", lambda j, i=i: problem.library(flags, residual, i, workspace, j)


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def race(sides: dict[str, list[tuple[str, Launch]]], count: int, turns: int) -> dict[str, list[tuple[float, str]]]:
    """Median microseconds of a launch of the best of each side, in turns."""
    finals: dict[str, list[tuple[str, torch.cuda.CUDAGraph]]] = {}
    for side, candidates in sides.items():
        tried: list[tuple[float, str, torch.cuda.CUDAGraph]] = []
        for name, launch in candidates:
            try:
                graph = graph_of(launch, count)
            except RuntimeError:
                continue
            seconds(graph)
            tried.append((min(seconds(graph) for _ in range(3)), name, graph))
        tried.sort(key=lambda t: t[0])
        finals[side] = [(name, graph) for _, name, graph in tried[:FINALISTS]]
    times: dict[tuple[str, str], list[float]] = {(s, n): [] for s, found in finals.items() for n, _ in found}
    for _ in range(turns):
        for side, found in finals.items():
            for name, graph in found:
                seconds(graph)  # the clock, and the instructions, of this kernel
                took = seconds(graph)
                times[side, name].append(took)
                time.sleep(min(0.02, 2 * took))
    return {s: sorted((median(times[s, n]) * 1e6 / count, n) for n, _ in found) for s, found in finals.items()}


def check(lib: Built) -> tuple[int, int]:
    good = total = 0
    for m, n, k in ((200, 136, 200), (129, 264, 72), (128, 768, 3072), (1000, 1032, 320), (2600, 2056, 1024)):
        problem = base.Gemm(lib.ours, m, n, k)
        for epilogue, wanted in enumerate(base.MODEL_NATIVE):
            want = problem.reference(**wanted)
            runs = [(f"cutlass {name}", run) for name, run in cutlass(lib, problem, epilogue)]
            runs += [(f"ours {name}", run) for name, run in ours(lib, problem, epilogue)]
            for name, run in runs:
                run(0)
                total += 1
                good += problem.check(f"{name} {base.MODEL_EPILOGUES[epilogue]}", want)
    return good, total


def measure(lib: Built, rows: set[int], turns: int) -> list[dict[str, object]]:
    table: list[dict[str, object]] = []
    workspace = torch.empty(32 << 20, device="cuda", dtype=torch.uint8)
    print("| M x N x K | ours (tile) | CUTLASS | cuBLASLt | ours / CUTLASS | ours / cuBLASLt |")
    print("|---|---|---|---|---|---|")
    for m, n, k, epilogue in PRODUCTS:
        if m not in rows:
            continue
        problem = base.Gemm(lib.ours, m, n, k, copies=max(1, min(24, (160 << 20) // (2 * n * k))))
        count = 24 if k * n < 1 << 24 else 4
        sides = {
            "ours": list(ours(lib, problem, epilogue)),
            "cutlass": list(cutlass(lib, problem, epilogue)),
            "cublaslt": list(library(problem, epilogue, workspace)),
        }
        found = race(sides, count, turns)
        best = {side: timed[0][0] for side, timed in found.items()}
        shape = f"{m} x {n} x {k} {base.MODEL_EPILOGUES[epilogue]}"
        table.append({"product": shape, "m": m, "n": n, "k": k, "epilogue": base.MODEL_EPILOGUES[epilogue], **found})
        cells = [shape, *(f"{us:.2f} ({name})" for (us, name), *_ in found.values())]
        cells += [f"{best['ours'] / best[side]:.2f}" for side in ("cutlass", "cublaslt")]
        print(f"| {' | '.join(cells)} |", flush=True)
        torch.cuda.empty_cache()
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="128,197,512,2048,4096,6304", help="sizes of M")
    parser.add_argument("--turns", type=int, default=15, help="times that each finalist is timed")
    parser.add_argument("--no-checks", action="store_true", help="times alone")
    parser.add_argument("--checks-only", action="store_true", help="no timing")
    parser.add_argument("--cutlass", type=Path, help="where CUTLASS is: the folder with include and tools")
    parser.add_argument("--without", default="none", help="leaves out kernels of CUTLASS with this word in their names")
    jobs = max(1, (os.cpu_count() or 2) // 2)
    parser.add_argument("--jobs", type=int, default=jobs, help="compilers at once, of up to 4 GB each")
    parser.add_argument("--library", type=Path, help="where the compiled kernels are kept; made if absent")
    parser.add_argument("--out", type=Path, help="where gemm_cutlass.json goes")
    options = parser.parse_args()
    base.find_cublaslt()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        kept = options.library or Path(folder)

        def built(name: str, parts: Callable[[], list[gemm_hopper.Part]], more: Callable[[], list[str]]) -> ctypes.CDLL:
            path = kept / name / f"lib{name}.so"
            if path.exists():
                return ctypes.CDLL(str(path))
            path.parent.mkdir(parents=True, exist_ok=True)
            return gemm_hopper.build(path, parts(), more(), options.jobs)

        theirs = built("cutlass", cutlass_parts, lambda: headers(options.cutlass))
        lib = Built(built("ours", our_parts, list), theirs, options.without)
        print(f"built in {time.monotonic() - start:.0f} s", flush=True)
        if not torch.cuda.is_available():
            return
        good, total = (0, 0) if options.no_checks else check(lib)
        print(f"{good} of {total} checks passed, {time.monotonic() - start:.0f} s", flush=True)
        if not options.checks_only:
            table = measure(lib, {int(m) for m in options.rows.split(",")}, options.turns)
            if options.out is not None:
                (options.out / "gemm_cutlass.json").write_text(json.dumps(table, indent=1))
            print(f"{time.monotonic() - start:.0f} s")
    sys.exit(good != total)


if __name__ == "__main__":
    main()
