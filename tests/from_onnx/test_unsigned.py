"""Tensors of unsigned types that the dialect lacks give the numbers of NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")

from ait_mlir.importers.onnx import UnsupportedOps, backend, import_model  # noqa: E402
from ait_mlir.tools.cli import main  # noqa: E402
from tests.from_onnx import suite  # noqa: E402

helper = onnx.helper
BOOL = onnx.TensorProto.BOOL
RESULTS: dict[str, Any] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "BitwiseXor": np.bitwise_xor,
    "Max": np.maximum,
    "Min": np.minimum,
    "Less": np.less,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
}


def model(dtype: Any) -> Any:
    """All operators of `RESULTS` on two inputs, and casts of the sum and a constant with the highest bit."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    high = onnx.numpy_helper.from_array(np.array([np.iinfo(dtype).max, 1], dtype), "high")
    nodes = [helper.make_node(op, ["a", "b"], [op]) for op in RESULTS]
    nodes += [helper.make_node("Concat", ["Mul", "high"], ["joined"], axis=0)]
    types = {op: BOOL if op in ("Less", "GreaterOrEqual", "Equal") else kind for op in RESULTS} | {"joined": kind}
    inputs = [helper.make_tensor_value_info(n, kind, ["n"]) for n in "ab"]
    outputs = [helper.make_tensor_value_info(n, t, ["m"]) for n, t in types.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [high])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.mark.parametrize(
    ("dtype", "run"),
    [
        *((t, suite.by_reference) for t in (np.uint16, np.uint32, np.uint64)),
        (np.uint64, backend.compiled),
        pytest.param(np.uint16, backend.compiled, marks=pytest.mark.full),
        pytest.param(np.uint32, backend.compiled, marks=pytest.mark.full),
    ],
)
def test_unsigned_tensors_give_the_numbers_of_numpy(dtype: Any, run: Any) -> None:
    rng, most = np.random.default_rng(0), np.iinfo(dtype).max
    edges = np.array([0, 1, most, most - 1, most // 2, most // 2 + 1], dtype)
    a = np.concatenate([np.repeat(edges, len(edges)), rng.integers(0, most, 40, dtype, endpoint=True)])
    b = np.concatenate([np.tile(edges, len(edges)), rng.integers(0, most, 40, dtype, endpoint=True)])
    made = model(dtype)
    found = dict(zip([o.name for o in made.graph.output], backend.Rep(made, "cpu", run).run([a, b]), strict=True))
    expected = {op: function(a, b) for op, function in RESULTS.items()}
    expected["joined"] = np.concatenate([expected["Mul"], np.array([most, 1], dtype)])
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array), name


@pytest.mark.parametrize(
    ("dtype", "op"), [(np.uint16, "Sigmoid"), (np.uint64, "Div"), (np.uint64, "Mod"), (np.uint32, "ReduceSum")]
)
def test_other_operators_on_unsigned_tensors_are_refused(dtype: Any, op: str) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [helper.make_tensor_value_info(n, kind, ["n"]) for n in "ab"]
    node = helper.make_node(op, ["a", "b"] if op in ("Div", "Mod") else ["a"], ["y"])
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", kind, ["n"])])
    with pytest.raises(UnsupportedOps, match=f"tensors of {np.dtype(dtype).name.upper()} are not supported by it"):
        import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))


def test_the_command_takes_and_gives_unsigned_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    kind = onnx.TensorProto.UINT16
    values = [helper.make_tensor_value_info(n, kind, [2]) for n in "aby"]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "g", values[:2], values[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), "sum.onnx")
    np.save("a.npy", np.array([65535, 4], np.uint16))
    np.save("y.npy", np.array([0, 5], np.uint16))
    given = ["--input", "a=@a.npy", "--input", "b=ones:2"]
    assert main(["run", "sum.onnx", *given, "--compare", "y=y.npy", "--output", "y=@found.npy"]) == 0
    assert "y: uint16 [2]" in capsys.readouterr().out
    assert np.load("found.npy").tolist() == [0, 5] and np.load("found.npy").dtype == np.uint16
    np.save("a.npy", np.array([1, 4], np.int32))
    assert main(["run", "sum.onnx", *given]) != 0
    assert "has dtype int32, expected uint16" in capsys.readouterr().err
