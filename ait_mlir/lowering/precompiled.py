"""Standard headers that all kernels of the CPU include, compiled once.

Reading the intrinsics and the standard library takes g++ longer than many kernels (0.35 of 0.6 s for a softmax). g++
takes the precompiled header if the same compiler made it with the same flags, otherwise the text beside it. So a header
that is missing or of another version only costs time; a damaged header is found by its digest.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ait_mlir.host.cache import Scratch, cache_dir, is_kept, keep, locked, put
from ait_mlir.host.processes import run
from ait_mlir.lowering.toolchain import Toolchain, compiler_environment

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
"""The text of the header. Kernels must not rely on it: they include the headers that they use."""
GCC = "Free Software Foundation"
"""Text that `g++ --version` prints; other compilers precompile headers differently."""
SECONDS = 120
WORTHWHILE = 5
"""With this many sources the header saves as much time as it takes to make."""


@dataclass(frozen=True)
class _Key:
    """The inputs of a precompiled header; they decide its place in the cache."""

    tools: Toolchain
    cache: Path

    @property
    def name(self) -> str:
        parts = [self.tools.identity, str(self.tools.compiler), *self.tools.compile_flags, TEXT]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @property
    def header(self) -> Path:
        return self.cache / "headers" / self.name / "common.h"


def include_flags(tools: Toolchain, sources: int) -> tuple[str, ...]:
    """The flags that include the header. No flags if it cannot be made, or if it does not exist yet and would take
    longer to make than it saves for this number of sources."""
    if not tools.is_for_cpu_kernels or GCC not in tools.identity:
        return ()
    key = _Key(tools, cache_dir())
    if sources < WORTHWHILE and not key.header.with_name("common.h.gch").is_file():
        return ()
    flags = _include_flags(key)
    if flags and not Path(flags[1]).is_file():  # the cache was cleared
        _include_flags.cache_clear()
        flags = _include_flags(key)
    return flags


@functools.lru_cache(maxsize=16)
def _include_flags(key: _Key) -> tuple[str, ...]:
    """The flags for a compiler and a cache; the file is checked once in a process."""
    header = key.header
    compiled = header.with_name("common.h.gch")
    try:
        with locked(key.name):
            if not header.is_file() or header.read_text() != TEXT:
                put(header, TEXT.encode())
            if not is_kept(compiled, key.name) and not _compile(key, compiled):
                return ()
    except OSError:  # no room, or a cache that others write to
        return ()
    return ("-include", str(header))


def _compile(key: _Key, compiled: Path) -> bool:
    """Make the precompiled header and use it once; returns whether both worked."""
    tools = key.tools
    with Scratch() as scratch:
        text, made, source = scratch / key.header.name, scratch / compiled.name, scratch / "use.cc"
        text.write_text(TEXT)
        source.write_text("")
        compiler = [str(tools.compiler), *tools.compile_flags]
        for command in (
            [*compiler, "-x", "c++-header", str(text), "-o", str(made)],
            [*compiler, "-include", str(text), "-c", str(source), "-o", str(scratch / "use.o")],
        ):
            if not _succeeds(command, tools):
                return False
        keep(made, compiled, key.name)
    return True


def _succeeds(command: list[str], tools: Toolchain) -> bool:
    try:
        return run(command, SECONDS, compiler_environment(tools)).returncode == 0
    except subprocess.TimeoutExpired:
        return False
