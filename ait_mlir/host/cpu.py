"""The model and features of this machine's CPU, from /proc/cpuinfo."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

_ISA_PREFIXES = (
    "sse",
    "ssse",
    "avx",
    "amx",
    "fma",
    "f16c",
    "bmi",
    "gfni",
    "vaes",
    "vpclmul",
    "movbe",
    "abm",
    "adx",
    "asimd",
    "sve",
)


@functools.cache
def cpu_fields() -> dict[str, str]:
    """The fields of the first CPU; empty without /proc/cpuinfo."""
    fields: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    return fields


def cpu_flags() -> frozenset[str]:
    """All feature flags of the CPU."""
    fields = cpu_fields()
    return frozenset((fields.get("flags") or fields.get("Features") or "").split())


def has_bf16_tiles() -> bool:
    """Whether the CPU has AMX for bf16, and `AIT_AMX` permits it."""
    return {"amx_tile", "amx_bf16"} <= cpu_flags() and os.environ.get("AIT_AMX") != "0"


def instruction_sets() -> frozenset[str]:
    """The CPU flags that code compiled with `-march=native` may need."""
    return frozenset(flag for flag in cpu_flags() if flag.startswith(_ISA_PREFIXES))
