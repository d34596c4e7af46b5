"""Matrix products by their documented names against torch in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ait_mlir.frontend import BuildError, IntVar, Tensor, ops
from tests.frontend.support import BATCH, SEQ, check, tensor

EPILOGUES = {
    "gemm_rcr_bias": lambda y, b: y + b,
    "gemm_rcr_bias_relu": lambda y, b: torch.relu(y + b),
    "gemm_rcr_bias_sigmoid": lambda y, b: torch.sigmoid(y + b),
    "gemm_rcr_bias_tanh": lambda y, b: torch.tanh(y + b),
    "gemm_rcr_bias_gelu": lambda y, b: F.gelu(y + b),
    "gemm_rcr_bias_fast_gelu": lambda y, b: F.gelu(y + b, approximate="tanh"),
    "gemm_rcr_bias_swish": lambda y, b: F.silu(y + b),
    "gemm_rcr_bias_hardswish": lambda y, b: F.hardswish(y + b),
    "gemm_rcr_fast_gelu": lambda y: F.gelu(y, approximate="tanh"),
    "gemm_rcr_bias_add": lambda y, b, d: y + b + d,
    "gemm_rcr_bias_add_add": lambda y, b, d, e: y + b + d + e,
    "gemm_rcr_bias_add_relu": lambda y, b, d: torch.relu(y + b + d),
    "gemm_rcr_bias_add_add_relu": lambda y, b, d, e: torch.relu(y + b + d + e),
    "gemm_rcr_bias_mul": lambda y, b, d: (y + b) * d,
    "gemm_rcr_bias_mul_add": lambda y, b, d, e: (y + b) * d + e,
    "gemm_rcr_bias_mul_tanh": lambda y, b, d: torch.tanh((y + b) * d),
    "gemm_rcr_bias_sigmoid_mul": lambda y, b, d: torch.sigmoid(y + b) * d,
    "gemm_rcr_bias_sigmoid_mul_tanh": lambda y, b, d: torch.tanh(torch.sigmoid(y + b) * d),
}


@pytest.mark.parametrize("name", EPILOGUES)
def test_gemm_composites(name):
    x, w = tensor("x", "batch", "seq", 4), tensor("ww", 6, 4)
    extras = [tensor("bbb", 6), tensor("dddd", "batch", "seq", 6), tensor("eeeee", "batch", "seq", 6)]
    function = EPILOGUES[name]
    count = function.__code__.co_argcount - 1
    check(getattr(ops, name)(), lambda x, w, *rest: function(x @ w.T, *rest), x, w, *extras[:count])


def test_operands_by_name():
    x, w, bias, d0 = tensor("x", "batch", 4), tensor("ww", 6, 4), tensor("bbb", 6), tensor("dddd", "batch", 6)
    operator = ops.gemm_rcr_bias_mul()
    check(lambda x, w, b, d: operator(x, w, d0=d, bias=b), lambda x, w, b, d: (x @ w.T + b) * d, x, w, bias, d0)
    check(lambda x, w, b, d: operator(x, w, b, d0=d), lambda x, w, b, d: (x @ w.T + b) * d, x, w, bias, d0)
    with pytest.raises(BuildError, match=r"takes 2 more tensors \(bias, d0\); 1 and bias= were given"):
        operator(x, w, bias, bias=bias)
    with pytest.raises(BuildError, match=r"1 and d1= were given"):
        operator(x, w, bias, d1=d0)
    with pytest.raises(BuildError, match="d0 must be a Tensor; found 3"):
        operator(x, w, bias, d0=3)


def test_dual_gemm():
    x, w, v = tensor("x", "batch", "seq", 4), tensor("ww", 6, 4), tensor("vvv", 6, 4)
    check(ops.dual_gemm_rcr_silu(), lambda x, w, v: F.silu(x @ w.T) * (x @ v.T), x, w, v)
    check(
        ops.dual_gemm_rcr_fast_gelu(),
        lambda x, w, v: F.gelu(x @ w.T, approximate="tanh") * (x @ v.T),
        x,
        w,
        v,
    )


PERMUTED = {
    "gemm_rcr_permute": lambda x, w: x @ w.T,
    "gemm_rrr_permute": lambda x, w: x @ w,
    "gemm_rcr_bias_permute": lambda x, w, b: x @ w.T + b,
    "gemm_rrr_bias_permute": lambda x, w, b: x @ w + b,
    "gemm_rcr_permute_elup1": lambda x, w: F.elu(x @ w.T) + 1,
}


@pytest.mark.parametrize("name", PERMUTED)
def test_permuted_gemms(name):
    batch, seq = IntVar([1, 8], name="batch"), IntVar([1, 16], name="seq")
    x = Tensor([batch * seq, 4], dtype="float64", name="x", is_input=True)
    w = tensor("ww", *((4, 12) if "rrr" in name else (12, 4)))
    extras, operator = [tensor("bbb", 12)] * ("bias" in name), getattr(ops, name)
    for shape, order in (((seq, 2, 3), [2, 0, 3, 1, 4]), ((seq, 3), [0, 2, 1, 3])):
        layout = "20314" if len(shape) == 3 else "0213"
        cut = [BATCH, SEQ, *shape[1:], 12 // int(np.prod(shape[1:]))]

        def expected(*args, cut=cut, order=order):
            return PERMUTED[name](*args).reshape(cut).permute(order)

        check(operator(shape, layout), expected, x, w, *extras)


def test_permuted_bmms():
    batch = IntVar([1, 8], name="batch")
    a = Tensor([batch * 4, 5, 6], dtype="float64", name="a", is_input=True)
    b = Tensor([batch * 4, 3, 6], dtype="float64", name="bb", is_input=True)
    c = Tensor([batch * 4, 6, 3], dtype="float64", name="ccc", is_input=True)
    check(ops.bmm_rcr_permute([4]), lambda a, b: (a @ b.mT).reshape(-1, 4, 5, 3).permute(0, 2, 1, 3), a, b)
    check(ops.bmm_rrr_permute([4]), lambda a, c: (a @ c).reshape(-1, 4, 5, 3).permute(0, 2, 1, 3), a, c)


def test_gemm_rrr():
    bias = tensor("bbb", 6)
    check(ops.gemm_rrr(), lambda x, w: x @ w, tensor("x", "batch", 4), tensor("ww", 4, 6))
    check(ops.gemm_rrr_bias(), lambda x, w, b: x @ w + b, tensor("x", "batch", 4), tensor("ww", 4, 6), bias)


@pytest.mark.parametrize("layout", ["rcr", "rrr", "crr", "ccr", "rcc", "rrc", "crc", "ccc"])
def test_bmm_layouts(layout):
    m, n, k = 4, 5, 6
    a = tensor("a", "batch", *((m, k) if layout[0] == "r" else (k, m)))
    b = tensor("bb", "batch", *((k, n) if layout[1] == "r" else (n, k)))
    c = tensor("ccc", "batch", *((m, n) if layout[2] == "r" else (n, m)))

    def product(a, b):
        y = (a if layout[0] == "r" else a.mT) @ (b if layout[1] == "r" else b.mT)
        return y if layout[2] == "r" else y.mT

    check(getattr(ops, f"bmm_{layout}")(), product, a, b)
    check(getattr(ops, f"bmm_{layout}_add")(), lambda a, b, c: product(a, b) + c, a, b, c)
