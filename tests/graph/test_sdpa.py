"""Attention: masks, lengths, pages, statistics; each against scores that are written out."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from ait_mlir.graph.operations.sdpa_lowering import alibi_slopes
from tests import tiers
from tests.graph.cases import Cases

DTYPES = {"half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32}
LOOSE = {torch.float16: 5e-3, torch.bfloat16: 3e-2, torch.float32: 1e-4}
B, H, D = 2, 4, 16
SCALE = 0.3
BOTTOM = cudnn.diagonal_alignment.BOTTOM_RIGHT


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    left: int | None = None,
    right: int | None = None,
    bottom: bool = False,
    rows: torch.Tensor | None = None,
    columns: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    alibi: bool = False,
    sink: torch.Tensor | None = None,
    scale: float = SCALE,
    cap: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The output and the logarithm of the sum of the exponentials; 0 and -inf for rows without a visible column."""
    q, k, v = (x.double() for x in (q, k, v))
    repeat = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeat, 1) for x in (k, v))
    s, n = q.shape[2], k.shape[2]
    scores = q @ k.mT * scale
    scores = scores if cap is None else torch.tanh(scores / cap) * cap
    row, column = torch.arange(s)[:, None], torch.arange(n)[None]
    if bias is not None:
        scores = scores + bias.double()
    if alibi:
        scores = scores + torch.tensor(alibi_slopes(q.shape[1])).reshape(1, -1, 1, 1) * (column - row)
    visible = torch.ones(q.shape[0], 1, s, n, dtype=torch.bool)
    place = row.expand(q.shape[0], 1, s, 1)
    r = torch.full((q.shape[0],), s) if rows is None else rows.reshape(-1).long()
    c = torch.full((q.shape[0],), n) if columns is None else columns.reshape(-1).long()
    if bottom:
        place = place + (c - r).reshape(-1, 1, 1, 1)
    if right is not None:
        visible = visible & (column <= place + right)
    if left is not None:
        visible = visible & (column > place - left)
    visible = visible & (row < r.reshape(-1, 1, 1, 1)) & (column < c.reshape(-1, 1, 1, 1))
    scores = scores.masked_fill(~visible, -math.inf)
    lse = scores.logsumexp(-1, keepdim=True)
    if sink is not None:
        lse = torch.logaddexp(lse, sink.double().expand_as(lse))
    weights = torch.where(lse == -math.inf, 0.0, (scores - lse).exp())
    return weights @ v, lse


MASKS: dict[str, tuple[tuple[int, int], dict[str, Any], dict[str, Any]]] = {
    "plain": ((8, 8), {}, {}),
    "longer k": ((5, 9), {}, {}),
    "causal": ((8, 8), {"use_causal_mask": True}, {"right": 0}),
    "causal, shorter q": ((5, 9), {"use_causal_mask": True}, {"right": 0}),
    "causal, longer q": ((9, 5), {"use_causal_mask": True}, {"right": 0}),
    "bottom right": ((5, 9), {"use_causal_mask_bottom_right": True}, {"right": 0, "bottom": True}),
    "bottom right, longer q": ((9, 5), {"use_causal_mask_bottom_right": True}, {"right": 0, "bottom": True}),
    "window": ((8, 8), {"use_causal_mask": True, "sliding_window_length": 3}, {"right": 0, "left": 3}),
    "window by bounds": (
        (5, 9),
        {"diagonal_band_left_bound": 4, "diagonal_band_right_bound": 0, "diagonal_alignment": BOTTOM},
        {"right": 0, "left": 4, "bottom": True},
    ),
    "window without causal": ((8, 8), {"diagonal_band_left_bound": 3}, {"left": 3}),
    "right bound": ((8, 8), {"diagonal_band_right_bound": 2}, {"right": 2}),
    "bounds beyond 31 bits": ((8, 6), {"diagonal_band_left_bound": 1 << 32, "diagonal_band_right_bound": (1 << 31) - 1}, {}),
    "the largest bounds": (
        (8, 6),
        {"diagonal_band_left_bound": (1 << 30) - 1, "diagonal_band_right_bound": (1 << 30) - 1, "diagonal_alignment": BOTTOM},
        {},
    ),
    "window beyond 64 bits": ((6, 8), {"use_causal_mask": True, "sliding_window_length": 1 << 70}, {"right": 0}),
    "band": ((6, 8), {"diagonal_band_left_bound": 2, "diagonal_band_right_bound": 1}, {"left": 2, "right": 1}),
    "rows beyond a window": ((9, 4), {"diagonal_band_left_bound": 2}, {"left": 2}),
    "alibi": ((8, 8), {"use_causal_mask": True, "use_alibi_mask": True}, {"right": 0, "alibi": True}),
    "default scale": ((8, 8), {"attn_scale": None}, {"scale": 1.0}),
}
EXTRAS = (
    *("bias", "bias of a head", "padding", "padding, causal", "padding, bottom right", "padding, cumulative"),
    *("padding with bias", "grouped heads", "one head of k", "pages", "pages of other tables", "pages, fewer columns"),
    *("stats", "stats of causal", "stats in base 2", "stats of padding", "score_max", "score_sum_exp"),
    *("sink", "stats of sink", "packed", "wide result", "scale by value"),
    *(
        "heads of k and of v",
        "pages of other heads",
        "block mask",
        "no dropout",
        "score_max of sink",
        "score_sum_exp of sink",
    ),
    *(
        "soft cap",
        "soft cap, causal, padding",
        "soft cap of pages",
        "soft cap, lengths for the function alone",
        "documents",
        "stats of a soft cap",
    ),
)


@pytest.fixture(scope="module", params=tiers.params(DTYPES, ["half"]))
def cases(request: pytest.FixtureRequest, place: str) -> Cases:
    torch.manual_seed(6)
    dtype = DTYPES[request.param]
    c = Cases(place)
    g = c.graph

    def data(*shape: int) -> torch.Tensor:
        return torch.randn(shape).to(dtype)

    def out(name: str, t: Any, expected: torch.Tensor, of: torch.dtype = dtype) -> None:
        c.output(name, t, expected, torch.empty(expected.shape, dtype=of), LOOSE[dtype])

    def three(s: int, n: int, heads: int = H) -> tuple[torch.Tensor, ...]:
        return data(B, H, s, D), data(B, heads, n, D), data(B, heads, n, D)

    for name, ((s, n), options, mask) in MASKS.items():
        q, k, v = three(s, n)
        o, none = g.sdpa(c.input(q), c.input(k), c.input(v), generate_stats=False, **{"attn_scale": SCALE, **options})
        assert none is None
        out(name, o, attend(q, k, v, **mask)[0])

    q, k, v = three(8, 8)
    tq, tk, tv = c.input(q), c.input(k), c.input(v)
    usual = {"q": tq, "k": tk, "v": tv, "attn_scale": SCALE}
    for name, shape in (("bias", (1, 1, 8, 8)), ("bias of a head", (B, H, 1, 8))):
        bias = data(*shape)
        out(name, g.sdpa(**usual, bias=c.input(bias), is_inference=True)[0], attend(q, k, v, bias=bias)[0])
    rows, columns = torch.tensor([5, 8], dtype=torch.int32), torch.tensor([7, 3], dtype=torch.int32)
    lengths = {
        "use_padding_mask": True,
        "seq_len_q": c.input(rows.reshape(B, 1, 1, 1)),
        "seq_len_kv": c.input(columns.reshape(B, 1, 1, 1)),
    }
    padded = {"rows": rows, "columns": columns}
    out("padding", g.sdpa(**usual, **lengths)[0], attend(q, k, v, **padded)[0])
    out("padding, causal", g.sdpa(**usual, **lengths, use_causal_mask=True)[0], attend(q, k, v, right=0, **padded)[0])
    o, _ = g.sdpa(**usual, **lengths, use_causal_mask_bottom_right=True)
    out("padding, bottom right", o, attend(q, k, v, right=0, bottom=True, **padded)[0])
    ends = [torch.cat([torch.zeros(1), x.cumsum(0)]).to(torch.int32).reshape(B + 1, 1, 1, 1) for x in (rows, columns)]
    o, _ = g.sdpa(**usual, use_padding_mask=True, cu_seq_len_q=c.input(ends[0]), cu_seq_len_kv=c.input(ends[1]))
    out("padding, cumulative", o, attend(q, k, v, **padded)[0])
    bias = data(1, H, 8, 8)
    out("padding with bias", g.sdpa(**usual, **lengths, bias=c.input(bias))[0], attend(q, k, v, bias=bias, **padded)[0])
    for name, heads in (("grouped heads", 2), ("one head of k", 1)):
        few = three(8, 8, heads)
        o, _ = g.sdpa(*map(c.input, few), attn_scale=SCALE, use_causal_mask=True)
        out(name, o, attend(*few, right=0)[0])

    pools = [data(6, 2, 4, D), data(6, 2, 4, D)]
    tables = [torch.tensor([[3, 0], [5, 1]], dtype=torch.int32), torch.tensor([[2, 4], [1, 0]], dtype=torch.int32)]
    given = [c.input(t.reshape(B, 1, 2, 1)) for t in tables]
    tk_pool, tv_pool = map(c.input, pools)

    def unpaged(pool: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return pool[table.long()].permute(0, 2, 1, 3, 4).reshape(B, 2, 8, D)

    for name, (first, second), most in (
        ("pages", (0, 0), None),
        ("pages of other tables", (0, 1), None),
        ("pages, fewer columns", (0, 1), 7),
    ):
        o, _ = g.sdpa(
            tq,
            tk_pool,
            tv_pool,
            attn_scale=SCALE,
            paged_attention_k_table=given[first],
            paged_attention_v_table=given[second],
            paged_attention_max_seq_len_kv=most,
            **lengths,
        )
        out(name, o, attend(q, unpaged(pools[0], tables[first]), unpaged(pools[1], tables[second]), **padded)[0])

    for name, options, mask in (
        ("stats", {}, {}),
        ("stats of causal", {"use_causal_mask": True}, {"right": 0}),
        ("stats of padding", lengths, padded),
    ):
        o, stats = g.sdpa(**usual, generate_stats=True, **options)
        out(name, stats, attend(q, k, v, **mask)[1], torch.float32)
    _, stats = g.sdpa(**usual, is_inference=False, stats_use_log2=True)
    out("stats in base 2", stats, attend(q, k, v)[1] * math.log2(math.e), torch.float32)
    scores = q.double() @ k.double().mT * SCALE
    largest, total = (g.tensor([B, H, 8, 1], data_type=cudnn.data_type.FLOAT, name=n) for n in ("largest", "total"))
    g.sdpa(**usual, score_max=largest, score_sum_exp=total)
    out("score_max", largest, scores.amax(-1, keepdim=True), torch.float32)
    out("score_sum_exp", total, (scores - scores.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True), torch.float32)
    sink = torch.randn(1, H, 1, 1)
    o, stats = g.sdpa(**usual, sink_token=c.input(sink), generate_stats=True, use_causal_mask=True)
    expected = attend(q, k, v, right=0, sink=sink)
    out("sink", o, expected[0])
    out("stats of sink", stats, expected[1], torch.float32)
    names = ("largest with sink", "total with sink")
    largest, total = (g.tensor([B, H, 8, 1], data_type=cudnn.data_type.FLOAT, name=n) for n in names)
    for t in (largest, total):
        t.set_output(True)
    g.sdpa(**usual, sink_token=c.input(sink), score_max=largest, score_sum_exp=total)
    with_sink = torch.cat([scores, sink.double().expand(B, H, 8, 1)], -1)
    out("score_max of sink", largest, with_sink.amax(-1, keepdim=True), torch.float32)
    expected = (with_sink - with_sink.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True)
    out("score_sum_exp of sink", total, expected, torch.float32)
    whole = data(B, 8, 3, H, D)
    pieces = [whole[:, :, i].permute(0, 2, 1, 3) for i in range(3)]
    o, _ = g.sdpa(*map(c.input, pieces), attn_scale=SCALE, use_causal_mask=True)
    like = torch.empty(B, 8, H, D, dtype=dtype).permute(0, 2, 1, 3)
    c.output("packed", o, attend(*pieces, right=0)[0], like, LOOSE[dtype])
    o, _ = g.sdpa(**usual)
    out("wide result", g.mul(o, 2.0), attend(q, k, v)[0] * 2)
    scale = c.input(torch.full((1, 1, 1, 1), SCALE), is_pass_by_value=True, name="scale")
    if c.is_evaluated:
        scale.value = SCALE
    out("scale by value", g.sdpa(tq, tk, tv, attn_scale=scale)[0], attend(q, k, v)[0])

    few = data(B, 2, 8, D)
    expected = attend(q, k, few.repeat_interleave(2, 1), right=0)[0]
    out("heads of k and of v", g.sdpa(tq, tk, c.input(few), attn_scale=SCALE, use_causal_mask=True)[0], expected)
    other = data(6, 1, 4, D)
    o, _ = g.sdpa(
        tq, tk_pool, c.input(other), attn_scale=SCALE, **lengths,
        paged_attention_k_table=given[0], paged_attention_v_table=given[1],
    )  # fmt: skip
    of_pages = other[tables[1].long()].permute(0, 2, 1, 3, 4).reshape(B, 1, 8, D).repeat_interleave(2, 1)
    out("pages of other heads", o, attend(q, unpaged(pools[0], tables[0]), of_pages, **padded)[0])

    long_q, long_k, long_v = data(1, 2, 130, D), data(1, 2, 300, D), data(1, 2, 300, D)
    bits = torch.tensor([[[0b101], [0b010]], [[0b110], [0b111]]], dtype=torch.uint8)[None]
    shown = torch.stack([bits & (1 << i) for i in range(3)], -1).ne(0).reshape(1, 2, 2, 3)
    shown = shown.repeat_interleave(128, 2).repeat_interleave(128, 3)[:, :, :130, :300]
    o, _ = g.sdpa(*map(c.input, (long_q, long_k, long_v)), attn_scale=SCALE, block_mask=c.input(bits))
    bias = torch.where(shown, 0.0, -math.inf)
    out("block mask", o, attend(long_q, long_k, long_v, bias=bias)[0])
    seed, offset = (c.input(torch.zeros(1, 1, 1, 1, dtype=torch.int64)) for _ in range(2))
    out("no dropout", g.sdpa(**usual, dropout=(0.0, seed, offset))[0], attend(q, k, v)[0])

    cap = c.input(torch.full((1, 1, 1, 1), 0.8), name="cap")

    def capped(graph: Any, scores: Any) -> Any:
        return graph.mul(a=graph.tanh(input=graph.div(a=scores, b=cap)), b=cap)

    out("soft cap", g.sdpa(**usual, score_mod=capped)[0], attend(q, k, v, cap=0.8)[0])
    o, stats = g.sdpa(**usual, **lengths, score_mod=capped, use_causal_mask=True, generate_stats=True, name="capped")
    assert (o.get_name(), stats.get_name()) == ("capped::O", "capped::Stats")
    expected, lse = attend(q, k, v, cap=0.8, right=0, **padded)
    out("soft cap, causal, padding", o, expected)
    out("stats of a soft cap", stats, lse, torch.float32)
    o, _ = g.sdpa(
        tq, tk_pool, tv_pool, attn_scale=SCALE, **lengths, score_mod=capped,
        paged_attention_k_table=given[0], paged_attention_v_table=given[0],
    )  # fmt: skip
    of_pages = [unpaged(p, tables[0]) for p in pools]
    out("soft cap of pages", o, attend(q, *of_pages, cap=0.8, **padded)[0])
    o, _ = g.sdpa(
        tq, tk_pool, tv_pool, attn_scale=SCALE, score_mod=capped,
        seq_len_q=lengths["seq_len_q"], seq_len_kv=lengths["seq_len_kv"],
        paged_attention_k_table=given[0], paged_attention_v_table=given[0],
    )  # fmt: skip
    out("soft cap, lengths for the function alone", o, attend(q, *of_pages, cap=0.8)[0])
    document = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2], dtype=torch.int32)
    of_rows, of_columns = c.input(document.reshape(1, 1, 8, 1)), c.input(document.reshape(1, 1, 1, 8))
    hidden = c.input(torch.full((1, 1, 1, 1), -1e9), name="hidden")

    def same_document(graph: Any, scores: Any) -> Any:
        column = graph.gen_index(input=scores, axis=3, compute_data_type=cudnn.data_type.INT32)
        ones = graph.cmp_le(input=column.set_data_type(cudnn.data_type.INT32), comparison=column)
        ones.set_data_type(cudnn.data_type.INT32)
        sides = [graph.scale(input=ones, scale=s).set_data_type(cudnn.data_type.INT32) for s in (of_rows, of_columns)]
        mask = graph.cmp_eq(input=sides[0], comparison=sides[1]).set_data_type(cudnn.data_type.INT32)
        return graph.binary_select(input0=scores, input1=hidden, mask=mask)

    bias = torch.where(document[:, None] == document, 0.0, -math.inf)
    out("documents", g.sdpa(**usual, score_mod=same_document)[0], attend(q, k, v, bias=bias)[0])
    return c.run()


@pytest.mark.parametrize("name", [*MASKS, *EXTRAS])
def test_attention(cases: Cases, name: str):
    cases.check(name)


def test_a_scale_by_value_that_makes_two_ops_equal(device: str):
    """The graph is built for another scale; with this one, the second attention is the first one, and there is one op
    less to choose a kernel for."""
    torch.manual_seed(8)
    c = Cases(device)
    q, k, v = (torch.randn(B, H, 8, D) for _ in range(3))
    given = [c.input(x) for x in (q, k, v)]
    scale = c.input(torch.full((1, 1, 1, 1), SCALE), is_pass_by_value=True, name="scale")
    like, tolerance = torch.empty(B, H, 8, D), LOOSE[torch.float32]
    c.output("constant", c.graph.sdpa(*given, attn_scale=SCALE)[0], attend(q, k, v)[0], like, tolerance)
    c.output("by value", c.graph.sdpa(*given, attn_scale=scale)[0], attend(q, k, v)[0], like, tolerance)
    c.output("behind", c.graph.exp(given[0]), q.exp(), like, tolerance)
    c.run()
    for name in c.expected:
        c.check(name)


def test_the_usual_scale_by_value_is_compiled_by_build(device: str):
    """A graph is built for 1 / sqrt(size of a head); any other number compiles when it is passed."""
    torch.manual_seed(9)
    c = Cases(device)
    q, k, v = (torch.randn(B, H, 8, 20) for _ in range(3))
    scale = c.input(torch.full((1, 1, 1, 1), 20**-0.5), is_pass_by_value=True, name="scale")
    o, _ = c.graph.sdpa(*map(c.input, (q, k, v)), attn_scale=scale, generate_stats=False)
    c.output("o", o, attend(q, k, v, scale=20**-0.5)[0], torch.empty(B, H, 8, 20), LOOSE[torch.float32])
    c.run().check("o")
    (plan, *_) = c.graph.plans
    assert len(plan.compiled) == 1
    c.pack[scale] = 0.5
    c.graph.execute(c.pack, torch.empty(1 << 16, dtype=torch.uint8, device=c.device), handle=c.handle)
    if c.device != "cpu":
        torch.cuda.synchronize()
    torch.testing.assert_close(c.expected["o"][0].cpu().double(), attend(q, k, v, scale=0.5)[0], atol=1e-4, rtol=1e-4)
    assert len(plan.compiled) == 2


@pytest.mark.parametrize("options", [{}, {"use_causal_mask": True}, {"use_causal_mask": True, "use_alibi_mask": True}])
def test_the_logarithm_of_the_sum_comes_from_the_attention(options: dict[str, Any]):
    """No scores are stored for it, and what the mask is computed from is read by the kernel."""
    c = Cases("cpu")
    q, k, v = (torch.randn(B, H, 8, 16) for _ in range(3))
    _, stats = c.graph.sdpa(*map(c.input, (q, k, v)), generate_stats=True, **options)
    stats.set_output(True).set_data_type(cudnn.data_type.FLOAT)
    c.graph.validate()
    c.graph.build_operation_graph()
    text = c.graph.ir("fused")
    assert text.count("ait.attention") == 1 and " log_sums" in text
    assert not re.search(r"ait\.(bmm|softmax|reduce|max|exp)\b", text)
    assert not re.search(r"ait\.fused_elementwise.*8 x 8 x", text)


def test_changed_scores_are_not_stored():
    """The nodes of the score_mod become a region of the attention op."""
    c = Cases("cpu", io_data_type=cudnn.data_type.FLOAT)
    q, k, v = (torch.randn(B, H, 8, 16) for _ in range(3))
    cap = c.graph.tensor_scalar(0.8)

    def capped(graph: Any, scores: Any) -> Any:
        return graph.mul(graph.tanh(graph.div(scores, cap)), cap)

    c.graph.sdpa(*map(c.input, (q, k, v)), attn_scale=SCALE, score_mod=capped, generate_stats=False)[0].set_output(True)
    c.graph.build_operation_graph()
    text = c.graph.ir("fused")
    assert text.count("ait.attention") == 1 and "ait.tanh" in text
    assert not re.search(r"ait\.(bmm|softmax)\b", text)


def test_slopes_of_heads_that_are_no_power_of_two():
    assert alibi_slopes(4) == [2**-2, 2**-4, 2**-6, 2**-8]
    assert alibi_slopes(6) == [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]
