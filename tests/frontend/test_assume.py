"""Dims that are not proved to be equal or divisible: solved, and checked when the model runs."""

from __future__ import annotations

import numpy as np
import pytest

from ait_mlir.dims import Scope, parse
from ait_mlir.errors import InputError
from ait_mlir.frontend import BuildError, IntVar, Tensor, compile_model, ops
from ait_mlir.frontend.assume import solve_all
from ait_mlir.frontend.intvar import Symbol
from tests.frontend.support import evaluate, graph_of


def solution(scope: str, *equations: str) -> tuple[dict[str, str], str]:
    """The new dims for the dims of a scope, and the remaining scope."""
    symbols = {d.name: Symbol(d.name, d.name, d.lo, d.hi, d.hints, d.upper) for d in Scope.parse(scope)}
    pairs = [tuple(map(parse, equation.split(" == "))) for equation in equations]
    found = solve_all(symbols, pairs)
    return {s: str(e) for s, e in found.values.items()}, str(Scope(s.declaration() for s in found.symbols.values()))


@pytest.mark.parametrize(
    "scope, equations, values, left",
    [
        # a dim becomes another one, with the range and the hints of both
        ("a = 1 to 8 hints [2], b = 2 to 9 hints [4]", ["a == b"], {"b": "a"}, "a = 2 to 8 hints [2, 4]"),
        ("a = 1 to 8, b = 2 to 9", ["a == b", "b == a"], {"b": "a"}, "a = 2 to 8"),
        ("a = 1 to 8, b = 1 to 20", ["2*a + 1 == b"], {"b": "2*a + 1"}, "a = 1 to 8"),
        ("a = 1 to 8, b = 1 to 9", ["b == 2*a"], {"b": "2*a"}, "a = 1 to 4"),
        ("a = 1 to 8, b = 1 to 8, c = 3 to 5", ["a == b", "b == c"], {"b": "a", "c": "a"}, "a = 3 to 5"),
        ("a = 1 to 8, b = 1 to 8, c = 0 to 99", ["c == a + b"], {"c": "a + b"}, "a = 1 to 8, b = 1 to 8"),
        # common factors that are at least 1 are left out
        ("a = 1 to 8, b = 1 to 8, c = 1 to 8", ["6*a*b == 6*c*b"], {"c": "a"}, "a = 1 to 8, b = 1 to 8"),
        # a dim that a number divides, with or without a rest
        ("a = 1 to 9 hints [4, 7]", ["4*(6*a floordiv 4) == 6*a"], {"a": "2*a_by_2"}, "a_by_2 = 1 to 4 hints [2]"),
        ("a = 0 to 9", ["3*((a + 1) floordiv 3) == a + 1"], {"a": "3*a_by_3 + 2"}, "a_by_3 = 0 to 2"),
        ("a = 2 to 9", ["a mod 2 == 0", "a mod 3 == 0"], {"a": "6*a_by_2_by_3", "a_by_2": "3*a_by_2_by_3"},
         "a_by_2_by_3 = 1 to 1"),
        ("a = 1 to 9, a_by_2 = 1 to 2", ["a mod 2 == 0"], {"a": "2*a_by_2_"}, "a_by_2 = 1 to 2, a_by_2_ = 1 to 4"),
    ],
)  # fmt: skip
def test_solutions(scope, equations, values, left):
    assert solution(scope, *equations) == (values, left)


@pytest.mark.parametrize(
    "scope, equation",
    [
        ("a = 1 to 4, b = 5 to 9", "a == b"),  # never
        ("a = 1 to 4", "a == 4"),  # one size of a dynamic dim is a mistake, not a condition
        ("a = 1 to 4", "a == a + 1"),
        ("a = 1 to 8, b = 1 to 8", "2*a == 3*b"),
        ("a = 1 to 8, b = 1 to 8", "(a*b) mod 2 == 0"),
        ("a = 1 to 8, b = 0 to 8, c = 1 to 8", "a*b == c*b"),  # holds for any c where b is 0
        ("a = 1 to 8, b = 1 to 8, c = 2 to 9", "a + b == c"),  # nothing keeps a + b below 10
        ("a = 1 to 8, b = 0 to a bound", "b == a"),  # an op binds b
        ("a = 1 to 1", "a mod 2 == 0"),
        ("a = 1 to 8", "(4*a + 1) mod 2 == 0"),
        ("a = 1 to 8, b = 1 to 8", "a mod b == 0"),
    ],
)
def test_what_cannot_be_said_with_dims(scope, equation):
    with pytest.raises(BuildError, match="cannot be checked"):
        solution(scope, equation)


def rows(name: str, dim: IntVar, columns: int = 4) -> Tensor:
    return Tensor(shape=[dim, columns], dtype="float32", name=name, is_input=True)


def test_dims_of_two_names_become_one():
    a, b = IntVar([1, 8], name="a"), IntVar([2, 16], name="b")
    x, y = rows("x", a), rows("y", b)
    graph = graph_of([x * y, -y, ops.reduce_sum(0)(y)])
    assert str(graph.scope) == "a = 2 to 8"
    assert [str(v.type) for _, v in graph.inputs()] == ["!ait.tensor<a x 4 x f32>"] * 2
    assert str(graph_of([-x, -y]).scope) == "a = 1 to 8, b = 2 to 16"  # nothing asks for it there
    assert a != b


def test_unnamed_dims_become_one():
    x, y = rows("x", IntVar([1, 8])), rows("y", IntVar([1, 8]))
    graph = graph_of(ops.concatenate()([x, y], 1))
    assert str(graph.scope) == "x_dim_0 = 1 to 8"


def test_a_dim_that_must_be_even():
    a = IntVar([1, 9], name="a")
    x = rows("x", a, 6)
    y = ops.reshape()(x, [-1, 4])
    graph = graph_of([y, ops.reshape()(x, [2, a / 2, 6])])
    assert str(graph.scope) == "a_by_2 = 1 to 4"
    assert [str(o.value.type) for o in graph.outputs()] == [
        "!ait.tensor<(3*a_by_2) x 4 x f32>",
        "!ait.tensor<2 x a_by_2 x 6 x f32>",
    ]
    data = np.arange(24.0).reshape(4, 6)
    (got,) = evaluate(y, {"x": data}, a_by_2=2)
    np.testing.assert_array_equal(got, data.reshape(6, 4))
    assert [len(part.shape()) for part in ops.chunk()(x, 2, 0)] == [2, 2]


def test_a_dim_beside_one_that_follows():
    x = rows("x", IntVar([2, 4], name="a"), 30)
    y = ops.reshape()(x, [5, IntVar([2, 4]), 3, -1])
    graph = graph_of(y)
    assert str(graph.scope) == "a = 2 to 4"
    assert [str(o.value.type) for o in graph.outputs()] == ["!ait.tensor<5 x a x 3 x 2 x f32>"]
    for other in (IntVar([2, 5]), IntVar([0, 4]), IntVar([2, 8])):
        with pytest.raises(BuildError, match="the dim that is -1 is not known"):
            ops.reshape()(x, [5, other, 7, -1])


def test_shapes_that_can_never_agree_are_refused_at_once():
    x = rows("x", IntVar([1, 4], name="a"))
    with pytest.raises(BuildError, match=r"dim 0 of rhs is b, but lhs has a there"):
        x + rows("y", IntVar([5, 9], name="b"))
    with pytest.raises(BuildError, match="dim 0 of rhs is 3, but lhs has a there"):
        x + Tensor(shape=[3, 4], dtype="float32", name="w")
    with pytest.raises(BuildError, match="may leave a rest"):
        ops.reshape()(Tensor(shape=[IntVar([1, 4], name="a"), IntVar([1, 4], name="b")], name="z"), [-1, 4])


def test_conditions_that_exclude_each_other():
    a, b, c = (IntVar([low, low + 4], name=name) for name, low in (("a", 1), ("b", 4), ("c", 8)))
    x, y, z = rows("x", a), rows("y", b), rows("z", c)
    total = (x + y) + ops.reduce_sum(0)(y + z)
    with pytest.raises(BuildError, match="cannot be checked together with the other conditions"):
        graph_of(total)


def test_a_run_checks_what_was_assumed(tmp_path):
    a, b = IntVar([1, 8], name="a"), IntVar([1, 8], name="b")
    x, y = rows("x", a), rows("y", b)
    total = ops.reshape()(x + y, [-1, 8]).mark_as_output("total")
    with compile_model(total, "cpu", tmp_path, "assumed") as model:
        data = np.arange(16.0, dtype=np.float32).reshape(4, 4)
        found = model.run_with_tensors({"x": data, "y": data})
        np.testing.assert_array_equal(found["total"], 2 * data.reshape(2, 8))
        with pytest.raises(InputError, match="axis 0 is 2, not 4"):
            model.run_with_tensors({"x": data, "y": data[:2]})
        with pytest.raises(InputError, match="input 'x' has extent 3 on axis 0"):
            model.run_with_tensors({"x": data[:3], "y": data[:3]})
        assert model.get_output_maximum_shape("total") == [4, 8]
