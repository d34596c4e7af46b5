"""Tensors: handles on values, their `_attrs`, their operators."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import f32

from ait_mlir.frontend import BuildError, IntVar, Tensor, ops
from ait_mlir.frontend.constant_data import (
    HostConstantTensorData,
    NumpyConstantTensorData,
    TorchConstantTensorData,
)
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.frontend.writer import TensorWriter
from tests.frontend.support import evaluate


def make_input(**kwargs) -> Tensor:
    shape = [IntVar([1, 8], name="batch"), 4]
    return Tensor(**{"shape": shape, "dtype": "float32", "name": "x", "is_input": True, **kwargs})


def test_attrs_are_a_live_view():
    x = make_input()
    attrs = x._attrs
    assert attrs["name"] == "x"
    assert attrs["shape"] == [IntVar([1, 8], name="batch"), 4]
    assert attrs["dtype"] == x.dtype() == "float32"
    assert (attrs["is_input"], attrs["is_output"], attrs["is_param"]) == (True, False, False)
    attrs["name"] = "other"
    assert x.name == "other"
    attrs["is_output"] = True
    assert x.is_output
    assert attrs["src_ops"] == set()
    assert attrs["dst_ops"] == set()
    attrs["note"] = 3
    assert dict(attrs)["note"] == 3


def test_source_and_user_operators():
    x, w = make_input(), Tensor(shape=[2, 4], dtype="float32", name="w")
    gemm = ops.gemm_rcr()
    y = gemm(x, w)
    relu = ops.elementwise(FuncEnum.RELU)
    z = relu(y)
    assert y._attrs["src_ops"] == {gemm}
    assert y._attrs["dst_ops"] == {relu}
    assert gemm._attrs["op"] == "gemm_rcr"
    assert gemm._attrs["inputs"] == [x, w]
    assert relu._attrs["outputs"] == [z]
    assert w.is_param


def test_what_operators_have_read_or_computed_is_not_set():
    x = make_input()
    x._attrs["shape"], x._attrs["dtype"] = [3, 4], "float16"
    assert (x._attrs["shape"], x.dtype()) == ([3, 4], "float16")
    y = -x
    x._attrs["shape"] = [3, 4]  # as it is
    with pytest.raises(BuildError, match=r'"shape" of "x" \[3, 4\] float16 cannot be set: operators were called'):
        x._attrs["shape"] = [1, 4]
    with pytest.raises(BuildError, match=r'"dtype" of \[3, 4\] float16 is what its operator computes'):
        y._attrs["dtype"] = "float32"
    with pytest.raises(BuildError, match=r'"is_param" of .* is False because of how'):
        x._attrs["is_param"] = True
    with pytest.raises(BuildError, match="cannot be an input"):
        y._attrs["is_input"] = True


def test_a_constant_can_get_another_shape_before_it_is_read():
    c = Tensor(shape=[], dtype="float32", value=2.0)
    assert c.is_a_const_num() and c._attrs["value"] == 2.0
    c._attrs["shape"] = [3]
    assert not c.is_a_const_num()
    (got,) = evaluate(c + 1.0, {})
    np.testing.assert_array_equal(got, [3.0, 3.0, 3.0])


def test_a_weight_becomes_an_input():
    x = make_input(is_input=False, shape=[2])
    y = x * 2.0
    x._attrs["is_input"] = True
    assert x.is_input and not x.is_param
    (got,) = evaluate(y, {"x": np.array([1.0, 2.0])})
    np.testing.assert_array_equal(got, [2.0, 4.0])
    x._attrs["is_input"] = False
    assert x.is_param


def test_depth_counts_the_operators_before():
    x = make_input()
    y = ops.elementwise(FuncEnum.SOFTPLUS)(x) + x
    assert (x._attrs["depth"], y._attrs["depth"]) == (0, 2)
    (add,) = y.src_ops()
    assert add._attrs["depth"] == 1
    (softplus,) = add._attrs["inputs"][0].src_ops()
    assert softplus._attrs["func"] is FuncEnum.SOFTPLUS and softplus._attrs["inputs"] == [x]
    assert x.dst_ops() == {softplus, add}


def test_the_arguments_of_an_operator_make_another_such_operator():
    permuted = ops.gemm_rcr_permute((4, 2), layout="0213")
    assert permuted._get_op_attributes() == {"shape": (4, 2), "layout": "0213"}
    relu = ops.elementwise(FuncEnum.RELU)
    assert relu._get_op_attributes() == {"func_enum": FuncEnum.RELU}
    assert ops.gemm_rcr()._get_op_attributes() == {}


def test_operators_of_python():
    x = make_input()
    y = -((1.0 + x) * x - x / 2.0) / (x * x + 3.0) + (2.0 - x) * 0.5
    data = np.random.default_rng(0).standard_normal((3, 4))
    (got,) = evaluate(y, {"x": data}, batch=3)
    want = -((1.0 + data) * data - data / 2.0) / (data * data + 3.0) + (2.0 - data) * 0.5
    np.testing.assert_allclose(got, want, rtol=1e-12)


def weight() -> Tensor:
    return Tensor(shape=[2, 3], dtype="float32", name="w")


def test_data_are_bound_to_weights_only():
    w = weight()
    with pytest.raises(BuildError, match=r"but the data have shape \[3, 2\] and dtype float32"):
        w.bind(np.ones((3, 2), np.float32))
    with pytest.raises(BuildError, match="expected float32, got float64"):
        w._attrs["data"] = np.ones((2, 3))
    with pytest.raises(BuildError, match="has 24 bytes, but the data have 20"):
        w.bind(HostConstantTensorData(b"\0" * 20, "float32"))
    with pytest.raises(BuildError, match="dtype float32, but the data have float16"):
        w.bind(TorchConstantTensorData(torch.zeros(2, 6, dtype=torch.float16)))
    w.bind(np.ones((2, 3), np.float32))
    assert w._attrs["data"].sum() == 6
    with pytest.raises(BuildError, match="weights only"):
        make_input().bind(np.ones((1, 4), np.float32))


def test_data_fit_by_their_bytes():
    w = weight()
    w._attrs["data"] = NumpyConstantTensorData(np.arange(6, dtype=np.float32))
    assert w.data is not None and w.data.tolist() == [[0, 1, 2], [3, 4, 5]] and len(w._attrs["data"]) == 24
    w = weight()
    w.bind(HostConstantTensorData(b"\0" * 24, "float"))
    assert w.data is not None and not w.data.any()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Tensor(shape=[1], dtype="float8"), 'unknown dtype "float8"'),
        (lambda: Tensor(shape=[-1]), "negative"),
        (lambda: Tensor(shape=["batch"]), "a dim is an int, an IntVar or an IntImm"),
        (lambda: Tensor(shape=[1 << 30, 1 << 30]), "2\\^48 bytes"),
        (lambda: Tensor(shape=[], dtype="int64", value=0.5), "cannot be 0.5"),
        (lambda: Tensor([4], "x", "float16"), "^src_ops of tensor 'x' is 'float16', expected operators; dtype="),
        (lambda: Tensor([4], "x", 5), "^src_ops of tensor 'x' is 5, expected operators"),
    ],
)
def test_bad_tensors(make, message):
    with pytest.raises(BuildError, match=message):
        make()


def test_data_that_a_composition_stores_is_a_constant() -> None:
    value = TensorWriter({}).store("table", np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), f32)
    assert str(value.owner) == "%0 = ait.constant [1.0, 2.0, 3.0, 4.0] : !ait.tensor<2 x 2 x f32>"
