"""The documented transformations: on a graph where they act, on one where they must not, and both run as before."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.compiler.transform import fuse_group_ops, fuse_mm_elementwise, fuse_ops, optimize_graph
from ait_mlir.compiler.transform.refine_graph import get_sorted_ops
from ait_mlir.compiler.transform.rows import OPTIMIZE, TRANSFORMATIONS
from ait_mlir.compiler.transform.toposort import toposort
from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.driver import run_to_phase
from ait_mlir.frontend import BuildError, IntVar, JaggedDim, Tensor, build_module, compile_model, ops
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.options import CompileOptions
from tests.frontend.documented.transforms import NAMES
from tests.frontend.passes_page import PAGE, ROOT
from tests.frontend.support import evaluate
from tests.frontend.test_models import MODELS, build

Outputs = Sequence[Tensor]
BATCH = IntVar([1, 8], name="batch")
ADD, MUL, RELU, TANH = FuncEnum.ADD, FuncEnum.MUL, FuncEnum.RELU, FuncEnum.TANH


def of(func: FuncEnum, *args: Tensor | float) -> Tensor:
    return ops.elementwise(func)(*args)


def x(*shape: int | IntVar, name: str = "x") -> Tensor:
    return Tensor(shape=list(shape or (BATCH, 8)), dtype="float64", name=name, is_input=True)


def w(*shape: int, name: str = "w") -> Tensor:
    return Tensor(shape=list(shape), dtype="float64", name=name)


@dataclass
class Case:
    """A transformation, a graph where it acts with the operators it then has, and one where it must not act."""

    module: str
    function: str
    acts: Callable[[], Tensor | Outputs]
    expected: str
    stays: Callable[[], Tensor | Outputs]
    also: str = ""


def shared_product() -> Outputs:
    y = ops.gemm_rcr()(x(), w(4, 8))
    return [of(RELU, y), of(TANH, y)]


def shared_convolution() -> Outputs:
    y = ops.conv2d(1, 1)(x(BATCH, 4, 4, 2), w(3, 3, 3, 2))
    return [of(RELU, y), of(TANH, y)]


def parallel() -> Tensor:
    a = x()
    y, z = (ops.gemm_rcr_bias()(a, w(4, 8, name=n), w(4, name=f"{n}b")) for n in "uv")
    return y - z


def chained() -> Tensor:
    a = x()
    y = ops.gemm_rcr()(a, w(8, 8, name="u"))
    return ops.gemm_rcr()(y, w(8, 8, name="v"))


def pieces() -> Tensor:
    a, b = ops.split()(x(BATCH, 8), 4, 1)
    inner = ops.concatenate()([a, b], 1)
    return ops.concatenate()([ops.concatenate()([inner, x(BATCH, 2, name="z")], 1), x(BATCH, 3, name="v")], 1)


def moved_views() -> Tensor:
    joined = ops.concatenate()([x(BATCH, 4), x(BATCH, 8, name="z")], 1)
    return ops.concatenate()([ops.reshape()(joined, [BATCH, 3, 4]), x(BATCH, 2, 4, name="v")], 1)


def twice() -> Tensor:
    a = x()
    return ops.softmax()(of(TANH, a), -1) * ops.reduce_sum(-1, keepdim=True)(of(TANH, a))


def many_pieces() -> Tensor:
    return ops.concatenate()([x(BATCH, 1, name=f"x{i}") for i in range(200)], 1)


def one_elementwise() -> Tensor:
    return ops.softmax()(of(TANH, x()), -1)


def half(*shape: int | IntVar, name: str = "x", is_input: bool = True) -> Tensor:
    return Tensor(shape=list(shape), dtype="float16", name=name, is_input=is_input)


def parted() -> Tensor:
    parts = ops.split()(x(BATCH, 12), 4, 1)
    made = [ops.gemm_rcr_bias()(a, w(5, 4, name=f"w{i}"), w(5, name=f"b{i}")) for i, a in enumerate(parts)]
    return ops.concatenate()(made, 1)


def unlike_parts() -> Tensor:
    first, second = ops.split()(x(BATCH, 12), [8, 4], 1)
    return ops.concatenate()([ops.gemm_rcr()(first, w(5, 8, name="u")), ops.gemm_rcr()(second, w(5, 4, name="v"))], 1)


def independent() -> Outputs:
    return [ops.gemm_rcr_bias()(x(4, k, name=f"x{k}"), w(6, k, name=f"w{k}"), w(6, name=f"b{k}")) for k in (8, 16)]


def one_after_another() -> Tensor:
    return ops.gemm_rcr()(ops.gemm_rcr()(x(4, 8), w(8, 8, name="u")), w(8, 8, name="v"))


def jagged(times: int) -> Outputs:
    total = IntVar([0, 40], name="total")
    rows = x(total, 2)
    offsets = Tensor(shape=[BATCH + 1], dtype="int32", name="offsets", is_input=True)
    make = ops.make_jagged(BATCH, [JaggedDim(0, 5)])
    if times == 1:
        return [of(TANH, make(rows, [offsets]))]
    return [of(TANH, make(rows, [offsets])), of(RELU, ops.make_jagged(BATCH, [JaggedDim(0, 5)])(rows, [offsets]))]


CASES = (
    Case(
        "fuse_conv_elementwise",
        "fuse_conv_elementwise",
        lambda: of(RELU, of(ADD, ops.conv2d_bias(1, 1)(x(BATCH, 4, 4, 2), w(3, 3, 3, 2), w(3, name="b")), x(BATCH, 4, 4, 3, name="r"))),
        "conv2d_bias_add_relu",
        shared_convolution,
    ),
    Case(
        "fuse_mm_elementwise",
        "fuse_mm_elementwise",
        lambda: of(TANH, of(MUL, of(FuncEnum.SIGMOID, ops.gemm_rcr_bias()(x(), w(4, 8), w(4, name="b"))), x(BATCH, 4, name="m"))),
        "gemm_rcr_bias_sigmoid_mul_tanh",
        shared_product,
    ),
    Case("fuse_ops", "fuse_elementwise", lambda: of(TANH, of(ADD, x(), x(name="z"))), "fused_elementwise", lambda: ops.softmax()(x(), -1)),
    Case("fuse_ops", "process_singleton_elementwise", lambda: of(TANH, of(RELU, x())), "fused_elementwise fused_elementwise", lambda: ops.softmax()(x(), -1)),
    Case("fuse_parallel_gemms", "fuse_single_source_parallel_gemms", parallel, "concatenate concatenate gemm_rcr_bias split elementwise", chained),
    Case("fuse_permute_bmm", "fuse_permute_bmm_and_gemm", lambda: ops.gemm_rcr()(x(), ops.permute()(w(8, 4), [1, 0])), "gemm_rrr", lambda: ops.permute()(ops.gemm_rcr()(x(), w(4, 8)), [1, 0])),
    Case("optimize_graph", "merge_view_ops", lambda: ops.reshape()(ops.reshape()(x(BATCH, 8), [-1]), [BATCH, 2, 4]), "reshape", lambda: of(TANH, ops.reshape()(x(), [-1]))),
    Case("optimize_graph", "remove_elementwise_no_ops", lambda: of(TANH, of(MUL, of(ADD, x(), 0.0), 1.0)), "elementwise", lambda: of(MUL, of(ADD, x(), 1.0), 2.0)),
    Case("optimize_graph", "transform_permute_to_reshape", lambda: ops.permute()(x(BATCH, 5, 1, 3), [0, 1, 3, 2]), "reshape", lambda: ops.permute()(x(BATCH, 5, 1, 3), [0, 3, 1, 2])),
    Case("optimize_graph", "move_view_op_before_concat", moved_views, "reshape reshape concatenate", lambda: ops.concatenate()([x(), x(name="z")], 1)),
    Case("optimize_graph", "fuse_duplicate_fused_elementwise", twice, "elementwise softmax reduce_sum elementwise", one_elementwise),
    Case("optimize_graph", "optimize_graph", lambda: of(RELU, ops.gemm_rcr_bias()(x(), w(4, 8), w(4, name="b"))), "gemm_rcr_bias_relu", lambda: ops.softmax()(x(), -1)),
    Case("remove_no_ops", "remove_no_ops", lambda: of(TANH, ops.concatenate()([ops.split()(ops.identity()(x()), 8, 1)[0]], 0)), "elementwise", lambda: ops.concatenate()([x(), x(name="z")], 0)),
    Case("transform_memory_ops", "transform_memory_ops", pieces, "concatenate", lambda: ops.concatenate()([x(), x(name="z")], 1)),
    Case("transform_special_ops", "transform_special_ops", lambda: ops.conv2d(1, 0)(x(BATCH, 4, 4, 2), w(3, 1, 1, 2)), "reshape gemm_rcr", lambda: ops.conv2d(1, 1)(x(BATCH, 4, 4, 2), w(3, 3, 3, 2))),
    Case("optimize_graph", "split_large_concat_ops", many_pieces, "concatenate", many_pieces),
    Case("optimize_graph", "split_large_slice_scatter_ops", many_pieces, "concatenate", many_pieces),
    Case("optimize_graph", "split_large_split_ops", lambda: ops.split()(x(BATCH, 200), 1, 1), "split", lambda: ops.split()(x(BATCH, 200), 1, 1)),
    Case("apply_padding", "apply_padding", lambda: ops.gemm_rcr()(half(4, 7), half(5, 7, name="w", is_input=False)), "pad pad gemm_rcr dynamic_slice", lambda: ops.gemm_rcr()(half(4, 8), half(6, 8, name="w", is_input=False))),
    Case("transform_odd_alignment", "transform_odd_alignment", lambda: ops.bmm_rrr()(half(2, 4, 7), half(2, 7, 6, name="z")), "pad pad bmm_rrr", lambda: ops.gemm_rcr()(half(4, 7), half(5, 7, name="w", is_input=False))),
    Case("fuse_group_ops", "fuse_group_ops", independent, "group_gemm_rcr_bias", one_after_another),
    Case("fuse_parallel_gemms", "fuse_parallel_gemms", parted, "reshape permute102 concatenate reshape bmm_rcr concatenate reshape elementwise permute102 reshape", unlike_parts),
    Case("optimize_graph", "fuse_expand_bmm", lambda: ops.bmm_rrr()(ops.expand()(x(1, 3, 4), [5, 3, 4]), x(5, 4, 2, name="z")), "bmm_rrr", lambda: ops.bmm_rrr()(ops.expand()(x(1, 1, 4), [5, 3, 4]), x(5, 4, 2, name="z"))),
    Case("optimize_graph", "fuse_bmm_permute", lambda: ops.permute021()(ops.bmm_rcr()(x(2, 3, 4), x(2, 5, 4, name="z"))), "bmm_rcc", lambda: ops.permute102()(ops.bmm_rcr()(x(2, 3, 4), x(2, 5, 4, name="z")))),
    Case("optimize_graph", "fuse_mm_reshape_permute", lambda: ops.permute0213()(ops.reshape()(ops.gemm_rcr()(x(6, 8), w(10, 8)), [2, 3, 2, 5])), "gemm_rcr_permute", lambda: ops.permute0213()(ops.reshape()(ops.gemm_rcr()(x(6, 8), w(10, 8)), [2, 5, 3, 2]))),
    Case("optimize_graph", "dedup_make_jagged_ops", lambda: jagged(2), "make_jagged elementwise elementwise", lambda: jagged(1)),
)  # fmt: skip


def names(tensors: Sequence[Tensor]) -> str:
    return " ".join(op.attrs["op"] for op in get_sorted_ops(tensors))


def outputs_of(tensors: Sequence[Tensor]) -> list[Tensor]:
    return sorted([t for t in tensors if t.is_output], key=lambda t: t.name or "")


def marked(made: Tensor | Outputs) -> list[Tensor]:
    found = [made] if isinstance(made, Tensor) else list(made)
    return toposort([t.mark_as_output(f"y{i:03}") for i, t in enumerate(found)])


def run(tensors: Sequence[Tensor], batch: int = 3) -> list[np.ndarray]:
    """The outputs of a graph, in float64, on the data of its weights, or random data by the names
    of inputs and weights.
    """

    def data(tensor: Tensor) -> np.ndarray:
        shape = [dim.evaluate({"batch": batch, "total": 10}) for dim in tensor.type.dims]
        if tensor.dtype() == "int32":
            return np.array([0, 3, 5, 10])
        return np.random.default_rng([ord(c) for c in tensor.name or ""]).standard_normal(shape)

    inputs = {t.name or "": data(t) for t in tensors if t.is_input}
    weights = {t.name or "": data(t) if t.data is None else t.data for t in tensors if t.is_param}
    dims = {"total": 10} if "offsets" in inputs else {}
    return evaluate(outputs_of(tensors), inputs, weights, batch=batch, **dims)


def function_of(case: Case) -> Callable[..., list[Tensor]]:
    return getattr(import_module(f"ait_mlir.compiler.transform.{case.module}"), case.function)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function)
def test_acts(case: Case, tmp_path: Path) -> None:
    graph = marked(case.acts())
    before, values = names(graph), run(graph)
    inside = len(inspect.signature(function_of(case)).parameters) > 1
    result = function_of(case)(graph, str(tmp_path)) if inside else function_of(case)(graph)
    assert names(result) == case.expected
    assert names(graph) == before, "the given graph was changed"
    assert [(t.name, t.dtype(), t.rank) for t in outputs_of(result)] == [
        (t.name, t.dtype(), t.rank) for t in outputs_of(graph)
    ]
    for got, want in zip(run(result), values, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    again = function_of(case)(result, str(tmp_path)) if inside else function_of(case)(result)
    assert names(again) == case.expected
    if {"workdir", "wordir"} & set(inspect.signature(function_of(case)).parameters):
        assert {f.name for f in tmp_path.iterdir()} == {
            f"{case.function}.mlir",
            f"{case.function}_graph.txt",
            f"{case.function}_pseudo_code.txt",
        }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function)
def test_must_not_act(case: Case) -> None:
    graph = marked(case.stays())
    before = names(graph)
    result = function_of(case)(graph)
    assert result == graph
    assert names(result) == before
    run(result)


@pytest.mark.parametrize("network", [pytest.param(n, marks=() if n == "vit" else pytest.mark.full) for n in MODELS])
def test_whole_networks(network: str) -> None:
    """All transformations, one after another, leave what a network computes."""
    ours, inputs = build(MODELS[network], "float64")
    graph = toposort(ours(*inputs).mark_as_output("y"))
    named = {t.name or "": d.numpy() for t, d in zip(inputs, MODELS[network].data(2, 5, torch.float64), strict=True)}
    own = {name: p.value() for name, p in ours.named_parameters() if p.value() is not None}
    rng = np.random.default_rng(0)
    weights = {n: p.tensor() for n, p in ours.named_parameters() if n not in own}
    data = own | {n: rng.standard_normal([int(d.expr.as_int() or 0) for d in t.shape()]) for n, t in weights.items()}
    dims = {"batch": 2} | ({} if MODELS[network].images else {"seq": 5})
    (want,) = evaluate(outputs_of(graph), named, data, **dims)
    assert "attention" in names(optimize_graph(graph)) and optimize_graph(graph) != graph
    for case in reversed(CASES):
        graph = function_of(case)(graph)
    (got,) = evaluate(outputs_of(graph), named, data, **dims)
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9)
    assert "elementwise" not in names(graph).replace("fused_elementwise", "").split()


def test_norms_as_a_group() -> None:
    parts = ops.split()(x(BATCH, 20), [8, 12], 1)
    graph = marked(ops.group_layernorm_sigmoid_mul()(parts, [w(8), w(12, name="v")], [w(8, name="b"), w(12, name="c")]))
    values = run(graph)
    result = fuse_group_ops(fuse_ops.fuse_elementwise(graph))
    assert names(result) == "split group_layernorm fused_elementwise fused_elementwise"
    for got, want in zip(run(result), values, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_products_with_what_follows_them_as_a_group() -> None:
    graph = marked([of(RELU, y) for y in independent()])
    values = run(graph)
    result = fuse_group_ops(fuse_mm_elementwise(graph))
    assert names(result) == "group_gemm_rcr_bias_relu"
    for got, want in zip(run(result), values, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.full
def test_compiled(tmp_path: Path) -> None:
    """A transformed graph is compiled like the one that it was made of."""
    a, b = half(6, 7, name="a"), half(6, 9, name="b")

    def weight(*shape: int, name: str) -> Tensor:
        return half(*shape, name=name, is_input=False)

    y = ops.gemm_rcr_bias_relu()(a, weight(10, 7, name="w1"), weight(10, name="b1"))
    z = ops.gemm_rcr_bias_relu()(b, weight(12, 9, name="w2"), weight(12, name="b2"))
    z = ops.permute0213()(ops.reshape()(ops.gemm_rcr()(z, weight(10, 12, name="w3")), [2, 3, 2, 5]))
    u = ops.permute021()(ops.bmm_rcr()(ops.reshape()(a, [2, 3, 7]), ops.reshape()(a, [2, 3, 7])))
    graph = result = marked([y, z, u])
    for function in ("fuse_bmm_permute", "fuse_mm_reshape_permute", "apply_padding", "fuse_mm_elementwise"):
        result = next(function_of(case) for case in CASES if case.function == function)(result)
    result = fuse_group_ops(result)
    assert {"group_gemm_rcr_bias_relu", "bmm_rcr", "bmm_rcc", "pad"} <= set(names(result).split())
    rng = np.random.default_rng(0)
    data = {t.name or "": rng.standard_normal([int(d) for d in t.shape()]).astype(np.float16) for t in graph if not t.src_ops()}  # fmt: skip
    weights = {t.name or "": data[t.name or ""] for t in graph if t.is_param}
    found: list[dict[str, torch.Tensor]] = []
    for name, tensors in (("before", graph), ("after", result)):
        with compile_model(outputs_of(tensors), "cpu", tmp_path, name, constants=weights) as model:
            found.append(model.run_with_tensors({n: torch.from_numpy(data[n]) for n in ("a", "b")}))
    for name, before in found[0].items():
        torch.testing.assert_close(found[1][name], before, rtol=2e-3, atol=2e-3)


def test_every_row_has_a_case() -> None:
    assert {case.function for case in CASES} == set(TRANSFORMATIONS)


def passes_column(passes: str) -> str:
    """A pipeline as the page shows it."""
    if passes == OPTIMIZE:
        return "those of the phases `simplified` and `fused`"
    return ", ".join(f"`{name}`" for name in passes.split(",")) if passes else "none: nothing to do"


def test_the_page_has_the_passes() -> None:
    rows = {row.name: row.calls for row in PAGE.values() if row.graphless is None}
    assert rows == {name: passes_column(passes) for name, passes in TRANSFORMATIONS.items()}
    assert {name for names in NAMES.values() for name in names} <= set(PAGE)


@pytest.mark.parametrize("name", PAGE)
def test_files_and_tests_of_the_page(name: str) -> None:
    row = PAGE[name]
    assert (ROOT / row.file).is_file()
    text = (ROOT / row.test).read_text()
    words = [name] if row.graphless is not None else re.findall("`(.*?)`", row.calls)
    tested = any(re.search(rf"(?<![-\w]){word}(?![-\w])", text) for word in words)
    assert tested or not words or TRANSFORMATIONS.get(name) == OPTIMIZE
    assert hasattr(import_module(f"ait_mlir.compiler.transform.{row.module}"), name)


@pytest.mark.parametrize("module", NAMES)
def test_documented_names(module: str) -> None:
    found = import_module(f"ait_mlir.compiler.transform.{module}")
    for name, arguments in NAMES[module].items():
        value = getattr(found, name)
        assert callable(value)
        if arguments is not None:
            parameters = list(inspect.signature(value).parameters)
            assert parameters[: len(arguments.split())] == arguments.split(), f"{module}.{name}"
            rest = list(inspect.signature(value).parameters.values())[len(arguments.split()) :]
            assert all(p.default is not p.empty for p in rest), f"{module}.{name} needs more arguments"


# ** bad input **


def a_graph() -> list[Tensor]:
    return marked(of(RELU, ops.gemm_rcr_bias()(x(), w(4, 8), w(4, name="b"))))


BAD: Mapping[str, tuple[Callable[[list[Tensor]], list[Tensor]], str]] = {
    "empty": (lambda graph: [], "empty"),
    "not sorted": (lambda graph: graph[::-1], "not sorted: .* stands|not sorted: .* is read for"),
    "twice": (lambda graph: [*graph, graph[-1]], "stands at .* and again"),
    "not closed": (lambda graph: graph[1:], 'not closed: gemm_rcr_bias reads "x"'),
    "no tensor": (lambda graph: [*graph, 3], "found 3 at"),  # pyright: ignore[reportReturnType]
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("function", ["fuse_mm_elementwise", "remove_no_ops", "optimize_graph", "name_graph"])
def test_bad_lists(function: str, what: str) -> None:
    damage, message = BAD[what]
    graph = a_graph()
    before = names(graph)
    transform = getattr(import_module("ait_mlir.compiler.transform"), function)
    with pytest.raises(BuildError, match=message):
        transform(damage(graph))
    assert names(graph) == before and [t.name for t in graph if t.src_ops() and not t.is_output] == [None]


def test_a_workdir_that_cannot_be_written(tmp_path: Path) -> None:
    from ait_mlir.compiler.transform import fuse_mm_elementwise, optimize_graph

    (tmp_path / "file").write_text("")
    graph = a_graph()
    for function in (fuse_mm_elementwise, optimize_graph):
        with pytest.raises(BuildError, match=r"the workdir .* cannot be made"):
            function(graph, str(tmp_path / "file" / "inside"))
    (tmp_path / "fuse_mm_elementwise.mlir").mkdir()
    with pytest.raises(BuildError, match="cannot be written"):
        fuse_mm_elementwise(graph, str(tmp_path))
    assert names(graph) == "gemm_rcr_bias elementwise"


def test_the_whole_pipeline_groups_aligns_and_pads() -> None:
    """What AITemplate documents of `optimize_graph`: whether it pays is for a compilation to decide."""
    products = [
        of(RELU, ops.gemm_rcr_bias()(half(4, k, name=f"x{k}"), half(6, k, name=f"w{k}"), half(6, name=f"b{k}")))
        for k in (8, 16)
    ]
    assert names(optimize_graph(marked(products))) == "group_gemm_rcr_bias_relu"
    odd = of(RELU, ops.gemm_rcr_bias()(half(4, 7), half(5, 7, name="w"), half(5, name="b")))
    assert names(optimize_graph(marked(odd))) == "pad pad pad gemm_rcr_bias_relu dynamic_slice"
    batched = ops.bmm_rrr()(half(2, 4, 7), half(2, 7, 6, name="w"))
    assert names(optimize_graph(marked(batched))) == "pad pad bmm_rrr"
    norms = [
        ops.layernorm()(half(4, 8, name=f"x{i}"), half(8, name=f"s{i}"), half(8, name=f"t{i}"), [8]) for i in range(2)
    ]
    assert names(optimize_graph(marked(norms))) == "group_layernorm"
    for graph in (marked(odd), marked(batched)):
        for got, want in zip(run(optimize_graph(graph)), run(graph), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9)


def test_two_outputs_of_one_function_are_results_of_one_operator() -> None:
    module = import_module("ait_mlir.compiler.transform.optimize_graph")
    given = x()
    y, z = of(TANH, given), of(TANH, given)
    graph = module.fuse_duplicate_fused_elementwise(module.fuse_elementwise(marked([y, z])))
    (operator,) = graph[-1].src_ops()
    assert names(graph) == "fused_elementwise"
    assert [t.name for t in operator.outputs] == [t.name for t in (y, z)]
    assert module.fuse_duplicate_fused_elementwise(graph) == graph
    first, second = run(graph)
    np.testing.assert_array_equal(first, second)


def heads(product: Tensor, *shape: int | IntVar) -> Tensor:
    return ops.permute0213()(ops.reshape()(product, list(shape)))


HEADS: Mapping[str, Callable[[], Tensor]] = {
    "gemm_rcr_bias_permute": lambda: heads(ops.gemm_rcr_bias()(x(6, 8), w(10, 8), w(10, name="b")), 2, 3, 2, 5),
    "gemm_rrr_permute": lambda: heads(ops.gemm_rrr()(x(6, 8), w(8, 10)), 2, 3, 2, 5),
    "gemm_rrr_bias_permute": lambda: heads(ops.gemm_rrr_bias()(x(6, 8), w(8, 10), w(10, name="b")), 2, 3, 2, 5),
    "bmm_rcr_permute": lambda: heads(ops.bmm_rcr()(x(4, 6, 8), x(4, 10, 8, name="z")), 4, 6, 2, 5),
    "bmm_rrr_permute": lambda: heads(ops.bmm_rrr()(x(4, 6, 8), x(4, 8, 10, name="z")), 2, 2, 6, 10),
}


@pytest.mark.parametrize("name", HEADS)
def test_products_with_heads_are_one_operator_and_one_launch(name: str) -> None:
    """Also where there is a bias or a batch; in a whole compilation there is one launch, too."""
    module = import_module("ait_mlir.compiler.transform.optimize_graph")
    graph = marked(HEADS[name]())
    result = module.fuse_mm_reshape_permute(graph)
    assert names(result) == name and module.fuse_mm_reshape_permute(result) == result
    for got, want in zip(run(result), run(graph), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9)
    compiled = build_module(graph[-1])
    run_to_phase(compiled, "planned", CompileOptions("cpu"))
    assert len([op for op in compiled.walk() if isinstance(op, LaunchOp)]) == 1


def test_several_views_of_one_total_become_one_of_all_inputs() -> None:
    module = import_module("ait_mlir.compiler.transform.optimize_graph")
    total = IntVar([0, 40], name="total")
    rows = [x(total, 8, name=f"x{i}") for i in range(3)]
    offsets = Tensor(shape=[BATCH + 1], dtype="int32", name="offsets", is_input=True)
    weight = x(8, 4, name="z")

    def made(source: Tensor) -> Tensor:
        return ops.make_jagged(BATCH, [JaggedDim(0, 5)])(source, [offsets])

    first = ops.gemm_rrr()(made(rows[0]), weight) + made(ops.gemm_rrr()(rows[1], weight))
    graph = marked(first + ops.gemm_rrr()(rows[2], weight))
    result = module.dedup_make_jagged_ops(graph)
    (make,) = [op for op in get_sorted_ops(result) if op.attrs["op"] == "make_jagged"]
    assert [t.name for t in make.inputs] == ["x0", "x1", "x2", "offsets"] and make.attrs["num_sources"] == 3
    assert all(t.is_jagged() for t in result if t.src_ops())
    assert module.dedup_make_jagged_ops(result) == result
    for got, want in zip(run(result), run(graph), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9)


def test_functions_in_place_of_modules_of_their_name() -> None:
    """AITemplate's package has functions where other packages have modules."""
    compiler = import_module("ait_mlir.compiler")
    graph = marked(of(FuncEnum.SIGMOID, ops.layernorm()(x(4, 8), w(8, name="s"), w(8, name="t"), [8])))
    assert names(compiler.transform.fuse_ops(graph)) == "layernorm"
    assert compiler.transform.memory_planning(graph)[0] > 0
    products = marked(independent())
    assert names(compiler.transform.fuse_group_gemm_ops(products)) == "group_gemm_rcr_bias"
    assert compiler.transform.fuse_group_layernorm_ops(products) == products
