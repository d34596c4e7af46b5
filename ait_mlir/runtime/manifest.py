"""The manifest of an artifact: its model's inputs, outputs, dims, target and requirements, and the writer's
versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata

from ait_mlir.runtime.json_values import JsonValue

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
class Variant:
    """A further library of an artifact, for another CPU: a value of -march, and the instruction sets that it needs."""

    arch: str
    instruction_sets: tuple[str, ...]


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
    """The instruction sets that the library needs on a CPU."""
    producers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Versions of the packages that wrote the artifact."""
    precision: str = "highest"
    """How products of f32 are computed: `ait_mlir.lowering.target.PRECISIONS`."""
    folds: str = ""
    """IR of the constants that are computed from others (`passes/fold_params.py`)."""
    foldable: tuple[str, ...] = ()
    """The weights from which alone values follow that each run computes, because some had no data."""
    kernel_libraries: tuple[KernelLibraryInfo, ...] = ()
    variants: tuple[Variant, ...] = ()
    ranks: int = 1
    """The number of processes that run the model; each has constants of its own."""

    def part_names(self) -> list[str]:
        """The parts of the file in order."""
        stored = (library_part(library) for library in self.kernel_libraries if not library.path)
        return ["ir", *(part for _, _, part in self.libraries()), *map(constants_part, range(self.ranks)), *stored]

    def libraries(self) -> list[tuple[str, tuple[str, ...], str]]:
        """The libraries of the model: the arch of each, the instruction sets that it needs, and its part."""
        return [
            (self.arch, self.instruction_sets, "library"),
            *((variant.arch, variant.instruction_sets, variant_part(variant)) for variant in self.variants),
        ]


def variant_part(variant: Variant) -> str:
    """The name of the part that stores the library for another CPU."""
    return f"library.{variant.arch}"


def constants_part(rank: int) -> str:
    """The name of the part that stores the constants of a rank."""
    return f"constants.{rank}" if rank else "constants"


def library_part(library: KernelLibraryInfo) -> str:
    """The name of the part that stores a kernel library."""
    return f"kernel_library.{library.sha256}"


def manifest_from_json(raw: JsonValue) -> Manifest:
    """The manifest of a file. Raises `JsonError` where something is missing or of another kind."""
    inputs = tuple(map(_tensor_from_json, raw.at("inputs").items()))
    outputs = tuple(map(_tensor_from_json, raw.at("outputs").items()))
    donated = ["", *(tensor.name for tensor in inputs)]
    for tensor, row in zip(outputs, raw.at("outputs").items(), strict=True):
        if tensor.in_place_of not in donated:
            row.get("in_place_of", "").refuse("the name of an input")
    return Manifest(
        name=raw.at("name").text(),
        target=raw.at("target").text(),
        arch=raw.at("arch").text(),
        inputs=inputs,
        outputs=outputs,
        dims=tuple(map(_dim_from_json, raw.at("dims").items())),
        instruction_sets=raw.at("instruction_sets").texts(),
        producers={name: version.text() for name, version in raw.at("producers").members().items()},
        precision=raw.get("precision", "highest").text(),
        folds=raw.get("folds", "").text(),
        foldable=raw.get("foldable", []).texts(),
        kernel_libraries=tuple(
            KernelLibraryInfo(k.at("name").text(), k.at("sha256").digest(), k.at("path").text())
            for k in raw.get("kernel_libraries", []).items()
        ),
        variants=tuple(
            Variant(v.at("arch").text(), v.at("instruction_sets").texts()) for v in raw.get("variants", []).items()
        ),
        ranks=raw.get("ranks", 1).whole(1, 1 << 16),
    )


def part_from_json(raw: JsonValue, name: str) -> tuple[int, int, str]:
    """Offset, size and BLAKE3 of a part. Raises `JsonError` like `manifest_from_json`."""
    part = raw.at("parts").at(name)
    return part.at("offset").whole(), part.at("size").whole(), part.at("blake3").digest()


def _tensor_from_json(t: JsonValue) -> TensorInfo:
    return TensorInfo(
        t.at("name").text(),
        t.at("dtype").dtype(),
        t.at("shape").texts(),
        t.get("in_place_of", "").text(),
        t.get("strides", []).texts(),
    )


def _dim_from_json(d: JsonValue) -> DimInfo:
    lo = d.at("lo").whole()
    hi = d.at("hi").whole(lo)
    hints = tuple(hint.whole(lo, hi) for hint in d.at("hints").items())
    return DimInfo(d.at("name").text(), lo, hi, hints, d.get("bound", "").text())


def producers() -> dict[str, str]:
    """The versions of installed packages that make artifacts."""
    found: dict[str, str] = {}
    for package in PRODUCERS:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
