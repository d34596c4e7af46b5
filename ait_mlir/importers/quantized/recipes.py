"""Recipes: how weights, and what they are multiplied with, become numbers of few bits by rounding to the nearest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ait_mlir.errors import InputError
from ait_mlir.importers.checkpoints.stored import Array, Scaled, StoredWeight, packed


@dataclass(frozen=True)
class Recipe:
    """The bits of a weight and the size of its groups along a row, None for a scale for each row; whether the rows of
    the other factor are quantised in the run."""

    name: str
    bits: int
    group: int | None
    quantises_rows: bool = False

    def store(self, weight: Array) -> StoredWeight:
        """A weight [rows, columns], rounded to the nearest numbers; scales have the type of the weight.

        The largest magnitude of a group becomes the largest number, 127 or 7. A group of zeros has the scale 1.
        """
        rows, columns = weight.shape
        size, largest = self.group or columns, 2 ** (self.bits - 1) - 1
        groups = -(-columns // size)
        wide = np.zeros((rows, groups * size), np.float32)
        wide[:, :columns] = weight
        parts = wide.reshape(rows, groups, size)
        most = np.abs(parts).max(-1)
        scale = np.where(most > 0, most / largest, 1).astype(weight.dtype)
        scale = np.where(scale > 0, scale, np.asarray(1, weight.dtype))  # a subnormal that the type does not have
        numbers = np.rint(parts / scale.astype(np.float32)[..., None]).clip(-largest - 1, largest)
        numbers = numbers.astype(np.int8).reshape(rows, -1)[:, :columns]
        element, stored = ("int8", np.ascontiguousarray(numbers)) if self.bits == 8 else ("int4", packed(numbers))
        blocks = None if self.group is None else (1, size)
        return StoredWeight(weight.dtype.name, Scaled(element, columns, stored, scale, blocks))


RECIPES = {
    recipe.name: recipe for recipe in (Recipe("w8a8", 8, None, True), Recipe("w8a16", 8, None), Recipe("w4a16", 4, 128))
}
"""`w8a8`: i8 weights with a scale for each row, and rows of x quantised to i8 in the run. `w8a16`: the same weights,
floats for x. `w4a16`: i4 weights in groups of 128 along a row, floats for x."""


def recipe_named(name: str) -> Recipe:
    """The recipe of a name; `InputError` for another name."""
    if name not in RECIPES:
        raise InputError(f"there is no recipe {name!r}; expected one of {', '.join(RECIPES)}")
    return RECIPES[name]
