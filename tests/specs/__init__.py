"""One specification per op, from which cases of all tiers are drawn: a new op is one row here, in the file of its family.

CPU kernels (tests/kernels/test_specs.py), the card (tests/gpu/test_specs.py), emulated kernels (tests/emulator/corpus.py),
sources for nvcc and hipcc (tests/codegen/corpus.py) and random graphs (tests/generator.py) draw every form of every op.
tests/test_specs.py fails with the name of an op that has no row, or that one of them does not reach.
"""

from __future__ import annotations

from ait_mlir import families
from tests.specs.spec import Consumer, Spec

NO_SPECS = ("data", "foreign")
"""Families whose ops hold data of the model, or call what others wrote."""
NAMES = tuple(name for name in families.FAMILIES if name not in NO_SPECS)
FAMILIES: dict[str, tuple[Spec, ...]] = {
    name: file.SPECS for name, file in zip(NAMES, families.modules(__name__, NAMES), strict=True)
}
ROWS: tuple[Spec, ...] = tuple(spec for family in FAMILIES.values() for spec in family)
"""An op may have several rows, of forms with other tolerances or types."""
SPECS: dict[str, Spec] = {spec.op: spec for spec in ROWS}
"""By op, without `ait.`."""


def keys_of(op: str, consumer: Consumer) -> set[tuple[str, str]]:
    """The forms that a consumer draws of an op, each with an element type."""
    return {(form.name, t) for spec in ROWS if spec.op == op for form, t in spec.keys(consumer)}
