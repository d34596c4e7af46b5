"""AWQ: qweight [k, n / 8] and qzeros packed along n, in the order 0, 2, 4, 6, 1, 3, 5, 7 in each word."""

from __future__ import annotations

import numpy as np

from ait_mlir.importers.checkpoints.files import Files
from ait_mlir.importers.checkpoints.stored import Array, Scaled, StoredWeight, packed
from ait_mlir.importers.checkpoints.words import unpacked
from ait_mlir.runtime.json_values import JsonValue

ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""The column, of the 8 in a word, whose number is in bits 4i to 4i + 3."""
PARTS = ("qweight", "qzeros", "scales")


def read(files: Files, config: JsonValue) -> tuple[dict[str, StoredWeight], set[str]]:
    """The weights by name, and the names of the tensors that they are made of. Raises `JsonError` for a config that is
    not read."""
    bits = config.get("bits", config.get("w_bit", 4).whole())
    if bits.whole() != 4:
        bits.refuse("4")
    version = config.get("version", "gemm")
    if version.text().lower() != "gemm":
        version.refuse("gemm")
    group = config.get("group_size", config.get("q_group_size", 128).whole(-1)).whole(-1)
    if not group:
        config.at("group_size").refuse("-1 or a number above 0")
    found: dict[str, StoredWeight] = {}
    for name in files:
        module, _, last = name.rpartition(".")
        if last == "qweight":
            found[f"{module}.weight"] = _weight(files, module, group)
    return found, {f"{name.removesuffix('.weight')}.{part}" for name in found for part in PARTS}


def _weight(files: Files, module: str, group: int) -> StoredWeight:
    words = files.matrix(f"{module}.qweight", ("int32",))
    columns, rows = words.shape[0], 8 * words.shape[1]
    size = columns if group == -1 else group
    groups = -(-columns // size)
    scales = files.scale(f"{module}.scales", (groups, rows))
    zeros = in_order(files.tensor(f"{module}.qzeros", ("int32",), (groups, words.shape[1])))
    numbers = packed(in_order(words).T)
    scaled = Scaled("uint4", columns, numbers, np.ascontiguousarray(scales.T), (1, size), np.ascontiguousarray(zeros.T))
    return StoredWeight(scales.dtype.name, scaled)


def in_order(words: Array) -> Array:
    """The numbers of words along the last dim, in the order of the columns."""
    found = unpacked(words, 4).reshape(*words.shape, 8)
    columns = np.empty_like(found)
    columns[..., list(ORDER)] = found
    return columns.reshape(words.shape[0], -1)
