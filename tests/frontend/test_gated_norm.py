"""Norms with a gate, and norms of several inputs, with their documented call signatures against torch in float64."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from ait_mlir.frontend import BuildError, ops
from ait_mlir.frontend.ops import FuncEnum
from tests.frontend.support import check, tensor


def gated(x, *factors):
    return x * torch.sigmoid(F.layer_norm(x, x.shape[-1:], *factors))


def test_the_operators_of_a_gate():
    def build(x, gamma, beta):
        norm, sigmoid, mul = ops.layernorm(), ops.elementwise(FuncEnum.SIGMOID), ops.elementwise(FuncEnum.MUL)
        mul(x, sigmoid(norm(x, gamma, beta)))
        return ops.layernorm_sigmoid_mul(norm, sigmoid, mul)()

    x, gamma, beta = tensor("x", "batch", "seq", 8), tensor("gg", 8), tensor("bbb", 8)
    check(build, gated, x, gamma, beta)
    norm, sigmoid, mul = ops.layernorm([8]), ops.elementwise(FuncEnum.SIGMOID), ops.elementwise(FuncEnum.MUL)
    with pytest.raises(BuildError, match="must have been called before"):
        ops.layernorm_sigmoid_mul(norm, sigmoid, mul)
    y = norm(x)
    mul(sigmoid(y), y)
    with pytest.raises(BuildError, match="do not compute x"):
        ops.layernorm_sigmoid_mul(norm, sigmoid, mul)


def test_factors_of_each_batch():
    x, gamma, beta = tensor("x", "batch", "seq", 8), tensor("gg", "batch", 8), tensor("bbb", "batch", 8)

    def want(x, gamma=None, beta=None):
        y = F.layer_norm(x, (8,))
        y = y if gamma is None else y * gamma[:, None]
        return x * torch.sigmoid(y if beta is None else y + beta[:, None])

    check(ops.batch_layernorm_sigmoid_mul(), want, x, gamma, beta)
    check(lambda x: ops.batch_layernorm_sigmoid_mul([8])(x), want, x)
    with pytest.raises(BuildError, match=r"gamma must have shape \[batch, 8\]"):
        ops.batch_layernorm_sigmoid_mul()(x, tensor("g", 8))
    with pytest.raises(BuildError, match=r"x must have 3 dims, \[B, M, N\]"):
        ops.batch_layernorm_sigmoid_mul()(tensor("x", "batch", 8))
    with pytest.raises(BuildError, match="normalized_shape must have 1 dim, found 2"):
        ops.batch_layernorm_sigmoid_mul()(x, normalized_shape=x.shape()[1:])


@pytest.mark.parametrize("gate", [False, True])
def test_inputs_of_different_sizes(gate):
    op = ops.group_layernorm_sigmoid_mul if gate else ops.group_layernorm
    x, y, g, b = tensor("x", "batch", 8), tensor("yy", "seq", 3, 5), tensor("ggg", 8), tensor("bbbb", 5)

    def want(x, y, g, b):
        pairs = [(x, F.layer_norm(x, (8,), g)), (y, F.layer_norm(y, (5,), None, b))]
        return [x * torch.sigmoid(norm) if gate else norm for x, norm in pairs]

    check(lambda x, y, g, b: op()([x, y], [g, None], [None, b]), want, x, y, g, b)
    check(lambda x, y, g, b: op([[8], [5]])(inputs=[x, y], gammas=[g, None], betas=[None, b]), want, x, y, g, b)
    check(lambda x, y, g, b: op()([x, y], [g, None], [None, b], [[8], [5]]), want, x, y, g, b)
    with pytest.raises(BuildError, match="needs one of each for 2 inputs, found 1 gammas, 2 betas"):
        op()([x, y], [g], [None, b])
