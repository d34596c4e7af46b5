"""The memory-bound kernels on the card beside the cases of the specifications: large tensors, long and short rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.gpu.libraries import library_of
from tests.kernels import rows as kernel_rows
from tests.kernels import test_map, test_pipeline, test_row
from tests.kernels.harness import Case, Library, assert_close, check, random_inputs, reference
from tests.specs import SPECS

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def maps(request: pytest.FixtureRequest) -> Library:
    return library_of(request, test_map.POWERS, test_map.CASTS)


@pytest.fixture(scope="module")
def rows(request: pytest.FixtureRequest) -> Library:
    return library_of(request, {"norm": test_row.NORM}, test_row.SPECIAL, LONG)


@pytest.fixture(scope="module")
def gathers(request: pytest.FixtureRequest) -> Library:
    return library_of(request, GATHERS)


def _ulps(t: str) -> float:
    return {"f16": 0.6, "bf16": 0.51, "f32": 16, "f64": 64}[t]


@pytest.mark.parametrize("t", test_map.CASTS)
def test_cast_saturates(maps: Library, t: str) -> None:
    test_map.check_cast_saturates(maps, t)


LARGE_MAPS = {
    f"large-{name}-bf16": Case(
        f"ait.graph @g({', '.join(f'%{c}: !ait.tensor<{shape} x bf16>' for c, shape in zip('ab', shapes, strict=False))}) {{\n"
        f"  %y = ait.{op} {', '.join(f'%{c}' for c in 'ab'[: len(shapes)])} : !ait.tensor<2120 x 4096 x bf16>\n"
        f'  ait.output "y" %y : !ait.tensor<2120 x 4096 x bf16>\n}}'
    )
    for name, op, shapes in (("bias", "add", ("2120 x 4096", "4096")), ("one", "neg", ("2120 x 4096",)))
}
"""So many groups that a thread reads several before it computes the first."""


@pytest.fixture(scope="module")
def large_maps(request: pytest.FixtureRequest) -> Library:
    return library_of(request, LARGE_MAPS)


@pytest.mark.parametrize("key", LARGE_MAPS)
def test_large_maps(large_maps: Library, key: str) -> None:
    check(large_maps, LARGE_MAPS[key], 0.51)


LENGTHS = (3, 8, 77, 96, 768, 1000, 1024, 1025, 3072, 4096, 4097, 5000, 9000, 16384, 24000, 50257, 70000)
"""Row lengths that reach each group of threads: one to four vectors a lane, blocks, shared memory, rows that no block holds;
and the same where rows do not begin at 16-byte boundaries."""


LONG: dict[str, Case] = {}
for _t in ("f16", "f32"):
    for _n in LENGTHS:
        LONG[f"softmax-{_n}-{_t}"] = kernel_rows.softmax(f"b x {_n}", 1, _t)
        LONG[f"norm-{_n}-{_t}"] = kernel_rows.layer_norm(f"b x {_n}", str(_n), _t, 1)
        LONG[f"rms-{_n}-{_t}"] = kernel_rows.layer_norm(f"b x {_n}", str(_n), _t, 1, "scale %g", op="rms_norm")
    for _n in (64, 768, 4096):
        LONG[f"many-norm-{_n}-{_t}"] = kernel_rows.layer_norm(f"2100 x {_n}", str(_n), _t, 1)
        LONG[f"many-rms-{_n}-{_t}"] = kernel_rows.layer_norm(f"2100 x {_n}", str(_n), _t, 1, "scale %g", op="rms_norm")
        LONG[f"constant-norm-{_n}-{_t}"] = kernel_rows.layer_norm(f"b x {_n}", str(_n), _t, 1, constants=(1, 2))
    for _n in (77, 768, 4097, 50257):
        LONG[f"sum-{_n}-{_t}"] = kernel_rows.kept_sum(f"b x {_n}", str(_n), _t)
        LONG[f"misaligned-sum-{_n}-{_t}"] = kernel_rows.kept_sum(f"b x {_n}", str(_n), _t, offset=1)
    for _n, _offset in ((24, 3), (1000, 5), (1537, 7), (30000, 1)):
        _strides = {0: (str(_n + 3), "1"), 1: (str(2 * _n + 1), "1")}
        LONG[f"misaligned-{_n}-{_t}"] = kernel_rows.softmax(f"b x {_n}", 1, _t, offset=_offset, strides=_strides)
    LONG[f"misaligned-{_t}"] = kernel_rows.layer_norm("b x 768", "768", _t, 1, offset=1)


RING = {
    "ring-4097-f16": kernel_rows.layer_norm("4300 x 4097", "4097", "f16", 1),
    "ring-4096-f16": kernel_rows.layer_norm("4300 x 4096", "4096", "f16", 1, offset=8),
    "ring-rms-4097-bf16": kernel_rows.layer_norm("4500 x 4097", "4097", "bf16", 1, "scale %g", op="rms_norm", offset=3),
    "ring-2049-f32": kernel_rows.layer_norm("4300 x 2049", "2049", "f32", 1, "bias %h"),
    "ring-8192-f16": kernel_rows.layer_norm("2200 x 8192", "8192", "f16", 1),
    "ring-rms-9001-f16": kernel_rows.layer_norm("300 x 9001", "9001", "f16", 1, "scale %g", op="rms_norm"),
    "bulk-kept-50257-f16": kernel_rows.layer_norm("140 x 50257", "50257", "f16", 1),
    "bulk-sum-26003-f16": kernel_rows.kept_sum("150 x 26003", "26003", "f16"),
    "bulk-sum-32768-bf16": kernel_rows.kept_sum("140 x 32768", "32768", "bf16"),
    "bulk-rms-50257-bf16": kernel_rows.layer_norm("140 x 50257", "50257", "bf16", 1, "scale %g", op="rms_norm"),
    "bulk-32768-f16": kernel_rows.layer_norm("140 x 32768", "32768", "f16", 1),
    "plain-40960-f16": kernel_rows.layer_norm("140 x 40960", "40960", "f16", 1, ""),
    "ring-sum-131072-f16": kernel_rows.kept_sum("40 x 131072", "131072", "f16"),
    "ring-rms-131072-f16": kernel_rows.layer_norm("70 x 131072", "131072", "f16", 1, "scale %g", op="rms_norm"),
    "bulk-sum-26003-offset-f16": kernel_rows.kept_sum("300 x 26003", "26003", "f16", offset=5),
    "bulk-sum-50257-f16": kernel_rows.kept_sum("140 x 50257", "50257", "f16", offset=1),
    "bulk-sum-rms-50257-bf16": kernel_rows.kept_sum("140 x 50257", "50257", "bf16", "scale %g", op="rms_norm"),
    "bulk-rms-50257-f16": kernel_rows.layer_norm("300 x 50257", "50257", "f16", 1, "scale %g", op="rms_norm", offset=3),
    "bulk-17001-f32": kernel_rows.layer_norm("300 x 17001", "17001", "f32", 1, "bias %h"),
    "bulk-softmax-120001-f16": kernel_rows.softmax("140 x 120001", 1, "f16"),
    "split-softmax-131072-f16": kernel_rows.softmax("70 x 131072", 1, "f16"),
    "split-softmax-60000-bf16": kernel_rows.softmax("3 x 60000", 1, "bf16"),
    "split-softmax-65536-f32": kernel_rows.softmax("40 x 65536", 1, "f32"),
    "ring-softmax-262144-bf16": kernel_rows.softmax("35 x 262144", 1, "bf16"),
}  # more rows than the blocks of a large card have


SHORT = kernel_rows.short(160)
"""With more rows than fill any card."""


@pytest.fixture(scope="module")
def shorts(request: pytest.FixtureRequest) -> Library:
    return library_of(request, SHORT)


@pytest.mark.parametrize("key", SHORT)
def test_short_rows(shorts: Library, key: str) -> None:
    check(shorts, SHORT[key], _ulps(key.rpartition("-")[2]), floor=1e-6)


@pytest.fixture(scope="module")
def rings(request: pytest.FixtureRequest) -> Library:
    return library_of(request, RING)


@pytest.mark.parametrize("key", RING)
def test_rows_through_rings(rings: Library, key: str) -> None:
    case, env = RING[key], {"b": 1, "s": 1}
    inputs = random_inputs(case, env)
    for got, want in zip(rings.run(case, env, inputs), reference(case, env, inputs), strict=True):
        assert_close(got, want, _ulps(key.rpartition("-")[2]), floor=1e-6)


@pytest.mark.parametrize(
    ("key", "shape"), [("split-softmax-131072-f16", (70, 131072)), ("bulk-softmax-120001-f16", (140, 120001))]
)
def test_special_long_rows(rings: Library, key: str, shape: tuple[int, int]) -> None:
    kernel_rows.check_special_long_rows(rings, RING[key], shape)


@pytest.mark.parametrize("key", LONG)
def test_row_lengths(rows: Library, key: str) -> None:
    case = LONG[key]
    t = key.rpartition("-")[2]
    for env in ({"b": 3, "s": 1}, {"b": 50, "s": 1}):
        inputs = random_inputs(case, env)
        for got, want in zip(rows.run(case, env, inputs), reference(case, env, inputs), strict=True):
            assert_close(got, want, _ulps(t), floor=1e-6)


@pytest.mark.parametrize("t", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("kind", ["last", "first"])
def test_special_rows_of_softmax(rows: Library, kind: str, t: str) -> None:
    test_row.check_special_rows(rows, kind, t)


@pytest.mark.parametrize("t", test_map.POWERS)
def test_pow(maps: Library, t: str) -> None:
    test_map.check_pow(maps, t)


def test_large_means_lose_nothing(rows: Library) -> None:
    test_row.check_large_means(rows)


GATHERS = {t: SPECS["embedding"].drawn("plain-i32", t) for t in ("f16", "bf16", "f32", "i64")}


@pytest.mark.parametrize("bad", [-1, 11, 2**31 - 1])
@pytest.mark.parametrize("t", GATHERS)
def test_an_id_outside_of_the_table_gives_nan(gathers: Library, t: str, bad: int) -> None:
    ids = np.zeros((2, 3), np.int32)
    ids[1, 1] = bad
    (got,) = gathers.run(GATHERS[t], {"b": 2, "s": 3}, [np.ones((11, 24)), ids])
    values = got.astype(np.float64)
    assert (values[1, 1] == 0).all() if t == "i64" else np.isnan(values[1, 1]).all()
    values[1, 1] = 1
    assert (values == 1).all()


@pytest.mark.parametrize("t", test_pipeline.TORCH)
def test_small_graph_through_the_pipeline(t: str, tmp_path: Path) -> None:
    test_pipeline.check_pipeline("cuda", t, tmp_path)


HUGE = "dims {n = 1 to 4294967296}"
HUGE_MAP = Case(
    f"ait.graph @g(%x: !ait.tensor<n x i8>) {HUGE} {{\n"
    '  %y = ait.relu %x : !ait.tensor<n x i8>\n  ait.output "y" %y : !ait.tensor<n x i8>\n}'
)
HUGE_COPY = Case(
    f"ait.graph @g(%x: !ait.tensor<n x 3 x i8>) {HUGE} {{\n"
    '  %y = ait.permute %x [1, 0] : !ait.tensor<3 x n x i8>\n  ait.output "y" %y : !ait.tensor<3 x n x i8>\n}'
)
HUGE_ROWS = Case(
    f"ait.graph @g(%x: !ait.tensor<n x 2 x f16>) {HUGE} {{\n"
    '  %y = ait.softmax %x dim 1 : !ait.tensor<n x 2 x f16>\n  ait.output "y" %y : !ait.tensor<n x 2 x f16>\n}'
)


@pytest.fixture(scope="module")
def huge(request: pytest.FixtureRequest) -> Library:
    return library_of(request, dict(enumerate((HUGE_MAP, HUGE_COPY, HUGE_ROWS))))


@pytest.mark.parametrize("shift", [0, 1])
def test_map_of_more_than_2_to_31_elements(huge: Library, shift: int) -> None:
    import torch

    n = 2**31 + 13
    x = torch.randint(-100, 100, (n + shift,), dtype=torch.int8, device="cuda")[shift:]
    y = torch.full((n + shift,), 77, dtype=torch.int8, device="cuda")[shift:]
    huge.call(HUGE_MAP, {"n": n}, [x.data_ptr(), y.data_ptr()])
    torch.cuda.synchronize()
    assert torch.equal(y, x.relu())


def test_copy_of_more_than_2_to_31_elements(huge: Library) -> None:
    import torch

    n = 2**30 + 7
    x = torch.randint(-100, 100, (n, 3), dtype=torch.int8, device="cuda")
    y = torch.empty((3, n), dtype=torch.int8, device="cuda")
    huge.call(HUGE_COPY, {"n": n}, [x.data_ptr(), y.data_ptr()])
    torch.cuda.synchronize()
    assert torch.equal(y, x.t())


def test_rows_of_more_than_2_to_31_elements(huge: Library) -> None:
    import torch

    n = 2**30 + 7
    x = torch.randint(-3, 4, (n, 2), dtype=torch.int8, device="cuda").half()
    y = torch.empty((n, 2), dtype=torch.float16, device="cuda")
    huge.call(HUGE_ROWS, {"n": n}, [x.data_ptr(), y.data_ptr()])
    torch.cuda.synchronize()
    tail = torch.softmax(x[-100000:].float(), 1)
    assert (y[-100000:].float() - tail).abs().max() < 1e-3
    assert ((y[:, 0] > y[:, 1]) == (x[:, 0] > x[:, 1])).all()
