"""Resampling along one dim by a matrix of weights, or by indices, of positions that the import computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Filter = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""The weight of an element by its distance from a position."""


def linear(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(1 - np.abs(distance), 0)


def cubic(a: float) -> Filter:
    """Keys' cubic (1981) with a parameter."""

    def weight(distance: NDArray[np.float64]) -> NDArray[np.float64]:
        d = np.abs(distance)
        near = ((a + 2) * d - (a + 3)) * d**2 + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))

    return weight


def weights(
    positions: NDArray[np.float64], own: int, weight: Filter, reach: int, scale: float, exclude_outside: bool
) -> NDArray[np.float64]:
    """The weights [size, own] of `own` elements at `size` positions. `reach` is the number of elements on each side
    that a position depends on; `scale` below 1 widens the filter. Elements outside are those at the border, or with
    `exclude_outside` count nothing.
    """
    width = int(np.ceil(reach / min(scale, 1.0)))
    made = np.zeros((len(positions), own))
    for row, position in enumerate(positions.tolist()):
        first = int(np.floor(position)) - width + 1
        taken = np.arange(first, first + 2 * width)
        parts = weight((taken - position) * min(scale, 1.0))
        if exclude_outside:
            parts = np.where((taken >= 0) & (taken < own), parts, 0)
        total = parts.sum()
        np.add.at(made[row], np.clip(taken, 0, own - 1), parts / total if total else parts)
    return made
