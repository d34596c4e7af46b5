"""How far outputs of a run may be from the reference, by what the run rounds.

The reference computes in float64 and rounds nothing. A run rounds whatever it stores, and may compute products of f32
in a narrower type. `Expected` therefore has two evaluations: the exact one, and one that rounds each buffer to its
element type. Their distance says how much rounding changes an output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ait_mlir.dtypes import DTYPES
from ait_mlir.errors import AitError
from ait_mlir.tools.report import table

Array = npt.NDArray[Any]

TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12}
"""Of the largest magnitude of the expected output, for results of a type; integers and booleans must be equal."""
MARGIN = 2.0
"""A run sums in another order than the reference, and then rounds other numbers: its error may be that much larger."""
LARGEST = {row.name: row.largest for row in DTYPES if row.name in TOLERANCE}
"""The largest finite number of each float type."""


@dataclass(frozen=True)
class Expected:
    """What an output should be."""

    exact: Array
    """In float64, where nothing is rounded."""
    stored: Array | None = None
    """As a program gives it that rounds what it stores, and nothing else; None if that is not known."""
    ceiling: float = 0.0
    """The tolerance of the narrowest type that the run stores; rounding what it stores never allows more."""
    operands: float = 0.0
    """The tolerance of the type that operands of products are rounded to, of which `stored` says nothing."""


@dataclass(frozen=True)
class Errors:
    """How far an output is from what was expected: largest and root-mean-square error, the largest over the largest
    magnitude, and how much that may be.

    `misplaced` counts elements that are NaN or infinite where they should not be, or the reverse.
    """

    largest: float
    relative: float
    rmse: float
    allowed: float
    misplaced: int

    @property
    def good(self) -> bool:
        return not self.misplaced and self.relative <= self.allowed


def measure(got: Array, expected: Expected, tolerance: float | None = None) -> Errors:
    """Compare in float64.

    An element beyond the range of its type is expected to be infinite. An element that agrees with `stored` is right:
    where the run stores a value that overflows, or is at the edge of a step, that decides the rest. `tolerance` takes
    the place of the limit that follows from the rounding.
    """
    base = TOLERANCE.get(got.dtype.name, 0.0)
    found, exact = got.astype(np.float64), expected.exact.astype(np.float64)
    with np.errstate(all="ignore"):
        held = exact.astype(got.dtype).astype(np.float64) if base else exact
        stored = held if expected.stored is None else expected.stored.astype(np.float64)
        finite = np.isfinite(found) & np.isfinite(held)
        scale = float(np.abs(held[finite]).max()) if finite.any() else 0.0
        allowed = max(base, expected.operands, min(MARGIN * _spread(stored, held, scale), expected.ceiling))
        allowed = allowed if tolerance is None else tolerance
        same = (found == held) | (np.isnan(found) & np.isnan(held))
        as_stored = (found == stored) | (np.isnan(found) & np.isnan(stored)) | (np.abs(found - stored) <= base * scale)
        misplaced = ~finite & ~same & ~as_stored & ~_at_the_end(found, exact, got.dtype, allowed)
        error = np.abs(found - held)
        error = error[finite & ~(as_stored & (error > allowed * scale))]
    largest = float(error.max()) if error.size else 0.0
    relative = largest / scale if scale else (0.0 if largest == 0 else float("inf"))
    rmse = float(np.sqrt((error**2).mean())) if error.size else 0.0
    return Errors(largest, relative, rmse, allowed, int(misplaced.sum()))


def _spread(stored: Array, held: Array, scale: float) -> float:
    """How much rounding changes the elements that it leaves finite, over the largest magnitude."""
    both = np.isfinite(stored) & np.isfinite(held)
    return float(np.abs(stored[both] - held[both]).max()) / scale if scale and both.any() else 0.0


def _at_the_end(found: Array, exact: Array, dtype: np.dtype[Any], allowed: float) -> Array:
    """Elements near the end of the range of a float type, on the other side of it than the exact ones."""
    if dtype.name not in TOLERANCE:
        return np.zeros(found.shape, np.bool_)
    largest = LARGEST[dtype.name]
    near = np.isfinite(exact) & (np.abs(np.abs(exact) - largest) <= allowed * largest)
    return near & (np.sign(found) == np.sign(exact)) & (np.abs(found) >= largest * (1 - allowed))


def compare(outputs: Mapping[str, Array], expected: Mapping[str, Expected], tolerance: float | None) -> int:
    """Print the errors of each output; returns 1 when one is larger than allowed, else 0."""
    rows = [["output", "max error", "over max", "rmse", "allowed", ""]]
    failed = False
    for name, want in expected.items():
        got = outputs[name]
        if got.shape != want.exact.shape:
            raise AitError(f"output '{name}' has shape {list(got.shape)}, expected {list(want.exact.shape)}")
        errors = measure(got, want, tolerance)
        failed |= not errors.good
        told = "ok" if errors.good else "WRONG: NaN or Inf in other places" if errors.misplaced else "WRONG"
        numbers = (errors.largest, errors.relative, errors.rmse, errors.allowed)
        rows.append([name, *(f"{number:.3g}" for number in numbers), told])
    print(table(rows, right=(1, 2, 3, 4)))
    return int(failed)
