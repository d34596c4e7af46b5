"""Numbers of 4 or 8 bits in words of 32 bits."""

from __future__ import annotations

import numpy as np

from ait_mlir.importers.checkpoints.stored import Array, nibbles


def unpacked(words: Array, bits: int) -> Array:
    """The numbers of words of int32 along the last dim, as uint8, those in the lowest bits first."""
    data = np.ascontiguousarray(words).view(np.uint8)
    return nibbles(data) if bits == 4 else data


def in_rows(words: Array, bits: int, columns: int) -> Array:
    """The bytes of rows of words, without those behind the last column."""
    data = np.ascontiguousarray(words).view(np.uint8)
    return data[:, : -(-columns * bits // 8)]


def centred(data: Array, bits: int) -> tuple[str, Array]:
    """Numbers from 0, packed in bytes, as signed numbers around the middle of the range, with their element type."""
    if bits == 4:
        return "int4", data ^ np.uint8(0x88)
    return "int8", (data ^ np.uint8(0x80)).view(np.int8)
