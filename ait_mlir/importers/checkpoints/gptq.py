"""GPTQ: qweight packed along k, qzeros along n, and g_idx, the group of each column.

Version 1 stores zero points less 1, version 2 stores them as they are ("checkpoint_format" of the config).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ait_mlir.importers.checkpoints.files import Files
from ait_mlir.importers.checkpoints.stored import Array, Scaled, StoredWeight
from ait_mlir.importers.checkpoints.words import centred, in_rows, unpacked
from ait_mlir.runtime.json_values import JsonValue

PARTS = ("qweight", "qzeros", "scales", "g_idx")


@dataclass(frozen=True)
class Config:
    """What a config of GPTQ says of all weights."""

    bits: int
    group: int
    symmetric: bool
    by_activations: bool
    is_less_one: bool

    @classmethod
    def of(cls, config: JsonValue) -> Config:
        """Raises `JsonError` for a config that is not read."""
        bits = config.at("bits")
        if bits.whole() not in (4, 8):
            bits.refuse("4 or 8")
        group = config.at("group_size").whole(-1)
        if not group:
            config.at("group_size").refuse("-1 or a number above 0")
        form = config.get("checkpoint_format", "gptq")
        if form.text() not in ("gptq", "gptq_v2"):
            form.refuse("gptq or gptq_v2")
        if not (overrides := config.get("dynamic", None)).is_null() and overrides.members():
            overrides.refuse("no settings by module")
        symmetric, order = config.get("sym", False).flag(), config.get("desc_act", False).flag()
        return cls(bits.whole(), group, symmetric, order, form.text() == "gptq")


def read(files: Files, config: JsonValue) -> tuple[dict[str, StoredWeight], set[str]]:
    """The weights by name, and the names of the tensors that they are made of."""
    chosen = Config.of(config)
    found: dict[str, StoredWeight] = {}
    for name in files:
        module, _, last = name.rpartition(".")
        if last == "qweight":
            found[f"{module}.weight"] = _weight(files, module, chosen)
    used = {f"{name.removesuffix('.weight')}.{part}" for name in found for part in PARTS}
    return found, used


def _weight(files: Files, module: str, config: Config) -> StoredWeight:
    bits, per_word = config.bits, 32 // config.bits
    words = files.matrix(f"{module}.qweight", ("int32",))
    columns, rows = words.shape[0] * per_word, words.shape[1]
    size = columns if config.group == -1 else config.group
    groups = -(-columns // size)
    scales = files.scale(f"{module}.scales", (groups, rows))
    zeros = unpacked(files.tensor(f"{module}.qzeros", ("int32",), (groups, -(-rows // per_word))), bits)[:, :rows]
    if config.is_less_one:
        zeros = zeros + np.uint8(1) & np.uint8(2**bits - 1)
    middle = 2 ** (bits - 1)
    if config.symmetric and (zeros != middle).any():
        wrong = int(zeros[zeros != middle][0])
        other = "gptq_v2" if config.is_less_one else "gptq"
        raise files.fail(
            f"{module}.qzeros",
            f"has the zero point {wrong}, but with sym all are {middle}; is the checkpoint_format {other}?",
        )
    data = in_rows(words.T, bits, columns)
    blocks = (1, size)
    if (zeros == middle).all():
        element, numbers = centred(data, bits)
        scaled = Scaled(element, columns, numbers, np.ascontiguousarray(scales.T), blocks)
    else:
        element = "uint4" if bits == 4 else "uint8"
        scaled = Scaled(element, columns, data, np.ascontiguousarray(scales.T), blocks, np.ascontiguousarray(zeros.T))
    order = by_groups(files, f"{module}.g_idx", columns, size, config.by_activations)
    if order is None:
        return StoredWeight(scales.dtype.name, scaled)
    places = np.argsort(order, kind="stable").astype(np.int64)
    return StoredWeight(scales.dtype.name, scaled.with_columns(order), order=places)


def by_groups(files: Files, name: str, columns: int, size: int, may_move: bool) -> Array | None:
    """The columns in the order of their groups, by the group of each; None if they are in that order already."""
    if name not in files:
        if may_move:
            raise files.fail(name, "is missing: the config says that the columns were ordered by activations")
        return None
    groups = files.tensor(name, ("int32", "int64"), (columns,)).astype(np.int64)
    count = -(-columns // size)
    if not ((groups >= 0) & (groups < count)).all():
        wrong = int(groups[(groups < 0) | (groups >= count)][0])
        raise files.fail(name, f"has the group {wrong}, expected 0 to {count - 1}")
    order = np.argsort(groups, kind="stable")
    expected = np.arange(columns) // size
    if not np.array_equal(groups[order], expected):
        sizes, meant = np.bincount(groups, minlength=count), np.bincount(expected, minlength=count)
        at = int(np.argmax(sizes != meant))
        raise files.fail(name, f"puts {int(sizes[at])} columns into group {at}, expected {int(meant[at])}")
    if np.array_equal(order, np.arange(columns)):
        return None
    if not may_move:
        raise files.fail(name, "moves columns between groups, but desc_act of the config is false")
    return order
