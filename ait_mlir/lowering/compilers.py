"""Who compiles sources, behind one interface: ninja on this machine, or a cluster (`ray_cluster.py`)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ait_mlir.lowering import toolchain as local
from ait_mlir.lowering.ninja import Unit, build_file, ninja_output
from ait_mlir.lowering.target import TargetKind
from ait_mlir.lowering.toolchain import Toolchain


@dataclass(frozen=True)
class Work:
    """The objects of some units to make in a folder and, if `objects` are given, the library `model.so` of these."""

    folder: Path
    tools: Toolchain
    missing: Mapping[str, Unit]
    """The units to compile, by the names of their objects in the folder."""
    objects: Sequence[str] | None
    label: str
    made: Callable[[str], None]
    """Is called with the name of each object when it is complete, while others are still compiled."""
    keep_going: bool = False
    """Whether all units are compiled even if a compiler refuses one of them."""
    stop: threading.Event | None = None
    """Ends the work when it is set."""


class Compilers(Protocol):
    """Compilers of model libraries."""

    def toolchain(self, kind: TargetKind, arch: str) -> Toolchain:
        """The compiler and the flags for a target. Raises `ToolchainError` if no machine has it."""
        ...

    def run(self, work: Work) -> tuple[int, list[str]]:
        """Do the work; returns the exit status, 0 for success, and the output in the format of ninja.

        An object is in the folder only if it is complete.
        """
        ...


class Ninja:
    """The compilers of this machine."""

    def toolchain(self, kind: TargetKind, arch: str) -> Toolchain:
        return local.toolchain(kind, arch)

    def run(self, work: Work) -> tuple[int, list[str]]:
        (work.folder / "build.ninja").write_text(build_file(work.tools, work.missing, work.objects))
        steps = len(work.missing) + (work.objects is not None)
        return ninja_output(work.folder, work.tools, steps, work.label, work.made, work.keep_going, work.stop)


THIS_MACHINE = Ninja()
COMPILERS: ContextVar[Compilers] = ContextVar("COMPILERS", default=THIS_MACHINE)
"""The compilers that a compilation uses."""


@contextlib.contextmanager
def compiling_with(compilers: Compilers) -> Generator[None]:
    """A context in which these compilers make model libraries."""
    before = COMPILERS.set(compilers)
    try:
        yield
    finally:
        COMPILERS.reset(before)
