"""Every elementwise function of the builder against torch in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ait_mlir.frontend import BuildError, Tensor, ops
from ait_mlir.frontend.ops import FuncEnum
from tests.frontend.support import BATCH, check, evaluate, graph_of, tensor

UNARY = {
    FuncEnum.NEG: torch.neg,
    FuncEnum.EXP: torch.exp,
    FuncEnum.LOGE: torch.log,
    FuncEnum.SQRT: torch.sqrt,
    FuncEnum.RSQRT: torch.rsqrt,
    FuncEnum.TANH: torch.tanh,
    FuncEnum.ERF: torch.erf,
    FuncEnum.SIGMOID: torch.sigmoid,
    FuncEnum.RELU: torch.relu,
    FuncEnum.GELU: F.gelu,
    FuncEnum.FASTGELU: lambda x: F.gelu(x, approximate="tanh"),
    FuncEnum.SILU: F.silu,
    FuncEnum.ABS: torch.abs,
    FuncEnum.FLOOR: torch.floor,
    FuncEnum.SIN: torch.sin,
    FuncEnum.COS: torch.cos,
    FuncEnum.LOG1P: torch.log1p,
    FuncEnum.EXPM1: torch.expm1,
    FuncEnum.LOG2: torch.log2,
    FuncEnum.LOG10: torch.log10,
    FuncEnum.TAN: torch.tan,
    FuncEnum.ASIN: torch.asin,
    FuncEnum.ACOS: torch.acos,
    FuncEnum.ATAN: torch.atan,
    FuncEnum.SINH: torch.sinh,
    FuncEnum.COSH: torch.cosh,
    FuncEnum.ASINH: torch.asinh,
    FuncEnum.ACOSH: torch.acosh,
    FuncEnum.ATANH: torch.atanh,
    FuncEnum.ERFC: torch.erfc,
    FuncEnum.ERFINV: torch.erfinv,
    FuncEnum.LGAMMA: torch.lgamma,
    FuncEnum.DIGAMMA: torch.digamma,
    FuncEnum.SIGN: torch.sign,
    FuncEnum.RECIPROCAL: torch.reciprocal,
    FuncEnum.HARDTANH: F.hardtanh,
    FuncEnum.HARDSWISH: F.hardswish,
    FuncEnum.LRELU: F.leaky_relu,
    FuncEnum.ELU: F.elu,
    FuncEnum.CELU: F.celu,
    FuncEnum.SOFTPLUS: F.softplus,
    FuncEnum.SOFTSIGN: F.softsign,
    FuncEnum.NAN_TO_NUM: torch.nan_to_num,
}

BINARY = {
    FuncEnum.ADD: torch.add,
    FuncEnum.SUB: torch.sub,
    FuncEnum.MUL: torch.mul,
    FuncEnum.DIV: torch.div,
    FuncEnum.MAX: torch.maximum,
    FuncEnum.MIN: torch.minimum,
    FuncEnum.POW: torch.pow,
    FuncEnum.FLOOR_DIV: torch.floor_divide,
    FuncEnum.REM: torch.fmod,
    FuncEnum.REMAINDER: torch.remainder,
    FuncEnum.ATAN2: torch.atan2,
    FuncEnum.HYPOT: torch.hypot,
}

BITS = {
    FuncEnum.GCD: torch.gcd,
    FuncEnum.BIT_AND: torch.bitwise_and,
    FuncEnum.BIT_OR: torch.bitwise_or,
    FuncEnum.BIT_XOR: torch.bitwise_xor,
    FuncEnum.SHIFT_LEFT: torch.bitwise_left_shift,
    FuncEnum.SHIFT_RIGHT: torch.bitwise_right_shift,
}

WITH_PARAMETERS = {
    FuncEnum.HARDTANH: ((-0.5, 0.25), F.hardtanh),
    FuncEnum.LRELU: ((0.2,), F.leaky_relu),
    FuncEnum.ELU: ((0.7,), F.elu),
    FuncEnum.CELU: ((0.7,), F.celu),
    FuncEnum.SOFTPLUS: ((2.0, 1.0), F.softplus),
    FuncEnum.NAN_TO_NUM: ((1.0, 2.0, -3.0), torch.nan_to_num),
    FuncEnum.CLAMP_NAN_TO_NUM: ((-0.5, 0.5, 0.125), lambda x, low, high, nan: x.nan_to_num(nan).clamp(low, high)),
}


def test_every_function_is_tested():
    assert {*UNARY, *BINARY, *BITS, *WITH_PARAMETERS, FuncEnum.BIT_NOT} == set(FuncEnum)


@pytest.mark.parametrize("func", UNARY, ids=lambda f: f.name)
def test_unary(func):
    positive = func in (FuncEnum.LOGE, FuncEnum.SQRT, FuncEnum.RSQRT, FuncEnum.LOG1P)
    check(ops.elementwise(func), UNARY[func], tensor("x", "batch", 4), positive=positive)


@pytest.mark.parametrize("func", BINARY, ids=lambda f: f.name)
def test_binary_broadcasts(func):
    inputs = tensor("x", "batch", "seq", 4), tensor("bias", "seq", 1)
    check(ops.elementwise(func), BINARY[func], *inputs, positive=func is FuncEnum.POW)


@pytest.mark.parametrize("func", BITS, ids=lambda f: f.name)
def test_bits(func):
    a, b = tensor("a", "batch", 4, dtype="int32"), tensor("b", 4, dtype="int32")
    given = np.arange(-4, 4 * BATCH - 4, dtype=np.int32).reshape(BATCH, 4), np.array([0, 1, 5, 31], np.int32)
    (got,) = evaluate(ops.elementwise(func)(a, b), dict(zip("ab", given, strict=True)), batch=BATCH)
    np.testing.assert_array_equal(got, BITS[func](*map(torch.from_numpy, given)).numpy())


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32"])
def test_bits_are_inverted(dtype):
    given = np.array([0, 1, 1, 0] if dtype == "bool" else [0, 1, 5, 127], dtype)
    x = Tensor(shape=[4], dtype=dtype, name="x", is_input=True)
    (got,) = evaluate(ops.elementwise(FuncEnum.BIT_NOT)(x), {"x": given})
    np.testing.assert_array_equal(got, np.invert(given))


@pytest.mark.parametrize("func", WITH_PARAMETERS, ids=lambda f: f.name)
def test_parameters(func):
    numbers, function = WITH_PARAMETERS[func]
    x = tensor("x", "batch", 4)
    check(lambda x: ops.elementwise(func)(x, *numbers), lambda x: function(x, *numbers), x)
    with pytest.raises(BuildError, match=r"takes 1 operand.* then (up|2) to \d parameter"):
        ops.elementwise(func)(x, *numbers, 1.0, 1.0, 1.0)


def test_cast_is_called_at_once_or_in_two_steps():
    x = tensor("x", "batch", 4)
    made = [ops.cast(x, "float16"), ops.cast(x=x, dtype="float16"), ops.cast()(x, "float16")]
    assert [y.dtype() for y in made] == ["float16"] * 3
    assert ops.cast(x).dtype() == ops.cast()(x).dtype() == "bfloat16"
    operators = [op for y in made for op in y._attrs["src_ops"]]
    assert [type(op) for op in operators] == [ops.cast] * 3 and operators[0]._get_op_attributes() == {}
    check(lambda x: ops.cast(x, "float64"), lambda x: x, x)


def test_nan_and_infinities_become_numbers():
    x = Tensor(shape=[5], dtype="float64", name="x", is_input=True)
    value = np.array([np.nan, np.inf, -np.inf, 1.0, -2.0])
    for arguments in ((), (0.5, 9.0, -9.0)):
        (got,) = evaluate(ops.elementwise(FuncEnum.NAN_TO_NUM)(x, *arguments), {"x": value})
        np.testing.assert_array_equal(got, torch.from_numpy(value).nan_to_num(*arguments).numpy())
    (got,) = evaluate(ops.elementwise(FuncEnum.CLAMP_NAN_TO_NUM)(x, -1.5, 1.5, 0.25), {"x": value})
    np.testing.assert_array_equal(got, [0.25, 1.5, -1.5, 1.0, -1.5])
    (got,) = evaluate(ops.elementwise(FuncEnum.SIGN)(x), {"x": value})
    np.testing.assert_array_equal(got, [0, 1, -1, 1, -1])


def test_integers_divide_downwards():
    names = ("a", "b")
    a, b = (Tensor(shape=[6], dtype="int32", name=n, is_input=True) for n in names)
    values = [np.array(v, np.int32) for v in ([7, -7, 7, -7, 6, -6], [2, 2, -2, -2, 3, 3])]
    for func, wanted in ((FuncEnum.FLOOR_DIV, [3, -4, -4, 3, 2, -2]), (FuncEnum.REMAINDER, [1, 1, -1, -1, 0, 0])):
        (got,) = evaluate(ops.elementwise(func)(a, b), dict(zip(names, values, strict=True)))
        assert got.tolist() == wanted
    (got,) = evaluate(ops.elementwise(FuncEnum.REMAINDER)(a, -3), {"a": values[0]})
    assert got.tolist() == [-2, -1, -2, -1, 0, 0]


def test_functions_of_floats_refuse_integers():
    x = tensor("x", "batch", 4, dtype="int32")
    for func in (FuncEnum.HARDSWISH, FuncEnum.LRELU, FuncEnum.ELU, FuncEnum.CELU, FuncEnum.SOFTPLUS):
        with pytest.raises(
            BuildError, match=rf"elementwise\({func.name}\)\(.*int32\): needs floats; ops.cast converts"
        ):
            ops.elementwise(func)(x)


def test_small_whole_powers_are_products():
    x = tensor("x", "batch", 4)
    names = [[op.name for op in graph_of(ops.pow(x, n)).block.ops] for n in (3.0, 0.5, 2.5)]
    assert ["ait.pow" in ops for ops in names] == [False, False, True]
    check(
        lambda x: [ops.pow(x, n) for n in (3.0, -2.0, 0.5, 2.5)],
        lambda x: [x.pow(n) for n in (3.0, -2.0, 0.5, 2.5)],
        x,
        positive=True,
    )


def test_numbers_as_operands():
    check(lambda x: ops.elementwise(FuncEnum.SUB)(1.5, x), lambda x: 1.5 - x, tensor("x", "batch", 4))


def test_comparisons_and_where():
    check(
        lambda x: [
            ops.where()(ops.gt()(x, 0.25), x, -1.0),
            ops.where()(ops.eq()(x, x), 1.0, 0.0, dtype="float64"),
            ops.where()(ops.le()(x, -x), x, x * 2.0),
        ],
        lambda x: [torch.where(x > 0.25, x, -1.0), torch.ones_like(x), torch.where(x <= -x, x, x * 2)],
        tensor("x", "batch", 4),
    )


def test_clamp_and_full():
    check(
        lambda x: [ops.clamp()(x, -0.5, 0.5), ops.clamp()(x, min_value=0.0), x + ops.full()([4], 2.0, "float64")],
        lambda x: [x.clamp(-0.5, 0.5), x.clamp(min=0), x + 2],
        tensor("x", "batch", 4),
    )


def test_cast_changes_the_dtype():
    y = ops.cast()(tensor("x", "batch", 4), "float16")
    assert y.dtype() == "float16"
    with pytest.raises(BuildError, match=r"elementwise\(ADD\)"):
        y + tensor("z", "batch", 4)
