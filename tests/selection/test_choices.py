"""Kernels that the text asks for: ranges run, and what cannot run is refused with a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ait_mlir.driver import compile_module, emit, run_to_phase
from ait_mlir.ir.parser import check
from ait_mlir.ir.source import SourceError
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from tests.selection.cards import parse

TEXT = """
ait.graph @g(%x: !ait.tensor<b x 64 x ELEMENT>) dims {b = 1 to 300} {
  %w = ait.param "w" : !ait.tensor<128 x 64 x ELEMENT>
  %v = ait.param "v" : !ait.tensor<128 x ELEMENT>
  %0 = ait.gemm rcr %x, %w epilogue(%v) {
  ^bb0(%a: f32, %c: f32):
    %1 = ait.add %a, %c : f32
    %2 = ait.relu %1 : f32
    ait.yield %2 : f32
  } {kernel = CHOICE} : !ait.tensor<b x 128 x ELEMENT>
  ait.output "y" %0 : !ait.tensor<b x 128 x ELEMENT>
}
"""
THREE = (
    '#ait.kernel<"ranges", {axis = "b", upto = [2 : i64, 11 : i64], candidates = ['
    '{kernels = [#ait.kernel<"openblas", {}>]}, '
    '{kernels = [#ait.kernel<"native", {}>, #ait.kernel<"native", {}>], cut = "epilogue 1"}, '
    '{kernels = [#ait.kernel<"native", {}>]}]}>'
)


def pinned(choice: str, element: str = "f32") -> str:
    return TEXT.replace("CHOICE", choice).replace("ELEMENT", element)


def test_ranges_run(tmp_path: Path):
    module = parse(pinned(THREE))
    rng = np.random.default_rng(0)
    w, v = rng.standard_normal((128, 64), dtype=np.float32), rng.standard_normal(128, dtype=np.float32)
    path = compile_module(module, output=tmp_path / "g.ait", workdir=tmp_path / "work", constants={"w": w, "v": v})
    program = (tmp_path / "work" / "program.cc").read_text()
    assert "if (dim_0 <= 2) {" in program and "else if (dim_0 <= 11) {" in program
    again = parse((tmp_path / "work" / "planned.mlir").read_text())
    check(again)
    assert str(again) == str(module)
    with Model(path) as model:
        for b in (1, 2, 3, 11, 12, 300):
            x = rng.standard_normal((b, 64), dtype=np.float32)
            y = np.full((b, 128), np.nan, np.float32)
            model.run({"x": x}, {"y": y})
            exact = np.maximum(x.astype(np.float64) @ w.T.astype(np.float64) + v, 0)
            assert np.abs(y - exact).max() < 1e-4


def test_the_workspace_is_that_of_the_largest_candidate():
    module = run_to_phase(parse(pinned(THREE)), "planned")
    assert "arena (512*b)" in str(module)


def test_ranges_make_cuda_source():
    choice = (
        '#ait.kernel<"ranges", {axis = "b", upto = [8 : i64], candidates = ['
        '{kernels = [#ait.kernel<"native", {tile_m = 64 : i64, tile_n = 64 : i64}>]}, '
        '{kernels = [#ait.kernel<"cublaslt", {id = 66 : i64, cluster = 2 : i64}>, #ait.kernel<"native", {}>], '
        'cut = "epilogue"}]}>'
    )
    files = emit(run_to_phase(parse(pinned(choice, "f16")), "planned", CompileOptions("cuda", "sm_90a"))).files
    assert "if (dim_0 <= 8) {" in files["program.cc"]
    assert sum(name.endswith(".cu") for name in files) == 3 and "copy_tensor_2.cu" in files
    (text,) = (text for text in files.values() if "ait::library_gemm(ctx, args)" in text)
    assert "algorithm = {{66, 0, 0, 0, 0, 0, 0, 0, 2}};" in text


@pytest.mark.parametrize(
    ("config", "arena"),
    [
        ("", (1 << 20) + 8 * 4 * 300 * 128),
        ("id = 66 : i64", 1 << 20),
        ("split = 3 : i64", (1 << 20) + 3 * 4 * 300 * 128),
    ],
)
def test_the_workspace_of_a_library_is_that_of_the_named_algorithm(config: str, arena: int):
    config += ", id = 6 : i64" if "split" in config else ""
    module = run_to_phase(
        parse(pinned(f'#ait.kernel<"cublaslt", {{{config}}}>', "f16")), "planned", CompileOptions("cuda", "sm_90a")
    )
    assert f"arena ({arena})" in str(module)


def test_a_candidate_names_an_algorithm():
    candidate = Candidate.of("epilogue 1", [("cublaslt", {}), ("native", {"tile_m": 64})])
    assert candidate.asks_a_library and candidate.algorithm == ()
    named = candidate.naming((66, 20, 1, 0, 0, 0, 36, 0, 2))
    assert named.kernels[0] == ("cublaslt", (("cluster", 2), ("id", 66), ("split", 1), ("stages", 36), ("tile", 20)))
    assert named.kernels[1] == candidate.kernels[1] and named.cut == "epilogue 1"
    assert named.algorithm == (66, 20, 1, 0, 0, 0, 36, 0, 2) and Candidate.read(named.text).algorithm == named.algorithm
    assert named.naming(()) == candidate and named.naming((0,) * 9).algorithm == (0,) * 9
    native = Candidate.of(None, [("native", {"tile_m": 64})])
    assert not native.asks_a_library and native.naming(named.algorithm) == native and native.algorithm == ()


WRONG = {
    '"native"': 'the attribute \'kernel\' is "native", expected one like #ait.kernel<"native", {}>',
    '#ait.kernel<"nobody", {}>': "provider 'nobody' has no kernel for ait.gemm",
    '#ait.kernel<"native", {tile_m = 1.0}>': "configuration 'tile_m' of the kernel is 1.0",
    '#ait.kernel<"native", {tile_mm = 64 : i64}>': "unknown configuration 'tile_mm'; its keys are blocks",
    '#ait.kernel<"native", {tile_m = 48 : i64}>': "a warp computes multiples of 16 rows",
    '#ait.kernel<"native", {tile_m = -64 : i64}>': "configuration 'tile_m' is -64, expected at least 0",
    '#ait.kernel<"hopper", {stages = 1 : i64}>': "at least 2 stages",
    '#ait.kernel<"hopper", {algo = 1 : i64}>': "unknown configuration 'algo'; its keys are cluster",
    '#ait.kernel<"cublaslt", {tile_m = 64 : i64}>': "unknown configuration 'tile_m'; its keys are cluster, custom, id",
    '#ait.kernel<"cublaslt", {split = 2 : i64}>': "{'split': 2} names no algorithm: it has no id",
    '#ait.kernel<"ranges", {}>': "ranges has axis, upto and candidates; found nothing",
    '#ait.kernel<"ranges", {axis = "b", upto = [], candidates = []}>': "0 limits make 1 ranges, found 0 candidates",
    '#ait.kernel<"ranges", {axis = "b +", upto = [], candidates = [{}]}>': "is no dim expression",
    '#ait.kernel<"ranges", {axis = 1 : i64, upto = [], candidates = [{}]}>': "expected ranges like",
    '#ait.kernel<"ranges", {axis = "b", upto = [4 : i64, 2 : i64], candidates = []}>': "must be integers that grow",
    '#ait.kernel<"ranges", {axis = "b", upto = [], candidates = [{kernel = 1 : i64}]}>': "a candidate of ranges is {kernels",
    '#ait.kernel<"ranges", {axis = "b", upto = [], candidates = [{kernels = [#ait.kernel<"ranges", {}>]}]}>': "are like #ait",
    '#ait.kernel<"ranges", {axis = "b", upto = [], candidates = [{kernels = [#ait.kernel<"native", {}>], cut = 1 : i64}]}>': (
        'the cut of a candidate must be a string like "epilogue 1", found 1 : i64'
    ),
    '#ait.kernel<"ranges", {axis = "c", upto = [], candidates = [{kernels = [#ait.kernel<"native", {}>]}]}>': (
        "has the dim 'c', which is not declared"
    ),
    '#ait.kernel<"ranges", {axis = "b", upto = [], candidates = [{kernels = [#ait.kernel<"native", {}>], cut = "epilogue 1"}]}>': (
        "cut at 'epilogue 1': 2 kernels are needed, 1 are given"
    ),
    '#ait.kernel<"ranges", {axis = "b", upto = [], candidates = [{kernels = [#ait.kernel<"native", {}>], cut = "halves"}]}>': (
        "ait.gemm has no cut 'halves'; it can be cut by 'epilogue'"
    ),
    '#ait.kernel<"ranges", {axis = "b", upto = [], candidates = [{kernels = [], cut = "epilogue 2"}]}>': (
        "ait.gemm cannot be cut at 'epilogue 2'"
    ),
    '#ait.kernel<"ranges", {axis = "b", upto = [], candidates = [{kernels = [#ait.kernel<"native", {x = 1 : i64}>]}]}>': (
        "unknown configuration 'x'"
    ),
}


@pytest.mark.parametrize("choice", WRONG)
def test_wrong_choices(choice: str):
    with pytest.raises(SourceError) as error:
        run_to_phase(parse(pinned(choice, "f16")), "selected", CompileOptions("cuda", "sm_90a"))
    (diagnostic,) = error.value.diagnostics
    assert WRONG[choice] in diagnostic.message
    assert diagnostic.line == 5


def test_a_view_runs_on_no_kernel():
    text = """
    ait.graph @g(%x: !ait.tensor<4 x 8 x f32>) {
      %0 = ait.reshape %x {kernel = #ait.kernel<"native", {}>} : !ait.tensor<32 x f32>
      ait.output "y" %0 : !ait.tensor<32 x f32>
    }"""
    with pytest.raises(SourceError, match=r"ait\.reshape runs on no kernel; leave out its attribute 'kernel'"):
        run_to_phase(parse(text), "selected")


def test_wrong_configurations_are_found_later_too():
    module = run_to_phase(
        parse(pinned('#ait.kernel<"hopper", {}>', "f16")), "planned", CompileOptions("cuda", "sm_90a")
    )
    text = str(module).replace('"hopper" {}', '"hopper" {stages = 1 : i64}')
    assert text != str(module)
    with pytest.raises(SourceError, match="at least 2 stages"):
        emit(parse(text))


def test_attention_tiles():
    text = """
ait.graph @g(%q: !ait.tensor<b x 4 x 64 x 64 x f16>) dims {b = 1 to 8} {
  %0 = ait.attention %q, %q, %q scale 0.125 {kernel = #ait.kernel<"native", {CONFIG}>} : !ait.tensor<b x 4 x 64 x 64 x f16>
  ait.output "y" %0 : !ait.tensor<b x 4 x 64 x 64 x f16>
}
"""
    for config, what in (("cols = 24 : i64", "cols is a multiple of 16"), ("warps = 99 : i64", "1 to 16 warps")):
        with pytest.raises(SourceError, match=what):
            run_to_phase(parse(text.replace("CONFIG", config)), "selected", CompileOptions("cuda", "sm_90a"))
    run_to_phase(parse(text.replace("CONFIG", "warps = 2 : i64")), "selected", CompileOptions("cuda", "sm_90a"))


GATED = """
ait.graph @g(%x: !ait.tensor<b x 40 x f32>, %r: !ait.tensor<24 x f32>) dims {b = 1 to 300} {
  %w = ait.param "w" : !ait.tensor<48 x 40 x f32>
  %0 = ait.gated_gemm rcr %x, %w epilogue(%r) {
  ^bb0(%g: f32, %u: f32, %c: f32):
    %1 = ait.silu %g : f32
    %2 = ait.mul %1, %u : f32
    %3 = ait.add %2, %c : f32
    ait.yield %3 : f32
  } KERNEL : !ait.tensor<b x 24 x f32>
  ait.output "y" %0 : !ait.tensor<b x 24 x f32>
}
"""
GATED_RANGES = (
    '{kernel = #ait.kernel<"ranges", {axis = "b", upto = [5 : i64], candidates = ['
    '{kernels = [#ait.kernel<"openblas", {}>, #ait.kernel<"native", {}>], cut = "halves"}, '
    '{kernels = [#ait.kernel<"native", {}>, #ait.kernel<"native", {}>], cut = "halves"}]}>}'
)


@pytest.mark.parametrize("kernel", ["", GATED_RANGES], ids=["chosen", "ranges"])
def test_a_gated_product_runs_where_no_kernel_has_it(kernel: str, tmp_path: Path):
    """As a product and a pass over its halves: as ops of their own, or inside of one launch over ranges."""
    module = parse(GATED.replace("KERNEL", kernel))
    rng = np.random.default_rng(0)
    w, r = rng.standard_normal((48, 40), dtype=np.float32), rng.standard_normal(24, dtype=np.float32)
    path = compile_module(module, output=tmp_path / "g.ait", workdir=tmp_path / "work", constants={"w": w})
    program = (tmp_path / "work" / "program.cc").read_text()
    assert ("if (dim_0 <= 5) {" in program) is bool(kernel)
    with Model(path) as model:
        for b in (1, 5, 6, 300):
            x = rng.standard_normal((b, 40), dtype=np.float32)
            y = np.full((b, 24), np.nan, np.float32)
            model.run({"x": x, "r": r}, {"y": y})
            gate, up = np.split(x.astype(np.float64) @ w.T.astype(np.float64), 2, axis=1)
            assert np.abs(y - (gate / (1 + np.exp(-gate)) * up + r)).max() < 1e-4


ROTATED = """
ait.graph @g(%x: !ait.tensor<b x 40 x f32>, %c: !ait.tensor<b x 2 x f32>, %s: !ait.tensor<2 x f32>) dims {b = 1 to 300} {
  %w = ait.param "w" : !ait.tensor<COLUMNS x 40 x f32>
  %0 = ait.rotated_gemm %x, %w cosines %c sines %s heads 3 size 4 : !ait.tensor<b x COLUMNS x f32>
  ait.output "y" %0 : !ait.tensor<b x COLUMNS x f32>
}
"""


@pytest.mark.parametrize("columns", [12, 17])
def test_a_rotated_product_runs_where_no_kernel_has_it(columns: int, tmp_path: Path):
    """As a product and a pass over its heads; other columns are copied."""
    module = parse(ROTATED.replace("COLUMNS", str(columns)))
    rng = np.random.default_rng(0)
    w, s = rng.standard_normal((columns, 40), dtype=np.float32), rng.standard_normal(2, dtype=np.float32)
    path = compile_module(module, output=tmp_path / "g.ait", workdir=tmp_path / "work", constants={"w": w})
    with Model(path) as model:
        for b in (1, 300):
            x, c = (rng.standard_normal((b, n), dtype=np.float32) for n in (40, 2))
            y = np.full((b, columns), np.nan, np.float32)
            model.run({"x": x, "c": c, "s": s}, {"y": y})
            want = x.astype(np.float64) @ w.T.astype(np.float64)
            for head in range(0, 12, 4):
                first, second = want[:, head : head + 2].copy(), want[:, head + 2 : head + 4].copy()
                want[:, head : head + 2] = first * c - second * s
                want[:, head + 2 : head + 4] = second * c + first * s
            assert np.abs(y - want).max() < 1e-3


@pytest.mark.parametrize(
    ("kernels", "cut", "problem"),
    [
        ('#ait.kernel<"native", {}>', "", "'native' has no kernel for ait.gated_gemm"),
        (
            '#ait.kernel<"native", {}>, #ait.kernel<"native", {}>',
            ', cut = "halves 1"',
            "ait.gated_gemm cannot be cut at 'halves 1'",
        ),
    ],
)
def test_what_a_gated_product_has_no_kernel_for_is_refused(kernels: str, cut: str, problem: str):
    candidate = f"{{kernels = [{kernels}]{cut}}}"
    text = f'{{kernel = #ait.kernel<"ranges", {{axis = "b", upto = [5 : i64], candidates = [{candidate}, {candidate}]}}>}}'
    with pytest.raises(SourceError, match=problem):
        run_to_phase(parse(GATED.replace("KERNEL", text)), "selected")


def test_an_op_with_too_many_positions_says_so() -> None:
    text = """ait.graph @g(%x: !ait.tensor<b x h x w x 8 x f32>, %k: !ait.tensor<8 x 3 x 3 x 8 x f32>)
        dims {b = 1 to 4096, h = 1 to 4096, w = 1 to 4096} {
      %y = ait.conv %x, %k pad [1, 1] : !ait.tensor<b x h x w x 8 x f32>
      ait.output "y" %y : !ait.tensor<b x h x w x 8 x f32>
    }"""
    with pytest.raises(SourceError, match=r"may have 549755813888 elements .* give the dims smaller maxima"):
        run_to_phase(parse(text), "selected")
