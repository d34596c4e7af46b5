"""Dims as values: what `size` returns, arithmetic on it, and where it stands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.compiler.base import IntVarTensor
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.frontend import BuildError, IntImm, IntVar, Tensor, compile_model, ops
from ait_mlir.frontend.ops import FuncEnum
from tests.frontend.support import BATCH, SEQ, check, graph_of, tensor


def test_values_compute_with_dims_and_numbers():
    x = tensor("x", "batch", "seq", 12)
    batch, seq, last = ops.size()(x)
    assert isinstance(seq, IntVarTensor) and seq == x.shape()[1] == ops.size()(x, -2)
    assert seq._attrs["int_var"] == x.shape()[1] and repr(seq * 2) == "IntVarTensor(2*seq)"
    for func, want in (
        (FuncEnum.ADD, batch + seq + 3),
        (FuncEnum.SUB, batch - seq - 3),
        (FuncEnum.MUL, batch * seq * 3),
        (FuncEnum.DIV, batch // seq // 3),
    ):
        found = ops.int_elementwise(func)(batch, seq, IntVarTensor(IntImm(3)))
        assert isinstance(found, IntVarTensor) and found == want
    assert last.is_a_const_num() and list(range(3))[: last - 10] == [0, 1]
    assert not seq.is_a_const_num()
    with pytest.raises(TypeError, match="seq is known only when the model runs"):
        int(seq)
    with pytest.raises(BuildError, match=r"int_elementwise\(ADD\): takes two or more dims, found 1"):
        ops.int_elementwise(FuncEnum.ADD)(seq)
    named = IntVarTensor(IntVar([1, 4]), name="rows")
    assert named.name == "rows"


def test_values_stand_where_dims_do():
    x = tensor("x", "batch", "seq", 12)

    def build(x):
        batch, seq, last = ops.size()(x)
        half = ops.int_elementwise(FuncEnum.DIV)(last, IntVarTensor(2))
        return [
            ops.reshape()(x, [batch * seq, last]),
            ops.reshape()(x, [-1, half]),
            ops.dynamic_slice()(x, [0, seq - 1, 0], [batch, seq, half]),
            ops.expand()(ops.unsqueeze(0)(x), [2, batch, seq, last]),
            ops.full()([seq, half], 2.0, "float64"),
            ops.arange("float64")(seq),
            ops.arange("float64")(batch, batch + seq),
            ops.arange("float64")(seq + 2, 0, -2),
            ops.arange("int32")(1, 12, 4),
            ops.arange("float64")(batch, 2),
            *ops.split()(x, [half, half], 2),
        ]

    def want(x):
        f64 = torch.float64
        return [
            x.reshape(-1, 12), x.reshape(-1, 6), x[:, -1:, :6], x.expand(2, -1, -1, -1), torch.full((SEQ, 6), 2.0),
            torch.arange(SEQ, dtype=f64), torch.arange(BATCH, BATCH + SEQ, dtype=f64),
            torch.arange(SEQ + 2, 0, -2, dtype=f64), torch.arange(1, 12, 4), torch.zeros(0), *x.split(6, 2),
        ]  # fmt: skip

    check(build, want, x)


def test_ranges_name_what_is_wrong():
    with pytest.raises(BuildError, match="the step is 0"):
        ops.arange()(5, 1, 0)
    with pytest.raises(BuildError, match=r"arange: a dim is at most 2\^40"):
        ops.arange()(1 << 41)


@pytest.mark.parametrize(("start", "step"), [(0, 1), (7, 3)])
def test_long_ranges_are_computed(start: int, step: int, tmp_path: Path):
    """The graph stores no long list, and a run computes about as many numbers as it needs."""
    x = Tensor([IntVar([0, 1 << 40], name="long")], dtype="bool", name="x", is_input=True)
    made = ops.arange("int64")(start, x.shape()[0], step).mark_as_output("y")
    sizes = [tensor_type(value).num_elements() for op in graph_of(made).walk() for value in op.results]
    for length in (0, 1, (1 << 22) + 5):
        assert max(size.evaluate({"long": length}) for size in sizes) < length + (1 << 17)
    model = compile_model(made, "cpu", tmp_path, "range")
    for length in (0, 1, 8, 3 << 16, (3 << 16) + 11, (1 << 22) + 5):
        found = model.run_with_tensors([np.zeros(length, bool)])["y"]
        np.testing.assert_array_equal(found, np.arange(start, length, step))


def test_lists_and_tuples():
    x, y = tensor("x", "batch", 2), tensor("y", "batch", 2)
    made = ops.list_construct()(x, y, x.shape()[0])
    assert made == [x, y, x.shape()[0]] and ops.tuple_construct()(x, y) == (x, y)
    assert ops.getitem()(made, -2) is y
    with pytest.raises(BuildError, match="getitem: index 3 is out of range for 3 elements"):
        ops.getitem()(made, 3)


def test_concatenate_tanh():
    x, y = tensor("x", "batch", 4), tensor("yy", "batch", 2)
    check(lambda x, y: ops.concatenate_tanh()([x, y], 1), lambda x, y: torch.tanh(torch.cat([x, y], 1)), x, y)
    check(lambda x, y: ops.concatenate(fast_cat=False)([x, y], dim=1), lambda x, y: torch.cat([x, y], 1), x, y)


def test_fused_elementwise():
    def build(x, y):
        add, relu = ops.elementwise(FuncEnum.ADD), ops.elementwise(FuncEnum.RELU)
        z = relu(add(x, y))
        assert ops.fused_elementwise([add, relu])() == [z]
        return ops.fused_elementwise([add, relu], [x, y], [z])()

    x, y = tensor("x", "batch", 4), tensor("yy", "batch", 4)
    check(build, lambda x, y: [torch.relu(x + y)], x, y)
    add, relu = ops.elementwise(FuncEnum.ADD), ops.elementwise(FuncEnum.RELU)
    with pytest.raises(BuildError, match="needs elementwise operators that have been called"):
        ops.fused_elementwise([add])
    other = relu(add(x, y))
    with pytest.raises(BuildError, match="is none of the inputs of the operators"):
        ops.fused_elementwise([add, relu], [other], [other])
    with pytest.raises(BuildError, match="is none of the outputs of the operators"):
        ops.fused_elementwise([add, relu], [x, y], [x])
    wide = ops.elementwise(FuncEnum.ADD)
    wide(other, tensor("row", 3, "batch", 4))
    with pytest.raises(BuildError, match="results of different shapes"):
        ops.fused_elementwise([relu, wide], outputs=[*relu.outputs, *wide.outputs])
