"""Compile the generated CUDA and HIP sources of a corpus of models: `python -m tests.codegen.run [--full] [cuda|rocm ...]`.

Without `--full` this is the sample of the tests: each form of each op in one element type, each element type of each op,
and nvcc optimizes less.

The runtime library of each target is compiled and linked as well. Every model goes through the whole pipeline twice,
once with the kernels that selection prefers and once with the native ones. Of the second architecture of CUDA the sample compiles
the sources that differ from those of the first, and those whose headers ask for the architecture. The sources are deduplicated by content, joined to units, and remembered by everything that goes into them, so that a second run compiles what
has changed. The headers of all kernels are compiled in one unit, too: any two of them may meet in one. Where a compiler is missing, what was
skipped is said.
HIP kernels that use scratch memory are errors, except for those of `tests/codegen/scratch.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.driver import emit, run_to_phase
from ait_mlir.errors import AitError, CompileError, ToolchainError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import PassError
from ait_mlir.ir.source import SourceError
from ait_mlir.lowering.build import build_runtime, headers_of
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.choices import Choice
from ait_mlir.lowering.joining import joined_cost
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.module_target import make_target
from ait_mlir.lowering.target import TargetKind
from ait_mlir.lowering.toolchain import Toolchain, cpp_root, toolchain
from ait_mlir.options import CompileOptions
from ait_mlir.selection.select import needs_kernel
from tests.codegen.corpus import models
from tests.codegen.scratch import REMARKS, problems, scratch_bytes

ROOT = Path(__file__).parents[2]
TARGETS: tuple[tuple[TargetKind, str], ...] = (("cuda", "sm_90a"), ("cuda", "sm_80"), ("rocm", "gfx90a"))
SUFFIX = {"cuda": ".cu", "rocm": ".hip"}
ASKS_ARCH = re.compile(r"\b(AIT_SM|__CUDA_ARCH\w*|kHasClusters)\b")
TOGETHER = 24
"""The sources of a unit. A library joins fewer, so that the compilers that build it at once have equal shares."""
IN_ALL = ("ait/gpu/gpu.h", "ait/scalar_math.h", "ait/gpu/spread.h")
"""Headers that ask for the architecture, and that each source has: those that are compiled for each architecture, too."""


@dataclass(frozen=True)
class Unit:
    """Sources that are compiled together, by name, their headers, and the digest of all that decides the result."""

    sources: tuple[str, ...]
    text: str
    headers: dict[str, str]
    flags: tuple[str, ...]
    digest: str


def pin_native(graph: GraphOp, target: Target) -> None:
    """Ask for our own kernel wherever there is one."""
    for op in graph.block.ops:
        if needs_kernel(op):
            native = next((k for k in kernels_for(op, target) if k.provider == "native"), None)
            if native is not None:
                candidate = Candidate.of(None, [(native.provider, native.configs(op, target)[0])])
                op.attributes["kernel"] = Choice((candidate,)).attr()


def files_of(kind: TargetKind, arch: str, named: tuple[str, str]) -> tuple[list[dict[str, str]], list[str]]:
    """The files of a model, by name: with the kernels that selection prefers, and with the native ones; and the errors."""
    name, text = named
    target = make_target(kind, arch)
    found: list[dict[str, str]] = []
    failures: list[str] = []
    for native in (False, True):
        try:
            module = parse_text(context(), text)
            run_to_phase(module, "fused", CompileOptions(kind, arch))
            for op in list(module.ops):
                if native and isinstance(op, GraphOp):
                    pin_native(op, target)
            run_to_phase(module, "planned", CompileOptions(kind, arch, start="fused"))
            found.append(dict(emit(module).files))
        except (AitError, PassError, SourceError, ValueError) as error:
            what = str(error).splitlines()[0]
            failures.append(f"{name}{' (native)' if native else ''}: {what}")
    return found, failures


def generate(kind: TargetKind, arch: str, full: bool, jobs: int) -> tuple[dict[str, str], list[str], int]:
    """Sources and their headers by name, the errors of sources that could not be generated, and the number of files before
    deduplication; the models are shared by `jobs` processes.
    """
    sources: dict[str, str] = {}
    headers: dict[str, str] = {}
    failures: list[str] = []
    total = 0
    with ProcessPoolExecutor(jobs) as pool:
        named = list(models(full, make_target(kind, arch)))
        for found, errors in pool.map(partial(files_of, kind, arch), named, chunksize=8):
            failures += errors
            for file, content in (item for files in found for item in files.items()):
                if file.endswith(SUFFIX[kind]):
                    total += 1
                    sources.setdefault(hashlib.sha256(content.encode()).hexdigest(), content)
                elif file.endswith(".h"):
                    headers[file] = content
    return headers | {f"{digest[:16]}{SUFFIX[kind]}": text for digest, text in sources.items()}, failures, total


def compiled_before(sources: dict[str, str], earlier: dict[str, str]) -> set[str]:
    """The sources that an earlier architecture has, with the same headers, of which none asks for the architecture."""
    same = {name for name in sources.keys() & earlier.keys() if sources[name] == earlier[name]}

    def is_alike(text: str) -> bool:
        own = [name for name in sources if name.endswith(".h") and f'"{name}"' in text]
        found = list(headers_of([text, *(sources[name] for name in own)]))
        asks = (ASKS_ARCH.search(h) for name, h in zip(found[::2], found[1::2], strict=True) if name not in IN_ALL)
        return same.issuperset(own) and not any(asks)

    return {name for name in same if not name.endswith(".h") and is_alike(sources[name])}


def knows(tools: Toolchain, option: str) -> bool:
    """Whether the compiler's help names an option."""
    return option in subprocess.run([str(tools.compiler), "--help"], capture_output=True, text=True, check=False).stdout


def flags_of(kind: TargetKind, tools: Toolchain, full: bool) -> tuple[str, ...]:
    """The flags of a target's sources. nvcc optimizes those of the sample less, which takes two thirds of the time."""
    if kind == "rocm":
        return *tools.compile_flags, REMARKS
    quick = () if full or not knows(tools, "--Ofast-compile") else ("--Ofast-compile=max",)
    return *tools.compile_flags, *quick


def units(sources: dict[str, str], tools: Toolchain, flags: tuple[str, ...]) -> Iterator[Unit]:
    headers = hashlib.sha256()
    for path in sorted((cpp_root() / "include").rglob("*")):
        if path.is_file():
            headers.update(path.read_bytes())
    own = {name: text for name, text in sources.items() if name.endswith(".h")}
    # sources that include the same headers share a unit: each header's cost once
    names = sorted(sources.keys() - own.keys(), key=lambda n: ([line for line in sources[n].splitlines() if "#include" in line], n))
    together = [name for name in names if joined_cost(f"k_{name}", sources[name], ())]
    parts = [tuple(together[i : i + TOGETHER]) for i in range(0, len(together), TOGETHER)]
    parts += [(name,) for name in names if name not in together]
    for part in parts:
        text = "".join(f'#line 1 "{name}"\n{sources[name]}' for name in part)
        included = {name: own[name] for name in own if f'"{name}"' in text}
        whole = "\0".join([tools.identity, *flags, headers.hexdigest(), *included.values(), text])
        yield Unit(part, text, included, flags, hashlib.sha256(whole.encode()).hexdigest())


def compile_unit(unit: Unit, kind: str, tools: Toolchain, done: Path) -> tuple[str | None, dict[str, int]]:
    """The compiler's errors, or None, and the scratch memory of HIP kernels; a unit that compiled
    before is not compiled again.
    """
    stamp = done / unit.digest
    if stamp.exists():
        return None, {name: int(size) for name, size in (line.split() for line in stamp.read_text().splitlines())}
    with tempfile.TemporaryDirectory(prefix="ait_codegen_") as folder:
        source = Path(folder) / f"unit{SUFFIX[kind]}"
        source.write_text(unit.text)
        for name, text in unit.headers.items():
            (Path(folder) / name).write_text(text)
        command = [str(tools.compiler), *unit.flags, "-c", str(source), "-o", str(source.with_suffix(".o"))]
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **dict(tools.environment)}
        )
        if result.returncode != 0:
            return "\n".join((result.stdout + result.stderr).splitlines()[:12]), {}
    scratch = scratch_bytes(result.stderr)
    stamp.write_text("".join(f"{name} {size}\n" for name, size in scratch.items()))
    return None, scratch


def check(
    kind: TargetKind, arch: str, jobs: int, keep: Path | None, full: bool, earlier: dict[str, dict[str, str]] | None = None
) -> bool:
    """Generate and compile everything for one target; whether all of it compiled.

    `earlier` has the sources of earlier architectures by kind, and gets those of this one.
    """
    begin = time.monotonic()
    sources, failures, total = generate(kind, arch, full, jobs)
    label = f"{kind} {arch}"
    for failure in failures:
        print(f"{label}: not generated: {failure}")
    if keep is not None:
        folder = keep / f"{kind}_{arch}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in sources.items():
            (folder / name).write_text(text)
    count = f"{total} sources, {sum(name.endswith(SUFFIX[kind]) for name in sources)} different"
    try:
        tools = toolchain(kind, arch)
    except ToolchainError as error:
        print(f"{label}: {count}; SKIPPED, none of them compiled: {error}")
        return not failures
    if not full and earlier is not None:
        before = compiled_before(sources, earlier.get(kind, {}))
        earlier[kind] = earlier.get(kind, {}) | sources
        sources = {name: text for name, text in sources.items() if name not in before}
        count += f", {len(before)} of them compiled for an earlier architecture alone" if before else ""
    done = ROOT / "build" / "codegen"
    done.mkdir(parents=True, exist_ok=True)
    work = sorted(units(sources, tools, flags_of(kind, tools, full)), key=lambda unit: -len(unit.text))
    errors = 0
    scratch: dict[str, int] = {}
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda unit: compile_unit(unit, kind, tools, done), work)
        for i, (unit, (problem, kernels)) in enumerate(zip(work, results, strict=True), 1):
            scratch.update(kernels)
            if problem is not None:
                errors += 1
                print(f"{label}: {', '.join(unit.sources)}:\n{problem}")
            elif sys.stderr.isatty():
                print(f"\r{label}: {i} of {len(work)} units", end="", file=sys.stderr, flush=True)
    spilled = problems(scratch, complete=kind == "rocm" and not errors)
    for problem in spilled:
        print(f"{label}: {problem}")
    seconds = time.monotonic() - begin
    compiler = tools.compiler.name
    print(f"{label}: {count}, compiled by {compiler} in {len(work)} units, {errors} failed, {seconds:.0f} s")
    return not failures and not errors and not spilled


def check_headers(kind: TargetKind, arch: str) -> bool:
    """Compile the headers of all kernels in one unit; whether they stand in one."""
    try:
        tools = toolchain(kind, arch)
    except ToolchainError as error:
        print(f"{kind} {arch} headers: SKIPPED: {error}")
        return True
    root = cpp_root() / "include"
    names = sorted(str(path.relative_to(root)) for path in (root / "ait" / "kernels" / "gpu").rglob("*.cuh"))
    text = "".join(f'#include "{name}"\n' for name in names)
    with tempfile.TemporaryDirectory(prefix="ait_codegen_") as done:
        unit = Unit(tuple(names), text, {}, tools.compile_flags, "headers")
        problem, _ = compile_unit(unit, kind, tools, Path(done))
    print(f"{kind} {arch}: the {len(names)} headers of kernels {'stand in one unit' if problem is None else f'clash: {problem}'}")
    return problem is None


def check_runtime(kind: TargetKind) -> bool:
    """Compile and link the runtime library of a target; whether that went well."""
    begin = time.monotonic()
    try:
        library = build_runtime(kind)
    except ToolchainError as error:
        print(f"{kind} runtime library: SKIPPED: {error}")
        return True
    except CompileError as error:
        print(f"{kind} runtime library: {error}")
        return False
    print(
        f"{kind} runtime library: compiled and linked, {library.stat().st_size >> 10} KiB, {time.monotonic() - begin:.0f} s"
    )
    return True


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.codegen.run", description=__doc__.split("\n\n")[0])
    parser.add_argument("targets", nargs="*", choices=["cuda", "rocm", []], help="default: both")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at once")
    parser.add_argument("--keep", type=Path, help="also write the sources there")
    parser.add_argument("--full", action="store_true", help="every form in every element type")
    args = parser.parse_args(argv)
    wanted = [(kind, arch) for kind, arch in TARGETS if not args.targets or kind in args.targets]
    earlier: dict[str, dict[str, str]] = {}
    good = [check(kind, arch, args.jobs, args.keep, args.full, earlier) for kind, arch in wanted]
    good += [check_headers(kind, arch) for kind, arch in wanted]
    good += [check_runtime(kind) for kind in dict.fromkeys(kind for kind, _ in wanted)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
