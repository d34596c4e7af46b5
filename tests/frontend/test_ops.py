"""The other operators of the builder against torch in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ait_mlir.frontend import BuildError, build_module, ops
from ait_mlir.frontend.ops import FuncEnum
from tests.frontend.support import BATCH, SEQ, check, data, evaluate, tensor


def test_reductions():
    x = tensor("x", "batch", "seq", 6)
    check(
        lambda x: [
            ops.reduce_sum(1)(x),
            ops.reduce_mean([0, -1], keepdim=True)(x),
            ops.reduce_max(None)(x),
            ops.reduce_min(-2, keepdim=True)(x),
            ops.var(2)(x),
            ops.var([1, 2], unbiased=False, keepdim=True)(x),
            ops.vector_norm(dim=1)(x),
            ops.argmax(-1)(x),
            *ops.topk(2)(x),
        ],
        lambda x: [
            x.sum(1),
            x.mean([0, 2], keepdim=True),
            x.max(),
            x.amin(1, keepdim=True),
            x.var(2),
            x.var([1, 2], correction=0, keepdim=True),
            x.norm(dim=1),
            x.argmax(2),
            *x.topk(2),
        ],
        x,
    )
    assert ops.reduce_sum(0, dtype="float32")(x).dtype() == "float32"
    for build, message in (
        (lambda: ops.reduce_sum(3)(x), "dim 3 is out of range"),
        (lambda: ops.topk(7)(x), "k is 7, expected 1 to 6"),
        (lambda: ops.topk(1)(tensor("r")), "needs a dim to choose from"),
    ):
        with pytest.raises(BuildError, match=message):
            build()


def test_rms_norm_and_group_norm():
    x, g, b = tensor("x", "batch", "seq", 6), tensor("gg", 6), tensor("bbb", 6)
    check(
        lambda x, g: [ops.rms_norm()(x, g, eps=1e-3), ops.rms_norm([6])(x)],
        lambda x, g: [F.rms_norm(x, [6], g, 1e-3), F.rms_norm(x, [6], eps=1e-5)],
        x,
        g,
    )
    check(
        lambda x, g, b: [ops.group_norm(3, 6)(x, g, b), ops.group_norm(2, 6)(x)],
        lambda x, g, b: [F.group_norm(x.mT, 3, g, b).mT, F.group_norm(x.mT, 2).mT],
        x,
        g,
        b,
    )
    check(
        ops.group_norm_swish(3, 6), lambda x, g, b: F.silu(F.group_norm(x.mT, 3, g, b)).mT,
        tensor("x", "batch", "seq", 6), tensor("gg", 6), tensor("bbb", 6),
    )  # fmt: skip
    check(lambda x: ops.group_norm(2, 6)(x), lambda x: F.group_norm(x, 2), tensor("x", "batch", 6))
    with pytest.raises(BuildError, match="4 groups do not divide 6 channels"):
        ops.group_norm(4, 6)
    with pytest.raises(BuildError, match=r"group_norm.*needs \[batch, ..., 8\]"):
        ops.group_norm(4, 8)(x)


def test_order():
    x = tensor("x", "batch", "seq", 4)
    check(lambda t: ops.sort(1)(t)[0], lambda x: x.sort(1)[0], x)
    check(ops.argsort(-1, descending=True), lambda x: x.argsort(-1, descending=True), x)
    check(ops.argmin(1), lambda x: x.argmin(1), x)
    check(lambda t: ops.topk(2, -1, largest=False)(t)[0], lambda x: x.topk(2, -1, largest=False)[0], x)
    check(lambda t: ops.search_sorted()(ops.sort(-1)(t)[0], t), lambda x: torch.searchsorted(x.sort(-1)[0], x), x)
    check(
        lambda t: ops.histogram(3)(ops.cast()(t * 2.0, "int64")),
        lambda x: torch.histc(((x * 2).long()).double(), 3, 0, 2).long(),
        x,
    )


def test_cumsum():
    x = tensor("x", "batch", "seq", 4)
    check(ops.cumsum(1), lambda x: x.cumsum(1), x)
    check(ops.cumsum(-1, reverse=True), lambda x: x.flip(-1).cumsum(-1).flip(-1), x)
    check(ops.cumprod(1), lambda x: x.cumprod(1), x)
    check(ops.cummax(1), lambda x: x.cummax(1)[0], x)
    check(ops.cummin(0), lambda x: x.cummin(0)[0], x)
    check(ops.logcumsumexp(1), lambda x: x.logcumsumexp(1), x)
    check(ops.cumsum(1, exclusive=True), lambda x: x.cumsum(1) - x, x)


def test_rotary_embedding():
    """As a product of complex numbers."""

    def rotated(x, cos, sin):
        y = torch.complex(x[..., :3], x[..., 3:]) * torch.complex(cos, sin)
        return torch.cat([y.real, y.imag], -1)

    x, cos, sin = tensor("x", "batch", "seq", 2, 6), tensor("cos", "seq", 1, 3), tensor("sinn", "seq", 1, 3)
    check(ops.rotary_embedding(), rotated, x, cos, sin)


def test_norms_of_any_order():
    x = tensor("x", "batch", "seq", 4)
    for order in (0, 1, 3, 0.5, float("inf"), -float("inf")):
        check(ops.vector_norm(order, -1), lambda x, order=order: torch.linalg.vector_norm(x, order, -1), x)
    check(ops.reduce_prod(1), lambda x: x.prod(1), x)


def test_softmax_and_layernorm():
    x = tensor("x", "batch", "seq", 6)
    check(lambda x: [ops.softmax()(x, 1), ops.softmax()(x)], lambda x: [x.softmax(1), x.softmax(-1)], x)
    check(
        lambda x, g, b: [ops.layernorm()(x, g, b, [6], 1e-3), ops.layernorm([6])(x), ops.layernorm()(x, g)],
        lambda x, g, b: [F.layer_norm(x, [6], g, b, 1e-3), F.layer_norm(x, [6]), F.layer_norm(x, [6], g)],
        x, tensor("gg", 6), tensor("bbb", 6),
    )  # fmt: skip
    two = tensor("xx", "batch", 4, 6)
    check(lambda x: ops.layernorm()(x, normalized_shape=[4, 6]), lambda x: F.layer_norm(x, [4, 6]), two)


def test_shapes():
    x = tensor("x", "batch", "seq", 12)
    batch, seq, _ = x.shape()
    check(
        lambda x: [
            ops.reshape()(x, [batch, -1, 3, 4]), ops.reshape()(x, [-1, 12]), ops.flatten(1)(x),
            ops.unsqueeze(1)(x), ops.unsqueeze(-1)(x), ops.squeeze(1)(ops.unsqueeze(1)(x)),
            ops.squeeze(None)(ops.unsqueeze(0)(x)), ops.identity()(x),
            ops.permute()(x, [2, 0, -2]), ops.transpose()(x, 0, -1), ops.permute021()(x), ops.permute102()(x),
            ops.permute210()(x), ops.permute0213()(ops.reshape()(x, [batch, seq, 3, 4])),
            ops.expand()(ops.reshape()(x, [batch, 1, seq, 12]), [2, -1, 7, -1, -1]),
        ],
        lambda x: [
            x.reshape(BATCH, SEQ, 3, 4), x.reshape(-1, 12), x.flatten(1),
            x.unsqueeze(1), x.unsqueeze(-1), x, x, x,
            x.permute(2, 0, 1), x.transpose(0, -1), x.mT, x.permute(1, 0, 2),
            x.permute(2, 1, 0), x.reshape(BATCH, SEQ, 3, 4).permute(0, 2, 1, 3),
            x.reshape(BATCH, 1, SEQ, 12).expand(2, -1, 7, -1, -1),
        ],
        x,
    )  # fmt: skip


def test_slices():
    x = tensor("x", "batch", "seq", 12)
    seq = x.shape()[1]
    check(
        lambda x: [
            ops.dynamic_slice()(x, [None, 0, 2], [None, None, 100]),
            ops.dynamic_slice()(x, [0, None, -3], [None, -1, -1]),
            ops.dynamic_slice()(x, [0, 0, 0], [None, 3, None]),
            ops.dynamic_slice()(x, [0, seq // 2, 0], [None, seq, None]),
            ops.dynamic_slice()(x, [0, 0, 5], [None, None, 3]),
        ],
        lambda x: [x[:, :, 2:100], x[:, :-1, -3:-1], x[:, :3], x[:, SEQ // 2 :], x[:, :, 5:3]],
        x,
    )


def test_split_and_concatenate():
    x = tensor("x", "batch", 12)
    check(
        lambda x: [*ops.split()(x, 5, 1), *ops.split()(x, [2, 3, 7], -1), *ops.chunk()(x, 3, 1), *ops.chunk()(x, 5, 1)],
        lambda x: [*x.split(5, 1), *x.split([2, 3, 7], -1), *x.chunk(3, 1), *x.chunk(5, 1)],
        x,
    )
    check(
        lambda x, y: [ops.concatenate()([x, y, x], 1), ops.concatenate()([x, x])],
        lambda x, y: [torch.cat([x, y, x], 1), torch.cat([x, x])],
        x, tensor("yy", "batch", 4),
    )  # fmt: skip


def test_size_and_dims_as_values():
    x = tensor("x", "batch", "seq", 12)
    batch, seq, last = ops.size()(x)
    assert ops.size()(x, 1) == seq == ops.getitem()(ops.size()(x), 1)
    assert ops.int_elementwise(FuncEnum.MUL)(batch, last) == batch * 12


def test_embedding():
    table = tensor("table", 10, 4)
    ids = tensor("ids", "batch", "seq", dtype="int64")
    values = np.random.default_rng(0).integers(0, 10, (BATCH, SEQ))
    rows = np.random.default_rng(1).standard_normal((10, 4))
    (got,) = evaluate(ops.embedding()(table, ids), {"table": rows, "ids": values}, batch=BATCH, seq=SEQ)
    np.testing.assert_array_equal(got, rows[values])
    index = tensor("index", "batch", dtype="int32")
    (got,) = evaluate(ops.index_select()(table, index), {"table": rows, "index": values[:, 0]}, batch=BATCH)
    np.testing.assert_array_equal(got, rows[values[:, 0]])


def test_slices_end_to_end():
    x, y = tensor("x", "batch", 6, 4), tensor("y", "batch", 5, 4)
    rng = np.random.default_rng(3)
    given = {"x": rng.standard_normal((BATCH, 6, 4)), "y": rng.standard_normal((BATCH, 5, 4))}
    slices = [
        ops.dynamic_slice()(x, [None, 1, None], [None, 3, None]),
        ops.dynamic_slice()(y, [None, 0, 0], [None, 4, 4]),
    ]
    want = np.concatenate([given["x"][:, 1:3], given["y"][:, :4]], 1)
    (got,) = evaluate(ops.slice_scatter(1)(slices), given, batch=BATCH)
    np.testing.assert_array_equal(got, want)
    cat = ops.concatenate()
    cat(slices, 1)
    assert ops.slice_scatter.is_valid(cat)
    (got,) = evaluate(ops.slice_scatter.make_op(cat)(), given, batch=BATCH)
    np.testing.assert_array_equal(got, want)
    (got,) = evaluate(ops.slice_reshape_scatter(1, "fast_tanh")(slices, [x.shape()[0], 24]), given, batch=BATCH)
    np.testing.assert_allclose(got, np.tanh(want.reshape(BATCH, 24)))
    with pytest.raises(BuildError, match="no concatenation of results of dynamic_slice"):
        ops.slice_scatter.make_op(ops.gather())
    with pytest.raises(BuildError, match="needs slices"):
        ops.slice_scatter(1)()


def test_elements_by_index():
    x, index = tensor("x", "batch", 5, 4), tensor("index", "batch", 3, 4, dtype="int64")
    rng = np.random.default_rng(2)
    values, at = rng.standard_normal((BATCH, 5, 4)), rng.integers(0, 5, (BATCH, 3, 4))
    given = {"x": values, "index": at}
    (got,) = evaluate(ops.gather()(x, 1, index), given, batch=BATCH)
    np.testing.assert_array_equal(got, np.take_along_axis(values, at, 1))
    src = rng.standard_normal(at.shape)
    torch_sum = torch.from_numpy(values).scatter_add(1, torch.from_numpy(at), torch.from_numpy(src))
    (got,) = evaluate(
        ops.scatter(1, reduce="add")(x, index, tensor("src", "batch", 3, 4)), {**given, "src": src}, batch=BATCH
    )
    np.testing.assert_allclose(got, torch_sum.numpy())

    few = tensor("few", 2, dtype="int32")
    for dim, picked in ((-2, [4, 1]), (2, [0, -1]), (0, [0, -1])):
        (got,) = evaluate(ops.index_select(dim)(x, few), {"x": values, "few": np.array(picked)}, batch=BATCH)
        np.testing.assert_array_equal(got, np.take(values, picked, dim))
    rows = tensor("rows", "batch", 2, dtype="int64")
    (got,) = evaluate(ops.batch_gather()(x, rows), {"x": values, "rows": at[:, :2, 0]}, batch=BATCH)
    np.testing.assert_array_equal(got, np.stack([v[i] for v, i in zip(values, at[:, :2, 0], strict=True)]))


def test_attention():
    q, k, v = tensor("q", "batch", 2, "seq", 4), tensor("kk", "batch", 2, 7, 4), tensor("vvv", "batch", 2, 7, 6)
    mask = tensor("mask", "seq", 7)
    sdpa = F.scaled_dot_product_attention
    check(ops.attention(), sdpa, q, k, v)
    check(ops.attention(scale=0.3), lambda q, k, v: sdpa(q, k, v, scale=0.3), q, k, v)
    check(ops.attention(), sdpa, q, k, v, mask)
    same = tensor("same", "batch", 2, "seq", 4)
    check(
        ops.attention(causal=True),
        lambda q, k, v: sdpa(q, k, v, is_causal=True),
        q,
        same,
        tensor("vs", "batch", 2, "seq", 4),
    )
    few = [tensor(n, "batch", 1, "seq", 4) for n in ("kk", "vvv")]
    check(ops.attention(), lambda q, k, v: sdpa(q, k, v, enable_gqa=True), q, *few)
    near = torch.ones(SEQ, SEQ, dtype=torch.bool).tril(1).triu(-1)
    check(lambda q, k: ops.attention(window=2)(q, k, k), lambda q, k: sdpa(q, k, k, attn_mask=near), q, same)
    check(ops.mem_eff_attention(False), lambda q, k, v: sdpa(q, k, v).transpose(1, 2), q, k, v)


@pytest.mark.parametrize("columns", ["seq", 7, 3])
@pytest.mark.parametrize(("has_columns", "has_rows"), [(False, True), (True, False), (True, True)])
def test_attention_of_sequences_with_lengths(columns: int | str, has_columns: bool, has_rows: bool):
    """With a causal mask, row i sees the columns up to i that its sequence has."""
    q, k = tensor("q", "batch", 2, "seq", 4), tensor("kk", "batch", 2, columns, 4)
    v = tensor("vvv", "batch", 2, columns, 6)
    size = SEQ if columns == "seq" else int(columns)
    arrays = {t.name: data(t) for t in (q, k, v)}
    seen, rows = np.array([size, 0, 2][:BATCH], np.int32), np.array([2, SEQ, 1][:BATCH], np.int32)
    for is_causal, shape in ((False, ("batch", 1)), (True, ("batch",))):
        lengths = [tensor(n, *shape, dtype="int32") for n in ("seen", "rows")]
        given = [t if used else None for t, used in zip(lengths, (has_columns, has_rows), strict=True)]
        op = ops.mem_eff_attention(is_causal, 0, has_columns, has_rows)
        counts = {n: c.reshape(-1, *shape[1:]) for n, c in (("seen", seen), ("rows", rows))}
        used = {t.name: counts[t.name] for t in given if t is not None}
        (got,) = evaluate(op(q, k, v, *given), {**arrays, **used}, batch=BATCH, seq=SEQ)
        mask = torch.ones(BATCH, 1, SEQ, size, dtype=torch.bool)
        if has_columns:
            mask &= (torch.arange(size) < torch.from_numpy(seen)[:, None])[:, None, None]
        want = F.scaled_dot_product_attention(
            *(torch.from_numpy(arrays[n]) for n in ("q", "kk", "vvv")), mask.tril() if is_causal else mask
        )
        if has_rows:
            want = want * (torch.arange(SEQ) < torch.from_numpy(rows)[:, None])[:, None, :, None]
        np.testing.assert_allclose(got, want.transpose(1, 2).numpy(), rtol=1e-9, atol=1e-12)


def test_self_attention_of_sequences_is_by_their_lengths():
    """The same lengths for rows and columns: the sequences need no mask."""
    q, k = tensor("q", "batch", 2, "seq", 4), tensor("k", "batch", 2, "seq", 4)
    lengths = tensor("lengths", "batch", dtype="int32")
    y = ops.mem_eff_attention(True, 0, True, True)(q, k, k, lengths, lengths)
    assert "ait.ragged_attention" in str(build_module(y))
    arrays, counts = {t.name: data(t) for t in (q, k)}, np.array([2, SEQ, 0][:BATCH], np.int32)
    (got,) = evaluate(y, {**arrays, "lengths": counts}, batch=BATCH, seq=SEQ)
    for b, n in enumerate(counts):
        of, keys = (torch.from_numpy(arrays[name][b, :, :n]) for name in ("q", "k"))
        want = F.scaled_dot_product_attention(of, keys, keys, is_causal=True).transpose(0, 1).numpy()
        np.testing.assert_allclose(got[b, :n], want, rtol=1e-9)
        assert not got[b, n:].any()


def test_attention_of_packed_sequences():
    x, cuts = tensor("x", "seq", 3, 2, 4), tensor("cuts", 4, dtype="int32")
    packed, offsets = data(x), np.array([0, 1, 1, SEQ], np.int32)
    (got,) = evaluate(ops.flash_attention(3, 0, 8, True)(x, cuts), {"x": packed, "cuts": offsets}, seq=SEQ)
    for start, end in ((0, 1), (1, SEQ)):
        parts = torch.from_numpy(packed[start:end]).permute(1, 2, 0, 3)
        want = F.scaled_dot_product_attention(*parts, is_causal=True)
        np.testing.assert_allclose(got[start:end], want.transpose(0, 1).numpy(), rtol=1e-9)
