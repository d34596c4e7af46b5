"""`NAME.ait`: a compiled model as one file. All of it is checked before any part is loaded.

Layout: a 64-byte header (magic, format version, size of the manifest, size of the file, BLAKE3 of the manifest), the
manifest as JSON, then the parts: the IR text, the library, the constants (safetensors), and the kernel libraries that
are stored in the file. Each part begins on a new page; zeros fill the gaps. The manifest gives offset, size and BLAKE3
of each part. BLAKE3 is a tree of hashes, so all CPUs compute it together. `runtime/src/deploy/artifact.cc` reads the
same format without Python.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import mmap
import os
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from blake3 import blake3

from ait_mlir.errors import ArtifactError, InputError
from ait_mlir.host.cache import cache_dir, is_plain, private_folder, put
from ait_mlir.host.cpu import instruction_sets
from ait_mlir.host.files import atomic_file
from ait_mlir.host.kernel_libraries import find_kernel_library, read_kernel_library
from ait_mlir.lowering.target import architecture_problem
from ait_mlir.lowering.toolchain import detect_rocm_archs
from ait_mlir.runtime import safetensors_part
from ait_mlir.runtime.json_values import JsonError, JsonValue, parse_json
from ait_mlir.runtime.manifest import (
    KernelLibraryInfo,
    Manifest,
    library_part,
    manifest_from_json,
    part_from_json,
    producers,
)
from ait_mlir.runtime.safetensors_part import PAGE, Deferred

FORMAT_VERSION = 2
_MAGIC = b"\x89AIT\r\n\x1a\n"
_HEADER = struct.Struct("<8sIIQQ32s")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_MANIFEST = 1 << 28
_BLOCK = 1 << 26
"""Bytes that are hashed at a time; pages of the file leave the memory of the process after each block."""
_PROCESS = os.getpid()

Piece = bytes | memoryview


@dataclass(frozen=True)
class Artifact:
    """An artifact with checked header, manifest, IR and library."""

    path: Path
    manifest: Manifest
    ir_text: str
    library_hash: str
    constants_key: str
    """What the constants in memory depend on: the library, which says where they are, and their hash."""
    data: np.ndarray[Any, np.dtype[np.uint8]]
    parts: Mapping[str, tuple[int, int]]

    @cached_property
    def constants(self) -> dict[str, np.ndarray[Any, Any]]:
        """The bound constants by name, read-only, without a copy."""
        try:
            return safetensors_part.decode(self._part("constants"))
        except ArtifactError as error:
            raise ArtifactError(f"{self.path}: {error}") from None

    def release(self, name: str) -> None:
        """Take the pages of a constant out of the memory of this process, because its data were copied."""
        array = self.constants[name]
        start = array.ctypes.data - self.data.ctypes.data
        _release_pages(self.data, start, start + array.nbytes)

    def extract_library(self) -> Path:
        """A private copy of the library, named by its hash. A copy that is already there is checked."""
        return self._extracted("library", self.library_hash, _blake3)

    def kernel_library_files(self) -> dict[str, Path]:
        """The files of the kernel libraries by SHA-256: copies of those that the artifact stores, and the others where
        they are found by name, or where they were when the model was compiled.

        Raises `ArtifactError` if one is not there, or has another hash.
        """
        files: dict[str, Path] = {}
        for library in self.manifest.kernel_libraries:
            if library.path:
                files[library.sha256] = _referenced(self.manifest.name, library)
            else:
                files[library.sha256] = self._extracted(library_part(library), library.sha256, _sha256)
        return files

    def _extracted(self, part: str, name: str, digest: Callable[[bytes], str]) -> Path:
        """The file of a part, named by its hash."""
        path = private_folder(cache_dir() / "models") / f"{name}.so"
        if not is_plain(path) or digest(path.read_bytes()) != name:
            code = self._part(part).tobytes()
            if digest(code) != name:
                raise ArtifactError(f"{self.path}: the {part} changed after it was checked")
            put(path, code)
        return path

    def _part(self, name: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
        offset, size = self.parts[name]
        return self.data[offset : offset + size]


def _blake3(data: bytes) -> str:
    return blake3(data).hexdigest()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _referenced(model: str, library: KernelLibraryInfo) -> Path:
    """The file of a kernel library that the artifact does not store."""
    try:
        found = find_kernel_library(library.name)
    except InputError:
        if not Path(library.path).is_file():
            raise ArtifactError(
                f"model {model} calls kernel library '{library.name}', which is not in the artifact and not at "
                f"{library.path}: name its file (ait_mlir.add_kernel_library), or add its folder to AIT_KERNEL_PATH"
            ) from None
        found = read_kernel_library(library.name, library.path)
    if found.sha256 != library.sha256:
        raise ArtifactError(
            f"model {model} calls kernel library '{library.name}' with SHA-256 {library.sha256}, but {found.path} has "
            f"{found.sha256}: use the file it was compiled with, or compile the model again"
        )
    return found.path


def write(
    path: str | os.PathLike[str],
    manifest: Manifest,
    ir_text: str,
    library: str | os.PathLike[str] | bytes,
    constants: Mapping[str, np.ndarray[Any, Any] | Deferred],
    kernel_libraries: Mapping[str, Path] | None = None,
) -> Path:
    """Write an artifact, whole or not at all. Each constant is made, written and dropped before the next one.

    `kernel_libraries` are the files of those that the artifact stores, by SHA-256.

    Raises `ArtifactError` for a bad name or dtype, `OSError` from the disk.
    """
    if not _NAME.fullmatch(manifest.name):
        raise ArtifactError(
            f"{manifest.name!r} cannot be the name of a model: expected 1 to 64 letters, digits, '_' or '-'"
        )
    code = library if isinstance(library, bytes) else Path(library).read_bytes()
    text = ir_text.encode()
    header, size = safetensors_part.encode_header(constants)
    contents: dict[str, Iterable[Piece]] = {
        "ir": [text],
        "library": [code],
        "constants": itertools.chain([header], safetensors_part.encode_data(constants)),
    }
    sizes = {"ir": len(text), "library": len(code), "constants": len(header) + size}
    for stored in manifest.kernel_libraries:
        if not stored.path:
            data = (kernel_libraries or {})[stored.sha256].read_bytes()
            contents[library_part(stored)], sizes[library_part(stored)] = [data], len(data)
    _, places, total = _layout(manifest, sizes, dict.fromkeys(contents, "0" * 64))
    target = Path(path)
    with atomic_file(target) as file:
        hashes: dict[str, str] = {}
        for name, pieces in contents.items():
            file.seek(places[name])
            hashes[name] = _write_and_hash(file, pieces)
        assert file.tell() == total, "the parts of an artifact changed while it was written"
        file.seek(0)
        file.write(_layout(manifest, sizes, hashes)[0])
    return target


def _write_and_hash(file: BinaryIO, pieces: Iterable[Piece]) -> str:
    """Write pieces and return the BLAKE3 of all of them. A thread hashes a piece while it is written."""
    digest = _parallel_blake3()
    with ThreadPoolExecutor(1) as pool:
        for piece in pieces:
            hashed = pool.submit(digest.update, piece)
            file.write(piece)
            hashed.result()
    return digest.hexdigest()


def read(path: str | os.PathLike[str], *, verify_weights: bool = True) -> Artifact:
    """Check an artifact and map it into memory, without loading or running any of its code.

    `verify_weights=False` skips the hash of the constants, which saves time for very large files. Header,
    manifest, IR and code are always checked. Raises `ArtifactError` if a part is damaged or has another version.
    """
    file = Path(path)
    try:
        data = np.memmap(file, dtype=np.uint8, mode="r") if file.stat().st_size else np.zeros(0, np.uint8)
    except FileNotFoundError:
        raise ArtifactError(f"{file}: there is no such artifact") from None
    except OSError as error:
        raise ArtifactError(f"{file} cannot be read: {error.strerror}") from error
    raw, end = _read_manifest(file, data)
    parts: dict[str, tuple[int, int]] = {}
    hashes: dict[str, str] = {}
    try:
        manifest = manifest_from_json(raw)
        for name in manifest.part_names():
            offset, size, hashes[name] = part_from_json(raw, name)
            parts[name] = offset, size
            if not end <= offset < end + PAGE or offset + size > data.size or data[end:offset].any():
                raise ArtifactError(f"{file} is damaged: the {name} is not where the manifest says")
            if (name != "constants" or verify_weights) and _hash(data, offset, size) != hashes[name]:
                raise ArtifactError(f"{file} is damaged: the {name} does not have the hash in the manifest")
            end = offset + size
        if end != data.size:
            raise ArtifactError(f"{file} is damaged: {data.size - end} bytes follow its last part")
        offset, size = parts["ir"]
        ir_text = data[offset : offset + size].tobytes().decode()
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{file} is damaged: its IR is no UTF-8: {error}") from error
    except JsonError as error:
        raise ArtifactError(f"{file} has a malformed manifest: {error}") from error
    key = f"{hashes['library']}-{hashes['constants']}"
    return Artifact(file, manifest, ir_text, hashes["library"], key, data, parts)


def check_machine(
    manifest: Manifest,
    cuda_arch: Callable[[], str | None],
    rocm_archs: Callable[[], Sequence[str]] = detect_rocm_archs,
) -> None:
    """Refuse a library that this machine cannot run: its CPU lacks instructions, or the library is for another card.

    `cuda_arch` is the architecture of the card that will run it, `rocm_archs` those of all AMD cards of this machine.
    """
    if manifest.target == "cpu":
        missing = sorted(set(manifest.instruction_sets) - instruction_sets())
        if missing:
            raise ArtifactError(
                f"model {manifest.name} was compiled for a CPU with {', '.join(missing)}, which this one lacks: "
                "compile it here, or with an arch that both have"
            )
    if manifest.target == "cuda" and (found := cuda_arch()) is not None and not _runs_on(manifest.arch, found):
        raise ArtifactError(
            f"model {manifest.name} was compiled for {manifest.arch}, this card is {found}: compile it for {found}"
        )
    if manifest.target == "rocm":
        if (problem := architecture_problem("rocm", manifest.arch)) is not None:
            raise ArtifactError(f"model {manifest.name} was compiled for {manifest.arch}: {problem}")
        if (cards := rocm_archs()) and manifest.arch not in cards:
            found = ", ".join(dict.fromkeys(cards))
            raise ArtifactError(
                f"model {manifest.name} was compiled for {manifest.arch}, the AMD cards of this machine are {found}: "
                "compile it for one of them"
            )


def _runs_on(arch: str, card: str) -> bool:
    """Code runs on the architecture it names and, unless that ends in a letter, on later minor versions of it."""
    if arch == card:
        return True
    wanted, have = re.fullmatch(r"sm_(\d+)(\d)", arch), re.match(r"sm_(\d+)(\d)", card)
    return bool(wanted and have and wanted[1] == have[1] and int(wanted[2]) <= int(have[2]))


def _layout(
    manifest: Manifest, sizes: Mapping[str, int], hashes: Mapping[str, str]
) -> tuple[bytes, dict[str, int], int]:
    """Header with manifest, place of each part, and size of the file.

    The manifest contains the offsets, and its length changes them. It is padded to pages, so two rounds are enough.
    """
    body = asdict(manifest)
    body["producers"] = dict(manifest.producers) or producers()
    if manifest.target == "cpu" and manifest.arch == "native" and not manifest.instruction_sets:
        body["instruction_sets"] = sorted(instruction_sets())
    room = PAGE
    while True:
        places: dict[str, int] = {}
        offset = end = room
        for name, size in sizes.items():
            places[name] = offset
            end = offset + size
            offset = _page_up(end)
        body["parts"] = {
            name: {"offset": places[name], "size": size, "blake3": hashes[name]} for name, size in sizes.items()
        }
        text = json.dumps(body, indent=1, sort_keys=True).encode()
        needed = _page_up(_HEADER.size + len(text))
        if needed == room:
            header = _HEADER.pack(_MAGIC, FORMAT_VERSION, 0, len(text), end, blake3(text).digest())
            return header + text, places, end
        room = needed


def _read_manifest(file: Path, data: np.ndarray[Any, np.dtype[np.uint8]]) -> tuple[JsonValue, int]:
    """The manifest, and where it ends."""
    if data.size < _HEADER.size:
        raise ArtifactError(f"{file} is no artifact or is truncated: it has {data.size} bytes")
    magic, version, reserved, size, total, digest = _HEADER.unpack(data[: _HEADER.size].tobytes())
    if magic != _MAGIC:
        raise ArtifactError(f"{file} is no artifact: it does not begin with the magic number of one")
    if version != FORMAT_VERSION:
        raise ArtifactError(f"{file} has artifact format {version}, expected {FORMAT_VERSION}: compile the model again")
    if total != data.size:
        raise ArtifactError(f"{file} is truncated or damaged: it has {data.size} bytes, its header says {total}")
    end = _HEADER.size + size
    if reserved != 0 or size > _MAX_MANIFEST or end > data.size:
        raise ArtifactError(f"{file} is damaged: its header makes no sense")
    text = data[_HEADER.size : end].tobytes()
    if blake3(text).digest() != digest:
        raise ArtifactError(f"{file} is damaged: the manifest does not have the hash in the header")
    try:
        return parse_json(text, "the manifest"), end
    except JsonError as error:
        raise ArtifactError(f"{file} has a malformed manifest: {error}") from error


def _parallel_blake3() -> blake3:
    """A hash by all CPUs. A forked process has not got the shared threads of its parent and would wait for them for
    ever: there the hash has threads of its own.
    """
    return blake3(max_threads=blake3.AUTO if os.getpid() == _PROCESS else len(os.sched_getaffinity(0)))


def _hash(data: np.ndarray[Any, np.dtype[np.uint8]], offset: int, size: int) -> str:
    """The BLAKE3 of a range of the file, by all CPUs. Pages that are hashed stay in the page cache alone."""
    digest = _parallel_blake3()
    for start in range(offset, offset + size, _BLOCK):
        end = min(start + _BLOCK, offset + size)
        digest.update(data[start:end].data)
        _release_pages(data, start, end)
    return digest.hexdigest()


def _release_pages(data: np.ndarray[Any, np.dtype[np.uint8]], start: int, end: int) -> None:
    """Take whole pages of a mapped file out of the memory of this process; they are read again when they are used."""
    mapped = getattr(data, "_mmap", None)
    start, end = _page_up(start), end // PAGE * PAGE
    if mapped is not None and start < end:
        mapped.madvise(mmap.MADV_DONTNEED, start, end - start)


def _page_up(size: int) -> int:
    return -(-size // PAGE) * PAGE
