"""Products of quantised matrices: zero points are made up for outside of one product of integers of 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")

from ait_mlir.dialects.ait.gemm import ContractionOp  # noqa: E402
from ait_mlir.importers.onnx import backend, import_model  # noqa: E402
from tests.from_onnx import suite  # noqa: E402

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def whole(kind: type, *shape: int) -> Array:
    info = np.iinfo(kind)
    return RNG.integers(info.min, info.max + 1, shape).astype(kind)


@pytest.mark.parametrize("b_kind", [np.int8, np.uint8])
@pytest.mark.parametrize("a_kind", [np.int8, np.uint8])
@pytest.mark.parametrize(
    ("a", "b", "a_zero", "b_zero"),
    [
        ((5, 20), (20, 9), (1,), (9,)),
        ((5, 20), (20, 9), (5, 1), ()),
        ((2, 5, 20), (2, 20, 9), (), ()),
        ((5, 20), (20, 9), None, None),
        ((20,), (20, 9), (), (9,)),
    ],
)
def test_zero_points(a: Any, b: Any, a_zero: Any, b_zero: Any, a_kind: type, b_kind: type) -> None:
    """The zero points of a weight's columns and of all of a, or of its rows."""
    x, w = whole(a_kind, *a), whole(b_kind, *b)
    zeros = {n: whole(kind, *s) for n, kind, s in (("x0", a_kind, a_zero), ("w0", b_kind, b_zero)) if s is not None}
    kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
    wanted = x.astype(np.int32) - zeros.get("x0", np.zeros((), np.int32)).astype(np.int32)
    wanted = wanted @ (w.astype(np.int32) - zeros.get("w0", np.zeros((), np.int32)).astype(np.int32))
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMulInteger", ["x", "w", *zeros], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", kind, list(x.shape))],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT32, list(wanted.shape))],
        [onnx.numpy_helper.from_array(v, n) for n, v in {"w": w, **zeros}.items()],
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    assert sum(isinstance(op, ContractionOp) for op in import_model(made).graph.block.ops) == 1
    np.testing.assert_array_equal(backend.Rep(made, "cpu", suite.by_reference).run([x])[0], wanted)
