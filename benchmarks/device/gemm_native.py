"""The native tensor-core gemm of sm_80 and later: build, check against f64, time beside cuBLASLt.

    python3 benchmarks/device/gemm_native.py [--quick] [--out DIR]

Needs nvcc and a PyTorch with CUDA; reads nothing outside the repository. Times are medians of CUDA-graph replays in
microseconds, over weights that rotate, so that they come from memory and not from L2. Exits with 1 if a check fails.
"""
# ruff: noqa: B023  (the closures are called before their loop goes on)

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from gemm_problem import EPILOGUES, NATIVE, Gemm, find_cublaslt, time_graph

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_suffix(".cu").resolve()
TILES = [
    (128, 256, 64, 2, 4, 3, 1), (256, 128, 64, 4, 2, 3, 1), (128, 128, 64, 2, 2, 3, 2), (128, 128, 32, 2, 2, 4, 2),
    (128, 64, 64, 2, 2, 4, 2), (64, 128, 64, 2, 2, 4, 2), (64, 64, 64, 2, 2, 4, 3), (64, 64, 64, 2, 4, 4, 2),
    (64, 64, 128, 2, 2, 3, 2), (64, 32, 64, 2, 2, 4, 4), (32, 64, 64, 2, 2, 4, 4), (32, 32, 128, 2, 2, 4, 3),
    (128, 64, 64, 4, 2, 4, 2),
]  # fmt: skip


def build(out: Path) -> ctypes.CDLL:
    """Compiles every part at once and links them; prints what ptxas says of spills."""
    flags = [
        "-std=c++17",
        "-O3",
        "-DNDEBUG",
        "-Xcompiler",
        "-fPIC",
        f"-I{ROOT}/runtime/include",
        f"-I{ROOT}/runtime/src",
        "-Xptxas",
        "-v",
        "-gencode",
        "arch=compute_90a,code=sm_90a",
    ]
    parts: list[dict[str, str]] = []
    for i, tile in enumerate(TILES):
        parts.append({"PART": str(i), "NAME": f"gemm_{i}", "TILE": f"Tile<{', '.join(map(str, tile))}>"})
    parts += [{"PART": "100"}, {"PART": "101"}]

    def compile_one(item: tuple[int, dict[str, str]]) -> str:
        index, defines = item
        path = out / f"{index}.cu"  # not -D: nvcc splits the values of options at commas
        path.write_text("".join(f"#define {k} {v}\n" for k, v in defines.items()) + f'#include "{SOURCE}"\n')
        return compile_file(index, path)

    def compile_file(index: int, path: Path) -> str:
        command = ["nvcc", *flags, "-c", str(path), "-o", str(out / f"{index}.o")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{path.read_text()[:300]}\n{done.stdout}{done.stderr}")
        return done.stderr

    with ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        logs = list(pool.map(compile_one, enumerate(parts)))
    logs.append(compile_file(len(parts), ROOT / "runtime/src/gpu/gemm_lt.cc"))
    spills = [
        line.strip()
        for log in logs
        for line in log.splitlines()
        if "spill" in line and " 0 bytes spill stores" not in line
    ]
    print(f"built {len(logs)} parts; kernels with spills: {len(spills)}", *spills[:5], sep="\n  " if spills else " ")
    library = out / "libkernels.so"
    objects = [str(out / f"{i}.o") for i in range(len(logs))]
    subprocess.run(["nvcc", "-shared", "-cudart", "shared", *objects, "-o", str(library), "-ldl"], check=True)
    return ctypes.CDLL(str(library))


def check_gemm(lib: ctypes.CDLL) -> tuple[int, int]:
    good = total = 0

    def one(problem: Gemm, what: str, function: Callable[..., int], epilogue: int, split: int = 1) -> None:
        nonlocal good, total
        problem.run(function, epilogue, split)
        total += 1
        good += problem.check(f"{what} {EPILOGUES[epilogue]} split {split}", problem.reference(**NATIVE[epilogue]))

    for shape in (
        (131, 264, 200, 1, 0),
        (128, 256, 768, 1, 8),
        (1, 40, 136, 2, 0),
        (300, 130, 71, 1, 3),
        (64, 64, 0, 1, 8),
    ):
        problem = Gemm(lib, *shape[:4], pad=shape[4])
        for i, tile in enumerate(TILES):
            function = getattr(lib, f"gemm_{i}")
            for epilogue in range(3):
                one(problem, f"tile {tile}", function, epilogue)
            if tile[0] * tile[1] <= 64 * 64:
                for split in (2, 4, 8):
                    one(problem, f"tile {tile}", function, 2, split)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        for a_k in (True, False):
            for b_k in (True, False):
                if (dtype is torch.bfloat16 and (not a_k or b_k)) or (dtype is torch.float32 and not (a_k and b_k)):
                    continue
                for shape in ((131, 264, 200, 3, 0), (72, 80, 96, 2, 8), (33, 65, 127, 2, 1)):
                    problem = Gemm(lib, *shape[:4], dtype=dtype, a_k=a_k, b_k=b_k, pad=shape[4])
                    for epilogue in range(3):
                        one(problem, f"{dtype} a_k {a_k} b_k {b_k}", lib.gemm_other, epilogue)
    for a_k in (True, False):
        for b_k in (True, False):
            for shape in ((131, 264, 200, 3, 0), (33, 65, 127, 2, 1)):
                one(
                    Gemm(lib, *shape[:4], dtype=torch.float32, a_k=a_k, b_k=b_k, pad=shape[4]),
                    f"simt f32 {a_k} {b_k}",
                    lib.gemm_simt_f32,
                    0,
                )
    workspace = torch.empty(32 << 20, device="cuda", dtype=torch.uint8)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        for a_k in (True, False):
            for b_k in (True, False):
                for batch, pad in ((1, 0), (3, 8), (2, 1)):
                    problem = Gemm(lib, 136, 264, 200, batch, dtype=dtype, a_k=a_k, b_k=b_k, pad=pad)
                    for epilogue, act in ((0, ""), (1, ""), (2, "relu"), (3, "relu"), (5, "tanh")):
                        for residual in (False, True):
                            problem.library(epilogue, residual, -1, workspace)
                            total += 1
                            want = problem.reference(bool(epilogue & 1), residual, act)
                            good += problem.check(
                                f"cublaslt {dtype} a_k {a_k} b_k {b_k} epilogue {epilogue} residual {residual}", want
                            )
    return good, total


def time_gemm(lib: ctypes.CDLL, quick: bool) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    workspace = torch.empty(32 << 20, device="cuda", dtype=torch.uint8)
    tokens = (128, 4096) if quick else (128, 384, 4096, 12288)
    for m in tokens:
        for n, k in ((2304, 768), (768, 768), (3072, 768), (768, 3072)):
            problem = Gemm(lib, m, n, k, copies=max(1, min(24, (160 << 20) // (2 * n * k))))
            count = 24 if m <= 512 else 8
            row: dict[str, object] = {"m": m, "n": n, "k": k}
            for name, epilogue, residual in (
                ("none", 0, False),
                ("bias", 1, False),
                ("tanh", 5, False),
                ("residual", 1, True),
            ):
                timed = []
                for algo in range(8):
                    try:
                        us = time_graph(lambda i: problem.library(epilogue, residual, algo, workspace, i), count)
                    except RuntimeError:
                        continue
                    timed.append((us, algo))
                first = timed[0][0] if timed else float("nan")
                row[f"lt {name}"] = [round(first, 2), *([round(min(timed)[0], 2), min(timed)[1]] if timed else [])]
            for e, name in enumerate(EPILOGUES):
                timed = []
                for i, tile in enumerate(TILES):
                    blocks = -(-m // tile[0]) * -(-n // tile[1])
                    if (m >= 2048 and tile[0] * tile[1] < 64 * 128) or (m < 512 and tile[0] * tile[1] > 128 * 64):
                        continue
                    small = tile[0] * tile[1] <= 64 * 64
                    for split in [
                        s for s in (1, 2, 4, 8) if s == 1 or (small and blocks * s <= 600 and k // tile[2] >= 2 * s)
                    ]:
                        us = time_graph(lambda j: problem.run(getattr(lib, f"gemm_{i}"), e, split, j), count)
                        timed.append((us, [*tile, split]))
                timed.sort(key=lambda t: t[0])
                row[f"native {name}"] = [[round(us, 2), config] for us, config in timed[:4]]
            rows.append(row)
            print_gemm(row)
    return rows


def print_gemm(row: dict[str, object]) -> None:
    m, n, k = row["m"], row["n"], row["k"]
    print(
        f"gemm {m} x {n} x {k}: cublaslt first/best us: "
        + "; ".join(f"{key[3:]} {row[key]}" for key in row if key.startswith("lt "))
    )
    for key in row:
        if key.startswith("native "):
            print(f"    {key}: " + "; ".join(f"{us} {'x'.join(map(str, c))}" for us, c in row[key]))  # type: ignore[attr-defined]
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    parser.add_argument("--out", type=Path, help="folder for gemm_native.json")
    options = parser.parse_args()
    find_cublaslt()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    with tempfile.TemporaryDirectory() as folder:
        lib = build(Path(folder))
        good, total = check_gemm(lib)
        print(f"{good} of {total} checks passed", flush=True)
        rows = time_gemm(lib, options.quick)
    if options.out:
        results = {"device": torch.cuda.get_device_name(), "gemm": rows}
        (options.out / "gemm_native.json").write_text(json.dumps(results, indent=1))
    return int(good != total)


if __name__ == "__main__":
    sys.exit(main())
