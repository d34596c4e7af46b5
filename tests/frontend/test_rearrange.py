"""Operators made of others that arrange, reduce, normalise and sample, against torch in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ait_mlir.frontend import BuildError, ops
from tests.frontend.support import BATCH, check, evaluate, tensor


def test_elements_are_arranged():
    x = tensor("x", "batch", "seq", 6)
    check(
        lambda x: [
            ops.flip([0, -2])(x),
            ops.flip(2)(x),
            ops.roll(2, 1)(x),
            ops.roll([-7, 1], [1, 2])(x),
            ops.tril()(x),
            ops.tril(-2)(x),
            ops.triu(1)(x),
            ops.repeat_interleave(3, 1)(x),
        ],
        lambda x: [
            x.flip(0, 1),
            x.flip(2),
            x.roll(2, 1),
            x.roll((-7, 1), (1, 2)),
            x.tril(),
            x.tril(-2),
            x.triu(1),
            x.repeat_interleave(3, 1),
        ],
        x,
    )


def test_a_grid_of_places():
    x, y, z = tensor("x", "batch"), tensor("yy", "seq"), tensor("zzz", 2)
    for indexing in ("ij", "xy"):
        check(
            lambda *given, indexing=indexing: [*ops.meshgrid(indexing)(*given), *ops.meshgrid(indexing)(given[0])],
            lambda *given, indexing=indexing: [
                *torch.meshgrid(*given, indexing=indexing),
                *torch.meshgrid(given[0], indexing=indexing),
            ],
            x,
            y,
            z,
        )


def test_pixels_become_channels_and_channels_pixels():
    x = tensor("x", "batch", 4, 6, 8)
    check(
        lambda x: [ops.pixel_shuffle(2)(x), ops.pixel_unshuffle(2)(x), ops.pixel_unshuffle(2)(ops.pixel_shuffle(2)(x))],
        lambda x: [
            F.pixel_shuffle(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1),
            F.pixel_unshuffle(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1),
            x,
        ],
        x,
    )


def test_classes_and_sums_at_places():
    i, x, s = tensor("i", "batch", 4, dtype="int64"), tensor("x", "batch", 6), tensor("s", "batch", 4)
    rng = np.random.default_rng(0)
    given = {"i": rng.integers(0, 6, (BATCH, 4)), "x": rng.standard_normal((BATCH, 6))}
    given["s"] = rng.standard_normal((BATCH, 4))
    got = evaluate([ops.one_hot(6)(i), ops.scatter_add(1)(x, i, s)], given, batch=BATCH)
    index = torch.from_numpy(given["i"])
    np.testing.assert_array_equal(got[0], F.one_hot(index, 6).numpy())
    want = torch.from_numpy(given["x"]).scatter_add(1, index, torch.from_numpy(given["s"]))
    np.testing.assert_allclose(got[1], want.numpy())


def test_other_reductions():
    x = tensor("x", "batch", "seq", 6)
    check(
        lambda x: [
            ops.logsumexp(1)(x),
            ops.logsumexp([0, 2], keepdim=True)(x * 1e3),
            ops.logsumexp(2)(x * 1e308 * -10.0),
            ops.reduce_any([0, 2])(ops.gt()(x, 1.5)),
            ops.reduce_all(1, keepdim=True)(ops.gt()(x, -1.0)),
        ],
        lambda x: [
            x.logsumexp(1),
            (x * 1e3).logsumexp((0, 2), keepdim=True),
            (x * 1e308 * -10.0).logsumexp(2),
            (x > 1.5).any(2).any(0),
            (x > -1.0).all(1, keepdim=True),
        ],
        x,
    )


def test_batch_norm_and_samples_at_places():
    x, m, v, g = tensor("x", "batch", 5, 6, 3), tensor("mm", 3), tensor("vvv", 3), tensor("gggg", 3)
    check(
        lambda x, m, v, g: [ops.batch_norm(1e-3)(x, m, v), ops.batch_norm()(x, m, v, g, m)],
        lambda x, m, v, g: [
            F.batch_norm(x.movedim(-1, 1), m, v, eps=1e-3).movedim(1, -1),
            F.batch_norm(x.movedim(-1, 1), m, v, g, m).movedim(1, -1),
        ],
        x,
        m,
        v,
        g,
        positive=True,
    )
    grid = tensor("ggggg", "batch", 4, 2, 2)
    cases = [("bilinear", "zeros", False), ("nearest", "border", True), ("bicubic", "reflection", False)]
    check(
        lambda x, grid: [ops.grid_sample(*case)(x, grid) for case in cases],
        lambda x, grid: [F.grid_sample(x.permute(0, 3, 1, 2), grid, *case).permute(0, 2, 3, 1) for case in cases],
        x,
        grid,
    )


def test_what_does_not_fit_is_named():
    x, m = tensor("x", "batch", 4, 6, 6), tensor("mm", 5)
    for build, message in (
        (lambda: ops.roll([1, 2], 0)(x), "has 2 shifts for 1 dims"),
        (lambda: ops.tril()(m), "needs two dims"),
        (lambda: ops.pixel_shuffle(4)(x), "a multiple of 16"),
        (lambda: ops.one_hot(0)(x), "num_classes is 0"),
        (lambda: ops.repeat_interleave(0, 1)(x), "repeats is 0"),
        (lambda: ops.reduce_any(0)(x), "needs a bool tensor"),
        (lambda: ops.meshgrid()(x), "tensors of one dim"),
        (lambda: ops.batch_norm()(x, m, m), "of the channels of"),
    ):
        with pytest.raises(BuildError, match=message):
            build()
