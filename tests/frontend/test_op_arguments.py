"""What operators of the builder say to wrong arguments, and which ones they take."""

from __future__ import annotations

import numpy as np
import pytest

from ait_mlir.frontend import BuildError, IntVar, ops
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.frontend.ops.elementwise import COMPOSITES, OPS
from tests.frontend.support import graph_of, tensor

x, w, h = tensor("x", "batch", "seq", 12), tensor("w", 6, 4), tensor("h", "batch", 2, "seq", 4)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ops.gemm_rcr()(x, w), r'gemm_rcr\("x" \[batch, seq, 12\] float64, "w" \[6, 4\] float64\).*12.*4'),
        (lambda: ops.gemm_rcr()(x), r"gemm_rcr: missing a required argument: 'b'; it takes \(a, b, extras, named\)"),
        (lambda: ops.gemm_rcr()(x, 3), "gemm_rcr: b must be a Tensor; found 3"),
        (lambda: ops.gemm_rcr_bias()(x, tensor("w", 6, 12)), r"takes 1 more tensors \(bias\); 0 were given"),
        (lambda: ops.gemm_rcr_bias()(x, tensor("w", 6, 12), tensor("b", 5)), r'bias must have shape \[6\].*"b" \[5\]'),
        (lambda: ops.gemm_rcr_bias_add()(x, tensor("w", 6, 12), tensor("b", 6), x), "6.*12|12.*6"),
        (lambda: ops.bmm_rcr_add()(w, w, tensor("big", 3, 6, 6)), "enlarges"),
        (lambda: ops.elementwise(FuncEnum.ADD)(x), "takes 2 operands"),
        (lambda: ops.elementwise(FuncEnum.RELU)(x, x), "takes 1 operand; found 2"),
        (lambda: ops.relu()(x), r"elementwise\(RELU\)\(\): takes 1 operand; found 0; write ops.relu\(x\)$"),
        (lambda: ops.leaky_relu()(x), r"found 0; write ops.leaky_relu\(x\)$"),
        (lambda: ops.pow()(x, x), r"found 0; write ops.pow\(x, y\)$"),
        (lambda: ops.relu(x, x), r"found 2$"),
        (lambda: ops.cast(x, 16), "cast: dtype must be a string; found 16"),
        (lambda: ops.cast(3, "float32"), "cast: x must be a Tensor; found 3"),
        (lambda: ops.cast(dtype="float32"), r"cast: got an unexpected keyword argument 'dtype'; it takes \(\), .* inputs: cast\(...\)\(x\)"),
        (lambda: ops.clamp(x, 0, 1), r"clamp: too many positional arguments; it takes \(\), .* inputs: clamp\(...\)\(x\)"),
        (lambda: ops.elementwise(FuncEnum.ADD)(x, x.shape()[0]), "must be a list, each element a Tensor or a number or an IntVarTensor"),
        (lambda: ops.elementwise(FuncEnum.ADD)(x, ops.size()(x, 0)), "the dim batch is dynamic"),
        (lambda: ops.gemm_rcr_permute((2, 3)), r'layout "20314" with 2 dims in shape is unknown; expected one of "20314" w'),
        (lambda: ops.bmm_rcr_permute((2,), "20314"), 'expected one of "0213" with 1'),
        (lambda: ops.gemm_rcr_permute((2, 1, 4), "20314")(x, tensor("w", 8, 12)), "the product must have 2 dims"),
        (lambda: ops.gemm_rcr_permute((4, 2), "0213")(w, tensor("w", 8, 4)), "6 / 4 may leave a rest"),
        (lambda: ops.gemm_rcr_permute((3, 5), "0213")(w, tensor("w", 8, 4)), r"cut by \[3, 5\]: 8 / 5 may leave"),
        (lambda: ops.elementwise(FuncEnum.CLAMP_NAN_TO_NUM)(x), "then 2 to 3 parameters; found 1"),
        (lambda: ops.elementwise("ADD"), "func_enum must be a FuncEnum; found 'ADD'"),
        (lambda: ops.topk(1.5), "topk: k must be an int; found 1.5"),
        (lambda: ops.topk(-1)(x), "topk: a dim cannot be negative: -1"),
        (lambda: ops.softmax()(x, 1.0), "dim must be an int or None; found 1.0"),
        (lambda: ops.permute()(x, "012"), "dims must be a list, each element an int; found '012'"),
        (lambda: ops.reshape()(x, [1.5]), "shape must be a list, each element an IntVar or an int"),
        (lambda: ops.chunk()(x, 2**70), "beyond 64 bits"),
        (lambda: ops.attention(scale="1"), "scale must be a number or None; found '1'"),
        (lambda: ops.reduce_sum([0, -3])(x), "name one twice"),
        (lambda: ops.clamp()(ops.cast()(x, "int32"), float("nan")), "a constant of i32 cannot be nan"),
        (lambda: ops.group_norm(2, 4)(w, tensor("g", 1)), r'gamma must have shape \[4\], found "g" \[1\]'),
        (lambda: ops.softmax()(x, 3), "dim 3 is out of range for rank 3"),
        (lambda: ops.layernorm()(x, normalized_shape=[6]), r"normalized_shape \[6\] is not the end"),
        (lambda: ops.layernorm()(x), "needs normalized_shape"),
        (lambda: ops.reshape()(x, [-1, -1]), "only one dim can be -1"),
        (lambda: ops.reshape()(x, [-1, 7]), "may leave a rest"),
        (lambda: ops.reshape()(x, [12, 12]), "elements"),
        (lambda: ops.permute()(x, [0, 0, 1]), "no permutation"),
        (lambda: ops.expand()(w, [-1, 6, 4]), "is new"),
        (lambda: ops.expand()(x, [2, 2]), "fewer than"),
        (lambda: ops.dynamic_slice()(x, [0], [1]), "for each of 3 dims"),
        (lambda: ops.split()(x, 2, 1), "dynamic dim seq"),
        (lambda: ops.split()(w, [1, 2], 0), "do not add up"),
        (lambda: ops.concatenate()([x, w], 0), "concatenate"),
        (lambda: ops.concatenate()([]), "at least one tensor"),
        (lambda: ops.concatenate()([x, 3]), "inputs must be a list, each element a Tensor"),
        (lambda: ops.embedding()(w, x), "ids must be i32 or i64"),
        (lambda: ops.clamp()(x), "needs a bound"),
        (lambda: ops.where()(ops.gt()(x, 0.0), 1.0, 2.0), "dtype needs to be provided for scalars"),
        (lambda: ops.flatten(2, 0)(x), "behind end_dim"),
        (lambda: ops.attention()(x, x, x), "4 dims"),
        (lambda: ops.mem_eff_attention(False, dropout=0.1), "inference"),
        (lambda: ops.mem_eff_attention(False, variable_seq_length_kv=True)(x, x, x), "so it takes lengths_kv"),
        (lambda: ops.mem_eff_attention(False)(x, x, x, w), "so it takes no lengths_kv"),
        (lambda: ops.mem_eff_attention(False)(x, x, x), r"q and k must be \[batch, heads, rows, size\]"),
        (lambda: ops.mem_eff_attention(False, 0, True)(h, h, h, w), r"lengths must be \[batch\] or \[batch, 1\]"),
        (lambda: ops.flash_attention(2, 0.5, 9, True), "inference"),
        (lambda: ops.flash_attention(2, 0, 9, True)(x, w), r"x must be \[total, 3, heads, size\]"),
        (lambda: ops.update_cache()(x, x, w), "rank 4 and places of rank 2"),
        (lambda: ops.int_elementwise(FuncEnum.TANH), "expected ADD"),
        (lambda: ops.index_select(1)(w, w), "by a 1-D tensor of indices"),
        (lambda: ops.index_select(2)(w, w), "dim 2 is out of range"),
        (lambda: ops.gather()(w, 0, x), "the index has rank"),
        (lambda: ops.scatter(0, "mean")(w, w, w), "expected one of set, add, mul, max, min"),
        (lambda: ops.batch_gather()(tensor("one", 3), w), "indices have rank 2, expected 1 to 1"),
        (lambda: ops.dynamic_slice()(x, [IntVar([0, 4], name="batch"), 0, 0], [None, None, None]), "two ranges"),
    ],
)  # fmt: skip
def test_errors_name_the_operator_and_its_inputs(make, message):
    with pytest.raises(BuildError, match=message):
        make()


def test_integers_of_numpy_and_constant_dims_are_ints():
    four = x.shape()[2] // 3
    assert ops.topk(np.int64(2))(x)[0].shape()[-1] == 2
    assert ops.reduce_sum([np.int32(1)], keepdim=np.bool_(True))(x).shape()[1] == 1
    assert ops.topk(four)(x)[0].shape()[-1] == 4
    assert ops.reshape()(w, [np.int64(24)]).shape() == [24]


def test_every_function_is_known_and_integers_have_no_nan():
    assert {*OPS, *COMPOSITES} == set(FuncEnum)
    y = ops.cast()(x, "int8")
    assert ops.elementwise(FuncEnum.NAN_TO_NUM)(y) is y


def test_an_error_leaves_the_model_usable():
    y = x + 1.0
    with pytest.raises(BuildError):
        ops.gemm_rcr()(y, w)
    assert len(graph_of(y).outputs()) == 1
