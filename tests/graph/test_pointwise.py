"""All pointwise modes in the float types, with broadcasting and other strides, and the modes of integers and booleans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import ait_mlir.graph as cudnn
from tests import tiers
from tests.graph.cases import Cases

F = torch.nn.functional
UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "abs": torch.abs,
    "ceil": torch.ceil,
    "cos": torch.cos,
    "elu": F.elu,
    "erf": torch.erf,
    "exp": torch.exp,
    "floor": torch.floor,
    "gelu": F.gelu,
    "gelu_approx_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "identity": lambda x: x,
    "neg": torch.neg,
    "reciprocal": torch.reciprocal,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "sin": torch.sin,
    "softplus": F.softplus,
    "swish": F.silu,
    "tan": torch.tan,
    "tanh": torch.tanh,
}
POSITIVE = {"log": torch.log, "rsqrt": torch.rsqrt, "sqrt": torch.sqrt}
BINARY: dict[str, tuple[tuple[str, str], Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "add": (("a", "b"), torch.add),
    "add_square": (("a", "b"), lambda a, b: a + b * b),
    "bias": (("input", "bias"), torch.add),
    "div": (("a", "b"), torch.div),
    "max": (("input0", "input1"), torch.maximum),
    "min": (("input0", "input1"), torch.minimum),
    "mod": (("input0", "input1"), torch.fmod),
    "mul": (("a", "b"), torch.mul),
    "scale": (("input", "scale"), torch.mul),
    "sub": (("a", "b"), torch.sub),
}
COMPARISONS = {
    "cmp_eq": torch.eq,
    "cmp_ge": torch.ge,
    "cmp_gt": torch.gt,
    "cmp_le": torch.le,
    "cmp_lt": torch.lt,
    "cmp_neq": torch.ne,
}
PARAMETERS: dict[str, tuple[str, dict[str, float], Callable[[torch.Tensor], torch.Tensor]]] = {
    "leaky_relu": ("leaky_relu", {"negative_slope": 0.1}, lambda x: F.leaky_relu(x, 0.1)),
    "relu6": ("relu", {"upper_clip": 1.5}, lambda x: x.clamp(0, 1.5)),
    "relu_from": ("relu", {"lower_clip": 0.5}, lambda x: x.clamp(min=0.5)),
    "relu_slope": (
        "relu",
        {"lower_clip": 0.5, "negative_slope": 0.25},
        lambda x: torch.where(x > 0.5, x, 0.5 + 0.25 * (x - 0.5)),
    ),
    "swish_beta": ("swish", {"swish_beta": 1.7}, lambda x: x * torch.sigmoid(1.7 * x)),
}
DTYPES = {"half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32, "double": torch.float64}
NAMES = (*UNARY, *POSITIVE, *BINARY, *COMPARISONS, *PARAMETERS, "pow", "binary_select")


@pytest.fixture(scope="module", params=tiers.params(DTYPES, ["half"]))
def cases(request: pytest.FixtureRequest, device: str) -> Cases:
    """One graph with all modes on one dtype. The second operand broadcasts; y is channels-last."""
    dtype = DTYPES[request.param]
    torch.manual_seed(1)
    c = Cases(device)
    g = c.graph
    x = torch.randn(2, 6, 3, 4).to(dtype)
    y = torch.randn(1, 6, 1, 4).to(dtype)
    z = (torch.rand(2, 6, 3, 4) + 0.5).to(dtype).to(memory_format=torch.channels_last)
    tx, ty, tz = c.input(x), c.input(y), c.input(z)
    wx, wy, wz = (t.double() for t in (x, y, z))

    def out(name: str, t: Any, expected: torch.Tensor) -> None:
        c.output(name, t, expected, torch.empty_like(expected, dtype=dtype))

    for name, f in UNARY.items():
        out(name, getattr(g, name)(input=tx, name=name), f(wx))
    for name, f in POSITIVE.items():
        out(name, getattr(g, name)(input=tz), f(wz))
    for name, (arguments, f) in BINARY.items():
        out(name, getattr(g, name)(**dict(zip(arguments, (tx, ty), strict=True))), f(wx, wy))
    for name, f in COMPARISONS.items():
        other = g.identity(tx) if name in ("cmp_eq", "cmp_neq") else ty
        expected = f(wx, wx if other is not ty else wy)
        c.output(name, getattr(g, name)(input=tx, comparison=other), expected)
    for name, (method, attributes, f) in PARAMETERS.items():
        out(name, getattr(g, method)(tx, **attributes), f(wx))
    out("pow", g.pow(tz, ty), wz.pow(wy))
    out("binary_select", g.binary_select(tx, tz, g.cmp_gt(tx, ty)), torch.where(wx > wy, wx, wz))
    return c.run()


@pytest.mark.parametrize("name", NAMES)
def test_mode(cases: Cases, name: str):
    cases.check(name)


@pytest.fixture(scope="module")
def others(device: str) -> Cases:
    """Integers, booleans, indices, and outputs of another type."""
    c = Cases(device)
    g = c.graph
    a = torch.tensor([[7, -3, 0, 5], [-8, 2, 9, -1]], dtype=torch.int32)
    b = torch.tensor([[2, 4, -3, 5]], dtype=torch.int32)
    ta, tb = c.input(a), c.input(b)
    integer = {"compute_data_type": cudnn.data_type.INT32}
    for name, f in (("add", torch.add), ("mul", torch.mul), ("sub", torch.sub)):
        c.output(f"int {name}", getattr(g, name)(a=ta, b=tb, **integer), f(a, b))
    c.output("int max", g.max(ta, tb, **integer), torch.maximum(a, b))
    c.output("int neg", g.neg(ta, **integer), -a)
    c.output("int to float", g.mul(ta, tb), (a * b).float())
    c.output("int compare", g.cmp_lt(ta, tb, **integer), a < b)
    p, q = a > 0, torch.tensor([[True, False, True, False]])
    tp, tq = c.input(p), c.input(q)
    c.output("and", g.logical_and(tp, tq), p & q)
    c.output("or", g.logical_or(tp, tq), p | q)
    c.output("not", g.logical_not(tp), ~p)
    c.output("not of numbers", g.logical_not(ta), a == 0)
    c.output("compare as float", g.cmp_gt(ta, tb), (a > b).float())
    index = torch.arange(4, dtype=torch.int32).expand(2, 4)
    c.output("index 1", g.gen_index(ta, axis=1), index.contiguous())
    c.output("index 0", g.gen_index(ta, axis=0), torch.arange(2, dtype=torch.int32)[:, None].expand(2, 4).contiguous())
    c.output("index in float", g.gen_index(ta, axis=1, compute_data_type=cudnn.data_type.FLOAT), index.float())
    c.output("cast", g.identity(c.input(a.float() / 2)), (a.float() / 2).to(torch.int64))
    bytes_ = torch.tensor([[0, 1, 200, 255], [7, 0, 128, 2]], dtype=torch.uint8)
    tu, masks = c.input(bytes_), {"compute_data_type": cudnn.data_type.UINT8}
    c.output("byte mask", g.binary_select(ta, tb, tu, **integer), torch.where(bytes_ != 0, a, b))
    c.output("byte and", g.logical_and(tu, tp), ((bytes_ != 0) & p).to(torch.uint8))
    c.output("byte not", g.logical_not(tu), (bytes_ == 0).to(torch.uint8))
    c.output("compare as bytes", g.cmp_gt(ta, tb), (a > b).to(torch.uint8))
    c.output("byte sum wraps", g.add(tu, tu, **masks), bytes_ + bytes_)
    c.output(
        "byte max",
        g.max(tu, g.tensor([1, 1], data_type="uint8", is_pass_by_value=True, name="least"), **masks),
        bytes_.clamp(min=130),
    )
    c.pack["least"] = 130
    c.output("bytes to float", g.mul(tu, ta), bytes_.float() * a)
    c.output("select by numbers", g.binary_select(ta, tb, ta, **integer), torch.where(a != 0, a, b))
    return c.run()


@pytest.mark.parametrize(
    "name",
    [
        *("int add", "int mul", "int sub", "int max", "int neg", "int to float", "int compare", "and", "or", "not"),
        *("byte mask", "byte and", "byte not", "compare as bytes", "byte sum wraps", "byte max", "bytes to float"),
        *("not of numbers", "compare as float", "index 1", "index 0", "index in float", "cast", "select by numbers"),
    ],
)
def test_other_types(others: Cases, name: str):
    others.check(name)
