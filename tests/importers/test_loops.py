"""Python loops over a dynamic dim: they become scans, on the CPU against eager at several lengths."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import ait_mlir
from ait_mlir.importers.torch import ImportFailure, from_torch
from ait_mlir.reference.graph import evaluate_graph

SEQ = Dim("seq", min=1, max=32)
WEIGHT = torch.randn(8, 8, generator=torch.Generator().manual_seed(0)) / 3


class Function(nn.Module):
    """A function [2, seq, 8], [2, 8] as a model."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x, h):
        return self.function(x, h)


def rows_of_a_list(x, h):
    rows = []
    for t in range(x.shape[1]):
        h = torch.tanh(x[:, t] @ WEIGHT + h)
        rows.append(h[:, :4])
    return torch.stack(rows, dim=1), torch.stack(rows, -1), torch.cat(rows, dim=0), h


def rows_behind_others(x, h):
    rows = [h]
    for t in range(x.shape[1]):
        h = x[:, t] - h
        rows.append(h)
    rows.append(h * 2)
    return torch.stack(rows, 1), torch.cat(rows, 1)


def rows_of_a_tensor(x, h):
    y = torch.zeros_like(x)
    z = torch.ones(8, x.shape[1] + 1)
    for t in range(x.size(1)):
        h = x[:, t, :] * h
        y[:, t] = h.to(y.dtype)
        z[..., t] = h[0] + 1
    return y, z, h


def spellings_of_a_slice(x, h):
    rows = []
    y = x.transpose(1, 2)
    longer = torch.cat([x, h[:, None]], 1)
    for t in range(x.shape[1]):
        a = x[:, t : t + 1] + x[:, t, None]
        b = y[..., t] + y[:, :, t] + x[0, t, 2:].sum()
        h = h + a[:, 0] * b + x[:, t, -1:] + longer[:, t]
        rows.append(a + b[:, None])
    return torch.cat(rows, 1), h


def the_number_of_a_step(x, h):
    rows = []
    for t in range(x.shape[1]):
        rows.append(h * t + (t % 3) * x[:, t])
    return torch.stack(rows)


def nothing_carried(x, h):
    rows = []
    for t in range(0, x.shape[1]):
        rows.append(x[:, t].softmax(-1) @ WEIGHT + h)
    return torch.stack(rows, 1)


def several_carried(x, h):
    state = (h, h * 2)
    total = 0
    wide = torch.zeros((), dtype=torch.float32)
    for t in range(x.shape[1]):
        first, second = state
        first = first + x[:, t]
        if x.shape[0] == 2:
            second = second * 0.5 + first
        total += first.sum()
        wide = wide + second.double().mean(0)
        state = (second, first)
    return *state, total, wide


def composed_in_a_step(x, h):
    rows = []
    for t in range(x.shape[1]):
        h = torch.addcmul(h, x[:, t], x[:, t], value=0.5) - torch.logaddexp(h, x[:, t])
        mantissa, exponent = torch.frexp(h)
        rows.append(mantissa.mul_(2) + exponent)
    return torch.stack(rows, 1)


def with_one_column(h, column):
    result = torch.zeros_like(h)
    result[:, 2] = column
    return result


def writes_in_a_function(x, h):
    for t in range(x.shape[1]):
        h = h / 2 + with_one_column(h, x[:, t, 1])
    return h


def in_place(x, h):
    h = h.to(torch.float16)
    for t in range(x.shape[1]):
        h += x[:, t]
    return h.float()


def two_loops(x, h):
    rows = []
    for t in range(x.shape[1]):
        h = torch.sin(h + x[:, t])
        rows.append(h)
    y = torch.stack(rows, 1)
    for _ in range(2):
        for t in range(x.shape[1]):
            h = torch.cos(h) + y[:, t]
    return h, y


def starts_later(x, h):
    for t in range(1, x.shape[1]):
        h = h + x[:, t]
    return h


def takes_every_other(x, h):
    rows = []
    for t in range(0, x.shape[1], 2):
        h = h * 0.5 + x[:, t] + t
        rows.append(h)
    return torch.stack(rows, 1), h


def goes_back(x, h):
    y = torch.zeros_like(x)
    for t in range(x.shape[1] - 1, -1, -1):
        h = h * 0.5 + x[:, t]
        y[:, t] = h * t
    return y, h


def writes_slices(x, h):
    y = torch.zeros_like(x)
    for t in range(x.shape[1]):
        h = h * 0.5 + x[:, t]
        y[:, t : t + 1] = h[:, None]
    return y, h


def reads_neighbours(x, h):
    for t in range(x.shape[1] - 1):
        h = h * 0.5 + x[:, t + 1] - x[:, t]
    for t in range(1, x.shape[1]):
        h = h * 0.5 + x[:, t - 1] * x[0, t]
    return h


def reads_windows(x, h):
    width, rows = 3, []
    longer = torch.cat([x, x[:, :1], x[:, :1] * 2], 1)
    for t in range(x.shape[1]):
        h = h * 0.5 + longer[:, t : t + width].sum(1) + longer[0, t + 1 : t + 3, :1].mean(0)
        rows.append(h)
    return torch.stack(rows, 1)


def reads_blocks(x, h):
    twice = torch.cat([x, x * 2], 1)
    for t in range(0, twice.shape[1], 2):
        h = h * 0.5 + twice[:, t : t + 2].amax(1)
    for t in range(twice.shape[1] - 1, 0, -1):
        h = h * 0.5 + twice[:, t - 1 : t + 1].amax(1) * t
    return h


FUNCTIONS = [
    reads_neighbours, reads_windows, reads_blocks, starts_later, takes_every_other, goes_back, writes_slices,
    rows_of_a_list, rows_behind_others, rows_of_a_tensor, spellings_of_a_slice, the_number_of_a_step, nothing_carried,
    several_carried, composed_in_a_step, in_place, two_loops, writes_in_a_function,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_against_eager(function) -> None:
    torch.manual_seed(0)
    code = function.__code__
    model = Function(function).eval()
    with torch.no_grad():
        given = torch.randn(2, 5, 8), torch.randn(2, 8)
        compiled = ait_mlir.compile(model, given, dynamic_shapes={"x": {1: SEQ}, "h": None})
        assert function.__code__ is code, "the function is as it was"
        assert "ait.scan" in compiled.ir("imported")
        for length in (1, 2, 9):
            x, h = torch.randn(2, length, 8), torch.randn(2, 8)
            for ours, theirs in zip(*map(tuple_of, (compiled(x, h), model(x, h))), strict=True):
                torch.testing.assert_close(ours, theirs, rtol=2e-3 if function is in_place else 1e-5, atol=1e-5)


def tuple_of(results):
    return results if isinstance(results, tuple) else (results,)


class Cell(nn.Module):
    """A method with `super` in its class, a closure and an attribute that is sliced."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(4, 8, 32))
        self.layer = nn.Linear(8, 8)

    def extra_repr(self) -> str:
        return super().extra_repr()

    def forward(self, x, h):
        scale = 2.0
        rows = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.layer(x[:, t] * scale) + h + self.table[0, :, t])
            rows.append(h)
        return torch.stack(rows, 1), super().extra_repr() or h


def test_a_method_with_weights() -> None:
    model = Cell().eval()
    with torch.no_grad():
        compiled = ait_mlir.compile(
            model, (torch.randn(2, 5, 8), torch.randn(2, 8)), dynamic_shapes={"x": {1: SEQ}, "h": None}
        )
        for length in (1, 7):
            x, h = torch.randn(2, length, 8), torch.randn(2, 8)
            for ours, theirs in zip(compiled(x, h), model(x, h), strict=True):
                torch.testing.assert_close(ours, theirs)


def test_no_steps() -> None:
    model = Function(in_place).eval()
    shapes = {"x": {1: Dim("seq", min=0, max=32)}, "h": None}
    with torch.no_grad():
        compiled = ait_mlir.compile(model, (torch.randn(2, 5, 8), torch.randn(2, 8)), dynamic_shapes=shapes)
        for length in (0, 1, 3):
            x, h = torch.randn(2, length, 8), torch.randn(2, 8)
            torch.testing.assert_close(compiled(x, h), model(x, h), rtol=2e-3, atol=1e-5)


def test_a_known_length_is_unrolled() -> None:
    module = from_torch(Function(rows_of_a_list).eval(), (torch.randn(2, 3, 8), torch.randn(2, 8))).module
    assert "ait.scan" not in str(module)


def substitutes_rows(x, h):
    """Forward substitution in a matrix with elements everywhere, as linear attention by the delta rule has it."""
    m = (x.mT @ x) / 8
    for i in range(1, 8):
        row = m[..., i, :i].clone()
        sub = m[..., :i, :i].clone()
        m[..., i, :i] = row + (row.unsqueeze(-1) * sub).sum(-2)
    return m, h


def substitutes_some_rows(x, h):
    m = (x.mT @ x) / 8
    for i in range(2, 7):
        left = m[..., i, :i].clone()
        above = m[..., :i, :i].clone()
        m[..., i, :i] = left + (left.unsqueeze(-1) * above).sum(-2)
    return m, h


def substitutes_otherwise(x, h):
    """Not quite: rows are multiplied by the transposed matrix."""
    m = (x.mT @ x + h[:, :, None]) / 16
    for i in range(1, 8):
        row = m[..., i, :i].clone()
        sub = m[..., :i, :i].clone()
        m[..., i, :i] = row + (row.unsqueeze(-1) * sub).sum(-1)
    return m, h


@pytest.mark.parametrize("function", [substitutes_rows, substitutes_some_rows, substitutes_otherwise])
def test_forward_substitution(function) -> None:
    torch.manual_seed(0)
    given = torch.randn(2, 5, 8), torch.randn(2, 8)
    module = from_torch(Function(function).eval(), given, dynamic_shapes={"x": {1: SEQ}, "h": None})
    products = sum(op.name in ("ait.gemm", "ait.bmm") for op in module.graph.walk())
    assert (products > 1) == (function is substitutes_rows), "the rows of other loops are written one by one"
    for length in (1, 9):
        x, h = torch.randn(2, length, 8, dtype=torch.float64), torch.randn(2, 8, dtype=torch.float64)
        found = evaluate_graph(module.graph, {"x": x.numpy(), "h": h.numpy()}, module.constants, {"seq": length})
        for (_, name), want in zip(module.outputs, function(x, h), strict=True):
            np.testing.assert_allclose(found[name], want.numpy(), rtol=1e-6, atol=1e-6)


def runs_in_chunks(x, h):
    """Linear attention over chunks of 4 rows, of a length that is padded to a multiple of 4."""
    n = x.shape[1]
    pad = (4 - n % 4) % 4
    chunks = torch.nn.functional.pad(x, (0, 0, 0, pad)).reshape(x.shape[0], -1, 4, 8)
    y, state = torch.zeros_like(chunks), h[:, :, None] * h[:, None]
    for i in range((n + pad) // 4):
        y[:, i] = chunks[:, i] @ state
        state = state * 0.5 + chunks[:, i].mT @ chunks[:, i]
    return y.reshape(x.shape[0], -1, 8)[:, :n], state


def test_a_loop_over_chunks() -> None:
    torch.manual_seed(0)
    given = torch.randn(2, 5, 8), torch.randn(2, 8)
    module = from_torch(Function(runs_in_chunks).eval(), given, dynamic_shapes={"x": {1: SEQ}, "h": None})
    for length in (1, 4, 7, 32):
        x, h = torch.randn(2, length, 8, dtype=torch.float64), torch.randn(2, 8, dtype=torch.float64)
        found = evaluate_graph(module.graph, {"x": x.numpy(), "h": h.numpy()}, module.constants, {"seq": length})
        for (_, name), want in zip(module.outputs, runs_in_chunks(x, h), strict=True):
            np.testing.assert_allclose(found[name], want.numpy(), rtol=1e-6, atol=1e-6)


class Counted(nn.Module):
    """A buffer of a whole number, whose value Python may read, beside a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("times", torch.tensor(2))

    def forward(self, x, h):
        for t in range(x.shape[1]):
            h = h / 2 + x[:, t]
        return h * int(self.times)


def test_a_loop_beside_a_buffer_that_python_reads() -> None:
    given = torch.randn(2, 5, 8), torch.randn(2, 8)
    assert "ait.scan" in str(from_torch(Counted().eval(), given, dynamic_shapes={"x": {1: SEQ}, "h": None}).module)


def leaves_early(x, h):
    for t in range(x.shape[1]):
        if t > 3:
            break
        h = h + x[:, t]
    return h


def takes_a_list(x, h):
    for t in range(*[x.shape[1]]):
        h = h + x[:, t]
    return h


def writes_to_a_dict(x, h):
    found = {}
    for t in range(x.shape[1]):
        found["h"] = h + x[:, t]
    return found["h"]


def appends_twice(x, h):
    rows = []
    for t in range(x.shape[1]):
        rows.append(h)
        rows.append(x[:, t])
    return torch.stack(rows)


def appends_to_a_set(x, h):
    found = set()
    for t in range(x.shape[1]):
        found.add(t)
    return h + len(found)


def reads_what_it_writes(x, h):
    y = torch.zeros_like(x)
    for t in range(x.shape[1]):
        y[:, t] = y.sum(1) + h
    return y


def reads_the_last(x, h):
    for t in range(x.shape[1]):
        last = h + x[:, t]
    return last * 2


def counts_rows(x, h):
    rows = []
    for t in range(x.shape[1]):
        rows.append(x[:, t])
    return torch.stack(rows) * len(rows)


def pads_rows(x, h):
    rows = []
    for t in range(x.shape[1]):
        rows.append(x[:, t])
    return torch.block_diag(*rows)


def starts_without_a_tensor(x, h):
    state = None
    for t in range(x.shape[1]):
        state = x[:, t] if state is None else state + x[:, t]
    return state


def grows(x, h):
    for t in range(x.shape[1]):
        h = torch.cat([h, x[:, t]], 1)
    return h


def changes_its_type(x, h):
    h = h.double()
    for t in range(x.shape[1]):
        h = (h + x[:, t]).float()
    return h


def takes_from_a_list(x, h):
    rows = [x, x]
    for t in range(x.shape[1]):
        h = h + rows[t][:, 0]
    return h


def reads_the_one_before(x, h):
    for t in range(x.shape[1]):
        h = h + x[:, t - 1]
    return h


def reads_every_second(x, h):
    for t in range(x.shape[1] // 2):
        h = h + x[:, t * 2]
    return h


def reads_cut_windows(x, h):
    for t in range(0, x.shape[1], 2):
        h = h + x[:, t : t + 2].sum(1)
    return h


def reads_too_far(x, h):
    for t in range(x.shape[1]):
        h = h + x[:, t : t + 2].sum(1)
    return h


REFUSED = {
    reads_the_one_before: "it takes elements from -1 on, which count from the end",
    reads_every_second: r"it reads `x\[:, t \* 2\]`", reads_too_far: "that may lie behind the last one",
    reads_cut_windows: "that may lie behind the last one",
    leaves_early: "`break`", takes_a_list: "only `for name in range", writes_to_a_dict: "it writes to `found",
    appends_twice: "rows has several uses", appends_to_a_set: "calls `found.add`",
    reads_what_it_writes: "y has several uses", reads_the_last: "last is read after the loop",
    counts_rows: "the length or single items of a list", pads_rows: "single items of a list",
    starts_without_a_tensor: "a value that is None", grows: "cannot become a scan: the first step changes the shape",
    changes_its_type: "from torch.float64 to torch.float32", takes_from_a_list: "elements of a list",
}  # fmt: skip


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_no_scan_can_do(function) -> None:
    code = function.__code__
    with pytest.raises(ImportFailure, match=REFUSED[function]) as told:
        from_torch(
            Function(function).eval(), (torch.randn(2, 5, 8), torch.randn(2, 8)),
            dynamic_shapes={"x": {1: SEQ}, "h": None},
        )  # fmt: skip
    assert "test_loops.py" in str(told.value)
    assert function.__code__ is code
