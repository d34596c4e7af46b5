"""Products with their documented call signatures against torch in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ait_mlir.frontend import BuildError, ops
from tests.frontend.support import evaluate, graph_of
from tests.frontend.test_ops import check, tensor


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
