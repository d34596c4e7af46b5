"""GGUF: blocks of 32 and 256 numbers. The package `gguf` reads the file; scales and minima of K types have scales."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from ait_mlir.importers.checkpoints.errors import CheckpointError
from ait_mlir.importers.checkpoints.stored import Array, Scaled, StoredWeight, packed

PLAIN = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64"}
SMALL, LARGE = 32, 256
"""The numbers of a block: of the plain types, and of the K types."""


def read(path: Path) -> tuple[dict[str, StoredWeight], dict[str, Array], ModelNames | None]:
    """The quantised weights and the other tensors of a file, by GGUF's names, and those of a model's params."""
    try:
        from gguf import GGUFReader
    except ImportError:
        raise CheckpointError(f"{path}: reading GGUF needs the package gguf: pip install gguf") from None
    try:
        reader: Any = GGUFReader(path)
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, MemoryError, OSError) as error:
        raise CheckpointError(f"{path}: is no GGUF file, or a damaged one: {error}") from None
    weights: dict[str, StoredWeight] = {}
    plain: dict[str, Array] = {}
    for tensor in reader.tensors:
        kind, name = tensor.tensor_type.name, str(tensor.name)
        shape = tuple(int(n) for n in reversed(tensor.shape))
        if kind in PLAIN:
            plain[name] = _plain(tensor.data, PLAIN[kind], shape)
            continue
        if kind not in READ:
            raise CheckpointError(f"{path}: tensor {name!r} has type {kind}, expected one of {', '.join(READ)}")
        if len(shape) not in (2, 3):
            raise CheckpointError(f"{path}: tensor {name!r} has {len(shape)} dims, expected 2, or 3 of experts")
        block = LARGE if kind.endswith("_K") else SMALL
        rows = math.prod(shape[:-1])
        blocks = np.ascontiguousarray(tensor.data).view(np.uint8).reshape(rows, shape[-1] // block, -1)
        weights[name] = replace(READ[kind](blocks), lead=shape[:-1] if len(shape) == 3 else ())
        for part, numbers in weights[name].parts("").items():
            if numbers.dtype == np.float16 and not np.isfinite(numbers).all():
                where = [int(i) for i in np.argwhere(~np.isfinite(numbers))[0]]
                raise CheckpointError(f"{path}: tensor {name!r} has a {part[1:]} at {where} that is not finite")
    return weights, plain, ModelNames.of(reader, {**plain, **weights})


UNTURNED = {"qwen2", "qwen2moe", "qwen3", "qwen3moe", "phi3", "starcoder2", "stablelm"}
"""Architectures whose tensors are those of the model of `transformers`."""
TURNED = {"llama"}
"""Those whose heads of q and k have the two halves of each rotated pair side by side: 0, n / 2, 1, n / 2 + 1, ..."""
MOVED = {"gemma", "gemma2", "gemma3", "nemotron"}
"""Those whose weights of norms have 1 added."""


@dataclass(frozen=True)
class ModelNames:
    """The tensors of a file by the names of the params of the model of `transformers`, as its code has them.

    Rows of q and k of Llama are put back into the order of the model, norms of Gemma lose the 1 that was added, and
    experts are found one by one, or with the first and the second half of their first layer in one tensor.
    """

    architecture: str
    tensors: Mapping[str, StoredWeight | Array]
    names: Any
    """The table of the package `gguf`."""
    heads: Mapping[str, Any]
    """The number of heads by "q" and "k": one, or one for each block."""

    @classmethod
    def of(cls, reader: Any, tensors: Mapping[str, StoredWeight | Array]) -> ModelNames | None:
        """The names for the architecture of a file; None for one that is not known here."""
        from gguf import MODEL_ARCH_NAMES, get_tensor_name_map

        def number(key: str) -> Any:
            return reader.fields[key].contents() if key in reader.fields else None

        name = number("general.architecture")
        kinds = [kind for kind, text in MODEL_ARCH_NAMES.items() if text == name]
        blocks = number(f"{name}.block_count")
        if name not in UNTURNED | TURNED | MOVED or not kinds or not isinstance(blocks, int):
            return None
        queries = number(f"{name}.attention.head_count")
        heads = {"q": queries, "k": number(f"{name}.attention.head_count_kv") or queries}
        return cls(name, tensors, get_tensor_name_map(kinds[0], blocks), heads)

    def __call__(self, name: str) -> StoredWeight | Array | None:
        """The tensor of a param; None if the file has none."""
        if (expert := re.fullmatch(r"(.+\.experts)\.(\d+)\.(.+)", name)) is not None:
            found = self._named(f"{expert[1]}.{expert[3]}")
            number = int(expert[2])
            if not isinstance(found, StoredWeight):
                return None if found is None or number >= len(found) else found[number]
            count = found.scaled.shape[0] // found.shape[0]
            return found.with_rows(np.arange(number * count, (number + 1) * count)) if number < found.shape[0] else None
        return self._named(name)

    def _named(self, name: str) -> StoredWeight | Array | None:
        own = self.names.get_name(name, try_suffixes=(".weight", ".bias"))
        own = own if own is None or own.endswith((".weight", ".bias")) else f"{own}.weight"
        if own not in self.tensors and re.search(r"\.experts\.gate_up_proj(\.weight)?$", name):
            return self._joined(*(self._named(name.replace("gate_up", part)) for part in ("gate", "up")))
        if own is None:
            return None
        if own not in self.tensors and own == "output.weight":
            own = "token_embd.weight"  # tied
        found = self.tensors.get(own)
        if found is None:
            return None
        if self.architecture in MOVED and own.endswith("norm.weight") and not isinstance(found, StoredWeight):
            return found - np.asarray(1, found.dtype)
        turned = re.fullmatch(r"blk\.(\d+)\.attn_([qk])\.(weight|bias)", own)
        if self.architecture in TURNED and turned is not None:
            given: Any = self.heads[turned[2]]
            heads = cast("list[int]", given)[int(turned[1])] if isinstance(given, list) else int(given or 0)
            rows = found.shape[0]
            if not heads or rows % (2 * heads):
                raise CheckpointError(f"tensor {own!r} has {rows} rows, which {heads} heads do not share in pairs")
            order = np.arange(rows).reshape(heads, -1, 2).swapaxes(1, 2).reshape(-1)
            return found.with_rows(order) if isinstance(found, StoredWeight) else found[order]
        return found

    def _joined(self, a: StoredWeight | Array | None, b: StoredWeight | Array | None) -> StoredWeight | Array | None:
        """The rows of each expert of two tensors, one after the other."""
        if isinstance(a, StoredWeight) and isinstance(b, StoredWeight) and len(a.shape) == 3:
            return a.with_more(b)
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return np.concatenate([a, b], 1)
        return None


def _plain(data: Array, dtype: str, shape: tuple[int, ...]) -> Array:
    if dtype != "bfloat16":
        return data.reshape(shape)
    import ml_dtypes

    return np.ascontiguousarray(data).view(ml_dtypes.bfloat16).reshape(shape)


# ** parts of blocks: arrays [rows, blocks, bytes] **


def _halves(part: Array) -> Array:
    """f16 numbers, [rows, blocks]."""
    return np.ascontiguousarray(part).view(np.float16)[..., 0]


def _rows(numbers: Array) -> Array:
    """The numbers of all blocks of a row side by side."""
    return np.ascontiguousarray(numbers).reshape(numbers.shape[0], -1)


def _parts(data: Array, count: int, bits: int, run: int) -> Array:
    """Numbers of `bits`: byte i of a run of bytes has numbers i, i + run, i + 2 run, ..., the lowest bits first."""
    rows, blocks, _ = data.shape
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    found = data.reshape(rows, blocks, -1, 1, run) >> shifts & np.uint8(2**bits - 1)
    return found.reshape(rows, blocks, -1)[..., :count]


def _four(numbers: Array, element: str) -> tuple[str, int, Array]:
    """Numbers of 4 bits of all rows, packed."""
    found = _rows(numbers)
    return element, found.shape[1], packed(found)


def _eight(numbers: Array) -> tuple[str, int, Array]:
    """Signed numbers in bytes."""
    found = _rows(numbers.astype(np.int8))
    return "int8", found.shape[1], found


def _fifth(data: Array) -> Array:
    """Bits 0 to 31 of words of 4 bytes."""
    return np.unpackbits(np.ascontiguousarray(data), axis=-1, bitorder="little")


# ** types **


def _q4_0(b: Array) -> StoredWeight:
    numbers = _parts(b[..., 2:], SMALL, 4, 16)
    return StoredWeight("float32", Scaled(*_four(numbers ^ 8, "int4"), _halves(b[..., :2]), (1, SMALL)))


def _q4_1(b: Array) -> StoredWeight:
    numbers = _parts(b[..., 4:], SMALL, 4, 16)
    scaled = Scaled(*_four(numbers, "uint4"), _halves(b[..., :2]), (1, SMALL))
    return StoredWeight("float32", scaled, less=-_halves(b[..., 2:4]))


def _q5_0(b: Array) -> StoredWeight:
    numbers = _parts(b[..., 6:], SMALL, 4, 16) | _fifth(b[..., 2:6]) << np.uint8(4)
    return StoredWeight("float32", Scaled(*_eight(numbers.astype(np.int8) - 16), _halves(b[..., :2]), (1, SMALL)))


def _q5_1(b: Array) -> StoredWeight:
    numbers = _parts(b[..., 8:], SMALL, 4, 16) | _fifth(b[..., 4:8]) << np.uint8(4)
    scaled = Scaled(*_eight(numbers), _halves(b[..., :2]), (1, SMALL))
    return StoredWeight("float32", scaled, less=-_halves(b[..., 2:4]))


def _q8_0(b: Array) -> StoredWeight:
    numbers = np.ascontiguousarray(b[..., 2:]).view(np.int8)
    return StoredWeight("float32", Scaled(*_eight(numbers), _halves(b[..., :2]), (1, SMALL)))


def _k(
    numbers: tuple[str, int, Array],
    scales: Array,
    scale: Array,
    minima: Array | None = None,
    minimum: Array | None = None,
) -> StoredWeight:
    """A K type: groups of 16 or 32 numbers, whose scales and minima are numbers with a scale for each block of 256."""
    each = scales.shape[-1]

    def of(values: Array, unit: Array) -> Scaled:
        rows = _rows(values)
        return Scaled(rows.dtype.name, rows.shape[1], rows, _halves(unit), (1, each))

    less = None if minima is None or minimum is None else of(minima, minimum)
    return StoredWeight("float32", Scaled(*numbers, of(scales, scale), (1, LARGE // each)), less=less)


def _six_bits(b: Array) -> tuple[Array, Array]:
    """The 8 scales and the 8 minima of 6 bits in 12 bytes."""
    low, middle, high = b[..., :4], b[..., 4:8], b[..., 8:12]
    scales = np.concatenate([low & 63, high & 15 | low >> 2 & 48], -1)
    return scales, np.concatenate([middle & 63, high >> 4 | middle >> 2 & 48], -1)


def _q2_k(b: Array) -> StoredWeight:
    packed_scales, data = b[..., :16], _parts(b[..., 16:80], LARGE, 2, 32)
    return _k(_four(data, "uint4"), packed_scales & 15, b[..., 80:82], packed_scales >> 4, b[..., 82:84])


def _q3_k(b: Array) -> StoredWeight:
    high = _parts(b[..., :32], LARGE, 1, 32)
    numbers = _parts(b[..., 32:96], LARGE, 2, 32).astype(np.int8) - (4 * (1 - high.astype(np.int8)))
    low, top = b[..., 96:104], b[..., 104:108]
    scales = np.concatenate([low & 15, low >> 4], -1)
    scales = scales | np.concatenate([top >> shift & 3 for shift in (0, 2, 4, 6)], -1) << np.uint8(4)
    return _k(_four(numbers, "int4"), scales.astype(np.int8) - 32, b[..., 108:110])


def _q4_k(b: Array) -> StoredWeight:
    scales, minima = _six_bits(b[..., 4:16])
    return _k(_four(_parts(b[..., 16:], LARGE, 4, 32), "uint4"), scales, b[..., :2], minima, b[..., 2:4])


def _q5_k(b: Array) -> StoredWeight:
    scales, minima = _six_bits(b[..., 4:16])
    numbers = _parts(b[..., 48:], LARGE, 4, 32) | _parts(b[..., 16:48], LARGE, 1, 32) << np.uint8(4)
    return _k(_eight(numbers), scales, b[..., :2], minima, b[..., 2:4])


def _q6_k(b: Array) -> StoredWeight:
    numbers = _parts(b[..., :128], LARGE, 4, 64) | _parts(b[..., 128:192], LARGE, 2, 32) << np.uint8(4)
    scales = np.ascontiguousarray(b[..., 192:208]).view(np.int8)
    return _k(_eight(numbers.astype(np.int8) - 32), scales, b[..., 208:210])


READ: dict[str, Callable[[Array], StoredWeight]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q2_K": _q2_k,
    "Q3_K": _q3_k,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
