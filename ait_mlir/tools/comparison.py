"""Compares outputs of a run with the reference, within errors that the run's rounding explains.

The reference computes in float64 without rounding. A run rounds every value that it stores, and may compute products of
f32 in a narrower type. So `Expected` has two evaluations: an exact one, and one that rounds each buffer to its element
type. Their distance shows how much rounding changes an output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from ait_mlir.dtypes import DTYPES
from ait_mlir.errors import AitError
from ait_mlir.tools.report import table

Array = npt.NDArray[Any]

TOLERANCE = {
    **{"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12},
    **{"float8_e4m3fn": 0.13, "float8_e5m2": 0.26, "float8_e8m0fnu": 1.0},
}
"""The tolerance by element type, relative to the largest magnitude of the expected output: of 8-bit floats the distance
of two neighbours. Integers and booleans must be equal."""
MARGIN = 2.0
"""The allowed error over the effect of rounding: a run sums in another order than the reference, so it rounds other
numbers."""
LARGEST = {row.name: row.largest for row in DTYPES if row.name in TOLERANCE}
"""The largest finite number of each float type."""


@dataclass(frozen=True)
class Expected:
    """The expected value of an output, with the data that decide how large its error may be."""

    exact: Array
    """The output in float64, without rounding."""
    stored: Array | None = None
    """The output of a program that rounds only the values that it stores; None if it is not known."""
    ceiling: float = 0.0
    """The tolerance of the narrowest type that the run stores: the most that rounding of stored values may allow."""
    operands: float = 0.0
    """The tolerance of the type to which operands of products are rounded; `stored` does not include this rounding."""


@dataclass(frozen=True)
class Errors:
    """The errors of an output: the largest and the root-mean-square error, the largest error over the largest magnitude
    (`relative`), and the limit of that (`allowed`).

    `misplaced` counts elements that are NaN or infinite and should not be, or the reverse.
    """

    largest: float
    relative: float
    rmse: float
    allowed: float
    misplaced: int

    @property
    def good(self) -> bool:
        return not self.misplaced and self.relative <= self.allowed

    def for_json(self) -> dict[str, float | None]:
        """The numbers by name, as JSON holds them, and whether they are good."""
        return for_json(asdict(self)) | {"good": self.good}


def for_json(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers by name, with None for NaN and infinities, for which JSON has no form."""
    return {name: number if isfinite(number) else None for name, number in numbers.items()}


def measure(got: Array, expected: Expected, tolerance: float | None = None) -> Errors:
    """The errors of an output, computed in float64.

    An element beyond the range of its type is expected to be infinite. An element that agrees with `stored` is right: a
    stored value that overflows, or is at the edge of a step, changes all results that depend on it. `tolerance`
    replaces the limit derived from rounding.
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
    """The largest change by rounding among elements that stay finite, relative to the largest magnitude."""
    both = np.isfinite(stored) & np.isfinite(held)
    return float(np.abs(stored[both] - held[both]).max()) / scale if scale and both.any() else 0.0


def _at_the_end(found: Array, exact: Array, dtype: np.dtype[Any], allowed: float) -> Array:
    """A mask of elements at the end of a float type's range: the exact value is near it, the found value at or
    beyond."""
    if dtype.name not in TOLERANCE:
        return np.zeros(found.shape, np.bool_)
    largest = LARGEST[dtype.name]
    near = np.isfinite(exact) & (np.abs(np.abs(exact) - largest) <= allowed * largest)
    return near & (np.sign(found) == np.sign(exact)) & (np.abs(found) >= largest * (1 - allowed))


def compare(
    outputs: Mapping[str, Array], expected: Mapping[str, Expected], tolerance: float | None
) -> dict[str, Errors]:
    """The errors of each expected output."""
    for name, want in expected.items():
        if (shape := outputs[name].shape) != want.exact.shape:
            raise AitError(f"output '{name}' has shape {list(shape)}, expected {list(want.exact.shape)}")
    return {name: measure(outputs[name], want, tolerance) for name, want in expected.items()}


def error_table(found: Mapping[str, Errors]) -> str:
    """A table of the errors of outputs."""
    rows = [["output", "max error", "over max", "rmse", "allowed", ""]]
    for name, errors in found.items():
        verdict = "ok" if errors.good else "WRONG: NaN or Inf in other places" if errors.misplaced else "WRONG"
        numbers = (errors.largest, errors.relative, errors.rmse, errors.allowed)
        rows.append([name, *(f"{number:.3g}" for number in numbers), verdict])
    return table(rows, right=(1, 2, 3, 4))
