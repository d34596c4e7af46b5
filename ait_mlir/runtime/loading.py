"""Builds and loads the runtime libraries, once for each process, and configures the paths of external libraries.

Threads on the CPU: runs use AIT_NUM_THREADS threads, by default OMP_NUM_THREADS, else one for each CPU of this process.
A run takes the free threads and always its caller's thread, so concurrent runs do not wait for each other.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

from ait_mlir import errors
from ait_mlir.host.cpu import cpu_fields, cpu_flags
from ait_mlir.host.forks import ForkLock
from ait_mlir.host.settings import named_library, whole_number
from ait_mlir.lowering.build import build_runtime
from ait_mlir.lowering.toolchain import TargetKind, nvidia_wheel

_lock = ForkLock()
_loaded: dict[str, Any] = {}
_digests: dict[str, str] = {}


def runtime_library(kind: TargetKind) -> Any:
    """The tvm-ffi module of a device's runtime library: `create(path, num_runtimes, device)`.

    Raises `ToolchainError` or `CompileError` if it must be built and the build fails.
    """
    with _lock:
        if kind not in _loaded:
            import tvm_ffi

            whole_number("AIT_NUM_THREADS", 4096)

            for error in (errors.InputError, errors.ArtifactError, errors.OutOfMemoryError, errors.RunError):
                tvm_ffi.register_error(f"ait.{error.__name__}", error)
            candidates = library_places(kind)
            path = build_runtime(kind)
            with _cpu_settings() if kind == "cpu" else contextlib.nullcontext():
                if kind == "cpu":
                    _load_first(candidates["openblas"])
                module = cast(Any, tvm_ffi).load_module(str(path))
            for name, places in candidates.items():
                module.configure(name, places)
            _loaded[kind], _digests[kind] = module, path.stem
        return _loaded[kind]


def runtime_digest(kind: TargetKind) -> str:
    """A digest of the runtime library of a device: what it stores in memory may differ from that of another one."""
    runtime_library(kind)
    return _digests[kind]


def openblas_candidates() -> list[str]:
    """Where OpenBLAS may be: `AIT_OPENBLAS`, the pip package, the system."""
    candidates = named_library("AIT_OPENBLAS")
    spec = importlib.util.find_spec("scipy_openblas32")
    for place in spec.submodule_search_locations or [] if spec else []:
        candidates += [str(found) for found in sorted((Path(place) / "lib").glob("libscipy_openblas*.so"))]
    return [*candidates, "libopenblas.so.0"]


def mpi_candidates() -> list[str]:
    """Where Open MPI may be: `AIT_MPI`, the system."""
    return [*named_library("AIT_MPI"), "libmpi.so.40"]


def cublaslt_candidates() -> list[str]:
    """Where cuBLASLt may be: `AIT_CUBLASLT`, a copy that this process has (PyTorch's), pip packages, the toolkit."""
    names = ("libcublasLt.so.13", "libcublasLt.so.12")
    candidates = named_library("AIT_CUBLASLT")
    candidates += [line for line in _mapped_files() if Path(line).name.startswith("libcublasLt.so")]
    folders = [wheel / "lib"] if (wheel := nvidia_wheel()) is not None else []
    spec = importlib.util.find_spec("nvidia")
    folders += [Path(place) / "cublas" / "lib" for place in spec.submodule_search_locations or []] if spec else []
    folders += [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64"]
    candidates += [str(folder / name) for name in names for folder in folders if (folder / name).exists()]
    return [*candidates, *names]


def nccl_candidates() -> list[str]:
    """Where NCCL may be: `AIT_NCCL`, a copy that this process has (PyTorch's), pip packages."""
    candidates = named_library("AIT_NCCL")
    candidates += [line for line in _mapped_files() if Path(line).name.startswith("libnccl.so")]
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(place) / "nccl" / "lib" for place in spec.submodule_search_locations or []] if spec else []
    return [*candidates, *(str(folder / "libnccl.so.2") for folder in folders if (folder / "libnccl.so.2").exists())]


def rccl_candidates() -> list[str]:
    """Where RCCL may be: `AIT_NCCL`, a copy that this process has (PyTorch's), ROCm."""
    candidates = named_library("AIT_NCCL")
    candidates += [line for line in _mapped_files() if Path(line).name.startswith("librccl.so")]
    rocm = Path(os.environ.get("ROCM_PATH") or "/opt/rocm") / "lib" / "librccl.so"
    return [*candidates, *([str(rocm)] if rocm.exists() else [])]


def hipblaslt_candidates() -> list[str]:
    """Where hipBLASLt may be: `AIT_HIPBLASLT`, a copy that this process has (PyTorch's), ROCm."""
    candidates = named_library("AIT_HIPBLASLT")
    candidates += [line for line in _mapped_files() if Path(line).name.startswith("libhipblaslt.so")]
    rocm = Path(os.environ.get("ROCM_PATH") or "/opt/rocm") / "lib" / "libhipblaslt.so"
    return [*candidates, *([str(rocm)] if rocm.exists() else [])]


def cudnn_candidates() -> list[str]:
    """Where cuDNN may be: `AIT_CUDNN`, a copy that this process has (PyTorch's), the pip package."""
    candidates = named_library("AIT_CUDNN")
    candidates += [line for line in _mapped_files() if Path(line).name.startswith("libcudnn.so")]
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(place) / "cudnn" / "lib" for place in spec.submodule_search_locations or []] if spec else []
    candidates += [str(folder / "libcudnn.so.9") for folder in folders if (folder / "libcudnn.so.9").exists()]
    return [*candidates, "libcudnn.so.9"]


_LIBRARIES: dict[TargetKind, dict[str, Callable[[], list[str]]]] = {
    "cpu": {"openblas": openblas_candidates, "mpi": mpi_candidates},
    "cuda": {"cublaslt": cublaslt_candidates, "cudnn": cudnn_candidates, "nccl": nccl_candidates},
    "rocm": {"hipblaslt": hipblaslt_candidates, "nccl": rccl_candidates},
}
"""The libraries behind the services of each device, with a function that lists their possible paths."""


def library_places(kind: TargetKind) -> dict[str, list[str]]:
    """The possible paths of the libraries that implement the services of a device, best first."""
    return {name: find() for name, find in _LIBRARIES[kind].items()}


def _load_first(candidates: list[str]) -> None:
    """Load the library of the gemm service now, while the environment has its settings."""
    for candidate in candidates:
        with contextlib.suppress(OSError):
            ctypes.CDLL(candidate, mode=ctypes.RTLD_LOCAL)
            return


@contextlib.contextmanager
def _cpu_settings() -> Generator[None]:
    """Set environment variables while OpenBLAS is loaded; variables of the user stay unchanged.

    OpenBLAS treats an AMD CPU with AVX-512 as a Haswell and then runs at half speed.
    """
    wanted: dict[str, str] = {}
    if "avx512f" in cpu_flags() and cpu_fields().get("vendor_id") == "AuthenticAMD":
        wanted["OPENBLAS_CORETYPE"] = "SkylakeX"
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _mapped_files() -> list[str]:
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/maps").read_text().splitlines()
        return sorted({parts[5] for line in lines if len(parts := line.split(maxsplit=5)) == 6})
    return []
