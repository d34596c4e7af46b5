"""Processes run a transformer block and every collective, started by mpirun or by the variables of torchrun; what goes
wrong ends on every rank."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ait_mlir.driver import compile_module
from ait_mlir.errors import RunError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.options import CompileOptions
from ait_mlir.reference import evaluate_graph
from ait_mlir.runtime import Model
from ait_mlir.runtime.artifact import read
from ait_mlir.tools.cli import main
from ait_mlir.tools.commands.compile import param_types
from tests.ranks.texts import SENT, SMALL

ROOT = Path(__file__).parents[2]
MISSING = "Open MPI is not installed: apt-get install openmpi-bin"
by_mpi = pytest.mark.skipif(shutil.which("mpirun") is None or find_library("mpi") is None, reason=MISSING)

Arrays = dict[str, NDArray[Any]]
WEIGHT = '{sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>}'
BLOCK = f"""
sdy.mesh @mesh = <["tp"=4]>
ait.graph @block(%ids: !ait.tensor<b x s x i64>) dims {{b = 1 to 4, s = 1 to 8}} {{
  %table = ait.param "embed" {WEIGHT} : !ait.tensor<32 x 16 x f32>
  %x = ait.embedding %table, %ids : !ait.tensor<b x s x 16 x f32>
  %g = ait.param "norm" : !ait.tensor<16 x f32>
  %n = ait.rms_norm %x scale %g axes 1 eps 1e-05 : !ait.tensor<b x s x 16 x f32>
  %w = ait.param "q" {WEIGHT} : !ait.tensor<16 x 16 x f32>
  %q0 = ait.gemm rcr %n, %w : !ait.tensor<b x s x 16 x f32>
  %q1 = ait.reshape %q0 : !ait.tensor<b x s x 4 x 4 x f32>
  %q = ait.permute %q1 [0, 2, 1, 3] : !ait.tensor<b x 4 x s x 4 x f32>
  %a = ait.attention %q, %q, %q scale 0.5 causal : !ait.tensor<b x 4 x s x 4 x f32>
  %a1 = ait.permute %a [0, 2, 1, 3] : !ait.tensor<b x s x 4 x 4 x f32>
  %a2 = ait.reshape %a1 : !ait.tensor<b x s x 16 x f32>
  %o_w = ait.param "o" : !ait.tensor<16 x 16 x f32>
  %o = ait.gemm rcr %a2, %o_w : !ait.tensor<b x s x 16 x f32>
  %r = ait.add %x, %o : !ait.tensor<b x s x 16 x f32>
  %up_w = ait.param "up" {WEIGHT} : !ait.tensor<64 x 16 x f32>
  %u0 = ait.gemm rcr %r, %up_w : !ait.tensor<b x s x 64 x f32>
  %u = ait.gelu %u0 : !ait.tensor<b x s x 64 x f32>
  %down_w = ait.param "down" : !ait.tensor<16 x 64 x f32>
  %d = ait.gemm rcr %u, %down_w : !ait.tensor<b x s x 16 x f32>
  %y = ait.add %r, %d : !ait.tensor<b x s x 16 x f32>
  %head = ait.gemm rcr %y, %table : !ait.tensor<b x s x 32 x f32>
  ait.output "y" %head : !ait.tensor<b x s x 32 x f32>
}}"""
M = 'of <["dp"=2, "tp"=2]>'
ALL = f"""
ait.graph @all(%x: !ait.tensor<4 x 8 x f16>, %i: !ait.tensor<4 x 8 x i8>) ranks {{mesh = #sdy.mesh<["dp"=2, "tp"=2]>,
    inputs = {{x = #sdy.sharding<@m, [{{"dp"}}, {{"tp"}}]>, i = #sdy.sharding<@m, [{{"tp"}}, {{"dp"}}]>}},
    outputs = {{y = #sdy.sharding<@m, [{{}}, {{"tp", "dp"}}]>, sent = #sdy.sharding<@m, [{{"dp", "tp"}}, {{}}]>,
               z = #sdy.sharding<@m, [{{"tp"}}, {{}}]>}}}} {{
  %0 = ait.all_reduce max %x over ["tp"] {M} : !ait.tensor<4 x 8 x f16>
  %1 = ait.all_gather %0 dim 1 over ["tp", "dp"] {M} : !ait.tensor<4 x 32 x f16>
  %2 = ait.all_slice %1 dim 1 over ["tp"] {M} : !ait.tensor<4 x 16 x f16>
  %3 = ait.all_to_all %2 split 0 concat 1 over ["dp"] {M} : !ait.tensor<2 x 32 x f16>
  %4 = ait.all_to_all %3 split 1 concat 0 over ["dp", "tp"] {M} : !ait.tensor<8 x 8 x f16>
  %5 = ait.broadcast %4 root 1 over ["dp"] {M} : !ait.tensor<8 x 8 x f16>
  %6 = ait.add %5, %4 : !ait.tensor<8 x 8 x f16>
  %7 = ait.reduce_scatter sum %6 dim 1 over ["dp", "tp"] {M} : !ait.tensor<8 x 2 x f16>
  %8 = ait.all_reduce sum %i over ["dp"] {M} : !ait.tensor<4 x 8 x i8>
  %9 = ait.collective_permute %i [0 -> 1, 1 -> 3, 2 -> 2] over ["dp", "tp"] {M} : !ait.tensor<4 x 8 x i8>
  %10 = ait.collective_permute %9 [1 -> 0, 0 -> 1] over ["tp"] {M} : !ait.tensor<4 x 8 x i8>
  ait.output "y" %7 : !ait.tensor<8 x 2 x f16>
  ait.output "sent" %10 : !ait.tensor<4 x 8 x i8>
  ait.output "z" %8 : !ait.tensor<4 x 8 x i8>
}}"""


def compiled(text: str, folder: Path, name: str, inputs: Arrays) -> Arrays:
    """Compile a text with random weights, store its inputs, and return the weights."""
    module, rng = parse_text(context(), text), np.random.default_rng(0)
    data = {n: (0.3 * rng.standard_normal(shape)).astype(t) for n, (shape, t) in param_types(module).items()}
    compile_module(module, CompileOptions(), output=folder / name, constants=data)
    np.savez(folder / f"{name}.npz", **inputs)  # pyright: ignore[reportArgumentType]
    return data


def command_of(mode: str, folder: Path, *names: str) -> tuple[list[str], dict[str, str]]:
    """The command of a rank that runs `inside.py`, and its environment."""
    environment = {
        **os.environ,
        **dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"),
        "AIT_NUM_THREADS": "1",
        "AIT_RANKS_TIMEOUT": "300" if mode == "plain" else "3",
        "PYTHONPATH": str(ROOT),
    }
    return [sys.executable, str(ROOT / "tests/ranks/inside.py"), mode, str(folder), *names], environment


def started(count: int, mode: str, folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """Run `inside.py` on some ranks, by mpirun."""
    inside, environment = command_of(mode, folder, *names)
    command = ["mpirun", "--oversubscribe", "-n", str(count), *inside]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def started_by_variables(count: int, mode: str, folder: Path, *names: str) -> list[int]:
    """Run `inside.py` on some ranks with the variables that torchrun sets; returns their exit codes."""
    inside, environment = command_of(mode, folder, *names)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    given = {"WORLD_SIZE": str(count), "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    ranks = [
        subprocess.Popen(inside, env={**environment, **given, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(count)
    ]
    return [process.wait() for process in ranks]


def errors(folder: Path) -> dict[int, str]:
    """What each rank said, by its number."""
    return {int(file.stem): file.read_text() for file in folder.glob("*.error")}


def outputs(folder: Path, name: str, rank: int) -> Mapping[str, NDArray[Any]]:
    return np.load(folder / f"{name}.{rank}.npz")


@by_mpi
def test_four_ranks_compute_what_one_process_does(tmp_path: Path) -> None:
    """Bitwise the same on each rank and in each run (`inside.py`), and as close to float64 as on one process."""
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 32, (2, 5))
    data = compiled(BLOCK, tmp_path, "block.ait", {"ids": ids})
    x, i = rng.standard_normal((8, 16)).astype(np.float16), rng.integers(-128, 128, (8, 16)).astype(np.int8)
    compiled(ALL, tmp_path, "all.ait", {"x": x, "i": i})
    plain = "\n".join(line for line in BLOCK.replace(f" {WEIGHT}", "").splitlines() if "sdy" not in line)
    compiled(plain, tmp_path, "one.ait", {"ids": ids})
    result = started(4, "plain", tmp_path, "block.ait", "all.ait")
    assert result.returncode == 0 and not errors(tmp_path), (result.stderr, errors(tmp_path))

    exact = evaluate_graph(next(iter(parse_text(context(), plain).ops)), {"ids": ids}, data, {"b": 2, "s": 5})["y"]
    with Model(tmp_path / "one.ait") as one:
        alone = np.array(one.run_with_tensors({"ids": ids})["y"])
    found = [outputs(tmp_path, "block.ait", rank)["y"] for rank in range(4)]
    assert len({y.tobytes() for y in found}) == 1
    assert np.abs(found[0] - exact).max() <= 2 * np.abs(alone - exact).max() + 1e-6

    module = parse_text(context(), ALL)
    want = evaluate_graph(next(iter(module.ops)), {"x": x, "i": i}, {}, {}, rounding=True)
    for rank in range(4):
        got, tp, dp = outputs(tmp_path, "all.ait", rank), rank % 2, rank // 2
        np.testing.assert_array_equal(got["y"], want["y"][:, 2 * (2 * tp + dp) :][:, :2])
        np.testing.assert_array_equal(got["z"], want["z"][4 * tp :][:4])
        np.testing.assert_array_equal(got["sent"], want["sent"][4 * rank :][:4])


@by_mpi
def test_an_artifact_has_the_program_once_and_the_weights_of_each_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = compiled(BLOCK, tmp_path, "block.ait", {})
    artifact = read(tmp_path / "block.ait")
    assert artifact.manifest.part_names() == ["ir", "library", "constants", *(f"constants.{r}" for r in (1, 2, 3))]
    np.testing.assert_array_equal(artifact.constants["up"], data["up"][:16])
    assert main(["inspect", str(tmp_path / "block.ait")]) == 0
    assert "ranks     4, each with constants of its own" in capsys.readouterr().out
    with pytest.raises(
        RunError, match="the model needs 4 ranks, this process is rank 0 of 1: start it with mpirun -n 4"
    ):
        Model(tmp_path / "block.ait")


@by_mpi
@pytest.mark.parametrize(
    ("mode", "said"),
    [
        pytest.param("files", "rank {other} runs another artifact or another step of it: load one file", id="files"),
        pytest.param("shapes", "rank {other} sends {bytes} bytes, expected", marks=pytest.mark.full, id="shapes"),
        pytest.param(
            "late", "rank {other} does not answer; it has ended, runs something else", marks=pytest.mark.full, id="late"
        ),
    ],
)
def test_ranks_that_differ_end_with_an_error_on_each(mode: str, said: str, tmp_path: Path) -> None:
    x = np.ones((2, 4), np.float32)
    compiled(SMALL, tmp_path, "small.ait", {"x": x})
    compiled(SMALL.replace("sum", "max"), tmp_path, "other.ait", {"x": x})
    started(2, mode, tmp_path, "small.ait")
    found = errors(tmp_path)
    expected = {0: said.format(other=1, bytes=64), 1: said.format(other=0, bytes=32)}
    for rank in (0,) if mode == "late" else (0, 1):
        assert f"rank {rank} of 2: {expected[rank]}" in found[rank]


@by_mpi
@pytest.mark.full
def test_a_rank_that_dies_ends_all(tmp_path: Path) -> None:
    compiled(SMALL, tmp_path, "small.ait", {"x": np.ones((2, 4), np.float32)})
    result = started(2, "dies", tmp_path, "small.ait")
    assert result.returncode != 0 and not (tmp_path / "small.ait.0.npz").exists()


def test_ranks_that_torchrun_starts(tmp_path: Path) -> None:
    """Every collective over sockets, bitwise as the reference."""
    rng = np.random.default_rng(1)
    x, i = rng.standard_normal((8, 16)).astype(np.float16), rng.integers(-128, 128, (8, 16)).astype(np.int8)
    compiled(ALL, tmp_path, "all.ait", {"x": x, "i": i})
    assert started_by_variables(4, "plain", tmp_path, "all.ait") == [0] * 4 and not errors(tmp_path), errors(tmp_path)
    module = parse_text(context(), ALL)
    want = evaluate_graph(next(iter(module.ops)), {"x": x, "i": i}, {}, {}, rounding=True)
    for rank in range(4):
        got, tp, dp = outputs(tmp_path, "all.ait", rank), rank % 2, rank // 2
        np.testing.assert_array_equal(got["y"], want["y"][:, 2 * (2 * tp + dp) :][:, :2])
        np.testing.assert_array_equal(got["z"], want["z"][4 * tp :][:4])
        np.testing.assert_array_equal(got["sent"], want["sent"][4 * rank :][:4])


@pytest.mark.full
@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("files", {r: f"rank {1 - r} runs another artifact or another step of it: load one file" for r in (0, 1)}),
        ("shapes", {0: "rank 1 sends 64 bytes, expected 32", 1: "rank 0 sends 32 bytes, expected 64"}),
        ("late", {0: "rank 1 does not answer; it has ended, runs something else"}),
        ("dies", {0: "rank 1 has ended"}),
        ("absent", {0: "the ranks do not meet at localhost:"}),
    ],
)
def test_ranks_of_torchrun_that_differ(mode: str, said: dict[int, str], tmp_path: Path) -> None:
    x = np.ones((2, 4), np.float32)
    compiled(SMALL, tmp_path, "small.ait", {"x": x})
    compiled(SMALL.replace("sum", "max"), tmp_path, "other.ait", {"x": x})
    started_by_variables(2, mode, tmp_path, "small.ait")
    found = errors(tmp_path)
    for rank, reason in said.items():
        assert f"rank {rank} of 2: {reason}" in found[rank]


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("shapes", {0: "rank 1 sends 64 bytes, expected 32", 1: "rank 0 sends 32 bytes, expected 64"}),
        pytest.param("late", {0: "rank 1 does not answer"}, marks=pytest.mark.full, id="late"),
        pytest.param("dies", {0: "rank 1 has ended"}, marks=pytest.mark.full, id="dies"),
    ],
)
def test_both_ranks_of_a_message_know_of_a_fault(mode: str, said: dict[int, str], tmp_path: Path) -> None:
    compiled(SENT, tmp_path, "small.ait", {"x": np.ones((2, 4), np.float32)})
    started_by_variables(2, mode, tmp_path, "small.ait")
    found = errors(tmp_path)
    for rank, reason in said.items():
        assert f"rank {rank} of 2: {reason}" in found[rank]
