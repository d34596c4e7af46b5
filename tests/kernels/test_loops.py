"""Generated loops: on the CPU beside the reference, and the schedules that are refused."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.driver import compile_module, run_to_phase
from ait_mlir.ir.source import SourceError
from ait_mlir.lowering.kernels import Target, kernel_of
from ait_mlir.lowering.kernels.generated import kept_bytes, lanes_of_row, nest_known
from ait_mlir.lowering.loops.estimates import Estimate
from ait_mlir.lowering.loops.moments import in_one_pass
from ait_mlir.lowering.loops.nest import nest_of
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from tests import tiers
from tests.emulator.library import EmulatedLibrary
from tests.kernels import loop_texts, loops, random_loops
from tests.kernels.harness import CPU, Case, Library
from tests.kernels.library_gemm import on_kernel
from tests.selection.cards import parse
from tests.specs.loops import FOLDS, MAPPED
from tests.specs.spec import Spec

CASES = dict(loops.cases(CPU))
OUTSIDE = loops.SPEC.drawn("gather", "f32")
CUDA = Target("cuda", "sm_90a")
SHIFTED = "%s = ait.fold add for (k = 96) { %v = ait.at %a_[r, 95 - k]"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library([*CASES.values(), OUTSIDE], tmp_path_factory.mktemp("loops"))


@pytest.mark.parametrize("name", CASES)
def test_loops(name: str, library: Library) -> None:
    loops.check_loops(library, CASES[name], name)


def test_an_index_outside_of_its_dim_fails_and_is_named(library: Library) -> None:
    x = np.zeros((2, 50), np.float32)
    ids = np.full((2, 33), 7)
    ids[1, 5] = 50
    with pytest.raises(RuntimeError, match=r"ait\.at: index 50 is outside of dim 1, which has 50 elements"):
        library.run(OUTSIDE, {"b": 2, "s": 0, "u": 1, "t": 1}, [x, ids])


@pytest.mark.parametrize(
    ("form", "provider", "config", "problem"),
    [
        ("nearest", "native", {"lanes": 3}, "'lanes' is 3, expected a power of two"),
        ("nearest", "native", {"lanes": 16}, "'lanes' is 16, expected at most 8"),
        ("nearest", "native", {"lanes": 8, "items": 32}, "'items' is 32, expected at most 16"),
        ("middle-odd", "native", {"lanes": 2}, "'lanes' is 2, which does not divide the 13 neighbours of a result"),
        ("softmax", "rows", {"threads": 2048, "lanes": 8, "kept": 0}, "a block has at most 1024"),
        ("softmax", "rows", {"threads": 2, "lanes": 8, "kept": 1}, "no room for the elements of a row in registers"),
        ("softmax", "rows", {"threads": 4, "lanes": 8, "kept": 2}, "in registers; set 'kept' to 1 or 0"),
        ("softmax", "rows", {"threads": 64, "lanes": 8, "kept": 3}, "'kept' is 3, expected 0, 1 or 2"),
        ("segments", "rows", {"threads": 8, "lanes": 8, "kept": 0}, "'threads' is 8, but 16 have a segment of a row together"),
        ("middle", "columns", {"columns": 64, "rows": 32, "lanes": 8}, "2048 threads, a block has 1024"),
        ("middle", "columns", {"columns": 32, "rows": 32, "lanes": 8}, "65536 bytes of shared memory, there are 49152"),
        ("middle-odd", "columns", {"columns": 8, "rows": 8, "lanes": 2}, "does not divide the 13 neighbours"),
        ("middle", "columns", {"columns": 8, "rows": 1, "lanes": 8, "kept": 1}, "no room for the elements of a row"),
        ("norm-turned", "rows", {"threads": 32, "lanes": 8, "turned": 12}, "'turned' is 12, expected a power of two"),
        ("norm-turned", "rows", {"threads": 64, "lanes": 8, "turned": 16}, "takes at most 32 threads a row"),
        ("norm-turned", "rows", {"threads": 32, "lanes": 8, "turned": 64}, "64 rows of 32 threads are more than"),
        ("norm", "rows", {"threads": 32, "lanes": 8, "turned": 16}, "unknown configuration 'turned'"),
        ("short-turned", "rows", {"threads": 1, "lanes": 1, "turned": 16}, "unknown configuration 'turned'"),
        ("parts-turned", "columns", {"columns": 8, "rows": 32, "lanes": 8, "turned": 2}, "'turned' is 2, expected 0 or 1"),
        ("middle", "columns", {"columns": 8, "rows": 32, "lanes": 8, "turned": 1}, "unknown configuration 'turned'"),
        ("parts-turned", "columns", {"columns": 32, "rows": 32, "lanes": 8, "turned": 1}, "take 81920 bytes of shared"),
    ],
)
def test_schedules_that_do_not_fit_are_refused(form: str, provider: str, config: dict[str, int], problem: str) -> None:
    op = loops.SPEC.drawn(form, "f16").op
    found = kernel_of(provider, op, CUDA).config_problem(op, config, CUDA)
    assert found is not None and problem in found


@pytest.mark.parametrize("provider", ["native", "rows", "columns", "split", "tiles", "boxes"])
def test_missing_keys_have_defaults(provider: str) -> None:
    case = loops.SPEC.drawn("permute" if provider in ("tiles", "boxes") else "middle", "f16")
    assert kernel_of(provider, case.op, CUDA).config_problem(case.op, {}, CUDA) is None
    for emission in loops.on_kernel(case, provider, {}).emissions(CUDA):
        assert "__global__" in emission.definitions


def test_a_schedule_in_the_text_that_does_not_fit_is_refused_with_its_place() -> None:
    text = loops.SPEC.drawn("softmax", "f16").text
    kernel = '{kernel = #ait.kernel<"rows", {threads = 4096 : i64}>}'
    pinned = text.replace("} : !ait.tensor<b x 512 x f16>\n", f"}} {kernel} : !ait.tensor<b x 512 x f16>\n")
    assert pinned != text
    with pytest.raises(SourceError, match=r"<text>:2:3: error: .*'threads' is 4096, a block has at most 1024"):
        run_to_phase(parse(pinned), "selected", CompileOptions("cuda", "sm_90a"))


def test_a_small_tile_has_a_small_block() -> None:
    case = loops.SPEC.drawn("permute", "f32")
    config = {"along": 4, "across": 4, "lanes": 4}
    (emission,) = loops.on_kernel(case, "tiles", config).emissions(CUDA)
    assert "__launch_bounds__(64)" in emission.definitions and "config.block = dim3(64);" in emission.body


@pytest.mark.parametrize(("items", "line"), [(4, "const Index row0 = a3 * 4 + item;"), (8, "compute(first + item);")])
def test_rows_of_a_thread_share_their_index_if_they_are_neighbours_along_an_axis(items: int, line: str) -> None:
    case = loops.SPEC.drawn("windows", "f32")
    (emission,) = loops.on_kernel(case, "native", {"lanes": 4, "items": items}).emissions(CUDA)
    assert "results: a3 < 4, a5 < 3, a6 < 3, a7 < 3, a8 < 40" in emission.definitions
    assert line in emission.definitions


def test_a_block_of_tiles_computes_all_of_an_axis_that_shares_sectors(tmp_path: Path) -> None:
    """Neighbours of a channels-last image of two channels: both are in a sector."""
    case = loops.on_kernel(loops.SPEC.drawn("pool-turned", "f32"), "tiles", {"along": 4, "across": 8, "lanes": 4})
    (emission,) = case.emissions(CUDA)
    assert emission.definitions.count("for (Index a1 = 0; a1 < 2; ++a1)") == 2, emission.definitions
    assert "float tile0[1024];" in emission.definitions
    loops.check_loops(EmulatedLibrary([case], tmp_path, "cuda"), case, "pool-turned-f32")


@pytest.mark.parametrize("form", ["short", "short-vectors", "short-shifted", "short-turned", "short-unturned", "short-norm", "short-twice"])
def test_a_thread_computes_a_short_row_that_passes_through_shared_memory(form: str, tmp_path: Path) -> None:
    """Each operand that has a row's elements side by side is read once, in the order of memory; results likewise."""
    case = loops.on_kernel(loops.SPEC.drawn(form, "f16"), "rows", {"threads": 1, "lanes": 4, "kept": 1})
    (emission,) = case.emissions(CUDA)
    code = emission.definitions
    tensors = 2 if form == "short-twice" else 1
    assert code.count("take_neighbours<") == (0 if form == "short-unturned" else tensors)
    assert "input0[" not in code or form == "short-unturned"
    assert code.count("input0") == 2  # the parameter, and one read
    assert code.count("put_neighbours<") == (0 if form == "short-turned" else tensors)
    assert "join_threads<ait::Max, 1>" in code or form == "short-norm"
    loops.check_loops(EmulatedLibrary([case], tmp_path, "cuda"), case, f"{form}-f16")


@pytest.mark.parametrize(
    ("form", "provider", "config", "runs"),
    [
        ("norm-turned", "rows", {"threads": 16, "lanes": 8, "kept": 1, "turned": 16}, "16 * 16 * kLanes"),
        ("norm-turned-odd", "rows", {"threads": 32, "lanes": 1, "kept": 0, "turned": 32}, "32 * 32 * kLanes"),
        ("parts-turned", "columns", {"columns": 4, "rows": 64, "lanes": 8, "kept": 1, "turned": 1}, "64 * 4 * kLanes"),
        ("parts-turned-dynamic", "columns", {"columns": 8, "rows": 32, "lanes": 8, "kept": 0, "turned": 1}, "32 * 8 * kLanes"),
    ],
)
def test_results_across_rows_are_stored_in_the_order_of_memory(
    form: str, provider: str, config: dict[str, int], runs: str, tmp_path: Path
) -> None:
    case = loops.on_kernel(loops.SPEC.drawn(form, "f16"), provider, config)
    (emission,) = case.emissions(CUDA)
    assert f"turned0[{runs}];" in emission.definitions, emission.definitions
    assert "output0[" not in emission.definitions
    loops.check_loops(EmulatedLibrary([case], tmp_path, "cuda"), case, f"{form}-f16")


@pytest.mark.parametrize(
    ("form", "provider", "config"),
    [
        ("norm-turned", "rows", {"threads": 32, "lanes": 8, "kept": 0, "turned": 16}),
        ("parts-turned", "columns", {"columns": 8, "rows": 32, "lanes": 8, "kept": 0, "turned": 1}),
    ],
)
def test_results_with_strides_for_which_nothing_turns(
    form: str, provider: str, config: dict[str, int], tmp_path: Path
) -> None:
    """With the strides of a launch, no result is contiguous along the other direction, so each element is stored."""
    known = loops.SPEC.find(form)
    strides = {len(known.operands): ("81", "2") if form == "norm-turned" else ("6000", "150", "49", "2")}
    case = loops.on_kernel(loops.SPEC.case(replace(known, strides=strides), "f16"), provider, config)
    (emission,) = case.emissions(CUDA)
    assert "__shared__ __align__(16) ait::half turned" not in emission.definitions
    loops.check_loops(EmulatedLibrary([case], tmp_path, "cuda"), case, f"{form}-f16")


@pytest.mark.parametrize(
    ("sizes", "offset", "expected"),
    [
        ("1000, 4", "d0 * 4 + d1", 2),  # rows of 8 bytes, one behind the other: four share a sector
        ("1000, 4", "d0 * 8 + d1", 4),  # half of each sector
        ("1000, 4", "d0 * 64 + d1", 8),  # 8 bytes of each sector
        ("10, 1000", "d0 * 5000 + d1", 2),  # a long row
    ],
)
def test_words_that_share_a_sector_count_it_once(sizes: str, offset: str, expected: float) -> None:
    """Of words of 4 elements of f16, the bytes of sectors for each element."""
    rows, columns = map(int, sizes.split(", "))
    module = parse(
        f"ait.graph @g(%x: !ait.tensor<64000 x f16>) {{ %y = ait.loops(%x) for (d0 = {rows}, d1 = {columns}) {{ "
        f"^bb0(%a: !ait.tensor<64000 x f16>): %v = ait.at %a[{offset}] : f32 ait.yield %v : f32 }} : "
        f"!ait.tensor<{rows} x {columns} x f16> ait.output \"y\" %y : !ait.tensor<{rows} x {columns} x f16> }}"
    )
    (op,) = (op for op in module.walk() if isinstance(op, LoopsOp))
    nest = nest_of(op, merge=False)
    (read,) = nest.reads()
    assert Estimate.of(op, nest, CUDA).sectors(read.offset, 2, nest.axes[-1], 4, is_vector=True) == (expected, expected)


@pytest.mark.parametrize("threads", [1, 32, 256])
def test_short_rows_have_an_estimate_for_any_number_of_threads(threads: int, tmp_path: Path) -> None:
    config = {"threads": threads, "lanes": 1, "kept": 0}
    case = loops.on_kernel(loops.SPEC.drawn("short-unturned", "f16"), "rows", config)
    kernel = kernel_of("rows", case.op, CUDA)
    assert kernel.config_problem(case.op, config, CUDA) is None
    assert 0 < kernel.estimate(case.op, config, CUDA) < 1
    if threads > 32:
        loops.check_loops(EmulatedLibrary([case], tmp_path, "cuda"), case, "short-unturned-f16")


@pytest.mark.parametrize(
    ("form", "lanes", "tile"),
    [
        ("padded-turned", 8, "float tile0["),  # one sum turns, not its two operands
        ("sliced-turned", 8, "float tile0["),  # rows begin anywhere: elements are read one by one
        ("sliced-turned", 1, "ait::half tile0["),  # as they are stored
    ],
)
def test_values_that_are_not_read_in_vectors_turn_in_shared_memory(
    form: str, lanes: int, tile: str, tmp_path: Path
) -> None:
    config = {"along": 8 // lanes * 4, "across": 8 // lanes * 4, "lanes": lanes}
    case = loops.on_kernel(loops.SPEC.drawn(form, "f16"), "tiles", config)
    (emission,) = case.emissions(CUDA)
    assert tile in emission.definitions and "tile1" not in emission.definitions
    loops.check_loops(EmulatedLibrary([case], tmp_path, "cuda"), case, f"{form}-f16")


JOINED = """for (i = 45, j = 40) {
  %v = ait.at %a_[j, i] else 0.5 : S
  %w = ait.at %b_[i, j - SPLIT] else 0.25 : S
  %y = ait.add %v, %w : S
  ait.yield %y : S
}"""


@pytest.mark.parametrize(("split", "is_vector"), [(16, True), (24, True), (20, False), (23, False)])
def test_lanes_that_are_all_inside_or_all_outside_are_one_access(split: int, is_vector: bool, tmp_path: Path) -> None:
    """A concatenation behind a permute: rows of 45 are read one by one, and results stored in lanes all the same."""
    text, sizes = JOINED.replace("SPLIT", str(split)), (f"{split} x 45 x T", f"45 x {40 - split} x T")
    form = loops.nest("joined", text, *sizes, to="45 x 40 x T")
    spec = Spec("loops", (form,), loops.CLOSE, loops.DIMS, loops.SMALL, loops.SMALL, ("f16",))
    case = loops.on_kernel(spec.case(form, "f16", few=True), "tiles", {"along": 4, "across": 4, "lanes": 8})
    (emission,) = case.emissions(CUDA)
    assert ("load_lanes(input1" in emission.definitions) == is_vector
    assert "store_lanes(output0" in emission.definitions and "45 % 8" not in emission.body
    loops.check_loops(EmulatedLibrary([case], tmp_path, "cuda"), case, "joined-f16")


def test_only_short_folds_are_written_out() -> None:
    text = """for (r = 8) {
      %s = ait.fold add for (k = 8) {
        %t = ait.fold add for (l = 8) {
          %u = ait.fold max for (m = 9) { %v = ait.at %a_[r, k, l, m] : S
            ait.yield %v : S } : S
          ait.yield %u : S } : S
        ait.yield %t : S } : S
      ait.yield %s : S
    }"""
    case = loops.SPEC.case(loops.nest("deep", text, "8 x 8 x 8 x 9 x T", to="8 x T"), "f32")
    (emission,) = loops.on_kernel(case, "native", {}).emissions(CUDA)
    unrolled = [line.strip() for line in emission.definitions.splitlines()]
    assert [b.split(";")[1].strip() for a, b in itertools.pairwise(unrolled) if "unroll" in a and "Index" in b] == [
        "a1 < 8",
        "a2 < 8",
    ]


def test_functions_of_results_of_2_bytes_are_cheaper_where_digits_only_scale() -> None:
    softmax, logsumexp, wide = (
        loops.SPEC.drawn(name, t).emissions(CPU)[0].body
        for name, t in (("softmax", "f16"), ("logsumexp", "f16"), ("softmax", "f32"))
    )
    assert softmax.count("ait::exp_narrow(") == 2 and "ait::div_narrow(" in softmax
    assert "ait::exp(" in logsumexp and "narrow" not in logsumexp  # a logarithm of a sum near 1 has no digits to lose
    assert "narrow" not in wide
    gated = loops.SPEC.case(
        loops.nest("gated", loop_texts.put(loop_texts.SOFTMAX, ROWS="b", COLS=64).replace(
            "  ait.yield %y : S\n}", "  %z = ait.silu %y : S\n  ait.yield %z : S\n}"
        ), "b x 64 x T", to="b x 64 x T"), "f16",
    ).emissions(CPU)[0].body  # fmt: skip
    assert gated.count("ait::exp_narrow(") == 2 and "ait::div_narrow(" in gated
    normed = loops.SPEC.drawn("normed", "f16").emissions(CPU)[0].body
    assert "ait::div_narrow(" in normed  # terms of a sum, which rounds no less


def test_a_row_divides_by_one_number_with_one_division() -> None:
    for name in ("softmax", "middle", "normed"):
        kernel = on_kernel(loops.SPEC.drawn(name, "f16"), "columns" if name == "middle" else "rows")
        code = str(kernel.emissions(CUDA)[0].definitions)
        assert code.count("ait::divisor_narrow(") == code.count("ait::div_by_narrow(") == 1, code


def test_only_what_several_walks_read_stays_in_registers() -> None:
    op = loops.SPEC.drawn("picked", "f32").op
    assert isinstance(op, LoopsOp) and kept_bytes(op, threads=1, lanes=4) == 4000


@pytest.mark.parametrize(
    ("old", "new", "folds"),
    [
        ("", "", 1),
        ("96.0", "95.0", 2),  # not the mean
        ("ait.sub %v, %mean", "ait.sub %mean, %v", 2),  # could be joined as well
        ("%dd = ait.mul %d, %d", "%dd = ait.mul %d, %v", 2),  # not a square
        ("%q = ait.fold add", "%q = ait.fold max", 2),
        ("%s = ait.fold add for (k = 96) { %v = ait.at %a_[r, k]", SHIFTED, 2),  # of other elements
    ],
)
def test_moments_take_one_pass(old: str, new: str, folds: int) -> None:
    text = loop_texts.put(loop_texts.LAYER_NORM, ROWS="b", COLS=96, COUNT="96.0")
    assert old in text
    form = loops.nest("moments", text.replace(old, new) if old else text, "b x 96 x T", "96 x T", to="b x 96 x T")
    op = loops.SPEC.case(form, "f32").op
    assert isinstance(op, LoopsOp)
    assert len(in_one_pass(nest_known(op)).folds()) == folds


def test_moments_of_elements_that_are_not_finite(tmp_path: Path) -> None:
    config = {"threads": 32, "lanes": 4, "kept": 0, "once": 1}
    case = loops.on_kernel(loops.SPEC.drawn("moments", "f32"), "rows", config)
    x = np.full((3, 100), 16, np.float32)
    x[0, 40], x[1, 7], x[2, ::2] = np.inf, np.nan, 17
    squares, mean = EmulatedLibrary([case], tmp_path, "cuda").run(case, {"b": 3, "s": 0, "u": 1, "t": 1}, [x])
    np.testing.assert_array_equal(mean, [np.inf, np.nan, 16.5])
    np.testing.assert_allclose(squares, [np.nan, np.nan, 0.25], rtol=1e-5)


@pytest.mark.parametrize(("form", "lanes"), [("softmax", 8), ("softmax-odd", 1), ("softmax-shifted", 8)])
def test_rows_of_any_length_stay_in_registers(form: str, lanes: int) -> None:
    case = loops.SPEC.drawn(form, "bf16")
    assert isinstance(case.op, LoopsOp) and lanes_of_row(case.op) == lanes
    (emission,) = loops.on_kernel(case, "rows", {"threads": 32, "lanes": 8, "kept": 1}).emissions(CUDA)
    assert "ait::bfloat16 row0[kItems][kLanes];" in emission.definitions
    assert emission.definitions.count("input0") == 2  # the parameter, and one read


def test_rows_that_are_walked_in_parts_stay_in_registers() -> None:
    case = loops.SPEC.drawn("group-norm", "f32")
    (emission,) = loops.on_kernel(case, "rows", {"threads": 32, "lanes": 4, "kept": 1}).emissions(CUDA)
    assert "a8 < 6, a2 < 40; folds: a4 < 240" in emission.definitions
    assert emission.definitions.count("input0") == 2  # the parameter, and one read


@pytest.mark.parametrize(
    ("form", "provider", "config", "calls"),
    [
        ("softmax", "rows", {"threads": 32, "lanes": 8}, {"ait::exp_narrow(": 1}),
        ("middle", "columns", {"columns": 8, "rows": 32, "lanes": 4}, {"ait::exp_narrow(": 1}),
        ("divergence", "rows", {"threads": 32, "lanes": 1}, {"ait::exp(": 1, "ait::silu(": 1}),
    ],
)
def test_functions_are_computed_once_where_their_values_stay_in_registers(
    form: str, provider: str, config: dict[str, int], calls: dict[str, int], tmp_path: Path
) -> None:
    plain, kept = (
        loops.on_kernel(loops.SPEC.drawn(form, "f16"), provider, {**config, "kept": kept}) for kept in (1, 2)
    )
    for call, count in calls.items():
        before, after = (case.emissions(CUDA)[0].definitions.count(call) for case in (plain, kept))
        assert (before, after) == (2 * count, count)
    loops.check_loops(EmulatedLibrary([kept], tmp_path, "cuda"), kept, f"{form}-f16")


def test_values_of_functions_stay_in_registers_if_they_take_few() -> None:
    op = loops.SPEC.drawn("softmax", "f16").op
    kept = {c["threads"]: c["kept"] for c in kernel_of("rows", op, CUDA).configs(op, CUDA)}
    assert kept[8] == 1 and kept[16] == kept[256] == 2  # 256 and 128 bytes of a thread


@pytest.mark.parametrize(
    ("spec", "form", "line"),
    [
        (FOLDS, "softmax-short", r"float row0\[5\]\[kLanes\];"),  # rows side by side are read once for all steps
        (FOLDS, "windows", r"float row0\[3\]\[kLanes\];"),
        (MAPPED, "shifted", r"if \(a1 - 2 >= 0 && \(a1 \+ kLanes - 1\) - 2 .*\n.*load_lanes\("),  # inside: one access
        (MAPPED, "narrow", r"at0\[j\] = at0_j;(.*\n)+.*exp0 = ait::exp\(at0\[j\]\)"),  # reads in their own loop
        (MAPPED, "narrow", r"uint8_t at1\[kLanes\];"),
    ],
)
def test_on_a_cpu_the_compiler_can_make_vectors(spec: Spec, form: str, line: str) -> None:
    code = spec.drawn(form, "f32").emissions(CPU)[0].body
    assert re.search(line, code), code


@pytest.mark.parametrize("form", ["softmax", "middle", "pool", "mean-first", "norm-turned", "parts-turned"])
def test_the_schedules_that_are_offered_are_accepted(form: str) -> None:
    case: Case = loops.SPEC.drawn(form, "f16")
    for provider in ("native", "rows", "columns"):
        try:
            kernel = kernel_of(provider, case.op, CUDA)
        except ValueError:
            continue
        for config in kernel.configs(case.op, CUDA):
            assert kernel.config_problem(case.op, config, CUDA) is None


def test_indices_have_64_bits_only_in_runs_that_need_them() -> None:
    wide, narrow = (loops.SPEC.drawn(name, "f16").emissions(CUDA)[0] for name in ("wide", "logsumexp"))
    assert "template <int kLanes, class Index>" in wide.definitions
    assert "const bool is_narrow = " in wide.body and "kernel_@ID@<1, int64_t>" in wide.body
    assert "using Index = int32_t;" in narrow.definitions and "int64_t>" not in narrow.body


@pytest.mark.parametrize(("rows", "columns"), [(20_000, 33), (20_001, 1)])
def test_long_sums_on_a_cpu_are_exact(rows: int, columns: int, tmp_path: Path) -> None:
    """Sums of neighbouring columns, one after the other, would be off by more than 1e-5."""
    text = f"""ait.graph @g(%x: !ait.tensor<{rows} x {columns} x f32>) {{
      %y = ait.loops(%x) for (c = {columns}) {{
      ^bb0(%t: !ait.tensor<{rows} x {columns} x f32>):
        %s = ait.fold add for (r = {rows}) {{ %v = ait.at %t[r, c] : f32
          ait.yield %v : f32 }} : f32
        ait.yield %s : f32
      }} : !ait.tensor<{columns} x f32>
      ait.output "y" %y : !ait.tensor<{columns} x f32>
    }}"""
    x = np.full((rows, columns), 0.1, np.float32)
    with Model(compile_module(parse(text), output=tmp_path / "g.ait")) as model:
        y = model.run_with_tensors({"x": x})["y"]
    np.testing.assert_allclose(y, x.sum(axis=0, dtype=np.float64), rtol=1e-6)


def test_an_index_that_is_a_condition(tmp_path: Path) -> None:
    """GCC makes wrong vectors of such a read."""
    text = """ait.graph @g(%x: !ait.tensor<n x 8 x f32>, %t: !ait.tensor<2 x f32>) dims {n = 1 to 99} {
      %y = ait.loops(%x, %t) for () {
      ^bb0(%a: !ait.tensor<n x 8 x f32>, %b: !ait.tensor<2 x f32>):
        %zero = ait.constant 0.0 : f32
        %s = ait.fold add for (r = n) {
          %m = ait.fold add for (c = 8) { %v = ait.at %a[r, c] : f32
            ait.yield %v : f32 } : f32
          %p = ait.compare gt %m, %zero : i1
          %i = ait.cast %p : i64
          %e = ait.at %b[%i] : f32
          ait.yield %e : f32 } : f32
        ait.yield %s : f32
      } : !ait.tensor<f32>
      ait.output "y" %y : !ait.tensor<f32>
    }"""
    table = np.array([1, 2], np.float32)
    with Model(compile_module(parse(text), output=tmp_path / "g.ait")) as model:
        for n in (1, 9, 32, 99):
            x = np.repeat(np.where(np.arange(n) % 3, 1, -1), 8).reshape(n, 8).astype(np.float32)
            assert model.run_with_tensors({"x": x, "t": table})["y"] == table[(x[:, 0] > 0).astype(int)].sum()


def test_nests_at_random(tmp_path: Path) -> None:
    cases = dict(random_loops.random_cases(CPU, range(200 if tiers.FULL else 25)))
    library = Library(list(cases.values()), tmp_path)
    for name, case in cases.items():
        loops.check_loops(library, case, name)
