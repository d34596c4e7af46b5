"""A runtime library for target cuda over the fake of `fake_cuda`: two devices in the memory of the host."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import tvm_ffi

from ait_mlir import errors
from ait_mlir.lowering import build
from ait_mlir.lowering.toolchain import cuda_home, find_cxx
from ait_mlir.runtime import loading

CUDART = Path(__file__).parent / "fake_cuda" / "cudart.cc"


def compiled(source: Path, library: Path, more: Sequence[str] = ()) -> Path:
    """A shared library of one source, which may include CUDA's headers."""
    include = ["-isystem", str(cuda_home() / "include")]
    flags = ["-std=c++17", "-O1", "-g", "-shared", "-fPIC", *include]
    subprocess.run([str(find_cxx()), *flags, str(source), *more, "-o", str(library)], check=True)
    return library


def use_fake(library: Path) -> ctypes.CDLL:
    """Put the fake in `library` behind the runtime library for target cuda of this process."""
    found = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    for name in ("fake_steps_left", "fake_launches", "fake_objects", "fake_bytes", "fake_events", "fake_streams"):
        getattr(found, name).restype = ctypes.c_int64
    found.fake_fault_after.argtypes = [ctypes.c_int64]
    real = build._runtime_toolchain("cuda", build._link_to_ffi())
    flags = [flag for flag in real.link_flags if flag != "-lcudart_static"]
    tools = replace(real, link_flags=(*flags, str(library), f"-Wl,-rpath,{library.parent}"))
    built = build._build_runtime("cuda", build._RUNTIME_SOURCES["cuda"], tools)
    for error in (errors.InputError, errors.ArtifactError, errors.OutOfMemoryError, errors.RunError):
        tvm_ffi.register_error(f"ait.{error.__name__}", error)
    module = tvm_ffi.load_module(str(built))
    for name, places in loading.library_places("cuda").items():
        module.configure(name, places)
    loading._loaded["cuda"] = module
    return found
