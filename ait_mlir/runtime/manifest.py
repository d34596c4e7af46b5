"""What an artifact says of its model: inputs, outputs, dims, target, what it needs, and who wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

PRODUCERS = ("ait_mlir", "xdsl", "apache-tvm-ffi", "numpy")
"""The packages whose versions an artifact records."""


@dataclass(frozen=True)
class TensorInfo:
    """An input or output: its name, dtype ("float16") and shape, each dim as text ("batch", "2*seq + 1", "768").

    `in_place_of` is the donated input whose memory an output uses, or "". `strides`, in elements, are those with which
    kernels use the caller's memory; () if it is row-major.
    """

    name: str
    dtype: str
    shape: tuple[str, ...]
    in_place_of: str = ""
    strides: tuple[str, ...] = ()


@dataclass(frozen=True)
class DimInfo:
    """A named dim: the range of its values and the values worth tuning for.

    `bound` is the upper bound of a dim that a run binds, such as "8*batch", or "".
    """

    name: str
    lo: int
    hi: int
    hints: tuple[int, ...] = ()
    bound: str = ""


@dataclass(frozen=True)
class KernelLibraryInfo:
    """A kernel library that the model calls: its name and the SHA-256 of its file.

    `path` is where the file was if the artifact only refers to it; "" if the artifact stores it.
    """

    name: str
    sha256: str
    path: str = ""


@dataclass(frozen=True)
class Manifest:
    """The description of an artifact. `name` has 1 to 64 letters, digits, '_' and '-'."""

    name: str
    target: str
    arch: str
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    dims: tuple[DimInfo, ...] = ()
    instruction_sets: tuple[str, ...] = ()
    """The instruction sets that the library needs, if `arch` is "native" on a CPU."""
    producers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Versions of the packages that wrote the artifact."""
    precision: str = "highest"
    """How products of f32 are computed: `ait_mlir.lowering.target.PRECISIONS`."""
    folds: str = ""
    """IR of the constants that are computed from others (`passes/fold_params.py`)."""
    kernel_libraries: tuple[KernelLibraryInfo, ...] = ()

    def part_names(self) -> list[str]:
        """The parts of the file in order."""
        stored = (library_part(library) for library in self.kernel_libraries if not library.path)
        return ["ir", "library", "constants", *stored]


def library_part(library: KernelLibraryInfo) -> str:
    """The name of the part that stores a kernel library."""
    return f"kernel_library.{library.sha256}"


def manifest_from_json(raw: Mapping[str, Any]) -> Manifest:
    """The manifest of a file; `KeyError`, `TypeError` or `ValueError` where something is missing or of another kind."""
    return Manifest(
        name=raw["name"],
        target=raw["target"],
        arch=raw["arch"],
        inputs=tuple(map(_tensor_from_json, raw["inputs"])),
        outputs=tuple(map(_tensor_from_json, raw["outputs"])),
        dims=tuple(DimInfo(d["name"], d["lo"], d["hi"], tuple(d["hints"]), d.get("bound", "")) for d in raw["dims"]),
        instruction_sets=tuple(raw["instruction_sets"]),
        producers=dict(raw["producers"]),
        precision=raw.get("precision", "highest"),
        folds=raw.get("folds", ""),
        kernel_libraries=tuple(
            KernelLibraryInfo(k["name"], k["sha256"], k["path"]) for k in raw.get("kernel_libraries", ())
        ),
    )


def _tensor_from_json(t: Mapping[str, Any]) -> TensorInfo:
    return TensorInfo(t["name"], t["dtype"], tuple(t["shape"]), t.get("in_place_of", ""), tuple(t.get("strides", ())))


def producers() -> dict[str, str]:
    """Versions of the packages that make artifacts, of those that are installed."""
    found: dict[str, str] = {}
    for package in PRODUCERS:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
