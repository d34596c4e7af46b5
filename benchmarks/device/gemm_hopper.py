"""The Hopper gemm on an sm_90 device: build, check against f64, time beside cuBLASLt.

    python3 benchmarks/device/gemm_hopper.py [--rows M,M,...] [--head] [--checks-only] [--out DIR]

Needs nvcc and a PyTorch with CUDA; reads nothing outside the repository. Times are medians of CUDA-graph replays in
microseconds, over weights that rotate, so that they come from memory and not from L2. Exits with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gemm_problem as base
import torch

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_suffix(".cu").resolve()
# rows, columns, stages, cluster, teams, groups of a team, split
TILES = [
    (128, 128, 5, 1, 2, 1, 1), (128, 128, 6, 2, 2, 1, 1), (128, 128, 5, 1, 2, 2, 1), (128, 192, 4, 1, 1, 2, 1),
    (128, 192, 4, 1, 2, 1, 1), (192, 128, 4, 1, 1, 3, 1), (64, 256, 4, 1, 2, 1, 1), (64, 64, 8, 1, 1, 1, 1),
    (192, 192, 3, 1, 1, 3, 1), (192, 128, 4, 1, 2, 1, 1), (64, 64, 12, 1, 1, 1, 1), (64, 32, 12, 1, 1, 1, 1),
    (64, 96, 10, 1, 1, 1, 1), (64, 64, 12, 1, 1, 1, 2),
    (64, 64, 6, 1, 1, 1, 2), (64, 64, 6, 1, 1, 1, 4), (64, 32, 8, 1, 1, 1, 1), (64, 32, 6, 1, 1, 1, 2),
    (64, 128, 6, 1, 1, 1, 4), (64, 128, 4, 1, 1, 1, 8), (64, 96, 6, 1, 1, 1, 1), (64, 96, 6, 1, 1, 1, 2),
    (128, 64, 6, 1, 1, 2, 8), (128, 64, 6, 1, 1, 2, 4), (128, 64, 4, 1, 1, 2, 4), (128, 64, 8, 1, 1, 2, 2),
    (128, 64, 8, 1, 1, 2, 1), (128, 64, 4, 1, 1, 2, 1), (128, 32, 8, 1, 1, 2, 1), (128, 32, 8, 1, 1, 2, 2),
    (128, 96, 6, 1, 1, 2, 1), (128, 96, 6, 1, 1, 2, 2), (128, 96, 6, 1, 1, 2, 4), (192, 64, 6, 1, 1, 3, 1),
    (192, 64, 5, 1, 1, 3, 4), (192, 64, 6, 1, 1, 3, 2), (64, 128, 8, 1, 1, 1, 1), (64, 192, 6, 1, 1, 1, 1),
    (64, 64, 8, 2, 1, 1, 1), (64, 128, 8, 2, 1, 1, 1), (64, 96, 6, 2, 1, 1, 1),
]  # fmt: skip
SMALL = 64 * 128
# tile, element, and whether K is contiguous in a and in b
LAYOUTS = [
    (tile, element, a_k, b_k)
    for tile in ((128, 128, 4, 2, 2, 2, 1), (64, 128, 4, 1, 2, 1, 1), (128, 64, 4, 1, 1, 2, 1), (64, 64, 4, 1, 1, 1, 2))
    for element in ("half", "bfloat16")
    for a_k in (1, 0)
    for b_k in (1, 0)
    if element == "half" or (a_k, b_k) in ((1, 1), (0, 0))
]
# tiles that also come with rows of the result that start anywhere
HEAD_TILES = [
    (128, 128, 5, 1, 2, 1, 1), (128, 192, 4, 1, 2, 1, 1), (64, 256, 4, 1, 2, 1, 1), (128, 128, 5, 1, 2, 2, 1),
    (192, 128, 4, 1, 1, 3, 1), (128, 192, 4, 1, 1, 2, 1), (64, 64, 6, 1, 1, 1, 2),
]  # fmt: skip
TYPES = {"half": torch.float16, "bfloat16": torch.bfloat16}


def cpp(tile: tuple[int, ...]) -> str:
    return f"HopperTile<{', '.join(map(str, tile))}>"


Part = tuple[Path, dict[str, str]]
"""A source, and what is defined for it."""


def parts() -> list[Part]:
    """Every tile, layout and kind of row, one function each, and cuBLASLt."""
    made = [tile_part(f"gemm_{i}", tile) for i, tile in enumerate(TILES)]
    for i, (tile, element, a_k, b_k) in enumerate(LAYOUTS):
        names = {"NAME": f"layout_{i}", "TILE": cpp(tile), "ELEMENT": f"ait::{element}", "AK": str(a_k), "BK": str(b_k)}
        made.append((SOURCE, {"PART": "1", **names}))
    for i, tile in enumerate(HEAD_TILES):
        made.append((SOURCE, {"PART": "3", "NAME": f"anywhere_{i}", "TILE": cpp(tile), "ELEMENT": "ait::half"}))
    return [*made, *library_parts()]


def tile_part(name: str, tile: tuple[int, ...], **more: str) -> Part:
    return SOURCE, {"PART": "0", "NAME": name, "TILE": cpp(tile), **more}


def library_parts() -> list[Part]:
    return [(SOURCE, {"PART": "2"}), (ROOT / "runtime/src/gpu/gemm_lt.cc", {})]


def build(library: Path, parts: Sequence[Part], more: Sequence[str] = (), jobs: int = 0) -> ctypes.CDLL:
    """Compiles every part, `jobs` at once, and links them; prints warnings and what ptxas says of spills."""
    out = library.parent
    flags = [
        "-std=c++17",
        "-O3",
        "-DNDEBUG",
        "-Xcompiler",
        "-fPIC",
        f"-I{ROOT}/runtime/include",
        f"-I{ROOT}/runtime/src",
        f"-I{SOURCE.parent}",
    ]
    flags += ["-Xptxas", "-v", "-gencode", "arch=compute_90a,code=sm_90a", *more]

    def compile_one(item: tuple[int, Path]) -> str:
        command = ["nvcc", *flags, "-c", str(item[1]), "-o", str(out / f"{item[0]}.o")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{item[1].read_text()[:300]}\n{done.stdout}{done.stderr}")
        return done.stderr

    files: list[Path] = []
    for i, (source, defines) in enumerate(parts):
        files.append(out / f"{i}.cu" if defines else source)  # not -D: nvcc splits the values of options at commas
        if defines:
            text = "".join(f"#define {k} {v}\n" for k, v in defines.items())
            files[-1].write_text(f'{text}#include "{source}"\n')
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        logs = list(pool.map(compile_one, enumerate(files)))
    entry = ""
    for log in logs:
        for line in log.splitlines():
            entry = line if "Compiling entry" in line else entry
            if "arning" in line or ("spill stores" in line and " 0 bytes spill stores" not in line):
                print(line.strip()[:150], entry[-220:-20] if "spill" in line else "")
    objects = [str(out / f"{i}.o") for i in range(len(files))]
    subprocess.run(["nvcc", "-shared", "-cudart", "shared", *objects, "-o", str(library), "-ldl"], check=True)
    return ctypes.CDLL(str(library))


class Checks:
    def __init__(self) -> None:
        self.good = self.total = 0
        self.wrong: set[int] = set()
        """Tiles with a wrong result, which are not timed."""

    def run(self, problem: base.Gemm, what: str, function: object, tile: int = -1) -> None:
        for epilogue in range(3):
            want = problem.reference(**base.NATIVE[epilogue])
            for early in (False, True) if "split" in what else (epilogue == 1,):
                problem.run(function, epilogue, early=early)  # pyright: ignore[reportArgumentType]
                self.total += 1
                right = problem.check(f"{what} {base.EPILOGUES[epilogue]}", want)
                self.good += right
                self.wrong |= set() if right else {tile}


def check(lib: ctypes.CDLL, few: bool = False) -> Checks:
    checks = Checks()
    for shape in ((200, 137, 200, 2, 8), (129, 1, 72, 1, 0), (65, 4097, 64, 1, 0), (64, 264, 64, 2, 8)):
        problem = base.Gemm(lib, *shape[:4], pad=shape[4])
        for i, tile in enumerate(HEAD_TILES):
            checks.run(problem, f"anywhere, tile {tile}", getattr(lib, f"anywhere_{i}"))
    if few:
        for shape in ((200, 136, 200, 2, 8), (129, 264, 72, 1, 0)):
            problem = base.Gemm(lib, *shape[:4], pad=shape[4])
            for i, tile in enumerate(TILES):
                checks.run(problem, f"tile {tile}", getattr(lib, f"gemm_{i}"), i)
        return checks
    shapes = [(m, n, k, 1, 0) for m in (1, 127, 200) for n, k in ((8, 8), (264, 200))]
    shapes += [(256, 384, 768, 1, 8), (300, 136, 72, 3, 0), (1000, 1032, 320, 1, 0), (1, 2304, 768, 1, 0),
               (2600, 2056, 1024, 1, 0), (96, 130, 64, 2, 8), (130, 137, 71, 1, 3), (64, 64, 0, 1, 8)]  # fmt: skip
    for shape in shapes:
        problem = base.Gemm(lib, *shape[:4], pad=shape[4])
        for i, tile in enumerate(TILES):
            checks.run(problem, f"tile {tile}{' split' * (tile[6] > 1)}", getattr(lib, f"gemm_{i}"), i)
    for i, (tile, element, a_k, b_k) in enumerate(LAYOUTS):
        for shape in ((136, 264, 200, 3, 0), (72, 80, 96, 2, 8), (8, 8, 8, 1, 0), (1304, 1416, 264, 1, 0)):
            problem = base.Gemm(lib, *shape[:4], dtype=TYPES[element], a_k=bool(a_k), b_k=bool(b_k), pad=shape[4])
            what = f"tile {tile} {element} a_k {a_k} b_k {b_k}"
            checks.run(problem, what, getattr(lib, f"layout_{i}"))
            if shape[3] > 1:
                problem.b = [problem.b[0][:1].expand_as(problem.b[0])]
                checks.run(problem, what + " shared b", getattr(lib, f"layout_{i}"))
    return checks


def best_of_library(problem: base.Gemm, workspace: torch.Tensor, epilogue: int, residual: bool, count: int) -> float:
    best = float("inf")
    for algo in range(8):
        try:
            us = base.time_graph(lambda i, a=algo: problem.library(epilogue, residual, a, workspace, i), count)
        except RuntimeError:
            continue
        best = min(best, us)
    return best


def measure_head(lib: ctypes.CDLL) -> None:
    """A product whose result has 50,257 columns, beside one column less: rows that start anywhere, and on 32 bytes."""
    workspace = torch.empty(32 << 20, device="cuda", dtype=torch.uint8)
    for m in (128, 4096):
        problems = [base.Gemm(lib, m, n, 768) for n in (50256, 50257)]
        for e, name in enumerate(base.EPILOGUES):
            library = [best_of_library(p, workspace, min(e, 1), e == 2, 8) for p in problems]
            text = f"{m:>5} x 50256, 50257 x 768 {name:<13} cublaslt {library[0]:.1f}, {library[1]:.1f}"
            for i, tile in enumerate(HEAD_TILES):
                functions = getattr(lib, f"gemm_{TILES.index(tile)}"), getattr(lib, f"anywhere_{i}")
                us = [
                    base.time_graph(lambda j, p=p, f=f, x=e: p.run(f, x, 1, j, True), 8)
                    for p, f in zip(problems, functions, strict=True)
                ]
                text += f"; {'x'.join(map(str, tile))} {us[0]:.1f}, {us[1]:.1f} ({us[0] / us[1]:.0%})"
            print(text, flush=True)


def measure(lib: ctypes.CDLL, sizes: Sequence[int], wrong: set[int]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    workspace = torch.empty(32 << 20, device="cuda", dtype=torch.uint8)
    for m in sizes:
        for n, k in ((2304, 768), (768, 768), (3072, 768), (768, 3072)):
            problem = base.Gemm(lib, m, n, k, copies=max(1, min(24, (160 << 20) // (2 * n * k))))
            count = 24 if m <= 1024 else 8
            row: dict[str, object] = {"m": m, "n": n, "k": k}
            lt = [best_of_library(problem, workspace, *args, count) for args in ((0, False), (1, False), (1, True))]
            for e, name in enumerate(base.EPILOGUES):
                timed = []
                for i, tile in enumerate(TILES):
                    small = tile[0] * tile[1] < 2 * SMALL and tile[4] == 1
                    if i in wrong or (small if m > 1024 else (m <= 128 and not small)):
                        continue
                    kernel = getattr(lib, f"gemm_{i}")
                    for early in (False, True) if small else (True,):
                        run = lambda j, p=problem, f=kernel, x=e, w=early: p.run(f, x, 1, j, w)  # noqa: E731
                        timed.append((base.time_graph(run, count), (*tile, "e" if early else "")))
                timed.sort()
                row[name] = {"lt": round(lt[e], 2), "ours": [[round(us, 2), tile] for us, tile in timed]}
                shown = "; ".join(f"{us:.2f} {'x'.join(map(str, tile))}" for us, tile in timed[:8])
                tera = 2e-6 * m * n * k / timed[0][0]
                print(f"{m:>5} x {n} x {k} {name:<13} cublaslt {lt[e]:6.2f} us, ours {shown} | "
                      f"{timed[0][0] / lt[e]:.2f} of it, {tera:.0f} TFLOP/s", flush=True)  # fmt: skip
            rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="128,384,4096,12288", help="sizes of M")
    parser.add_argument("--head", action="store_true", help="times a result with 50,257 columns instead")
    parser.add_argument("--no-checks", action="store_true", help="times alone")
    parser.add_argument("--checks-only", action="store_true", help="no timing")
    parser.add_argument("--few", action="store_true", help="few checks and no timing: for compute-sanitizer")
    parser.add_argument("--library", type=Path, help="where the compiled kernels are kept; made if absent")
    parser.add_argument("--out", type=Path, help="where gemm_hopper.json goes")
    options = parser.parse_args()
    base.find_cublaslt()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        library = (options.library or Path(folder)) / "libhopper.so"
        lib = ctypes.CDLL(str(library)) if library.exists() else build(library, parts())
        print(f"built in {time.monotonic() - start:.0f} s", flush=True)
        if not torch.cuda.is_available():
            return
        checks = Checks() if options.no_checks else check(lib, options.few)
        print(f"{checks.good} of {checks.total} checks passed, {time.monotonic() - start:.0f} s", flush=True)
        if options.head:
            measure_head(lib)
        elif not (options.checks_only or options.few):
            rows = measure(lib, [int(m) for m in options.rows.split(",")], checks.wrong)
            if options.out is not None:
                (options.out / "gemm_hopper.json").write_text(json.dumps(rows, indent=1))
            print(f"{time.monotonic() - start:.0f} s")
    sys.exit(checks.good != checks.total)


if __name__ == "__main__":
    main()
