"""`NAME.ait`: a compiled model as one file. All of it is checked before any part is loaded.

Layout: a 64-byte header (magic, format version, size of the manifest, size of the file, BLAKE3 of the manifest), the
manifest as JSON, then the parts: the IR text, the library, the same library for other CPUs, the constants
(safetensors), and the kernel libraries that are stored in the file. Each part begins on a new page; zeros fill the
gaps. The manifest gives offset, size and BLAKE3 of each part. BLAKE3 is a tree of hashes, so all CPUs compute it
together. `runtime/src/deploy/artifact.cc` reads the same format without Python.

A part is copied into memory of this process, and the copy is hashed and used. The file is never mapped: if another
process writes or truncates it meanwhile, the load raises an error and never reads other bytes or dies of a SIGBUS.
Constants are copied when they are used, and the memory of each is freed once it is on the device, so a load needs the
memory of all constants once, plus that of the largest. Holes of a sparse file are hashed as zeros and take no memory.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import mmap
import os
import re
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from blake3 import blake3

from ait_mlir.errors import ArtifactError, InputError, OutOfMemoryError
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
    constants_part,
    library_part,
    manifest_from_json,
    part_from_json,
    producers,
    variant_part,
)
from ait_mlir.runtime.safetensors_part import PAGE, Deferred
from ait_mlir.version import ARTIFACT_MAGIC

FORMAT_VERSION = 2
_HEADER = struct.Struct("<8sIIQQ32s")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_MANIFEST = 1 << 28
_BLOCK = 1 << 26
"""Bytes that are read and hashed at a time."""
_MAX_HOLES = 1 << 20
"""Bytes of IR or code that the disk need not have. Neither has so many zeros."""
_PROCESS = os.getpid()

Piece = bytes | memoryview


@dataclass(frozen=True)
class Part:
    """Where a part is in the file, and the BLAKE3 that the manifest gives it."""

    offset: int
    size: int
    blake3: str


@dataclass(frozen=True)
class Artifact:
    """An artifact with checked header, manifest, IR and libraries."""

    path: Path
    manifest: Manifest
    ir_text: str
    parts: Mapping[str, Part]
    bytes: FileBytes
    libraries: Mapping[str, bytes]
    """The contents of the parts with code, by name."""
    verify_weights: bool
    rank: int = 0
    """The rank whose constants are used."""

    @property
    def digest(self) -> int:
        """64 bits of the hash of all parts: ranks that run one model have the same."""
        return int.from_bytes(blake3("".join(part.blake3 for part in self.parts.values()).encode()).digest()[:8])

    @property
    def _own(self) -> Part:
        """The part with the constants."""
        return self.parts[constants_part(self.rank)]

    @property
    def constants_key(self) -> str:
        """The key under which models share these constants: the hash of the library, which defines their layout, and
        the hash of the constants.
        """
        return f"{self.parts[self._chosen()].blake3}-{self._own.blake3}"

    @cached_property
    def constants(self) -> dict[str, np.ndarray[Any, Any]]:
        """The bound constants by name, in memory of this process. Raises `ArtifactError` if they are damaged."""
        data = self._memory[: self._own.size]
        self._read_constants(data)
        data.setflags(write=False)
        try:
            return safetensors_part.decode(data)
        except ArtifactError as error:
            raise ArtifactError(f"{self.path}: {error}") from None

    @cached_property
    def _pages(self) -> mmap.mmap:
        """Address space for all constants; only pages that are written take memory."""
        size = max(self._own.size, 1)
        try:
            return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise OutOfMemoryError(f"the constants of {self.path} need {size} bytes: {error.strerror}") from error

    @property
    def _memory(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return np.frombuffer(self._pages, np.uint8)

    def constant_places(self) -> dict[str, safetensors_part.Place]:
        """Dtype and shape of each bound constant, and where its values are. Raises `ArtifactError`."""
        part = self._own
        try:
            header = self.bytes.read(
                part.offset, safetensors_part.header_bytes(self.bytes.read(part.offset, 8), part.size)
            )
            return safetensors_part.places(header, part.size)
        except ArtifactError as error:
            raise ArtifactError(f"{self.path}: {error}") from None

    def constant_bytes(self) -> dict[str, int]:
        """The bytes of each bound constant, without reading their values. Raises `ArtifactError`."""
        return {name: place.end - place.begin for name, place in self.constant_places().items()}

    def check_constants(self) -> None:
        """Check the hash of the constants, without memory for all of them. Raises `ArtifactError`."""
        if self.verify_weights:
            self._read_constants(None)

    def release(self, name: str) -> None:
        """Free the memory of a constant whose data were copied. Pages that hold only this constant are zeros
        afterwards.
        """
        array = self.constants[name]
        start = array.ctypes.data - self._memory.ctypes.data
        first, last = _page_up(start), (start + array.nbytes) // PAGE * PAGE
        if first < last:
            self._pages.madvise(mmap.MADV_DONTNEED, first, last - first)

    def _read_constants(self, to: np.ndarray[Any, np.dtype[np.uint8]] | None) -> None:
        """Read the constants into `to`, which holds zeros, and check their hash; with None, only check it.

        Holes of the file stay untouched in `to`, so they take no memory.
        """
        part = self._own
        window = np.empty(min(part.size, _BLOCK), np.uint8)
        zeros = np.zeros(window.size, np.uint8)
        digest = parallel_blake3()
        for first, end, is_hole in self.bytes.stretches(part.offset, part.size):
            for start in range(first, end, _BLOCK):
                size = min(_BLOCK, end - start)
                piece = window[:size] if to is None else to[start - part.offset :][:size]
                if is_hole:
                    piece = zeros[:size]
                else:
                    self.bytes.read_into(start, piece.data)
                if self.verify_weights:
                    digest.update(piece.data)
        if self.verify_weights and digest.hexdigest() != part.blake3:
            raise _damaged(self.path, constants_part(self.rank))

    def extract_library(self) -> Path:
        """A private copy of the library for this machine, named by its hash. A copy that is already there is checked.

        Raises `ArtifactError` if this CPU can run no library of the artifact.
        """
        part = self._chosen()
        return self._extracted(part, self.parts[part].blake3, _blake3)

    def _chosen(self) -> str:
        return choose_library(self.manifest)

    def kernel_library_files(self) -> dict[str, Path]:
        """The files of the kernel libraries by SHA-256: copies of stored libraries; other libraries are found by name,
        or at their path when the model was compiled.

        Raises `ArtifactError` if a library is missing or has another hash.
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
            put(path, self.libraries[part])
        return path


class FileBytes:
    """The bytes of an open file, also after another file was renamed onto its path."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = io.FileIO(path, opener=_open_at_once)
            state = os.fstat(self._file.fileno())
        except FileNotFoundError:
            raise ArtifactError(f"{path}: there is no such artifact") from None
        except ValueError:
            raise InputError(f"{str(path)!r} is no path of a file: it has a null character") from None
        except OSError as error:
            raise ArtifactError(f"{path} cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(state.st_mode):
            raise ArtifactError(f"{path} is no artifact: expected a regular file, not a pipe or device")
        self.path, self.size = path, state.st_size

    def holes(self, offset: int, size: int) -> int:
        """How many bytes of a range are holes: they take no room on the disk and read as zeros."""
        return sum(stop - start for start, stop, is_hole in self.stretches(offset, size) if is_hole)

    def stretches(self, offset: int, size: int) -> Iterator[tuple[int, int, bool]]:
        """The start and the end of each stretch of a range in turn, and whether it is a hole. Raises like `read`."""
        at, end = offset, offset + size
        while at < end:
            try:
                hole = min(os.lseek(self._file.fileno(), at, os.SEEK_HOLE), end)
            except OSError:  # the file ends before `at` by now, which `read` refuses
                hole = end
            if at < hole:
                yield at, hole, False
            try:
                at = min(os.lseek(self._file.fileno(), hole, os.SEEK_DATA), end) if hole < end else end
            except OSError:  # the hole reaches to the end of the file
                at = end
            if hole < at:
                if os.fstat(self._file.fileno()).st_size < at:
                    raise self._shorter()
                yield hole, at, True

    def read(self, offset: int, size: int) -> bytes:
        """A copy of a range. Raises `ArtifactError` if the file has become shorter."""
        copy = bytearray(size)
        self.read_into(offset, memoryview(copy))
        return bytes(copy)

    def read_into(self, offset: int, to: memoryview) -> None:
        """Fill `to` with the bytes from `offset` on."""
        done = 0
        try:
            while done < to.nbytes:
                count = os.preadv(self._file.fileno(), [to[done:]], offset + done)
                if count == 0:
                    raise self._shorter()
                done += count
        except OSError as error:
            raise ArtifactError(f"{self.path} cannot be read: {error.strerror}") from error

    def _shorter(self) -> ArtifactError:
        return ArtifactError(
            f"{self.path} became shorter while it was read: replace an artifact by renaming a new file"
        )


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; opening a pipe returns at once, without a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _damaged(path: Path, part: str) -> ArtifactError:
    return ArtifactError(
        f"{path} is damaged: part '{part}' does not have the hash in the manifest, unless it was written while it was "
        "read"
    )


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
    variants: Mapping[str, Path] | None = None,
    further: Sequence[Mapping[str, np.ndarray[Any, Any] | Deferred]] = (),
) -> Path:
    """Write an artifact, whole or not at all. Each constant is made, written and dropped before the next one.

    `kernel_libraries` are the files of the kernel libraries to store in the artifact, by SHA-256; `variants` are the
    libraries for the other CPUs of the manifest, by arch; `further` are the constants of the ranks from 1 on.

    Raises `ArtifactError` for a bad name or dtype, `OSError` from the disk.
    """
    if not _NAME.fullmatch(manifest.name):
        raise ArtifactError(
            f"{manifest.name!r} cannot be the name of a model: expected 1 to 64 letters, digits, '_' or '-'"
        )
    code = library if isinstance(library, bytes) else Path(library).read_bytes()
    text = ir_text.encode()
    contents: dict[str, Iterable[Piece]] = {"ir": [text], "library": [code]}
    sizes = {"ir": len(text), "library": len(code)}
    for variant in manifest.variants:
        data = (variants or {})[variant.arch].read_bytes()
        contents[variant_part(variant)], sizes[variant_part(variant)] = [data], len(data)
    for rank, own in enumerate((constants, *further)):
        header, size = safetensors_part.encode_header(own)
        contents[constants_part(rank)] = itertools.chain([header], safetensors_part.encode_data(own))
        sizes[constants_part(rank)] = len(header) + size
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
    digest = parallel_blake3()
    with ThreadPoolExecutor(1) as pool:
        for piece in pieces:
            hashed = pool.submit(digest.update, piece)
            file.write(piece)
            hashed.result()
    return digest.hexdigest()


def read(path: str | os.PathLike[str], *, verify_weights: bool = True, defer_weights: bool = False) -> Artifact:
    """Check an artifact, without loading or running any of its code.

    `verify_weights=False` skips the hash of the constants, which saves time for very large files; `defer_weights`
    checks it only when the constants are read. Header, manifest, IR and code are always checked. Raises `ArtifactError`
    if a part is damaged or has another version.
    """
    file = FileBytes(_as_path(path))
    raw, end = _read_manifest(file)
    parts: dict[str, Part] = {}
    contents: dict[str, bytes] = {}
    try:
        manifest = manifest_from_json(raw)
        for name in manifest.part_names():
            part = parts[name] = Part(*part_from_json(raw, name))
            is_inside = end <= part.offset < end + PAGE and part.offset + part.size <= file.size
            if not is_inside or any(file.read(end, part.offset - end)):
                raise ArtifactError(f"{file.path} is damaged: part '{name}' is not where the manifest says")
            if not name.startswith("constants"):
                if (holes := file.holes(part.offset, part.size)) > _MAX_HOLES:
                    raise ArtifactError(
                        f"{file.path} is damaged: {holes} bytes of part '{name}' were never written: copy it again"
                    )
                contents[name] = file.read(part.offset, part.size)
                if _blake3(contents[name]) != part.blake3:
                    raise _damaged(file.path, name)
            end = part.offset + part.size
        if end != file.size:
            raise ArtifactError(f"{file.path} is damaged: {file.size - end} bytes follow its last part")
        ir_text = contents.pop("ir").decode()
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{file.path} is damaged: its IR is no UTF-8: {error}") from error
    except JsonError as error:
        raise ArtifactError(f"{file.path} has a malformed manifest: {error}") from error
    found = Artifact(file.path, manifest, ir_text, parts, file, contents, verify_weights)
    found.constant_bytes()  # a malformed header is refused before gigabytes are read
    if not defer_weights:
        found.check_constants()
    return found


def _as_path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise InputError(f"the path of an artifact is {path!r}, expected a string or a Path") from None


def choose_library(manifest: Manifest) -> str:
    """The name of the part with the library for this machine: the most specialised library that this CPU can run.

    Raises `ArtifactError` if this CPU can run no library of the artifact.
    """
    if manifest.target != "cpu":
        return "library"
    flags = instruction_sets()
    refusals: list[str] = []
    found: list[tuple[int, str]] = []
    for arch, needed, part in manifest.libraries():
        if missing := sorted(set(needed) - flags):
            refusals.append(f"{arch} needs {', '.join(missing)}")
        else:
            found.append((len(needed), part))
    if not found:
        raise ArtifactError(
            f"model {manifest.name} was compiled for a CPU with features that this one lacks ({'; '.join(refusals)}): "
            "compile it here, or with a --cpu that both have"
        )
    return max(found, key=lambda one: one[0])[1]


def check_machine(
    manifest: Manifest,
    cuda_arch: Callable[[], str | None],
    rocm_archs: Callable[[], Sequence[str]] = detect_rocm_archs,
) -> None:
    """Refuse a library that this machine cannot run: its CPU lacks instructions, or the library is for another card.

    `cuda_arch` gives the architecture of the card that will run it, `rocm_archs` the architectures of all AMD cards
    here.
    """
    choose_library(manifest)
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
    """Whether a card runs code for `arch`: the same architecture or, unless its name ends in a letter, a later minor
    version.
    """
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
            header = _HEADER.pack(ARTIFACT_MAGIC, FORMAT_VERSION, 0, len(text), end, blake3(text).digest())
            return header + text, places, end
        room = needed


def _read_manifest(file: FileBytes) -> tuple[JsonValue, int]:
    """The manifest, and where it ends."""
    if file.size < _HEADER.size:
        raise ArtifactError(f"{file.path} is no artifact or is truncated: it has {file.size} bytes")
    magic, version, reserved, size, total, digest = _HEADER.unpack(file.read(0, _HEADER.size))
    if magic != ARTIFACT_MAGIC:
        raise ArtifactError(f"{file.path} is no artifact: it does not begin with the magic number of one")
    if version != FORMAT_VERSION:
        raise ArtifactError(
            f"{file.path} has artifact format {version}, expected {FORMAT_VERSION}: compile the model again"
        )
    if total != file.size:
        raise ArtifactError(f"{file.path} is truncated or damaged: it has {file.size} bytes, its header says {total}")
    end = _HEADER.size + size
    if reserved != 0 or size > _MAX_MANIFEST or end > file.size:
        raise ArtifactError(f"{file.path} is damaged: its header makes no sense")
    text = file.read(_HEADER.size, size)
    if blake3(text).digest() != digest:
        raise ArtifactError(f"{file.path} is damaged: the manifest does not have the hash in the header")
    try:
        return parse_json(text, "the manifest"), end
    except JsonError as error:
        raise ArtifactError(f"{file.path} has a malformed manifest: {error}") from error


def parallel_blake3() -> blake3:
    """A BLAKE3 hash that all CPUs compute. In a forked process it gets threads of its own: the parent's threads do not
    exist there, and the hash would wait for them for ever.
    """
    return blake3(max_threads=blake3.AUTO if os.getpid() == _PROCESS else len(os.sched_getaffinity(0)))


def _page_up(size: int) -> int:
    return -(-size // PAGE) * PAGE
