"""Names, modules and helpers that scripts written for AITemplate import."""

from __future__ import annotations

import importlib
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
from ait_mlir.compiler.base import IntImm, IntVar, IntVarTensor, Tensor
from ait_mlir.compiler.model import torch_to_ait_data
from ait_mlir.compiler.ops.paths import FAMILIES, MODULES, all_modules
from ait_mlir.compiler.transform import paths as transformations
from ait_mlir.errors import ArtifactError, CompileError, InputError
from ait_mlir.frontend import BuildError, Target, nn
from ait_mlir.frontend import ops as operators
from ait_mlir.frontend.wiring import toposort
from ait_mlir.testing import benchmark_torch_function, jagged_utils, test_utils
from ait_mlir.utils import alignment, graph_utils, shape_utils, tensor_utils, torch_utils
from tests.frontend.support import evaluate, graph_of, tensor


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


def test_every_transformation_has_its_documented_path():
    for path, transformation in transformations.PATHS.items():
        module = importlib.import_module(f"ait_mlir.compiler.transform.{path}")
        assert getattr(module, transformation.__name__) is transformation
        assert sys.modules[f"ait_mlir.compiler.transform.{path}"] is module


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


def test_zeros_of_an_operator_are_no_weight_of_the_model(tmp_path: Path):
    zeros = base._create_host_zero_tensor([2, 3], "zeros", dtype="float32")
    own = base._create_host_zero_tensor([2, 3], "own", dtype="float32", is_internal_constant=False)
    weight = Tensor(shape=[2, 3], dtype="float32", name="w")
    graph = graph_of(ops.concatenate()([weight, zeros, own]))
    assert sorted(op.param_name.data for op in graph.params()) == ["own", "w"]
    with pytest.raises(ValueError, match="Tensor zeros is already bound!"):
        compile_model(weight + zeros, Target("cpu"), tmp_path, "m", constants={"zeros": np.ones((2, 3), np.float32)})
    x = tensor("x", 1, 3)
    y = ops.concatenate()([x, base._create_host_zero_tensor([1, 3], dtype=x.dtype())])
    np.testing.assert_array_equal(evaluate(y, {"x": np.ones((1, 3))})[0], [[1, 1, 1], [0, 0, 0]])


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
    graph = toposort(y)
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


def test_one_number_is_a_shape_of_one_dim():
    assert (
        test_utils.get_random_torch_tensor(8).shape == (8,)
        and test_utils.get_random_torch_tensor(8, "bool").dtype == torch.bool
    )
    for made in (
        test_utils.get_torch_empty_tensor(8),
        test_utils.get_torch_zeros_tensor(8),
        test_utils.get_torch_full_tensor(8, 1.0),
    ):
        assert made.shape == (8,)


def test_targets_measure_as_they_are(monkeypatch):
    target = Target("cpu")
    assert not target.use_dummy_profiling_results() and not target.force_profile()
    monkeypatch.setenv("FORCE_PROFILE", "1")
    assert not target.use_dummy_profiling_results() and target.force_profile()
