"""What a machine of a cluster does for a build on another machine: it says which compiler it has, compiles, and links.

A job has all of its inputs but the compiler and our headers. The machine computes the key of the object from its own,
and refuses the job if it is another one: then the object could be another, too.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ait_mlir.errors import AitError, CompileError
from ait_mlir.host.cache import Scratch, uses_kept
from ait_mlir.host.shared import obtain
from ait_mlir.lowering.build import fitting_digest, header_tree, library_units, sources_of
from ait_mlir.lowering.compilers import THIS_MACHINE, Work
from ait_mlir.lowering.joining import joined, keep_object
from ait_mlir.lowering.ninja import Unit
from ait_mlir.lowering.toolchain import MadeOf, Toolchain, cpp_root, toolchain
from ait_mlir.version import __version__


@dataclass(frozen=True)
class Offer:
    """The compiler that a machine has for a target; `problem` says why it has none."""

    machine: str
    tools: Toolchain | None = None
    problem: str = ""
    digest: str = ""
    """What decides objects besides their sources (`fitting_digest`)."""
    headers: str = ""
    version: str = __version__
    root: str = ""
    """The folder of our C++ on the machine."""

    def misfit(self, wanted: Offer) -> str:
        """Why this machine does not make the objects of another one; "" if it makes them."""
        if self.tools is None or wanted.tools is None:
            return self.problem
        if self.digest == wanted.digest:
            return ""
        if self.headers != wanted.headers:
            return f"it has other C++ headers of ait_mlir {self.version}, {wanted.machine} those of {wanted.version}"
        for mine, other in ((self.tools, wanted.tools), (self.tools.host, wanted.tools.host)):
            if mine is None or other is None:
                continue
            for found, expected in zip(mine.identity.splitlines(), other.identity.splitlines(), strict=False):
                if found != expected and len(found) != _HASH:
                    return f"its compiler is another one: '{found}', on {wanted.machine} '{expected}'"
            if mine.identity != other.identity:
                return f"its CPU or its environment variables for compilers differ from those of {wanted.machine}"
        return f"its flags differ from those of {wanted.machine}"


_HASH = 64
"""The length of the digest of a CPU in the identity of a compiler."""


def offer(made_of: MadeOf) -> Offer:
    """The compiler that this machine has."""
    machine = socket.gethostname()
    try:
        tools = toolchain(*made_of)
        return Offer(machine, tools, "", fitting_digest(tools), header_tree(), root=str(cpp_root()))
    except AitError as error:
        return Offer(machine, problem=str(error))


def adopted(offered: Offer) -> Toolchain:
    """A compiler of another machine, with the folder of our headers on this one; a build uses its keys only."""
    assert offered.tools is not None
    own = str(cpp_root())

    def placed(tools: Toolchain) -> Toolchain:
        flags = (own + f.removeprefix(offered.root) if f.startswith(offered.root) else f for f in tools.compile_flags)
        return replace(tools, compile_flags=tuple(flags), host=None if tools.host is None else placed(tools.host))

    return placed(offered.tools)


@dataclass(frozen=True)
class Job:
    """A unit to compile on another machine."""

    made_of: MadeOf
    sources: Mapping[str, str]
    """The texts of the sources and of their headers, by name."""
    compiled: Sequence[str]
    """The names of the sources; several are joined."""
    key: str


@dataclass(frozen=True)
class Made:
    """The object or the library of a job, or what the compiler printed when it refused the sources."""

    machine: str
    data: bytes = b""
    sha256: str = ""
    errors: Sequence[str] = ()
    folder: str = ""
    """The folder of the sources in `errors`."""


def job_of(unit: Unit, tools: Toolchain) -> Job:
    """The job that compiles a unit of a model library."""
    made_of = (unit.tools or tools).made_of
    assert made_of is not None
    return Job(made_of, sources_of(unit), [part.source.name for part in unit.parts or (unit,)], unit.key)


def compile_job(job: Job) -> Made:
    """Compile a unit on this machine, or take its object from the cache of this machine.

    Raises `ToolchainError` without the compiler, `CompileError` if this machine would make another object.
    """
    tools = toolchain(*job.made_of)
    with uses_kept(), Scratch() as scratch:
        folder = scratch / "sources"
        units = {unit.source.name: unit for unit in library_units(job.sources, tools, folder)}
        unit = joined([units[name] for name in job.compiled], scratch)
        if unit.key != job.key:
            raise CompileError(f"{socket.gethostname()} would make another object of {job.compiled[0]}")
        if all(obtain([(unit.object, unit.key)])):
            return _made(unit.object)
        work = Work(scratch, tools, {"o.o": unit}, None, "", lambda _: None)
        status, output = THIS_MACHINE.run(work)
        if status != 0:
            return Made(socket.gethostname(), errors=output, folder=str(folder))
        keep_object(scratch / "o.o", unit)
        return _made(scratch / "o.o")


def link_job(made_of: MadeOf, objects: Sequence[bytes]) -> Made:
    """Link a library on this machine."""
    tools = toolchain(*made_of)
    with Scratch() as scratch:
        names = [f"o{i}.o" for i in range(len(objects))]
        for name, data in zip(names, objects, strict=True):
            (scratch / name).write_bytes(data)
        status, output = THIS_MACHINE.run(Work(scratch, tools, {}, names, "", lambda _: None))
        if status != 0:
            return Made(socket.gethostname(), errors=output, folder=str(scratch))
        return _made(scratch / "model.so")


def _made(path: Path) -> Made:
    data = path.read_bytes()
    return Made(socket.gethostname(), data, hashlib.sha256(data).hexdigest())
