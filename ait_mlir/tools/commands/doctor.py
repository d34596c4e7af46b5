"""`ait doctor`: shows the compilers, devices and libraries that are found, and what each missing one costs."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.metadata
import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ait_mlir.errors import AitError
from ait_mlir.host.cache import cache_dir, has_cache, size_of
from ait_mlir.host.card import card_name, driver_version
from ait_mlir.host.cpu import instruction_sets
from ait_mlir.host.shared import shared_cache
from ait_mlir.lowering.ninja import find_ninja
from ait_mlir.lowering.target import TargetKind
from ait_mlir.lowering.toolchain import (
    cuda_home,
    detect_cuda_arch,
    detect_rocm_archs,
    find_cxx,
    find_hipcc,
    find_nvcc,
    why_no_cuda,
)
from ait_mlir.tools.commands.common import EXAMPLE_ONLY, text_of_bytes
from ait_mlir.tools.report import table
from ait_mlir.version import __version__

_EXAMPLE = """The exit code is 1 if something is missing without which nothing can be compiled.

examples:
  ait doctor
  ait doctor --json
"""


@dataclass(frozen=True)
class Finding:
    """A part of the installation: `ok`, `missing`, or `needed` if it is missing and nothing works without it."""

    part: str
    state: str
    found: str
    """The version and the place, or the reason why it was not found."""
    cost: str = ""
    """The consequence, if it is missing."""


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "doctor",
        help="show compilers, devices and libraries, and what each missing one costs",
        description="Show the compilers, devices and libraries that are found, and what each missing one costs.",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("--json", action="store_true", help="print a JSON list with an object for each part")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the findings; returns the exit code."""
    found = findings()
    if options.json:
        print(json.dumps([asdict(f) for f in found], indent=1))
    else:
        print(table([["part", "", "found"], *([f.part, f.state, f.found] for f in found)]))
        if missing := [f for f in found if f.state != "ok"]:
            print("\nwithout them:")
            print("\n".join(f"  {f.part}: {f.cost}" for f in missing))
    return int(any(f.state == "needed" for f in found))


def findings() -> list[Finding]:
    """All parts, in the order of the table."""
    return [
        Finding("ait_mlir", "ok", f"{__version__}, Python {platform.python_version()}, xDSL {_package('xdsl')}"),
        Finding("CPU", "ok", f"{platform.machine()}, {_instruction_sets()}"),
        *toolchains(),
        _found("ninja", find_ninja, "nothing can be compiled to machine code", needed=True),
        _library("OpenBLAS", "openblas", "cpu", "products on the CPU run on fewer kernels, some of them slower"),
        _found("CUDA toolkit", cuda_home, "no CUDA sources can be compiled"),
        _cuda_card(),
        _library("cuBLASLt", "cublaslt", "cuda", "products on a card run on the package's own kernels only"),
        _library(
            "cuDNN", "cudnn", "cuda", "convolutions and attention on a card run on the package's own kernels only"
        ),
        _amd_card(),
        _library("hipBLASLt", "hipblaslt", "rocm", "products on an AMD card run on the package's own kernels only"),
        _python("torch", "no .pt2 files and no torch.compile; the builder and texts work"),
        _python("ortools", "memory plans are good, but not proved to be the smallest"),
        _python("filecheck", "no `ait update-checks`, and the RUN lines of tests do not run"),
        _cache(),
        *_shared_cache(),
    ]


def toolchains() -> list[Finding]:
    """The compilers."""
    return [
        _found(
            "g++", find_cxx, "nothing can be compiled to machine code; texts of all phases still print", needed=True
        ),
        _found("nvcc", find_nvcc, "no models for CUDA; `ait compile --target cuda --to source` still prints them"),
        _found(
            "hipcc", find_hipcc, "no models for AMD cards; `ait compile --target rocm --to source` still prints them"
        ),
    ]


def _found(part: str, find: Callable[[], Any], cost: str, needed: bool = False) -> Finding:
    """A program or folder that `find` returns, with its version."""
    try:
        place = find()
    except AitError as error:
        return Finding(part, "needed" if needed else "missing", str(error), cost)
    version = _version(str(place)) if os.access(place, os.X_OK) and not os.path.isdir(place) else ""
    return Finding(part, "ok", f"{version} ({place})".strip())


def _version(program: str) -> str:
    """The version that a program prints; empty if it prints none."""
    environment = {**os.environ, "HIP_PLATFORM": "amd"}
    try:
        ran = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, env=environment)
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(r"V(\d+\.\d+\.\d+)|(\d+\.\d+(?:\.\d+)?)", ran.stdout)
    return (found[1] or found[2]) if found is not None else ""


def _library(part: str, name: str, target: TargetKind, cost: str) -> Finding:
    """A shared library: the first of its possible places that is a file, or a name that the loader knows."""
    from ait_mlir.runtime.loading import library_places

    try:
        places = library_places(target)[name]
    except AitError as error:
        return Finding(part, "missing", str(error), cost)
    for place in places:
        if "/" in place and Path(place).is_file():
            return Finding(part, "ok", place)
        with contextlib.suppress(OSError):
            ctypes.CDLL(place)
            return Finding(part, "ok", place)
    return Finding(part, "missing", f"not found; AIT_{part.upper()} names its file", cost)


def _cuda_card() -> Finding:
    cost = (
        "models for CUDA are compiled for sm_90a and cannot run here; kernels are chosen by known times and estimates"
    )
    arch = detect_cuda_arch()
    if arch is None:
        return Finding("CUDA card", "missing", why_no_cuda(), cost)
    return Finding("CUDA card", "ok", f"{card_name()}, {arch}, driver {driver_version()}")


def _amd_card() -> Finding:
    cards: Sequence[str] = detect_rocm_archs()
    if not cards:
        return Finding("AMD card", "missing", "the driver lists none", "models for AMD cards cannot run here")
    return Finding("AMD card", "ok", ", ".join(cards))


def _python(package: str, cost: str) -> Finding:
    version = _package(package)
    return Finding(package, "ok", version) if version else Finding(package, "missing", "not installed", cost)


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _cache() -> Finding:
    cost = "nothing can be compiled to machine code; AIT_CACHE_DIR names another folder"
    try:
        existed = has_cache()
        folder = cache_dir()
    except (AitError, OSError) as error:
        return Finding("cache", "needed", str(error), cost)
    parts = ("objects", "headers", "libraries", "templates", "patterns", "models") if existed else ()
    size = sum(size_of(part)[1] for part in parts)
    return Finding("cache", "ok", f"{folder}, {text_of_bytes(size)}")


def _shared_cache() -> list[Finding]:
    """The shared cache, if the environment names one."""
    try:
        found = shared_cache()
    except (AitError, OSError) as error:
        return [Finding("shared cache", "needed", str(error), "nothing can be compiled; leave AIT_SHARED_CACHE out")]
    return [] if found is None else [Finding("shared cache", "ok", found.address)]


def _instruction_sets() -> str:
    known = instruction_sets()
    return ", ".join(name for name in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if name in known) or "no AVX2"


def versions() -> list[str]:
    """The lines of `--version`."""
    lines = [f"{f.part} {f.found}" if f.state == "ok" else f"{f.part}: not found" for f in toolchains()]
    return [f"ait_mlir {__version__} (xDSL {_package('xdsl')})", *lines]
