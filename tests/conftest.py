"""Set-up of all tests: the `gpu` marker, and a cache of built code that is not the user's.

Tests marked `gpu` are deselected unless asked for with `pytest -m gpu`; where no CUDA device answers they are skipped. With
`--build-only` the fixtures of tests/gpu compile their kernels, and nothing is run: objects for a machine with a card, in
AIT_CACHE_DIR.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import sysconfig
from collections import Counter

import pytest

from tests import full, tiers
from tests.gpu import sampling

gc.set_threshold(100_000, 20, 10)  # less often: a collection walks through the thousands of tests of a session


@pytest.fixture(scope="session")
def built_runtime() -> None:
    """The runtime library of the CPU is there: to build it is told on stderr, which a test may look at."""
    from ait_mlir.lowering.build import build_runtime

    build_runtime("cpu")


def _cuda_devices() -> int:
    """How many CUDA devices the driver reports; 0 where there is no driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", type=full.shard, help="with 3/8: the third of eight parts of the tests")
    parser.addoption("--sample", type=sampling.sample, help="with 40: of tests/gpu at most 40 of each file and family")
    parser.addoption("--build-only", action="store_true", help="with -m gpu: compile, run nothing; needs no card")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    if pyfuncitem.config.getoption("--build-only") and pyfuncitem.get_closest_marker("gpu"):
        pytest.skip("built, not run")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Seeds PyTorch before the fixtures of each test: its random numbers do not depend on the tests before it."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


def shard_unit(item: pytest.Item) -> str:
    """The group of a test that runs in one process: the tests of a file, unless the file declares its tests
    independent.
    """
    return item.nodeid if getattr(getattr(item, "module", None), "SHARD_BY_TEST", False) else str(item.path)


def _keep_shard(config: pytest.Config, items: list[pytest.Item], number: int, count: int) -> None:
    """In turn, so that neighbours, which take similar times, are in different shards."""
    units = sorted({shard_unit(item) for item in items})
    mine = set(units[number - 1 :: count])
    config.hook.pytest_deselected(items=[item for item in items if shard_unit(item) not in mine])
    items[:] = [item for item in items if shard_unit(item) in mine]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (part := config.getoption("shard")) is not None:
        _keep_shard(config, items, *part)
    if not any(item.get_closest_marker("gpu") for item in items) or "not gpu" in config.getoption("markexpr"):
        return
    if _cuda_devices() == 0:
        skip = pytest.mark.skip(reason="no CUDA device answers")
        for item in items:
            built = config.getoption("--build-only") and item.path.parent.name == "gpu"
            if item.get_closest_marker("gpu") and not built:
                item.add_marker(skip)


def pytest_configure(config: pytest.Config) -> None:
    tiers.FULL = "not full" not in config.getoption("markexpr")
    if not tiers.FULL:
        os.environ.setdefault("AIT_OPTIMIZE", tiers.QUICK)
    # as in an activated environment: tvm-ffi looks for ninja there, which is not on every machine
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    # one cache for all test processes, kept between runs: objects are keyed by content
    os.environ.setdefault("AIT_CACHE_DIR", str(config.rootpath / "build" / "test-cache"))
    os.environ.setdefault("AIT_MEASURE_BUDGET", "0")  # kernels by estimate: the same on each card
    os.environ.setdefault("AIT_PLANS", "0")  # tests change the package while it runs, and look at modules that are planned
    # Threads of PyTorch and NumPy that wait for each other would take the CPUs from other workers and processes. Both
    # libraries read this when they are loaded, which is later.
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    _emulated_kernels(terminalreporter)
    _imported_models(terminalreporter)
    _samples_of_pytorch(terminalreporter)


def _emulated_kernels(terminalreporter: pytest.TerminalReporter) -> None:
    """How many kernels of the GPU templates were executed on the CPU (tests/emulator)."""
    kernels: dict[str, set[str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name.startswith("emulated for "):
                    kernels.setdefault(name, set()).update(value.split())
    for name, found in sorted(kernels.items()):
        counts = Counter(kernel.partition(":")[0] for kernel in found)
        listed = ", ".join(f"{template.removesuffix('_kernel')} {n}" for template, n in sorted(counts.items()))
        terminalreporter.write_line(f"{name}: {len(counts)} templates, {len(found)} kernels executed ({listed})")


def _samples_of_pytorch(terminalreporter: pytest.TerminalReporter) -> None:
    """How many of PyTorch's samples of each operation were imported and right (tests/importers/opinfo.py)."""
    reports = [r for status in ("passed", "failed") for r in terminalreporter.stats.get(status, [])]
    found = [value for r in reports for name, value in r.user_properties if name == "samples" and r.when == "call"]
    listed = sorted(part for value in found for part in value.split(", ") if part)
    if listed:
        total = sum(int(part.rpartition(" ")[2]) for part in listed)
        terminalreporter.section("PyTorch's samples of its operations")
        terminalreporter.write_line(f"{len(listed)} operations, {total} samples run and right: {', '.join(listed)}")


def _imported_models(terminalreporter: pytest.TerminalReporter) -> None:
    """The imported models with their counts and their errors over those of PyTorch, both against float64."""
    reports = [r for status in ("passed", "failed") for r in terminalreporter.stats.get(status, [])]
    found = [dict(r.user_properties) for r in reports if r.when == "call"]
    rows: list[list[str]] = []
    for properties in (properties for properties in found if "model" in properties):
        largest = [f"{max(r[i] for r in properties.get('ratios', [[0, 0]])):.2f}" for i in range(2)]
        rows.append(
            [properties["model"], str(properties["operations"]), *map(str, properties["counts"].values()), *largest]
        )
    if rows:
        from benchmarks import measure  # PyTorch is loaded where it is needed

        dims = {properties["dims"] for properties in found if "dims" in properties}
        terminalreporter.section("imported models")
        terminalreporter.write_line(f"each from one artifact, on the CPU, at batch x length {'; '.join(sorted(dims))}")
        heads = ["imported model", "operations", "attentions", "norms", "launches", "max error ratio", "rmse ratio"]
        terminalreporter.write_line(measure.table([heads, *sorted(rows)]))
