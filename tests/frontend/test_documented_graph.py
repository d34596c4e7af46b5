"""The graph in the documented operators that `Model.debug_sorted_graph` shows, and the helpers for checking graphs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ait_mlir.compiler.transform import toposort, transform_utils
from ait_mlir.compiler.transform.documented_graph import documented_graph
from ait_mlir.compiler.transform.fuse_ops import _get_inputs_outputs
from ait_mlir.compiler.transform.transform_utils import check_graph_validity
from ait_mlir.frontend import BuildError, IntVar, Tensor, ops
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.utils.graph_utils import get_sorted_ops
from tests.frontend.support import evaluate

ADD, MUL, RELU, COS = FuncEnum.ADD, FuncEnum.MUL, FuncEnum.RELU, FuncEnum.COS
ROWS = IntVar([1, 8], name="rows")


def x(name: str, *shape: int | IntVar) -> Tensor:
    return Tensor(shape=list(shape), dtype="float64", name=name, is_input=True)


def named(tensor: Tensor, name: str) -> Tensor:
    tensor._attrs["name"] = name
    return tensor


def names(outputs: Tensor | Sequence[Tensor], **options: bool) -> list[str]:
    given = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    for i, tensor in enumerate(given):
        tensor.mark_as_output(tensor.name or f"out_{i}")
    graph = documented_graph(given, **options)
    assert check_graph_validity(graph, raiseError=True) and all(tensor.name for tensor in graph)
    return [op._attrs["op"] for op in get_sorted_ops(graph)]


def product(bias: bool = True) -> Tensor:
    y = ops.gemm_rcr()(x("a", ROWS, 8), x("w", 4, 8))
    return ops.elementwise(ADD)(y, x("b", 4)) if bias else y


def chain(*functions: FuncEnum) -> Tensor:
    y = product()
    for i, function in enumerate(functions):
        y = ops.elementwise(function)(y, *[x(f"d{i}", ROWS, 4)] * (function in (ADD, MUL)))
    return y


CHAINS = {
    "bias": (),
    "bias_add": (ADD,),
    "bias_add_add_relu": (ADD, ADD, RELU),
    "bias_mul_tanh": (MUL, FuncEnum.TANH),
    "bias_sigmoid_mul_tanh": (FuncEnum.SIGMOID, MUL, FuncEnum.TANH),
    "bias_hardswish": (FuncEnum.HARDSWISH,),
    "bias_swish": (FuncEnum.SILU,),
    "bias_fast_gelu": (FuncEnum.FASTGELU,),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_product_has_the_longest_documented_epilogue(name: str):
    y = named(chain(*CHAINS[name]), "kept")
    last = ops.elementwise(COS)(y).mark_as_output("last")
    graph = documented_graph([last])
    made = {t.name: [op._attrs["op"] for op in t.src_ops()] for t in graph if t.src_ops()}
    assert made == {"kept": [f"gemm_rcr_{name}"], "last": ["fused_elementwise"]}


def test_a_product_with_its_sigmoid_is_a_swish():
    """x * sigmoid(x), in either order, if nothing else reads x or the sigmoid, and neither is an output."""
    sigmoid, times = ops.elementwise(FuncEnum.SIGMOID), ops.elementwise(MUL)
    y = product()
    assert names(times(y, sigmoid(y))) == ["gemm_rcr_bias_swish"]
    y = product()
    assert names(times(sigmoid(y), y) + x("d", ROWS, 4)) == ["gemm_rcr_bias_swish", "fused_elementwise"]
    y = product()
    assert names([times(y, sigmoid(y)), ops.cos(y)]) == ["gemm_rcr_bias", *["fused_elementwise"] * 2]
    y = product()
    gate = sigmoid(y)
    assert names([times(y, gate), gate]) == ["gemm_rcr_bias", "fused_elementwise"]
    y = product()
    assert names(times(sigmoid(y), x("e", ROWS, 4))) == ["gemm_rcr_bias_sigmoid_mul"]


def test_few_channels_keep_their_name():
    image, window, bias = x("i", 2, 6, 6, 4), x("w", 8, 3, 3, 4), x("b", 8)
    y = ops.relu(ops.conv2d_bias_few_channels(1, 1)(image, window, bias))
    assert names(y) == ["conv2d_bias_relu_few_channels"]


def test_a_batched_product_adds_only_whole_rows_for_all_batches():
    def y() -> Tensor:
        return ops.bmm_ccr()(x("a", ROWS, 8, 3), x("b", ROWS, 4, 8))

    for shape in ((ROWS, 3, 4), (3, 4), (1, 3, 4), (4,), (1, 1, 4)):
        assert names(y() + x("d", *shape)) == ["bmm_ccr_add"]
    for shape in ((ROWS, 1, 4), (3, 1), (1,)):
        assert names(y() + x("d", *shape)) == ["bmm_ccr", "fused_elementwise"]


def test_norms_that_do_not_wait_for_each_other_are_a_group():
    """With rows for one kernel, and a scale and a shift each."""

    def norm(t: Tensor, eps: float = 1e-5) -> Tensor:
        rows = t.shape()[-1]
        return ops.layernorm()(t, x(f"g{t.name}", rows), x(f"b{t.name}", rows), eps=eps)

    def gated(t: Tensor) -> Tensor:
        return ops.elementwise(MUL)(ops.elementwise(FuncEnum.SIGMOID)(norm(t)), t)

    assert names([norm(x("p", ROWS, 8)), norm(x("q", ROWS, 60))]) == ["group_layernorm"]
    assert names([gated(x("p", ROWS, 128)), gated(x("q", ROWS, 508))]) == ["group_layernorm_sigmoid_mul"]
    for shapes in (((ROWS, 128), (ROWS, 512)), ((ROWS, 128), (ROWS, 129)), ((4, 8), (ROWS, 8)), ((ROWS, 4096), (ROWS, 4100))):
        assert names([norm(x(f"t{i}", *shape)) for i, shape in enumerate(shapes)]) == ["layernorm"] * 2
    assert names([norm(x("p", ROWS, 8)), norm(x("q", ROWS, 8), 1e-3)]) == ["layernorm"] * 2
    assert names(norm(named(ops.cos(norm(x("p", ROWS, 8))), "r"))) == ["layernorm", "fused_elementwise", "layernorm"]
    p, q = norm(x("p", ROWS, 8)), ops.layernorm()(x("q", ROWS, 8), normalized_shape=[8])
    assert names([p, q]) == ["layernorm"] * 2
    first = norm(x("p", ROWS, 8))
    assert names([first, norm(x("q", ROWS, 8)), norm(named(ops.cos(first), "s"))]) == [
        "group_layernorm", "fused_elementwise", "layernorm",
    ]  # fmt: skip


def test_a_factor_of_a_batched_product_is_its_alpha():
    """The number, as a constant or as it is, on either side; a divisor only behind the product. Where something else
    reads the product, or the number divides by it, nothing joins."""
    half = Tensor(shape=[], value=0.5, dtype="float64")

    def made(last: Tensor) -> list[tuple[str, float | None]]:
        graph = documented_graph([last.mark_as_output("last")])
        return [(op._attrs["op"], op._attrs.get("alpha")) for op in get_sorted_ops(graph)]

    def bmm() -> Tensor:
        return ops.bmm_crr()(x("a", 2, 8, ROWS), x("b", 2, 8, 4))

    for y in (bmm() * 0.5, ops.elementwise(MUL)(half, bmm()), bmm() / 2):
        assert made(y) == [("bmm_crr", 0.5)]
    assert made(ops.elementwise(FuncEnum.DIV)(bmm(), half)) == [("bmm_crr", 2.0)]
    assert made(bmm() * 0.5 + x("d", 2, ROWS, 4)) == [("bmm_crr_add", 0.5)]
    assert [name for name, _ in made(2.0 / bmm())] == ["bmm_crr", "fused_elementwise"]
    assert [name for name, _ in made(bmm() * x("e", 2, ROWS, 4))] == ["bmm_crr", "fused_elementwise"]
    y = bmm()
    assert names([y, y * 0.5]) == ["bmm_crr", "fused_elementwise"]


def test_epilogues_of_other_products():
    image, window = x("i", 2, 6, 6, 4), x("w", 8, 3, 3, 4)
    conv = ops.elementwise(ADD)(ops.conv2d(1, 1)(image, window), x("b", 8))
    assert names(ops.elementwise(ADD)(conv, x("r", 2, 6, 6, 8))) == ["conv2d_bias_add_identity"]
    assert names(ops.elementwise(ADD)(x("r", 2, 4, 4, 8), ops.conv2d(1, 0)(image, window))) == [
        "conv2d", "fused_elementwise",
    ]  # fmt: skip
    batches = ops.bmm_rrr()(ops.permute021()(x("a", 3, 8, 4)), x("c", 3, 8, 5))
    assert names(ops.elementwise(ADD)(batches, x("d", 5))) == ["bmm_crr_add"]


STAYS: dict[str, tuple[Callable[[], Tensor | list[Tensor]], list[str]]] = {
    "no such epilogue": (lambda: ops.relu(product(bias=False)), ["gemm_rcr", "fused_elementwise"]),
    "a second bias": (lambda: product() + x("c", 4), ["gemm_rcr_bias", "fused_elementwise"]),
    "a result that is enlarged": (
        lambda: product() * x("c", 3, ROWS, 4),
        ["gemm_rcr_bias", "fused_elementwise"],
    ),
    "the product with itself": (
        lambda: (lambda y: ops.elementwise(MUL)(y, y))(product()),
        ["gemm_rcr_bias", "fused_elementwise"],
    ),
    "a second reader": (
        lambda: (lambda y: [ops.relu(y), ops.gemm_rcr()(y, x("v", 3, 4))])(product()),
        ["gemm_rcr_bias", "fused_elementwise", "gemm_rcr"],
    ),
    "an output": (
        lambda: (lambda y: [named(y, "between"), ops.relu(y)])(product()),
        ["gemm_rcr_bias", "fused_elementwise"],
    ),
}


@pytest.mark.parametrize("what", STAYS)
def test_what_keeps_its_operator(what: str):
    build, expected = STAYS[what]
    assert names(build()) == expected


def test_elementwise_operators_are_one_where_they_can_be():
    a, b = x("a", ROWS, 4), x("b", ROWS, 4)
    assert names(ops.cos(a + b) * a) == ["fused_elementwise"]
    assert names([(a + b) * b, ops.sin(x("c", 4))]) == ["fused_elementwise"] * 2  # not connected
    wide = x("w", 3, ROWS, 4)
    assert names(wide * (a + b)) == ["fused_elementwise"]  # nobody else reads the smaller result
    total = a + b
    assert names([total, wide * total]) == ["fused_elementwise"] * 2
    assert names((lambda y: [y, ops.cos(y)])(a + b)) == ["fused_elementwise"]  # it reads an output of its own
    first = ops.cos(a)
    around = ops.elementwise(ADD)(first, ops.softmax()(first, -1))
    assert names(around) == ["fused_elementwise", "softmax", "fused_elementwise"]


def test_options():
    a, w, v = x("a", 4), Tensor(shape=[4], dtype="float64", name="w"), Tensor(shape=[4], dtype="float64", name="v")
    y = a * ops.cos(w * v)
    assert names(y) == ["fused_elementwise"]
    folded = documented_graph([y])
    assert [t.is_param for t in folded] == [True, False, False] and len(documented_graph([y], fold=False)) == 4
    whole = ops.dynamic_slice()(a, [0], [None])
    assert names(ops.cos(whole), optimize=False) == ["fused_elementwise"]
    assert names(y, fold=False) == ["fused_elementwise"] and names(y, optimize=False, fold=False) == (
        ["fused_elementwise"] * 3
    )


def test_operators_that_do_the_same_have_one_name_and_the_given_graph_stays():
    a, b = x("a", ROWS, 4), x("b", ROWS, 4)
    outputs = [ops.relu(a).mark_as_output("y"), ops.relu(b).mark_as_output("z")]
    before = [copy.copy(op._attrs) for op in get_sorted_ops(toposort(outputs))]
    found = get_sorted_ops(documented_graph(outputs))
    assert len({op._attrs["name"] for op in found}) == 1 and found[0] is not found[1]
    assert [op._attrs for op in get_sorted_ops(toposort(outputs))] == before


def test_operators_that_read_their_inputs_in_another_order_have_two_names():
    a, b, c, d = (x(name, ROWS, 4) for name in "abcd")

    def one_name(*outputs: Tensor) -> bool:
        for i, tensor in enumerate(outputs):
            tensor.mark_as_output(f"y{i}")
        return len({op._attrs["name"] for op in get_sorted_ops(documented_graph(outputs))}) == 1

    assert one_name((a + b) * b, (c + d) * d)
    assert not one_name(a / (a * a), (b * b) / b)
    assert not one_name((a + b) * c, (a + c) * b)
    parts = ops.split()(x("p", 4, 6, 16), 8, 2)
    assert not one_name(*[ops.bmm_rcr()(part, x(f"q{i}", 4, 3, 8)) for i, part in enumerate(parts)])


def test_a_permute_that_moves_dims_of_1_is_a_reshape():
    assert names(ops.softmax()(ops.permute()(x("a", 8, 5, 1), [0, 2, 1]), 1)) == ["reshape", "softmax"]
    assert names(ops.softmax()(ops.permute()(x("a", 8, 5, 1), [1, 2, 0]), 1)) == ["permute", "softmax"]
    assert names(ops.cos(ops.permute()(x("a", 8, 5, 1), [0, 2, 1]))) == ["fused_elementwise"]
    heads = ops.bmm_rrr_permute((1,))(x("a", 3, 6, 8), x("b", 3, 8, 4))
    assert names(heads) == ["bmm_rrr_permute"]


def test_a_view_that_is_an_output_keeps_its_name():
    assert names(ops.expand()(x("a", 2, 3), [-1, 3])) == ["expand"]
    assert names(ops.cos(ops.expand()(x("a", 2, 3), [2, -1]))) == ["fused_elementwise"]


# ** graphs that users change **


def diamond() -> list[Tensor]:
    first = named(ops.cos(Tensor(shape=[2], dtype="float64", name="start")), "first")
    left, right = named(ops.sin(first), "left"), named(ops.abs(first), "right")
    return toposort((left + right).mark_as_output("end"))


def no_inputs(graph: list[Tensor]) -> None:
    (op,) = graph[-2].src_ops()
    op._attrs["inputs"] = []


def no_outputs(graph: list[Tensor]) -> None:
    (op,) = graph[-1].src_ops()
    op._attrs["outputs"] = []


WRONG: dict[str, Callable[[list[Tensor]], None]] = {
    "Tensor first not in inputs for op None": no_inputs,
    "Tensor end not in outputs for op None": no_outputs,
    "Op None not designated as src_op for tensor end": lambda graph: graph[-1]._attrs.update(src_ops=set()),
    "Op None not designated as dst_op for tensor start": lambda graph: graph[0]._attrs.update(dst_ops=set()),
    "Input tensor start not established in graph for op None": lambda graph: graph.__delitem__(0),
    "Output tensor end not established in graph for op None": lambda graph: graph.__delitem__(-1),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_graph_that_does_not_hold_together(message: str):
    graph = diamond()
    assert check_graph_validity(graph)
    WRONG[message](graph)
    assert not check_graph_validity(graph)
    with pytest.raises(BuildError, match=message):
        check_graph_validity(graph, raiseError=True)


def test_a_tensor_takes_the_place_of_another():
    a = x("a", 4)
    old, new = ops.cos(a), ops.sin(a)
    y = ops.abs(old).mark_as_output("y")
    (cos,) = old.src_ops()
    transform_utils.remove_dst_op_from_tensor(a, cos)
    transform_utils.replace_tensor(old, new)
    data = np.arange(4.0)
    np.testing.assert_allclose(evaluate(y, {"a": data})[0], np.abs(np.sin(data)))
    assert cos not in a.dst_ops() and old not in transform_utils.sanitize_sorted_graph(toposort(y))

    last = ops.tanh(a)
    transform_utils.replace_tensor(y, last)
    assert (last.name, last.is_output, y.is_output) == ("y", True, False)
    transform_utils.remove_tensor_from_sorted_graph(old)
    assert not old.src_ops() and not old.dst_ops() and cos._attrs["outputs"] == []


def test_a_group_and_what_it_reads_and_makes():
    a, b = x("a", 4), x("b", 4)
    total = a + b
    y = ops.tanh(total).mark_as_output("y")
    z = ops.softmax()(total, -1)
    add, tanh, softmax = (next(iter(t.src_ops())) for t in (total, y, z))
    assert _get_inputs_outputs([add, tanh], [add, tanh]) == ([a, b, total], [total, y], [a, b], [total, y])
    assert _get_inputs_outputs([tanh], [add, tanh, softmax]) == ([total], [y], [], [y])
    both = {add, tanh}
    for tensor in (a, b, total, y):
        tensor._attrs["src_ops"] = tensor._attrs["src_ops"] - both
        tensor._attrs["dst_ops"] = tensor._attrs["dst_ops"] - both
    fused = ops.fused_elementwise([add, tanh], [a, b], [total, y])
    assert list(y.src_ops()) == [fused] and fused in a.dst_ops()


SPECIAL: dict[str, tuple[Callable[[], Tensor], str]] = {
    "one column": (lambda: ops.bmm_rrr()(x("a", ROWS, 3, 8), ops.permute021()(x("b", ROWS, 1, 8))), "bmm_rcr_n1"),
    "two columns": (lambda: ops.bmm_rcr()(x("a", ROWS, 3, 8), x("b", ROWS, 2, 8)), "bmm_rcr"),
    "one column for all batches": (lambda: ops.bmm_rcr()(x("a", 4, 3, 8), x("b", 1, 8)), "bmm_rcr"),
    "a small factor": (lambda: ops.gemm_rrr()(x("a", ROWS, 16), x("b", 16, 8)), "gemm_rrr_small_nk"),
    "a larger factor": (lambda: ops.gemm_rrr()(x("a", ROWS, 16), x("b", 16, 9)), "gemm_rrr"),
    "a factor of dynamic size": (lambda: ops.gemm_rrr()(x("a", 3, ROWS), x("b", ROWS, 8)), "gemm_rrr"),
}


@pytest.mark.parametrize("what", SPECIAL)
def test_products_of_special_sizes(what: str):
    build, name = SPECIAL[what]
    assert names(build()) == [name]


def test_a_product_that_is_parted_into_heads():
    def moved(*shape: int, order: Sequence[int] = (0, 2, 1, 3)) -> list[str]:
        y = ops.gemm_rcr()(x("a", 12, 8), x("w", 20, 8))
        return names(ops.permute()(ops.reshape()(y, list(shape)), list(order)))

    assert moved(3, 4, 5, 4) == ["gemm_rcr_permute"]
    assert "gemm_rcr_permute" not in moved(3, 4, 4, 5) + moved(3, 4, 5, 4, order=(0, 2, 3, 1)) + moved(3, 8, 5, 2)
    y = ops.gemm_rcr()(x("a", 12, 8), x("w", 20, 8))
    parted = ops.reshape()(y, [3, 4, 5, 4])
    assert "gemm_rcr_permute" not in names([ops.permute()(parted, [0, 2, 1, 3]), ops.softmax()(parted, -1)])


def test_an_output_that_moves_nothing_keeps_its_operator():
    a = x("a", ROWS, 6)
    assert names(ops.split()(a, 6, 1)) == ["split"]
    assert names(ops.concatenate()([a], 1)) == ["concatenate"]
    assert names(ops.dynamic_slice()(a, [None, 0], [None, 9])) == ["dynamic_slice"]
    assert names(ops.cos(ops.split()(a, 6, 1)[0])) == ["fused_elementwise"]


def test_tensors_over_dims_without_a_name_keep_theirs():
    """A pass that writes another operator for a tensor keeps its name."""
    batch = IntVar([1, 3])
    y = named(ops.bmm_rrr()(x("a", batch, 3, 8), ops.permute021()(x("b", batch, 2, 8))), "scores")
    graph = documented_graph([ops.cos(y).mark_as_output("last")])
    assert [t.name for t in graph] == ["a", "b", "scores", "last"]


def sliced(tensor: Tensor, start: int = 1, end: int = 3) -> Tensor:
    return ops.dynamic_slice()(tensor, [0, start], [None, end])


def test_a_concatenation_reads_slices_in_place():
    """Also of a slice that it reads twice, and of one that two concatenations read."""
    a, b, c = x("a", ROWS, 8), x("b", ROWS, 8), x("c", ROWS, 4)
    cut = sliced(a)
    y = ops.concatenate()([cut, sliced(b, 4, 7), c, cut], 1).mark_as_output("y")
    z = ops.concatenate()([c, cut], 1).mark_as_output("z")
    graph = documented_graph([y, z])
    assert check_graph_validity(graph, raiseError=True)
    read = [[t.name for t in op._attrs["inputs"]] for op in get_sorted_ops(graph)]
    assert sorted(read) == [["a", "b", "c", "a"], ["c", "a"]]
    assert sorted(str(t.name) for t in graph) == ["a", "b", "c", "y", "z"]


def test_a_slice_that_others_read_stays():
    a, c = x("a", ROWS, 8), x("c", ROWS, 4)
    cut = sliced(a)
    assert names([ops.concatenate()([cut, c], 1), ops.softmax()(cut, -1)]).count("dynamic_slice") == 1
    cut = sliced(a)
    assert names([ops.concatenate()([cut, c], 1), cut]).count("dynamic_slice") == 1
    assert names(ops.softmax()(sliced(a), -1)) == ["dynamic_slice", "softmax"]
    assert names(ops.concatenate()([sliced(a), c], 1), optimize=False) == ["dynamic_slice", "concatenate"]


def test_an_operator_of_several_results_is_whole_when_one_is_read_before_the_others():
    rows = [x(f"x{i}", 4, 8) for i in range(4)]
    norms = ops.group_layernorm()(rows, [None] * 4, [None] * 4, [[8]] * 4)
    halves = [ops.concatenate()(norms[i : i + 2], dim=1) for i in (0, 2)]
    assert names(halves) == ["group_layernorm"]
    sums = [ops.softmax()(norms[i], -1) + norms[i + 1] for i in (0, 2)]
    assert sorted(names(sums)) == ["fused_elementwise", "fused_elementwise", "group_layernorm", "softmax", "softmax"]


def test_a_layer_norm_that_gates_its_input():
    def gated(by: Tensor | None = None, seen: bool = False) -> list[str]:
        data = x("data", ROWS, 8)
        gate = ops.sigmoid(ops.layernorm()(data, x("g", 8), x("b", 8), [8]))
        return names([gate * (data if by is None else by), *([ops.tanh(gate)] if seen else [])])

    assert gated() == ["layernorm_sigmoid_mul"]
    assert "layernorm_sigmoid_mul" not in gated(by=x("other", ROWS, 8)) + gated(seen=True)
    data = x("data", ROWS, 8)
    y = (data * ops.sigmoid(ops.layernorm()(data, x("g", 8), x("b", 8), [8]))).mark_as_output("y")
    (made,) = get_sorted_ops(documented_graph([y]))
    assert [tensor.name for tensor in made._attrs["inputs"]] == ["data", "g", "b"]
