"""Our declarations of cuBLASLt and cuDNN agree with their headers, wherever a header can be found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def include_dirs(package: str, variable: str) -> list[str]:
    found = [Path(p) / "nvidia" / name / "include" for p in sys.path for name in ("cu13", package)]
    found += [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"]
    named = os.environ.get(variable)
    return [str(p) for p in ([Path(named)] if named else []) + found if p.is_dir()]


@pytest.mark.parametrize(
    ("package", "header", "source"),
    [("cublas", "cublasLt.h", "cublaslt_api_check.cc"), ("cudnn", "cudnn.h", "cudnn_api_check.cc")],
)
def test_declarations_match_header(package: str, header: str, source: str) -> None:
    variable = f"AIT_{package.upper()}_INCLUDE"
    dirs = include_dirs(package, variable)
    if not any((Path(d) / header).exists() for d in dirs):
        pytest.skip(f"no {header}: pip install nvidia-{package}, or set {variable}")
    if shutil.which("g++") is None or not any((Path(d) / "cuda_runtime_api.h").exists() for d in dirs):
        pytest.skip("needs g++ and the CUDA runtime headers")
    includes = [f"-I{d}" for d in (ROOT / "runtime/src", ROOT / "runtime/src/cuda", *dirs)]
    command = ["g++", "-std=c++17", "-fsyntax-only", *includes, str(ROOT / "tests/kernels" / source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
