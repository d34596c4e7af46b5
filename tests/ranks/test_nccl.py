"""Collectives of GPUs on fakes: four processes with a CUDA runtime in host memory and an NCCL in shared memory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ait_mlir.driver import compile_module, run_to_phase
from ait_mlir.errors import AitError, ToolchainError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.toolchain import cuda_home
from ait_mlir.options import CompileOptions
from ait_mlir.reference import evaluate_graph
from tests.ranks.texts import SMALL
from tests.runtime.fake_device import CUDART, compiled

ROOT = Path(__file__).parents[2]
NCCL = Path(__file__).parent / "fake_nccl" / "nccl.cc"
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
  %6 = ait.all_gather %5 dim 0 over ["tp"] {M} : !ait.tensor<16 x 8 x f16>
  %7 = ait.reduce_scatter min %6 dim 0 over ["tp"] {M} : !ait.tensor<8 x 8 x f16>
  %8 = ait.reduce_scatter sum %7 dim 1 over ["dp", "tp"] {M} : !ait.tensor<8 x 2 x f16>
  %9 = ait.all_reduce sum %i over ["dp"] {M} : !ait.tensor<4 x 8 x i8>
  %10 = ait.collective_permute %i [0 -> 1, 1 -> 3, 2 -> 2] over ["dp", "tp"] {M} : !ait.tensor<4 x 8 x i8>
  %11 = ait.collective_permute %10 [1 -> 0, 0 -> 1] over ["tp"] {M} : !ait.tensor<4 x 8 x i8>
  ait.output "sent" %11 : !ait.tensor<4 x 8 x i8>
  ait.output "y" %8 : !ait.tensor<8 x 2 x f16>
  ait.output "z" %9 : !ait.tensor<4 x 8 x i8>
}}"""


def test_whole_numbers_that_nccl_cannot_add_are_refused() -> None:
    module = parse_text(context(), SMALL.replace("f32", "i16"))
    with pytest.raises(AitError, match=r"no kernel for ait\.all_reduce"):
        run_to_phase(module, "selected", CompileOptions("cuda"))


@pytest.fixture(scope="module")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both fakes, and the artifacts."""
    try:
        cuda_home()
    except ToolchainError:
        pytest.skip("CUDA is not installed")
    folder = tmp_path_factory.mktemp("fakes")
    compiled(CUDART, folder / "libfake_cudart.so")
    compiled(NCCL, folder / "libfake_nccl.so", ["-lrt"])
    rng = np.random.default_rng(1)
    inputs = {"x": rng.integers(-9, 9, (8, 16)).astype(np.float16), "i": rng.integers(-128, 128, (8, 16)).astype(np.int8)}
    for name, text, given in (("all.ait", ALL, inputs), ("small.ait", SMALL, {"x": np.ones((2, 4), np.float32)})):
        compile_module(parse_text(context(), text), CompileOptions("cuda"), output=folder / name)
        np.savez(folder / f"{name}.npz", **given)  # pyright: ignore[reportArgumentType]
    return folder


def started(count: int, mode: str, folder: Path, name: str) -> dict[int, str]:
    """Run `nccl_inside.py` on some ranks; returns what each said that failed."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    environment = {**os.environ, "WORLD_SIZE": str(count), "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment |= {"AIT_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
    if (fake := folder / "libfake_nccl.so").is_file():
        environment["AIT_NCCL"] = str(fake)
    environment["AIT_RANKS_TIMEOUT"] = "300" if mode in ("plain", "graphs") else "15"
    if mode == "missing":
        environment["AIT_NCCL"] = ""
    for old in folder.glob("*.error"):
        old.unlink()
    command = [sys.executable, str(ROOT / "tests/ranks/nccl_inside.py"), mode, str(folder), name]
    ranks = [
        subprocess.Popen(command, env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank % 2)})
        for rank in range(count)
    ]
    codes = [process.wait() for process in ranks]
    assert "dies" in mode or codes == [0] * count
    return {int(file.stem): file.read_text() for file in folder.glob("*.error")}


@pytest.mark.full
@pytest.mark.parametrize("mode", ["plain", "graphs"])
def test_every_collective_of_four_ranks(mode: str, fakes: Path) -> None:
    assert not started(4, mode, fakes, "all.ait")
    whole = dict(np.load(fakes / "all.ait.npz"))
    want = evaluate_graph(next(iter(parse_text(context(), ALL).ops)), whole, {}, {}, rounding=True)
    for rank in range(4):
        got, tp, dp = np.load(fakes / f"all.ait.{rank}.npz"), rank % 2, rank // 2
        np.testing.assert_array_equal(got["y"], want["y"][:, 2 * (2 * tp + dp) :][:, :2])
        np.testing.assert_array_equal(got["z"], want["z"][4 * tp :][:4])
        np.testing.assert_array_equal(got["sent"], want["sent"][4 * rank :][:4])


@pytest.mark.full
@pytest.mark.parametrize("mode", ["plain", "graphs"])
def test_cards_that_share_no_memory_use_nccl(mode: str, fakes: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert not started(2, mode, fakes, "small.ait")
    for rank in range(2):
        np.testing.assert_array_equal(np.load(fakes / f"small.ait.{rank}.npz")["y"], np.full((2, 4), 2, np.float32))
    said = capfd.readouterr().err
    for rank in range(2):
        reason = "sharing memory with other processes failed: "
        assert said.count(f"rank {rank} of 2: small all-reduces use NCCL, not memory of the other cards: {reason}") == 1


@pytest.mark.full
@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("card", {0: "rank 1 of 2: there is no cuda:7", 1: "there is no cuda:7: this machine has 2 CUDA device(s)"}),
        ("missing", {r: f"rank {r} of 2: NCCL cannot be loaded: pip install nvidia-nccl" for r in (0, 1)}),
        ("refused", {0: "rank 0 of 2: no communicator was made", 1: "rank 1 of 2: making a communicator failed: inv"}),
        ("shapes", {0: "rank 0 of 2: ", 1: "rank 1 of 2: "}),
        ("dies first", {0: "rank 0 of 2: rank 1 has ended"}),
        ("dies", {0: "rank 0 of 2: a run with collectives did not end in AIT_RANKS_TIMEOUT seconds; rank 1 has ended"}),
    ],
)
def test_faults_end_every_rank(mode: str, said: dict[int, str], fakes: Path) -> None:
    found = started(2, mode, fakes, "small.ait")
    for rank, reason in said.items():
        assert reason in found.get(rank, "nothing"), found
