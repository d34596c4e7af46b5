"""Scatters with duplicates, and the sums that they must have to the last bit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.reference.core import storage_dtype
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


def places_ordered() -> Case:
    """The order of indices of 600 rows."""
    return Case(
        """ait.graph @g(%i: !ait.tensor<s x i64>) dims {s = 1 to 20000} {
          %k, %p = ait.order %i sizes [600] : !ait.tensor<s x i32>, !ait.tensor<s x i32>
          ait.output "k" %k : !ait.tensor<s x i32>
          ait.output "p" %p : !ait.tensor<s x i32>
        }"""
    )


def rows_combined(kind: str, t: str, width: int = 8) -> Case:
    """Rows combined with rows of a tensor in a given order."""
    x, order = f"!ait.tensor<600 x {width} x {t}>", "!ait.tensor<s x i32>"
    return Case(
        f"""ait.graph @g(%x: {x}, %v: !ait.tensor<s x {width} x {t}>, %i: !ait.tensor<s x 1 x i64>, %k: {order}, %p: {order})
          dims {{s = 1 to 20000}} {{
          %y = ait.scatter {kind} %x, %v at(%i) dims [0] kept [1] order %k, %p : {x}
          ait.output "y" %y : {x}
        }}"""
    )


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


def ordered_cases() -> dict[str, Case]:
    """An order, and scatters in an order: words and single elements, combined wider or not."""
    return {
        "order": places_ordered(),
        "add-f16": rows_combined("add", "f16"),
        "add-f32": rows_combined("add", "f32", 9),
        "set-i64": rows_combined("set", "i64", 1),
    }


def check_ordered(library: Library, order: Case, case: Case, counts: Iterable[int]) -> None:
    """That a scatter in the order of `order` gives the bits of one place after the other, also with indices outside."""
    rng = np.random.default_rng(11)
    whole, values = (tensor_type(v) for v in case.op.operands[:2])
    dtype = storage_dtype(whole.element_type)
    width = values.dims[1].as_int()
    assert width is not None
    for count in counts:
        for most in (1, 5, 600):
            x = (rng.normal(size=(600, width)) * 9).astype(dtype)
            v = (rng.normal(size=(count, width)) * 9).astype(dtype)
            i = rng.integers(-most, most, (count, 1))
            i[rng.integers(0, count, 3)] *= 1000  # some are outside
            keys, places = library.run(order, {"s": count}, [i[:, 0]])
            known = (i[:, 0] >= -600) & (i[:, 0] < 600)
            numbers = np.where(known, i[:, 0] % 600, 0)
            want = np.argsort(numbers, kind="stable")
            np.testing.assert_array_equal(keys, numbers[want])
            np.testing.assert_array_equal(places, np.where(known[want], want, want - 2**31))
            (got,) = library.run(case, {"s": count}, [x, v, i, keys, places])
            if dtype.kind == "f":
                np.testing.assert_array_equal(got, in_order(x, v, i, False))
                continue
            for at, row in zip(numbers[known], v[known], strict=True):
                x[at] = row
            np.testing.assert_array_equal(got, x)
