"""Candidates compiled and timed for real, on the CPU."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.lowering import joining
from ait_mlir.lowering.build import refused_sources, sources_digest
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.kernels import Target
from ait_mlir.selection.measure import Selector
from ait_mlir.selection.meter import DeviceMeter, content, random_bytes
from ait_mlir.selection.timings import TimingCache
from tests.kernels.harness import parse_graph
from tests.selection.cards import SETTING, tasks_of

CPU = Target("cpu", "native")
TEXT = """
ait.graph @g(%x: !ait.tensor<b x 64 x f32>) dims {b = 1 to 300 hints [4]} {
  %w = ait.param "w" : !ait.tensor<128 x 64 x f32>
  %v = ait.param "v" : !ait.tensor<128 x f32>
  %0 = ait.gemm rcr %x, %w epilogue(%v) {
  ^bb0(%a: f32, %c: f32):
    %1 = ait.add %a, %c : f32
    ait.yield %1 : f32
  } : !ait.tensor<b x 128 x f32>
  ait.output "y" %0 : !ait.tensor<b x 128 x f32>
}
"""


def test_every_kernel_of_the_cpu_is_timed(tmp_path: Path):
    (task,) = tasks_of(TEXT)
    candidates = [Candidate.of(None, [(p, {})]) for p in ("packed", "openblas", "native")]
    with DeviceMeter(CPU) as meter:
        meter.build([(task, w) for w in candidates])
        times = meter.race(task, (4,), candidates, 1e-6)
        assert set(times) == set(candidates)
        assert all(1e-8 < t.seconds < math.inf for t in times.values())
        assert len({meter.source(task, w) for w in candidates}) == 3
        assert meter.source(task, Candidate.of(None, [("nobody", {})])) is None
        folders = [scratch.path for scratch in meter.folders]
        assert all(f.is_dir() for f in folders)
    assert not any(f.exists() for f in folders)


def test_a_library_without_algorithms_lists_none():
    (task,) = tasks_of(TEXT)
    candidate = Candidate.of(None, [("openblas", {})])
    with DeviceMeter(CPU) as meter:
        meter.build([(task, candidate)])
        assert meter.algorithms(task, (4,), candidate) == []
        assert meter.algorithms(task, (4,), Candidate.of(None, [("nobody", {})])) == []
        assert candidate in meter.race(task, (4,), [candidate], 1e-6)


def test_candidates_that_differ_in_an_algorithm_are_one_program(monkeypatch: pytest.MonkeyPatch):
    # the digest asks for the compiler's version; nothing is compiled
    monkeypatch.setenv("CUDACXX", "g++")
    (task,) = tasks_of(TEXT.replace("f32>", "f16>"))
    candidate = Candidate.of(None, [("cublaslt", {})])
    with DeviceMeter(Target("cuda", "sm_90a")) as meter:
        program = meter.program(task, candidate)
        assert program is not None and program is meter.program(task, candidate.naming((66, 20, 1, 0, 0, 0, 36, 0, 2)))
        assert program is not meter.program(task, Candidate.of(None, [("native", {})]))


def test_a_choice_on_the_cpu_is_remembered(tmp_path: Path):
    cache = TimingCache(tmp_path / "t.sqlite3")
    with DeviceMeter(CPU) as meter:
        (choice,) = Selector(CPU, SETTING, cache, None, meter).choose(tasks_of(TEXT))
    assert choice is not None and len(choice.candidates) == 1
    again = Selector(CPU, SETTING, cache, None, DeviceMeter(CPU))
    assert again.choose(tasks_of(TEXT)) == [choice]
    assert not again.log


def test_sources_that_are_refused_do_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "cache"))
    good, bad = 'extern "C" int f() { return 1; }\n', "static_assert(false);\n"
    sources = {"good.cc": good, "bad.cc": bad, "better.cc": good.replace("f()", "g()")}
    assert refused_sources(sources, CPU, tmp_path / "w") == {"bad.cc"}
    assert refused_sources({"good.cc": good}, CPU, tmp_path / "w") == set()


def test_the_digest_of_a_source_counts_its_headers_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = tmp_path / "runtime"
    (root / "include" / "ait").mkdir(parents=True)
    for name, text in (("a.h", '#include "ait/b.h"\n'), ("b.h", "int b;\n"), ("c.h", "int c;\n")):
        (root / "include" / "ait" / name).write_text(text)
    monkeypatch.setattr("ait_mlir.lowering.build.cpp_root", lambda: root)
    source = {"x.cc": '#include "ait/a.h"\n'}
    first = sources_digest(source, CPU)
    (root / "include" / "ait" / "c.h").write_text("int changed;\n")
    assert sources_digest(source, CPU) == first
    (root / "include" / "ait" / "b.h").write_text("int changed;\n")
    assert sources_digest(source, CPU) != first
    assert sources_digest({"x.cc": source["x.cc"] + "//"}, CPU) != sources_digest(source, CPU)
    assert sources_digest(source, Target("cpu", "x86-64")) != sources_digest(source, CPU)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "bool", "int8", "int32", "int64"])
def test_inputs_are_neither_zero_nor_unusual(dtype: str):
    from ait_mlir.dtypes import numpy_dtype

    data = random_bytes(dtype, 6400)
    assert data.nbytes == 6400
    values = data.view(numpy_dtype(dtype)).astype("float64")
    assert abs(values).max() < 10 and values.std() > 0.3
    assert random_bytes(dtype, 0).nbytes == 1


def test_sources_that_another_process_compiles_too_are_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its object, which differs in a time or a name, may stand there, with the digest of ours."""
    monkeypatch.setenv("AIT_CACHE_DIR", str(tmp_path / "cache"))
    keep = joining.keep

    def and_another(source: Path, path: Path, key: str) -> None:
        keep(source, path, key)
        path.write_bytes(path.read_bytes() + b"\0")

    monkeypatch.setattr(joining, "keep", and_another)
    source = {"good.cc": 'extern "C" int f() { return 1; }\n'}
    assert refused_sources(source, CPU, tmp_path / "w") == set()


def test_groups_of_rows_are_timed_with_rows() -> None:
    graph = parse_graph(
        "ait.graph @g(%a: !ait.tensor<t x 4 x f32>, %b: !ait.tensor<g x 4 x 8 x f32>, %ends: !ait.tensor<g x i64>) "
        "dims {t = 0 to 99, g = 0 to 9} {\n"
        "  %y = ait.ragged_gemm %a, %b to %ends : !ait.tensor<t x 8 x f32>\n"
        '  ait.output "y" %y : !ait.tensor<t x 8 x f32>\n}'
    )
    a, b, ends = graph.block.args
    assert list(content(ends, {"t": 10, "g": 4}).view(np.int64)) == [2, 5, 7, 10]
    assert content(ends, {"t": 10, "g": 0}).nbytes == 1
    assert content(a, {"t": 10, "g": 4}).nbytes == 160 and content(b, {"t": 10, "g": 4}).nbytes == 512


def test_inputs_with_strides_have_room_for_them(tmp_path: Path) -> None:
    text = TEXT.replace("%x: !ait.tensor<b x 64 x f32>", "%x: !ait.tensor<b x 64 x f32> strides [96, 1]")
    (task,) = tasks_of(text)
    (x,) = task.graph.block.args
    assert content(x, {"b": 4}).nbytes == 4 * (3 * 96 + 64) and content(x, {"b": 1}).nbytes == 4 * 64
    candidates = [Candidate.of(None, [(p, {})]) for p in ("packed", "native")]
    with DeviceMeter(CPU) as meter:
        meter.build([(task, w) for w in candidates])
        assert set(meter.race(task, (4,), candidates, 1e-6)) == set(candidates)
    ends = parse_graph(
        "ait.graph @g(%a: !ait.tensor<t x 4 x f32>, %b: !ait.tensor<g x 4 x 8 x f32>, "
        "%ends: !ait.tensor<g x i64> strides [2]) dims {t = 0 to 99, g = 0 to 9} {\n"
        "  %y = ait.ragged_gemm %a, %b to %ends : !ait.tensor<t x 8 x f32>\n"
        '  ait.output "y" %y : !ait.tensor<t x 8 x f32>\n}'
    ).block.args[2]
    assert list(content(ends, {"t": 10, "g": 4}).view(np.int64)) == [2, 0, 5, 0, 7, 0, 10]
