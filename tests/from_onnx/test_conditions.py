"""Conditions of nodes on dynamic dims become conditions on the inputs of the module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")

from ait_mlir.importers.onnx import UnsupportedOps, import_model  # noqa: E402
from ait_mlir.importers.onnx.program import Imported  # noqa: E402
from ait_mlir.reference import evaluate_graph  # noqa: E402

TensorProto, helper, numpy_helper = onnx.TensorProto, onnx.helper, onnx.numpy_helper
LEAST = -(1 << 63)


def model(nodes: Sequence[Any], inputs: Sequence[Any], weights: Sequence[Any] = (), opset: int = 18) -> Any:
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["any"])
    initializers = [numpy_helper.from_array(np.asarray(v), n) for n, v in weights]
    graph = helper.make_graph(list(nodes), "net", list(inputs), [result], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def given(name: str, *dims: Any, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, dims)


def dims_of(imported: Imported) -> str:
    return str(imported.graph.scope)


def input_type(imported: Imported) -> str:
    return str(imported.graph.block.args[0].type)


def test_a_sum_with_a_resized_tensor_needs_multiples() -> None:
    """A feature pyramid: halves that are rounded up meet their doubles only for sizes that are multiples."""
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a"], **pool),
        helper.make_node("MaxPool", ["a"], ["b"], **pool),
        helper.make_node("Resize", ["b", "", "by"], ["c"], mode="nearest"),
        helper.make_node("Add", ["a", "c"], ["y"]),
    ]
    imported = import_model(
        model(nodes, [given("x", 1, 2, "h", "w")], [("by", np.array([1, 1, 2, 2], np.float32))]),
        dims={"h": (1, 30), "w": (8, 8)},
    )
    assert input_type(imported) == "!ait.tensor<1 x 2 x (4*h_by_4) x 8 x f32>"
    assert dims_of(imported) == "h_by_4 = 1 to 7"


def test_a_reflection_needs_a_least_size() -> None:
    nodes = [helper.make_node("Pad", ["x", "pads"], ["y"], mode="reflect")]
    imported = import_model(model(nodes, [given("x", "n", "t")], [("pads", np.array([0, 5, 0, 7]))]))
    assert dims_of(imported) == "n = 1 to 4096, t = 8 to 4096"


def test_a_squeezed_dim_is_one() -> None:
    nodes = [
        helper.make_node("AveragePool", ["x"], ["a"], kernel_shape=[4], strides=[8]),
        helper.make_node("Squeeze", ["a", "axis"], ["y"]),
    ]
    imported = import_model(model(nodes, [given("x", "n", 3, "t")], [("axis", np.array([2]))]))
    assert dims_of(imported) == "n = 1 to 4096, t = 4 to 11"


def test_a_dim_that_a_weight_gives_is_this_number() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    imported = import_model(model(nodes, [given("x", "n", "k")], [("w", np.ones((6, 2), np.float32))]))
    assert input_type(imported) == "!ait.tensor<n x 6 x f32>"


def test_dims_called_minus_one_or_a_question_mark_have_no_name() -> None:
    inputs = [given("x", -1, "?", "?", "-1")]
    inputs[0].type.tensor_type.shape.dim[0].dim_value = -1
    imported = import_model(model([helper.make_node("Relu", ["x"], ["y"])], inputs), dims={"x_3": (5, 5)})
    assert input_type(imported) == "!ait.tensor<x_0 x x_1 x x_2 x 5 x f32>"


@pytest.mark.parametrize(("start", "end", "step"), [(0, -LEAST - 1, 1), (-1, LEAST, -1), (LEAST, -LEAST - 1, 2)])
def test_a_slice_to_the_end_may_say_so_by_any_number(start: int, end: int, step: int) -> None:
    x = np.arange(7, dtype=np.float32)
    for dim in (7, "t"):
        parts = [(n, np.array([v])) for n, v in (("s", start), ("e", end), ("a", 0), ("p", step))]
        imported = import_model(
            model([helper.make_node("Slice", ["x", "s", "e", "a", "p"], ["y"])], [given("x", dim)], parts)
        )
        (found,) = evaluate_graph(imported.graph, {"x": x}, imported.constants, {} if dim == 7 else {"t": 7}).values()
        np.testing.assert_array_equal(found, x[max(start, -8) : min(end, 8) if step > 0 else None : step])


def branch(name: str, pad: int) -> Any:
    nodes = [
        helper.make_node("Constant", [], ["pads"], value_ints=[pad, 0]),
        helper.make_node("Pad", ["x", "pads"], ["p"], mode="reflect"),
        helper.make_node("ReduceSum", ["p"], [name], keepdims=0),
    ]
    return helper.make_graph(nodes, name, [], [given(name)])


def test_a_branch_that_the_run_chooses_restricts_no_dim() -> None:
    """The sizes of one branch are no conditions of the other: the value of the condition must be known."""
    nodes = [
        helper.make_node("Cast", ["rate"], ["c"], to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("a", 9), else_branch=branch("b", 3)),
    ]
    proto = model(nodes, [given("x", "t"), given("rate", kind=TensorProto.INT64)])
    with pytest.raises(UnsupportedOps, match="depends on the values of the input 'rate'") as error:
        import_model(proto)
    assert error.value.needed == ("rate",)
    for rate, least in ((1, 10), (0, 4)):
        assert dims_of(import_model(proto, values={"rate": np.array(rate)})) == f"t = {least} to 4096"


def test_dims_without_ranges_are_small_enough_for_kernels() -> None:
    """An image of three dynamic dims has at most 2^26 elements; ranges that are given stay."""
    proto = model([helper.make_node("Relu", ["x"], ["y"])], [given("x", "n", 3, "h", "w")])
    assert dims_of(import_model(proto)) == "n = 1 to 16, h = 1 to 1024, w = 1 to 1024"
    assert dims_of(import_model(proto, dims={"h": (1, 3000)})) == "n = 1 to 16, h = 1 to 3000, w = 1 to 256"


def split(sizes: list[int], **ranges: tuple[int, int]) -> Imported:
    nodes = [
        helper.make_node("SplitToSequence", ["x", "sizes"], ["parts"]),
        helper.make_node("SequenceAt", ["parts", "one"], ["y"]),
    ]
    weights = [("sizes", np.array(sizes)), ("one", np.array(1))]
    return import_model(model(nodes, [given("x", "n")], weights), dims=ranges)


def test_parts_of_given_sizes_settle_the_size_of_the_whole() -> None:
    assert input_type(split([2, 3])) == "!ait.tensor<5 x f32>"
    assert input_type(split([0, 0])) == "!ait.tensor<0 x f32>"
    with pytest.raises(UnsupportedOps, match="a size is n, expected a number that is known"):
        split([2, 3], n=(1, 4))
