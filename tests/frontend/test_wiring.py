"""Graphs that are changed through `_attrs`: operators in other places, tensors without operators, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ait_mlir.frontend import BuildError, Tensor, build_module, ops
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.frontend.stable_set import StableSet
from ait_mlir.frontend.wiring import toposort
from tests.frontend.support import evaluate, graph_of

X, Z = np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.5, 4.0])


def vector(name: str, size: int = 3) -> Tensor:
    return Tensor(shape=[size], dtype="float32", name=name, is_input=True)


def source(tensor: Tensor):
    (operator,) = tensor._attrs["src_ops"]
    return operator


def test_an_operator_reads_another_tensor():
    x, z = vector("x"), vector("z")
    y = ops.elementwise(FuncEnum.SOFTSIGN)(x) * 2.0  # several ops of the IR read x
    softsign = source(source(y)._attrs["inputs"][0])
    softsign.replace_input_tensor(x, z)
    assert softsign._attrs["inputs"] == [z]
    (got,) = evaluate(y, {"z": Z})
    np.testing.assert_allclose(got, 2 * Z / (1 + abs(Z)))
    softsign._attrs["inputs"][0] = x
    (got,) = evaluate(y, {"x": X})
    np.testing.assert_allclose(got, 2 * X / (1 + abs(X)))


def test_another_operator_computes_a_tensor():
    x = vector("x")
    y = -x
    total = (y + 1.0).mark_as_output("total")
    exp = ops.elementwise(FuncEnum.EXP)
    exp(x)
    y._attrs["src_ops"] = StableSet([exp])
    exp._attrs["outputs"] = [y]
    assert [op._attrs["func"].name for t in toposort(total) for op in t.src_ops()] == ["EXP", "ADD"]
    (got,) = evaluate(total, {"x": X})
    np.testing.assert_allclose(got, np.exp(X) + 1)


def test_an_output_computed_by_another_operator():
    x = vector("x")
    y = (x * 3.0).mark_as_output("y")
    half = ops.elementwise(FuncEnum.MUL)
    half(x, 0.5)
    y._attrs["src_ops"].clear()
    y._attrs["src_ops"].add(half)
    half._attrs["outputs"][0] = y
    (got,) = evaluate(y, {"x": X})
    np.testing.assert_array_equal(got, X / 2)


def test_a_tensor_without_an_operator_is_a_weight():
    x = vector("x")
    y = -x
    y._attrs["name"] = "w"
    total = y + x
    y._attrs["src_ops"].clear()
    assert 'ait.param "w"' in str(build_module(total))
    y._attrs["is_input"] = True
    (got,) = evaluate(total, {"w": Z, "x": X})
    np.testing.assert_array_equal(got, X + Z)


def never_called(x: Tensor):
    y = Tensor(shape=[3], dtype="float32", src_ops={neg := ops.elementwise(FuncEnum.NEG)})
    neg._attrs["inputs"], neg._attrs["outputs"] = [x], [y]
    return y


def of_two_operators(x: Tensor):
    y = -x
    y._attrs["src_ops"].add(source(x * 2.0))
    return y


def not_in_the_outputs(x: Tensor):
    y = -x
    y._attrs["src_ops"] = {source(x * 2.0)}
    return y


def more_inputs(x: Tensor):
    y = -x
    source(y)._attrs["inputs"].append(x)
    return y


def another_shape(x: Tensor):
    y = -x
    source(y).replace_input_tensor(x, vector("other", 4))
    return y


def once_two_now_different(x: Tensor):
    y = x * x
    source(y)._attrs["inputs"] = [x, vector("z")]
    return y


def a_cycle(x: Tensor):
    y = -x
    z = y * 2.0
    source(y).replace_input_tensor(x, z)
    return z


@pytest.mark.parametrize(
    "make, message",
    [
        (never_called, "elementwise.NEG.*was not called on its inputs"),
        (of_two_operators, "has 2 source operators"),
        (not_in_the_outputs, "is not in the operator's outputs"),
        (more_inputs, "was called with 1 inputs and has 2 now; call it again"),
        (another_shape, r'input 0 of .* was "x" \[3\] float32 and is "other" \[4\] float32 now'),
        (once_two_now_different, "was called with .* twice"),
        (a_cycle, "elementwise.* depends on its own result"),
    ],
)
def test_changes_that_make_no_graph(make, message):
    with pytest.raises(BuildError, match=message):
        build_module(make(vector("x")))


def test_toposort_lists_tensors_after_what_they_depend_on():
    x, w = vector("x"), Tensor(shape=[3], dtype="float32", name="w")
    a = x + w
    first, second = ops.split()(a, [1, 2], 0)
    y = ops.concatenate()([second, first])
    order = toposort(y)
    assert order[:3] == [x, w, a] and order[-1] is y and set(order[3:5]) == {first, second}
    deep = x
    for _ in range(3000):
        deep = -deep
    assert len(toposort([deep])) == 3001


def test_a_stable_set_keeps_the_order():
    names = StableSet("cab")
    names.add("a")
    names.update("dc", "e")
    assert list(names) == list("cabde") and names == set("abcde") and len(names) == 5
    names.discard("z")
    names.remove("a")
    assert "a" not in names and list(names.copy() | {"f"}) == list("cbdef")
    assert repr(StableSet([1])) == "StableSet([1])"
    assert (StableSet("cab")[0], StableSet("cab")[-1]) == ("c", "b")
    with pytest.raises(IndexError):
        _ = StableSet[int]()[0]


def test_an_operator_of_others_has_the_tensors_of_its_call_as_inputs() -> None:
    class TanhTimes(Operator):
        def __call__(self, x: Tensor, y: Tensor) -> Tensor:
            return ops.tanh(x) * y

    x, y = (Tensor([4], name=name, dtype="float32", is_input=True) for name in "xy")
    operator = TanhTimes()
    z = operator(x, y=y)
    assert operator.inputs == [x, y]
    z.mark_as_output("z")
    assert [op.name for op in graph_of(z).block.ops] == ["ait.tanh", "ait.mul", "ait.output"]


@pytest.mark.parametrize("nodes", [3, None, [vector("x"), "y"]])
def test_only_tensors_have_an_order(nodes: Any):
    with pytest.raises(BuildError, match=r"toposort takes tensors, found (3|None|'y')"):
        toposort(nodes)
