"""Rows of lengths that reach each form of the GPU templates: in registers, shared memory, and shared by several blocks."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from ait_mlir.lowering.toolchain import cpp_root
from tests.kernels.harness import Case, Library, assert_close, reference

DIMS = "dims {b = 0 to 64, s = 0 to 3000}"
ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 2, "s": 1537})


def softmax(shape: str, dim: int, t: str, **options: object) -> Case:
    return Case(
        f"ait.graph @g(%x: !ait.tensor<{shape} x {t}>) {DIMS} {{\n"
        f"  %y = ait.softmax %x dim {dim} : !ait.tensor<{shape} x {t}>\n"
        f'  ait.output "y" %y : !ait.tensor<{shape} x {t}>\n}}',
        ENVS,
        **options,  # type: ignore[arg-type]
    )


def layer_norm(
    shape: str,
    row: str,
    t: str,
    axes: int,
    factors: str = "scale %g bias %h",
    eps: str = "1e-05",
    op: str = "layer_norm",
    **options: object,
) -> Case:
    return Case(
        f"ait.graph @g(%x: !ait.tensor<{shape} x {t}>, %g: !ait.tensor<{row} x {t}>, %h: !ait.tensor<{row} x {t}>) {DIMS} {{\n"
        f"  %y = ait.{op} %x {factors} axes {axes} eps {eps} : !ait.tensor<{shape} x {t}>\n"
        f'  ait.output "y" %y : !ait.tensor<{shape} x {t}>\n}}',
        ENVS,
        **options,  # type: ignore[arg-type]
    )


def kept_sum(
    shape: str, row: str, t: str, factors: str = "scale %g bias %h", op: str = "layer_norm", **options: object
) -> Case:
    """norm(x + r), and the sum kept."""
    tensor, vector = f"!ait.tensor<{shape} x {t}>", f"!ait.tensor<{row} x {t}>"
    return Case(
        f"ait.graph @g(%x: {tensor}, %g: {vector}, %h: {vector}, %r: {tensor}) {DIMS} {{\n"
        f"  %y, %z = ait.{op} %x {factors} axes 1 eps 1e-05 prologue(%r) {{\n  ^bb0(%0: f32, %1: f32):\n"
        f"    %4 = ait.add %0, %1 : f32\n    ait.yield %4, %4 : f32, f32\n  }} : {tensor}, {tensor}\n"
        f'  ait.output "y" %y : {tensor}\n  ait.output "z" %z : {tensor}\n}}',
        ENVS[:1],
        **options,  # type: ignore[arg-type]
    )


def apart(stride: int, *positions: int) -> dict[int, tuple[str, str]]:
    """The strides of operands and results whose rows are so many elements apart."""
    return {i: (str(stride), "1") for i in positions}


RING = {
    "ring-warp-norm-f16": layer_norm("130 x 2065", "2065", "f16", 1, strides=apart(2068, 0, 3), offset=3),
    "ring-warp-rms-bf16": layer_norm("150 x 2072", "2072", "bf16", 1, "scale %g", op="rms_norm"),
    "ring-warp-norm-f32": layer_norm("128 x 1030", "1030", "f32", 1, "bias %h", strides=apart(1034, 0, 2)),
    "ring-few-warps-norm-f16": layer_norm("66 x 5200", "5200", "f16", 1, "scale %g"),
    "ring-block-norm-f16": layer_norm("11 x 9000", "9000", "f16", 1),
    "ring-block-rms-f16": layer_norm(
        "9 x 9003", "9003", "f16", 1, "scale %g", op="rms_norm", strides=apart(9004, 0, 2), offset=1
    ),
    "ring-four-norm-f16": kept_sum("5 x 65536", "65536", "f16"),
    "ring-four-rms-bf16": layer_norm("4 x 131072", "131072", "bf16", 1, "scale %g", op="rms_norm"),
    "bulk-kept-norm-bf16": layer_norm("7 x 50257", "50257", "bf16", 1, strides=apart(50264, 0, 3)),
    "bulk-kept-norm-f32": layer_norm("9 x 17001", "17001", "f32", 1, "bias %h", strides=apart(17004, 0, 2), offset=1),
    "bulk-aligned-norm-f16": layer_norm("5 x 32768", "32768", "f16", 1),
    "bulk-norm-f16": kept_sum("9 x 26003", "26003", "f16", strides=apart(26008, 0, 3, 4, 5), offset=1),
    "bulk-rms-bf16": layer_norm(
        "9 x 50257", "50257", "bf16", 1, "scale %g", op="rms_norm", strides=apart(50258, 0, 2), offset=1
    ),
    "bulk-long-norm-f16": kept_sum("5 x 50257", "50257", "f16", strides=apart(50260, 0, 3, 4, 5), offset=3),
    "bulk-long-rms-bf16": kept_sum(
        "7 x 50257", "50257", "bf16", "scale %g", op="rms_norm", strides=apart(50260, 0, 2, 3, 4), offset=6
    ),
    "bulk-softmax-f16": softmax("5 x 120001", 1, "f16", strides=apart(120008, 0, 1)),
    "split-softmax-bf16": softmax("3 x 65536", 1, "bf16"),
    "split-softmax-f16": softmax("2 x 60000", 1, "f16", strides=apart(60008, 0, 1)),
    "split-softmax-f32": softmax("1 x 32764", 1, "f32", strides=apart(32772, 1)),
}  # rows that pass through the shared memory of a warp, a block or four blocks, by bulk copies of two, or that four have: on 4 multiprocessors


def filling_threads() -> int:
    """Threads a multiprocessor, with a chunk of 16 bytes each, up to which rows are few."""
    found = re.search(r"kFillingThreads = (\d+);", (cpp_root() / "include/ait/kernels/gpu/row.cuh").read_text())
    assert found is not None
    return int(found[1])


def most_of_few(length: int, t: str, multiprocessors: int) -> int:
    """The most rows that are few: that have one chunk a lane on so many multiprocessors."""
    return multiprocessors * filling_threads() // (length * {"f16": 2, "bf16": 2, "f32": 4}[t] // 16)


def short(multiprocessors: int) -> dict[str, Case]:
    """Rows of 5 to 64 chunks, few and many of them for so many multiprocessors: with one and two chunks a lane."""
    makes = {
        "softmax": lambda rows, n, t: softmax(f"{rows} x {n}", 1, t),
        "norm": lambda rows, n, t: layer_norm(f"{rows} x {n}", f"{n}", t, 1),
        "rms": lambda rows, n, t: layer_norm(f"{rows} x {n}", f"{n}", t, 1, "scale %g", op="rms_norm"),
        "sum": lambda rows, n, t: kept_sum(f"{rows} x {n}", f"{n}", t),
    }
    one = ENVS[:1]
    cases: dict[str, Case] = {}
    for i, n in enumerate((40, 64, 96, 128, 200, 256)):
        for j, (name, make) in enumerate(makes.items()):
            t = ("f16", "bf16", "f32")[(i + j) % 3]
            for many, rows in (("few", 9), ("many", most_of_few(n, t, multiprocessors) + 1)):
                cases[f"{many}-{name}-{n}-{t}"] = replace(make(rows, n, t), envs=one)
    for n, t in ((41, "f16"), (97, "bf16"), (201, "f16")):
        rows = most_of_few(n, t, multiprocessors) + 1
        cases[f"odd-softmax-{n}-{t}"] = replace(softmax(f"{rows} x {n}", 1, t), envs=one)
        norm = layer_norm(f"{rows} x {n}", f"{n}", t, 1, strides=apart(n + 2, 0, 3), offset=1)
        cases[f"odd-norm-{n}-{t}"] = replace(norm, envs=one)
    rows = most_of_few(40, "f16", multiprocessors) + 1
    lengths = [{"b": 3, "s": s} for s in (40, 64, 72, 128, 136, 256, 264)]
    cases["many-dynamic-f16"] = replace(softmax(f"{rows} x s", 1, "f16"), envs=lengths)
    cases["few-dynamic-f16"] = replace(softmax("b x s", 1, "f16"), envs=lengths)
    return cases


def check_special_long_rows(library: Library, case: Case, shape: tuple[int, int]) -> None:
    """Rows with the special values of `check_special_rows` anywhere."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    x[0] = -np.inf
    x[1, :-1] = -np.inf
    x[2, 1:] = -np.inf
    for row, (at, value) in enumerate([(5, np.inf), (-1, np.inf), (0, np.nan), (1900, np.nan)], 3):
        x[row, at] = value
    x[8, :1500] = -np.inf
    x[9, ::2] = 60000
    x[10] = -60000
    (got,) = library.run(case, {"b": 1, "s": 1}, [x])
    (want,) = reference(case, {"b": 1, "s": 1}, [x.astype(got.dtype)])
    assert_close(got, want, ulps=0.6, floor=1e-6)
