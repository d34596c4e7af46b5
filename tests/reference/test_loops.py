"""The meaning of loops: the texts of lit_tests/dialects/ait/loops.mlir beside NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.ir import Operation

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dialects.ait.structure import op_key
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.reference.core import EvaluationError
from ait_mlir.reference.graph import evaluate_graph

TEXTS = Path(__file__).parents[2] / "lit_tests" / "dialects" / "ait" / "loops.mlir"
RNG = np.random.default_rng(3)


def graphs() -> dict[str, GraphOp]:
    module = parse_text(context(), TEXTS.read_text())
    return {op.sym_name.data: op for op in module.ops if isinstance(op, GraphOp)}


def run(name: str, dims: dict[str, int], **inputs: Any) -> dict[str, Any]:
    return evaluate_graph(graphs()[name], inputs, {}, dims)


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_logsumexp(rows: int) -> None:
    x = RNG.standard_normal((rows, 4096)) * 30
    found = run("logsumexp", {"rows": rows}, x=x)["y"]
    np.testing.assert_allclose(found, np.logaddexp.reduce(x, axis=1), rtol=1e-12)


@pytest.mark.parametrize("s", [0, 1, 7])
def test_softmax_of_a_middle_dim(s: int) -> None:
    x = RNG.standard_normal((2, s, 256))
    found = run("softmax_of_a_middle_dim", {"b": 2, "s": s}, x=x)["y"]
    np.testing.assert_allclose(found, softmax(x, 1), rtol=1e-12)


@pytest.mark.parametrize("w", [0, 1, 3])
def test_resize_of_a_sum(w: int) -> None:
    x, z = RNG.standard_normal((2, 1, 3, 4, w))
    found = run("resize_of_a_sum", {"n": 1, "c": 3, "h": 4, "w": w}, x=x, z=z)["y"]
    np.testing.assert_array_equal(found, (x + z).repeat(2, 2).repeat(2, 3))


def test_pads() -> None:
    x = RNG.integers(-9, 9, (5, 8)).astype(np.int32)
    found = run("pads", {"n": 5}, x=x)
    np.testing.assert_array_equal(found["y"], np.pad(x, ((3, 3), (0, 0)), "reflect")[:, np.arange(14) // 2])
    np.testing.assert_array_equal(found["z"], np.pad(x, 3, constant_values=-7))


def test_embedding_with_a_value_for_ids_outside() -> None:
    table, ids = RNG.standard_normal((100, 24)), RNG.integers(-3, 110, (2, 50))
    found = run("embedding", {"b": 2, "s": 50}, t=table, ids=ids)["y"]
    inside = ((ids >= 0) & (ids < 100))[..., None]
    np.testing.assert_array_equal(found, np.where(inside, table[np.clip(ids, 0, 99)], 0.5))


def test_places() -> None:
    x = RNG.standard_normal((3, 6))
    x[1, 2:4] = np.nan
    x[2, 3:5] = 9.0
    found = run("places", {"b": 3, "s": 6}, x=x)
    np.testing.assert_array_equal(found["m"], np.tri(6, dtype=bool))
    np.testing.assert_array_equal(found["p"], [np.argmax(x[0]), 2, 3])
    shifted = x[:, np.maximum(np.arange(6) - 1, 0)]
    np.testing.assert_allclose(found["t"], np.prod(x + shifted))


@pytest.mark.parametrize("columns", [0, 1, 4])
def test_col2im(columns: int) -> None:
    x = RNG.standard_normal((2, 3, columns))
    expected = np.zeros((2, 2 * columns + 1))
    for step in range(columns):
        expected[:, 2 * step : 2 * step + 3] += x[:, :, step]
    np.testing.assert_allclose(run("col2im", {"n": 2, "l": columns}, x=x)["y"], expected, rtol=1e-12)


def graph(text: str, dims: str = "n = 0 to 8", *inputs: str) -> GraphOp:
    arguments = ", ".join(f"%{name}: !ait.tensor<{t}>" for name, t in zip("xz", inputs, strict=False))
    result = text.rpartition(":")[2]
    module = parse_text(
        context(), f'ait.graph @g({arguments}) dims {{{dims}}} {{\n%y = {text}\nait.output "y" %y :{result}\n}}'
    )
    return cast(GraphOp, next(iter(module.ops)))


def fold(kind: str, t: str, compute: str) -> GraphOp:
    return graph(
        f"""ait.loops(%x) for () {{
        ^bb0(%a: !ait.tensor<n x {t}>):
          %s = ait.fold {kind} for (k0 = n) {{
            %v = ait.at %a[k0] : {compute}
            ait.yield %v : {compute}
          }} : {compute}
          ait.yield %s : {compute}
        }} : !ait.tensor<{t}>""",
        "n = 0 to 8", f"n x {t}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "t", "x", "expected"),
    [
        ("add", "f16", [], 0.0),
        ("mul", "f32", [], 1.0),
        ("max", "f16", [], -np.inf),
        ("min", "i8", [], 127),
        ("max", "f64", [1.0, np.nan, 3.0], np.nan),
        ("add", "i8", [100, 100], -56),
        ("min", "i1", [True, False], False),
        ("max", "i1", [], False),
    ],
)
def test_folds(kind: str, t: str, x: list[Any], expected: Any) -> None:
    dtype = {"i8": np.int8, "i1": np.bool_}.get(t, np.float64)
    compute = "f32" if t == "f16" else t
    found = evaluate_graph(fold(kind, t, compute), {"x": np.array(x, dtype)}, {}, {"n": len(x)})["y"]
    np.testing.assert_array_equal(found, expected)


def test_a_value_outside_of_a_tensor_is_an_error() -> None:
    g = graph(
        """ait.loops(%x, %z) for (d0 = 3) {
        ^bb0(%a: !ait.tensor<n x f32>, %b: !ait.tensor<3 x i64>):
          %i = ait.at %b[d0] : i64
          %v = ait.at %a[%i] : f32
          ait.yield %v : f32
        } : !ait.tensor<3 x f32>""",
        "n = 0 to 8", "n x f32", "3 x i64",
    )  # fmt: skip
    inputs = {"x": np.arange(4.0), "z": np.array([1, 0, 4])}
    with pytest.raises(EvaluationError, match=r"ait\.at: index 4 for dim 0, which has 4"):
        evaluate_graph(g, inputs, {}, {"n": 4})
    inputs["z"][2] = 3
    np.testing.assert_array_equal(evaluate_graph(g, inputs, {}, {"n": 4})["y"], [1, 0, 3])


SUM = """ait.loops(%x) for (d0 = n) {
^bb0(%a: !ait.tensor<n x 4 x f32>):
  %s = ait.fold add for (k0 = 4) {
    %v = ait.at %a[d0, k0] : f32
    ait.yield %v : f32
  } : f32
  %w = ait.at %a[d0, 1] : f32
  %r = ait.mul %s, %w : f32
  ait.yield %r : f32
} : !ait.tensor<n x f32>"""


def nest(text: str) -> LoopsOp:
    return next(op for op in graph(text, "n = 0 to 8", "n x 4 x f32").walk() if isinstance(op, LoopsOp))


def test_equal_loops_are_equal() -> None:
    assert op_key(nest(SUM)) == op_key(nest(SUM.replace("%v", "%q")))


@pytest.mark.parametrize(
    ("old", "new"),
    [("add", "max"), ("k0]", "0]"), ("mul %s, %w", "mul %w, %s"), ("1] :", "1] else 0.0 :"), ("(k0 = 4)", "(k0 = 3)")],
)
def test_other_loops_are_not(old: str, new: str) -> None:
    assert op_key(nest(SUM)) != op_key(nest(SUM.replace(old, new)))


def cost(measure: Callable[[LoopsOp], Any], name: str, **dims: int) -> int:
    ops: list[Operation] = list(graphs()[name].walk())
    return measure(next(op for op in ops if isinstance(op, LoopsOp))).evaluate(dims)


def test_cost() -> None:
    """Work that does not depend on a dim counts once; no read moves more than the operand has."""
    assert cost(LoopsOp.flops, "logsumexp", rows=3) == 3 * (4096 + 3 * 4096 + 2)
    assert cost(LoopsOp.flops, "softmax_of_a_middle_dim", b=2, s=7) == 2 * 7 * 256 * (1 + 3 + 3)
    assert cost(lambda op: op.bytes_read(0), "softmax_of_a_middle_dim", b=2, s=7) == 2 * 7 * 256 * 4
    assert cost(lambda op: op.bytes_read(0), "embedding", b=2, s=1) == 2 * 24 * 2
    assert cost(lambda op: op.bytes_read(1), "embedding", b=2, s=1) == 2 * 8
