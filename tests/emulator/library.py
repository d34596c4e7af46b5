"""Kernels of the CUDA and HIP templates, executed on the CPU: cases of `tests.kernels` on an emulated card.

The generated sources are compiled by g++ with stand-ins for the headers of CUDA and HIP (`cpp/include`); the emulator
(`cpp/emulator`) runs the threads of a block as fibers and checks each access to memory. A mistake ends the launch, so
`Library.run` raises `RuntimeError` with what was wrong, where.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ait_mlir.dialects.ait.traits import UpdatesOperand
from ait_mlir.lowering.build import build_with
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.target import Precision
from ait_mlir.lowering.toolchain import Toolchain, cpp_root, toolchain
from tests.kernels.harness import Case, Library, scratch, source_of

Kind = Literal["cuda", "rocm"]
Role = Literal["operand", "result", "constant", "updated"]
ROLES: tuple[Role, ...] = ("operand", "result", "constant", "updated")
"""What a buffer is to a launch; the emulator knows them by their places here."""
CPP = Path(__file__).parent / "cpp"
TARGETS: dict[Kind, Target] = {"cuda": Target("cuda", "sm_90a"), "rocm": Target("rocm", "gfx90a")}
DEFINES: dict[Kind, tuple[str, ...]] = {"cuda": ("-D__CUDACC__",), "rocm": ("-D__HIPCC__",)}
COMMON = ("-std=c++17", "-fPIC", "-fno-gnu-unique", "-fdiagnostics-color=never", "-march=native", "-w")
ANCHOR = """
static thread_local char ait_emulator_anchor;
extern "C" void* ait_emulator_anchor_address() { return &ait_emulator_anchor; }
"""
GUARD = "guard"
"""Of the compiler, for an array of a class in shared memory: no memory of a card."""


def _tools(kind: Kind, flags: Sequence[str], link: Sequence[str] = ()) -> Toolchain:
    base = toolchain("cpu", "native")
    digest = hashlib.sha256()
    for path in sorted(CPP.rglob("*.*h")):
        digest.update(path.read_bytes())
    include = ("-I", str(CPP / "include"), "-I", str(CPP), "-I", str(cpp_root() / "include"))
    return Toolchain(
        base.compiler,
        (*COMMON, *flags, *DEFINES[kind], *include),
        ("-shared", *link),
        base.identity + digest.hexdigest(),
    )


@functools.cache
def emulator(kind: Kind) -> tuple[Path, Any]:
    """The emulator with the warps of a target, built once."""
    sources = {path.name: path.read_text() for path in sorted((CPP / "emulator").glob("*.cc"))}
    with tempfile.TemporaryDirectory() as workdir:
        path = build_with(_tools(kind, ("-O2",)), sources, workdir, f"building the {kind} emulator (once)")
    return path, ctypes.CDLL(str(path))


class EmulatedLibrary(Library):
    """The compiled cases of a suite, for an emulated card."""

    def __init__(
        self,
        cases: Sequence[Case],
        workdir: Path,
        kind: Kind,
        size: int = 16,
        sources: Mapping[str, str] | None = None,
        precision: Precision = "highest",
        deterministic: bool = True,
    ) -> None:
        self.kind: Kind = kind
        self.target = replace(TARGETS[kind], precision=precision, deterministic=deterministic)
        self.index = {id(case): i for i, case in enumerate(cases)}
        path, self.emulator = emulator(kind)
        texts = {f"cases{i}.cc": source_of(cases[i : i + size], self.target, i) for i in range(0, len(cases), size)}
        flags = (
            "-Og",
            "-fsanitize=thread",
            "-fno-threadsafe-statics",
            "--param=tsan-instrument-func-entry-exit=0",
            "-ffp-contract=fast",
        )
        tools = _tools(kind, flags, (str(path), "-Wl,-Bsymbolic"))
        built = build_with(
            tools, texts | dict(sources or {}) | {"anchor.cc": ANCHOR}, workdir, f"compiling for {kind}, emulated"
        )
        self.lib = ctypes.CDLL(str(built))
        self.variables = shared_variables(built)
        self.executed: set[str] = set()
        """The mangled names of the kernels that ran since this library was made, without `_Z`."""
        self._drain_executed()  # of libraries before this one

    def use(self) -> None:
        """Tell the emulator about the shared memory of these kernels, unless it knows."""
        if getattr(self.emulator, "user", None) is self:
            return
        self.emulator.user = self
        self.lib.ait_emulator_anchor_address.restype = ctypes.c_void_p
        anchor = next(offset for _, name, offset, _ in self.variables if name == "ait_emulator_anchor")
        self.emulator.ait_emulator_use(ctypes.c_void_p(self.lib.ait_emulator_anchor_address() - anchor))
        for kernel, name, offset, size in self.variables:
            if name == GUARD:
                self.emulator.ait_emulator_guard(ctypes.c_size_t(offset), ctypes.c_size_t(size))
            elif kernel:
                self.emulator.ait_emulator_variable(
                    kernel.encode(), name.encode(), ctypes.c_size_t(offset), ctypes.c_size_t(size)
                )

    def _call_on_card(
        self, case: Case, env: Mapping[str, int], placed: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> None:
        self.use()
        ins, _ = case.args()
        self.forget_buffers()
        for i, (canvas, view) in enumerate(placed):
            if i in case.within:  # its buffer is known
                continue
            written: Role = "updated" if isinstance(case.op, UpdatesOperand) else "result"
            role: Role = written if i >= len(ins) else "constant" if i in case.constants else "operand"
            ends = [v.ctypes.data + extent_bytes(v) for c, v in placed if c is canvas]
            self.buffer(view.ctypes.data, max(ends) - view.ctypes.data, role, i)
        workspace = scratch(case.workspace_bytes(self.target, env))
        self.buffer(workspace.ctypes.data, workspace.nbytes, "result", len(placed))
        try:
            self.call(case, env, [view.ctypes.data for _, view in placed], workspace=workspace.ctypes.data)
        finally:
            self.note_executed()

    def forget_buffers(self) -> None:
        self.emulator.ait_emulator_forget_buffers()

    def buffer(self, address: int, size: int, role: Role, number: int) -> None:
        """Let kernels touch these bytes; those of a result only after they wrote them, unless it is updated."""
        self.emulator.ait_emulator_buffer(ctypes.c_void_p(address), ctypes.c_size_t(size), ROLES.index(role), number)

    def note_executed(self) -> None:
        self.executed.update(self._drain_executed())

    def _drain_executed(self) -> list[str]:
        """The kernels that ran in this process since the last call."""
        names = self.emulator.ait_emulator_executed
        names.restype = ctypes.c_size_t
        text = ctypes.create_string_buffer(names(None, ctypes.c_size_t(0)))
        names(text, ctypes.c_size_t(len(text)))
        return text.value.decode().splitlines()


def extent_bytes(view: np.ndarray) -> int:
    """From the first byte of a strided array to its last."""
    if view.size == 0:
        return 0
    return view.itemsize + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))


def shared_variables(library: Path) -> list[tuple[str, str, int, int]]:
    """Variables in static shared memory: mangled name of the kernel, name, offset and bytes. Others have no kernel."""
    table = subprocess.run(["readelf", "-sW", str(library)], capture_output=True, text=True, check=True).stdout
    found: dict[str, tuple[str, str, int, int]] = {}
    for line in table.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[3] != "TLS":
            continue
        symbol, offset, size = fields[7], int(fields[1], 16), int(fields[2], 0)
        if symbol.startswith("_ZL"):
            found[symbol] = ("", re.sub(r"^_ZL\d+", "", symbol), offset, size)
        elif symbol.startswith("_ZGVZ"):
            found[symbol] = ("", GUARD, offset, size)
        elif symbol.startswith("_ZZ"):
            # _ZZ <encoding of the kernel> E <length> <name>
            local = re.fullmatch(r"_ZZ(.*)E(\d+)(\w+?)", symbol)
            assert local is not None, symbol
            found[symbol] = (local[1], local[3], offset, size)
    return list(found.values())
