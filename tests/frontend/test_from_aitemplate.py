"""Names and helpers that scripts written for AITemplate import, and what they catch."""

from __future__ import annotations

import importlib
import math
import random
import re
import sys
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
import torch

from ait_mlir.compiler import base, compile_model, dtype, ops, public, symbolic
from ait_mlir.compiler.base import IntImm, IntVar, IntVarTensor, StableSet, Tensor
from ait_mlir.compiler.model import torch_to_ait_data
from ait_mlir.compiler.ops.common.epilogue import FuncEnum
from ait_mlir.compiler.ops.paths import FAMILIES, MODULES, all_modules
from ait_mlir.errors import ArtifactError, CompileError, InputError
from ait_mlir.frontend import BuildError, Target, nn
from ait_mlir.frontend import ops as operators
from ait_mlir.testing import benchmark_torch_function, jagged_utils, test_utils
from ait_mlir.utils import alignment, graph_utils, shape_utils, tensor_utils, torch_utils
from tests.frontend.support import check, evaluate, graph_of, tensor


def test_the_page_runs(tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs/from_aitemplate.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    want = torch.relu(names["x"].float() @ names["w"].float().T)
    torch.testing.assert_close(names["y"].float(), want, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_outputs_on_the_host(target, tmp_path):
    x = Tensor(shape=[IntVar([0, 4], name="rows"), 2], dtype="float32", name="x", is_input=True)
    total = (x + x).mark_as_output("total")
    with compile_model(total, target, tmp_path, "on_host") as model:
        place = "cpu" if target == "cpu" else "cuda:0"
        data, out = torch.randn(3, 2), torch.zeros(4, 2)
        made = model._run_with_tensors_outputs_on_host({"x": data.to(place)}, {"total": out})
        assert torch.equal(made["total"], 2 * data) and torch.equal(out[:3], 2 * data) and not out[3].any()
        out.zero_()
        model._run_with_outputs_on_host([torch_to_ait_data(data.to(place))], [torch_to_ait_data(out)])
        assert torch.equal(out[:3], 2 * data)
        assert model._run_with_tensors_outputs_on_host([data[:0].to(place)], [out])["total"].shape == (0, 2)
        with pytest.raises(TypeError, match=r"no output \[\]; its outputs are total"):
            model.get_output_maximum_shape([])
        if target != "cpu":
            with pytest.raises(ValueError, match="is on cuda:0, expected a tensor in host memory"):
                model._run_with_tensors_outputs_on_host([data.to(place)], [out.to(place)])


def test_every_operator_has_its_documented_path():
    paths = all_modules()
    assert set(MODULES) <= set(paths) and set(FAMILIES) <= set(paths)
    for path, names in paths.items():
        module = importlib.import_module(f"ait_mlir.compiler.ops.{path}")
        assert all(getattr(module, name) is getattr(operators, name) for name in names), path
        assert sys.modules[f"ait_mlir.compiler.ops.{path}"] is module
    assert ops.softmax is operators.softmax  # the operator, not the family of its name
    assert public.gemm_rcr is operators.gemm_rcr and public.DynamicProfileStrategy.MAX.name == "MAX"


def test_functions_have_plain_names():
    x = tensor("x", "batch", 4)
    check(lambda x: ops.tanh(ops.abs(x)), lambda x: torch.tanh(abs(x)), x)
    check(lambda x: ops.max(x, 0.5), lambda x: x.clamp(min=0.5), x)
    check(lambda x: ops.leaky_relu(x, 0.3), lambda x: torch.nn.functional.leaky_relu(x, 0.3), x)
    missing = [name for name in MODULES["common.math"].split() if not hasattr(ops, name)]
    assert not missing


def number(value: float, name: str | None = None, dtype: str = "float16") -> Tensor:
    return Tensor(shape=[], value=value, name=name, dtype=dtype, is_input=True)


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
    used = {name for t in graph_utils.get_sorted_ops(base_graph(y)) for name in (i.name for i in t.inputs)}
    (got,) = evaluate(y, {name: data for name, data in given.items() if name in used}, batch=3)
    np.testing.assert_allclose(got, want(torch.from_numpy(rng)).numpy(), rtol=1e-9)


def base_graph(output: Tensor) -> list[Tensor]:
    from ait_mlir.frontend.wiring import toposort

    return toposort(output)


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
    with pytest.raises(BuildError, match="element type f16, but"):
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


def test_alignments_and_dims():
    assert [alignment.get_alignments(d) for d in ("float16", "float32", "int64")] == [[8, 4, 2, 1], [4, 2, 1], [2, 1]]
    assert [alignment.find_max_alignment(n, "bfloat16") for n in (0, 24, 12, 6, 7)] == [8, 8, 4, 2, 1]
    assert alignment.find_max_alignment_from([24, 12], "float16") == 4
    assert alignment.valid_alignment(8, "float16") and not alignment.valid_alignment(8, "float32")
    with pytest.raises(ValueError, match="no tensor of a model has the dtype float8"):
        alignment.get_alignments("float8")
    assert [tensor_utils.wrap_dim(i, 3) for i in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    for i in (-4, 3):
        with pytest.raises(ValueError, match=f"dim {i} of a tensor of rank 3, expected -3 to 2"):
            tensor_utils.wrap_dim(i, 3)
    from ait_mlir.frontend import nn, parameter

    assert parameter.Parameter is nn.Parameter


def test_dtypes_by_name():
    assert [base.get_dtype_size(d) for d in ("float16", "float", "int64", "bool", "bfloat16")] == [2, 4, 8, 1, 2]
    assert [dtype.dtype_str_to_enum(d) for d in ("float16", "float", "int", "int64", "bool", "bfloat16")] == [
        1, 2, 3, 4, 5, 6,
    ]  # fmt: skip
    assert dtype.dtype_to_enumerator("bfloat16") == "kBFloat16" and base.normalize_dtype("int") == "int32"
    for function in (dtype.dtype_str_to_enum, dtype.dtype_to_enumerator, base.get_dtype_size):
        with pytest.raises(ValueError, match=r"float7|float64"):
            function("float7" if function is base.get_dtype_size else "float64")
    assert torch_utils.string_to_torch_dtype("float16") is torch.float16
    assert torch_utils.torch_dtype_to_string(torch.bool) == "bool"
    assert torch_utils.string_to_torch_dtype(None) is None
    with pytest.raises(ValueError, match="complex64"):
        torch_utils.torch_dtype_to_string(torch.complex64)
    with pytest.raises(ValueError, match='"half"'):
        torch_utils.string_to_torch_dtype("half")


def test_hints_of_expand_change_nothing():
    x = tensor("x", 1, 3)
    assert ops.expand()(x, [2, -1], index_type="int32", optimize_fixed_dims=False).shape() == [2, 3]


def test_modules_by_name():
    blocks = nn.ModuleDict({"a": nn.Linear(4, 4)})
    blocks["b"] = nn.Identity()
    assert (list(blocks), len(blocks), "b" in blocks, list(blocks.keys())) == (["a", "b"], 2, True, ["a", "b"])
    assert blocks["a"] in blocks.values() and dict(blocks.items())["b"] is blocks["b"]
    layers = nn.Sequential({"first": blocks["a"]}, nn.Linear(4, 2, bias=False))
    layers.append(nn.Identity())
    assert [name for name, _ in layers.named_parameters()] == ["first.weight", "first.bias", "1.weight"]
    assert [name for name, _ in layers.children()] == ["first", "1", "2"]
    assert [name for name, _ in nn.Sequential(blocks).named_parameters()] == ["0.a.weight", "0.a.bias"]


def test_levels_of_jagged_dims_know_their_offsets():
    level = base.JaggedDim(0, 2)
    assert level.offsets() is None and level._attrs["values"] == [0, 2]
    rows = Tensor(shape=[IntVar([1, 64]), 4], dtype="float32", name="rows", is_input=True)
    offsets = Tensor(shape=[IntVar([1, 16])], dtype="int32", name="offsets", is_input=True)
    jagged = ops.make_jagged(IntVar([1, 128]), [level])(rows, [offsets])
    assert level.offsets() is offsets and jagged.shape()[0].jagged_dims() == [level]
    graph = graph_of(jagged * 2.0)  # the number of offsets is one more than the batch
    assert [name for name, _ in graph.inputs()] == ["rows", "offsets"]


def test_sizes_and_zeros():
    x = Tensor(shape=[IntVar([1, 5]), 3], dtype="float32", name="x")
    assert (x._rank(), x._size(-1)) == (2, 3)
    with pytest.raises(ValueError, match="dim 2 is out of range"):
        x._size(2)
    assert (x.size_bytes(), x.size_bytes(64), base.get_aligned_size([3, IntImm(2)], "float16")) == (60, 64, 64)
    zeros = base._create_host_zero_tensor([2, 3], "zeros", dtype="float32")
    assert zeros._attrs["is_internal_constant"] and zeros.data is not None and not zeros.data.any()


def test_shape_helpers():
    gen = shape_utils.gen_int_var_min_max
    batch = gen([8, 1, 4], name="batch")
    assert (batch.value(), gen([3, 3]).value(), shape_utils.gen_int_var([1, 4, 8]).value()) == ([1, 8], 3, [1, 8])
    with pytest.raises(RuntimeError, match="empty list"):
        gen([])
    shape = [IntImm(2), batch, IntImm(4), IntImm(3)]
    assert [shape_utils.get_num_rightmost_static_elements(shape, n) for n in (None, 1, 0, 9)] == [12, 3, 1, 12]
    assert shape_utils.all_static_dimensions(shape, 2) and not shape_utils.all_static_dimensions(shape)
    assert shape_utils.is_static_dimension(shape, 0) and not shape_utils.is_static_dimension(shape, 4)
    broadcast = shape_utils.get_broadcast_max_shape
    assert broadcast([IntImm(5), IntImm(1), IntImm(3)], [IntImm(4), IntImm(1)]) == (True, [5, 4, 3])
    assert broadcast([batch], [IntImm(3)]) == (False, None)
    assert shape_utils.convert_shape_to_IntVar([1, batch, IntVarTensor(batch)]) == [1, batch, batch]
    assert shape_utils.convert_IntVar_to_int(IntVarTensor(IntImm(3))) == 3
    with pytest.raises(ValueError, match="the dim batch is dynamic"):
        shape_utils.convert_IntVar_to_int(batch)
    assert shape_utils.is_singleton_dimension(1) and not shape_utils.is_singleton_dimension(batch)
    assert shape_utils.is_same_shape([batch, IntImm(1)], [batch, 1]) and not shape_utils.is_same_shape([batch], [])


def test_graphs_as_lists_and_text():
    x = tensor("x", 4)
    y = ops.tanh(x) + x
    graph = base_graph(y)
    assert [op._attrs["op"] for op in graph_utils.get_sorted_ops(graph)] == ["elementwise", "elementwise"]
    assert graph_utils.get_sorted_ops(y) == list(y.src_ops())
    assert graph_utils.sorted_graph_pseudo_code(graph).splitlines() == [
        '([4] float64) = elementwise(TANH)("x" [4] float64)',
        '([4] float64) = elementwise(ADD)([4] float64, "x" [4] float64)',
    ]
    assert (
        graph_utils.sorted_op_pseudo_code(graph_utils.get_sorted_ops(y), False) == "(None) = elementwise(ADD)(None, x)"
    )
    assert 'Tensor(input "x" [4] float64)' in graph_utils.sorted_graph_debug_str(y.src_ops().copy().pop().inputs[1])
    assert test_utils.graph_has_op(graph, "elementwise") and not test_utils.has_op([], "elementwise")
    assert test_utils.count_ops(graph_utils.get_sorted_ops(graph), "elementwise") == 2
    assert test_utils.get_src_op_name(y) == "elementwise" and test_utils.get_src_input(test_utils.get_src_input(y)) is x
    assert test_utils.get_shape([IntVar([1, 4], name="n"), IntImm(2)], {"n": 3}) == [3, 2]


def test_symbols_of_dims():
    one = symbolic.create_new_symbol("test_one", [2, 32])
    assert one == symbolic.create_new_symbol("test_one", [2, 32], check_duplicate=True) and one.is_positive
    with pytest.raises(ValueError, match=r"has the values \(2, 32\) already"):
        symbolic.create_new_symbol("test_one", [1, 256], check_duplicate=True)
    assert not symbolic.create_new_symbol("test_two").is_positive
    x = sympy.Symbol("x")
    assert [symbolic.is_integer(v) for v in (3, 2 * x / x, 3.5, "a", True, x, 1.5 * x / x, 1.5 * x / x * 2)] == [
        True, True, False, False, False, False, False, True,
    ]  # fmt: skip
    assert symbolic.is_symbolic(x) and not symbolic.is_symbolic(3)
    assert symbolic.simplify_intvar_values(x + x - x) == x


@pytest.mark.parametrize("error", [BuildError, CompileError, InputError, ArtifactError])
def test_mistakes_are_runtime_errors(error):
    assert issubclass(error, RuntimeError)
    assert error in (CompileError, ArtifactError) or issubclass(error, ValueError)


def test_an_argument_of_another_type_is_a_type_error():
    with pytest.raises(TypeError, match="must be a Tensor"):
        ops.softmax()("x", 1)


def test_cases_by_what_a_target_runs():
    env = test_utils.TestEnv
    assert test_utils.runnable(Target("cuda", "sm_75")) == {env.CUDA_LESS_THAN_SM80}
    assert test_utils.runnable(Target("cuda", "sm_80")) == {env.CUDA_LESS_THAN_SM80, env.CUDA_SM80}
    assert test_utils.runnable(Target("cuda", "sm_90a")) == test_utils.runnable(Target("cpu")) == set(env) - {env.ROCM}
    assert test_utils.runnable(Target("rocm", "gfx90a")) == {env.ROCM}
    assert Target("cuda", "sm_90a")._arch == Target("cpu")._arch == "90" and not Target("cpu").in_ci_env()
    cases = test_utils.filter_test_cases_by_params({env.ROCM: [1]})
    assert cases["skip_on_empty"] and cases["input"] == ([1] if test_utils.detect_target().kind == "rocm" else [])

    names = ("test_all", "test_rocm", "test_more_sm90")
    Case = type("Case", (unittest.TestCase,), dict.fromkeys(names, lambda self: None))
    test_utils.filter_test_cases_by_test_env(Case)
    if test_utils.detect_target().kind == "cpu":
        assert [name for name in vars(Case) if name.startswith("test")] == ["test_all", "test_more_sm90"]


def test_hints_of_targets_are_kept():
    found = test_utils.detect_target(use_fp16_acc=True, layernorm_use_welford_algorithm=True)
    assert found._kwargs == {"use_fp16_acc": True, "layernorm_use_welford_algorithm": True}


def test_tensors_and_environment_of_a_test(monkeypatch):
    monkeypatch.setenv("KEPT", "old")
    monkeypatch.delenv("MADE", raising=False)
    import os

    with test_utils.env_variables(KEPT=None, MADE=3):
        assert "KEPT" not in os.environ and os.environ["MADE"] == "3"
    assert os.environ["KEPT"] == "old" and "MADE" not in os.environ
    x = test_utils.get_random_torch_tensor([2, 3], "float")
    assert x.dtype is torch.float32 and x.shape == (2, 3)
    assert test_utils.get_random_torch_tensor([5], "bool").dtype is torch.bool
    assert test_utils.get_torch_full_tensor([2], 7, "int").tolist() == [7, 7]
    assert test_utils.get_torch_zeros_tensor([2]).dtype is test_utils.get_torch_empty_tensor([2]).dtype is torch.float16
    assert test_utils.current_test_id().isidentifier()
    assert test_utils.gen_input_tensor([1, 2], name="x").is_input
    assert benchmark_torch_function(2, torch.add, x, x) > 0
    layer = torch.nn.Linear(2, 2)
    layer.apply(test_utils.init_random_weights)
    assert layer.weight.min() >= 0
    assert test_utils.epilogue_math_name_to_torch_fn("ReLu")(-x.abs()).max() == 0
    causal = ops.CausalType
    masks = [test_utils.get_attn_mask_per_causal_type(2, 2, kind, torch.float32).tolist() for kind in causal]
    assert [[1, 1], [1, 1]] in masks and [[1, 0], [1, 1]] in masks
    with pytest.raises(NotImplementedError, match="Other"):
        test_utils.epilogue_math_name_to_torch_fn("Other")


def test_jagged_tensors_of_pytorch():
    offsets = [torch.tensor([0, 1, 3]), torch.tensor([0, 2, 2, 5])]
    rows = torch.arange(1.0, 6).reshape(5, 1)
    dense = jagged_utils.jagged_to_dense(rows, offsets, [2, 2, 3, 1], -1.0)
    want = [[[1, 2, -1], [-1, -1, -1]], [[-1, -1, -1], [3, 4, 5]]]
    assert dense.squeeze(-1).tolist() == want
    assert torch.equal(jagged_utils.dense_to_jagged(dense, offsets), rows)
    assert jagged_utils.dense_to_jagged(dense[:, :, :2], offsets, 9.0).flatten().tolist() == [1, 2, 3, 4, 9]
    vectors = torch.arange(6.0).reshape(2, 1, 3)
    summed = jagged_utils.add_jagged_dense_ref(rows, [offsets[1]], torch.ones(3, 3, 1))
    assert torch.equal(summed, rows + 1)
    product = jagged_utils.batched_dense_vec_jagged_2d_mul_ref(vectors, rows[:5, None], torch.tensor([0, 2, 5]))
    assert product.flatten().tolist() == [0 * 1 + 1 * 2, 3 * 3 + 4 * 4 + 5 * 5]
    for bad, message in (
        ([2, 2, 3, 2], "do not fit"), ([2, 1, 3, 1], "longer than the shape"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            jagged_utils.jagged_to_dense(rows, offsets, bad)
    with pytest.raises(ValueError, match="level 1 has 4 offsets, expected 3"):
        jagged_utils.dense_to_jagged(dense, [torch.tensor([0, 1, 2]), offsets[1]])
    with pytest.raises(ValueError, match="rise from 0"):
        jagged_utils.dense_to_jagged(dense, [torch.tensor([0, 3, 1])])
    with pytest.raises(ValueError, match="end at 5"):
        jagged_utils.jagged_to_dense(rows[:4], offsets, [2, 2, 3, 1])
    random.seed(0)
    made = jagged_utils.generate_offsets(4, 10, 0.5, "int32")
    lengths = made.diff().tolist()
    assert made.dtype is torch.int32 and all(4 <= n <= 6 for n in lengths)
    assert jagged_utils.generate_offsets(2, 10, 1.0, "int64").tolist() == [0, 10, 20]
    with pytest.raises(ValueError, match="load_factor"):
        jagged_utils.generate_offsets(2, 10, 1.5, "int64")


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
