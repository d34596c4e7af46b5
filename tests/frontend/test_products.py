"""Products with their documented call signatures against torch in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.driver import program_of, run_to_phase
from ait_mlir.frontend import BuildError, IntVar, JaggedDim, Tensor, ops
from ait_mlir.frontend.graph import build_module
from ait_mlir.options import CompileOptions
from tests.frontend.support import check, evaluate, graph_of, tensor


@pytest.mark.parametrize("name", ["", "_bias", "_bias_relu", "_bias_sigmoid"])
def test_group_gemm(name):
    inputs = [tensor("a", "batch", 8), tensor("bb", 6, 8), tensor("c", 6), tensor("dd", "seq", 4), tensor("eee", 3, 4)]
    inputs.append(tensor("f", 3))
    last = {"_bias_relu": torch.relu, "_bias_sigmoid": torch.sigmoid}.get(name, lambda x: x)

    def build(a, v, c, b, w, d):
        groups = [[a, v, c], [b, w, d]] if name else [[a, v], [b, w]]
        return getattr(ops, f"group_gemm_rcr{name}")()(operand_groups=groups)

    bias = int(bool(name))
    check(build, lambda a, v, c, b, w, d: [last(a @ v.T + bias * c), last(b @ w.T + bias * d)], *inputs)


def test_group_gemm_into_one_tensor():
    inputs = [tensor("a", "batch", 8), tensor("bb", 6, 8), tensor("dd", "batch", 4), tensor("eee", 3, 4)]
    y = ops.group_gemm_rcr()([inputs[:2], inputs[2:]], output_stride_dim=1)
    assert [op.name for op in graph_of(y).block.ops][:2] == ["ait.grouped_gemm", "ait.concat"]
    check(
        lambda a, v, b, w: ops.group_gemm_rcr()([[a, v], [b, w]], output_stride_dim=1),
        lambda a, v, b, w: torch.cat([a @ v.T, b @ w.T], 1),
        *inputs,
    )


def test_group_gemm_names_what_is_wrong():
    a, b, c = tensor("a", "batch", 8), tensor("b", 6, 8), tensor("c", 5)
    with pytest.raises(BuildError, match=r"each group has 3 tensors \(a, b, bias\), found 2"):
        ops.group_gemm_rcr_bias()([[a, b]])
    with pytest.raises(BuildError, match=r"each group has 2 tensors \(a, b\), found no groups"):
        ops.group_gemm_rcr()([])
    with pytest.raises(BuildError, match=r'the bias must have shape \[6\], found "c" \[5\]'):
        ops.group_gemm_rcr_bias()([[a, b, c]])
    with pytest.raises(BuildError, match="a and b must have 2 dims"):
        ops.group_gemm_rcr()([[tensor("x", 2, "batch", 8), b]])


def test_ragged_gemm():
    a, b, ends = tensor("a", "batch", 8), tensor("b", 3, 8, 5), tensor("ends", 3, dtype="int32")
    x, w = np.random.default_rng(0).standard_normal((8, 8)), np.random.default_rng(1).standard_normal((3, 8, 5))
    (got,) = evaluate(ops.ragged_gemm()(a, b, ends), {"a": x, "b": w, "ends": np.array([2, 2, 7])}, batch=8)
    np.testing.assert_allclose(got, np.concatenate([x[:2] @ w[0], x[2:7] @ w[2], np.zeros((1, 5))]))


def three(n: str = "seq") -> tuple:
    return tensor("a", "batch", n, 8), tensor("bb", "batch", 6, 8), tensor("ccc", "batch", 6, 4)


def test_small_and_thin_products():
    a, b = tensor("a", "batch", "seq", 8), tensor("bb", "batch", 1, 8)
    check(ops.bmm_rcr_n1(), lambda a, b: a @ b.mT, a, b)
    check(lambda a, b: ops.bmm_rcr_n1()(a, b, alpha=0.5), lambda a, b: 0.5 * (a @ b.mT), a, b)
    check(
        ops.bmm_rrr_k1_tanh(),
        lambda a, b: torch.tanh(a @ b),
        tensor("a", "batch", "seq", 1),
        tensor("bb", "batch", 1, 5),
    )
    check(ops.gemm_rrr_small_nk(), torch.matmul, tensor("a", "seq", 6), tensor("bb", 6, 5))
    with pytest.raises(BuildError, match=r"bmm_rcr_n1.*b must have one row, \[B, 1, K\]"):
        ops.bmm_rcr_n1()(a, tensor("b", "batch", 2, 8))
    with pytest.raises(BuildError, match="sums have more than one product"):
        ops.bmm_rrr_k1_tanh()(a, b)


def test_quotients_of_products():
    a, b = tensor("a", "batch", "seq", 8), tensor("bb", "batch", 8, 6)
    for columns in (6, 1):
        other = tensor("ccc", "batch", 8, columns)
        check(lambda a, b, c: ops.dual_bmm_rrr_div()(a, b, bias=c), lambda a, b, c: (a @ b) / (a @ c), a, b, other)
    with pytest.raises(BuildError, match="must be like b"):
        ops.dual_bmm_rrr_div()(a, b, tensor("c", "batch", 8, 5))


@pytest.mark.parametrize("layout", ["rcr", "rrr"])
def test_batches_behind_rows(layout):
    a, bias = tensor("a", "seq", 3, 8), tensor("ccc", 3, 6)
    b = tensor("bb", 3, 6, 8) if layout == "rcr" else tensor("bb", 3, 8, 6)

    def want(a, b, bias=0.0):
        product = a.transpose(0, 1) @ (b.mT if layout == "rcr" else b)
        return product.transpose(0, 1) + bias

    check(getattr(ops, f"perm102_bmm_{layout}")(), want, a, b)
    biased = getattr(ops, f"perm102_bmm_{layout}_bias")
    check(lambda a, b, c: biased()(a, b, bias=c), want, a, b, bias)
    with pytest.raises(BuildError, match="needs a bias"):
        biased()(a, b)
    with pytest.raises(BuildError, match="takes no bias"):
        getattr(ops, f"perm102_bmm_{layout}")()(a, b, bias)
    with pytest.raises(BuildError, match=r"the bias must have shape \[3, 6\]"):
        biased()(a, b, tensor("c", 6))
    with pytest.raises(BuildError, match=r"a must have 3 dims, \[M, B, K\]"):
        biased()(tensor("a", 3, 8), b, bias)


def test_transposed_rows():
    a, b, wide, bias = tensor("a", "batch", 8, "seq"), tensor("bb", 1, 6, 8), tensor("www", 1, 8, 6), tensor("ccc", 6)
    check(ops.perm021fc_ccr(), lambda a, b: a.mT @ b.mT, a, b)
    check(ops.perm021fc_ccr_bias(), lambda a, b, c: a.mT @ b.mT + c, a, b, bias)
    check(ops.perm021fc_ccr_bias_permute(layout="021"), lambda a, b, c: (a.mT @ b.mT + c).mT, a, b, bias)
    check(ops.perm021fc_crc(), lambda a, b: (a.mT @ b).mT, a, wide)
    rows, weight = tensor("rows", "batch", 8, 9), tensor("weight", 1, 8, 6)
    linear = lambda w, x, c: torch.nn.functional.linear(x.mT, w[0].mT, c)  # noqa: E731
    check(lambda w, x, c: ops.perm021fc_crc_bias()(w, x, bias=c), linear, weight, rows, bias)
    with pytest.raises(BuildError, match=r"the bias must have shape \[6\]"):
        ops.perm021fc_crc_bias()(weight, rows, tensor("c", 9))
    with pytest.raises(BuildError, match='layout "102" is unknown'):
        ops.perm021fc_ccr_bias_permute("102")


def test_products_with_a_softmax():
    a, b, c = three()
    w, bias = tensor("ww", 6, 8), tensor("cc", 6)
    check(ops.gemm_rcr_softmax(), lambda a, w: torch.softmax(a @ w.T, -1), a, w)
    check(
        lambda a, w, c: ops.gemm_rcr_bias_softmax()(a, w, bias=c),
        lambda a, w, c: torch.softmax(a @ w.T + c, -1),
        a,
        w,
        bias,
    )
    check(ops.bmm_rcr_softmax(), lambda a, b: torch.softmax(a @ b.mT, -1), a, b)

    def attend(a, b, c, scale=1.0, mask=0.0):
        return torch.softmax(scale * (a @ b.mT) + mask, -1) @ c

    check(ops.bmm_softmax_bmm(), attend, a, b, c)
    check(ops.bmm_softmax_bmm(0.3), lambda a, b, c: attend(a, b, c, 0.3), a, b, c)
    q, k, v = tensor("a", 6, "seq", 8), tensor("bb", 6, "seq", 8), tensor("ccc", 6, "seq", 4)

    def headed(y):
        return y.reshape(2, 3, 5, 4).transpose(1, 2)

    later = torch.full((5, 5), -torch.inf, dtype=torch.float64).triu(1)
    check(ops.bmm_softmax_bmm_permute((3,), 0.3), lambda a, b, c: headed(attend(a, b, c, 0.3)), q, k, v)
    check(ops.bmm_softmax_bmm_permute((3,), causal=True), lambda a, b, c: headed(attend(a, b, c, mask=later)), q, k, v)
    with pytest.raises(BuildError, match="the batch cannot be cut into heads"):
        ops.bmm_softmax_bmm_permute((4,))(q, k, v)
    with pytest.raises(BuildError, match='layout "0213" with 2 dims in shape is unknown'):
        ops.bmm_softmax_bmm_permute((3, 2))
    with pytest.raises(BuildError, match="all inputs must have 3 dims"):
        ops.bmm_softmax_bmm()(a, b, w)


NONE, UPPER, LOWER = ops.CausalType.NO_CAUSAL, ops.CausalType.UPPER_RIGHT_EMPTY, ops.CausalType.LOWER_LEFT_EMPTY


@pytest.mark.parametrize("causal", [NONE, UPPER, LOWER])
def test_two_products_with_a_function_between(causal):
    keep = {NONE: lambda s: s, UPPER: torch.tril, LOWER: torch.triu}[causal]
    q, k, v = tensor("a", "batch", "seq", 8), tensor("bb", "batch", "seq", 8), tensor("ccc", "batch", "seq", 4)

    def want(q, k, v, bias):
        return keep(0.7 * torch.sigmoid(0.3 * (q @ k.mT) + bias)) @ v

    bias = tensor("dddd", "batch", "seq", "seq")
    check(ops.classic_b2b_bmm(causal, "Sigmoid", 0.3, 0.7), want, q, k, v, bias)
    check(
        ops.classic_b2b_bmm(causal, "ReLu", 1.0, 0.7, alpha1_divide_by_seq_len=True),
        lambda q, k, v, bias: keep(torch.relu(q @ k.mT + bias) * (0.7 / 5)) @ v,
        q, k, v, bias,
    )  # fmt: skip
    heads = [tensor(t.name, "batch", "seq", 2, t.type.dims[2].as_int()) for t in (q, k, v)]
    op = ops.fmha_style_b2b_bmm(causal, "SiLu", 0.3, 1.0)

    def want_heads(q, k, v, bias=0.0):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        return (keep(torch.nn.functional.silu(0.3 * (q @ k.mT) + bias)) @ v).transpose(1, 2)

    check(op, want_heads, *heads)
    check(lambda q, k, v, b: op(q, k, v, bias=b), want_heads, *heads, tensor("dddd", 1, 2, "seq", "seq"))


@pytest.mark.parametrize("causal", [NONE, UPPER, LOWER])
def test_two_products_with_heads(causal):
    """The heads are behind the rows, also where there are as many: [batch, rows, heads, columns]."""
    keep = {NONE: lambda s: s, UPPER: torch.tril, LOWER: torch.triu}[causal]

    def want(q, k, v, bias):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        return (keep(0.7 * torch.sigmoid(0.3 * (q @ k.mT) + bias)) @ v).transpose(1, 2)

    op = ops.classic_b2b_bmm(causal, "Sigmoid", 0.3, 0.7)
    for rows, heads in (("seq", 2), (3, 3)):
        q, k, v = (tensor(n, "batch", rows, heads, c) for n, c in (("a", 8), ("bb", 8), ("ccc", 4)))
        check(op, want, q, k, v, tensor("dddd", "batch", heads, rows, rows))
        check(op, want, q, k, v, tensor("dddd", 1, heads, 1, rows))
    with pytest.raises(BuildError, match=r"k must have 3 dims, .* or 4 dims, .* all of one rank, found \"aa\""):
        ops.classic_b2b_bmm(causal, "Sigmoid", 0.3, 0.7)(q, tensor("aa", "batch", "seq", 8), v, q)


def test_a_sum_of_no_products_is_0():
    a, b = tensor("a", "batch", 3, 0), tensor("b", "batch", 0, 4)
    check(ops.bmm_rrr_k1_tanh(), lambda a, b: torch.tanh(a @ b), a, b)
    with pytest.raises(BuildError, match="sums have more than one product"):
        ops.bmm_rrr_k1_tanh()(a, tensor("c", "batch", 1, 4))


def test_two_products_name_what_is_wrong():
    q, k, v = three()
    with pytest.raises(BuildError, match='epilogue_math_name "Cosh" is unknown; expected one of fastgelu'):
        ops.classic_b2b_bmm(NONE, "Cosh", 1.0, 1.0)
    with pytest.raises(BuildError, match="a mask needs as many rows as columns of scores, found seq and 6"):
        ops.classic_b2b_bmm(UPPER, "Identity", 1.0, 1.0)(q, k, v, tensor("d", "batch", "seq", 6))
    with pytest.raises(BuildError, match="the bias does not broadcast to the scores"):
        ops.classic_b2b_bmm(NONE, "Identity", 1.0, 1.0)(q, k, v, tensor("d", 3, "batch", "seq", 6))
    with pytest.raises(BuildError, match=r"q must have 4 dims, \[batch, rows, heads, columns\]"):
        ops.fmha_style_b2b_bmm(NONE, "Identity", 1.0, 1.0)(q, k, v)


def test_operands_by_their_documented_names():
    a, b, bias, d = tensor("a", "seq", 8), tensor("bb", 6, 8), tensor("ccc", 6), tensor("dddd", "seq", 6)
    check(
        lambda a, b, c, d: ops.gemm_rcr_bias_mul_add()(a, b, d1=d, bias=c, d0=d),
        lambda a, b, c, d: (a @ b.T + c) * d + d,
        a, b, bias, d,
    )  # fmt: skip
    x, y = tensor("a", "batch", "seq", 8), tensor("bb", "batch", 6, 8)
    check(
        lambda a, b, c: ops.bmm_rcr_add()(a, b, c=c), lambda a, b, c: a @ b.mT + c, x, y, tensor("c", "batch", "seq", 6)
    )
    check(
        lambda a, b, c: ops.gemm_rcr_bias_permute((3, 2), "0213")(a, b, bias=c),
        lambda a, b, c: (a @ b.T + c).reshape(2, 3, 2, 3).transpose(1, 2),
        tensor("a", 6, 8), b, bias,
    )  # fmt: skip
    check(
        lambda a, b, c: ops.dual_gemm_rcr_silu()(a, b, bias=c),
        lambda a, b, c: torch.nn.functional.silu(a @ b.T) * (a @ c.T),
        a, b, tensor("c", 6, 8),
    )  # fmt: skip
    check(
        lambda a, b, c: ops.dual_gemm_rcr_fast_gelu()(a, b, c),
        lambda a, b, c: torch.nn.functional.gelu(a @ b.T, approximate="tanh") * (a @ c.T),
        a, b, tensor("one_row", 1, 8),
    )  # fmt: skip
    with pytest.raises(BuildError, match="the second factor must be like b"):
        ops.dual_gemm_rcr_silu()(a, b, tensor("c", 5, 8))
    check(
        lambda a, b, c: ops.gemm_rcr_bias_permute((3, 2, 2), "m3n2")(a, b, bias=c),
        lambda a, b, c: (a @ b.T + c).reshape(2, 3, 2, 2, 3).permute(2, 0, 3, 1, 4),
        tensor("a", 12, 8), b, bias,
    )  # fmt: skip


@pytest.mark.parametrize("causal", [NONE, UPPER, LOWER])
def test_two_products_of_sequences_of_their_own_lengths(causal):
    keep = {NONE: lambda s: s, UPPER: np.tril, LOWER: np.triu}[causal]
    starts = np.array([0, 3, 3, 8], np.int32)
    total, batch, longest = IntVar([0, 64], name="total"), IntVar([1, 8], name="batch"), 6
    offsets = Tensor(shape=[batch + 1], dtype="int32", name="offsets", is_input=True)
    rows = {"q": [2, 8], "k": [2, 8], "v": [2, 4]}
    made = {n: Tensor(shape=[total, *s], dtype="float64", name=n, is_input=True) for n, s in rows.items()}
    q, k, v = ops.make_jagged(batch, [JaggedDim(0, longest)])(list(made.values()), [offsets])
    bias = Tensor(shape=[1, 2, longest, longest], dtype="float64", name="bias", is_input=True)
    options = (causal, "SiLu", 0.3, 0.5, True)
    results = [
        ops.grouped_fmha_style_b2b_bmm(*options)(q, k, v),
        ops.grouped_classic_b2b_bmm(*options)(q, k, v, bias=bias),
    ]
    rng = np.random.default_rng(0)
    given = {n: rng.standard_normal([8, *s]) for n, s in rows.items()}
    given["bias"], given["offsets"] = rng.standard_normal([1, 2, longest, longest]), starts
    found = evaluate([y.mark_as_output(f"y{i}") for i, y in enumerate(results)], given, total=8, batch=3)
    for added, got in zip((0.0, given["bias"][0]), found, strict=True):
        want = np.zeros([8, 2, 4])
        for begin, end in itertools.pairwise(starts):
            q1, k1, v1 = (given[n][begin:end].transpose(1, 0, 2) for n in "qkv")
            size = end - begin
            scores = 0.3 * (q1 @ k1.transpose(0, 2, 1)) + np.broadcast_to(added, [2, longest, longest])[:, :size, :size]
            scores = keep(scores / (1 + np.exp(-scores)) * 0.5 / longest)
            want[begin:end] = (scores @ v1).transpose(1, 0, 2)
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_sequences_name_what_is_wrong():
    q = tensor("q", "batch", 2, 8)
    op = ops.grouped_fmha_style_b2b_bmm(NONE, "Identity", 1.0, 1.0)
    with pytest.raises(BuildError, match=r"q must be jagged, \[rows, heads, columns\] with one level"):
        op(q, q, q)
    total, batch = IntVar([0, 64], name="total"), IntVar([1, 8], name="batch")
    offsets = Tensor(shape=[batch + 1], dtype="int32", name="offsets", is_input=True)
    x = Tensor(shape=[total, 2, 8], name="x", is_input=True)
    j = ops.make_jagged(batch, [JaggedDim(0, 6)])(x, [offsets])
    ops.grouped_fmha_style_b2b_bmm(NONE, "Identity", 1.0, 1.0, num_heads=2)(j, j, j)
    with pytest.raises(BuildError, match="num_heads is 3, but q has 2 heads"):
        ops.grouped_fmha_style_b2b_bmm(NONE, "Identity", 1.0, 1.0, num_heads=3)(j, j, j)
    with pytest.raises(BuildError, match="k must be jagged as q is"):
        op(ops.make_jagged(batch, [JaggedDim(0, 6)])(x, [offsets]), x, x)


@pytest.mark.parametrize("target", [("cpu", "native"), ("cuda", "sm_90a"), ("rocm", "gfx90a")], ids=lambda t: t[0])
@pytest.mark.parametrize("causal", ops.CausalType)
def test_b2b_bmm_is_one_launch(causal, target):
    b = IntVar([1, 8], name="b")

    def inputs(*shapes):
        return [Tensor([b, *s], name=n, dtype="float16", is_input=True) for n, s in zip("qkvd", shapes, strict=False)]

    classic = ops.classic_b2b_bmm(causal, "Sigmoid", 0.5, 2.0, True)(*inputs((64, 16), (64, 16), (64, 8), (64, 64)))
    fmha = ops.fmha_style_b2b_bmm(causal, "SiLu", 0.5, 1.0)(*inputs((64, 4, 16), (64, 4, 16), (64, 4, 8)))
    for y in (classic, fmha):
        y._attrs["is_output"] = True
        module = run_to_phase(build_module(y), "planned", CompileOptions(target[0], target[1]))
        launches = [op for op in program_of(module).walk() if isinstance(op, LaunchOp)]
        assert [op.kernel.string_value().split("_")[0] for op in launches] == ["attention"]
