"""What exporters write as several nodes becomes the one op that it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
from onnx.reference import ReferenceEvaluator  # noqa: E402

from ait_mlir.importers.onnx import backend, import_model  # noqa: E402
from tests.from_onnx import suite  # noqa: E402
from tests.from_onnx.test_refusals import FLOAT, model, node  # noqa: E402


def array(name: str, *numbers: float, dtype: Any = np.float32) -> Any:
    return onnx.numpy_helper.from_array(np.array(numbers, dtype), name)


def check(made: Any, x: Any) -> str:
    """The text of the module, which gives what onnx's own evaluator gives."""
    (expected,) = ReferenceEvaluator(made).run(None, {"x": x})
    (found,) = backend.Rep(made, "cpu", suite.by_reference).run([x])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    return str(import_model(made).module)


def group_norm(shape: tuple[int, ...], scale: float = 1.0, bias: float = 0.0) -> str:
    """An instance norm in another shape, which exporters write for a group norm."""
    groups = 4 if shape[1] < 1 else shape[1]
    made = model(
        [
            node("Reshape", ["x", "grouped"], ["a"]),
            node("InstanceNormalization", ["a", "s", "b"], ["n"], epsilon=1e-3),
            node("Reshape", ["n", "whole"], ["y"]),
        ],
        [("x", FLOAT, [2, 6, 4, 5])],
        initializers=[
            array("grouped", *shape, dtype=np.int64),
            array("whole", 2, 6, 4, 5, dtype=np.int64),
            array("s", *[scale] * groups),
            array("b", *[bias] * groups),
        ],
    )
    return check(made, np.random.default_rng(0).standard_normal((2, 6, 4, 5), dtype=np.float32))


def test_an_instance_norm_of_groups_is_a_group_norm() -> None:
    assert "ait.group_norm %x dim 1 groups 3 eps 0.001" in group_norm((0, 3, -1))
    assert "ait.group_norm %x dim 1 groups 6 eps 0.001" in group_norm((2, 6, 20))


@pytest.mark.parametrize(
    ("shape", "scale", "bias"), [((0, 3, -1), 2.0, 0.0), ((0, 3, -1), 1.0, 0.5), ((1, 3, -1), 1.0, 0.0), ((2, 12, 10), 1.0, 0.0)]
)  # fmt: skip
def test_other_instance_norms_stay(shape: tuple[int, ...], scale: float, bias: float) -> None:
    """Those with a scale or a bias of each group, of a batch in another shape, and of parts of channels."""
    assert "ait.group_norm %x" not in group_norm(shape, scale, bias)


def taken(*steps: int, offset: int = 0) -> str:
    """Elements of a flat tensor at an index that a model computes of its indices, as exporters write a strided view."""
    made = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["rows"]),
            node("Reshape", ["x", "flat"], ["f"]),
            node("Range", ["zero", "rows", "one"], ["r"]),
            node("Mul", ["step", "r"], ["m"]),
            node("Unsqueeze", ["m", "last"], ["u"]),
            node("Add", ["u", "columns"], ["i"]),
            node("Gather", ["f", "i"], ["y"]),
        ],
        initializers=[
            array("flat", -1, dtype=np.int64),
            array("last", 1, dtype=np.int64),
            array("columns", *(n + offset for n in steps), dtype=np.int64),
            *(onnx.numpy_helper.from_array(np.array(n), name) for name, n in (("zero", 0), ("one", 1), ("step", 4))),
        ],
    )
    return check(made, np.random.default_rng(0).standard_normal((3, 4), dtype=np.float32))


def test_an_index_of_equal_steps_is_a_view() -> None:
    assert "gather" not in taken(0, 1, 2, 3) and "embedding" not in taken(0, 1, 2, 3)
    assert "gather" not in taken(0, 2)


def test_other_indices_are_read() -> None:
    """Those of unequal steps, and those that are not proved to be within the tensor."""
    assert "gather" in taken(0, 1, 3, 2)
    assert "gather" in taken(0, 1, 2, 3, offset=-1)


def places(offset: int = 0, step: int = 1) -> str:
    """Rows of a table of 4,100 rows at places that a model computes of its indices, added to the input."""
    made = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["rows"]),
            node("Range", ["zero", "rows", "one"], ["r"]),
            node("Mul", ["r", "step"], ["m"]),
            node("Add", ["m", "offset"], ["p"]),
            node("Unsqueeze", ["p", "last"], ["i"]),
            node("GatherND", ["table", "i"], ["t"]),
            node("Add", ["x", "t"], ["y"]),
        ],
        [("x", FLOAT, ["rows", 4])],
        initializers=[
            array("last", 1, dtype=np.int64),
            onnx.numpy_helper.from_array(np.arange(16400, dtype=np.float32).reshape(4100, 4), "table"),
            *(
                onnx.numpy_helper.from_array(np.array(n), name)
                for name, n in (("zero", 0), ("one", 1), ("step", step), ("offset", offset))
            ),
        ],
    )
    return check(made, np.random.default_rng(0).standard_normal((3, 4), dtype=np.float32))


@pytest.mark.parametrize("offset", [0, 3])
def test_consecutive_places_are_a_slice(offset: int) -> None:
    text = places(offset)
    assert "gather" not in text and f"offsets [{offset}, 0] : !ait.tensor<rows x 4 x f32>" in text


@pytest.mark.parametrize(("offset", "step"), [(-1, 1), (5, 1), (0, 2), (4096, -1)])
def test_other_places_are_read(offset: int, step: int) -> None:
    """Those that count from the end or may be behind the table, with gaps, or in descending order."""
    assert "gather" in places(offset, step)


def positions(most: int) -> str:
    """The places of rows, multiplied to numbers up to `most`, as f32, added to the input."""
    made = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["rows"]),
            node("Range", ["zero", "rows", "one"], ["r"]),
            node("Mul", ["r", "step"], ["m"]),
            node("Cast", ["m"], ["f"], to=FLOAT),
            node("Unsqueeze", ["f", "last"], ["u"]),
            node("Add", ["x", "u"], ["y"]),
        ],
        [("x", FLOAT, ["rows", 4])],
        initializers=[
            array("last", 1, dtype=np.int64),
            *(
                onnx.numpy_helper.from_array(np.array(n), name)
                for name, n in (("zero", 0), ("one", 1), ("step", most // 4095))
            ),
        ],
    )
    return check(made, np.zeros((3, 4), np.float32))


def test_positions_are_counted_in_a_type_that_has_them() -> None:
    assert "ait.cast" not in positions(4095) and "ait.cast" not in positions(2**24)
    assert "ait.cast" in positions(2**25)
