"""Native gemm and attention on a CUDA device: build, check against f64, time beside cuBLASLt and PyTorch's attention.

    python3 benchmarks/device/gemm_attention.py [--quick] [--only gemm,attention] [--out DIR]

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

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_suffix(".cu").resolve()
TILES = [
    (128, 256, 64, 2, 4, 3, 1), (256, 128, 64, 4, 2, 3, 1), (128, 128, 64, 2, 2, 3, 2), (128, 128, 32, 2, 2, 4, 2),
    (128, 64, 64, 2, 2, 4, 2), (64, 128, 64, 2, 2, 4, 2), (64, 64, 64, 2, 2, 4, 3), (64, 64, 64, 2, 4, 4, 2),
    (64, 64, 128, 2, 2, 3, 2), (64, 32, 64, 2, 2, 4, 4), (32, 64, 64, 2, 2, 4, 4), (32, 32, 128, 2, 2, 4, 3),
    (128, 64, 64, 4, 2, 4, 2),
]  # fmt: skip
ATTENTION = [
    ("AttentionTile<64, 4, 64>", "ait::half"), ("AttentionTile<64, 2, 64>", "ait::half"),
    ("AttentionTile<64, 1, 64>", "ait::half"), ("AttentionTile<64, 4, 128>", "ait::half"),
    ("AttentionTile<64, 8, 64>", "ait::half"), ("AttentionTile<64, 2, 32>", "ait::half"),
    ("AttentionTile<128, 4, 64>", "ait::half"), ("AttentionTile<128, 8, 64>", "ait::half"),
    ("AttentionTile<48, 4, 64>", "ait::half"), ("AttentionTile<64, 4, 64>", "ait::bfloat16"),
    ("AttentionSimtTile<64>", "float, true"),
]  # fmt: skip
EPILOGUES = ("none", "bias+gelu", "bias+residual")


class GemmCall(ctypes.Structure):
    _fields_ = (
        [(n, ctypes.c_int32) for n in ("tile", "split", "epilogue", "dtype", "a_k", "b_k")]
        + [
            (n, ctypes.c_int64)
            for n in (
                "m",
                "n",
                "k",
                "outer",
                "inner",
                "lda",
                "ldb",
                "ldd",
                "ldr",
                "a_batch",
                "b_batch",
                "d_batch",
                "r_batch",
            )
        ]
        + [(n, ctypes.c_void_p) for n in ("a", "b", "bias", "residual", "d", "stream")]
    )


class AttentionCall(ctypes.Structure):
    _fields_ = (
        [(n, ctypes.c_int32) for n in ("variant", "masked", "causal", "dtype")]
        + [(n, ctypes.c_int64) for n in ("batch", "heads", "rows", "cols", "depth")]
        + [("strides", ctypes.c_int64 * 12), ("mask", ctypes.c_int64 * 4)]
        + [(n, ctypes.c_void_p) for n in ("q", "k", "v", "m", "o", "stream")]
        + [("scale", ctypes.c_float)]
    )


class LibraryCall(ctypes.Structure):
    _fields_ = (
        [(n, ctypes.c_int32) for n in ("dtype", "trans_a", "trans_b", "epilogue")]
        + [
            (n, ctypes.c_int64)
            for n in ("batch", "m", "n", "k", "lda", "ldb", "ldc", "ldd", "batch_a", "batch_b", "batch_c", "batch_d")
        ]
        + [(n, ctypes.c_void_p) for n in ("a", "b", "c", "bias", "d")]
        + [("alpha", ctypes.c_float), ("beta", ctypes.c_float)]
        + [("algorithm", ctypes.c_void_p), ("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_int64)]
    )


def build(out: Path) -> ctypes.CDLL:
    """Compiles every part at once and links them; prints what ptxas says of spills."""
    flags = [
        "-std=c++17",
        "-O3",
        "-DNDEBUG",
        "-Xcompiler",
        "-fPIC",
        f"-I{ROOT}/runtime/include",
        "-Xptxas",
        "-v",
        "-gencode",
        "arch=compute_90a,code=sm_90a",
    ]
    parts: list[dict[str, str]] = []
    for i, tile in enumerate(TILES):
        parts.append({"PART": str(i), "NAME": f"gemm_{i}", "TILE": f"Tile<{', '.join(map(str, tile))}>"})
    parts += [{"PART": "100"}, {"PART": "101"}]
    for i, (tile_name, dtype) in enumerate(ATTENTION):
        parts.append({"PART": "102", "NAME": f"attention_{i}", "TILE": f"{tile_name}, {dtype}"})

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
    logs.append(compile_file(len(parts), ROOT / "runtime/src/cuda/cublaslt.cc"))
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


def find_cublaslt() -> None:
    if "AIT_CUBLASLT" in os.environ:
        return
    for folder in map(Path, torch.__path__ + sys.path):
        base = folder.parent if folder.name == "torch" else folder
        for found in [*base.glob("nvidia/cu13/lib/libcublasLt.so.*"), *base.glob("nvidia/cublas/lib/libcublasLt.so.*")]:
            os.environ["AIT_CUBLASLT"] = str(found)
            return


def stream() -> int:
    return torch.cuda.current_stream().cuda_stream


def call(function: Callable[..., int], *args: object) -> None:
    if function(*args) != 0:
        raise RuntimeError("the kernel was not launched")


def time_graph(launch: Callable[[int], None], count: int = 24, replays: int = 15) -> float:
    """Median microseconds of `launch(i)` in a graph of `count` launches."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        launch(0)
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        for i in range(count):
            launch(i)
    times = []
    for _ in range(replays + 2):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000 / count)
    return sorted(times[2:])[len(times[2:]) // 2]


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    return float((got.double() - want).norm() / want.norm().clamp_min(1e-30))


class Gemm:
    """One problem with its operands: `run` on a native tile, `library` through cuBLASLt, `reference` in f64."""

    def __init__(
        self,
        lib: ctypes.CDLL,
        m: int,
        n: int,
        k: int,
        batch: int = 1,
        dtype: torch.dtype = torch.float16,
        a_k: bool = True,
        b_k: bool = True,
        pad: int = 0,
        copies: int = 1,
    ) -> None:
        self.lib, self.m, self.n, self.k, self.batch, self.dtype, self.a_k, self.b_k = (
            lib,
            m,
            n,
            k,
            batch,
            dtype,
            a_k,
            b_k,
        )

        def make(rows: int, cols: int) -> torch.Tensor:
            return torch.randn(batch, rows, cols + pad, device="cuda").mul(0.5).to(dtype)

        self.a = make(m, k) if a_k else make(k, m)
        self.b = [make(n, k) if b_k else make(k, n) for _ in range(copies)]
        self.bias = torch.randn(n, device="cuda").to(dtype)
        self.residual = make(m, n)
        self.d = torch.full((batch, m, n + pad), float("nan"), device="cuda", dtype=dtype)
        self.pad = pad

    def run(
        self, function: Callable[..., int], epilogue: int, split: int = 1, copy: int = 0, early: bool = False
    ) -> None:
        b = self.b[copy % len(self.b)]
        kind = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2}[self.dtype]
        record = GemmCall(
            early,
            split,
            epilogue,
            kind,
            self.a_k,
            self.b_k,
            self.m,
            self.n,
            self.k,
            1,
            self.batch,
            self.a.stride(1),
            b.stride(1),
            self.d.stride(1),
            self.residual.stride(1),
            self.a.stride(0),
            b.stride(0),
            self.d.stride(0),
            self.residual.stride(0),
            self.a.data_ptr(),
            b.data_ptr(),
            self.bias.data_ptr(),
            self.residual.data_ptr(),
            self.d.data_ptr(),
            stream(),
        )
        call(function, ctypes.byref(record))

    def library(self, epilogue: int, residual: bool, algo: int, workspace: torch.Tensor, copy: int = 0) -> None:
        b = self.b[copy % len(self.b)]
        kind = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2}[self.dtype]
        record = LibraryCall(
            kind,
            not self.a_k,
            self.b_k,
            epilogue,
            self.batch,
            self.m,
            self.n,
            self.k,
            self.a.stride(1),
            b.stride(1),
            self.residual.stride(1),
            self.d.stride(1),
            self.a.stride(0),
            b.stride(0),
            self.residual.stride(0),
            self.d.stride(0),
            self.a.data_ptr(),
            b.data_ptr(),
            self.residual.data_ptr() if residual else None,
            self.bias.data_ptr(),
            self.d.data_ptr(),
            1.0,
            1.0 if residual else 0.0,
            None,
            workspace.data_ptr(),
            workspace.numel(),
        )
        call(self.lib.gemm_library, ctypes.byref(record), algo, ctypes.c_void_p(stream()))

    def reference(self, bias: bool = False, residual: bool = False, act: str = "") -> torch.Tensor:
        a = self.a[..., : self.k if self.a_k else self.m].double()
        b = self.b[0][..., : self.k if self.b_k else self.n].double()
        y = (a if self.a_k else a.mT) @ (b.mT if self.b_k else b)
        y = y + self.bias.double() if bias else y
        y = y + self.residual[..., : self.n].double() if residual else y
        return {
            "": lambda t: t,
            "relu": torch.relu,
            "gelu": torch.nn.functional.gelu,
            "tanh": lambda t: torch.nn.functional.gelu(t, approximate="tanh"),
        }[act](y)

    def check(self, what: str, want: torch.Tensor) -> bool:
        torch.cuda.synchronize()
        tolerance = {torch.float16: 6e-4, torch.bfloat16: 5e-3, torch.float32: 2e-6}[self.dtype]
        e = error(self.d[..., : self.n], want) if want.numel() else 0.0
        intact = self.pad == 0 or bool(self.d[..., self.n :].isnan().all())
        self.d.fill_(float("nan"))
        if not (e <= tolerance and intact):
            print(
                f"FAILED {what} m {self.m} n {self.n} k {self.k} batch {self.batch} pad {self.pad}: error {e:.2e}"
                f"{'' if intact else ', wrote outside the result'}"
            )
            return False
        return True


NATIVE = ({}, {"bias": True, "act": "gelu"}, {"bias": True, "residual": True})


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


class Attention:
    def __init__(
        self, batch: int, heads: int, rows: int, cols: int, depth: int, dtype: torch.dtype, mask: str, causal: bool
    ) -> None:
        def make(length: int) -> torch.Tensor:
            return torch.randn(batch, length, 3, heads, depth, device="cuda").to(dtype)

        self.q = make(rows)[:, :, 0].transpose(1, 2)
        kv = make(cols)
        self.k, self.v = kv[:, :, 1].transpose(1, 2), kv[:, :, 2].transpose(1, 2)
        self.o = torch.full((batch, rows, heads, depth), float("nan"), device="cuda", dtype=dtype).transpose(1, 2)
        shapes = {"": None, "row": (batch, 1, 1, cols), "full": (1, heads, rows, cols)}
        self.mask = torch.randn(shapes[mask], device="cuda").to(dtype) if shapes[mask] else None  # type: ignore[arg-type]
        self.causal, self.scale = causal, depth**-0.5
        self.dims = (batch, heads, rows, cols, depth)

    def run(self, function: Callable[..., int]) -> None:
        strides = [s for t in (self.q, self.k, self.v, self.o) for s in t.stride()[:3]]
        mask = (
            [0] * 4
            if self.mask is None
            else [0 if size == 1 else s for size, s in zip(self.mask.shape, self.mask.stride(), strict=True)]
        )
        record = AttentionCall(
            0,
            self.mask is not None,
            self.causal,
            0,
            *self.dims,
            (ctypes.c_int64 * 12)(*strides),
            (ctypes.c_int64 * 4)(*mask),
            self.q.data_ptr(),
            self.k.data_ptr(),
            self.v.data_ptr(),
            self.mask.data_ptr() if self.mask is not None else None,
            self.o.data_ptr(),
            stream(),
            self.scale,
        )
        call(function, ctypes.byref(record))

    def reference(self) -> torch.Tensor:
        s = self.q.double() @ self.k.double().mT * self.scale
        if self.mask is not None:
            s = s + self.mask.double()
        if self.causal:
            rows, cols = self.dims[2:4]
            keep = (
                torch.arange(cols, device="cuda")[None, :] <= torch.arange(rows, device="cuda")[:, None] + cols - rows
            )
            s = s.masked_fill(~keep, float("-inf"))
        return s.softmax(-1) @ self.v.double()


def attention_dtype(index: int) -> torch.dtype:
    kind = ATTENTION[index][1]
    return torch.float32 if kind.startswith("float") else torch.bfloat16 if "bfloat16" in kind else torch.float16


def check_attention(lib: ctypes.CDLL) -> tuple[int, int]:
    good = total = 0
    for i, (tile, _) in enumerate(ATTENTION):
        dtype, top = attention_dtype(i), int(tile.split("<")[1].split(",")[0].rstrip(">"))
        for dims in ((2, 3, 128, 128), (1, 2, 77, 200), (1, 1, 1, 65), (2, 2, 130, 130)):
            for depth in (top, top - 8, top - 13):
                for mask in ("", "row", "full"):
                    for causal in (False, True):
                        problem = Attention(*dims, depth, dtype, mask, causal)
                        problem.run(getattr(lib, f"attention_{i}"))
                        torch.cuda.synchronize()
                        e = error(problem.o, problem.reference())
                        tolerance = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 3e-6}[dtype]
                        total += 1
                        good += e <= tolerance
                        if not e <= tolerance:
                            what = f"{tile} {dtype} {dims} depth {depth} mask {mask!r} causal {causal}"
                            print(f"FAILED attention {what}: error {e:.2e}")
    return good, total


def time_attention(lib: ctypes.CDLL) -> list[dict[str, object]]:
    rows = []
    for batch, heads, length, depth, causal in (
        (1, 12, 128, 64, False),
        (32, 12, 128, 64, False),
        (1, 12, 384, 64, False),
        (32, 12, 384, 64, False),
        (1, 32, 512, 128, True),
        (4, 32, 2048, 128, True),
    ):
        problem = Attention(batch, heads, length, length, depth, torch.float16, "", causal)
        sdpa = time_graph(
            lambda i: torch.nn.functional.scaled_dot_product_attention(
                problem.q, problem.k, problem.v, is_causal=causal
            )
        )
        timed = []
        for i, (tile, dtype) in enumerate(ATTENTION):
            if dtype == "ait::half" and f"<{depth}," in tile:
                timed.append((round(time_graph(lambda j: problem.run(getattr(lib, f"attention_{i}"))), 2), tile))
        timed.sort()
        rows.append({"dims": [batch, heads, length, depth, causal], "sdpa": sdpa, "native": timed})
        print(
            f"attention batch {batch} heads {heads} seq {length} depth {depth} causal {causal}: "
            + f"torch {sdpa:.2f} us; native "
            + "; ".join(f"{us} {tile[14:-1]}" for us, tile in timed[:4])
        )
        sys.stdout.flush()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    parser.add_argument("--only", default="gemm,attention", help="which parts to run")
    parser.add_argument("--out", default=os.environ.get("OUT"), help="folder for results.json")
    options = parser.parse_args()
    find_cublaslt()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    failed = False
    results: dict[str, object] = {"device": torch.cuda.get_device_name()}
    with tempfile.TemporaryDirectory() as folder:
        lib = build(Path(folder))
        for name, check in (("gemm", check_gemm), ("attention", check_attention)):
            if name in options.only:
                good, total = check(lib)
                failed |= good != total
                print(f"{name}: {good} of {total} checks passed", flush=True)
        if "gemm" in options.only:
            results["gemm"] = time_gemm(lib, options.quick)
        if "attention" in options.only:
            results["attention"] = time_attention(lib)
    if options.out:
        (Path(options.out) / "gemm_attention.json").write_text(json.dumps(results, indent=1))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
