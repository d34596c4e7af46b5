"""Operators that onnx's backend suite lacks, or has in few sizes, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
from onnx.reference import ReferenceEvaluator  # noqa: E402

from ait_mlir.importers.onnx import backend  # noqa: E402
from tests.from_onnx import suite  # noqa: E402

helper = onnx.helper


def run(node: Any, **inputs: Any) -> Any:
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()
    ]
    results = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["r"])]
    opsets = [
        helper.make_opsetid("", 20),
        helper.make_opsetid("com.microsoft", 1),
        helper.make_opsetid("ai.onnx.ml", 1),
    ]
    made = helper.make_model(helper.make_graph([node], "g", values, results), opset_imports=opsets, ir_version=10)
    return backend.Rep(made, "cpu", suite.by_reference).run([*inputs.values()])[0]


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 2, 4, 4)])
def test_determinants(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    x[..., 0, 0] = 0  # needs another pivot
    assert np.allclose(run(helper.make_node("Det", ["x"], ["y"]), x=x), np.linalg.det(x), rtol=1e-5, atol=1e-6)


def test_the_determinant_of_a_singular_matrix_is_zero() -> None:
    x = np.array([[[0, 1, 2], [0, 3, 4], [0, 5, 6]], [[1, 2, 3], [2, 4, 6], [1, 0, 1]]], np.float32)
    assert run(helper.make_node("Det", ["x"], ["y"]), x=x).tolist() == [0, 0]


def test_deformed_convolutions_in_groups() -> None:
    rng = np.random.default_rng(0)
    groups, offsets, taps, results = 2, 2, (3, 2), (3, 4)
    inputs = {
        "x": rng.standard_normal((2, 4, 7, 6), dtype=np.float32),
        "w": rng.standard_normal((6, 2, *taps), dtype=np.float32),
        "moves": 2 * rng.standard_normal((2, offsets * 6 * 2, *results), dtype=np.float32),
        "b": rng.standard_normal(6, dtype=np.float32),
        "mask": rng.random((2, offsets * 6, *results), dtype=np.float32),
    }
    node = helper.make_node(
        "DeformConv", [*inputs], ["y"], group=groups, offset_group=offsets, strides=[2, 1], dilations=[1, 2],
        pads=[0, 0, 1, 0],
    )  # fmt: skip
    evaluator = ReferenceEvaluator(node, opsets={"": 20})
    assert np.allclose(run(node, **inputs), evaluator.run(None, inputs)[0], rtol=1e-4, atol=1e-5)


def test_shapes_are_computed_by_old_versions_of_operators() -> None:
    """The axes of Unsqueeze and Squeeze are attributes before opset 13."""
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Unsqueeze", ["four"], ["row"], axes=[0]),
        helper.make_node("Unsqueeze", ["row"], ["rows"], axes=[0]),
        helper.make_node("Squeeze", ["rows"], ["shape"], axes=[1]),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    four = onnx.numpy_helper.from_array(np.array(4), "four")
    inputs, outputs = [value("x", onnx.TensorProto.FLOAT, [2, 2])], [value("y", onnx.TensorProto.FLOAT, [4])]
    opsets = [helper.make_opsetid("", 11)]
    made = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, [four]), opset_imports=opsets, ir_version=6)
    assert backend.Rep(made, "cpu", suite.by_reference).run([np.ones((2, 2), np.float32)])[0].shape == (4,)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zero", ["none", "packed", "float"])
def test_products_with_weights_of_few_bits(bits: int, zero: str) -> None:
    rng = np.random.default_rng(0)
    rows, columns, size = 5, 70, 32  # the last block is not full, and an odd number of zero points
    blocks = -(-columns // size)
    numbers = rng.integers(0, 1 << bits, (rows, blocks * size), np.uint8)
    zeros = rng.integers(0, 1 << bits, (rows, blocks), np.uint8)
    scales = rng.standard_normal((rows, blocks), dtype=np.float32)
    x = rng.standard_normal((2, 3, columns), dtype=np.float32)

    def packed(array: Any) -> Any:
        if bits == 8:
            return array
        array = np.pad(array, [(0, 0), (0, array.shape[1] % 2)])
        return array[:, ::2] | array[:, 1::2] << 4

    inputs = {"x": x, "b": packed(numbers).reshape(rows, blocks, -1), "scales": scales.reshape(-1)}
    moved = np.full((rows, blocks), 1 << bits - 1, np.float32)
    if zero == "packed":
        inputs["zero"], moved = packed(zeros).reshape(-1), zeros.astype(np.float32)
    elif zero == "float":
        inputs["zero"] = moved = zeros.astype(np.float32) + 0.5
    node = helper.make_node(
        "MatMulNBits", [*inputs], ["y"], domain="com.microsoft", bits=bits, block_size=size, N=rows, K=columns
    )
    weight = (numbers.reshape(rows, blocks, size) - moved[:, :, None]) * scales[:, :, None]
    expected = x @ weight.reshape(rows, -1)[:, :columns].T
    assert np.allclose(run(node, **inputs), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("ArrayFeatureExtractor", {}),
        ("Binarizer", {"threshold": 0.2}),
        ("Scaler", {"offset": [0.5], "scale": [1.0, 2.0, 3.0, 4.0]}),
        ("LinearRegressor", {"coefficients": [1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 0.0, 2.0], "intercepts": [1.0, 2.0], "targets": 2}),
    ],
)  # fmt: skip
def test_features_of_classical_models(op: str, attributes: dict[str, Any]) -> None:
    x, ids = np.random.default_rng(0).standard_normal((3, 4), dtype=np.float32), np.array([[2, 0]])
    inputs = {"x": x, "ids": ids} if op == "ArrayFeatureExtractor" else {"x": x}
    weights = np.array(attributes.get("coefficients", [0.0] * 8), np.float32).reshape(2, 4)
    expected = {
        "ArrayFeatureExtractor": x[:, [2, 0]],
        "Binarizer": (x > 0.2).astype(np.float32),
        "Scaler": (x - 0.5) * np.array([1, 2, 3, 4], np.float32),
        "LinearRegressor": x @ weights.T + np.array([1, 2], np.float32),
    }
    found = run(helper.make_node(op, [*inputs], ["y"], domain="ai.onnx.ml", **attributes), **inputs)
    np.testing.assert_allclose(found, expected[op], rtol=1e-5, atol=1e-6)
