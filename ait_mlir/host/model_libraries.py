"""Checks a model library before the system's loader opens it, because the loader runs its constructors."""

from __future__ import annotations

import mmap
import platform
from pathlib import Path

from ait_mlir.errors import ArtifactError

_ELF_64_LITTLE = b"\x7fELF\x02\x01"
_SHARED = 3
_MACHINES = {"x86_64": 62, "aarch64": 183}
_TABLE = b"\0ait_model_get\0"
"""The name of the function that each model library exports, in its table of names."""


def check_model_library(path: Path) -> None:
    """Raise `ArtifactError` unless a file is a model library for this kind of CPU, by its header and its names.

    This finds a wrong file. It does not protect from a file that was forged to look like a library.
    """
    try:
        opened = path.open("rb")
    except OSError as error:
        raise ArtifactError(f"{path} cannot be loaded: {error.strerror}") from error
    with opened as file:
        header = file.read(20)
        if len(header) < 20 or not header.startswith(_ELF_64_LITTLE) or _number(header, 16) != _SHARED:
            raise ArtifactError(f"{path} is no shared library of 64 bits; it was not loaded")
        here = platform.machine()
        if _number(header, 18) != _MACHINES.get(here, _number(header, 18)):
            raise ArtifactError(f"{path} is for another kind of CPU than {here}; it was not loaded")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data.find(_TABLE) < 0:
                raise ArtifactError(
                    f"{path} is not a model library: it does not export ait_model_get; it was not loaded"
                )


def _number(header: bytes, at: int) -> int:
    return int.from_bytes(header[at : at + 2], "little")
