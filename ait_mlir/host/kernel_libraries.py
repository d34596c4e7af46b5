"""Kernel libraries: shared libraries on tvm-ffi, found by name. A file is read here, never loaded."""

from __future__ import annotations

import functools
import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ait_mlir.errors import InputError
from ait_mlir.host.files import sha256_file

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.$-]*")
_EXPORTED = re.compile(rb"\0__tvm_ffi_([A-Za-z][A-Za-z0-9_]*)(?=\0)")
_DEVICE_CODE = (b".nv_fatbin", b".hip_fatbin")
_named: dict[str, Path] = {}
_read_files: dict[str, Path] = {}


@dataclass(frozen=True)
class KernelLibrary:
    """A file with kernels: its name in programs, its path, the SHA-256 of its bytes, and the functions it exports.

    `on_gpu`: the file has code for a GPU.
    """

    name: str
    path: Path
    sha256: str
    functions: tuple[str, ...]
    on_gpu: bool


def add_kernel_library(name: str, path: str | os.PathLike[str]) -> KernelLibrary:
    """Let programs call the functions of a library as `@name`; replaces a previous library of this name.

    Raises `InputError` if there is no such file, or if it exports no function through tvm-ffi.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} cannot be the name of a kernel library: expected letters, digits, '_', '.' and '-'")
    library = read_kernel_library(name, path)
    _named[name] = library.path
    return library


def find_kernel_library(name: str) -> KernelLibrary:
    """The library that `add_kernel_library` named, or `NAME.so` or `libNAME.so` in a folder of `AIT_KERNEL_PATH`.

    Raises `InputError` with the places that were searched.
    """
    places = list(_places(name))
    for path in places:
        if path.is_file():
            return read_kernel_library(name, path)
    tried = "".join(f"\n  {path}" for path in places)
    raise InputError(
        f"there is no kernel library '{name}': name its file (--library {name}=FILE, "
        f"ait_mlir.add_kernel_library), or add its folder to AIT_KERNEL_PATH" + (f"; tried:{tried}" if tried else "")
    )


def _places(name: str) -> Iterator[Path]:
    if name in _named:
        yield _named[name]
        return
    for folder in filter(None, os.environ.get("AIT_KERNEL_PATH", "").split(os.pathsep)):
        yield Path(folder) / f"{name}.so"
        yield Path(folder) / f"lib{name}.so"


def read_kernel_library(name: str, path: str | os.PathLike[str]) -> KernelLibrary:
    """The functions and the hash of a file; `InputError` unless it is a shared library with functions of tvm-ffi."""
    file = Path(path).resolve()
    if not file.is_file():
        raise InputError(f"kernel library '{name}': there is no file {file}")
    stat = file.stat()
    return _read(name, file, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=64)
def _read(name: str, file: Path, modified: int, size: int) -> KernelLibrary:
    """The result of `read_kernel_library`, cached by the file's time of modification and size."""
    with file.open("rb") as opened:
        if opened.read(4) != b"\x7fELF":
            raise InputError(f"kernel library '{name}': {file} is no shared library")
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            functions = sorted({found[1].decode() for found in _EXPORTED.finditer(data)})
            on_gpu = any(data.find(section) >= 0 for section in _DEVICE_CODE)
    if not functions:
        raise InputError(
            f"kernel library '{name}': {file} exports no function through tvm-ffi "
            "(TVM_FFI_DLL_EXPORT_TYPED_FUNC exports one)"
        )
    digest = sha256_file(file)
    _read_files[digest] = file
    return KernelLibrary(name, file, digest, tuple(functions), on_gpu)


def known_kernel_libraries() -> dict[str, Path]:
    """The files that this process has read, by SHA-256."""
    return dict(_read_files)
