"""Standard headers that all kernels of the CPU include, compiled once.

Reading the intrinsics and the standard library takes g++ longer than many kernels (0.35 of 0.6 s for a softmax). g++
takes the precompiled header if it was made by the same compiler with the same flags, and else the text beside it, so a
header that is missing, damaged or of another version costs time and changes nothing.
"""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ait_mlir.host.files import Scratch, cache_dir, is_kept, keep, locked, write_atomic
from ait_mlir.lowering.toolchain import Toolchain

TEXT = """\
#ifndef AIT_PRECOMPILED_H
#define AIT_PRECOMPILED_H
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#endif
"""
"""What is compiled. Kernels must not rely on it: they include what they use."""
GCC = "Free Software Foundation"
"""In what `g++ --version` prints. Other compilers have other ways."""
SECONDS = 120


@dataclass(frozen=True)
class _Key:
    """What a precompiled header depends on."""

    tools: Toolchain
    cache: Path


def include_flags(tools: Toolchain) -> tuple[str, ...]:
    """The flags that include the header, which is made at first use; none where it cannot be made."""
    if not tools.is_for_cpu_kernels or GCC not in tools.identity:
        return ()
    flags = _include_flags(_Key(tools, cache_dir()))
    if flags and not Path(flags[1]).is_file():  # the cache was cleared
        _include_flags.cache_clear()
        flags = _include_flags(_Key(tools, cache_dir()))
    return flags


@functools.lru_cache(maxsize=16)
def _include_flags(key: _Key) -> tuple[str, ...]:
    """The flags for a compiler and a cache; the file is checked once in a process."""
    tools = key.tools
    name = hashlib.sha256("\0".join([tools.identity, str(tools.compiler), *tools.compile_flags, TEXT]).encode())
    folder = key.cache / "headers" / name.hexdigest()
    header, compiled = folder / "common.h", folder / "common.h.gch"
    try:
        with locked(key.cache / "locks" / name.hexdigest()):
            folder.mkdir(parents=True, exist_ok=True)
            if not header.is_file() or header.read_text() != TEXT:
                write_atomic(header, TEXT.encode())
            if not is_kept(compiled) and not _compile(tools, header, compiled):
                return ()
    except OSError:  # no room, or a cache that others write to
        return ()
    return ("-include", str(header))


def _compile(tools: Toolchain, header: Path, compiled: Path) -> bool:
    """Make the precompiled header; whether that worked."""
    with Scratch() as scratch:
        made = scratch / compiled.name
        command = [str(tools.compiler), *tools.compile_flags, "-x", "c++-header", str(header), "-o", str(made)]
        environment = {**os.environ, **dict(tools.environment)}
        try:
            ran = subprocess.run(command, capture_output=True, timeout=SECONDS, env=environment, check=False)
        except subprocess.SubprocessError:
            return False
        if ran.returncode != 0 or not made.is_file():
            return False
        keep(made, compiled)
    return True
