"""Assumptions that an importer declares in a module, because some passes require them.

`builtin.module attributes {ait.assumes = ["framework_rounding", "finite_images"]}`. A pass does nothing if the
assumption that it requires is not declared, so a module written by hand keeps its exact meaning.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from ait_mlir.ir.pipeline import PassError

ATTRIBUTE = "ait.assumes"

ASSUMPTIONS: dict[str, str] = {
    "framework_rounding": "precision is measured by the framework's own error: a conversion to a narrower type that the"
    " framework does between two ops need not round",
    "finite_images": "what convolutions read is finite: a larger window may multiply any of it by zero",
    "finite_scores": "scores of attention are finite, and a mask leaves each row something to see",
}
"""The possible assumptions and their meanings."""


def assume(module: ModuleOp, *names: str) -> None:
    """Declare assumptions in a module."""
    assert set(names) <= set(ASSUMPTIONS)
    module.attributes[ATTRIBUTE] = ArrayAttr([StringAttr(name) for name in names])


def assumes(module: ModuleOp, name: str) -> bool:
    """Whether a module declares this assumption; `PassError` if it declares an unknown one."""
    found = module.attributes.get(ATTRIBUTE)
    if found is None:
        return False
    entries = cast("ArrayAttr[Attribute]", found).data if isinstance(found, ArrayAttr) else ()
    names = [entry.data for entry in entries if isinstance(entry, StringAttr)]
    if not isinstance(found, ArrayAttr) or len(names) != len(entries) or not set(names) <= set(ASSUMPTIONS):
        raise PassError(f"{ATTRIBUTE} is {found}; expected a list of {', '.join(map(repr, ASSUMPTIONS))}")
    return name in names
