"""Quantised models from ONNX: weights stay packed, and scales that no value can have are errors with their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")

import ait_mlir  # noqa: E402
from ait_mlir.importers.onnx import import_model  # noqa: E402
from tests.from_onnx.test_refusals import FLOAT, model, node, refused  # noqa: E402

helper, TensorProto = onnx.helper, onnx.TensorProto
NUMBERS = np.random.default_rng(0).integers(-8, 8, (8, 5)).astype(np.int8)
SCALE = onnx.numpy_helper.from_array(np.full((8, 3), 0.25, np.float32), "s")


def weighted(weight: Any, scale: Any = SCALE, zero: Any = None, **attributes: Any) -> Any:
    """x + the values of a quantised weight."""
    given = [t for t in (weight, scale, zero) if t is not None]
    attributes = attributes or {"axis": 1, "block_size": 2}
    nodes = [
        node("DequantizeLinear", [t.name for t in given], ["d"], "dq", **attributes),
        node("Add", ["x", "d"], ["y"]),
    ]
    return model(nodes, [("x", FLOAT, [8, 5])], initializers=given, opset=21)


def packed(numbers: np.ndarray[Any, Any]) -> bytes:
    flat = np.append(numbers.reshape(-1).view(np.uint8) & 15, np.zeros(numbers.size % 2, np.uint8))
    return (flat[::2] | flat[1::2] << 4).tobytes()


def int4(numbers: np.ndarray[Any, Any] = NUMBERS) -> Any:
    return helper.make_tensor("w", TensorProto.INT4, numbers.shape, packed(numbers), raw=True)


def check(made: Any) -> None:
    imported = import_model(made)
    stored = imported.constants["w"]
    assert stored.dtype == np.uint8 and stored.shape == (8, 3) and "ait.unpack" in str(imported.module)
    x = np.random.default_rng(1).standard_normal((8, 5), np.float32)
    np.testing.assert_allclose(ait_mlir.load_onnx(made)(x)["y"], x + NUMBERS * np.float32(0.25), rtol=1e-6)


def test_weights_of_4_bits_stay_packed() -> None:
    check(weighted(int4()))


def test_weights_of_4_bits_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(packed(NUMBERS))
    weight = TensorProto(name="w", data_type=TensorProto.INT4, dims=[8, 5], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="w.bin")
    path = tmp_path / "model.onnx"
    path.write_bytes(weighted(weight).SerializeToString())
    check(path)


def test_tensors_of_8_bits_go_in_and_out() -> None:
    e4m3 = TensorProto.FLOAT8E4M3FN
    made = model(
        [node("Cast", ["x"], ["f"], to=FLOAT), node("Add", ["f", "f"], ["g"]), node("Cast", ["g"], ["y"], to=e4m3)],
        [("x", e4m3, [3, 4])],
    )
    made.graph.output[0].type.tensor_type.elem_type = e4m3
    x = np.linspace(-300, 300, 12, dtype=np.float32).reshape(3, 4).astype(ml_dtypes.float8_e4m3fn)
    (y,) = ait_mlir.load_onnx(made)(x).values()
    want = np.clip(2 * x.astype(np.float32), -448, 448).astype(ml_dtypes.float8_e4m3fn)
    assert y.dtype == want.dtype and y.tobytes() == want.tobytes()


def scale_of(number: float) -> Any:
    return onnx.numpy_helper.from_array(np.array([0.5] * 23 + [number], np.float32).reshape(8, 3), "s")


CUT = int4()
CUT.raw_data = CUT.raw_data[:19]
E4M3 = helper.make_tensor("w", TensorProto.FLOAT8E4M3FN, [8, 5], np.ones(40, np.float32))
BAD = {
    "zero": (weighted(int4(), scale_of(0)), "the scale 's' has the number 0.0, expected finite numbers above 0"),
    "negative": (weighted(int4(), scale_of(-1)), "the scale 's' has the number -1.0"),
    "nan": (weighted(int4(), scale_of(np.nan)), "the scale 's' has the number nan"),
    "infinite": (weighted(int4(), scale_of(np.inf)), "the scale 's' has the number inf"),
    "blocks": (weighted(int4(), axis=1, block_size=4), "the scale has shape [8, 3], expected [8, 2]"),
    "axis": (weighted(int4(), axis=0, block_size=2), "the scale has shape [8, 3], expected [4, 5]"),
    "no blocks": (weighted(int4(), axis=1), "a scale of rank 2 without block_size"),
    "bytes": (weighted(CUT), "raw_data size (19 bytes) is too small"),
    "zero point": (
        weighted(E4M3, zero=helper.make_tensor("z", TensorProto.FLOAT8E4M3FN, [8, 3], np.ones(24, np.float32))),
        "the zero point 'z' of a float type is not 0",
    ),
    "fnuz": (
        weighted(
            helper.make_tensor("w", TensorProto.FLOAT8E4M3FNUZ, [8, 5], np.ones(40, np.float32)),
            zero=helper.make_tensor("z", TensorProto.FLOAT8E4M3FNUZ, [8, 3], np.ones(24, np.float32)),
        ),
        "the zero point 'z' of a float type is not 0",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_scales_are_errors(name: str) -> None:
    made, message = BAD[name]
    assert message in refused(made)
