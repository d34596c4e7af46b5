"""Operations that the importer composes of others, compiled for the CPU, against eager: special values, empty parts."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.export import Dim
from torch.nn import functional as F

import ait_mlir
from ait_mlir.errors import RunError
from ait_mlir.importers.torch import ImportFailure, from_torch
from tests import tiers
from tests.importers.function import Function

COUNT = Dim("count", min=1, max=24)
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def compiled(function, *given, dims=None):
    with torch.no_grad():
        return ait_mlir.compile(Function(function).eval(), given, dynamic_shapes=None if dims is None else (dims,))


def check(function, *given) -> None:
    exact = {"rtol": 1e-5, "atol": 1e-5} if given[0].dtype == torch.float32 else {}
    torch.testing.assert_close(compiled(function, *given)(*given), function(*given), equal_nan=True, **exact)


def special(dtype: torch.dtype) -> torch.Tensor:
    """Zeros, infinities, NaN, the ends of a type, numbers without all bits, powers of 2 and their neighbours."""
    of = torch.finfo(dtype)
    ends = [0.0, 1.0, 2.0, 0.5, 1.5, 3.0, 0.7, of.max, of.tiny, of.smallest_normal / 2, torch.inf]
    least = torch.tensor(of.tiny, dtype=dtype) * of.eps
    some = torch.cat(
        [torch.tensor(ends, dtype=torch.float64).to(dtype), least[None], least[None] * 3, torch.rand(7).to(dtype)]
    )
    return torch.cat([some, -some, torch.tensor([torch.nan], dtype=dtype)])


def bits(x: torch.Tensor) -> torch.Tensor:
    """The bits of floats; those of every NaN are the same."""
    kinds = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return torch.where(x == x, x, torch.nan).view(kinds[x.element_size()])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_parts_of_floats(dtype) -> None:
    x = special(dtype)
    run = compiled(torch.frexp, x)
    mantissa, exponent = run(x)
    wanted, power = torch.frexp(x)
    assert torch.equal(bits(mantissa), bits(wanted))
    known = x.isfinite()  # PyTorch leaves the exponents of others undefined
    assert exponent.dtype == torch.int32 and torch.equal(exponent[known], power[known])


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d != torch.float16], ids=str)
def test_the_next_float(dtype) -> None:
    values = special(dtype)
    x, y = (t.reshape(-1).contiguous() for t in torch.meshgrid(values, values, indexing="ij"))
    assert torch.equal(bits(compiled(torch.nextafter, x, y)(x, y)), bits(torch.nextafter(x, y)))


def test_counts_have_the_size_that_the_values_need() -> None:
    kinds = (torch.float32, torch.float64, torch.int32)

    def counts(x, w):
        plain = [torch.bincount(x, minlength=least) for least in (0, 3, 10)]
        return *plain, *(torch.bincount(x, (w * 9).to(kind), minlength=4) * 2 for kind in kinds)

    run = compiled(counts, torch.randint(0, 8, (7,)), torch.rand(7), dims=({0: COUNT}, {0: COUNT}))
    for length in (1, 2, 24):
        given = torch.randint(0, 8, (length,)), torch.rand(length)
        for ours, theirs in zip(run(*given), counts(*given), strict=True):
            torch.testing.assert_close(ours, theirs)
    for wrong in (-1, 5000):
        with pytest.raises(RunError, match="index"):
            run(torch.tensor([2, wrong]), torch.rand(2))


def test_the_first_counts_can_be_read() -> None:
    def first(x):
        return torch.bincount(x, minlength=4)[:4], x.bincount(minlength=3)[1:3] * 2, torch.bincount(x, minlength=2)[-2:]

    run = compiled(first, torch.randint(0, 8, (7,)), dims=({0: COUNT},))
    for x in (torch.tensor([0]), torch.tensor([1, 1, 3]), torch.randint(0, 30, (24,))):
        for ours, theirs in zip(run(x), first(x), strict=True):
            assert torch.equal(ours, theirs)


def test_distances_of_all_pairs() -> None:
    def pairs(x):
        return [F.pdist(x, order) for order in (0.0, 1.0, 2.0, 3.0, float("inf"))]

    run = compiled(pairs, torch.randn(5, 3), dims=({0: COUNT},))
    for rows in (1, 2, 3, 24):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(run(x), pairs(x))
    check(pairs, torch.randn(6, 2))


def test_segments() -> None:
    data = torch.randn(7, 3)
    data[2, 1] = torch.nan

    def reduced(x, **options):
        kinds = itertools.product(("sum", "mean", "max", "min", "prod"), (None, 0.5))
        return [torch.segment_reduce(x, kind, initial=initial, **options) for kind, initial in kinds]

    def by_lengths(x, n):
        return reduced(x, lengths=n)

    run = compiled(by_lengths, data, torch.tensor([2, 3, 2]))
    for lengths in ([2, 3, 2], [0, 7, 0]):
        given = data, torch.tensor(lengths)
        torch.testing.assert_close(run(*given), by_lengths(*given), equal_nan=True)
    check(lambda x, n: reduced(x, offsets=n), data, torch.tensor([0, 2, 2, 7]))
    check(lambda x, n: reduced(x, lengths=n, axis=1), torch.randn(2, 4, 3), torch.tensor([[1, 3], [4, 0]]))


def test_segments_that_do_not_cover_the_data() -> None:
    x, lengths = torch.randn(7, 3), torch.tensor([2, 3])
    check(lambda x, n: torch.segment_reduce(x, "sum", lengths=n, unsafe=True), x, lengths)
    run = compiled(lambda x, n: torch.segment_reduce(x, "sum", lengths=n), x, torch.tensor([2, 5]))
    with pytest.raises(RunError, match="index 2"):
        run(x, lengths)


@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_pools_with_given_samples(rank) -> None:
    pool = (F.fractional_max_pool2d, F.fractional_max_pool3d)[rank - 2]
    sizes, kernel = (9, 8, 7)[:rank], (3, 2, 2)[:rank]

    def both(x, samples):
        return pool(x, kernel, output_size=(4, 3, 1)[:rank], _random_samples=samples, return_indices=True)

    def ratios(x, samples):
        return pool(x, 2, output_ratio=(0.5, 0.7, 0.6)[:rank], _random_samples=samples)

    check(both, torch.randn(2, 3, *sizes), torch.rand(2, 3, rank))
    check(ratios, torch.randn(3, *sizes), torch.rand(1, 3, rank))
    with pytest.raises(ImportFailure, match=r"aten\.rand\.default.*\n.*random numbers"):
        from_torch(Function(lambda x: pool(x, kernel, output_size=2)).eval(), (torch.randn(2, 3, *sizes),))


def test_points_of_volumes() -> None:
    volume, grid = torch.randn(2, 3, 4, 5, 6), torch.rand(2, 3, 4, 2, 3) * 3 - 1.5
    modes = [*itertools.product(("bilinear", "nearest"), ("zeros", "border", "reflection"), (False, True))]
    modes = modes[:: 1 if tiers.FULL else 3]  # reflection: below

    def sampled(x, g):
        return [F.grid_sample(x, g, mode, padding, align) for mode, padding, align in modes]

    check(sampled, volume, grid)
    thin = volume[:, :, :1, :, :1]
    check(lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=True), thin, grid)
    with pytest.raises(ImportFailure, match="bicubic"):
        from_torch(Function(lambda x, g: F.grid_sample(x, g, "bicubic", align_corners=False)).eval(), (volume, grid))


def test_numbers_beyond_f16_stay_numbers() -> None:
    """PyTorch computes with numbers in f32; in f16 they would be infinite or 0."""
    x = torch.tensor([1000.0, -3.0, 0.0]).half()
    check(lambda x: (x / 70000, x * 1e-6, (x * 100000) * 0, torch.sub(x, x, alpha=1e-7), 1e5 - x), x)
    rows = Dim("rows", min=1, max=200_000)
    run = compiled(lambda x: x.sum() / x.shape[0], torch.ones(3).half(), dims=({0: rows},))
    assert run(torch.full((150_000,), 0.25).half()).item() == 0.25


def test_the_mean_of_losses_may_have_a_sum_beyond_f16() -> None:
    x, targets = (torch.randn(20000, 4) * 8).half(), torch.randint(0, 4, (20000,))
    weight = torch.tensor([1.0, 2.0, 0.5, 3.0]).half()
    losses = compiled(lambda x, t: (F.cross_entropy(x, t), F.cross_entropy(x[..., None], t[:, None], weight)), x, targets)
    got = losses(x, targets)
    want = F.cross_entropy(x.double(), targets), F.cross_entropy(x.double(), targets, weight.double())
    torch.testing.assert_close([y.double() for y in got], list(want), rtol=2e-3, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_products_of_16_bits_have_results_of_32(dtype) -> None:
    """PyTorch runs these on a card only."""

    def products(x, w):
        return torch.mm(x[0], w[0], out_dtype=torch.float32), torch.bmm(x, w, out_dtype=torch.float32)

    x, w = torch.randn(2, 3, 40).to(dtype), torch.randn(2, 40, 5).to(dtype)
    every = x.float() @ w.float()
    torch.testing.assert_close(compiled(products, x, w)(x, w), (every[0], every), rtol=1e-6, atol=1e-5)
