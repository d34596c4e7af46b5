"""Sorts of which one result has no reader: the other one is right, and nothing is written to the first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ait_mlir.reference.core import storage_dtype
from tests.kernels.harness import Case, Library

ROWS = ("9 x 7", "5 x 70", "3 x 700", "2 x 3000", "2 x 9000")
"""Rows sorted in a lane or a few, by a warp, by a block, by several blocks."""


def sorts() -> list[Case]:
    """Each result of a sort is once the only one that is read; also of columns."""
    whole = [sort(shape, t, 1) for shape in ROWS for t in ("f16", "i32")]
    return read_in_part([*whole, sort("70 x 9", "f16", 0), sort("3000 x 40", "f16", 0)])


def selections() -> list[Case]:
    """By a warp, by a sort, and of parts of a row."""
    return read_in_part([topk(shape, k) for shape, k in (("5 x 70", 3), ("3 x 700", 600), ("2 x 40000", 5))])


def read_in_part(cases: list[Case]) -> list[Case]:
    return [replace(case, unread=(result,)) for case in cases for result in (1, 2)]


def sort(shape: str, t: str, dim: int) -> Case:
    values, places = f"!ait.tensor<{shape} x {t}>", f"!ait.tensor<{shape} x i64>"
    return one(f"ait.sort %x dim {dim}", values, values, places)


def topk(shape: str, k: int) -> Case:
    rows = shape.split()[0]
    values, places = (f"!ait.tensor<{rows} x {k} x {t}>" for t in ("f32", "i32"))
    return one(f"ait.topk %x k {k} dim 1 smallest", f"!ait.tensor<{shape} x f32>", values, places)


def one(op: str, x: str, values: str, places: str) -> Case:
    return Case(
        f"""ait.graph @g(%x: {x}) {{
          %v, %p = {op} : {values}, {places}
          ait.output "v" %v : {values}
          ait.output "p" %p : {places}
        }}"""
    )


def check_unread(library: Library, case: Case) -> None:
    """Elements that occur often, so that places show the order of equal ones."""
    ins, outs = case.args()
    shape = tuple(d.evaluate({}) for d in ins[0].type.dims)
    dim = 0 if "dim 0" in case.text else 1
    x = np.random.default_rng(0).integers(-20, 20, shape).astype(storage_dtype(ins[0].type.element_type))
    order = np.argsort(x, dim, kind="stable").take(range(outs[0].type.dims[dim].evaluate({})), dim)
    wanted = [np.take_along_axis(x, order, dim), order]
    found = library.run(case, {}, [x])
    (unread,) = case.unread
    np.testing.assert_array_equal(found[2 - unread], wanted[2 - unread])
    assert not np.array_equal(found[unread - 1], wanted[unread - 1]), "it was written"
    assert len(set(found[unread - 1].tobytes())) == 1, "a part was written"
