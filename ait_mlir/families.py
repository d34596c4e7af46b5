"""The families of ops, by name: each part of the compiler has a module of that name for the family.

`dialects/ait/NAME.py` declares the ops and `reference/NAME.py` says what they mean. `lowering/kernels/NAME.py` and
`importers/torch/rows/NAME.py` follow where a family has kernels or operations of PyTorch. A new family is one row here.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

FAMILIES = (
    "data",
    "detection",
    "elementwise",
    "quantize",
    "gemm",
    "grouped",
    "conv",
    "pad",
    "pool",
    "resize",
    "norm",
    "reduce",
    "cumulative",
    "sorting",
    "view",
    "index",
    "jagged",
    "attention",
    "collective",
    "scan",
    "recurrence",
    "loops",
    "scatter_loops",
    "foreign",
)


def modules(package: str, names: Iterable[str] = FAMILIES) -> tuple[ModuleType, ...]:
    """The modules of a package by name, in this order; `ValueError` for a name that stands twice or has no module."""
    listed = list(names)
    if twice := sorted({name for name in listed if listed.count(name) > 1}):
        raise ValueError(f"{package} lists {', '.join(twice)} twice; remove one")
    found: list[ModuleType] = []
    for name in listed:
        try:
            found.append(import_module(f"{package}.{name}"))
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{name}":
                raise
            raise ValueError(f"the table of families lists {name!r}, but there is no module {package}.{name}") from None
    return tuple(found)
