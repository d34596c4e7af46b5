"""The benchmarks of kernels and launches: their cases compile to a launch each, and times go to the launch they belong to."""

from __future__ import annotations

from ait_mlir.lowering.kernels import Target
from ait_mlir.tools.report import Launch
from benchmarks.kernel_cases import cases
from benchmarks.launches import RUNS, Event, by_launch, launch_rows
from benchmarks.measure import Ceilings

CUDA = Target("cuda", "sm_90a")


def test_cases_differ_and_have_a_kernel():
    found = list(cases())
    assert len({(m.family, m.label, m.dtype) for m in found}) == len(found)
    lengths = " ".join(m.label for m in found)
    assert all(word in lengths for word in ("4097", "50257", "misaligned"))
    for m in found:
        includes, text = m.case.code(0, CUDA)
        assert any(i.startswith("ait/kernels/gpu/") for i in includes) and "ait::gpu::" in text, m.label


def events(*kernels: tuple[str, float, float]) -> list[Event]:
    """The kernels (name, start, end) of each of the runs."""
    return [Event(name, run * 100 + a, run * 100 + b) for run in range(RUNS) for name, a, b in kernels]


def test_time_goes_from_end_to_end():
    overlapping = events(("gemm", 0, 10), ("norm", 8, 12), ("gemm", 12.5, 20))
    assert by_launch(overlapping, 3) == [10, 2, 8]
    with_helper = events(("gemm", 0, 10), ("splitKreduce_kernel", 10, 13), ("norm", 13, 14))
    assert by_launch(with_helper, 2) == [13, 1]


def test_kernels_that_do_not_correspond_are_told():
    assert by_launch(events(("gemm", 0, 10), ("norm", 10, 12)), 3) is None
    assert by_launch([*events(("gemm", 0, 10))[:-1], Event("a", 9000, 9001), Event("b", 9001, 9002)], 1) is None


def test_equal_launches_are_one_row():
    gemm = Launch("gemm", "native", "8x8", read=60, written=40, flops=2000)
    norm = Launch("norm", "native", "8x8", read=100, written=100, flops=0)
    rows = launch_rows([gemm, norm, gemm], [4.0, 1.0, 6.0], Ceilings(flops=1e9, bytes=1e9))
    assert [row[:4] for row in rows] == [
        ["gemm", "native", "8x8", "2"],
        ["norm", "native", "8x8", "1"],
        ["all", "", "", "3"],
    ]
    assert rows[0][6:] == ["5.00", "2.00", "40%", "10.0", "91%"]
    assert rows[2][7:] == ["4.20", "38%", "11.0", "100%"]
