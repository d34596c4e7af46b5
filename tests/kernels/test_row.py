"""Softmax and norms on the CPU: every dim, prologues, strides, odd sizes, large means, special values."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import cpp_root
from tests.kernels.harness import Case, Library, assert_close, check, random_inputs, reference, ulp

FLOATS = ("f16", "bf16", "f32", "f64")
DIMS = "dims {b = 0 to 64, s = 0 to 3000}"
ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 2, "s": 1537})
ULPS = {"f16": 0.6, "bf16": 0.51, "f32": 16, "f64": 64}


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


def with_prologue(operand: str, axes: int, t: str, op: str = "layer_norm", **options: object) -> Case:
    """norm(x + 2 r), and the sum kept."""
    scalar = t if t == "f64" else "f32"
    row = {1: "24", 2: "s x 24"}[axes]
    tensor = f"!ait.tensor<b x s x 24 x {t}>"
    return Case(
        f"ait.graph @g(%x: {tensor}, %g: !ait.tensor<{row} x {t}>, %h: !ait.tensor<{row} x {t}>, %r: !ait.tensor<{operand} x {t}>) {DIMS} {{\n"
        f"  %y, %z = ait.{op} %x scale %g bias %h axes {axes} eps 1e-05 prologue(%r) {{\n"
        f"  ^bb0(%0: {scalar}, %1: {scalar}):\n"
        f"    %2 = ait.constant 2.0 : {scalar}\n    %3 = ait.mul %1, %2 : {scalar}\n    %4 = ait.add %0, %3 : {scalar}\n"
        f"    ait.yield %4, %4 : {scalar}, {scalar}\n  }} : {tensor}, {tensor}\n"
        f'  ait.output "y" %y : {tensor}\n  ait.output "z" %z : {tensor}\n}}',
        [{"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 4}, {"b": 2, "s": 131}],
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


SOFTMAX = {
    f"{name}-{t}": make(t)
    for t in FLOATS
    for name, make in (
        ("last", lambda t: softmax("b x s", 1, t)),
        ("vector", lambda t: softmax("s", 0, t)),
        ("middle", lambda t: softmax("b x s x 9", 1, t)),
        ("first", lambda t: softmax("s x b", 0, t)),
        ("one", lambda t: softmax("b x s x 1", 1, t)),
        ("view", lambda t: softmax("b x s", 1, t, strides={0: ("s + 8", "1"), 1: ("2*s", "1")}, offset=1)),
    )
}
NORM = {
    f"{name}-{t}": make(t)
    for t in FLOATS
    for name, make in (
        ("both", lambda t: layer_norm("b x s x 24", "24", t, 1)),
        ("dynamic", lambda t: layer_norm("b x s", "s", t, 1)),
        ("two-axes", lambda t: layer_norm("b x s x 6", "s x 6", t, 2)),
        ("all-axes", lambda t: layer_norm("s x 6", "s x 6", t, 2)),
        ("scale", lambda t: layer_norm("b x 77", "77", t, 1, "scale %g")),
        ("bias", lambda t: layer_norm("b x 77", "77", t, 1, "bias %h")),
        ("plain", lambda t: layer_norm("b x 77", "77", t, 1, "")),
        ("rms", lambda t: layer_norm("b x s x 24", "24", t, 1, "scale %g", op="rms_norm")),
        ("rms-dynamic", lambda t: layer_norm("b x s", "s", t, 1, "scale %g", op="rms_norm")),
        ("rms-two-axes", lambda t: layer_norm("b x s x 6", "s x 6", t, 2, op="rms_norm")),
        ("rms-plain", lambda t: layer_norm("b x 77", "77", t, 1, "", op="rms_norm")),
        (
            "view",
            lambda t: layer_norm(
                "b x s x 24", "24", t, 1, strides={0: ("s*40", "40", "1"), 3: ("s*24", "24", "1")}, offset=1
            ),
        ),
    )
}
PROLOGUE = {
    f"{name}-{t}": make(t)
    for t in FLOATS
    for name, make in (
        ("residual", lambda t: with_prologue("b x s x 24", 1, t)),
        ("rms-residual", lambda t: with_prologue("b x s x 24", 1, t, "rms_norm")),
        ("rms-two-axes", lambda t: with_prologue("24", 2, t, "rms_norm")),
        ("row-bias", lambda t: with_prologue("24", 1, t)),
        ("column", lambda t: with_prologue("s x 1", 1, t)),
        ("two-axes", lambda t: with_prologue("b x s x 24", 2, t)),
        ("two-axes-broadcast", lambda t: with_prologue("24", 2, t)),
        ("two-axes-column", lambda t: with_prologue("b x s x 1", 2, t, offset=1)),
    )
}
ALL = [*SOFTMAX.values(), *NORM.values(), *PROLOGUE.values()]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(ALL, tmp_path_factory.mktemp("row"))


@pytest.mark.parametrize("key", SOFTMAX)
def test_softmax(library: Library, key: str) -> None:
    check(library, SOFTMAX[key], ULPS[key.rpartition("-")[2]])


@pytest.mark.parametrize("key", NORM)
def test_layer_norm(library: Library, key: str) -> None:
    t = key.rpartition("-")[2]
    check(library, NORM[key], ULPS[t], floor={"f64": 1e-14}.get(t, 1e-6))


@pytest.mark.parametrize("key", PROLOGUE)
def test_prologue(library: Library, key: str) -> None:
    t = key.rpartition("-")[2]
    check(library, PROLOGUE[key], ULPS[t], floor={"f64": 1e-14}.get(t, 1e-6))


def test_large_means_lose_nothing(library: Library) -> None:
    check_large_means(library)


def check_large_means(library: Library) -> None:
    case, env = NORM["dynamic-f32"], {"b": 2, "s": 1000}
    x = (np.random.default_rng(0).standard_normal((2, 1000)) + 30000).astype(np.float32)
    ones, zeros = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    (got,) = library.run(case, env, [x, ones, zeros])
    (want,) = reference(case, env, [x, ones, zeros])
    assert np.abs(got - want).max() < 1e-6


def test_constant_rows_normalise_to_the_bias(library: Library) -> None:
    case, env = NORM["dynamic-f32"], {"b": 2, "s": 333}
    x = np.full((2, 333), 12345.678, np.float32)
    (got,) = library.run(case, env, [x, np.ones(333), np.full(333, 0.25)])
    np.testing.assert_array_equal(got, 0.25)


@pytest.mark.parametrize("kind", ["last", "first"])
@pytest.mark.parametrize("t", ["f16", "bf16", "f32"])
def test_special_rows_of_softmax(library: Library, kind: str, t: str) -> None:
    check_special_rows(library, kind, t)


def check_special_rows(library: Library, kind: str, t: str) -> None:
    rows = np.array(
        [[-np.inf] * 4, [0, -np.inf, -np.inf, 1], [np.inf, 0, 1, 2], [np.nan, 0, 0, 0], [60000, 60000, -60000, 0]]
    )
    case = SOFTMAX[f"{kind}-{t}"]
    x = rows if kind == "last" else rows.T
    env = {"b": 5, "s": 4} if kind == "last" else {"s": 4, "b": 5}
    (got,) = library.run(case, env, [x])
    (want,) = reference(case, env, [x.astype(got.dtype)])
    assert_close(got, want, ulps=4)


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


NO_WORSE = {"softmax": "last", "layer_norm": "dynamic", "rms_norm": "rms-dynamic"}
TORCH = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def errors(got: np.ndarray, want: np.ndarray) -> tuple[float, float]:
    error = np.abs(got.astype(np.float64) - want)
    return float(error.max()), float(np.sqrt(np.mean(error**2)))


@pytest.mark.parametrize("t", TORCH)
@pytest.mark.parametrize("op", ["softmax", "layer_norm", "rms_norm"])
def test_no_worse_than_torch(library: Library, op: str, t: str) -> None:
    """Maximum error within 2 times, RMSE within 1.5 times torch's, with a floor of one ulp."""
    case = {"softmax": SOFTMAX, "layer_norm": NORM, "rms_norm": NORM}[op][f"{NO_WORSE[op]}-{t}"]
    env = {"b": 32, "s": 768}
    inputs = random_inputs(case, env, seed=3)
    (got,) = library.run(case, env, inputs)
    (want,) = reference(case, env, inputs)
    tensors = [torch.from_numpy(a.astype(np.float32)).to(TORCH[t]) for a in inputs]
    if op == "softmax":
        eager = torch.softmax(tensors[0], 1)
    elif op == "rms_norm":
        eager = torch.nn.functional.rms_norm(tensors[0], (768,), tensors[1], 1e-5)
    else:
        eager = torch.nn.functional.layer_norm(tensors[0], (768,), tensors[1], tensors[2], 1e-5)
    ours, theirs = errors(got, want), errors(eager.to(torch.float32).numpy(), want)
    one_ulp = float(ulp(np.abs(want).max(keepdims=True), got.dtype).max())
    assert ours[0] <= max(2 * theirs[0], one_ulp)
    assert ours[1] <= max(1.5 * theirs[1], one_ulp)


@pytest.mark.parametrize(("constants", "told"), [((1, 2), "true"), ((1,), "false"), ((), "false")])
def test_gpu_kernels_know_which_factors_nothing_writes(constants: tuple[int, ...], told: str) -> None:
    case = layer_norm("b x 24", "24", "f16", 1, constants=constants)
    _, code = case.code(0, Target("cuda", "sm_90a"))
    assert f", 24, 24, 8, {told}>(ctx" in code
