"""The reference against PyTorch in float64, and against what is known of the corners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from ait_mlir.dialects.ait import elementwise
from ait_mlir.ir.context import context
from ait_mlir.reference import RULES, EvaluationError
from tests.reference.evaluate import evaluate, run

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def close(found: Array, expected: Any) -> None:
    expected = expected.numpy() if isinstance(expected, torch.Tensor) else np.asarray(expected)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_every_op_has_a_meaning() -> None:
    ops = {op.name for dialect in ("ait",) for op in _dialect(dialect)}
    structure = {"ait.graph", "ait.yield", "ait.at", "ait.fold", "ait.index"}
    assert ops - structure == set(RULES)


def _dialect(name: str) -> list[Any]:
    ctx = context()
    ctx.get_optional_op(f"{name}.add")
    return [op for d in ctx.loaded_dialects if d.name == name for op in d.operations]


SPELLED = {"fast_gelu": lambda x: functional.gelu(x, approximate="tanh")}
"""The functions of unary ops that PyTorch does not have by the op's name."""


def torch_function(name: str) -> Callable[[torch.Tensor], Any]:
    """PyTorch's function for a unary op: spelled out above, or of the op's name."""
    found = [getattr(module, name) for module in (torch, functional, torch.special) if hasattr(module, name)]
    assert name in SPELLED or found, f"PyTorch has no {name}: ait.{name} needs a row of SPELLED in {__file__}"
    return SPELLED.get(name) or found[0]


def test_a_function_that_pytorch_does_not_have_needs_a_row() -> None:
    with pytest.raises(AssertionError, match=r"ait.cube_root needs a row of SPELLED in .*test_ops.py"):
        torch_function("cube_root")


@pytest.mark.parametrize("name", [op.name.removeprefix("ait.") for op in elementwise.UNARY])
def test_unary(name: str) -> None:
    x = np.concatenate([RNG.standard_normal(40) * 3, [0.0, -0.0, np.inf, np.nan, 30.0, -30.0]])
    if name not in ("gelu", "fast_gelu", "silu"):
        x = np.append(x, -np.inf)
    close(run(f"ait.{name} %x", f"!ait.tensor<{len(x)} x f64>", x=x), torch_function(name)(torch.tensor(x)))


BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "max": torch.maximum,
    "min": torch.minimum,
    "pow": torch.pow,
    "rem": torch.fmod,
    "atan2": torch.atan2,
    "hypot": torch.hypot,
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_with_broadcasting(name: str) -> None:
    a, b = RNG.standard_normal((3, 1, 4)), RNG.standard_normal((5, 1))
    a[0, 0, 0], b[2, 0] = np.nan, 0.0
    expected = BINARY[name](torch.tensor(a), torch.tensor(b))
    close(run(f"ait.{name} %a, %b", "!ait.tensor<3 x 5 x 4 x f64>", a=a, b=b), expected)


CLAMPS = {"min -0.5 max 0.25": (-0.5, 0.25), "min 0.1": (0.1, None), "max -1": (None, -1), "min 1 max -1": (1, -1)}


@pytest.mark.parametrize("bounds", CLAMPS)
def test_clamp(bounds: str) -> None:
    x = np.concatenate([RNG.standard_normal(40), [0.0, -0.0, np.inf, -np.inf, np.nan]])
    close(run(f"ait.clamp %x {bounds}", f"!ait.tensor<{len(x)} x f64>", x=x), torch.tensor(x).clamp(*CLAMPS[bounds]))


def test_clamp_of_integers() -> None:
    x = np.array([-128, -3, 0, 5, 127], np.int8)
    assert run("ait.clamp %x min -3 max 4", "!ait.tensor<5 x i8>", x=x).tolist() == [-3, -3, 0, 4, 4]


def test_integers_wrap_and_divide_towards_zero() -> None:
    a = np.array([7, -7, 7, -7, 5, -(2**31)], np.int32)
    b = np.array([2, 2, -2, -2, 0, 3], np.int32)
    assert run("ait.div %a, %b", "!ait.tensor<6 x i32>", a=a, b=b).tolist() == [3, -3, -3, 3, 0, -715827882]
    c = np.array([2**31 - 1, -(2**31)], np.int32)
    assert run("ait.add %c, %c", "!ait.tensor<2 x i32>", c=c).tolist() == [-2, 0]
    d = np.array([127, -128], np.int8)
    assert run("ait.mul %d, %d", "!ait.tensor<2 x i8>", d=d).tolist() == [1, 0]
    assert run("ait.relu %c", "!ait.tensor<2 x i32>", c=c).tolist() == [2**31 - 1, 0]
    u = np.array([3, 250], np.uint8)
    assert run("ait.sub %u, %v", "!ait.tensor<2 x ui8>", u=u, v=u[::-1].copy()).tolist() == [9, 247]
    assert run("ait.div %u, %v", "!ait.tensor<2 x ui8>", u=u, v=np.array([0, 7], np.uint8)).tolist() == [0, 35]
    assert run("ait.neg %u", "!ait.tensor<2 x ui8>", u=u).tolist() == [253, 6]
    assert run("ait.shift_right %u, %v", "!ait.tensor<2 x ui8>", u=u | 128, v=np.array([7, 8], np.uint8)).tolist() == [
        1,
        0,
    ]


BITS = {
    "gcd": torch.gcd,
    "bit_and": torch.bitwise_and,
    "bit_or": torch.bitwise_or,
    "bit_xor": torch.bitwise_xor,
    "shift_left": torch.bitwise_left_shift,
    "shift_right": torch.bitwise_right_shift,
}


@pytest.mark.parametrize("name", BITS)
def test_bits_of_integers(name: str) -> None:
    a, b = np.array([[7, -8, 2**31 - 1, -(2**31)]], np.int32), np.array([[0], [3], [31], [32], [-1]], np.int32)
    found = run(f"ait.{name} %a, %b", "!ait.tensor<5 x 4 x i32>", a=a, b=b)
    assert found.tolist() == BITS[name](torch.tensor(a), torch.tensor(b)).tolist()


def test_remainders_of_integers_have_the_sign_of_the_left_one() -> None:
    a, b = np.array([7, -7, 7, -7, 5], np.int32), np.array([2, 2, -2, -2, 0], np.int32)
    assert run("ait.rem %a, %b", "!ait.tensor<5 x i32>", a=a, b=b).tolist() == [1, -1, 1, -1, 5]


@pytest.mark.parametrize("predicate", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_compare(predicate: str) -> None:
    a, b = np.array([1.0, 2.0, 3.0, np.nan]), np.array([2.0, 2.0, 2.0, np.nan])
    found = run(f"ait.compare {predicate} %a, %b", "!ait.tensor<4 x i1>", a=a, b=b)
    assert found.dtype == np.bool_
    assert found.tolist() == getattr(torch, predicate)(torch.tensor(a), torch.tensor(b)).tolist()


def test_where_takes_the_chosen_side_only() -> None:
    c, a, b = np.array([True, False]), np.array([1.0, np.nan]), np.array([np.nan, 2.0])
    assert run("ait.where %c, %a, %b", "!ait.tensor<2 x f64>", c=c, a=a, b=b).tolist() == [1.0, 2.0]


def test_casts_round_saturate_and_wrap() -> None:
    x = np.array([2.7, -2.7, 1e30, -1e30, np.nan, np.inf, 300.0])
    assert run("ait.cast %x", "!ait.tensor<7 x i8>", x=x).tolist() == [2, -2, 127, -128, 0, 127, 127]
    assert run("ait.cast %x", "!ait.tensor<7 x i64>", x=x).tolist()[2:4] == [2**63 - 1, -(2**63)]
    assert run("ait.cast %x", "!ait.tensor<7 x i1>", x=np.append(x[:6], 0.0)).tolist() == [True] * 6 + [False]
    assert run("ait.cast %i", "!ait.tensor<1 x i8>", i=np.array([257])).tolist() == [1]
    assert run("ait.cast %x", "!ait.tensor<7 x ui8>", x=x).tolist() == [2, 0, 255, 0, 0, 255, 255]
    assert run("ait.cast %i", "!ait.tensor<2 x ui8>", i=np.array([257, -1])).tolist() == [1, 255]
    third = np.array([1 / 3])
    assert run("ait.cast %x", "!ait.tensor<1 x f16>", x=third)[0] == float(np.float16(1 / 3))
    assert run("ait.cast %x", "!ait.tensor<1 x bf16>", x=third)[0] == 0.333984375
    # a float that is f16 by type may hold more while evaluating; casting it to a wider type adds no rounding
    assert run("ait.cast %x", "!ait.tensor<1 x f32>", dtype="f16", x=third)[0] == 1 / 3


def test_a_cast_back_to_where_a_value_came_from_does_not_round() -> None:
    third = np.array([1 / 3])
    lines = '%w = ait.cast %x : !ait.tensor<1 x f64>\n%y = ait.cast %w : {0}\nait.output "y" %y : {0}'
    exact, back = lines.format("!ait.tensor<1 x f32>"), lines.format("!ait.tensor<1 x f16>")
    assert evaluate(exact, rounding=False, dtype="f32", x=third)["y"][0] == 1 / 3
    assert evaluate(exact, rounding=False, dtype="f16", x=third)["y"][0] == 1 / 3
    assert evaluate(back, rounding=False, dtype="f16", x=third)["y"][0] == 1 / 3
    assert evaluate(back, rounding=False, dtype="f32", x=third)["y"][0] == float(np.float16(1 / 3))
    narrowed = lines.format("!ait.tensor<1 x f32>").replace("f64", "f16")
    assert evaluate(narrowed, rounding=False, dtype="f32", x=third)["y"][0] == float(np.float16(1 / 3))


def test_rounding_is_that_of_the_storage() -> None:
    lines = '%a = ait.div %x, %n : {0}\n%b = ait.mul %a, %n : {0}\nait.output "y" %b : {0}'.format(
        "!ait.tensor<1 x f16>"
    )
    x, n = np.array([1.0]), np.array([3.0])
    assert evaluate(lines, rounding=False, dtype="f16", x=x, n=n)["y"][0] == 1.0
    third = np.float16(1 / 3)
    assert evaluate(lines, rounding=True, dtype="f16", x=x, n=n)["y"][0] == float(np.float16(float(third) * 3))


def test_regions_compute_in_f32_when_rounding() -> None:
    lines = """%y = ait.fused_elementwise(%x) {{
    ^bb0(%a: f32):
      %c = ait.constant 0.1 : f32
      %b = ait.mul %a, %c : f32
      ait.yield %b : f32
    }} : {0}
    ait.output "y" %y : {0}""".format("!ait.tensor<1 x f16>")
    x = np.array([3.0])
    exact = 3.0 * float(np.float32(0.1))
    assert evaluate(lines, dtype="f16", x=x)["y"][0] == exact
    assert evaluate(lines, rounding=True, dtype="f16", x=x)["y"][0] == float(np.float16(np.float32(exact)))


@pytest.mark.parametrize("layout", ["rrr", "rrc", "rcr", "rcc", "crr", "crc", "ccr", "ccc"])
def test_contractions(layout: str) -> None:
    a, b = RNG.standard_normal((4, 6)), RNG.standard_normal((6, 3))
    y = torch.tensor(a) @ torch.tensor(b)
    operands = {"a": a.T if layout[0] == "c" else a, "b": b.T if layout[1] == "c" else b}
    shape = "4 x 3" if layout[2] == "r" else "3 x 4"
    close(run(f"ait.gemm {layout} %a, %b", f"!ait.tensor<{shape} x f64>", **operands), y.T if layout[2] == "c" else y)
    batched = {"a": np.stack([operands["a"]] * 2), "b": operands["b"][None]}
    close(
        run(f"ait.bmm {layout} %a, %b", f"!ait.tensor<2 x {shape} x f64>", **batched),
        torch.stack([y.T if layout[2] == "c" else y] * 2),
    )


def test_an_empty_sum_is_zero() -> None:
    a, b = np.zeros((2, 0)), np.zeros((0, 3))
    assert not run("ait.gemm rrr %a, %b", "!ait.tensor<2 x 3 x f64>", a=a, b=b).any()
    assert not run("ait.gemm rrr %a, %b", "!ait.tensor<5 x 2 x 3 x f64>", a=np.zeros((5, 2, 0)), b=b).any()
    assert (
        run("ait.gemm rrr %a, %b", "!ait.tensor<0 x 2 x 3 x f64>", a=np.zeros((0, 2, 4)), b=np.ones((4, 3))).size == 0
    )


def test_epilogue_operands_broadcast() -> None:
    a, w = RNG.standard_normal((4, 6)), RNG.standard_normal((3, 6))
    bias, rows = RNG.standard_normal(3), RNG.standard_normal((4, 1))
    lines = """%y = ait.gemm rcr %a, %w epilogue(%bias, %rows) {
    ^bb0(%acc: f64, %p: f64, %q: f64):
      %s = ait.add %acc, %p : f64
      %t = ait.mul %s, %q : f64
      %u = ait.relu %t : f64
      ait.yield %u : f64
    } : !ait.tensor<4 x 3 x f64>
    ait.output "y" %y : !ait.tensor<4 x 3 x f64>"""
    close(evaluate(lines, a=a, w=w, bias=bias, rows=rows)["y"], np.maximum((a @ w.T + bias) * rows, 0))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax(dim: int) -> None:
    x = RNG.standard_normal((3, 4, 5)) * 100
    close(run(f"ait.softmax %x dim {dim}", "!ait.tensor<3 x 4 x 5 x f64>", x=x), torch.softmax(torch.tensor(x), dim))


REDUCE = {
    "sum": torch.sum,
    "mean": torch.mean,
    "max": torch.amax,
    "min": torch.amin,
    "var": lambda x, dim: torch.var(x, dim, correction=0),
}


@pytest.mark.parametrize("dims", [[0], [1], [0, 2], [0, 1, 2]])
@pytest.mark.parametrize("kind", REDUCE)
def test_reduce(kind: str, dims: list[int]) -> None:
    x = RNG.standard_normal((3, 4, 5))
    left = "".join(f"{n} x " for i, n in enumerate(x.shape) if i not in dims)
    close(run(f"ait.reduce {kind} %x dims {dims}", f"!ait.tensor<{left}f64>", x=x), REDUCE[kind](torch.tensor(x), dims))


def test_reduce_of_little_and_of_integers() -> None:
    x = RNG.standard_normal((3, 4))
    found = run("ait.reduce var %x dims [1] correction 1", "!ait.tensor<3 x f64>", x=x)
    close(found, torch.var(torch.tensor(x), 1))
    one, none = np.ones((2, 1)), np.ones((2, 0))
    assert np.isnan(run("ait.reduce var %x dims [1] correction 1", "!ait.tensor<2 x f64>", x=one)).all()
    for kind, value in (("sum", 0.0), ("mean", np.nan), ("var", np.nan), ("max", -np.inf), ("min", np.inf)):
        np.testing.assert_array_equal(run(f"ait.reduce {kind} %x dims [1]", "!ait.tensor<2 x f64>", x=none), value)
    i = np.full((2, 3), 100, np.int8)
    assert run("ait.reduce sum %i dims [1]", "!ait.tensor<2 x i8>", i=i).tolist() == [44, 44]
    assert run("ait.reduce max %i dims [0]", "!ait.tensor<3 x i8>", i=i).tolist() == [100] * 3
    u = np.array([[200, 100], [0, 255]], np.uint8)
    for kind, value in (("sum", [44, 255]), ("max", [200, 255]), ("min", [100, 0])):
        assert run(f"ait.reduce {kind} %u dims [1]", "!ait.tensor<2 x ui8>", u=u).tolist() == value


def test_largest_elements() -> None:
    x = RNG.standard_normal((3, 7))
    values, places = torch.topk(torch.tensor(x), 3)
    lines = """%v, %i = ait.topk %x k 3 : !ait.tensor<3 x 3 x f64>, !ait.tensor<3 x 3 x i64>
    ait.output "v" %v : !ait.tensor<3 x 3 x f64>
    ait.output "i" %i : !ait.tensor<3 x 3 x i64>"""
    found = evaluate(lines, x=x)
    close(found["v"], values)
    close(found["i"], places)
    close(run("ait.argmax %x dim 0", "!ait.tensor<7 x i64>", x=x), torch.argmax(torch.tensor(x), 0))
    nan = np.array([1.0, np.nan, 3.0, np.nan])
    assert run("ait.argmax %x dim 0", "!ait.tensor<i32>", x=nan) == 1
    assert evaluate(
        """%v, %i = ait.topk %x k 3 : !ait.tensor<3 x f64>, !ait.tensor<3 x i32>
    ait.output "i" %i : !ait.tensor<3 x i32>""",
        x=nan,
    )["i"].tolist() == [1, 3, 2]


@pytest.mark.parametrize("axes", [1, 2])
def test_layer_norm(axes: int) -> None:
    x = RNG.standard_normal((3, 4, 5))
    row = x.shape[3 - axes :]
    g, b = RNG.standard_normal(row), RNG.standard_normal(row)
    found = run(
        f"ait.layer_norm %x scale %g bias %b axes {axes} eps 0.001", "!ait.tensor<3 x 4 x 5 x f64>", x=x, g=g, b=b
    )
    tensors = [torch.tensor(v) for v in (x, g, b)]
    close(found, functional.layer_norm(tensors[0], row, tensors[1], tensors[2], 1e-3))


@pytest.mark.parametrize("axes", [1, 2])
def test_rms_norm(axes: int) -> None:
    x = RNG.standard_normal((3, 4, 5))
    row = x.shape[3 - axes :]
    g, b = RNG.standard_normal(row), RNG.standard_normal(row)
    found = run(
        f"ait.rms_norm %x scale %g bias %b axes {axes} eps 0.001", "!ait.tensor<3 x 4 x 5 x f64>", x=x, g=g, b=b
    )
    close(found, functional.rms_norm(torch.tensor(x), row, torch.tensor(g), 1e-3) + torch.tensor(b))


def test_layer_norm_keeps_the_sum_of_its_prologue() -> None:
    x, r = RNG.standard_normal((3, 5)), RNG.standard_normal(5)
    lines = """%y, %s = ait.layer_norm %x axes 1 eps 0.001 prologue(%r) {
    ^bb0(%a: f64, %b: f64):
      %t = ait.add %a, %b : f64
      ait.yield %t, %t : f64, f64
    } : !ait.tensor<3 x 5 x f64>, !ait.tensor<3 x 5 x f64>
    ait.output "y" %y : !ait.tensor<3 x 5 x f64>
    ait.output "sum" %s : !ait.tensor<3 x 5 x f64>"""
    found = evaluate(lines, x=x, r=r)
    close(found["y"], functional.layer_norm(torch.tensor(x + r), (5,), eps=1e-3))
    close(found["sum"], x + r)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [None, 1, 2])
def test_attention_with_groups_and_window(causal: bool, window: int | None) -> None:
    q, k, v = (RNG.standard_normal((2, heads, n, 4)) for heads, n in ((6, 3), (2, 5), (2, 5)))
    distance = np.arange(5) - (np.arange(3)[:, None] + 2)
    visible = (distance <= 0) | (not causal)
    visible &= True if window is None else np.abs(distance) < window
    expected = functional.scaled_dot_product_attention(
        *map(torch.tensor, (q, k, v)), attn_mask=torch.tensor(visible), scale=0.3, enable_gqa=True
    )
    text = "ait.attention %q, %k, %v scale 0.3" + " causal" * causal + (f" window {window}" if window else "")
    close(run(text, "!ait.tensor<2 x 6 x 3 x 4 x f64>", q=q, k=k, v=v), expected)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention(causal: bool, masked: bool) -> None:
    q, k, v = (RNG.standard_normal((2, 3, n, d)) for n, d in ((4, 8), (6, 8), (6, 5)))
    m = RNG.standard_normal((2, 1, 1, 6))
    bias = torch.tensor(m) if masked else torch.zeros(1)
    if causal:
        bias = bias + torch.full((4, 6), -torch.inf).triu(3)
    expected = functional.scaled_dot_product_attention(
        *(torch.tensor(x) for x in (q, k, v)), attn_mask=bias.expand(2, 3, 4, 6).double(), scale=0.3
    )
    text = "ait.attention %q, %k, %v" + " mask %m" * masked + " scale 0.3" + " causal" * causal
    close(run(text, "!ait.tensor<2 x 3 x 4 x 5 x f64>", q=q, k=k, v=v, m=m), expected)


def test_views() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    assert (run("ait.reshape %x", "!ait.tensor<6 x 4 x i64>", x=x) == x.reshape(6, 4)).all()
    assert (run("ait.permute %x [2, 0, 1]", "!ait.tensor<4 x 2 x 3 x i64>", x=x) == x.transpose(2, 0, 1)).all()
    assert (run("ait.slice %x offsets [0, 1, 2]", "!ait.tensor<2 x 2 x 1 x i64>", x=x) == x[:, 1:, 2:3]).all()
    z = np.array([[1], [2]])
    assert (run("ait.expand %z", "!ait.tensor<5 x 2 x 3 x i64>", z=z) == np.broadcast_to(z, (5, 2, 3))).all()
    assert (run("ait.concat %x, %x dim 1", "!ait.tensor<2 x 6 x 4 x i64>", x=x) == np.concatenate([x, x], 1)).all()
    lines = """%a, %b = ait.split %x dim 2 : !ait.tensor<2 x 3 x 1 x i64>, !ait.tensor<2 x 3 x 3 x i64>
    ait.output "a" %a : !ait.tensor<2 x 3 x 1 x i64>
    ait.output "b" %b : !ait.tensor<2 x 3 x 3 x i64>"""
    found = evaluate(lines, x=x)
    assert (found["a"] == x[:, :, :1]).all() and (found["b"] == x[:, :, 1:]).all()


def test_embedding() -> None:
    table, ids = RNG.standard_normal((5, 3)), np.array([[4, 0], [2, 2]])
    close(run("ait.embedding %t, %i", "!ait.tensor<2 x 2 x 3 x f64>", t=table, i=ids), table[ids])
    with pytest.raises(EvaluationError, match="ids from 0 to 5 in a table of 5 rows"):
        run("ait.embedding %t, %i", "!ait.tensor<2 x 3 x f64>", t=table, i=np.array([0, 5]))


def test_constants() -> None:
    assert run("ait.constant [1, 2, 3, 4]", "!ait.tensor<2 x 2 x i8>").tolist() == [[1, 2], [3, 4]]
    assert run("ait.constant 0.1", "!ait.tensor<2 x f16>").tolist() == [float(np.float16(0.1))] * 2
    assert run("ait.constant []", "!ait.tensor<0 x f16>").shape == (0,)
    assert run("ait.constant true", "!ait.tensor<i1>").item() is True


def test_missing_inputs_are_named() -> None:
    from ait_mlir.ir.parser import parse_text
    from ait_mlir.reference import evaluate_graph

    text = 'ait.graph @g(%x: !ait.tensor<b x f32>) dims {b = 1 to 4} {\n%w = ait.param "w" : !ait.tensor<1 x f32>\n}'
    (graph,) = parse_text(context(), text).body.block.ops
    with pytest.raises(EvaluationError, match="no value for input 'x'"):
        evaluate_graph(graph, {}, {}, {"b": 2})
    with pytest.raises(EvaluationError, match=r"input 'x' has shape \(3,\), expected \(2,\)"):
        evaluate_graph(graph, {"x": np.zeros(3)}, {}, {"b": 2})
    with pytest.raises(EvaluationError, match="no value for parameter 'w'"):
        evaluate_graph(graph, {"x": np.zeros(2)}, {}, {"b": 2})
    with pytest.raises(EvaluationError, match="b"):
        evaluate_graph(graph, {"x": np.zeros(2)}, {}, {})


def test_a_long_chain_needs_no_stack() -> None:
    count = 5_000
    lines = ["%v0 = ait.neg %x : !ait.tensor<1 x f64>"]
    lines += [f"%v{i} = ait.neg %v{i - 1} : !ait.tensor<1 x f64>" for i in range(1, count)]
    lines.append(f'ait.output "y" %v{count - 1} : !ait.tensor<1 x f64>')
    assert evaluate("\n".join(lines), x=np.array([2.0]))["y"].tolist() == [2.0]
