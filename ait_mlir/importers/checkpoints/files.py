"""The files of a checkpoint: safetensors files with their index, and the config beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ait_mlir.errors import ArtifactError
from ait_mlir.importers.checkpoints.errors import CheckpointError
from ait_mlir.importers.checkpoints.stored import Array
from ait_mlir.runtime.json_values import JsonError, JsonValue, parse_json
from ait_mlir.runtime.safetensors_part import decode

INDEX = "model.safetensors.index.json"
CONFIGS = ("config.json", "quantize_config.json", "quant_config.json")
"""The files that may hold the config of the numbers: of transformers, GPTQ and AWQ."""


class Files:
    """The tensors of safetensors files, mapped into memory, and the config beside them."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise CheckpointError(f"{path}: there is no such file or folder")
        self.folder = self.path if self.path.is_dir() else self.path.parent
        self._tensors: dict[str, Array] = {}
        self._files: dict[str, Path] = {}
        for file in self._listed():
            for name, array in _read(file).items():
                if name in self._files:
                    raise CheckpointError(f"{file}: tensor {name!r} is in {self._files[name].name}, too")
                self._tensors[name], self._files[name] = array, file
        self._check_index()

    def _listed(self) -> list[Path]:
        if self.path.is_file():
            return [self.path]
        if (self.path / INDEX).is_file():
            names = {entry.text() for entry in self._index().values()}
            if outside := [name for name in sorted(names) if Path(name).name != name]:
                raise CheckpointError(f"{self.path / INDEX}: {outside[0]!r} is not the name of a file beside it")
            return [self.path / name for name in sorted(names)]
        if not (found := sorted(self.path.glob("*.safetensors"))):
            raise CheckpointError(f"{self.path}: the folder has no .safetensors file")
        return found

    def _index(self) -> dict[str, JsonValue]:
        file = self.path / INDEX
        try:
            return parse_json(file.read_bytes(), "the index").at("weight_map").members()
        except JsonError as error:
            raise CheckpointError(f"{file}: {error}") from None

    def _check_index(self) -> None:
        if self.path.is_dir() and (self.path / INDEX).is_file():
            for name, entry in self._index().items():
                if name not in self._files or self._files[name].name != entry.text():
                    raise CheckpointError(f"{self.path / entry.text()}: tensor {name!r} of {INDEX} is not in it")

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def __iter__(self) -> Any:
        return iter(self._tensors)

    def place(self, name: str) -> str:
        """The file and the tensor, for errors."""
        return f"{self._files.get(name, self.path)}: tensor {name!r}"

    def fail(self, name: str, problem: str) -> CheckpointError:
        """An error about a tensor."""
        return CheckpointError(f"{self.place(name)} {problem}")

    def tensor(self, name: str, dtypes: tuple[str, ...] = (), shape: tuple[int, ...] | None = None) -> Array:
        """A tensor, whose dtype and shape must be these. Raises `CheckpointError`."""
        if name not in self._tensors:
            raise CheckpointError(f"{self.path}: there is no tensor {name!r}, which its kin need")
        array = self._tensors[name]
        if dtypes and array.dtype.name not in dtypes:
            raise self.fail(name, f"has dtype {array.dtype.name}, expected {' or '.join(dtypes)}")
        if shape is not None and array.shape != shape:
            raise self.fail(name, f"has shape {list(array.shape)}, expected {list(shape)}")
        return array

    def matrix(self, name: str, dtypes: tuple[str, ...]) -> Array:
        """A tensor of two dims, none of which is 0."""
        array = self.tensor(name, dtypes)
        if array.ndim != 2 or not array.size:
            raise self.fail(name, f"has shape {list(array.shape)}, expected two dims of at least 1")
        return array

    def scale(self, name: str, shape: tuple[int, ...] | None = None, dtypes: tuple[str, ...] = ()) -> Array:
        """A tensor of scales: finite numbers above 0."""
        array = self.tensor(name, dtypes or ("float16", "bfloat16", "float32"), shape)
        numbers = array.astype(np.float32).reshape(-1)
        if not (good := (numbers > 0) & np.isfinite(numbers)).all():
            at = int(np.argmin(good))
            where = [int(i) for i in np.unravel_index(at, array.shape)]
            raise self.fail(name, f"has the scale {numbers[at]:g} at {where}, expected finite numbers above 0")
        return array

    def config(self) -> tuple[JsonValue, Path] | None:
        """The config of the quantised weights, and its file; None without one."""
        for name in CONFIGS:
            file = self.folder / name
            if not file.is_file():
                continue
            try:
                whole = parse_json(file.read_bytes(), "the config", constants=True)
                if name != "config.json":
                    return whole, file
                members = whole.members()
                if "quantization_config" in members and not members["quantization_config"].is_null():
                    return members["quantization_config"], file
            except JsonError as error:
                raise CheckpointError(f"{file}: {error}") from None
        return None

    def model_dtype(self) -> str:
        """The type of the model's values by its config; bfloat16 without one."""
        file = self.folder / "config.json"
        if not file.is_file():
            return "bfloat16"
        try:
            whole = parse_json(file.read_bytes(), "the config", constants=True)
            entry = whole.get("dtype", whole.get("torch_dtype", "bfloat16").text())
            if entry.text() not in ("float16", "bfloat16", "float32"):
                entry.refuse("float16, bfloat16 or float32")
            return entry.text()
        except JsonError as error:
            raise CheckpointError(f"{file}: {error}") from None


def _read(file: Path) -> dict[str, Array]:
    """The tensors of a safetensors file."""
    try:
        return decode(np.memmap(file, dtype=np.uint8, mode="r"))
    except FileNotFoundError:
        raise CheckpointError(f"{file}: there is no such file") from None
    except (ArtifactError, ValueError, OSError) as error:
        raise CheckpointError(f"{file}: {error}") from None
