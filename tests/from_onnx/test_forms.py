"""Inputs that are sequences or optionals, for the forms of examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")

from ait_mlir.importers.onnx import ImportFailure, backend, import_model  # noqa: E402
from tests.from_onnx import suite  # noqa: E402

helper = onnx.helper
TENSOR = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, ["n"])
SEQUENCE = helper.make_sequence_type_proto(TENSOR)
OPTIONAL = helper.make_optional_type_proto(TENSOR)


def model(node: Any, types: dict[str, Any], result: Any) -> Any:
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_value_info(name, t) for name, t in types.items()],
        [helper.make_value_info("y", result)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def test_elements_of_a_sequence_are_inputs_of_the_module() -> None:
    made = model(helper.make_node("ConcatFromSequence", ["x"], ["y"], axis=0), {"x": SEQUENCE}, TENSOR)
    imported = import_model(made, forms={"x": [np.zeros(2), np.zeros(3)]})
    assert [name for name, _ in imported.graph.inputs()] == ["x_0", "x_1"] and imported.inputs == ["x"]
    rep = backend.Rep(made, "cpu", suite.by_reference)
    for shapes in ((2, 3), (1,), (3, 1, 2)):
        parts = [np.arange(n, dtype=np.float32) for n in shapes]
        assert np.array_equal(rep.run([parts])[0], np.concatenate(parts))


def test_an_optional_without_a_value_is_none() -> None:
    made = model(helper.make_node("Identity", ["x"], ["y"]), {"x": OPTIONAL}, OPTIONAL)
    rep = backend.Rep(made, "cpu", suite.by_reference)
    assert rep.run([None]) == (None,)
    assert rep.run([np.ones(2, np.float32)])[0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("forms", "expected"),
    [
        (None, "give an example of a sequence by `forms`"),
        ({"x": np.zeros(2)}, "input 'x' is a sequence, found ndarray"),
        ({"x": [[np.zeros(2)]]}, "input 'x_0' is a tensor, found list"),
        ({"z": []}, "'z'"),
        ({"x": [np.zeros(2)]}, "two tensors of the inputs have the name 'x_0'"),
    ],
)
def test_examples_that_do_not_fit_are_refused(forms: Any, expected: str) -> None:
    made = model(helper.make_node("SequenceAt", ["x", "x_0"], ["y"]), {"x": SEQUENCE, "x_0": TENSOR}, TENSOR)
    made.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    with pytest.raises(ImportFailure) as caught:
        import_model(made, forms=forms)
    assert expected in str(caught.value)
