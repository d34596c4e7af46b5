"""Scatters with duplicates, and the sums that they must have to the last bit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ait_mlir.dialects.ait.types import tensor_type
from tests.kernels.harness import Case, Library


def rows_added(t: str) -> Case:
    """Rows of 8 added to rows of a tensor."""
    return Case(
        f"""ait.graph @g(%x: !ait.tensor<600 x 8 x {t}>, %v: !ait.tensor<s x 8 x {t}>, %i: !ait.tensor<s x 1 x i64>)
          dims {{s = 1 to 20000}} {{
          %y = ait.scatter add %x, %v at(%i) dims [0] kept [1] : !ait.tensor<600 x 8 x {t}>
          ait.output "y" %y : !ait.tensor<600 x 8 x {t}>
        }}""",
        kernel="scatter",
    )


def elements_added(t: str, size: int = 13, values: str = "s x") -> Case:
    """Elements, or one value, added to a vector."""
    x = f"!ait.tensor<{size} x {t}>"
    return Case(
        f"""ait.graph @g(%x: {x}, %v: !ait.tensor<{values} {t}>, %i: !ait.tensor<s x i64>) dims {{s = 1 to 200000}} {{
          %y = ait.scatter add %x, %v at(%i) dims [0] kept [] : {x}
          ait.output "y" %y : {x}
        }}"""
    )


def added_along(t: str, rows: int, width: int = 300) -> Case:
    """Elements added along rows, each row at its own places."""
    return Case(
        f"""ait.graph @g(%x: !ait.tensor<{rows} x {width} x {t}>, %v: !ait.tensor<{rows} x s x {t}>,
                     %i: !ait.tensor<{rows} x s x i64>) dims {{s = 1 to 20000}} {{
          %y = ait.scatter add %x, %v at(%i) dims [1] kept [0] : !ait.tensor<{rows} x {width} x {t}>
          ait.output "y" %y : !ait.tensor<{rows} x {width} x {t}>
        }}"""
    )


def in_order(x: np.ndarray, v: np.ndarray, i: np.ndarray, along: bool) -> np.ndarray:
    """Sums in f32, one place after the other, rounded once; what is outside is skipped."""
    sums = x.astype(np.float32)
    known = (i >= -x.shape[along]) & (i < x.shape[along])
    if along:
        for r in range(len(x)):
            np.add.at(sums[r], i[r][known[r]], v[r][known[r]].astype(np.float32))
    else:
        np.add.at(sums, i[known], v[known[:, 0]].astype(np.float32))
    return sums.astype(x.dtype)


Sums = tuple[Case, type[np.generic], int]
"""A case of `rows_added`, or of `added_along` with its number of rows; its element type; the rows or 0."""


def sums(many: int = 64) -> list[Sums]:
    return [
        (rows_added("f32"), np.float32, 0),
        (rows_added("f16"), np.float16, 0),
        (added_along("f32", 5), np.float32, 5),
        (added_along("f16", many), np.float16, many),
        (added_along("f32", many, 304), np.float32, many),
    ]


def check_order(
    library: Library, cases: Iterable[Sums], counts: Iterable[int], elements: Sequence[int] = (1, 5, 300)
) -> None:
    """That all of these numbers of places, in one element, few and many, some outside, are combined in order."""
    rng = np.random.default_rng(7)
    for case, dtype, rows in cases:
        for count in counts:
            for most in elements:
                x = rng.normal(size=[dim.as_int() for dim in tensor_type(case.op.operands[0]).dims]).astype(dtype)
                v = (rng.normal(size=(rows, count) if rows else (count, 8)) * 10).astype(dtype)
                i = rng.integers(-most, most, size=(rows, count) if rows else (count, 1))
                i[..., rng.integers(0, count, 3) % i.shape[-1]] *= 1000  # some are outside
                (got,) = library.run(case, {"s": count}, [x, v, i])
                np.testing.assert_array_equal(got, in_order(x, v, i, rows > 0))
