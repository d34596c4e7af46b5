"""A product on a CUDA device for the benchmarks of gemm kernels: operands, launches, float64 reference, times."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from replays import graph_of, seconds

EPILOGUES = ("none", "bias+gelu", "bias+residual")
NATIVE = ({}, {"bias": True, "act": "gelu"}, {"bias": True, "residual": True})
"""What each epilogue adds to the product, for `Gemm.reference`."""
MODEL_EPILOGUES = (*EPILOGUES, "bias", "residual", "bias+tanh gelu")
MODEL_NATIVE = (*NATIVE, {"bias": True}, {"residual": True}, {"bias": True, "act": "tanh"})
"""Those of the products of BERT, ViT and Llama, and the other gelu."""


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


class LibraryCall(ctypes.Structure):
    """`Gemm` of runtime/src/gemm.h."""

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
    graph = graph_of(launch, count)
    times = [seconds(graph) * 1e6 / count for _ in range(replays + 2)]
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
        self.bias = [torch.randn(n, device="cuda").to(dtype) for _ in range(copies)]
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
            self.bias[copy % len(self.b)].data_ptr(),
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
            self.bias[copy % len(self.b)].data_ptr(),
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
        y = y + self.bias[0].double() if bias else y
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
