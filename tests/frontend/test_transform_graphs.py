"""The documented functions around the transformations that act on graphs: on one where they act, on one where they must
not, and both compute what they did before. The other functions are in `test_transform_helpers.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ait_mlir.compiler.transform import name_graph
from ait_mlir.compiler.transform.refine_graph import get_sorted_ops
from ait_mlir.compiler.transform.toposort import toposort
from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.errors import AitError
from ait_mlir.frontend import BuildError, IntVar, Tensor, ops
from ait_mlir.frontend.lift import emit
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.ir.context import context
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes.parse import parse_passes
from tests.frontend.passes_page import PAGE
from tests.frontend.test_transforms import CASES as PASSES
from tests.frontend.test_transforms import function_of, marked, names, of, run, w, x

Graph = list[Tensor]
TANH, RELU, EXP = FuncEnum.TANH, FuncEnum.RELU, FuncEnum.EXP


@dataclass(frozen=True)
class Case:
    """A function, a graph that it changes with the expected result of `look`, and a graph that it must not change."""

    function: str
    acts: Callable[[], Graph]
    look: Callable[[Graph], Any]
    expected: Any
    stays: Callable[[], Graph]
    more: tuple[Any, ...] = ()
    """Further arguments where it acts."""
    more_stays: tuple[Any, ...] | None = None
    """Those where it must not act, if they are others."""
    runs_before: bool = True
    again: str = ""
    """The error of a second call; without one a second call changes nothing."""

    def call(self, graph: Graph, more: tuple[Any, ...]) -> Graph:
        """The graph that the function returns, or the given one, which it changed."""
        module = import_module(f"ait_mlir.compiler.transform.{PAGE[self.function].module}")
        found = getattr(module, self.function)(graph, *more)
        if isinstance(found, tuple):
            found = found[0]
        return found if isinstance(found, list) else graph


def product() -> Graph:
    return marked(ops.gemm_rcr()(x(), of(EXP, w(4, 8, name="v"))))


def bound() -> Graph:
    graph = product()
    for t in graph:
        if t.is_param:
            t.bind(np.arange(32.0).reshape(4, 8) / 32)
    return graph


def cut_off() -> Graph:
    """A graph without its first operator: nothing computes that operator's results."""
    y = of(TANH, x(2, 8))
    y.name = "cut"
    z = of(RELU, y).mark_as_output("y")
    y.attrs["src_ops"].clear()
    return toposort(z)


def views() -> Graph:
    return marked([ops.reshape()(ops.reshape()(x(2, 8), [16]), [4, 4]), of(TANH, x(2, 8, name="z"))])


def branches() -> Graph:
    a = x(8, 8)
    return marked(ops.concatenate()([of(EXP, of(func, a)) for func in (TANH, RELU)], 0))


def named(made: Tensor) -> Graph:
    graph = marked(made)
    name_graph(graph)
    return graph


def alike() -> Graph:
    return named(ops.gemm_rcr()(ops.gemm_rcr()(x(), w(8, 8, name="u")), w(8, 8, name="v")))


def unlike() -> Graph:
    return named(ops.gemm_rcr()(ops.gemm_rcr()(x(), w(6, 8, name="u")), w(8, 6, name="v")))


def with_others() -> Graph:
    a = x()
    y = of(TANH, a)
    of(RELU, a)
    return marked(y)


def swapped() -> Graph:
    left, right = ops.split()(x(IntVar([1, 8], name="batch"), 8), 4, 1)
    return marked(ops.softmax()(ops.concatenate()([of(TANH, right), of(EXP, left)], 1), 1))


def softmax() -> Graph:
    return marked(ops.softmax()(of(TANH, x()), 1))


def bound_names(graph: Graph) -> list[str | None]:
    return [t.name for t in graph if t.data is not None]


def attributes(name: str) -> Callable[[Graph], list[Any]]:
    return lambda graph: [t.attrs[name] for t in graph if t.attrs[name] is not None]


def operator_names(graph: Graph) -> list[Any]:
    return [op.attrs["name"] for op in get_sorted_ops(graph)]


def in_place(graph: Graph) -> tuple[list[str], int]:
    """The operators without a launch, and how many tensors lie in others."""
    without = [op.attrs["op"] for op in get_sorted_ops(graph) if op.attrs.get("nop")]
    return without, len(attributes("is_view_of")(graph))


V = {"v": np.random.default_rng([ord("v")]).standard_normal([4, 8])}
"""What `run` gives a weight of this name without data."""
CASES = (
    Case("bind_constants", product, bound_names, ["v"], product, (V,), ({},), again="Tensor v is already bound!"),
    Case("constant_folding", bound, names, "gemm_rcr", product, (None, "model")),
    Case("mark_param_tensor", cut_off, lambda g: [t.name for t in g if t.is_param], ["cut"], softmax, runs_before=False),
    Case("mark_special_views", views, lambda g: [t.name for t in attributes("external_tensor")(g)], ["x", "x"], softmax),
    Case("simple_multistream_memory_planning", branches, attributes("offset"), [0, 512, 1024, 1536], lambda: marked(of(TANH, x()))),
    Case("name_graph", softmax, operator_names, ["elementwise", "softmax"], alike),
    Case("refine_graph", alike, operator_names, ["gemm_rcr", "gemm_rcr"], unlike),
    Case("remove_unused_ops", with_others, lambda g: [len(t.dst_ops()) for t in g], [1, 0], softmax),
    Case("toposort", lambda: softmax()[::-1], lambda g: [t.name for t in g], ["x", None, "y000"], softmax),
    Case("transform_strided_ops", swapped, in_place, (["split", "concatenate"], 2), softmax),
)  # fmt: skip


def launches(tensors: Sequence[Tensor]) -> str:
    """The launches of a graph on a CPU as it is, without fusion."""
    module = emit(tensors).module
    run_passes(
        context(), module, parse_passes('select{target="cpu"},bufferize,remove-copies,lower-copies'), verify="end"
    )
    found = [op.kernel_name for op in module.walk() if isinstance(op, LaunchOp)]
    return " ".join(re.sub(r"^graph_|_\d+$", "", name) for name in found)


LAUNCHES: Mapping[str, tuple[str, str]] = {
    "fuse_conv_elementwise": ("conv add add relu", "conv_bias_add_relu"),
    "fuse_mm_elementwise": ("gemm_rcr add sigmoid mul tanh", "gemm_rcr_bias_sigmoid_mul_tanh"),
    "fuse_elementwise": ("add tanh", "fused_add_tanh"),
    "process_singleton_elementwise": ("relu tanh", "fused_relu fused_tanh"),
    "fuse_single_source_parallel_gemms": ("gemm_rcr add gemm_rcr add sub", "gemm_rcr_bias sub"),
    "fuse_permute_bmm_and_gemm": ("gemm_rcr", "gemm_rrr"),
    "merge_view_ops": ("copy", "copy"),
    "remove_elementwise_no_ops": ("add mul tanh", "tanh"),
    "transform_permute_to_reshape": ("copy", "copy"),
    "move_view_op_before_concat": ("copies copies", "copies"),
    "fuse_duplicate_fused_elementwise": ("tanh softmax tanh reduce mul", "tanh softmax reduce mul"),
    "optimize_graph": ("gemm_rcr add relu", "gemm_rcr_bias_relu"),
    "remove_no_ops": ("tanh", "tanh"),
    "transform_memory_ops": ("copies copies copies", "copies"),
    "transform_special_ops": ("conv", "gemm_rcr"),
    "split_large_concat_ops": ("copies", "copies"),
    "split_large_slice_scatter_ops": ("copies", "copies"),
    "split_large_split_ops": ("copies", "copies"),
    "apply_padding": ("gemm_rcr", "pad pad gemm_rcr copy"),
    "transform_odd_alignment": ("bmm_rrr", "pad pad bmm_rrr"),
    "fuse_group_ops": ("gemm_rcr add gemm_rcr add", "grouped_gemm"),
    "fuse_parallel_gemms": ("gemm_rcr add gemm_rcr add gemm_rcr add", "bmm_rcr add"),
    "fuse_expand_bmm": ("bmm_rrr", "bmm_rrr"),
    "fuse_bmm_permute": ("bmm_rcr copy", "bmm_rcc"),
    "fuse_mm_reshape_permute": ("gemm_rcr copy", "bmm_rcr"),
    "dedup_make_jagged_ops": ("tanh relu", "tanh relu"),
}
"""Of the passes: the launches of the graph where one acts, before and after it."""


@pytest.mark.parametrize("case", PASSES, ids=lambda case: case.function)
def test_launches_of_passes(case: Any) -> None:
    graph = marked(case.acts())
    assert (launches(graph), launches(function_of(case)(graph))) == LAUNCHES[case.function]
    graph = marked(case.stays())
    assert launches(function_of(case)(graph)) == launches(graph)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function)
def test_acts(case: Case) -> None:
    graph = case.acts()
    before, values = case.look(graph), run(graph) if case.runs_before else None
    result = case.call(graph, case.more)
    assert case.look(result) == case.expected != before
    for got, want in zip(found := run(result), values or found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    if case.again:
        with pytest.raises(BuildError, match=case.again):
            case.call(result, case.more)
    else:
        assert case.look(case.call(result, case.more)) == case.expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function)
def test_must_not_act(case: Case) -> None:
    graph = case.stays()
    before, operators, values = case.look(graph), names(graph), run(graph)
    result = case.call(graph, case.more if case.more_stays is None else case.more_stays)
    assert result == graph and case.look(result) == before and names(result) == operators
    for got, want in zip(run(result), values, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.fixture
def timings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_TIMINGS", str(tmp_path / "timings.sqlite3"))
    monkeypatch.delenv("AIT_FORCE_PROFILER_CACHE", raising=False)


def kernels(graph: Sequence[Tensor]) -> list[Any]:
    return [op.attrs.get("kernels") for op in get_sorted_ops(graph)]


@pytest.mark.full
def test_profile_acts(timings: None, tmp_path: Path) -> None:
    from ait_mlir.compiler.transform import profile

    graph = marked(ops.gemm_rcr()(x(2, 8), w(4, 8)))
    values = run(graph)
    profile(graph, tmp_path, target="cpu", timeout=60)
    assert [len(found) for found in kernels(graph)] == [1]
    np.testing.assert_array_equal(run(graph), values)


def test_profile_must_not_act(timings: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where times may not be measured and none is known."""
    from ait_mlir.compiler.transform import profile

    graph = marked(ops.gemm_rcr()(x(2, 8), w(4, 8)))
    values = run(graph)
    monkeypatch.setenv("AIT_FORCE_PROFILER_CACHE", "1")
    with pytest.raises(AitError, match="no known time"):
        profile(graph, tmp_path, target="cpu")
    assert kernels(graph) == [None]
    np.testing.assert_array_equal(run(graph), values)


def test_fused_elementwise_is_one_launch_of_what_it_is_given() -> None:
    a = x()
    first, second = ops.elementwise(TANH), ops.elementwise(RELU)
    y = second(first(a))
    (want,) = run(marked(y))
    graph = marked(ops.fused_elementwise([first, second], [a], [y])())
    assert names(graph) == "fused_elementwise"
    (got,) = run(graph)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_every_function_has_a_case_or_a_reason() -> None:
    acting = {case.function for case in CASES} | {"profile"}
    assert acting == {name for name, row in PAGE.items() if row.graphless == ""}
