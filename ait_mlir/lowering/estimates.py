"""Estimated times of kernels, fitted to measurements on a card.

A kernel gives the terms of its time (`Kernel.terms`): seconds at rough rates, such as bytes over bandwidth. A fit has a
coefficient for each term. `benchmarks/fit.py` makes fits from times of random problems, and
`ait_mlir/timings/estimates/` has the package's tables of fits, one for each card. A target without a table uses the
estimates in the kernels' code (`Kernel.seconds`).
"""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ait_mlir import callers
from ait_mlir.errors import InputError

VERSION = 1
"""The version of the terms: tables of another version do not count."""
POWER = 4.0
"""The exponent of the norm that adds overlapping parts: two equal parts together count as 1.19 of one part."""
NONE = "none"
"""The value of `AIT_ESTIMATES` that means no table."""
FOLDER = Path(__file__).resolve().parent.parent / "timings" / "estimates"


@dataclass(frozen=True)
class Terms:
    """The parts of the time of a launch, by name, in seconds at rough rates.

    The parts in `first` run in sequence. The parts in `work` overlap, so the longest counts most. Each `kind` of a
    kernel, for example an element type, has its own coefficients.
    """

    first: Mapping[str, float]
    work: Mapping[str, float]
    kind: str = ""


@dataclass(frozen=True)
class Fit:
    """The coefficients of the terms of one kernel, and how well they fit: the root mean square of the logarithms of
    estimate over time, and the number of samples."""

    coefficients: Mapping[str, float]
    error: float = 0.0
    samples: int = 0

    def seconds(self, terms: Terms) -> float:
        """The estimated seconds of a launch with these terms. A term without a coefficient has the coefficient 1."""
        c = self.coefficients
        first = sum(c.get(name, 1.0) * value for name, value in terms.first.items())
        work = sum((c.get(name, 1.0) * value) ** POWER for name, value in terms.work.items())
        return first + work ** (1 / POWER)


@dataclass(frozen=True)
class Table:
    """The fits of one card, by kernel: `hopper gemm`, `cublaslt gemm f32`."""

    arch: str
    card: str
    fits: Mapping[str, Fit] = field(default_factory=dict[str, Fit])

    def fit(self, provider: str, name: str, kind: str = "") -> Fit | None:
        return self.fits.get(fit_name(provider, name, kind))


def fit_name(provider: str, name: str, kind: str) -> str:
    return f"{provider} {name} {kind}".rstrip()


def read_table(path: Path) -> Table:
    """Read a table; `InputError` if the file is no table. A table of another version has no fits."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        arch, card = data["arch"], data["setting"]["card"]
        if not isinstance(arch, str) or not isinstance(card, str):
            raise TypeError("arch and card must be strings")
        fits = {str(name): _fit(item) for name, item in data["fits"].items()} if data["version"] == VERSION else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{path} is no table of estimates: {what}; benchmarks/fit.py writes one") from error
    return Table(arch, card, fits)


def _fit(item: Any) -> Fit:
    found = cast(Mapping[str, Any], item)
    coefficients = {str(k): float(v) for k, v in found["coefficients"].items()}
    numbers = [*coefficients.values(), float(found["error"])]
    if not all(math.isfinite(n) and n >= 0 for n in numbers):
        raise ValueError(f"coefficients are numbers, 0 or more; found {min(numbers)}")
    return Fit(coefficients, float(found["error"]), int(found["samples"]))


def write_table(path: Path, table: Table, setting: Mapping[str, str], command: str) -> None:
    """Write a table as text, one kernel a line."""
    from ait_mlir.host.files import write_atomic

    head = {"arch": table.arch, "version": VERSION, "command": command, "setting": dict(setting)}
    lines = [
        f"  {json.dumps(name)}: "
        + json.dumps(
            {
                "coefficients": {k: float(f"{v:.4g}") for k, v in fit.coefficients.items()},
                "error": round(fit.error, 4),
                "samples": fit.samples,
            }
        )
        for name, fit in sorted(table.fits.items())
    ]
    text = json.dumps(head, indent=1)[:-2] + ',\n "fits": {\n' + ",\n".join(lines) + "\n }\n}\n"
    write_atomic(path, text.encode())


def table_for(arch: str) -> Table | None:
    """The table of an architecture: the file in `AIT_ESTIMATES` if it is set, else the package's; None if there is no
    table, or the variable is `none`.

    Raises `InputError` if the file in the variable is no table. A damaged table of the package is left out, with a
    warning.
    """
    return _table_for(arch, os.environ.get("AIT_ESTIMATES", ""))


@functools.cache
def _table_for(arch: str, named: str) -> Table | None:
    if named == NONE:
        return None
    if named:
        table = read_table(Path(named))
        return table if table.arch == arch else None
    for path in sorted(FOLDER.glob("*.json")):
        try:
            table = read_table(path)
        except InputError as error:
            callers.warn(f"kernels are chosen by the estimates without a table: {error}")
            continue
        if table.arch == arch:
            return table
    return None


# ** launches that cannot overlap their neighbours **

ALONE, ALONE_SHARE = 0.7e-6, 0.02
"""The extra cost in a model of a launch that cannot overlap its neighbours: seconds, and a share of its time in a chain
of such launches. Lower than most costs observed on an H200: 0.5 to 12 us for launches of 5 to 280 us."""


def in_a_model(seconds: float, alone: bool) -> float:
    """The seconds of a launch in a model: its time, plus the lost overlap if it is `alone`."""
    return seconds * (1 + ALONE_SHARE) + ALONE if alone else seconds
