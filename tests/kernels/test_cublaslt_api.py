"""Our declarations of cuBLASLt agree with its header, wherever a header can be found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def include_dirs() -> list[str]:
    candidates = [Path(p) / "nvidia" / name / "include" for p in sys.path for name in ("cu13", "cublas")]
    candidates += [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"]
    named = os.environ.get("AIT_CUBLAS_INCLUDE")
    return [str(p) for p in ([Path(named)] if named else []) + candidates if p.is_dir()]


def test_declarations_match_header() -> None:
    dirs = include_dirs()
    if not any((Path(d) / "cublasLt.h").exists() for d in dirs):
        pytest.skip("no cublasLt.h: pip install nvidia-cublas, or set AIT_CUBLAS_INCLUDE")
    if shutil.which("g++") is None or not any((Path(d) / "cuda_runtime_api.h").exists() for d in dirs):
        pytest.skip("needs g++ and the CUDA runtime headers")
    command = [
        "g++",
        "-std=c++17",
        "-fsyntax-only",
        f"-I{ROOT}/runtime/src",
        f"-I{ROOT}/runtime/src/cuda",
        *(f"-I{d}" for d in dirs),
    ]
    done = subprocess.run([*command, str(ROOT / "tests/kernels/cublaslt_api_check.cc")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
