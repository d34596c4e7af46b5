"""Scatters in an order, of values that a region computes."""

from __future__ import annotations

from tests.specs.spec import Spec, form
from tests.specs.tolerance import SUMS

SPECS = tuple(
    Spec(
        name,
        tuple(
            form(
                f"{kind}{of}", f"{name} {kind} %a dims [0] kept [1] order %b, %c of(%d, %e) for (d0 = s, d1 = {width}) "
                f"{{ ^bb0(%p: !ait.tensor<100 x {width} x T>, %q: !ait.tensor<s x i64>): %i = ait.at %q[d0] : i64 "
                "%v = ait.at %p[%i, d1] : S %n = ait.neg %v : S ait.yield %n : S }",
                f"11 x {width} x T", "s x i32", "s x i32", f"100 x {width} x T", "s x i64", below={1: 1, 2: 1, 4: 100},
                strides={3: ("40", "1"), 4: ("2",)} if of == "-views" else {},
            )
            for kind, of, width in (("add", "", 24), ("max", "", 24), ("set", "-odd", 5), ("add", "-views", 24))
        ),
        SUMS, "s = 1 to 3000", ({"s": 5}, {"s": 1}, {"s": 131}), ({"s": 5}, {"s": 70}),
        without={
            "cpu": "only GPUs compute the values of a scatter where they are combined",
            "graphs": "keys and places must fit, which random inputs do not",
        },
    )
    for name in ("scatter_loops", "segment_loops")
)  # fmt: skip
"""Of one element and one place alone, so that the rounding errors of a sum add up: tests/kernels/scatter.py has longer
sums, and other orders."""
