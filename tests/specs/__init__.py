"""One specification per op, from which cases of all tiers are drawn: a new op is one row here, in the file of its family.

CPU kernels (tests/kernels/test_specs.py), the card (tests/gpu/test_specs.py), emulated kernels (tests/emulator/corpus.py),
sources for nvcc and hipcc (tests/codegen/corpus.py) and random graphs (tests/generator.py) draw every form of every op.
tests/test_specs.py fails with the name of an op that has no row, or that one of them does not reach.
"""

from __future__ import annotations

from tests.specs import attention, conv, cumulative, elementwise, gemm, index, jagged, norm, reduce, scan, view
from tests.specs.spec import Spec

FAMILIES: dict[str, tuple[Spec, ...]] = {
    "elementwise": elementwise.SPECS,
    "norm": norm.SPECS,
    "reduce": reduce.SPECS,
    "cumulative": cumulative.SPECS,
    "view": view.SPECS,
    "index": index.SPECS,
    "jagged": jagged.SPECS,
    "gemm": gemm.SPECS,
    "conv": conv.SPECS,
    "attention": attention.SPECS,
    "scan": scan.SPECS,
}
SPECS: dict[str, Spec] = {spec.op: spec for family in FAMILIES.values() for spec in family}
"""By op, without `ait.`."""

NO_KERNEL = {
    "graph": "what holds ops",
    "output": "a name for a value",
    "param": "data of the model",
    "constant": "data of the model",
    "yield": "the end of a region",
}
"""Ops without a kernel, which every graph has."""
