"""Operators with the names and meanings of PyTorch's that AITemplate does not have, against torch in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ait_mlir.compiler import compile_model
from ait_mlir.frontend import BuildError, Tensor, ops
from tests.frontend.support import BATCH, SEQ, check, evaluate, tensor


def given(name: str, *shape: int | str, low: int = -9, high: int = 9) -> tuple[Tensor, np.ndarray]:
    """An int64 input and its data."""
    t = tensor(name, *shape, dtype="int64")
    sizes = [d.evaluate({"batch": BATCH, "seq": SEQ}) for d in t.type.dims]
    return t, np.random.default_rng(len(name)).integers(low, high, sizes)


def same(build, torch_function, **inputs: tuple[Tensor, np.ndarray]) -> None:
    """The results of the reference and of torch on the same data are equal."""
    tensors = {name: t for name, (t, _) in inputs.items()}
    arrays = {name: a for name, (_, a) in inputs.items()}
    used = {t.name or "": arrays[name] for name, t in tensors.items()}
    got = evaluate(build(**tensors), used, batch=BATCH, seq=SEQ)
    want = torch_function(**{name: torch.from_numpy(a) for name, a in arrays.items()})
    for g, w in zip(got, want, strict=True):
        assert tuple(g.shape) == tuple(w.shape)
        np.testing.assert_allclose(g.astype(np.float64), w.double().numpy(), rtol=1e-12)


def test_integers_and_bits():
    a, b = given("a", "batch", "seq"), given("bb", "seq", low=-3)
    b[1][b[1] == 0] = 2
    count = given("ccc", "seq", low=0, high=5)
    same(
        lambda a, b, n: [
            ops.fmod(a, b), ops.remainder(a, b), ops.remainder(a, -4), ops.remainder(7, b),
            ops.bitwise_and(a, b), ops.bitwise_or(a, b), ops.bitwise_xor(a, 5), ops.bitwise_not(a),
            ops.bitwise_left_shift(a, n), ops.bitwise_right_shift(a, n),
        ],
        lambda a, b, n: [
            a.fmod(b), a.remainder(b), a.remainder(-4), torch.remainder(7, b),
            a & b, a | b, a ^ 5, ~a,
            a << n, a >> n,
        ],
        a=a, b=b, n=count,
    )  # fmt: skip
    same(
        lambda a, b: [
            ops.cast()(op(ops.gt()(a, 0), ops.gt()(b, 0)), "int64")
            for op in (ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor)
        ] + [ops.cast()(ops.bitwise_not(ops.gt()(a, 0)), "int64")],
        lambda a, b: [(a > 0) & (b > 0), (a > 0) | (b > 0), (a > 0) ^ (b > 0), ~(a > 0)],
        a=a, b=b,
    )  # fmt: skip


def test_remainders_of_floats():
    x, y = tensor("x", "batch", "seq"), tensor("yyy", "seq")
    check(
        lambda x, y: [ops.remainder(x, y), ops.remainder(x, -0.75), ops.fmod(x, y)],
        lambda x, y: [x.remainder(y), x.remainder(-0.75), x.fmod(y)],
        x,
        y,
    )


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_medians(dim):
    x = tensor("x", "batch", "seq", 4)
    check(lambda x: [*ops.median(dim)(x)], lambda x: [*x.median(dim)], x)
    check(lambda x: [*ops.median(dim, keepdim=True)(x)], lambda x: [*x.median(dim, keepdim=True)], x)

    def holed(x):
        return torch.where(x > 0.8, torch.nan, x)

    check(
        lambda x: [*ops.median(dim)(ops.where()(ops.gt()(x, 0.8), float("nan"), x))],
        lambda x: [*holed(x).median(dim)],
        x,
    )
    same(
        lambda i: [*ops.median(dim)(i)],
        lambda i: [i.median(dim)[0], i.sort(stable=True, dim=dim)[1].select(dim, (i.shape[dim] - 1) // 2)],
        i=given("i", "batch", "seq"),
    )


def test_counts_in_intervals():
    x = tensor("x", "batch", "seq", 4)
    for bins, low, high in ((7, -1, 1), (3, 0, 0), (1, 0.5, 2)):
        check(ops.histc(bins, low, high), lambda x, b=bins, low=low, high=high: x.histc(b, low, high), x)
    check(lambda x: ops.histc(4)(x * 0.0), lambda x: (x * 0).histc(4), x)


def test_runs():
    x = given("x", "batch", "seq", low=0, high=2)
    flat, rows = ops.unique_consecutive(name="runs"), ops.unique_consecutive(dim=1, name="columns")
    x[1][:, 2] = x[1][:, 1]
    same(lambda x: [*flat(x)], lambda x: torch.unique_consecutive(x, True, True), x=x)
    same(lambda x: [*rows(x)], lambda x: torch.unique_consecutive(x, True, True, 1), x=x)
    one = given("x", 1, low=0)
    same(lambda x: [*ops.unique_consecutive(name="one")(x)], lambda x: torch.unique_consecutive(x, True, True), x=one)


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(reduce, include_self):
    for dim, shape in ((0, (BATCH, SEQ)), (1, (BATCH, 7))):
        rng = np.random.default_rng(dim)
        index = tensor("i", "batch", "seq", dtype="int64"), rng.integers(0, shape[dim], (BATCH, SEQ))
        for dtype in ("float64", "int64"):
            x = tensor("x", *(("batch", "seq") if dim == 0 else ("batch", 7)), dtype=dtype), rng.integers(-9, 9, shape)
            src = tensor("s", "batch", "seq", dtype=dtype), rng.integers(-9, 9, (BATCH, SEQ))
            x, src = ((t, a.astype(dtype)) for t, a in (x, src))
            same(
                lambda x, i, s: [ops.scatter_reduce(dim, reduce, include_self)(x, i, s)],  # noqa: B023
                lambda x, i, s: [x.scatter_reduce(dim, i, s, reduce, include_self=include_self)],  # noqa: B023
                x=x, i=index, s=src,
            )  # fmt: skip


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(accumulate):
    x = given("x", "batch", 4, "seq", 2)
    i, j = given("ii", "batch", low=0, high=4), given("jjj", 2, 1, low=0, high=2)
    for indices, shape in (
        (lambda i, j: [None, i], ("batch", "batch", "seq", 2)),
        (lambda i, j: [None, i, None, j], (2, "batch", 1, "seq")),
        (lambda i, j: [None, None, None, j], (2, 1)),
        (lambda i, j: [i, j], (2, "batch", "seq", 2)),
    ):
        if accumulate or shape[0] != "batch":
            v = given("vvvv", *shape)
            put = lambda x, i, j, v, at=indices: torch.ops.aten.index_put(x, at(i.clamp(max=2), j), v, accumulate)  # noqa: E731
            same(
                lambda x, i, j, v, at=indices: [ops.index_put(accumulate)(x, at(ops.clamp()(i, max_value=2), j), v)],
                lambda x, i, j, v, put=put: [put(x, i, j, v)] if accumulate else [put(x, i[:1].expand(BATCH), j, v)],
                x=x, i=(i[0], i[1] if accumulate else np.full_like(i[1], i[1][0])), j=j, v=v,
            )  # fmt: skip
    m = tensor("m", "batch", 4, dtype="bool"), np.random.default_rng(0).random((BATCH, 4)) < 0.5
    same(
        lambda x, m: [ops.index_put(accumulate)(x, [m], Tensor(shape=[], dtype="int64", value=7))],
        lambda x, m: [torch.ops.aten.index_put(x, [m], torch.tensor(7), accumulate)],
        x=x, m=m,
    )  # fmt: skip


def test_as_strided():
    x = tensor("x", "batch", "seq", 4)
    seq = x.shape()[1]
    check(
        lambda x: [
            ops.as_strided([seq, 3], [4, 1], 1)(x),
            ops.as_strided([2, seq, 2], [1, 4, 2])(x),
            ops.as_strided([3, 4], [4, 1], 4)(x),
            ops.as_strided([2, 3], [0, 2])(x),
            ops.as_strided([], [], 5)(x),
        ],
        lambda x: [
            x.as_strided([SEQ, 3], [4, 1], 1),
            x.as_strided([2, SEQ, 2], [1, 4, 2]),
            x.as_strided([3, 4], [4, 1], 4),
            x.as_strided([2, 3], [0, 2]),
            x.as_strided([], [], 5),
        ],
        x,
    )


def test_instance_norm():
    check(
        lambda x, g, b: [ops.instance_norm(1e-3)(x, g, b), ops.instance_norm()(x)],
        lambda x, g, b: [
            F.instance_norm(x.movedim(-1, 1), weight=g, bias=b, eps=1e-3).movedim(1, -1),
            F.instance_norm(x.movedim(-1, 1)).movedim(1, -1),
        ],
        tensor("x", "batch", "seq", 5, 6), tensor("gg", 6), tensor("bbb", 6),
    )  # fmt: skip


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize(("dim", "n"), [(-1, None), (1, None), (1, 6), (0, 2), (-1, 9)])
def test_fourier_transforms(norm, dim, n):
    def parts(*ys):
        return [p for y in ys for p in ((y.real, y.imag) if y.is_complex() else (y,))]

    check(
        lambda a, b: [*ops.fft(n, dim, norm)(a, b), *ops.ifft(n, dim, norm)(a, b), *ops.rfft(n, dim, norm)(a),
                      *ops.fft(n, dim, norm)(a), ops.irfft(n, dim, norm)(a, b), ops.irfft(n, dim, norm)(a)],
        lambda a, b: parts(
            torch.fft.fft(torch.complex(a, b), n, dim, norm), torch.fft.ifft(torch.complex(a, b), n, dim, norm),
            torch.fft.rfft(a, n, dim, norm), torch.fft.fft(a, n, dim, norm),
            torch.fft.irfft(torch.complex(a, b), n, dim, norm), torch.fft.irfft(a, n, dim, norm),
        ),
        tensor("a", "batch", "seq", 6), tensor("bb", "batch", "seq", 6),
    )  # fmt: skip


def test_what_does_not_fit_is_named():
    x, i = tensor("x", "batch", 4, 6), tensor("i", "batch", 4, 6, dtype="int64")
    for build, message in (
        (lambda: ops.median(3)(x), "dim 3 is out of range"),
        (lambda: ops.histc(0)(x), "needs at least 1 bin"),
        (lambda: ops.kth_value(9)(x), "expected 1 to the size of dim"),
        (lambda: ops.histc(4, 2, 1)(x), "min <= max"),
        (lambda: ops.scatter_reduce(0, "median")(x, i, x), "reduce is 'median'"),
        (lambda: ops.index_put()(x, [None, None], x), "of which 0 are not None"),
        (lambda: ops.index_put()(x, [i, i, i, i], x), "needs 1 to 3 indices, found 4"),
        (lambda: ops.index_put()(x, [None, ops.gt()(x, 0.0)], x), "a bool index must be the only one"),
        (lambda: ops.as_strided([2, 3], [1])(x), "has 2 sizes and 1 strides"),
        (lambda: ops.as_strided([2], [-1], 3)(x), "must be at least 0"),
        (lambda: ops.as_strided([2], [1], -1)(x), "must be at least 0"),
        (lambda: ops.as_strided([300], [1])(x), "reads up to element 299"),
        (lambda: ops.instance_norm()(tensor("n", 4, "batch")), "a fixed number of channels"),
        (lambda: ops.fft()(i), "needs floats"),
        (lambda: ops.fft()(x, tensor("y", "batch", 4, 5)), "two parts of one type and shape"),
        (lambda: ops.rfft(5000)(x), "a transform has up to 4096 elements"),
        (lambda: ops.bitwise_and(x, 1), "integer"),
    ):
        with pytest.raises(BuildError, match=message):
            build()


def test_compiled_for_the_cpu(tmp_path):
    x, i = tensor("x", "batch", 8, dtype="float32"), tensor("i", "batch", "seq", dtype="int64")
    y = tensor("y", "batch", "seq", dtype="int64")
    values, _, lengths = ops.unique_consecutive(name="runs")(i)
    results = {
        "real": ops.rfft()(x)[0], "back": ops.irfft()(*ops.rfft()(x)), "median": ops.median(1)(x)[0],
        "values": values, "lengths": lengths, "sums": ops.scatter_reduce(1, "sum")(y, i, y),
        "put": ops.index_put()(x, [None, Tensor(shape=[], dtype="int64", value=3)], ops.full()([], 5.0, "float32")),
    }  # fmt: skip
    for name, result in results.items():
        result.mark_as_output(name)
    compiled = compile_model([*results.values()], "cpu", str(tmp_path), "torch_names")
    rng = np.random.default_rng(0)
    a = torch.from_numpy(rng.standard_normal((3, 8)).astype(np.float32))
    b, c = (torch.from_numpy(np.sort(rng.integers(0, 5, (3, 5)))) for _ in range(2))
    spectrum = torch.fft.rfft(a)
    found, _, counts = torch.unique_consecutive(b, True, True)
    put = a.clone()
    put[:, 3] = 5
    want = {
        "real": spectrum.real, "back": a, "median": a.median(1)[0], "values": found, "lengths": counts,
        "sums": c.scatter_reduce(1, b, c, "sum"), "put": put,
    }  # fmt: skip
    with compiled as model:
        outputs = {
            name: torch.empty(15 if name in ("values", "lengths") else w.shape, dtype=w.dtype)
            for name, w in want.items()
        }
        got = model.run_with_tensors({"x": a, "i": b, "y": c}, outputs)
    for name, w in want.items():
        torch.testing.assert_close(got[name], w, msg=name)
