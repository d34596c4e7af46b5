"""Tensors: handles on values, their `_attrs`, their operators."""

from __future__ import annotations

import numpy as np
import pytest

from ait_mlir.frontend import BuildError, IntVar, Tensor, ops
from ait_mlir.frontend.ops import FuncEnum
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


def test_what_follows_from_the_value_is_not_set():
    with pytest.raises(BuildError, match=r'"shape" of "x" \[batch, 4\] float32'):
        make_input()._attrs["shape"] = [1]
    with pytest.raises(BuildError, match="src_ops"):
        Tensor(shape=[1], src_ops={ops.gemm_rcr()})


def test_operators_of_python():
    x = make_input()
    y = -((1.0 + x) * x - x / 2.0) / (x * x + 3.0) + (2.0 - x) * 0.5
    data = np.random.default_rng(0).standard_normal((3, 4))
    (got,) = evaluate(y, {"x": data}, batch=3)
    want = -((1.0 + data) * data - data / 2.0) / (data * data + 3.0) + (2.0 - data) * 0.5
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_data_are_bound_to_weights_only():
    w = Tensor(shape=[2, 3], dtype="float32", name="w")
    w.bind(np.ones((2, 3), np.float32))
    assert w._attrs["data"].sum() == 6
    with pytest.raises(BuildError, match=r"but the data have shape \[3, 2\] and dtype float32"):
        w.bind(np.ones((3, 2), np.float32))
    with pytest.raises(BuildError, match="dtype float64"):
        w._attrs["data"] = np.ones((2, 3))
    with pytest.raises(BuildError, match="weights only"):
        make_input().bind(np.ones((1, 4), np.float32))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Tensor(shape=[1], dtype="float8"), 'unknown dtype "float8"'),
        (lambda: Tensor(shape=[-1]), "negative"),
        (lambda: Tensor(shape=["batch"]), "a dim is an int, an IntVar or an IntImm"),
        (lambda: Tensor(shape=[1 << 30, 1 << 30]), "2\\^48 bytes"),
        (lambda: Tensor(shape=[1], is_input=True, value=1.0), "cannot have a value"),
        (lambda: Tensor(shape=[], dtype="int64", value=0.5), "cannot be 0.5"),
    ],
)
def test_bad_tensors(make, message):
    with pytest.raises(BuildError, match=message):
        make()
