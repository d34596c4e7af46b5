"""From tensors to a module: names, order, dims, size."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.frontend import BuildError, IntVar, Tensor, build_module, ops
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import decode
from tests.effort import at_most
from tests.frontend.support import graph_of


def make_input(name: str | None = "x", batch: IntVar | None = None) -> Tensor:
    return Tensor(shape=[batch or IntVar([1, 8], name="batch"), 4], dtype="float32", name=name, is_input=True)


def test_hints_may_be_the_bounds():
    dim = IntVar([1, 8, 64], name="batch", hints=[1, 32])
    assert "batch = 1 to 64 hints [1, 8, 32]" in str(build_module(make_input("x", dim).mark_as_output("y"), "m"))
    with pytest.raises(BuildError, match="the hint 65 is not between"):
        IntVar([1, 64], name="batch", hints=[65])


def test_text_of_a_small_model():
    x, w, b = make_input(), Tensor(shape=[2, 4], dtype="float32", name="w"), Tensor(shape=[2], dtype="float32")
    y = ops.gemm_rcr_bias_relu()(x, w, b).mark_as_output("y")
    assert (
        str(build_module(y, "small"))
        == """builtin.module {
  ait.graph @small(%x: !ait.tensor<batch x 4 x f32>) dims {batch = 1 to 8} {
    %w = ait.param "w" : !ait.tensor<2 x 4 x f32>
    %0 = ait.gemm rcr %x, %w : !ait.tensor<batch x 2 x f32>
    %1 = ait.param "param_1" : !ait.tensor<2 x f32>
    %2 = ait.add %0, %1 : !ait.tensor<batch x 2 x f32>
    %y = ait.relu %2 : !ait.tensor<batch x 2 x f32>
    ait.output "y" %y : !ait.tensor<batch x 2 x f32>
  }
}"""
    )


def test_building_leaves_the_tensors_as_they_are():
    y = (make_input() + 1.0).mark_as_output("y")
    assert str(build_module(y)) == str(build_module(y))
    assert str(build_module([y, (y * 2.0).mark_as_output("z")])).count("ait.output") == 2  # y is still marked


def names_of_inputs(outputs) -> list[str]:
    return [name for name, _ in graph_of(outputs).inputs()]


def test_inputs_are_numbered_depth_first_from_the_outputs():
    first, unused, second = make_input("first"), make_input("unused"), make_input("second")
    assert names_of_inputs(second - first) == ["second", "first"]
    assert unused._attrs["dst_ops"] == set()
    a, b, c, d = (make_input(name) for name in "abcd")
    assert names_of_inputs([c - b, d + a]) == ["c", "b", "d", "a"]
    assert names_of_inputs(a - (b - c)) == ["b", "c", "a"]  # the deepest operand first
    assert names_of_inputs((d - b) * (c - a)) == ["d", "b", "c", "a"]  # of one depth in order
    assert names_of_inputs([a, -d, a + b]) == ["a", "d", "b"]


def test_other_results_of_an_operator_count_where_it_does():
    a, b, c = (make_input(name) for name in "abc")
    first, second = ops.split()(a, 2, 1)
    assert names_of_inputs([c * 1.5, second + second, first + ops.split()(b, 2, 1)[0]]) == ["c", "a", "b"]


def test_an_input_of_which_only_a_dim_is_used():
    x, y = make_input("x"), Tensor(shape=[IntVar([1, 8], name="n"), 2], dtype="float32", name="y", is_input=True)
    rows = ops.full()([ops.size()(y, 0) + 1, 4], 2.0, "float32")
    graph = graph_of([rows, -x])
    assert [name for name, _ in graph.inputs()] == ["x", "y"] and str(graph.scope) == "batch = 1 to 8, n = 1 to 8"


def test_what_a_step_of_a_scan_captures_is_an_input_after_the_others():
    x, outside = (Tensor(shape=[4], dtype="float32", name=n, is_input=True) for n in ("x", "outside"))
    _, (y,) = ops.scan(lambda part: ([], [part + ops.reduce_sum(0)(outside)]))([x])
    assert names_of_inputs(y) == ["x", "outside"]


def test_unnamed_dims_are_called_after_the_input_and_axis():
    dim = IntVar([1, 8])
    x, z = make_input("x", dim), make_input("z", dim)
    graph = graph_of(ops.concatenate()([x, z], 0))
    assert [str(d.name) for d in graph.scope.dims] == ["x_dim_0"]
    assert str(graph.outputs()[0].value.type) == "!ait.tensor<(2*x_dim_0) x 4 x f32>"


def test_unnamed_dims_can_be_named_later():
    dim = IntVar([1, 8])
    x = make_input("x", dim)
    x.shape()[0]._attrs["name"] = "rows"
    assert [str(d.name) for d in graph_of(-x).scope.dims] == ["rows"]


def test_offsets_are_renamed_with_the_dims():
    x = make_input("x", IntVar([2, 8]))
    text = str(build_module(ops.dynamic_slice()(x, [-1, 0], [None, None])))
    assert "offsets [x_dim_0 - 1, 0]" in text
    assert "_dim0" not in text.replace("x_dim_0", "")


def test_a_list_of_outputs_names_those_that_are_marked():
    x = make_input()
    y = (x + 1.0).mark_as_output("inner")
    z = (y * 2.0).mark_as_output("outer")
    assert [o.output_name.data for o in graph_of([z, y]).outputs()] == ["outer", "inner"]
    with pytest.raises(BuildError, match=r'"inner" .* is marked as an output, but is not in the list'):
        build_module(z)
    with pytest.raises(BuildError, match=r'the list of outputs names "outer" .* twice'):
        build_module([z, y, z])
    with pytest.raises(BuildError, match="is in the list of outputs, but is not marked"):
        build_module([z, y, -x])


def test_states_need_not_be_in_the_list_of_outputs():
    x = make_input()
    state = make_input("state")
    fresh = (state + x).mark_as_output("next", in_place_of=state)
    assert [o.output_name.data for o in graph_of((fresh * 2.0).mark_as_output("y")).outputs()] == ["y", "next"]


def test_an_input_can_be_an_output():
    x = make_input()
    assert [o.output_name.data for o in graph_of([x, -x]).outputs()] == ["x", "output_1"]


def test_a_weight_used_twice_is_one_param():
    w = Tensor(shape=[4, 4], dtype="float32", name="w")
    x = make_input()
    assert len(graph_of(ops.gemm_rcr()(ops.gemm_rcr()(x, w), w)).params()) == 1


def test_a_deep_graph_needs_no_recursion():
    x = make_input()
    y = x
    for _ in range(5000):
        y = -y
    with at_most(1000 * 5000):
        graph = graph_of(y)
    assert len(list(graph.block.ops)) == 5001


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: make_input("a") + make_input("a"), 'two inputs are named "a"'),
        (lambda: [make_input("a") + 1.0, make_input("b") + 2.0], None),
        (lambda: [(make_input("a") + 1.0).mark_as_output("y") for _ in range(2)], 'the list of outputs names "y" .* twice'),
        (lambda: -make_input("é"), "ASCII"),
        (lambda: -make_input(""), "at least one character"),
        (lambda: [], "at least one output"),
        (lambda: ["y"], "an output must be a Tensor"),
        (
            lambda: [make_input("a", IntVar([1, 8], name="n")), make_input("b", IntVar([1, 9], name="n"))],
            'the dim "n" has two ranges: 1 to 8 and 1 to 9',
        ),
    ],
)  # fmt: skip
def test_names_and_ranges_must_agree(make, message):
    if message is None:
        build_module(make())
        return
    with pytest.raises(BuildError, match=message):
        build_module(make())


def test_two_unnamed_dims_given_one_name():
    a, b = IntVar([1, 8]), IntVar([1, 8])
    x, z = make_input("x", a), make_input("z", b)
    a.rename("rows")
    b.rename("rows")
    with pytest.raises(BuildError, match='two dims are named "rows"'):
        build_module([-x, -z])


NASTY = ['"); system("true', "a\nb", "%x", "*/ #include", "a b", "__import__('os')", "\\", "\x01"]


@pytest.mark.parametrize("name", NASTY)
def test_any_name_prints_and_parses_to_the_same_text(name):
    x, w = make_input(name), Tensor(shape=[2, 4], dtype="float32", name=name)
    y = ops.gemm_rcr()(x, w).mark_as_output(name)
    printed = str(build_module(y, "names"))
    again = parse_source(context(), decode(printed.encode(), "names.mlir"))
    assert str(again) == printed
    graph = again.body.block.first_op
    assert isinstance(graph, GraphOp)
    assert [n for n, _ in graph.inputs()] == [name]
    assert [p.param_name.data for p in graph.params()] == [name]
    assert [o.output_name.data for o in graph.outputs()] == [name]
