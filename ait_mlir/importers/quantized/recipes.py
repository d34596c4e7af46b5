"""Recipes: how weights, and what they are multiplied with, become numbers of few bits by rounding to the nearest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ait_mlir.compositions.quantize import SMALLEST
from ait_mlir.dialects.ait.dtypes import BY_NAME, LARGEST, integer_range
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.errors import InputError
from ait_mlir.importers.checkpoints.stored import Activations, Array, Scaled, StoredWeight, packed


@dataclass(frozen=True)
class Recipe:
    """How the weights of a model are stored, and how the activations that they are multiplied with are rounded."""

    name: str
    element: str
    """The type of the stored numbers of a weight: "int4", "int8" or "float8_e4m3fn"."""
    blocks: tuple[int, int | None] = (1, None)
    """The rows and columns of a weight that share a scale; None is a whole row."""
    activations: Activations | None = None
    """How the other factor of a linear layer is rounded; None leaves floats."""
    convolves: bool = True
    """Whether convolutions are quantised, too."""
    attends: bool = False
    """Whether q, k and v of attention become numbers of the type of the weights, with one scale for the three."""

    @property
    def largest(self) -> float:
        """The number that the largest magnitude of a block becomes."""
        kind = BY_NAME[self.element].ir
        return LARGEST.get(kind) or float((integer_range(kind) or (0, 1))[1])

    def store(self, weight: Array) -> StoredWeight:
        """A weight [rows, columns], rounded to the nearest numbers.

        The largest magnitude of a block becomes the largest number: 127, 7 or 448. A block of zeros has the scale 1.
        Scales have the type of the weight, those of 8-bit floats f32.
        """
        (rows, columns), is_float = weight.shape, self.element.startswith("float")
        size = self.blocks[0], self.blocks[1] or columns
        counts = -(-rows // size[0]), -(-columns // size[1])
        wide = np.zeros((counts[0] * size[0], counts[1] * size[1]), np.float32)
        wide[:rows, :columns] = weight
        parts = wide.reshape(counts[0], size[0], counts[1], size[1])
        most = np.abs(parts).max((1, 3))
        dtype = np.dtype(np.float32) if is_float else weight.dtype
        scale = np.where(most > 0, most / self.largest, 1).astype(dtype)
        if is_float:
            scale = np.maximum(scale, np.float32(SMALLEST))
        scale = np.where(scale > 0, scale, np.asarray(1, dtype))  # a subnormal that the type does not have
        quotients = parts / scale.astype(np.float32)[:, None, :, None]
        numbers = np.ascontiguousarray(quotients.reshape(wide.shape)[:rows, :columns])
        if is_float:
            stored = numbers.clip(-self.largest, self.largest).astype(numpy_dtype(self.element))
        else:
            whole = np.rint(numbers).clip(-self.largest - 1, self.largest).astype(np.int8)
            stored = packed(whole) if self.element == "int4" else whole
        blocks = None if self.blocks == (1, None) else size
        return StoredWeight(weight.dtype.name, Scaled(self.element, columns, stored, scale, blocks))


FLOAT8 = "float8_e4m3fn"
STATIC = Activations(FLOAT8, is_static=True)
RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("w8a8", "int8", activations=Activations("int8")),
        Recipe("w8a16", "int8"),
        Recipe("w4a16", "int4", (1, 128)),
        Recipe("fp8", FLOAT8, activations=Activations(FLOAT8), convolves=False),
        Recipe("fp8-static", FLOAT8, activations=STATIC, convolves=False),
        Recipe("fp8-static-attention", FLOAT8, activations=STATIC, convolves=False, attends=True),
        Recipe("fp8-block", FLOAT8, (128, 128), Activations(FLOAT8, 128), convolves=False),
    )
}
"""`w8a8`: i8 weights with a scale for each row, and rows of x quantised to i8 in the run. `w8a16`: the same weights,
floats for x. `w4a16`: i4 weights in groups of 128 along a row, floats for x. `fp8`: weights of 8-bit floats with a
scale for each row, and rows of x quantised in the run. `fp8-static`: one scale for x in all runs, from the examples.
`fp8-static-attention`: the same, and q, k and v of attention in 8-bit floats, with one scale in all runs. `fp8-block`:
scales for blocks of 128 x 128 of the weights and for groups of 128 along the rows of x."""


def recipe_named(name: str) -> Recipe:
    """The recipe of a name; `InputError` for another name."""
    if name not in RECIPES:
        raise InputError(f"there is no recipe {name!r}; expected one of {', '.join(RECIPES)}")
    return RECIPES[name]
