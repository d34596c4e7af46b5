"""The documented functions around the transformations: data, names, marks, memory, profiling."""

from __future__ import annotations

import json
import sqlite3
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.compiler.base import DynamicProfileStrategy
from ait_mlir.compiler.transform import (
    bind_constants,
    constant_folding,
    dedup_symbolic_name,
    greedy_by_size_memory_planning,
    mark_param_tensor,
    mark_special_views,
    naive_memory_planning,
    name_graph,
    profile,
    refine_graph,
    remove_unused_ops,
    simple_multistream_memory_planning,
    toposort,
    transform_strided_ops,
)
from ait_mlir.compiler.transform.constant_folding import Workspace
from ait_mlir.compiler.transform.fuse_conv_elementwise import get_conv2d_bias_elementwise_patterns
from ait_mlir.compiler.transform.fuse_ops import FusedElementwiseInfo
from ait_mlir.compiler.transform.fuse_split import StableSet
from ait_mlir.compiler.transform.fuse_utils import extract_only_one_op, is_elementwise_type
from ait_mlir.compiler.transform.memory_planning import (
    multistream_max_mem_parallel_ops,
    multistream_mode,
    split_simple_multistream_parallel_ops,
    track_parallel_ops,
)
from ait_mlir.compiler.transform.profile import (
    GemmProfilerPostprocessingDelegate,
    ProfileResult,
    ProfilerRunner,
    force_profiler_cache,
)
from ait_mlir.compiler.transform.refine_graph import get_sorted_ops
from ait_mlir.compiler.transform.remove_no_ops import ExpandDimensionType
from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.driver import run_to_phase
from ait_mlir.errors import AitError
from ait_mlir.frontend import BuildError, IntVar, JaggedDim, JaggedIntVar, Tensor, build_module, compile_model, ops
from ait_mlir.frontend.compile_options import streams_of_environment, waves_of_environment
from ait_mlir.frontend.ops import FuncEnum
from ait_mlir.host.settings import MEASURE_DEVICES
from ait_mlir.options import CompileOptions
from tests.frontend.support import evaluate


def x(*shape: int | IntVar, name: str | None = "x") -> Tensor:
    return Tensor(shape=list(shape or (2, 8)), dtype="float32", name=name, is_input=True)


def w(*shape: int, name: str | None = "w") -> Tensor:
    return Tensor(shape=list(shape), dtype="float32", name=name)


def of(func: FuncEnum, *args: Tensor) -> Tensor:
    return ops.elementwise(func)(*args)


# ** constants **


def test_bind_and_fold() -> None:
    a, v, free = x(), w(4, 8, name="v"), w(8, name="free")
    kept = of(FuncEnum.TANH, free)  # depends on a weight without data
    y = ops.gemm_rcr()(a * kept, of(FuncEnum.EXP, v)).mark_as_output("y")
    graph = toposort(y)
    data = np.arange(32, dtype=np.float32).reshape(4, 8) / 32
    bind_constants(graph, {"v": data})
    assert v.data is not None and free.data is None
    result, files, read = constant_folding(graph, None, "model")
    assert [t.name for t in read] == ["v"] and files == []
    assert [op.attrs["func"].name for op in get_sorted_ops(result) if "func" in op.attrs] == ["TANH", "MUL"]
    (folded,) = [t for t in result if t.is_param and t.data is not None]
    np.testing.assert_array_equal(folded.data, np.exp(data.astype(np.float64)).astype(np.float32))
    inputs = {"x": np.ones((2, 8))}
    (want,) = evaluate(y, inputs, {"v": data, "free": np.ones(8)})
    (got,) = evaluate([t for t in result if t.is_output], inputs, {folded.name: folded.data, "free": np.ones(8)})
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_nothing_to_fold(tmp_path: Path) -> None:
    graph = toposort(ops.gemm_rcr()(x(), w(4, 8)).mark_as_output("y"))
    bind_constants(graph, {"w": np.zeros((4, 8), np.float32)})
    assert constant_folding(graph, str(tmp_path), "model") == (graph, [], [])


def test_bind_nothing_if_one_is_wrong() -> None:
    v, u = w(4, 8, name="v"), w(4, name="u")
    graph = toposort(ops.gemm_rcr_bias()(x(), v, u).mark_as_output("y"))
    good = np.zeros((4, 8), np.float32)
    for wrong, message in (({"z": good}, 'no weight "z"; its weights are v, u'), ({"u": good}, '"u"')):
        with pytest.raises(BuildError, match=message):
            bind_constants(graph, {"v": good, **wrong})
        assert v.data is None and u.data is None


# ** names and marks **


def test_names() -> None:
    a = x(IntVar([1, 8]), 8, name=None)
    y = ops.gemm_rcr()(ops.gemm_rcr()(a, w(8, 8, name="encoder.weight")), w(8, 8, name="int"))
    z = of(FuncEnum.TANH, y).mark_as_output("2nd")
    graph = toposort(z)
    name_graph(graph)
    names = [t.name for t in graph] + [op.attrs["name"] for op in get_sorted_ops(graph)]
    assert len(set(names)) == len(names) and all(name is not None and name.isidentifier() for name in names)
    assert {"encoder_weight", "_int", "_2nd", "gemm_rcr", "gemm_rcr_1", "elementwise", "gemm_rcr_0"} <= set(names)
    assert [t.attrs["original_name"] for t in graph if t.is_param] == ["encoder.weight", "int"]
    assert a.shape()[0].name == f"{a.name}_dim_0"
    name_graph(graph)
    assert [t.name for t in graph] + [op.attrs["name"] for op in get_sorted_ops(graph)] == names
    dedup_symbolic_name(graph)
    refine_graph(graph)
    assert [op.attrs["name"] for op in get_sorted_ops(graph)] == ["gemm_rcr", "gemm_rcr", "elementwise"]
    assert graph[-1].pseudo_code(with_shape=False) == "_2nd"


def test_refined_operators_compute_the_same() -> None:
    a = x(4, 8)
    made = [
        ops.softmax()(a, 1),
        ops.softmax()(a, 0),
        ops.softmax()(x(4, 8, name="z"), 1),
        ops.softmax()(x(8, name="v")),
    ]
    graph = toposort([t.mark_as_output(f"y{i}") for i, t in enumerate(made)])
    name_graph(graph)
    refine_graph(graph)
    assert [op.attrs["name"] for op in get_sorted_ops(graph)] == ["softmax", "softmax_1", "softmax", "softmax_3"]


def test_two_ranges_of_one_dim() -> None:
    y = x(IntVar([1, 8], name="n"), 4)
    z = x(IntVar([1, 9], name="n"), 4, name="z")
    with pytest.raises(BuildError, match="two ranges"):
        dedup_symbolic_name([y, z])


def test_marks() -> None:
    a = x(2, 8)
    view = ops.reshape()(ops.reshape()(a, [16]), [4, 4])
    copy = of(FuncEnum.TANH, a)
    y = ops.reshape()(copy, [16])
    cut = of(FuncEnum.RELU, y)
    graph = toposort([view, cut.mark_as_output("y")])
    mark_special_views(graph)
    assert view.attrs["external_tensor"] is a and y.attrs["is_view_of"] is copy
    assert y.attrs["external_tensor"] is None and copy.attrs["is_view_of"] is None
    assert not y.is_param
    y.attrs["src_ops"].clear()
    short = toposort(cut)
    mark_param_tensor(short)
    assert y.is_param and not a.is_param and not cut.is_param
    y.name = "y.data"
    (got,) = evaluate(cut, {}, {"y.data": np.arange(16) - 8.0})
    np.testing.assert_array_equal(got, np.maximum(np.arange(16) - 8.0, 0))


def test_operators_outside_of_the_graph_are_no_users() -> None:
    a = x()
    y = of(FuncEnum.TANH, a)
    of(FuncEnum.RELU, a)
    graph = toposort(y)
    assert len(a.dst_ops()) == 2
    remove_unused_ops(graph)
    assert list(a.dst_ops()) == list(y.src_ops())


def test_the_workspace_of_a_plan() -> None:
    """Operators in sequence share their workspace, those of one wave do not; unique workspaces are added."""
    a = x()
    y, z = of(FuncEnum.TANH, a), of(FuncEnum.COS, a)
    total = of(FuncEnum.ADD, y, z)
    for tensor, shared, unique in ((y, 5, 1), (z, 7, 0), (total, 9, 2)):
        (op,) = tensor.src_ops()
        op._attrs["workspace"], op._attrs["unique_workspace"] = shared, unique
    graph = toposort(total)
    assert greedy_by_size_memory_planning(graph)[2] == Workspace(9, 3)
    assert simple_multistream_memory_planning(graph)[2] == Workspace(12, 3)
    assert naive_memory_planning(graph)[2] == Workspace(21, 3)


def test_documented_classes() -> None:
    assert [kind.name for kind in ExpandDimensionType] == ["ADD_DIM", "EXPAND_DIM", "KEEP_DIM"]
    y = of(FuncEnum.TANH, a := x())
    info = FusedElementwiseInfo(list(y.src_ops()), [a], [y], [a], [y])
    assert info.external_outputs == [y]
    assert Workspace(shared_size=3, unique_size=4).total_size() == 7
    found = get_conv2d_bias_elementwise_patterns()
    assert [len(chain) for chain, _ in found] == sorted([len(chain) for chain, _ in found], reverse=True)
    names = {" ".join(op.attrs["func"].name if "func" in op.attrs else op.name for op in chain): to.__name__ for chain, to in found}  # fmt: skip
    assert names["conv2d_bias ADD RELU"] == "conv2d_bias_add_relu"


def test_documented_methods() -> None:
    a, gamma = x(2, 3, 4, 8), w(8)
    assert ops.group_norm.get_input_shapes(a, gamma, None) == [[2, 3, 4, 8], [8], None]
    cut = ops.dynamic_slice.normalize_start_end_indices
    assert [cut(8, 2, 5), cut(8, -3, 20), cut(8, -20, -6), cut(8, 6, 2)] == [[2, 5], [5, 8], [0, 2], [6, 6]]
    batch, total = IntVar([1, 4], name="batch"), IntVar([0, 20], name="total")
    dim = JaggedIntVar(total, batch, [JaggedDim(0, 5)])
    with pytest.raises(BuildError, match="no offsets yet"):
        dim.offsets_type()
    offsets = Tensor(shape=[batch + 1], dtype="int32", name="offsets", is_input=True)
    made = ops.make_jagged(batch, [JaggedDim(0, 5)])(x(total, 2), [offsets]).shape()[0]
    assert isinstance(made, JaggedIntVar) and made.offsets_type() == "int32_t"
    assert made.offsets_struct_type() == "std::array<const int32_t*, 1>"
    assert made.offsets_var_name() == "total_jagged_offsets"
    found = StableSet([2, 1, 2])
    found.add(3)
    found.discard(7)
    found.remove(1)
    assert list(found) == [2, 3] and list(StableSet()) == []
    with pytest.raises(KeyError):
        found.remove(1)
    found.clear()
    assert not found


# ** memory **


def branches() -> list[Tensor]:
    a = x(64, 64)
    made = [of(FuncEnum.EXP, of(func, a)) for func in (FuncEnum.TANH, FuncEnum.RELU, FuncEnum.SIN)]
    return toposort(ops.concatenate()(made, 0).mark_as_output("y"))


def test_plans_hold_what_is_needed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, size = branches(), 64 * 64 * 4
    naive, greedy = naive_memory_planning(graph), greedy_by_size_memory_planning(graph)
    assert naive[0] == 6 * size and greedy[0] == 4 * size
    assert simple_multistream_memory_planning(graph)[0] == 6 * size  # all of a wave, beside all that it reads
    offsets = [t.attrs["offset"] for t in graph if t.src_ops() and not t.is_output]
    assert sorted(offsets) == [i * size for i in range(6)]
    monkeypatch.setenv("AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS", "1")
    assert simple_multistream_memory_planning(graph)[0] == 4 * size
    assert naive[2].total_size() == 0


def test_a_view_takes_no_memory() -> None:
    y = ops.reshape()(of(FuncEnum.TANH, x(4, 16)), [64])
    graph = toposort(of(FuncEnum.EXP, y).mark_as_output("z"))
    assert naive_memory_planning(graph)[0] == 256 and y.attrs["offset"] is None


def test_waves() -> None:
    order = track_parallel_ops(branches())
    assert [len(found) for found in order.values()] == [3, 3, 1]
    assert [len(wave) for wave in split_simple_multistream_parallel_ops(order, 2)] == [2, 1, 2, 1, 1]
    with pytest.raises(BuildError, match="at least 1"):
        split_simple_multistream_parallel_ops(order, 0)


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIT_MULTISTREAM_MODE", "AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS", "AIT_FORCE_PROFILER_CACHE"):
        monkeypatch.delenv(name, raising=False)
    assert multistream_mode() == 0 and multistream_max_mem_parallel_ops() == 99_999_999 and not force_profiler_cache()
    monkeypatch.setenv("AIT_MULTISTREAM_MODE", "1")
    monkeypatch.setenv("AIT_FORCE_PROFILER_CACHE", "1")
    assert multistream_mode() == 1 and force_profiler_cache()
    monkeypatch.setenv("AIT_MULTISTREAM_MODE", "2")
    monkeypatch.setenv("AIT_FORCE_PROFILER_CACHE", "yes")
    for call, found in ((multistream_mode, "'2'"), (force_profiler_cache, "'yes'")):
        with pytest.raises(BuildError, match=found):
            call()


def test_streams_and_waves_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MODE", "EXTRA_STREAMS", "MAX_MEM_PARALLEL_OPS"):
        monkeypatch.delenv(f"AIT_MULTISTREAM_{name}", raising=False)
    assert (streams_of_environment(), waves_of_environment()) == (None, 0)  # estimates decide
    monkeypatch.setenv("AIT_MULTISTREAM_MODE", "0")
    assert (streams_of_environment(), waves_of_environment()) == (0, 0)
    monkeypatch.setenv("AIT_MULTISTREAM_MODE", "1")
    assert (streams_of_environment(), waves_of_environment()) == (5, 99_999_999)
    monkeypatch.setenv("AIT_MULTISTREAM_EXTRA_STREAMS", "1")
    monkeypatch.setenv("AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS", "3")
    assert (streams_of_environment(), waves_of_environment()) == (2, 3)
    options = CompileOptions("cuda", "sm_90a", streams=streams_of_environment(), waves=waves_of_environment())
    a = x()
    module = build_module([ops.softmax()(a, i).mark_as_output(f"y{i}") for i in range(2)])
    run_to_phase(module, "planned", options)
    found = [op.stream.value.data for op in module.walk() if isinstance(op, LaunchOp)]
    assert found[:2] == [0, 1]
    monkeypatch.setenv("AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS", "0")
    with pytest.raises(BuildError, match="is 0, expected at least 1"):
        waves_of_environment()


def test_strides() -> None:
    a = x(IntVar([1, 8], name="n"), 8)
    left, right = ops.split()(a, 4, 1)
    z = ops.concatenate()([of(FuncEnum.TANH, right), of(FuncEnum.EXP, left)], 1)
    y = ops.softmax()(z, 1).mark_as_output("y")
    graph = toposort(y)
    assert transform_strided_ops(graph) == graph
    by_name = {op.attrs.get("func", op.attrs["op"]): op.attrs for op in get_sorted_ops(graph)}
    assert by_name["split"]["nop"] and by_name["concatenate"]["nop"]
    (read,), (written,) = (by_name[FuncEnum.TANH][f"{what}_accessors"] for what in ("input", "output"))
    assert (read.tensor, read.offset, read.strides) == (a, "4", ("8", "1"))
    assert (written.tensor, written.offset, written.strides, written.whole) == (z, "0", ("8", "1"), False)
    assert [t.attrs["is_view_of"] for t in graph if t.attrs["is_view_of"]] == [z, z]
    (out,) = by_name["softmax"]["output_accessors"]
    assert out.tensor is y and out.whole


# ** profiling **


def test_profilers_run_on_their_devices_and_the_fastest_is_kept() -> None:
    (operator,) = ops.gemm_rcr()(x(), w(4, 8)).src_ops()
    operator.attrs["name"] = "gemm"
    delegate = GemmProfilerPostprocessingDelegate()
    delegate.watch(operator)
    runner = ProfilerRunner(["3", "5"], delegate, timeout=60)
    seen: list[str | None] = []

    def collect(split_k: int):
        def callback(out: str | None, to: GemmProfilerPostprocessingDelegate) -> None:
            seen.append(out)
            if out is not None:
                to.add_instance(ProfileResult("gemm", "m_2", f"cut{split_k}", float(out.split()[0]), split_k=split_k))

        return callback

    code = "import os, sys; print(sys.argv[1], os.environ['CUDA_VISIBLE_DEVICES'])"
    for split_k, milliseconds in ((1, "3.5"), (2, "1.5"), (4, "2.5")):
        runner.push([sys.executable, "-c", code, milliseconds], collect(split_k))
    runner.push([sys.executable, "-c", "import sys; sys.exit(3)"], collect(8))
    runner.push(["/no/such/profiler"], collect(16))
    runner.join()
    assert seen.count(None) == 2 and {out.split()[1] for out in seen if out} <= {"3", "5"}
    assert delegate.best["gemm", "m_2"].split_k == 2
    assert operator.attrs["exec_path"]["m_2"].op_config == "cut2"


def test_operators_by_number_and_function() -> None:
    added, other = x() + x(), ops.softmax()(x(), dim=0)
    add = extract_only_one_op(added.src_ops())
    softmax = extract_only_one_op(other.src_ops())
    assert add is not None and softmax is not None and extract_only_one_op([]) is None
    assert extract_only_one_op([add, softmax]) is None
    assert [is_elementwise_type(op, ops.FuncEnum.ADD) for op in (add, softmax)] == [True, False]
    assert not is_elementwise_type(add, ops.FuncEnum.MUL)


def test_a_profiler_that_hangs_is_stopped() -> None:
    delegate = GemmProfilerPostprocessingDelegate()
    runner = ProfilerRunner(["0"], delegate, timeout=1)
    seen: list[object] = []
    runner.push([sys.executable, "-c", "import time; time.sleep(600)"], lambda out, _: seen.append(out))
    runner.join()
    assert seen == [None] and delegate.best == {}
    for devices, timeout, message in (([], 1, "at least one device"), (["0"], 0, "more than 0")):
        with pytest.raises(BuildError, match=message):
            ProfilerRunner(devices, delegate, timeout)


@pytest.fixture
def timings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIT_TIMINGS", str(tmp_path / "timings.sqlite3"))
    monkeypatch.delenv("AIT_FORCE_PROFILER_CACHE", raising=False)
    return tmp_path / "timings.sqlite3"


def product_to_time() -> list[Tensor]:
    return toposort(ops.gemm_rcr()(x(IntVar([1, 64], name="n"), 8), w(16, 8)).mark_as_output("y"))


def test_a_forced_cache_without_times(timings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = product_to_time()
    monkeypatch.setenv("AIT_FORCE_PROFILER_CACHE", "1")
    with pytest.raises(AitError, match=r"no known time for ait.gemm"):
        profile(graph, tmp_path, target="cpu")
    assert "kernels" not in get_sorted_ops(graph)[0].attrs


def test_a_compilation_with_a_forced_cache(timings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIT_FORCE_PROFILER_CACHE", "1")
    product = ops.gemm_rcr()(x(), w(4, 8)).mark_as_output("y")
    with pytest.raises(RuntimeError, match=r"no known time for ait.gemm"):
        compile_model(product, "cpu", tmp_path, "product", constants={"w": np.ones((4, 8), np.float32)})
    only = ops.elementwise(FuncEnum.TANH)(x()).mark_as_output("y")
    with compile_model(only, "cpu", tmp_path, "tanh") as model:  # there is one way to compute it
        zeros, ones = np.zeros((2, 8), np.float32), np.ones((2, 8), np.float32)
        assert model.run({"x": zeros}, {"y": ones})["y"].sum() == 0


def test_devices_are_those_that_time(timings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[int, ...]] = []
    module = import_module("ait_mlir.compiler.transform.profile")
    monkeypatch.setattr(module, "select_graph", lambda *_: found.append(MEASURE_DEVICES.get()))
    profile(product_to_time(), tmp_path, devices=[2, 1], target="cpu")
    profile(product_to_time(), tmp_path, target="cpu")
    assert found == [(2, 1), (0,)] and MEASURE_DEVICES.get() == (0,)


@pytest.mark.full
def test_profile_and_forced_cache(timings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = product_to_time()
    (operator,) = get_sorted_ops(graph)
    profile(graph, tmp_path, target="cpu", dynamic_profiling_strategy=DynamicProfileStrategy.MIN, timeout=60)
    (kernel,) = operator.attrs.pop("kernels")
    assert kernel.startswith("#ait.kernel<") and (tmp_path / "profile.mlir").is_file()
    monkeypatch.setenv("AIT_FORCE_PROFILER_CACHE", "1")
    profile(graph, tmp_path, target="cpu", dynamic_profiling_strategy="MIN")
    assert operator.attrs["kernels"] == [kernel]
    with sqlite3.connect(timings) as database:  # what another version of the package left
        for key, what in database.execute("SELECT key, what FROM times").fetchall():
            older = json.dumps({**json.loads(what), "method": 0})
            database.execute("UPDATE times SET what = ? WHERE key = ?", (older, key))
        database.execute("DELETE FROM choices")
    with pytest.raises(AitError, match="times of another version, which do not count"):
        profile(graph, tmp_path, target="cpu", dynamic_profiling_strategy="HINTS")


def test_wrong_arguments_of_profile(timings: Path, tmp_path: Path) -> None:
    graph = toposort(ops.gemm_rcr()(x(), w(4, 8)).mark_as_output("y"))
    with pytest.raises(BuildError, match="expected MIN, MAX or HINTS"):
        profile(graph, tmp_path, dynamic_profiling_strategy="ALL")
    with pytest.raises(BuildError, match=r"devices is \[-1\], expected a list of the numbers of cards"):
        profile(graph, tmp_path, devices=[-1], target="cpu")
    assert "kernels" not in get_sorted_ops(graph)[0].attrs
