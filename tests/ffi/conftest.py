"""A kernel library for the tests, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ait_mlir.host.cache import cache_dir
from ait_mlir.host.kernel_libraries import KernelLibrary, add_kernel_library


@pytest.fixture(scope="session")
def kernels() -> KernelLibrary:
    """`tests/ffi/kernels.cc`, as @kernels."""
    import tvm_ffi.cpp

    source = Path(__file__).with_name("kernels.cc")
    folder = cache_dir() / "kernel_library"
    folder.mkdir(exist_ok=True)
    path = tvm_ffi.cpp.build("kernels", cpp_files=[str(source)], build_directory=str(folder), extra_cflags=["-O1"])
    return add_kernel_library("kernels", path)
