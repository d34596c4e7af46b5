"""Builds shared libraries from sources, by ninja and a cache of objects and libraries, keyed on all of their inputs.

Models and processes share the cache (`host/cache.py`). Entries are created atomically, by rename, and are used only if
the record beside them has their key and their digest. A lock for each library prevents two processes from building it
at the same time. Commands consist only of our flags and checked file names; they contain no text of a user.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ait_mlir.errors import CompileError, ToolchainError
from ait_mlir.host.cache import Scratch, cache_dir, is_kept, keep, locked, private_folder, uses_kept
from ait_mlir.host.files import copy_atomic, replaced_file, write_atomic
from ait_mlir.host.shared import obtain, share
from ait_mlir.lowering.compilers import COMPILERS, Work
from ait_mlir.lowering.joining import joined_cost, joined_units, keep_object, kept_objects
from ait_mlir.lowering.ninja import ONCE, Unit, failure, jobs
from ait_mlir.lowering.target import DEFAULT_ARCH, TargetKind
from ait_mlir.lowering.toolchain import Toolchain, cpp_root, cuda_home, optimization, toolchain

if TYPE_CHECKING:
    from ait_mlir.lowering.kernels.base import Target

_SOURCE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_INCLUDE = re.compile(r'^#include "(ait/[\w./]+)"', re.MULTILINE)
_LOCAL_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"/]+)"', re.MULTILINE)
_COMPILED = {".cc", ".cpp", ".cu", ".hip"}
_HOST = ".cc"
"""The suffix of sources without kernels in a library for a GPU."""


def build_library(sources: Mapping[str, str], target: Target, workdir: str | os.PathLike[str]) -> Path:
    """Compile `sources` (file name -> text; `.h` files are for the others to include) into `workdir/model.so`.

    Raises `ToolchainError` when the compiler is missing, `CompileError` with its first errors when it refuses a source.
    """
    output = Path(workdir).resolve() / "model.so"
    with uses_kept():
        tools = COMPILERS.get().toolchain(target.kind, target.arch)
        library = build_with(tools, sources, workdir, f"compiling for {target.kind}")
        copy_atomic(library, output)
    return output


def build_with(tools: Toolchain, sources: Mapping[str, str], workdir: str | os.PathLike[str], label: str) -> Path:
    """The library of `sources` in the cache, made with any compiler and flags; the sources are left in `workdir`.

    `tools.identity` must change when a header outside of `runtime/include` that the sources include changes.
    Raises like `build_library`.
    """
    return _build(tools, library_units(sources, tools, Path(workdir).resolve()), label)


def refused_sources(
    sources: Mapping[str, str],
    target: Target,
    workdir: str | os.PathLike[str],
    stop: threading.Event | None = None,
) -> set[str]:
    """Compile each of `sources` into the cache; returns the names of the sources that the compiler refuses.

    When `stop` is set, compiling ends, and the remaining sources count as refused. Raises `ToolchainError` when the
    compiler is missing.
    """
    compilers = COMPILERS.get()
    tools = compilers.toolchain(target.kind, target.arch)
    units = library_units(sources, tools, Path(workdir).resolve())
    kept = kept_objects(units)
    missing = [unit for unit in units if unit.key not in kept]
    if not missing:
        return set()
    refused: list[Unit] = []
    with uses_kept(), Scratch() as scratch:
        todo = _by_object(joined_units(missing, jobs(), scratch))
        while todo:
            label, made = "compiling kernels to time", _keeps_objects(scratch, todo)
            compilers.run(Work(scratch, tools, todo, None, label, made, keep_going=True, stop=stop))
            failed = {name: unit for name, unit in todo.items() if not (scratch / name).is_file()}
            if stop is not None and stop.is_set():
                refused += [part for unit in failed.values() for part in unit.parts or (unit,)]
                break
            refused += [unit for unit in failed.values() if not unit.parts]
            todo = _apart({name: unit for name, unit in failed.items() if unit.parts})
    return {unit.source.name for unit in refused}


def _keeps_objects(scratch: Path, missing: Mapping[str, Unit]) -> Callable[[str], None]:
    """A function that keeps an object of these units in the cache, so that a build that is ended goes on from there."""

    def keep_made(name: str) -> None:
        if name in missing and (scratch / name).is_file():
            keep_object(scratch / name, missing[name])

    return keep_made


def _by_object(units: Iterable[Unit]) -> dict[str, Unit]:
    """The units by the names of their objects in a build."""
    return {f"o{i}.o": unit for i, unit in enumerate(units)}


def _apart(joined: Mapping[str, Unit]) -> dict[str, Unit]:
    """The parts of joined units by the names of their objects in a build."""
    return {f"{i}_{name}": part for name, unit in joined.items() for i, part in enumerate(unit.parts)}


def sources_digest(sources: Mapping[str, str], target: Target) -> str:
    """A digest of all inputs of the objects of `sources`: text, headers (in full), compiler and flags."""
    tools = COMPILERS.get().toolchain(target.kind, target.arch)
    texts = (part for name in sorted(sources) for part in (name, sources[name]))
    return _digest(tools.identity, *_flags(tools), *texts, *headers_of(sources.values()))


def _flags(tools: Toolchain) -> Iterator[str]:
    """The compiler's flags without the paths of our headers and of a toolkit's; for a key the text of ours counts, and
    the version of the toolkit's."""
    placed = {*tools.versioned, *(str(cpp_root() / name) for name in ("include", "src"))}
    return (flag for flag in tools.compile_flags if flag not in placed)


def header_tree() -> str:
    """A digest of all our headers."""
    return _tree(cpp_root() / "include")


def headers_of(texts: Iterable[str]) -> Iterator[str]:
    """Name and text of each of our headers that these texts include, directly or indirectly."""
    include = cpp_root() / "include"
    found: dict[Path, str] = {}
    todo = list(texts)
    while todo:
        for path in (include / name for name in _INCLUDE.findall(todo.pop())):
            if path not in found and path.is_file():
                found[path] = _read(path, path.stat().st_mtime_ns)
                todo.append(found[path])
    for path in sorted(found):
        yield from (str(path.relative_to(include)), found[path])


@functools.lru_cache(maxsize=512)
def _read(path: Path, modified: int) -> str:
    """The text of a header, cached by its time of modification."""
    return path.read_text()


def library_units(sources: Mapping[str, str], tools: Toolchain, directory: Path) -> list[Unit]:
    """Write the sources of a library; returns the units to compile."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in sources.items():
        if not _SOURCE_NAME.fullmatch(name):
            raise CompileError(f"{name!r} cannot be the name of a source: expected letters, digits, '_', '.' and '-'")
        with replaced_file(directory / name, flush=False) as file:  # made again after a crash of the machine
            file.write(text.encode())
    local = {name: text for name, text in sources.items() if not _is_compiled(name)}
    return [
        _unit(directory / name, used, local, text)
        for name, text in sources.items()
        if _is_compiled(name)
        for used in (tools.host if tools.host is not None and Path(name).suffix == _HOST else tools,)
    ]


def _unit(source: Path, tools: Toolchain, local: Mapping[str, str], text: str) -> Unit:
    """The unit of a source, with a key: a digest of everything that decides its object.

    Of `local`, the headers of the library, only those count that the source includes, directly or indirectly.
    """
    included = _included(text, local)
    own = [part for header in sorted(included) for part in (header, included[header])]
    headers = list(headers_of([text, *included.values()]))
    key = _digest(tools.identity, *_flags(tools), *own, source.name, text, *headers)
    return Unit(source, key, tools, joined_cost(source.name, text, headers))


def _included(text: str, local: Mapping[str, str]) -> dict[str, str]:
    """The headers of `local` that a source includes, directly or indirectly."""
    included: dict[str, str] = {}
    todo = [text]
    while todo:
        for header in _LOCAL_INCLUDE.findall(todo.pop()):
            if header in local and header not in included:
                included[header] = local[header]
                todo.append(local[header])
    return included


def sources_of(unit: Unit) -> dict[str, str]:
    """The sources of a unit of a model library, one for each part, with the headers of the library that they include:
    text by name."""
    sources: dict[str, str] = {}
    for part in unit.parts or (unit,):
        folder, text = part.source.parent, part.source.read_text(encoding="utf-8")
        headers = {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir() if p.suffix == ".h"}
        sources |= {part.source.name: text, **_included(text, headers)}
    return sources


def fitting_digest(tools: Toolchain) -> str:
    """A digest of what decides objects besides their sources: machines where it is equal make equal objects."""
    return _digest(header_tree(), *(part for t in (tools, tools.host or tools) for part in (t.identity, *_flags(t))))


_RUNTIME_SOURCES: dict[TargetKind, tuple[str, ...]] = {
    "cpu": ("", "cpu"),
    "cuda": ("", "gpu", "cuda"),
    "rocm": ("", "gpu", "rocm"),
}
"""The folders of `runtime/src` for the runtime library of each device."""


_FFI_SOURCES = frozenset(("module.cc", "timing_module.cc", "kernel_libraries.cc"))
"""The sources that need tvm-ffi: the functions that Python calls, and calls of kernel libraries."""
_PYTHON_SOURCES = frozenset(("module.cc", "timing_module.cc", "device_models.cc", "timing.cc", "measure.cc"))
"""The sources that only Python uses."""


def build_runtime(kind: TargetKind) -> Path:
    """The runtime library of a device, built at first use. Raises like `build_library`."""
    return _build_runtime(kind, _RUNTIME_SOURCES[kind], _runtime_toolchain(kind, _link_to_ffi()))


def build_deploy_library(kind: TargetKind, sanitizer: Sequence[str] = ()) -> Path:
    """The library that implements `ait/model.h`: the same runtime with a C interface instead of tvm-ffi.

    Raises like `build_library`. A library with the flags of a `sanitizer` takes its functions from the program that
    loads it.
    """
    undefined = [] if sanitizer else ["-Wl,--no-undefined"]
    tools = _runtime_toolchain(kind, [f"-Wl,-soname,libait_{kind}.so", *undefined, *sanitizer])
    tools = replace(tools, compile_flags=(*tools.compile_flags, *sanitizer))
    return _build_runtime(kind, (*_RUNTIME_SOURCES[kind], "deploy"), tools, _FFI_SOURCES, sanitizer)


def build_static_library(kind: TargetKind) -> Path:
    """`build_deploy_library` as a static library, for programs of the same compiler. Raises like `build_library`."""
    tools = _runtime_toolchain(kind, ())
    units = _runtime_units((*_RUNTIME_SOURCES[kind], "deploy"), tools, _FFI_SOURCES)
    archiver = shutil.which(os.environ.get("AR") or "ar")
    if archiver is None:
        raise ToolchainError("ar, which makes static libraries, was not found: install binutils, or set AR")
    with uses_kept(), Scratch() as scratch:
        _build(tools, units, f"building the {kind} runtime{ONCE}")
        names: list[str] = []
        for unit in units:  # objects are kept by their digest
            names.append(f"{unit.source.parent.name}_{unit.source.stem}.o")
            copy_atomic(unit.object, scratch / names[-1])
        made = subprocess.run(
            [archiver, "rcsD", "libait.a", *names], cwd=scratch, capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            raise CompileError(f"{archiver} cannot make a static library: {made.stderr.strip()}")
        library = private_folder(cache_dir() / "libraries") / f"libait_{kind}.a"
        copy_atomic(scratch / "libait.a", library)
    return library


def _build_runtime(
    kind: TargetKind,
    folders: Iterable[str],
    tools: Toolchain,
    without: Collection[str] = (),
    sanitizer: Sequence[str] = (),
) -> Path:
    units = _runtime_units(folders, tools, without, sanitizer=sanitizer)
    return _build(tools, units, f"building the {kind} runtime{ONCE}")


def _runtime_units(
    folders: Iterable[str],
    tools: Toolchain,
    without: Collection[str],
    more: Iterable[Path] = (),
    sanitizer: Sequence[str] = (),
) -> list[Unit]:
    """The units of the sources in folders of `runtime/src`, and of `more` sources that include its headers."""
    root = cpp_root()
    sources = sorted(p for name in folders for p in (root / "src" / name).glob("*.cc") if p.name not in without)
    headers = _digest(header_tree(), _tree(root / "src", "*.h"))
    common = _common_toolchain(sanitizer)

    def unit(path: Path) -> Unit:
        used = common if path.parent == root / "src" else tools  # all runtime libraries share these objects
        return Unit(path, _digest(used.identity, *_flags(used), headers, path.read_text()), used)

    return [unit(path) for path in (*sources, *more)]


def _link_to_ffi() -> list[str]:
    from tvm_ffi import libinfo

    ffi = Path(libinfo.find_libtvm_ffi())
    return ["-L", str(ffi.parent), "-ltvm_ffi", f"-Wl,-rpath,{ffi.parent}"]


def _runtime_flags() -> list[str]:
    """The flags for all sources of the runtime library."""
    from tvm_ffi import libinfo

    root = cpp_root()
    level = min(max(optimization(), 1), 2)  # the headers of tvm-ffi need inlining
    flags = [f"-O{level}", "-std=c++17", "-fPIC", "-fvisibility=hidden", "-fdiagnostics-color=never"]
    flags += ["-I", str(root / "include"), "-I", str(root / "src")]
    return flags + [flag for path in libinfo.include_paths() for flag in ("-isystem", path)]


def _common_toolchain(sanitizer: Sequence[str]) -> Toolchain:
    """g++ for the sources that are the same for each device."""
    base = toolchain("cpu", "native")
    identity = base.identity + importlib.metadata.version("apache-tvm-ffi")
    return Toolchain(base.compiler, (*_runtime_flags(), "-fno-gnu-unique", *sanitizer), (), identity)


def _runtime_toolchain(kind: TargetKind, link_to: Iterable[str]) -> Toolchain:
    base = toolchain("rocm", DEFAULT_ARCH["rocm"]) if kind == "rocm" else toolchain("cpu", "native")
    flags = _runtime_flags()
    link = ["-shared", *link_to, "-ldl", "-lpthread"]
    if kind == "rocm":
        # hipcc knows where ROCm's headers and libraries are; without kernels any architecture will do
        arch = f"--offload-arch={DEFAULT_ARCH['rocm']}"
        flags += ["-DAIT_HIP", "--cuda-host-only", arch, "-x", "hip"]
        link.append(arch)
    elif kind == "cpu":
        flags += ["-fno-gnu-unique", "-fopenmp-simd"]
    else:
        flags.append("-fno-gnu-unique")
        home = cuda_home()
        flags += ["-isystem", str(home / "include")]
        folders = [path for name in ("lib64", "lib") if (path := home / name).is_dir()]
        link += [part for path in folders for part in ("-L", str(path))] + ["-lcudart_static", "-lrt"]
    identity = base.identity + importlib.metadata.version("apache-tvm-ffi")
    return Toolchain(base.compiler, tuple(flags), tuple(link), identity, base.environment, uses_shell=base.uses_shell)


def build_exported(sources: Mapping[str, str], exports: str, target: Target, workdir: str | os.PathLike[str]) -> Path:
    """A self-contained library in the cache: the model's sources, the target's runtime library, and `exports`, the text
    of a source that defines the exported functions. Raises like `build_library`.
    """
    folder = Path(workdir).resolve()
    tools = _runtime_toolchain(target.kind, _link_to_ffi())
    model = COMPILERS.get().toolchain(target.kind, target.arch)
    units = library_units(sources, model, folder)
    write_atomic(folder / "exports.cc", exports.encode())
    more = (cpp_root() / "src" / "deploy" / "blake3.cc", folder / "exports.cc")
    units += _runtime_units((*_RUNTIME_SOURCES[target.kind], "export"), tools, _PYTHON_SOURCES, more)
    # A library uses its own definitions, even if another library exports the same names.
    bound = replace(tools, link_flags=(*tools.link_flags, "-Wl,-Bsymbolic"))
    if target.kind == "rocm":
        bound = replace(bound, link_flags=(*bound.link_flags, f"--offload-arch={target.arch}"))
    return _build(bound, units, f"exporting for {target.kind}")


def _build(tools: Toolchain, units: list[Unit], label: str) -> Path:
    """The library of `units` in the cache, built if it is not there yet."""
    key = _digest(tools.identity, *tools.link_flags, *(unit.key for unit in units))
    library = cache_dir() / "libraries" / key[:2] / f"{key}.so"
    if all(obtain([(library, key)])):
        return library
    with uses_kept(), locked(key):
        if is_kept(library, key):
            return library
        with Scratch() as scratch:
            kept = kept_objects(units)
            missing = _by_object(joined_units([u for u in units if u.key not in kept], jobs(), scratch))
            try:
                run_compilers(_work(scratch, tools, units, missing, kept, label))
            except CompileError:
                refused = {n: u for n, u in missing.items() if u.parts and not (scratch / n).is_file()}
                if not refused:
                    raise
                missing = {n: u for n, u in missing.items() if n not in refused} | _apart(refused)
                run_compilers(_work(scratch, tools, units, missing, kept, label))
            keep(scratch / "model.so", library, key)
            share(library, key)
    return library


def run_compilers(work: Work) -> None:
    """Do the work of a build. Raises `CompileError` with the first errors of the compiler.

    If a joined unit is refused, the others are compiled first.
    """
    joined = any(unit.parts for unit in work.missing.values())
    status, output = COMPILERS.get().run(replace(work, keep_going=joined))
    if status != 0:
        raise CompileError(failure(output, work.missing))


def _work(
    scratch: Path,
    tools: Toolchain,
    units: Sequence[Unit],
    missing: Mapping[str, Unit],
    kept: Mapping[str, Path],
    label: str,
) -> Work:
    """The work of building a library of `units`, of which some objects are missing."""
    made = {part.key: name for name, unit in missing.items() for part in unit.parts or (unit,)}
    objects = dict.fromkeys(str(kept[u.key]) if u.key in kept else made[u.key] for u in units)
    return Work(scratch, tools, missing, list(objects), label, _keeps_objects(scratch, missing))


def _is_compiled(name: str) -> bool:
    return Path(name).suffix in _COMPILED


def _digest(*parts: str) -> str:
    """SHA-256 of the parts and of their boundaries."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _tree(root: Path, pattern: str = "*") -> str:
    """A digest of the files under `root`, by name and content."""
    return _tree_digest(
        root, tuple(sorted((path, path.stat().st_mtime_ns) for path in root.rglob(pattern) if path.is_file()))
    )


@functools.lru_cache(maxsize=8)
def _tree_digest(root: Path, files: tuple[tuple[Path, int], ...]) -> str:
    return _digest(*(part for path, _ in files for part in (str(path.relative_to(root)), path.read_text())))
