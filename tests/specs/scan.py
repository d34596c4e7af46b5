"""Loops with carried values. What runs in a step is an op of its own, with a specification of its own."""

from __future__ import annotations

from tests.specs.spec import Spec, form
from tests.specs.tolerance import MAPS

STEP = "!ait.tensor<b x 8 x T>"
ARGUMENTS = f"^bb0(%now: {STEP}, %old: {STEP}, %same: !ait.tensor<8 x T>):"
SUM = f"%sum = ait.add %now, %old : {STEP} %half = ait.mul %sum, %same : {STEP} %new = ait.tanh %half : {STEP}"

SCAN = Spec(
    "scan",
    (
        form(
            "forward", f"scan %a init(%b) with(%c) dim 0 {{ {ARGUMENTS} {SUM} ait.yield %new, %sum : {STEP}, {STEP} }}",
            "s x b x 8 x T", "b x 8 x T", "8 x T", to=("b x 8 x T", "s x b x 8 x T"),
        ),
        form(
            "reverse", f"scan %a init(%b) with(%c) dim 1 reverse {{ {ARGUMENTS} {SUM} ait.yield %new : {STEP} }}",
            "b x s x 8 x T", "b x 8 x T", "8 x T", to="b x 8 x T",
        ),
        form(
            "swap", f"scan %a init(%b, %c) dim 0 {{ ^bb0(%now: {STEP}, %old: {STEP}, %older: {STEP}): "
            f"%new = ait.sub %now, %older : {STEP} ait.yield %new, %old, %older : {STEP}, {STEP}, {STEP} }}",
            "s x b x 8 x T", "b x 8 x T", "b x 8 x T", to=("b x 8 x T", "b x 8 x T", "s x b x 8 x T"),
        ),
    ),
    MAPS,
    "b = 0 to 9, s = 0 to 90",
    ({"b": 3, "s": 5},),
    ({"b": 3, "s": 5},),
    without={
        "cpu": "it is no launch: its steps are, and tests/e2e/test_scans.py runs them",
        "gpu": "it is no launch: its steps are, and tests/gpu/test_scans.py runs them",
        "cuda": "it is no launch: its steps are, each by a kernel of its own",
        "rocm": "it is no launch: its steps are, each by a kernel of its own",
    },
)  # fmt: skip

SPECS = (SCAN,)
