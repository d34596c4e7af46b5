"""Scatters with duplicates, and the sums that they must have to the last bit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ait_mlir.dialects.ait.scatter_loops import SegmentLoopsOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.reference.core import storage_dtype
from tests.kernels.harness import Case, Library


def rows_added(t: str) -> Case:
    """Rows of 8 added to rows of a tensor."""
    return Case(
        f"""ait.graph @g(%x: !ait.tensor<600 x 8 x {t}>, %v: !ait.tensor<s x 8 x {t}>, %i: !ait.tensor<s x 1 x i64>)
          dims {{s = 1 to 70000}} {{
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
                     %i: !ait.tensor<{rows} x s x i64>) dims {{s = 1 to 70000}} {{
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


def in_pieces(x: np.ndarray, v: np.ndarray, keys: np.ndarray, places: np.ndarray) -> np.ndarray:
    """As `in_order`, but with the places of a long segment in eight pieces, whose sums are added in their order."""
    count, rows = len(keys), len(x)
    most = 32 if rows < 1024 and count > 32 * rows else max(256, 8 * (count // rows))
    sums = x.astype(np.float32)
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    for begin, end in zip(begins, [*begins[1:], count], strict=True):
        each = end - begin if end - begin <= most else -(-(end - begin) // 8)
        for first in range(begin, end, each):
            piece = places[first : min(first + each, end)]
            taken = v[piece[piece >= 0]].astype(np.float32)
            if first == begin:
                sums[keys[begin]] = np.add.accumulate([sums[keys[begin]], *taken])[-1]
            elif len(taken):
                sums[keys[begin]] += np.add.accumulate(taken)[-1]
    return sums.astype(x.dtype)


def places_ordered(size: int = 600) -> Case:
    """The order of indices of so many rows."""
    return Case(
        f"""ait.graph @g(%i: !ait.tensor<s x i64>) dims {{s = 0 to 70000}} {{
          %k, %p = ait.order %i sizes [{size}] : !ait.tensor<s x i32>, !ait.tensor<s x i32>
          ait.output "k" %k : !ait.tensor<s x i32>
          ait.output "p" %p : !ait.tensor<s x i32>
        }}"""
    )


def run_order(library: Library, order: Case, size: int, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keys and places of indices of so many rows: equal keys in order, indices outside of the rows marked."""
    keys, places = library.run(order, {"s": len(i)}, [i])
    known = (i >= -size) & (i < size)
    numbers = np.where(known, i % size, 0)
    want = np.argsort(numbers, kind="stable")
    np.testing.assert_array_equal(keys, numbers[want])
    np.testing.assert_array_equal(places, np.where(known[want], want, want - 2**31))
    return keys, places


ORDERED_SIZES = (1, 200, 600, 70_000)
"""Rows whose numbers have 0, 8, 10 and 17 bits."""


def check_places(library: Library, orders: Mapping[int, Case], counts: Iterable[int]) -> None:
    """That places are ordered where all name one row, or each another one, or any, some none."""
    rng = np.random.default_rng(5)
    for size, order in orders.items():
        for count in counts:
            run_order(library, order, size, np.full(count, size - 1))
            run_order(library, order, size, rng.permutation(count))
            run_order(library, order, size, rng.integers(-size - size // 4 - 1, size + size // 4 + 1, count))


def rows_combined(kind: str, t: str, width: int = 8) -> Case:
    """Rows combined with rows of a tensor in a given order."""
    x, order = f"!ait.tensor<600 x {width} x {t}>", "!ait.tensor<s x i32>"
    return Case(
        f"""ait.graph @g(%x: {x}, %v: !ait.tensor<s x {width} x {t}>, %i: !ait.tensor<s x 1 x i64>, %k: {order}, %p: {order})
          dims {{s = 1 to 70000}} {{
          %y = ait.scatter {kind} %x, %v at(%i) dims [0] kept [1] order %k, %p : {x}
          ait.output "y" %y : {x}
        }}"""
    )


def rows_computed(kind: str, t: str, width: int = 8, op: str = "scatter_loops") -> Case:
    """Rows of a table, chosen by a second index and scaled, combined in a given order with rows of a tensor."""
    x, order, wide = f"!ait.tensor<600 x {width} x {t}>", "!ait.tensor<s x i32>", WIDE.get(t, t)
    table, ids, scale = f"!ait.tensor<50 x {width} x {t}>", "!ait.tensor<s x i64>", f"!ait.tensor<s x {t}>"
    return Case(
        f"""ait.graph @g(%x: {x}, %k: {order}, %p: {order}, %h: {table}, %f: {ids}, %w: {scale}) dims {{s = 1 to 70000}} {{
          %y = ait.{op} {kind} %x dims [0] kept [1] order %k, %p of(%h, %f, %w) for (d0 = s, d1 = {width}) {{
          ^bb0(%a: {table}, %b: {ids}, %c: {scale}):
            %0 = ait.at %b[d0] : i64
            %1 = ait.at %a[%0, d1] : {wide}
            %2 = ait.at %c[d0] : {wide}
            %3 = ait.mul %1, %2 : {wide}
            ait.yield %3 : {wide}
          }} : {x}
          ait.output "y" %y : {x}
        }}"""
    )


def rows_followed(t: str, to: str, width: int = 8) -> Case:
    """`rows_computed` with a result of its own, of which the larger of each element and a bias are stored."""
    of, out, bias = f"!ait.tensor<600 x {width} x {t}>", f"!ait.tensor<600 x {width} x {to}>", f"!ait.tensor<{width} x f32>"
    text = rows_computed("add", t, width, "segment_loops").text
    text = text.replace(f"%w: !ait.tensor<s x {t}>)", f"%w: !ait.tensor<s x {t}>, %m: {bias})").replace(
        f"}} : {of}\n",
        f"""}} then(%m) {{
          ^bb0(%s: {of}, %c: {bias}):
            %4 = ait.loops(%c, %s) for (e0 = 600, e1 = {width}) {{
            ^bb0(%5: {bias}, %6: {of}):
              %7 = ait.at %6[e0, e1] : f32
              %8 = ait.at %5[e1] : f32
              %9 = ait.max %7, %8 : f32
              ait.yield %9 : f32
            }} : {out}
            ait.yield %4 : {out}
          }} : {out}\n""",
    )
    return Case(text.replace(f'"y" %y : {of}', f'"y" %y : {out}'))


def columns_computed(rows: int, op: str = "scatter_loops") -> Case:
    """Numbers of places and columns combined with columns of a tensor, or with a vector where `rows` is 0."""
    size, loops = (f"{rows} x ", f"d0 = {rows}, d1 = s") if rows else ("", "d1 = s")
    x, order, value = f"!ait.tensor<{size}600 x f32>", "!ait.tensor<s x i32>", f"!ait.tensor<{size}s x f32>"
    return Case(
        f"""ait.graph @g(%x: {x}, %k: {order}, %p: {order}, %v: {value}) dims {{s = 1 to 70000}} {{
          %y = ait.{op} add %x dims [{int(rows > 0)}] kept {[0] * (rows > 0)} order %k, %p of(%v) for ({loops}) {{
          ^bb0(%a: {value}):
            %0 = ait.at %a[{"d0, " * (rows > 0)}d1] : f32
            %1 = ait.neg %0 : f32
            ait.yield %1 : f32
          }} : {x}
          ait.output "y" %y : {x}
        }}"""
    )


WIDE = {"f16": "f32"}
"""The types of scalars in a region, where they are others."""
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
        "computed-f16": rows_computed("add", "f16"),
        "computed-f32": rows_computed("add", "f32", 9),
        "computed-columns": columns_computed(3),
        "computed-vector": columns_computed(0),
        "segments-f16": rows_computed("add", "f16", op="segment_loops"),
        "segments-f32": rows_computed("add", "f32", 9, op="segment_loops"),
        "segments-wide": rows_computed("add", "f32", 152, op="segment_loops"),
        "segments-columns": columns_computed(3, "segment_loops"),
        "segments-lines": columns_computed(70, "segment_loops"),
        "segments-vector": columns_computed(0, "segment_loops"),
        "followed-f16": rows_followed("f16", "f32"),
        "followed-f32": rows_followed("f32", "f16", 9),
    }


def check_ordered(library: Library, order: Case, case: Case, counts: Iterable[int]) -> None:
    """That a scatter in the order of `order` gives the bits of one place after the other, or of the pieces of long
    segments, also with indices outside."""
    rng = np.random.default_rng(11)
    whole = tensor_type(case.op.operands[0])
    shape, dtype = [dim.as_int() or 0 for dim in whole.dims], storage_dtype(whole.element_type)
    for count in counts:
        for most in (1, 5, 600):
            x = (rng.normal(size=shape) * 9).astype(dtype)
            i = rng.integers(-most, most, count)
            i[rng.integers(0, count, 3)] *= 1000  # some are outside
            keys, places = run_order(library, order, 600, i)
            inputs, v = operands_of(case, rng, count, keys, places, i)
            if isinstance(case.op, SegmentLoopsOp) and case.op.following is not None:
                bias = rng.normal(size=shape[1]).astype(np.float32)
                (got,) = library.run(case, {"s": count}, [x, *inputs, bias])
                want = np.maximum(in_pieces(x.astype(np.float32), v, keys, places), bias)
                np.testing.assert_array_equal(got, want.astype(got.dtype))
                continue
            (got,) = library.run(case, {"s": count}, [x, *inputs])
            if shape[-1] == 600:  # the places are columns
                x, got, v = (np.moveaxis(a.reshape(-1, a.shape[-1]), 0, -1) for a in (x, got, v))
            if dtype.kind == "f":
                is_cut = isinstance(case.op, SegmentLoopsOp)
                want = in_pieces(x, v, keys, places) if is_cut else in_order(x, v, i[:, None], False)
                np.testing.assert_array_equal(got, want)
                continue
            known = (i >= -600) & (i < 600)
            for at, row in zip(i[known] % 600, v[known], strict=True):
                x[at] = row
            np.testing.assert_array_equal(got, x)


def operands_of(
    case: Case, rng: np.random.Generator, count: int, keys: np.ndarray, places: np.ndarray, i: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Data for the operands of a case behind the tensor, and the values that it combines with the tensor."""
    types = [tensor_type(v) for v in case.op.operands]
    dtype, shape = storage_dtype(types[0].element_type), [dim.evaluate({"s": count}) for dim in types[-1].dims]
    if len(types) == 5:
        v = (rng.normal(size=(count, types[0].dims[1].evaluate({}))) * 9).astype(dtype)
        return [v, i[:, None], keys, places], v
    if len(types) == 4:
        v = rng.normal(size=shape).astype(dtype)
        return [keys, places, v], -v
    table = rng.normal(size=(50, types[0].dims[1].evaluate({}))).astype(dtype)
    ids, scale = rng.integers(0, 50, count), rng.normal(size=count).astype(dtype)
    ids[rng.integers(0, count)] = 50  # outside
    v = (table[ids % 50].astype(np.float32) * scale[:, None].astype(np.float32)).astype(dtype)
    v[ids == 50] = np.nan
    return [keys, places, table, ids, scale], v
