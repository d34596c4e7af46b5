"""Models from Python, compiled for the CPU and run, against torch."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ait_mlir.errors import InputError
from ait_mlir.frontend import IntVar, Tensor, compile_model, nn, ops
from ait_mlir.frontend.ops import FuncEnum
from benchmarks import measure
from benchmarks.peers import bert as peer
from examples.models.bert import BertConfig, BertModel
from tests import tiers

SMALL = {
    "vocab_size": 50,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 16,
}


@pytest.mark.parametrize(
    "dtype", tiers.params([torch.float32, torch.float16, torch.bfloat16], [torch.bfloat16]), ids=str
)
def test_bert_with_embeddings(dtype, tmp_path):
    name = str(dtype).removeprefix("torch.")
    theirs = peer.randomize(peer.BertModel(peer.BertConfig(**SMALL))).to(dtype).eval()
    shape = [IntVar([1, 8], name="batch"), IntVar([1, 16], name="seq")]
    names = ("input_ids", "token_type_ids", "position_ids")
    ids = [Tensor(shape=shape, dtype="int64", name=n, is_input=True) for n in names]
    ours = BertModel(BertConfig(**SMALL, dtype=name))
    ours.name_parameter_tensor(separator=".")
    y = ours(*ids).mark_as_output("y")
    exactly = copy.deepcopy(theirs).double()
    torch.manual_seed(0)
    with compile_model(y, "cpu", tmp_path, "bert", constants=theirs.state_dict()) as model, torch.inference_mode():
        for batch, seq in [(1, 1), (3, 7), (8, 16)]:
            results: list[list[torch.Tensor]] = []
            for _ in range(max(1, 64 // (batch * seq))):  # enough numbers for a ratio of errors to mean something
                values = [torch.randint(0, high, (batch, seq)) for high in (50, 2, 16)]
                got = model.run_with_tensors(dict(zip(names, values, strict=True)))["y"]
                results.append([got, theirs(*values), exactly(*values)])
            result = measure.accuracy(*(torch.cat(side) for side in zip(*results, strict=True)))
            # for one row PyTorch takes a matrix-vector product, whose many partial sums round less than a matrix product
            passed = result.passed if batch * seq > 1 else max(result.max_ratio, result.rmse_ratio) <= 2
            assert passed, (batch, seq, result)


def test_views_broadcasts_and_several_outputs(tmp_path):
    """Every operator that moves elements, on dynamic dims, in one library."""
    batch, seq = IntVar([1, 8], name="batch"), IntVar([2, 16], name="seq")
    x = Tensor(shape=[batch, seq, 12], dtype="float32", name="x", is_input=True)
    z = Tensor(shape=[batch, 1, 12], dtype="float32", name="z", is_input=True)
    a, b, c = ops.split()(x, [2, 4, 6], -1)
    outputs = {
        "joined": (ops.concatenate()([c, a, x], 2), lambda x, z: torch.cat([x[..., 6:], x[..., :2], x], 2)),
        "longer": (ops.concatenate()([x, z, x], 1), lambda x, z: torch.cat([x, z, x], 1)),
        "last": (ops.dynamic_slice()(x, [None, -1, 3], [None, None, 9]), lambda x, z: x[:, -1:, 3:9]),
        "rest": (ops.dynamic_slice()(x, [None, 1, None], [None, None, None]), lambda x, z: x[:, 1:]),
        "turned": (ops.permute()(b, [2, 0, 1]), lambda x, z: x[..., 2:6].permute(2, 0, 1)),
        "flat": (ops.reshape()(x * z, [-1, 4]), lambda x, z: (x * z).reshape(-1, 4)),
        "wide": (ops.expand()(z, [-1, seq, -1]) - x, lambda x, z: z - x),
        "gated": (
            ops.where()(ops.gt()(x, z), ops.elementwise(FuncEnum.SILU)(x), 0.5),
            lambda x, z: torch.where(x > z, F.silu(x), 0.5),
        ),
        "soft": (ops.softmax()(x, 1), lambda x, z: x.softmax(1)),
        "scores": (ops.bmm_rcr()(x, z), lambda x, z: x @ z.mT),
    }
    tensors = [tensor.mark_as_output(name) for name, (tensor, _) in outputs.items()]
    with compile_model(tensors, "cpu", tmp_path, "views") as model:
        assert model.get_output_maximum_shape("longer") == [8, 33, 12]
        for rows, length in [(1, 2), (3, 7), (8, 16)]:
            x_data, z_data = torch.randn(rows, length, 12), torch.randn(rows, 1, 12)
            got = model.run_with_tensors({"x": x_data, "z": z_data})
            for name, (_, function) in outputs.items():
                torch.testing.assert_close(got[name], function(x_data, z_data), rtol=1e-5, atol=1e-6, msg=name)


def test_a_dim_without_a_name_and_data_bound_to_a_parameter(tmp_path):
    x = Tensor(shape=[IntVar([1, 4]), 8], dtype="float32", name="x", is_input=True)
    weight = nn.Parameter([3, 8], "float32", value=np.ones((3, 8), np.float32))
    free = Tensor(shape=[3], dtype="float32", name="free")
    y = ops.gemm_rcr_bias()(x, weight.tensor(), free).mark_as_output("y")
    with compile_model(y, "cpu", tmp_path, "bound") as model:
        assert model.get_constant_names(unset_only=True) == ["free"]
        model.set_constant("free", np.arange(3, dtype=np.float32))
        value = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
        got = model.run_with_tensors({"x": value})["y"]
        np.testing.assert_allclose(got, value.sum(1, keepdims=True) + np.arange(3), rtol=1e-5)
        with pytest.raises(InputError, match=r"'x'.*5"):
            model.run_with_tensors({"x": np.zeros((5, 8), np.float32)})


def test_an_input_passes_through(tmp_path):
    x = Tensor(shape=[IntVar([1, 4], name="n"), 8], dtype="float32", name="x", is_input=True)
    y = (-x).mark_as_output("y")
    with compile_model([y, ops.identity()(x).mark_as_output("same")], "cpu", tmp_path, "through") as model:
        value = torch.randn(3, 8)
        got = model.run_with_tensors([value])
        assert torch.equal(got["same"], value)
        assert torch.equal(got["y"], -value)
