"""Operations that the builder and PyTorch call by one name: built in both ways, they are the same graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch.nn import functional as F
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, ParamOp
from ait_mlir.driver import run_to_phase
from ait_mlir.frontend import Tensor, build_module, nn, ops
from ait_mlir.importers.torch import import_program

F32, I64, BOOL = torch.float32, torch.int64, torch.bool
X = ((4, 6, 8), F32)
INTEGERS = ((4, 6, 8), I64)
ROWS_OF_8, EIGHT = ((5, 8), F32), ((8,), F32)
Shape = tuple[tuple[int, ...], torch.dtype]
Row = tuple[str, Callable[..., Any], Callable[..., Any], tuple[Shape, ...]]


class Flat(torch.nn.Module):
    """A recurrent layer of PyTorch whose states are arguments and results one by one."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor, *state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, last = self.layer(x, state if len(state) > 1 else state[0])
        return (y, *last) if len(state) > 1 else (y, last)


ROWS: list[Row] = [
    ("rfft", ops.rfft(), lambda x: _parts(torch.fft.rfft(x)), (X,)),
    ("rfft ortho", ops.rfft(n=6, dim=1, norm="ortho"), lambda x: _parts(torch.fft.rfft(x, 6, 1, "ortho")), (X,)),
    ("fft", ops.fft(), lambda x, y: _parts(torch.fft.fft(torch.complex(x, y))), (X, X)),
    ("ifft", ops.ifft(dim=0), lambda x, y: _parts(torch.fft.ifft(torch.complex(x, y), dim=0)), (X, X)),
    ("irfft", ops.irfft(), lambda x, y: torch.fft.irfft(torch.complex(x, y)), (X, X)),
    ("flip", ops.flip(1), lambda x: torch.flip(x, [1]), (X,)),
    ("flip of two dims", ops.flip([0, 2]), lambda x: torch.flip(x, [0, 2]), (X,)),
    ("roll", ops.roll(3, 2), lambda x: torch.roll(x, 3, 2), (X,)),
    ("roll of two dims", ops.roll([-1, 9], [0, 1]), lambda x: torch.roll(x, [-1, 9], [0, 1]), (X,)),
    ("tril", ops.tril(), torch.tril, (X,)),
    ("triu", ops.triu(1), lambda x: torch.triu(x, 1), (X,)),
    ("as_strided view", ops.as_strided([2, 3], [12, 4], 0), lambda x: torch.as_strided(x, (2, 3), (12, 4)), (X,)),
    ("as_strided", ops.as_strided([5, 4], [3, 1], 2), lambda x: torch.as_strided(x, (5, 4), (3, 1), 2), (X,)),
    ("median", ops.median(1), lambda x: tuple(torch.median(x, 1)), (X,)),
    ("median of integers", ops.median(keepdim=True), lambda x: tuple(torch.median(x, -1, True)), (((4, 6), I64),)),
    ("histc", ops.histc(8, -1, 2), lambda x: torch.histc(x, 8, -1, 2), (X,)),
    ("histc of all", ops.histc(8), lambda x: torch.histc(x, 8), (X,)),
    ("repeat_interleave", ops.repeat_interleave(3, 1), lambda x: torch.repeat_interleave(x, 3, 1), (X,)),
]  # fmt: skip

NAMES = "abs celu cos elu exp floor gelu hardtanh leaky_relu log log1p nan_to_num reciprocal relu sigmoid sign silu sin"
FUNCTIONS: list[Row] = [
    *((n, getattr(ops, n), getattr(torch, n, None) or getattr(F, n), (X,)) for n in NAMES.split()),
    *((n, getattr(ops, n), getattr(torch, n, None) or getattr(F, n), (X,)) for n in ("softplus", "softsign", "sqrt")),
    *((n, getattr(ops, n), getattr(torch, n), (X, (X[0][1:], F32))) for n in ("fmod", "pow", "remainder")),
    *((f"{n} of integers", getattr(ops, n), getattr(torch, n), (INTEGERS, INTEGERS)) for n in ("fmod", "remainder")),
    ("remainder of numbers", lambda x: ops.remainder(x, -3), lambda x: torch.remainder(x, -3), (INTEGERS,)),
    ("floor_div of integers", ops.floor_div, torch.floor_divide, (INTEGERS, (INTEGERS[0][1:], I64))),
    *((f"{n} {t}", getattr(ops, n), getattr(torch, n), ((X[0], t),) * (1 + ("not" not in n)))
      for n in ("bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor") for t in (I64, BOOL, torch.uint8)),
    ("bitwise_left_shift", ops.bitwise_left_shift, torch.bitwise_left_shift, (INTEGERS, INTEGERS)),
    ("bitwise_right_shift", ops.bitwise_right_shift, torch.bitwise_right_shift, (INTEGERS, INTEGERS)),
    ("celu 2", lambda x: ops.celu(x, 2.0), lambda x: F.celu(x, 2.0), (X,)),
    ("clamp", lambda x: ops.clamp()(x, -1.0, 2.0), lambda x: torch.clamp(x, -1.0, 2.0), (X,)),
    ("clamp tensor", lambda x, y: ops.clamp()(x, y), torch.clamp, (X, X)),
    ("elu 2", lambda x: ops.elu(x, 2.0), lambda x: F.elu(x, 2.0), (X,)),
    ("floor_div", lambda x: ops.floor_div(x, -3), lambda x: torch.floor_divide(x, -3), (INTEGERS,)),
    ("hardswish", ops.elementwise(ops.FuncEnum.HARDSWISH), F.hardswish, (X,)),
    ("hardtanh", lambda x: ops.hardtanh(x, -2.0, 3.0), lambda x: F.hardtanh(x, -2.0, 3.0), (X,)),
    ("leaky_relu", lambda x: ops.leaky_relu(x, 0.2), lambda x: F.leaky_relu(x, 0.2), (X,)),
    ("logsumexp", ops.logsumexp(1), lambda x: torch.logsumexp(x, 1), (X,)),
    ("logsumexp kept", ops.logsumexp([0, 2], keepdim=True), lambda x: torch.logsumexp(x, [0, 2], True), (X,)),
    ("nan_to_num", lambda x: ops.nan_to_num(x, 1.0, 5.0), lambda x: torch.nan_to_num(x, 1.0, 5.0), (X,)),
    *((f"pow {n}", lambda x, n=n: ops.pow(x, n), lambda x, n=n: torch.pow(x, n), (X,)) for n in (3.0, -2.0, 0.5, 2.5)),
    ("batch_norm", ops.batch_norm(1e-3), lambda *given: F.batch_norm(*given, eps=1e-3), (ROWS_OF_8, *[EIGHT] * 4)),
    ("pad", ops.pad([1, 2, -1, 3], value=2.0), lambda x: F.pad(x, (1, 2, -1, 3), value=2.0), (X,)),
    ("pad circular", ops.pad([1, -2], "circular"), lambda x: F.pad(x, (1, -2), "circular"), (X,)),
    ("pow of integers", lambda x: ops.pow(x, 11), lambda x: torch.pow(x, 11), (INTEGERS,)),
    ("pow of 2", lambda x: ops.pow(2, x), lambda x: torch.pow(2, x), (INTEGERS,)),
    ("softplus", lambda x: ops.softplus(x, 2.0, 9.0), lambda x: F.softplus(x, 2.0, 9.0), (X,)),
    *((f"vector_norm {n}", ops.vector_norm(n, 1), lambda x, n=n: torch.linalg.vector_norm(x, n, 1), (X,))
      for n in (0, 1, 2, 3, 2.5, float("inf"), -float("inf"))),
]  # fmt: skip

INDEX, ROWS_AT, MASK = ((4, 6, 8), I64), ((3,), I64), ((6, 8), BOOL)
SMALL = ((2, 6, 1), I64)
KINDS = ("sum", "prod", "amax", "amin", "mean")
INDEXED: list[Row] = [
    ("gather", lambda x, i: ops.gather()(x, 1, i), lambda x, i: torch.gather(x, 1, i), (X, INDEX)),
    ("gather part", lambda x, i: ops.gather()(x, -1, i), lambda x, i: torch.gather(x, -1, i), (X, SMALL)),
    *((f"index_select {d}", ops.index_select(d), lambda x, i, d=d: torch.index_select(x, d, i), (X, ROWS_AT))
      for d in (1, 2)),  # along dim 0, the builder's indices may count from the end
    ("scatter", ops.scatter(1), lambda x, i, y: torch.scatter(x, 1, i, y), (X, INDEX, X)),
    ("scatter part", ops.scatter(1), lambda x, i, y: torch.scatter(x, 1, i, y), (X, SMALL, (SMALL[0], F32))),
    ("scatter_add", ops.scatter_add(2), lambda x, i, y: torch.scatter_add(x, 2, i, y), (X, INDEX, X)),
    *((f"scatter_reduce {k} {own}", ops.scatter_reduce(0, k, own),
       lambda x, i, y, k=k, own=own: torch.scatter_reduce(x, 0, i, y, k, include_self=own), (X, INDEX, X))
      for k in KINDS for own in (True, False)),
    ("index_put", lambda x, i, j, y: ops.index_put()(x, [i, None, j], y),
     lambda x, i, j, y: torch.ops.aten.index_put(x, [i, None, j], y), (X, ROWS_AT, ROWS_AT, ((3, 6), F32))),
    ("index_put added", lambda x, i, y: ops.index_put(accumulate=True)(x, [None, i], y),
     lambda x, i, y: torch.ops.aten.index_put(x, [None, i], y, True), (X, ROWS_AT, ((3, 8), F32))),
    ("masked_select", ops.masked_select(), torch.masked_select, (X, MASK)),
    ("one_hot", ops.one_hot(5), lambda x: F.one_hot(x, 5), (INTEGERS,)),
    ("embedding", ops.embedding(), lambda t, i: F.embedding(i, t), (ROWS_OF_8, ROWS_AT)),
    ("sort", ops.sort(1, descending=True), lambda x: tuple(torch.sort(x, 1, descending=True)), (X,)),
    *((f"kth_value {keep}", ops.kth_value(3, 1, keep),
       lambda x, keep=keep: tuple(torch.kthvalue(x, 3, 1, keep)), (X,)) for keep in (False, True)),
    ("topk", ops.topk(3, 1), lambda x: tuple(torch.topk(x, 3, 1)), (X,)),
    ("argmax", ops.argmax(1), lambda x: torch.argmax(x, 1), (X,)),
    ("meshgrid", ops.meshgrid(), lambda x, y: torch.meshgrid(x, y, indexing="ij"), (((3,), F32), ((4,), F32))),
    ("cumsum", ops.cumsum(1), lambda x: torch.cumsum(x, 1), (X,)),
    ("cummax", ops.cummax(1), lambda x: torch.cummax(x, 1)[0], (X,)),
    ("softmax", lambda x: ops.softmax()(x, 1), lambda x: torch.softmax(x, 1), (X,)),
    ("layernorm", ops.layernorm(), lambda x, a, b: F.layer_norm(x, (8,), a, b), (X, EIGHT, EIGHT)),
    ("interpolate", ops.upsampling2d(2, "bilinear"), lambda x: _last(F.interpolate(_first(x), scale_factor=2.0,
     mode="bilinear")), (((2, 5, 6, 3), F32),)),
    ("grid_sample", ops.grid_sample(), lambda x, g: _last(F.grid_sample(_first(x), g, align_corners=False)),
     (((2, 5, 6, 3), F32), ((2, 4, 4, 2), F32))),
]  # fmt: skip


def _first(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 3, 1, 2)


def _last(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 2, 3, 1)


SEQUENCE, STATE = ((5, 2, 6), F32), ((1, 2, 8), F32)
LSTM, GRU = nn.LSTM(6, 8, dtype="float32"), nn.GRU(6, 8, 2, batch_first=True, bidirectional=True, dtype="float32")
LAYERS: list[Row] = [
    ("lstm", LSTM, Flat(torch.nn.LSTM(6, 8)), (SEQUENCE, STATE, STATE)),
    ("gru", GRU, Flat(torch.nn.GRU(6, 8, 2, batch_first=True, bidirectional=True)), (SEQUENCE, ((4, 5, 8), F32))),
    ("rnn", nn.RNN(6, 8, bias=False, dtype="float32"), Flat(torch.nn.RNN(6, 8, bias=False)), (SEQUENCE, STATE)),
]

ALL = [*ROWS, *FUNCTIONS, *INDEXED, *LAYERS]


def _parts(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.real, x.imag


def built(operator: Callable[..., Any], shapes: tuple[Shape, ...]) -> ModuleOp:
    """The operation as a model of the builder."""
    inputs = [
        Tensor(shape, f"x{i}", dtype=str(dtype).removeprefix("torch."), is_input=True)
        for i, (shape, dtype) in enumerate(shapes)
    ]
    found = operator(*inputs)
    outputs = list(found) if isinstance(found, tuple | list) else [found]
    for i, tensor in enumerate(outputs):
        tensor.mark_as_output(f"y{i}")
    return build_module(outputs)


def imported(function: Callable[..., Any], shapes: tuple[Shape, ...]) -> ModuleOp:
    """The operation as a program of PyTorch."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.function = function

        def forward(self, *inputs: torch.Tensor) -> Any:
            return self.function(*inputs)

    example = tuple(torch.ones(shape, dtype=dtype) for shape, dtype in shapes)
    return import_program(torch.export.export(Model(), example)).module


def structure(module: ModuleOp) -> list[tuple[Any, ...]]:
    """The graph without names and order: each op that an output depends on, with the numbers of its operands."""
    graph = next(op for op in module.ops if isinstance(op, GraphOp))
    numbers: dict[SSAValue, Any] = {v: f"input {i}" for i, v in enumerate(graph.block.args)}
    found: list[tuple[Any, ...]] = []

    def visit(value: SSAValue) -> Any:
        if value not in numbers:
            owner = cast(Operation, value.owner)
            operands = [visit(v) for v in owner.operands]
            properties = {name: str(p) for name, p in owner.properties.items()}
            if isinstance(owner, ParamOp):
                properties = {}
            types = [str(r.type) for r in owner.results]
            inner = [str(region) for region in owner.regions if isinstance(region.blocks.first, Block)]
            entry = (owner.name, tuple(operands), tuple(sorted(properties.items())), tuple(types), tuple(inner))
            key = entry if isinstance(owner, ConstantOp) else len(found)
            if not isinstance(owner, ConstantOp):
                found.append(entry)
            numbers.update({r: (key, i) for i, r in enumerate(owner.results)})
        return numbers[value]

    for output in graph.outputs():
        found.append(("output", visit(output.operands[0])))
    return found


@pytest.mark.parametrize(("operator", "function", "shapes"), [row[1:] for row in ALL], ids=[row[0] for row in ALL])
def test_both_front_ends_write_the_same(
    operator: Callable[..., Any], function: Callable[..., Any], shapes: tuple[Shape, ...]
):
    ours, theirs = (
        run_to_phase(module, "simplified") for module in (built(operator, shapes), imported(function, shapes))
    )
    assert structure(ours) == structure(theirs), f"{ours}\n{theirs}"
