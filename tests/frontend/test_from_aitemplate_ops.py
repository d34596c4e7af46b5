"""What operators take from scripts written for AITemplate, and the mistakes that they catch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ait_mlir.compiler import compile_model, ops
from ait_mlir.compiler.base import IntImm, IntVar, IntVarTensor, StableSet, Tensor
from ait_mlir.compiler.ops.common.epilogue import FuncEnum
from ait_mlir.compiler.ops.paths import MODULES
from ait_mlir.frontend import BuildError, JaggedDim, build_module
from ait_mlir.frontend.wiring import toposort
from ait_mlir.utils import graph_utils
from tests.frontend.support import check, evaluate, tensor


def test_functions_have_plain_names():
    x = tensor("x", "batch", 4)
    check(lambda x: ops.tanh(ops.abs(x)), lambda x: torch.tanh(abs(x)), x)
    check(lambda x: ops.max(x, 0.5), lambda x: x.clamp(min=0.5), x)
    check(lambda x: ops.leaky_relu(x, 0.3), lambda x: torch.nn.functional.leaky_relu(x, 0.3), x)
    missing = [name for name in MODULES["common.math"].split() if not hasattr(ops, name)]
    assert not missing


def number(value: float, name: str | None = None, dtype: str = "float16") -> Tensor:
    return Tensor(shape=[], value=value, name=name, dtype=dtype, is_input=True)


def test_an_empty_tensor_of_one_dim_joins_any():
    x, y = tensor("x", "batch", 4), tensor("y", "batch", 3)
    empty = Tensor(shape=[0], dtype="float64", name="e", is_input=True)
    joined = ops.concatenate()([empty, x, y, empty], dim=1)
    assert joined.shape()[1] == 7
    rng = np.random.default_rng(0)
    given = {"x": rng.standard_normal((2, 4)), "y": rng.standard_normal((2, 3))}
    (got,) = evaluate(joined, {**given, "e": np.ones(0)}, batch=2)
    np.testing.assert_array_equal(got, np.concatenate([given["x"], given["y"]], 1))
    assert ops.concatenate()([empty, empty]).shape() == [0]
    with pytest.raises(BuildError, match="concatenate"):
        ops.concatenate()([Tensor(shape=[1], dtype="float64", name="o", is_input=True), x], dim=1)


PARAMETERS = {
    FuncEnum.LRELU: ([0.3], torch.nn.LeakyReLU(0.3)),
    FuncEnum.ELU: ([0.7], torch.nn.ELU(0.7)),
    FuncEnum.CELU: ([0.7], torch.nn.CELU(0.7)),
    FuncEnum.HARDTANH: ([-0.5, 0.25], torch.nn.Hardtanh(-0.5, 0.25)),
    FuncEnum.SOFTPLUS: ([2.0, 0.5], torch.nn.Softplus(2.0, 0.5)),
    FuncEnum.NAN_TO_NUM: ([0.0, 1.0, -1.0], lambda x: torch.nan_to_num(x, 0.0, 1.0, -1.0)),
}


@pytest.mark.parametrize("func", PARAMETERS, ids=lambda f: f.name)
@pytest.mark.parametrize("kind", ["constant", "input"])
def test_parameters_are_constants_or_tensors(func, kind):
    values, want = PARAMETERS[func]
    x = tensor("x", "batch", 4)
    rng = np.random.default_rng(0).standard_normal((3, 4))
    given = {"x": rng}
    if kind == "constant":
        parameters = [number(value, f"p{i}") for i, value in enumerate(values)]
    else:
        parameters = [Tensor(shape=[1], dtype="float64", name=f"p{i}", is_input=True) for i, _ in enumerate(values)]
        given |= {f"p{i}": np.array([value]) for i, value in enumerate(values)}
    y = ops.elementwise(func)(x, *parameters)
    used = {name for t in graph_utils.get_sorted_ops(toposort(y)) for name in (i.name for i in t.inputs)}
    (got,) = evaluate(y, {name: data for name, data in given.items() if name in used}, batch=3)
    np.testing.assert_allclose(got, want(torch.from_numpy(rng)).numpy(), rtol=1e-9)


def test_a_constant_takes_the_dtype_of_the_others():
    x = tensor("x", 4)
    y = ops.elementwise(FuncEnum.ADD)(number(1.5), x)
    assert y.dtype() == "float64" and ops.elementwise(FuncEnum.ADD)(1, 2.5).dtype() == "float16"
    assert ops.gt()(x, number(0.0)).dtype() == "bool" and ops.where()(ops.gt()(x, 0), x, number(0)).dtype() == "float64"
    (add,) = y._attrs["src_ops"]
    assert add._attrs["inputs"] == [x] and [t.is_a_const_num() for t in add._attrs["args"]] == [True, False]
    mul = ops.elementwise(FuncEnum.MUL)(x, IntVarTensor(IntImm(3)))
    np.testing.assert_array_equal(evaluate(mul, {"x": np.arange(4.0)})[0], 3 * np.arange(4.0))


def test_bool_counts_as_0_and_1():
    x, flag = tensor("x", 4), Tensor(shape=[4], dtype="bool", name="flag", is_input=True)
    data = {"x": np.arange(4.0), "flag": np.array([True, False, True, False])}
    assert evaluate(x * flag, data)[0].tolist() == [0, 0, 2, 0]
    assert evaluate(flag - x, data)[0].tolist() == [1, -1, -1, -3]
    assert evaluate(ops.where()(ops.lt()(flag, x), x, flag), data)[0].tolist() == [1, 1, 2, 3]
    assert (flag * flag).dtype() == "bool"
    with pytest.raises(BuildError, match=r"found float16 and float64; ops\.cast converts"):
        x + Tensor(shape=[4], dtype="float16", name="half", is_input=True)


def test_bounds_of_clamp_are_numbers_or_tensors():
    x, low = tensor("x", 4), Tensor(shape=[1], dtype="float64", name="low", is_input=True)
    data = {"x": np.arange(4.0), "low": np.array([1.5])}
    assert evaluate(ops.clamp()(x, low, number(2.0)), data)[0].tolist() == [1.5, 1.5, 2, 2]
    assert evaluate(ops.clamp()(x, None, low), data)[0].tolist() == [0, 1, 1.5, 1.5]


def test_each_number_is_replaced_once():
    x = tensor("x", 4)
    data = np.array([np.nan, np.inf, -np.inf, 1.0])
    found = ops.elementwise(FuncEnum.NAN_TO_NUM)(x, number(math.inf), number(-math.inf), number(2.0))
    assert evaluate(found, {"x": data})[0].tolist() == [math.inf, -math.inf, 2.0, 1.0]


def test_dims_as_values_in_elementwise():
    a, b = IntVar([1, 256], name="a"), IntVar([1, 256], name="b")
    left, right = a.symbolic_value(), b.symbolic_value()
    for func, want in (
        (FuncEnum.ADD, left + right), (FuncEnum.SUB, left - right),
        (FuncEnum.MUL, left * right), (FuncEnum.DIV, left / right),
    ):  # fmt: skip
        found = ops.elementwise(func)(IntVarTensor(a), IntVarTensor(b))
        assert isinstance(found, IntVarTensor) and found._attrs["symbolic_value"] == want


def test_fused_elementwise_takes_the_place_of_its_operators():
    x = tensor("x", 8)
    add, tanh = ops.elementwise(FuncEnum.ADD), ops.elementwise(FuncEnum.TANH)
    y = tanh(add(x, number(3.0)))
    fused = ops.fused_elementwise([add, tanh], [x], [y])
    assert (fused._attrs["inputs"], fused._attrs["outputs"]) == ([x], [y])
    assert y.src_ops() == StableSet({fused}) and x.dst_ops() == {fused}
    assert (fused._attrs["depth"], x._attrs["depth"], y._attrs["depth"]) == (0, 0, 2)
    assert fused._attrs["elementwise_ops"] == [add, tanh]
    data = np.arange(8.0)
    z = y * 1.0
    np.testing.assert_allclose(evaluate(z, {"x": data})[0], np.tanh(data + 3))
    other = tensor("other", 8)
    fused.replace_input_tensor(x, other)
    np.testing.assert_allclose(evaluate(z, {"other": -data})[0], np.tanh(3 - data))


def test_hints_of_expand_change_nothing():
    x = tensor("x", 1, 3)
    assert ops.expand()(x, [2, -1], index_type="int32", optimize_fixed_dims=False).shape() == [2, 3]
    assert ops.expand()(x, [2, -1], optimize_fixed_dims="int32").shape() == [2, 3]


def test_an_argument_of_another_type_is_a_type_error():
    with pytest.raises(TypeError, match="must be a Tensor"):
        ops.softmax()("x", 1)


def test_shapes_may_have_a_constant_of_minus_1():
    x = tensor("x", "batch", 6)
    free = IntImm(-1)
    assert ops.reshape()(x, [free, IntImm(3)]).shape() == ops.reshape()(x, [-1, 3]).shape()
    assert ops.expand()(x, [IntImm(2), free, free]).shape() == [2, *x.shape()]
    assert ops.reshape()._infer_shape([4, 6], [-1, 3]) == [8, 3]
    with pytest.raises(BuildError, match="-1"):
        Tensor(shape=[free], name="y", is_input=True)
    with pytest.raises(BuildError, match="at least 0"):
        IntImm(-2)


def test_a_number_behind_the_operands_of_group_norm_is_eps():
    x, scale = tensor("x", "batch", 6), tensor("scale", 6)
    for op, function in ((ops.group_norm, lambda y: y), (ops.group_norm_swish, torch.nn.functional.silu)):
        check(
            lambda x, g, op=op: op(3, 6)(x, g, g, 0.5),
            lambda x, g, f=function: f(torch.nn.functional.group_norm(x, 3, g, g, 0.5)),
            x, scale,
        )  # fmt: skip


@pytest.mark.parametrize(
    "shapes", [((4, 3), (1, 3)), ((4, 1), (2, 1, 3)), ((4, 2, 4), (4,)), ((4,), (2, 4)), (("batch", 3), (3,))]
)
def test_masked_select_broadcasts(shapes, tmp_path):
    x, mask = (
        Tensor(shape=tensor("s", *shape).shape(), dtype=dtype, name=name, is_input=True)
        for shape, dtype, name in zip(shapes, ("float32", "bool"), ("x", "mask"), strict=True)
    )
    y = ops.masked_select()(x, mask).mark_as_output("y")
    sizes = [[5 if dim == "batch" else dim for dim in shape] for shape in shapes]
    data, chosen = torch.randn(sizes[0]), torch.randn(sizes[1]) > 0
    want = torch.masked_select(data, chosen)
    room = torch.empty(torch.broadcast_shapes(*map(torch.Size, sizes)).numel())
    with compile_model(y, "cpu", tmp_path, "selected") as model:
        assert torch.equal(model.run_with_tensors([data, chosen], [room])["y"], want)


def test_masked_select_refuses_shapes_that_do_not_broadcast():
    with pytest.raises(BuildError, match="masked_select"):
        ops.masked_select()(tensor("x", 4, 3), Tensor(shape=[4], dtype="bool", name="m", is_input=True))


@pytest.mark.parametrize("sizes, dim", [((7, 1, 4), 0), ((0, 1, 2), 2), ((3, 4, 7), 2), ((1, 4, 1), 1)])
def test_gather_has_the_shape_of_its_index(sizes, dim):
    x, index = tensor("x", 3, 4, 5), Tensor(shape=list(sizes), dtype="int64", name="index", is_input=True)
    y = ops.gather()(x, dim, index)
    assert y.shape() == list(sizes)
    data = torch.randn(3, 4, 5, dtype=torch.float64)
    places = torch.randint(data.shape[dim], sizes)
    (got,) = evaluate(y, {"x": data.numpy(), "index": places.numpy()})
    np.testing.assert_array_equal(got, torch.gather(data, dim, places).numpy())


def test_pieces_of_a_split_can_be_removed():
    x = tensor("x", 8, 2)
    op = ops.split()
    parts = op(x, [2, 3, 3])
    op.remove_output_at([1])
    assert op._attrs["outputs"] == [parts[0], parts[2]] and op._attrs["output_masks"] == [True, False, True]
    data = np.arange(16.0).reshape(8, 2)
    got = evaluate([parts[0] * 1.0, parts[2] * 1.0], {"x": data})
    np.testing.assert_array_equal(np.concatenate(got), np.delete(data, [2, 3, 4], 0))
    with pytest.raises(BuildError, match="output 0 is read"):
        op.remove_output_at(0)
    with pytest.raises(BuildError, match="no output 2; there are 2"):
        op.remove_output_at([2])
    assert [part.shape() for part in ops.split()(tensor("empty", 2, 0), 0, 1)] == [[2, 0]]


def test_mistakes_that_aitemplate_asserts():
    x, flag = tensor("x", 4), Tensor(shape=[4], dtype="bool", name="flag", is_input=True)
    half = Tensor(shape=[4], dtype="float16", name="half", is_input=True)
    for call, message in (
        (lambda: ops.where()(x, x, x), "condition needs to be a bool tensor"),
        (lambda: ops.where()(1, x, x), "condition needs to be a tensor"),
        (lambda: ops.where()(flag, 1, 2), "dtype needs to be provided for scalars"),
        (lambda: ops.where()(flag, x, half), "Expect tensor of the same dtype"),
        (lambda: ops.ge()(x, half), "Type promotions are not supported"),
    ):
        with pytest.raises(AssertionError, match=message):
            call()


def test_full_takes_one_dim():
    batch = IntVar([1, 8], name="batch")
    assert ops.full()(3, 1.5).shape() == [3] and ops.full()(batch, 0).shape() == [batch]


def test_products_say_their_factor_and_further_operands():
    a, b, bias, d = tensor("a", 4, 8), tensor("b", 6, 8), tensor("c", 6), tensor("d", 4, 6)
    for name, extras, count in (
        ("gemm_rcr", (), 0),
        ("gemm_rcr_bias", (bias,), 0),
        ("gemm_rcr_bias_mul_add", (bias, d, d), 2),
    ):
        operator = getattr(ops, name)()
        y = operator(a, b, *extras)
        assert (operator._attrs["alpha"], operator._attrs["num_sources"]) == (1.0, count)
        assert [accessor.tensor for accessor in operator._attrs["input_accessors"]] == [a, b, *extras]
        (made,) = operator._attrs["output_accessors"]
        assert (made.tensor, made.offset, made.strides, made.whole) == (y, "0", ("6", "1"), True)
    n1 = ops.bmm_rcr_n1()
    n1(tensor("x", 2, 4, 8), tensor("z", 2, 1, 8), alpha=0.5)
    assert n1._attrs["alpha"] == 0.5


def test_masked_inputs_of_a_concatenation_are_zeros():
    x, y, z = (tensor(name, "batch", size) for name, size in (("x", 4), ("y", 3), ("z", 2)))
    concatenate = ops.concatenate()
    joined = concatenate([x, y, z], dim=-1)
    assert concatenate._attrs["input_masks"] == [True, True, True] and concatenate._attrs["concat_dim"] == 1
    concatenate._attrs["input_masks"] = [True, False, True]
    concatenate._attrs["inputs"] = [x, z]
    rng = np.random.default_rng(0)
    given = {"x": rng.standard_normal((2, 4)), "z": rng.standard_normal((2, 2))}
    (got,) = evaluate(joined, given, batch=2)
    np.testing.assert_array_equal(got, np.concatenate([given["x"], np.zeros((2, 3)), given["z"]], 1))
    concatenate._attrs["inputs"] = [x]
    with pytest.raises(BuildError, match="was called with 3 inputs and has 1 now"):
        evaluate(joined, given, batch=2)


def test_an_empty_tensor_that_adds_nothing_is_an_input_all_the_same():
    """A run is given the inputs that operators name, also those of which no value depends."""
    x, y, z = tensor("x", 0), tensor("y", 3), tensor("z", 0)
    graph = build_module(ops.relu(ops.concatenate()([x, y, z])))
    (model,) = graph.ops
    assert [name for name, _ in model.inputs()] == ["x", "y", "z"]
    (got,) = evaluate(ops.concatenate()([x, y, z]), {"x": np.ones(0), "y": np.arange(3.0), "z": np.ones(0)})
    np.testing.assert_array_equal(got, np.arange(3.0))


def test_masked_inputs_of_concatenate_tanh_are_zeros():
    """The inputs are those of the call, not their tanh."""
    x, y, z = (tensor(name, "batch", size) for name, size in (("x", 4), ("y", 3), ("z", 2)))
    concatenate = ops.concatenate_tanh()
    joined = concatenate([x, y, z], dim=-1)
    assert concatenate._attrs["inputs"] == concatenate._attrs["original_inputs"] == [x, y, z]
    assert [accessor.tensor for accessor in concatenate._attrs["input_accessors"]] == [x, y, z]
    concatenate._attrs["input_masks"] = [False, True, False]
    concatenate._attrs["inputs"] = [y]
    given = {"y": np.random.default_rng(0).standard_normal((2, 3))}
    (got,) = evaluate(joined, given, batch=2)
    np.testing.assert_allclose(got, np.concatenate([np.zeros((2, 4)), np.tanh(given["y"]), np.zeros((2, 2))], 1))


def test_operators_have_names_once_a_model_is_compiled(tmp_path):
    x = tensor("x", "batch", 8)
    y = ops.softmax()(ops.tanh(x), 1)
    (softmax,) = y.src_ops()
    assert softmax._attrs["name"] is None
    with compile_model(y.mark_as_output("y"), "cpu", tmp_path, "named"):
        assert [op._attrs["name"] for op in graph_utils.get_sorted_ops(toposort(y))] == ["elementwise_0", "softmax_1"]


def test_rows_of_sequences_meet_as_many_dense_rows():
    batch, total = IntVar([1, 4], name="batch"), IntVar([0, 12], name="total")
    rows, dense = (Tensor(shape=[total, 2], dtype="float64", name=name, is_input=True) for name in ("rows", "dense"))
    offsets = Tensor(shape=[batch + 1], dtype="int32", name="offsets", is_input=True)
    words = ops.make_jagged(batch, [JaggedDim(0, 3)])(rows, [offsets])
    (make,) = words.src_ops()
    assert make._attrs["num_sources"] == 1
    rng = np.random.default_rng(0)
    given = {
        "rows": rng.standard_normal((5, 2)),
        "dense": rng.standard_normal((5, 2)),
        "offsets": np.int32([0, 2, 2, 5]),
    }
    for built, want in (
        (words + dense, given["rows"] + given["dense"]),
        (dense - words, given["dense"] - given["rows"]),
    ):
        assert built.is_jagged()
        (got,) = evaluate(built, given, batch=3, total=5)
        np.testing.assert_array_equal(got, want)
    with pytest.raises(BuildError, match="others is not 3"):
        words + Tensor(shape=[IntVar([0, 12], name="others"), 2], dtype="float64", name="others", is_input=True)
