"""Collectives: their forms, for `ait inspect --ops`. Several processes run them in tests/ranks."""

from __future__ import annotations

from collections.abc import Mapping

from tests.specs.spec import CONSUMERS, FLOATS, INTEGERS, Consumer, Spec, form
from tests.specs.tolerance import BITS

WITHOUT: Mapping[Consumer, str] = dict.fromkeys(CONSUMERS, "several processes run it, in tests/ranks")
DIMS = "b = 1 to 64, s = 1 to 64"
ENVS = ({"b": 3, "s": 5},)
NORM = ("b x 24 x T", "b x 24 x T", "24 x T")
"""The types of operands; the results have that of the first."""
OVER = 'over ["tp"] of <["tp"=2]>'


def spec(op: str, text: str, result: str) -> Spec:
    """The specification of a collective with one form."""
    types = (*FLOATS, *INTEGERS)
    return Spec(op, (form("one", text, "b x 24 x T", to=result),), BITS, DIMS, ENVS, ENVS, types, without=WITHOUT)


SPECS = (
    spec("all_reduce", f"all_reduce sum %a {OVER}", "b x 24 x T"),
    spec("all_gather", f"all_gather %a dim 1 {OVER}", "b x 48 x T"),
    spec("reduce_scatter", f"reduce_scatter sum %a dim 1 {OVER}", "b x 12 x T"),
    spec("all_to_all", f"all_to_all %a split 1 concat 0 {OVER}", "(2*b) x 12 x T"),
    spec("broadcast", f"broadcast %a root 0 {OVER}", "b x 24 x T"),
    spec("collective_permute", f"collective_permute %a [1 -> 0] {OVER}", "b x 24 x T"),
    spec("all_slice", f"all_slice %a dim 1 {OVER}", "b x 12 x T"),
    Spec(
        "reduced_norm",
        (
            form("rms", f"reduced_norm %a add %b scale %c axes 1 eps 1e-05 {OVER}", *NORM, to=NORM[:2]),
            form("layer", f"reduced_norm %a add %b axes 1 eps 1e-05 centred {OVER}", *NORM[:2], to=NORM[:2]),
        ),
        BITS,
        DIMS,
        ENVS,
        ENVS,
        FLOATS,
        without=WITHOUT,
    ),
)
