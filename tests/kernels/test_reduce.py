"""Reductions on the CPU: every kind, any dims, strides, element types, empty and long rows; argmax and topk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.kernels.harness import Case, Library, assert_close, check, random_inputs, reference, ulp

FLOATS = ("f16", "bf16", "f32", "f64")
KINDS = ("sum", "mean", "max", "min", "var")
DIMS = "dims {b = 0 to 64, s = 0 to 3000}"
ENVS = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 4}, {"b": 2, "s": 1537})
ULPS = {"f16": 0.6, "bf16": 0.51, "f32": 16, "f64": 64}


def reduce(kind: str, shape: str, axes: list[int], t: str, correction: str = "", **options: object) -> Case:
    dims = shape.split(" x ")
    left = "".join(f"{d} x " for i, d in enumerate(dims) if i not in axes)
    return Case(
        f"ait.graph @g(%x: !ait.tensor<{shape} x {t}>) {DIMS} {{\n"
        f"  %y = ait.reduce {kind} %x dims {axes}{correction} : !ait.tensor<{left}{t}>\n"
        f'  ait.output "y" %y : !ait.tensor<{left}{t}>\n}}',
        ENVS,
        **options,  # type: ignore[arg-type]
    )


def select(op: str, shape: str, results: str, t: str, **options: object) -> Case:
    tensor = f"!ait.tensor<{shape} x {t}>"
    names = [f"%y{i}" for i in range(results.count(",") + 1)]
    types = [f"!ait.tensor<{r.strip()}>" for r in results.split(",")]
    outputs = "".join(f'  ait.output "{n[1:]}" {n} : {r}\n' for n, r in zip(names, types, strict=True))
    return Case(
        f"ait.graph @g(%x: {tensor}) dims {{b = 0 to 64, s = 3 to 3000}} {{\n"
        f"  {', '.join(names)} = ait.{op.replace('X', '%x')} : {', '.join(types)}\n{outputs}}}",
        [{"b": 3, "s": 5}, {"b": 1, "s": 3}, {"b": 0, "s": 4}, {"b": 2, "s": 1537}],
        **options,  # type: ignore[arg-type]
    )


REDUCE = {
    f"{name}-{kind}-{t}": make(kind, t)
    for t in FLOATS
    for kind in KINDS
    for name, make in (
        ("last", lambda k, t: reduce(k, "b x s", [1], t)),
        ("static", lambda k, t: reduce(k, "b x s x 24", [2], t)),
        ("first", lambda k, t: reduce(k, "s x b x 3", [0], t)),
        ("middle", lambda k, t: reduce(k, "b x s x 9", [1], t)),
        ("two", lambda k, t: reduce(k, "b x s x 24", [1, 2], t)),
        ("apart", lambda k, t: reduce(k, "b x 3 x s", [0, 2], t)),
        ("outer-two", lambda k, t: reduce(k, "b x s x 40", [0, 1], t)),
        ("all", lambda k, t: reduce(k, "b x s", [0, 1], t)),
        ("view", lambda k, t: reduce(k, "b x s", [1], t, strides={0: ("s + 8", "1"), 1: ("3",)}, offset=1)),
        ("turned", lambda k, t: reduce(k, "b x s", [1], t, strides={0: ("1", "b"), 1: ("2",)})),
        ("strided", lambda k, t: reduce(k, "b x s", [1], t, strides={0: ("2*s", "2"), 1: ("1",)})),
    )
}
UNBIASED = {t: reduce("var", "b x s", [1], t, " correction 1") for t in FLOATS}
NONE = {kind: reduce(kind, "b x s", [], "f32") for kind in KINDS}
INTEGERS = {
    f"{name}-{kind}-{t}": reduce(kind, "b x s x 3", axes, t)
    for t in ("i8", "i32", "i64")
    for kind in ("sum", "max", "min")
    for name, axes in (("rows", [1, 2]), ("columns", [1]))
}
LONG = {
    f"{kind}-{t}": replace(reduce(kind, "b x 140001", [1], t, **options), envs=[{"b": 2, "s": 1}])
    for kind, t, options in (("sum", "f16", {}), ("max", "bf16", {"offset": 3}), ("var", "f32", {}), ("sum", "i32", {}))
}
"""Few long rows: on a GPU several blocks share one."""
TYPES = (*FLOATS, "i8", "i32", "i64")
ARGMAX = {
    f"{name}-{t}": make(t)
    for t in TYPES
    for name, make in (
        ("last", lambda t: select("argmax X dim 1", "b x s", "b x i64", t)),
        ("middle", lambda t: select("argmax X dim 1", "b x s x 5", "b x 5 x i32", t)),
        ("vector", lambda t: select("argmax X dim 0", "s", "i64", t)),
    )
}
TOPK = {
    f"{name}-{t}": make(t)
    for t in TYPES
    for name, make in (
        ("three", lambda t: select("topk X k 3", "b x s", f"b x 3 x {t}, b x 3 x i64", t)),
        ("one", lambda t: select("topk X k 1", "s", f"1 x {t}, 1 x i32", t)),
        (
            "view",
            lambda t: select(
                "topk X k 2", "b x s", f"b x 2 x {t}, b x 2 x i64", t,
                strides={0: ("1", "b"), 1: ("1", "b"), 2: ("5", "2")},
            ),
        ),
    )
}  # fmt: skip
ALL = [
    *REDUCE.values(),
    *LONG.values(),
    *UNBIASED.values(),
    *NONE.values(),
    *INTEGERS.values(),
    *ARGMAX.values(),
    *TOPK.values(),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(ALL, tmp_path_factory.mktemp("reduce"))


@pytest.mark.parametrize("key", REDUCE)
def test_reduce(library: Library, key: str) -> None:
    check_reduce(library, REDUCE[key], key.rpartition("-")[2])


def check_reduce(library: Library, case: Case, t: str) -> None:
    """Sums of numbers of both signs lose what their terms' size loses, so the floor grows with the number of terms."""
    floor = 1e-15 if t == "f64" else 2e-6
    for env in case.envs:
        inputs = random_inputs(case, env)
        (got,), (want,) = library.run(case, env, inputs), reference(case, env, inputs)
        terms = max(1.0, inputs[0].size / max(1, want.size))
        scale = np.abs(want[np.isfinite(want)]).max(initial=1e-30)
        assert_close(got, want, ULPS[t], floor * max(1.0, np.sqrt(terms) / scale))


@pytest.mark.parametrize("key", LONG)
def test_few_long_rows(library: Library, key: str) -> None:
    check_long(library, key)


def check_long(library: Library, key: str) -> None:
    if key.endswith("i32"):
        check(library, LONG[key], 0)
    else:
        check_reduce(library, LONG[key], key.rpartition("-")[2])


@pytest.mark.parametrize("t", UNBIASED)
def test_unbiased_variance(library: Library, t: str) -> None:
    check_reduce(library, UNBIASED[t], t)


@pytest.mark.parametrize("kind", NONE)
def test_over_no_dims(library: Library, kind: str) -> None:
    check(library, NONE[kind], 0)


@pytest.mark.parametrize("key", INTEGERS)
def test_integers_wrap(library: Library, key: str) -> None:
    case = INTEGERS[key]
    check(library, case, 0)
    dtype = random_inputs(case, {"b": 1, "s": 1})[0].dtype
    ends = np.iinfo(dtype)
    x = np.full((2, 3, 3), ends.max, dtype)
    x[1] = ends.min
    np.testing.assert_array_equal(
        library.run(case, {"b": 2, "s": 3}, [x])[0], reference(case, {"b": 2, "s": 3}, [x])[0]
    )


@pytest.mark.parametrize("key", [*ARGMAX, *TOPK])
def test_select(library: Library, key: str) -> None:
    check_select(library, {**ARGMAX, **TOPK}[key])


def check_select(library: Library, case: Case) -> None:
    check(library, case, 0)
    env = {"b": 2, "s": 5}
    shape = random_inputs(case, env)[0].shape
    dtype = random_inputs(case, env)[0].dtype
    for values in ([1, 1, 1, 1, 1], [0, 3, 3, 2, 3]):
        x = np.resize(np.array(values), shape).astype(dtype)
        for got, want in zip(library.run(case, env, [x]), reference(case, env, [x]), strict=True):
            np.testing.assert_array_equal(got, want)


def test_nan_is_found(library: Library) -> None:
    x = np.array([[1, np.nan, 3, np.nan, 2], [np.inf, 1, -np.inf, 2, 3]], np.float32)
    env = {"b": 2, "s": 5}
    assert library.run(ARGMAX["last-f32"], env, [x])[0].tolist() == [1, 0]
    values, places = library.run(TOPK["three-f32"], env, [x])
    assert places.tolist() == [[1, 3, 2], [0, 4, 3]]
    np.testing.assert_array_equal(values, [[np.nan, np.nan, 3], [np.inf, 3, 2]])
    for kind in ("max", "min"):
        for name, data in (("last", x), ("turned", x)):
            (got,) = library.run(REDUCE[f"{name}-{kind}-f32"], env, [data])
            assert np.isnan(got[0]) and not np.isnan(got[1])


def test_variance_of_large_means(library: Library) -> None:
    x = (np.random.default_rng(0).standard_normal((2, 1000)) + 30000).astype(np.float32)
    for name in ("last", "turned"):
        case, env = REDUCE[f"{name}-var-f32"], {"b": 2, "s": 1000}
        (got,), (want,) = library.run(case, env, [x]), reference(case, env, [x])
        assert np.abs(got / want - 1).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["last", "middle"])
def test_no_worse_than_torch(library: Library, name: str, kind: str) -> None:
    case, env = REDUCE[f"{name}-{kind}-f32"], {"b": 32, "s": 1500}
    (x,) = random_inputs(case, env, seed=3)
    (got,), (want,) = library.run(case, env, [x]), reference(case, env, [x])
    function = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}.get(
        kind, lambda x, dim: torch.var(x, dim, correction=0)
    )
    theirs = function(torch.from_numpy(x), 1).numpy()
    one_ulp = float(ulp(np.abs(want).max(keepdims=True), got.dtype).max())
    # PyTorch's variance is summed in double and rounded once
    floor = 2 * one_ulp if kind == "var" else one_ulp
    assert np.abs(got - want).max() <= max(2 * np.abs(theirs - want).max(), floor)
