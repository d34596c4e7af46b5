"""Ragged tensors: packed sequences as inputs and outputs of attention and products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from ait_mlir.errors import InputError
from ait_mlir.graph import plans
from ait_mlir.graph.errors import GraphError, cudnnGraphNotSupportedError

HALF, FLOAT, INT32, INT64 = (getattr(cudnn.data_type, n) for n in ("HALF", "FLOAT", "INT32", "INT64"))
ROWS, COLUMNS = [5, 8, 0, 3], [6, 7, 2, 8]


def starts(lengths: Sequence[int]) -> torch.Tensor:
    return torch.tensor([0, *lengths]).cumsum(0)


@dataclass
class Packed:
    """A graph whose tensors are packed sequences, with its variant pack."""

    device: str
    pack: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.handle = cudnn.create_handle(device=self.device)
        types = {"io_data_type": HALF, "intermediate_data_type": FLOAT, "compute_data_type": FLOAT}
        self.graph = cudnn.pygraph(handle=self.handle, name="packed", **types)

    def integers(self, numbers: torch.Tensor, name: str, dtype: Any = INT32) -> Any:
        t = self.graph.tensor([numbers.numel(), 1, 1, 1], data_type=dtype, name=name)
        self.pack[t] = numbers.to({INT32: torch.int32, INT64: torch.int64}[dtype]).to(self.device)
        return t

    def offset(self, lengths: Sequence[int], row: int, name: str, dtype: Any = INT32, multiplier: int = 1) -> Any:
        return self.integers(starts(lengths) * row // multiplier, name, dtype)

    def input(self, data: torch.Tensor, lengths: Sequence[int], most: int, name: str, **options: Any) -> Any:
        """Rows [total, heads, size] as a tensor [batch, heads, most, size]."""
        data = data.to(self.device)
        _, heads, size = data.shape
        row, head, _ = data.stride()
        multiplier = options.get("multiplier", 1)
        t = self.graph.tensor([len(lengths), heads, most, size], [most * row, head, row, 1], HALF, name=name)
        t.set_ragged_offset(self.offset(lengths, row, f"start of {name}", **options))
        t.set_ragged_offset_multiplier(multiplier)
        self.pack[t] = data
        return t

    def output(
        self, t: Any, lengths: Sequence[int], most: int, shape: tuple[int, int], dtype: Any = HALF
    ) -> torch.Tensor:
        heads, size = shape
        made = torch.full((sum(lengths), heads, size), float("nan"), device=self.device)
        made = made.half() if dtype is HALF else made
        row = heads * size
        t.set_output(True).set_data_type(dtype).set_dim([len(lengths), heads, most, size])
        t.set_stride([most * row, size, row, 1]).set_ragged_offset(self.offset(lengths, row, f"start of {t.name}"))
        self.pack[t] = made
        return made

    def run(self, mode: Any = cudnn.heur_mode.A) -> None:
        self.graph.build([mode])
        self.execute(self.graph, self.pack)

    def execute(self, graph: Any, pack: dict[Any, Any]) -> None:
        space = torch.empty(graph.get_workspace_size(), dtype=torch.uint8, device=self.device)
        graph.execute(pack, space, handle=self.handle)
        if self.device != "cpu":
            torch.cuda.synchronize()


def rows_of(x: torch.Tensor, lengths: Sequence[int], b: int) -> torch.Tensor:
    """Sequence b of packed rows, as [heads, length, size]."""
    at = starts(lengths)
    return x[at[b] : at[b + 1]].float().transpose(0, 1)


def expected(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Sequence[int], columns: Sequence[int], causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of each sequence, and the logarithms of the sums of exponentials, packed."""
    outs: list[torch.Tensor] = []
    sums: list[torch.Tensor] = []
    for b in range(len(rows)):
        a, x, y = rows_of(q, rows, b), rows_of(k, columns, b), rows_of(v, columns, b)
        x, y = (z.repeat_interleave(a.shape[0] // z.shape[0], 0) for z in (x, y))
        scores = a @ x.mT * 0.25
        if causal:
            seen = torch.ones(scores.shape[1:], dtype=torch.bool).tril(scores.shape[2] - scores.shape[1])
            scores = scores.masked_fill(~seen, -torch.inf)
        outs.append((scores.softmax(-1).nan_to_num(0.0) @ y).transpose(0, 1))
        sums.append(scores.logsumexp(-1, keepdim=True).transpose(0, 1))
    return torch.cat(outs), torch.cat(sums)


def attention(
    device: str,
    rows: Sequence[int] = ROWS,
    columns: Sequence[int] = COLUMNS,
    most: int = 8,
    most_columns: int | None = None,
    causal: bool = False,
    stats: bool = False,
    **options: Any,
) -> tuple[Packed, dict[str, tuple[torch.Tensor, torch.Tensor]]]:
    torch.manual_seed(sum(rows))
    p = Packed(device)
    q, k, v = (torch.randn(sum(n), h, 16).half() for n, h in ((rows, 4), (columns, 2), (columns, 2)))
    o, s = p.graph.sdpa(
        q=p.input(q, rows, most, "q", **options),
        k=p.input(k, columns, most_columns or most, "k", **options),
        v=p.input(v, columns, most_columns or most, "v", **options),
        attn_scale=0.25,
        use_padding_mask=True,
        use_causal_mask_bottom_right=causal,
        seq_len_q=p.integers(torch.tensor(rows), "rows"),
        seq_len_kv=p.integers(torch.tensor(columns), "columns"),
        generate_stats=stats,
    )
    wanted = expected(q, k, v, rows, columns, causal)
    found = {"o": (p.output(o, rows, most, (4, 16)), wanted[0])}
    if stats:
        found["stats"] = (p.output(s, rows, most, (4, 1), FLOAT), wanted[1])
    return p, found


def check(found: dict[str, tuple[torch.Tensor, torch.Tensor]]) -> None:
    for name, (made, wanted) in found.items():
        torch.testing.assert_close(made.cpu().float(), wanted, atol=3e-3, rtol=3e-3, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize(
    "options",
    [{}, {"causal": True}, {"dtype": INT64}, {"multiplier": 16}, {"stats": True}],
    ids=["plain", "causal", "i64", "multiplier", "stats"],
)
def test_attention_of_packed_sequences(device: str, options: dict[str, Any]):
    p, found = attention(device, **options)
    p.run()
    check(found)


def test_queries_keys_and_values_in_one_tensor(device: str):
    """Each row of memory holds those of q, k and v, so rows are longer than those of the tensors."""
    torch.manual_seed(3)
    p = Packed(device)
    whole = torch.randn(sum(ROWS), 3, 4, 16).half().to(device)
    given = [p.input(whole[:, i], ROWS, 8, n) for i, n in enumerate("qkv")]
    lengths = p.integers(torch.tensor(ROWS), "lengths")
    o, _ = p.graph.sdpa(
        *given, attn_scale=0.25, use_padding_mask=True, seq_len_q=lengths, seq_len_kv=lengths, generate_stats=False
    )
    made = p.output(o, ROWS, 8, (4, 16))
    p.run()
    q, k, v = whole.cpu().unbind(1)
    check({"o": (made, expected(q, k, v, ROWS, ROWS, False)[0])})


def test_other_sequences_compile_nothing(device: str, monkeypatch: pytest.MonkeyPatch):
    first, found = attention(device)
    first.run()
    check(found)

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a graph of a known structure is compiled")

    monkeypatch.setattr(plans, "emit", refuse)
    p, found = attention(device, [1, 2, 8, 4, 4], [8, 8, 8, 4, 5])
    p.run()
    check(found)
    assert p.graph.runner.compiled.library is first.graph.runner.compiled.library


def test_one_graph_runs_on_other_sequences(device: str):
    p, found = attention(device)
    p.run()
    check(found)
    again, found = attention(device, [8, 1, 7, 2], [1, 1, 8, 5])
    p.execute(p.graph, {t.get_name(): value for t, value in again.pack.items()})
    check(found)


def test_a_serialized_graph_runs_on_other_sequences(device: str):
    p, _ = attention(device)
    p.run()
    loaded = cudnn.pygraph()
    loaded.deserialize(p.handle, p.graph.serialize())
    again, found = attention(device, [8, 1, 7, 2], [1, 1, 8, 5])
    p.execute(loaded, {t.get_name(): value for t, value in again.pack.items()})
    check(found)


def test_tensors_with_room_for_all_rows(device: str):
    """Rows behind the last sequence are not read, and those of an output are not written."""
    p, found = attention(device)
    made, wanted = found["o"]
    roomy = torch.full((40, 4, 16), float("nan"), device=p.device).half()
    pack = {t: roomy if value is made else value for t, value in p.pack.items()}
    q = next(t for t in pack if t.get_name() == "q")
    pack[q] = torch.cat([pack[q], torch.full((30, 4, 16), float("nan"), device=p.device).half()])
    p.graph.build([cudnn.heur_mode.A])
    p.execute(p.graph, pack)
    check({"o": (roomy[: len(wanted)], wanted)})
    assert roomy[len(wanted) :].isnan().all()


def test_packed_page_tables(device: str):
    """The pages of each sequence, one sequence after the other."""
    torch.manual_seed(7)
    p = Packed(device)
    pages, pool = [3, 1, 2], (torch.randn(2, 9, 2, 4, 16) / 2).half().to(device)
    table = torch.randperm(9)[:6].int()
    lengths = torch.tensor([10, 3, 8], dtype=torch.int32)
    q = (torch.randn(3, 2, 1, 16) / 2).half().to(device)
    tq, tk, tv = (p.graph.tensor_like(x, name=n) for x, n in ((q, "q"), (pool[0], "k"), (pool[1], "v")))
    tables = []
    for name in ("k", "v"):
        t = p.graph.tensor([3, 1, 3, 1], [3, 3, 1, 1], cudnn.data_type.INT32, name=f"table of {name}")
        tables.append(t.set_ragged_offset(p.offset(pages, 1, f"start of {name}")))
        p.pack[t] = table.reshape(1, 1, 6, 1).to(device)
    sides = [p.graph.tensor([3, 1, 1, 1], data_type=cudnn.data_type.INT32, name=n) for n in ("rows", "columns")]
    o, _ = p.graph.sdpa(
        tq, tk, tv, generate_stats=False, use_padding_mask=True, seq_len_q=sides[0], seq_len_kv=sides[1],
        paged_attention_k_table=tables[0], paged_attention_v_table=tables[1], paged_attention_max_seq_len_kv=12,
    )  # fmt: skip
    made = torch.empty_like(q)
    p.pack |= {tq: q, tk: pool[0], tv: pool[1], o.set_output(True).set_data_type(HALF): made}
    p.pack |= {sides[0]: torch.ones(3, 1, 1, 1).int().to(device), sides[1]: lengths.reshape(3, 1, 1, 1).to(device)}
    p.run()
    start = 0
    for b, (count, length) in enumerate(zip(pages, lengths.tolist(), strict=True)):
        k, v = (x[table[start : start + count].long()].transpose(0, 1).reshape(2, -1, 16) for x in pool)
        scores = (q[b].float() @ k[:, :length].float().mT).softmax(-1)
        torch.testing.assert_close(made[b].float(), scores @ v[:, :length].float(), atol=4e-3, rtol=4e-3)
        start += count


def test_heuristic_b_times_packed_sequences():
    p, found = attention("cpu")
    p.run(cudnn.heur_mode.B)
    check(found)


def test_product_of_packed_rows(device: str):
    torch.manual_seed(5)
    p = Packed(device)
    a, b = torch.randn(sum(ROWS), 32).half().to(device), (torch.randn(1, 32, 24) / 6).half().to(device)
    ta = p.graph.tensor([4, 8, 32], [256, 32, 1], HALF, name="a").set_ragged_offset(p.offset(ROWS, 32, "start of a"))
    tb = p.graph.tensor_like(b)
    c = p.graph.matmul(ta, tb).set_output(True).set_data_type(HALF).set_dim([4, 8, 24]).set_stride([192, 24, 1])
    c.set_ragged_offset(p.offset(ROWS, 24, "start of c"))
    made = torch.full((sum(ROWS), 24), float("nan"), device=device).half()
    p.pack |= {ta: a, tb: b, c: made}
    p.run()
    torch.testing.assert_close(made, (a.float() @ b[0].float()).half(), atol=4e-3, rtol=4e-3)


@pytest.mark.parametrize(("rows", "columns"), [([5], [20]), ([5, 3], [20, 31])])
def test_more_columns_than_rows(device: str, rows: list[int], columns: list[int]):
    p, found = attention(device, rows, columns, 8, 32)
    p.run()
    check(found)
    fused = plans.with_hints(p.graph.compilation.program.planner.fused, p.graph.compilation.plans[0].dims)
    hints = {d.name: d.hints for graph in fused.ops for d in graph.scope}
    assert [hints[f"t{i}"] for i in range(4)] == [hints[f"j{i}"] for i in range(4)]
    assert [hints[f"t{i}"][0] // len(rows) for i in range(4)] == [8, 32, 32, 8]


def test_other_shapes_by_the_strides_of_the_packed_memory():
    first, _ = attention("cpu")
    second, wanted = attention("cpu", [9, 2, 12], [12, 3, 7], most=12)
    first.graph.set_override_shape_enabled(True)
    first.graph.build([cudnn.heur_mode.A])
    space = torch.empty(first.graph.get_workspace_size(), dtype=torch.uint8)
    pairs = list(zip(first.pack, second.pack.items(), strict=True))
    first.graph.execute(
        {old.uid: data for old, (_, data) in pairs},
        space,
        override_uids=[old.uid for old, _ in pairs],
        override_shapes=[new.get_dim() for _, (new, _) in pairs],
        override_strides=[data.stride() if data.dim() == 3 else [1] * 4 for _, (_, data) in pairs],
    )
    check(wanted)


# ** what is wrong **


def refused(kind: type[Exception], *told: str) -> Any:
    return pytest.raises(kind, match=".*".join(map(str, told)))


def test_ragged_tensors_of_other_nodes():
    p = Packed("cpu")
    x = p.input(torch.randn(16, 4, 16).half(), ROWS, 8, "x")
    p.graph.exp(x, name="e").set_output(True)
    with refused(
        cudnnGraphNotSupportedError, "node 'e'", "tensor 'x' has a ragged offset, as input;", "A, C of matmul"
    ):
        p.graph.validate()


def test_packed_sequences_need_lengths():
    p = Packed("cpu")
    q, k, v = (p.input(torch.randn(16, 4, 16).half(), ROWS, 8, n) for n in "qkv")
    p.graph.sdpa(q, k, v, name="a", generate_stats=False)[0].set_output(True)
    with refused(GraphError, "node 'a'", "tensor 'q' has a ragged offset: set use_padding_mask"):
        p.graph.validate()


@pytest.mark.parametrize(
    ("count", "dtype", "kind", "told"),
    [
        (
            4,
            INT32,
            GraphError,
            r"'rows', the ragged offset of tensor 'a', has dims \[4, 1, 1, 1\], expected \[5, 1, 1\]",
        ),
        (5, FLOAT, GraphError, "'rows', the ragged offset of tensor 'a', is FLOAT, not INT32 or INT64"),
    ],
)
def test_ragged_offsets_that_do_not_fit(count: int, dtype: Any, kind: type[Exception], told: str):
    p = Packed("cpu")
    offset = p.graph.tensor([count, 1, 1, 1], data_type=dtype, name="rows")
    a = p.graph.tensor([4, 8, 32], [256, 32, 1], HALF, name="a").set_ragged_offset(offset)
    p.graph.matmul(a, p.graph.tensor([1, 32, 24], data_type=HALF), name="mm").set_output(True)
    with refused(kind, "node 'mm'", told):
        p.graph.validate()


@pytest.mark.parametrize(
    ("strides", "told"),
    [((256, 1, 8), "expected rows of at least"), ((512, 64, 2), "expected rows of at least")],
    ids=["column-major", "every second element"],
)
def test_ragged_tensors_without_rows(strides: tuple[int, ...], told: str):
    p = Packed("cpu")
    a = p.graph.tensor([4, 8, 32], list(strides), HALF, name="a").set_ragged_offset(p.offset(ROWS, 32, "rows"))
    p.graph.matmul(a, p.graph.tensor([1, 32, 24], data_type=HALF), name="mm").set_output(True)
    with refused(cudnnGraphNotSupportedError, "tensor 'a' is ragged", told):
        p.graph.validate()


def test_a_ragged_output_with_long_rows():
    p = Packed("cpu")
    a = p.graph.tensor([4, 8, 32], [256, 32, 1], HALF).set_ragged_offset(p.offset(ROWS, 32, "rows"))
    c = p.graph.matmul(a, p.graph.tensor([1, 32, 24], data_type=HALF), name="mm").set_output(True)
    c.set_name("c").set_dim([4, 8, 24]).set_stride([256, 32, 1]).set_ragged_offset(p.offset(ROWS, 32, "out"))
    p.graph.validate()
    with refused(cudnnGraphNotSupportedError, "tensor 'c'", "a ragged output with rows longer than its dims"):
        p.graph.build_operation_graph()


def test_an_address_says_no_number_of_rows():
    p, _ = attention("cpu")
    p.graph.build([cudnn.heur_mode.A])
    q = next(t for t in p.pack if t.get_name() == "q")
    with refused(InputError, "tensor 'q' is ragged: pass a tensor"):
        p.execute(p.graph, {**p.pack, q: p.pack[q].data_ptr()})


def test_ragged_tensors_of_other_types_are_refused():
    p, _ = attention("cpu")
    p.graph.build([cudnn.heur_mode.A])
    q = next(t for t in p.pack if t.get_name() == "q")
    with refused(InputError, "tensor 'q' is float32, expected float16"):
        p.execute(p.graph, {**p.pack, q: p.pack[q].float()})
