"""Tensors of types that the dialect lacks, which other types hold, give the numbers of NumPy and ml_dtypes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import ml_dtypes
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
    ("dtype", "op"),
    [
        (np.uint16, "Sigmoid"),
        (np.uint64, "Relu"),
        (np.uint32, "ReduceSum"),
        (ml_dtypes.int2, "Add"),
        (ml_dtypes.uint2, "Less"),
        (ml_dtypes.int2, "BitCast"),
        (ml_dtypes.float8_e4m3fnuz, "Mul"),
        (ml_dtypes.float8_e5m2fnuz, "Relu"),
        (ml_dtypes.float4_e2m1fn, "Softmax"),
    ],
)
def test_other_operators_on_held_tensors_are_refused(dtype: Any, op: str) -> None:
    kind = number(dtype)
    name = onnx.TensorProto.DataType.Name(kind)
    attributes = {"to": kind} if op == "BitCast" else {}
    with pytest.raises(UnsupportedOps, match=f"tensors of {name} are not supported by it; cast them to"):
        import_model(
            one_node(op, dict.fromkeys("ab" if op in ("Add", "Less", "Mul") else "a", kind), kind, **attributes)
        )


def one_node(
    op: str, inputs: dict[str, int], kind: int, weights: Any = (), shape: Any = ("n",), **attributes: Any
) -> Any:
    """A model of one operator on tensors of some types and on weights."""
    values = [helper.make_tensor_value_info(n, k, shape) for n, k in inputs.items()]
    node = helper.make_node(op, [*inputs, *(w.name for w in weights)], ["y"], **attributes)
    graph = helper.make_graph([node], "g", values, [helper.make_tensor_value_info("y", kind, shape)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)


def by(run: Any, proto: Any, *arrays: Any) -> Any:
    return backend.Rep(proto, "cpu", run).run(list(arrays))[0]


HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""All numbers of f16."""
NARROW = (ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float4_e2m1fn)
RUNS = [suite.by_reference, pytest.param(backend.compiled, marks=pytest.mark.full)]


def largest(dtype: Any) -> float:
    return float(cast(Any, ml_dtypes).finfo(dtype).max)


def number(dtype: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", NARROW)
def test_floats_become_the_nearest_narrow_ones(dtype: Any, saturate: int, run: Any) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([HALVES, np.ldexp(rng.uniform(-1, 1, 4000), rng.integers(-30, 30, 4000)).astype(np.float32)])
    x = x[~np.isnan(x)] if dtype is ml_dtypes.float4_e2m1fn else x
    most = largest(dtype)
    with np.errstate(invalid="ignore"):
        expected = (np.clip(x, -most, most) if saturate else x).astype(dtype)
    kinds = {"a": number(np.float32)}, number(dtype)
    found = by(run, one_node("Cast", *kinds, shape=x.shape, to=number(dtype), saturate=saturate), x)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats_become_wider_ones(dtype: Any, run: Any) -> None:
    codes = np.arange(16 if dtype is ml_dtypes.float4_e2m1fn else 256, dtype=np.uint8).view(dtype)
    found = by(run, one_node("Cast", {"a": number(dtype)}, number(np.float32), to=number(np.float32)), codes)
    np.testing.assert_array_equal(found, codes.astype(np.float32))


def test_a_cast_of_f64_rounds_once() -> None:
    x = np.array([1 + 2**-4 + 2**-40, 1 + 2**-4, 1 + 3 * 2**-4 - 2**-40])  # beside ties of three bits
    proto = one_node("Cast", {"a": number(np.float64)}, number(NARROW[0]), to=number(NARROW[0]))
    assert by(suite.by_reference, proto, x).astype(float).tolist() == [1.125, 1.0, 1.125]


@pytest.mark.parametrize("dtype", [ml_dtypes.int2, ml_dtypes.uint2])
@pytest.mark.parametrize("source", [np.float32, np.int32, np.int8, np.uint8, np.bool_, np.uint16, np.uint64, np.int64])
def test_numbers_wrap_to_two_bits_and_are_widened(source: Any, dtype: Any) -> None:
    x = np.array([0, 1, 2, 3, 4, 5, 6, 7, 100]).astype(source)
    x = np.concatenate([x, -x]) if np.dtype(source).kind in "if" else x
    narrow, wide = number(dtype), number(source)
    found = by(suite.by_reference, one_node("Cast", {"a": wide}, narrow, to=narrow), x)
    expected = x.astype(np.int64).astype(dtype)
    assert found.dtype == dtype and found.tolist() == expected.tolist()
    back = by(suite.by_reference, one_node("Cast", {"a": narrow}, wide, to=wide), expected)
    assert back.dtype == source and back.tolist() == expected.astype(np.int64).astype(source).tolist()


@pytest.mark.parametrize("dtype", [ml_dtypes.int2, ml_dtypes.uint2, np.uint16, *NARROW])
@pytest.mark.parametrize("block", [0, 3])
def test_numbers_of_scales_are_those_of_onnx(dtype: Any, block: int) -> None:
    """With a scale for each row or for each block of 3 columns, the last one of a row smaller."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-9, 9, (4, 7)).astype(np.float32)
    shape = (4, 3) if block else (4,)
    is_float = dtype in NARROW
    scale = rng.uniform(0.5, 3, shape).astype(np.float32)
    zero = np.zeros(shape, dtype) if is_float else rng.integers(0, 2, shape).astype(dtype)
    weights = [onnx.numpy_helper.from_array(a, n) for a, n in ((scale, "scale"), (zero, "zero"))]
    given = {"axis": 1, "block_size": 3} if block else {"axis": 0}
    kind, full = number(dtype), number(np.float32)
    spread = [np.repeat(a, 3, 1)[:, :7] if block else a[:, None] for a in (scale, zero)]
    quotient = x / spread[0]
    if is_float:
        most = largest(dtype)
        expected = np.clip(quotient, -most, most).astype(dtype)
    else:
        ends = ml_dtypes.iinfo(dtype)
        expected = np.clip(np.rint(quotient) + spread[1].astype(np.float32), int(ends.min), int(ends.max)).astype(dtype)
    found = by(suite.by_reference, one_node("QuantizeLinear", {"a": full}, kind, weights, (4, 7), **given), x)
    assert found.dtype == dtype and found.tolist() == expected.tolist()
    back = by(suite.by_reference, one_node("DequantizeLinear", {"a": kind}, full, weights, (4, 7), **given), found)
    np.testing.assert_allclose(
        back, (expected.astype(np.float32) - spread[1].astype(np.float32)) * spread[0], rtol=1e-6
    )


@pytest.mark.parametrize("dtype", [ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.float4_e2m1fn])
def test_packed_elements_in_another_file_are_read(dtype: Any, tmp_path: Path) -> None:
    weight = np.random.default_rng(0).integers(0, 4 if "int2" in np.dtype(dtype).name else 16, (3, 7), np.uint8)
    weight = weight.astype(np.int8).astype(dtype) if "int2" in np.dtype(dtype).name else weight.view(dtype)
    tensor = onnx.numpy_helper.from_array(weight, "w")
    (tmp_path / "w.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    proto = one_node("Cast", {}, number(np.float32), [tensor], (3, 7), to=number(np.float32))
    onnx.save(proto, tmp_path / "m.onnx")
    imported = import_model(tmp_path / "m.onnx")
    found = imported.named(suite.by_reference(imported, "cpu")({}))["y"]
    np.testing.assert_array_equal(found, weight.astype(np.float32))


WIDE: dict[str, Any] = {"Div": np.floor_divide, "Mod": np.remainder, "BitShift": np.right_shift}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("op", WIDE)
def test_operators_on_the_bits_of_uint64(op: str, run: Any) -> None:
    rng, most = np.random.default_rng(0), np.iinfo(np.uint64).max
    edges = np.array([1, 2, 3, 63, most, most - 1, most // 2, most // 2 + 1], np.uint64)
    a = np.concatenate([np.repeat(edges, len(edges)), rng.integers(0, most, 40, np.uint64)])
    b = np.concatenate([np.tile(edges, len(edges)), rng.integers(1, 1 << 40, 40, np.uint64)])
    attributes = {}
    if op == "BitShift":
        b, attributes = b % np.uint64(64), {"direction": "RIGHT"}
    found = by(run, one_node(op, dict.fromkeys("ab", number(np.uint64)), number(np.uint64), **attributes), a, b)
    assert found.dtype == np.uint64 and found.tolist() == WIDE[op](a, b).tolist()


@pytest.mark.parametrize("element", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_floats_of_uint64_are_rounded_once(element: Any) -> None:
    edges = [0, 1, (1 << 63) - 1, 1 << 63, (1 << 63) + (1 << 39), (1 << 63) + (1 << 39) + 1, (1 << 64) - 1]
    x = np.array(edges, np.uint64)
    found = by(suite.by_reference, one_node("Cast", {"a": number(np.uint64)}, number(element), to=number(element)), x)
    with np.errstate(over="ignore"):
        assert found.astype(float).tolist() == x.astype(element).astype(float).tolist()


def test_floats_become_numbers_of_uint64() -> None:
    x = np.array([0.0, 1.9, 2.0**63, 2.0**63 + 2.0**40, 2.0**64 - 2.0**40], np.float32)
    proto = one_node("Cast", {"a": number(np.float32)}, number(np.uint64), to=number(np.uint64))
    found = by(suite.by_reference, proto, x)
    assert found.tolist() == [0, 1, 1 << 63, (1 << 63) + (1 << 40), (1 << 64) - (1 << 40)]


def test_constants_and_filled_tensors_of_held_types() -> None:
    kind = number(ml_dtypes.int2)
    two = onnx.numpy_helper.from_array(np.array([-2], ml_dtypes.int2))
    nodes = [
        helper.make_node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(np.array([1, -1], ml_dtypes.int2))),
        helper.make_node("Shape", ["a"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["f"], value=two),
    ]
    outputs = [helper.make_tensor_value_info(n, kind, [k]) for n, k in (("c", 2), ("f", 3))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("a", kind, [3])], outputs)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)
    c, f = backend.Rep(proto, "cpu", suite.by_reference).run([np.zeros(3, ml_dtypes.int2)])
    assert (c.tolist(), f.tolist()) == ([1, -1], [-2, -2, -2])


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
