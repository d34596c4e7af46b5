"""What `compile_model` checks before it compiles, and the documented import paths."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest
import torch

from ait_mlir.compiler.base import _NumpyConstantTensorData
from ait_mlir.errors import RunError
from ait_mlir.frontend import BuildError, IntVar, Target, Tensor, build_module, compile_model, detect_target, ops
from ait_mlir.frontend.compile import as_array, bind_constants
from ait_mlir.frontend.graph import bound_data
from ait_mlir.frontend.target import as_target
from ait_mlir.frontend.wiring import toposort
from ait_mlir.runtime import AITData, Model, torch_to_ait_data
from ait_mlir.utils.graph_utils import get_sorted_ops


def make_model(dtype: str = "float32") -> Tensor:
    x = Tensor(shape=[IntVar([1, 8], name="batch"), 4], dtype=dtype, name="x", is_input=True)
    w = Tensor(shape=[2, 4], dtype=dtype, name="layer_weight")
    return ops.gemm_rcr()(x, w).mark_as_output("y")


def test_constants_are_numpy_or_torch():
    y = make_model()
    data = np.arange(8, dtype=np.float32).reshape(2, 4)
    for value in (data, torch.from_numpy(data), np.asfortranarray(data), torch.from_numpy(data.T.copy()).T):
        bound = bind_constants(build_module(y), {}, {"layer_weight": value})
        assert bound["layer_weight"].flags.c_contiguous
        np.testing.assert_array_equal(bound["layer_weight"], data)


def test_bfloat16_keeps_its_bits():
    value = torch.randn(2, 4).bfloat16()
    array = as_array(value)
    assert array.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(array.astype(np.float32), value.float().numpy())
    bind_constants(build_module(make_model("bfloat16")), {}, {"layer_weight": value})


def test_constants_by_their_address():
    value = torch.arange(8, dtype=torch.float32).reshape(2, 4)
    found = bind_constants(build_module(make_model()), {}, {"layer_weight": torch_to_ait_data(value)})["layer_weight"]
    np.testing.assert_array_equal(found, value.numpy())
    value.zero_()
    assert found.sum() == 28  # a copy: the memory is not owned
    assert as_array(AITData(0, [0, 4], "bfloat16")).shape == (0, 4)


@pytest.mark.parametrize(
    "data, message",
    [
        (AITData(0, [2, 4], "float32"), "32 bytes at the address 0"),
        (AITData(64, [2, -4], "float32"), "a constant is AITData.*at least 0"),
        (AITData(64, None, "float32"), "a constant is AITData.*, expected AITData"),  # type: ignore[arg-type]
        (AITData(1 << 70, [2, 4], "float32"), "a constant is AITData.* not from 0 to 2"),
        (AITData(64, [2, 4], "float31"), 'unknown dtype "float31"'),
    ],
)
def test_addresses_that_no_data_have(data, message):
    with pytest.raises(BuildError, match=message):
        as_array(data)


def test_data_are_bound_once():
    weight = Tensor(shape=[2, 4], dtype="float32", name="w")
    weight._bind_data(_NumpyConstantTensorData(np.ones((2, 4), np.float32)))
    for bind in (weight.bind, weight._bind_data, lambda data: weight._attrs.update(data=data)):
        with pytest.raises(BuildError, match=r'the weight "w".* is already bound!'):
            bind(np.zeros((2, 4), np.float32))
    assert weight.data is not None and weight.data.sum() == 8


def test_scalars_stay_scalars():
    assert as_array(np.array(3.0)).shape == ()


def test_bound_data_are_constants_and_bound_once():
    y = make_model()
    (gemm,) = y._attrs["src_ops"]
    weight = gemm._attrs["inputs"][1]
    weight.bind(np.ones((2, 4), np.float32))
    assert bind_constants(build_module(y), bound_data(y), {})["layer_weight"].sum() == 8
    two = {"layer_weight": np.full((2, 4), 2, np.float32)}
    with pytest.raises(BuildError, match="Tensor layer_weight is already bound!"):
        bind_constants(build_module(y), bound_data(y), two)


@pytest.mark.parametrize(
    "constants, message",
    [
        ({"layer.weight": np.ones((2, 4), np.float32)}, 'no weight "layer.weight".*did you mean "layer_weight"'),
        ({"x": np.ones((1, 4), np.float32)}, "Cannot bind input tensor x: each run is given it"),
        ({"y": np.ones((1, 2), np.float32)}, "Cannot bind non-constant tensor y: the model computes it"),
        ({"layer_weight": np.ones((4, 2), np.float32)}, r'"layer_weight" has shape \[2, 4\].*shape \[4, 2\]'),
        ({"layer_weight": np.ones((2, 4))}, "data's dtype did not match: expected float32, got float64"),
        ({"layer_weight": [[1, 2, 3, 4]] * 2}, "NumPy arrays, torch tensors, JAX arrays or AITData; found list"),
    ],
)
def test_bad_constants(constants, message):
    with pytest.raises(BuildError, match=message):
        bind_constants(build_module(make_model()), {}, constants)


def test_states_that_the_model_does_not_have_are_left_out():
    states = {"layer_weight": np.ones((2, 4), np.float32), "num_batches_tracked": np.array(3)}
    with pytest.warns(UserWarning, match='no weight "num_batches_tracked"'):
        assert list(bind_constants(build_module(make_model()), {}, states)) == ["layer_weight"]


@pytest.mark.parametrize("name", ["", "a/b", "../up", "..", "dot."])
def test_names_that_cannot_be_files(name, tmp_path):
    with pytest.raises(BuildError, match="cannot name a file"):
        compile_model(make_model(), "cpu", tmp_path, name)
    assert not list(tmp_path.iterdir())


def test_names_become_names_of_files(tmp_path):
    with compile_model(make_model(), "cpu", tmp_path, 'x"; rm [1, 2]') as model:
        assert model.manifest is not None and model.manifest.name == "x___rm__1__2_"
    assert {path.name for path in tmp_path.iterdir()} == {"x___rm__1__2_.ait", "x___rm__1__2_"}


def test_the_graph_that_a_model_was_compiled_from(tmp_path):
    from ait_mlir.compiler import safe_compile_model

    x, w = (Tensor(shape=[4, 4], dtype="float32", name=n, is_input=True) for n in "xw")
    output = ops.relu(ops.gemm_rcr()(x, w) + 0.0).mark_as_output("relu")
    model = safe_compile_model(output, "cpu", tmp_path, "graph")
    graph = model.debug_sorted_graph
    assert graph[-1].name == "relu" and graph == toposort(graph[-1])
    assert [op._attrs["op"] for op in get_sorted_ops(graph)] == ["gemm_rcr", "fused_elementwise"]
    loaded = Model(tmp_path / "graph.ait")
    with pytest.raises(RunError, match="only a model that compile_model returned"):
        _ = loaded.debug_sorted_graph
    del graph, output, x, w
    gc.collect()
    with pytest.raises(RunError, match="are gone"):
        _ = model.debug_sorted_graph


def test_targets(tmp_path):
    assert as_target("cuda").kind == "cuda"
    assert as_target(Target("rocm", "gfx90a")).arch == "gfx90a"
    assert detect_target().name() in ("cpu", "cuda", "rocm")
    with pytest.raises(BuildError, match='unknown target "tpu"; expected one of cpu, cuda, rocm'):
        compile_model(make_model(), "tpu", tmp_path, "m")


def test_documented_import_paths():
    from ait_mlir.compiler import compile_model as documented
    from ait_mlir.compiler import ops as documented_ops
    from ait_mlir.compiler.base import IntImm, Operator
    from ait_mlir.compiler.base import Tensor as DocumentedTensor
    from ait_mlir.testing import detect_target as documented_detect

    assert documented is compile_model
    assert all(getattr(documented_ops, name) is getattr(ops, name) for name in ops.__all__)
    assert DocumentedTensor is Tensor
    assert documented_detect is detect_target
    assert issubclass(ops.gemm_rcr, Operator)
    assert IntImm(3) == 3
