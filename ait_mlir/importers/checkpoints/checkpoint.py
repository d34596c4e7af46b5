"""`read_checkpoint`: the weights of a published checkpoint, as they are stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ait_mlir.importers.checkpoints import awq, compressed, fp8, gguf, gptq
from ait_mlir.importers.checkpoints.errors import CheckpointError
from ait_mlir.importers.checkpoints.files import Files
from ait_mlir.importers.checkpoints.stored import Array, StoredWeight
from ait_mlir.runtime.json_values import JsonError, JsonValue

Reader = Callable[[Files, JsonValue], tuple[dict[str, StoredWeight], set[str]]]
READERS: dict[str, Reader] = {
    "compressed-tensors": compressed.read,
    "gptq": gptq.read,
    "awq": awq.read,
    "fp8": fp8.read,
}
"""By `quant_method` of the config."""


@dataclass(frozen=True)
class Checkpoint:
    """The tensors of a checkpoint: quantised weights by the name of the weight, and all others."""

    path: Path
    weights: dict[str, StoredWeight]
    plain: dict[str, Array]
    of_model: Callable[[str], StoredWeight | Array | None] | None = None
    """For a format with names of its own: the tensor of a param of the model of `transformers`, by the param's name."""

    def __contains__(self, name: str) -> bool:
        return name in self.weights or name in self.plain

    def get(self, name: str) -> StoredWeight | Array | None:
        """The tensor of a name, or of a param of the model of `transformers`; None if there is none."""
        if name in self:
            return self.weights.get(name, self.plain.get(name))
        return None if self.of_model is None else self.of_model(name)

    def __repr__(self) -> str:
        size = sum(w.nbytes for w in self.weights.values()) + sum(a.nbytes for a in self.plain.values())
        return (
            f"<Checkpoint {self.path}: {len(self.weights)} quantised and {len(self.plain)} other tensors, {size} bytes>"
        )


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Read a GGUF file, a safetensors file or a folder of them with its config.

    `quant_method` of the config names the format: compressed-tensors (packed integers of 4 and 8 bits, integers, fp8),
    gptq (versions 1 and 2, with the order of columns), awq, and fp8 (blocks). Tensors are mapped into memory; numbers
    of 4 bits are packed again where the format has another order. Raises `CheckpointError`, which names the file and
    the tensor, for a damaged file and for tensors that disagree with the config.
    """
    file = Path(path)
    if file.suffix == ".gguf":
        if not file.is_file():
            raise CheckpointError(f"{path}: there is no such file")
        return Checkpoint(file, *gguf.read(file))
    files = Files(file)
    found = files.config()
    weights: dict[str, StoredWeight] = {}
    used: set[str] = set()
    if found is not None:
        config, where = found
        try:
            weights, used = _reader(config, where)(files, config)
        except JsonError as error:
            raise CheckpointError(f"{where}: {error}") from None
    plain = {name: files.tensor(name) for name in files if name not in used}
    for name, array in plain.items():
        _check_plain(files, name, array)
    return Checkpoint(file, weights, plain)


def _reader(config: JsonValue, where: Path) -> Reader:
    """The reader of a config. `quantize_config.json` is GPTQ's, `quant_config.json` AWQ's."""
    kinds = {"quantize_config.json": "gptq", "quant_config.json": "awq"}
    method = config.get("quant_method", kinds[where.name]) if where.name in kinds else config.at("quant_method")
    if method.text() not in READERS:
        method.refuse(f"one of {', '.join(READERS)}")
    return READERS[method.text()]


def _check_plain(files: Files, name: str, array: Array) -> None:
    """Raise for a tensor of quantised numbers that no config speaks of."""
    last = name.rpartition(".")[2]
    if array.dtype.name.startswith("float8") or last in ("qweight", "qzeros", "weight_packed"):
        raise files.fail(
            name,
            f"of {array.dtype.name} is a quantised weight, but the config does not say how: expected "
            "quantization_config in config.json",
        )
