"""Two cards run a transformer block and every collective, over NCCL and through each other's memory; a rank that ends,
ends the other one. Needs two cards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ait_mlir.driver import compile_module
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.options import CompileOptions
from ait_mlir.reference import evaluate_graph
from ait_mlir.tools.commands.compile import param_types
from tests.ranks.test_nccl import SMALL, started
from tests.ranks.test_processes import BLOCK, WEIGHT

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two cards in this machine"),
]
M = 'of <["tp"=2]>'
PEERS, NCCL = CompileOptions("cuda"), CompileOptions("cuda", peer_memory=False)
ALL = f"""
ait.graph @all(%x: !ait.tensor<4 x 8 x T>) ranks {{mesh = #sdy.mesh<["tp"=2]>,
    inputs = {{x = #sdy.sharding<@m, [{{"tp"}}, {{}}]>}}, outputs = {{y = #sdy.sharding<@m, [{{}}, {{"tp"}}]>}}}} {{
  %0 = ait.all_reduce max %x over ["tp"] {M} : !ait.tensor<4 x 8 x T>
  %1 = ait.add %0, %x : !ait.tensor<4 x 8 x T>
  %2 = ait.all_gather %1 dim 1 over ["tp"] {M} : !ait.tensor<4 x 16 x T>
  %3 = ait.all_slice %2 dim 0 over ["tp"] {M} : !ait.tensor<2 x 16 x T>
  %4 = ait.all_to_all %3 split 1 concat 0 over ["tp"] {M} : !ait.tensor<4 x 8 x T>
  %5 = ait.broadcast %4 root 1 over ["tp"] {M} : !ait.tensor<4 x 8 x T>
  %6 = ait.add %5, %4 : !ait.tensor<4 x 8 x T>
  %7 = ait.reduce_scatter sum %6 dim 1 over ["tp"] {M} : !ait.tensor<4 x 4 x T>
  %8 = ait.collective_permute %7 [0 -> 1, 1 -> 0] over ["tp"] {M} : !ait.tensor<4 x 4 x T>
  %9 = ait.collective_permute %8 [0 -> 1] over ["tp"] {M} : !ait.tensor<4 x 4 x T>
  %10 = ait.add %7, %9 : !ait.tensor<4 x 4 x T>
  ait.output "y" %10 : !ait.tensor<4 x 4 x T>
}}"""


CHAIN = 3
"""All-reduces one after the other: both slots of the memory of the other card are used again."""


def chain_text() -> str:
    """Sums of whole numbers, of any number of rows."""
    t = "!ait.tensor<rows x 4096 x f16>"
    lines = [f"  %x{i + 1} = ait.all_reduce sum %x{i} over [\"tp\"] {M} : {t}" for i in range(CHAIN)]
    ranks = 'ranks {mesh = #sdy.mesh<["tp"=2]>, inputs = {x0 = #sdy.sharding<@m, [{"tp"}, {}]>}}'
    head = f"ait.graph @chain(%x0: {t}) dims {{rows = 1 to 4096 hints [4]}} {ranks} {{"
    return "\n".join([head, *lines, f'  ait.output "y" %x{CHAIN} : {t}', "}"])


def outputs(folder: Path, name: str) -> list[np.ndarray]:
    return [np.load(folder / f"{name}.{rank}.npz")["y"] for rank in range(2)]


def exact(text: str, inputs: dict[str, np.ndarray], weights: dict[str, np.ndarray], dims: dict[str, int]) -> np.ndarray:
    (graph,) = (op for op in parse_text(context(), text).ops if op.name == "ait.graph")
    return evaluate_graph(graph, inputs, weights, dims)["y"]


@pytest.mark.parametrize("mode", ["plain", "graphs"])
@pytest.mark.parametrize("element", ["f32", "f16", "i32"])
def test_every_collective(mode: str, element: str, tmp_path: Path) -> None:
    """Whole numbers, which every order of additions gives exactly."""
    text, dtype = ALL.replace("T>", f"{element}>"), {"f32": "float32", "f16": "float16", "i32": "int32"}[element]
    x = np.random.default_rng(0).integers(-9, 9, (8, 8)).astype(dtype)
    compile_module(parse_text(context(), text), CompileOptions("cuda"), output=tmp_path / "all.ait")
    np.savez(tmp_path / "all.ait.npz", x=x)
    assert not started(2, mode, tmp_path, "all.ait")
    np.testing.assert_array_equal(np.concatenate(outputs(tmp_path, "all.ait"), 1), exact(text, {"x": x}, {}, {}))


@pytest.mark.parametrize(("rows", "mode"), [(1, "graphs"), (4, "plain"), (131, "graphs"), (2049, "graphs")])
def test_all_reduces_through_memory_of_the_other_card(
    rows: int, mode: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The memory has no room for 2,049 rows."""
    compile_module(parse_text(context(), chain_text()), PEERS, output=tmp_path / "chain.ait")
    x = np.random.default_rng(0).integers(-9, 9, (2 * rows, 4096)).astype(np.float16)
    np.savez(tmp_path / "chain.ait.npz", x0=x)
    assert not started(2, mode, tmp_path, "chain.ait")
    for y in outputs(tmp_path, "chain.ait"):
        np.testing.assert_array_equal(y, 2 ** (CHAIN - 1) * (x[:rows] + x[rows:]))
    assert "use NCCL" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("norm", "rows", "mode"),
    [
        ("rms_norm", 1, "graphs"),
        ("layer_norm", 4, "graphs"),
        ("rms_norm", 131, "plain"),
        ("layer_norm", 131, "graphs"),
        ("rms_norm", 2049, "graphs"),
    ],
)
def test_norms_of_sums_through_memory_of_the_other_card(norm: str, rows: int, mode: str, tmp_path: Path) -> None:
    """The kernel, and for the most rows, for which the memory has no room, NCCL and the kernel of norms."""
    t = "!ait.tensor<rows x 4096 x f16>"
    text = f"""
ait.graph @norms(%x: {t}, %r: {t}) dims {{rows = 1 to 4096 hints [4]}}
    ranks {{mesh = #sdy.mesh<["tp"=2]>, inputs = {{x = #sdy.sharding<@m, [{{"tp"}}, {{}}]>}}}} {{
  %g = ait.param "g" : !ait.tensor<4096 x f16>
  %0 = ait.all_reduce sum %x over ["tp"] {M} : {t}
  %1 = ait.add %0, %r : {t}
  %2 = ait.{norm} %1 scale %g axes 1 eps 1e-05 : {t}
  %3 = ait.all_reduce sum %2 over ["tp"] {M} : {t}
  %4 = ait.add %3, %1 : {t}
  %5 = ait.{norm} %4 scale %g axes 1 eps 1e-05 : {t}
  ait.output "y" %5 : {t}
}}"""
    rng = np.random.default_rng(0)
    weights = {"g": (1 + 0.1 * rng.standard_normal(4096)).astype(np.float16)}
    x = rng.standard_normal((2 * rows, 4096)).astype(np.float16)
    r = rng.standard_normal((rows, 4096)).astype(np.float16)
    module = parse_text(context(), text)
    compile_module(module, PEERS, output=tmp_path / "norms.ait", constants=weights)
    np.savez(tmp_path / "norms.ait.npz", x=x, r=r)
    assert not started(2, mode, tmp_path, "norms.ait")
    first, second = outputs(tmp_path, "norms.ait")
    assert first.tobytes() == second.tobytes()
    np.testing.assert_allclose(first, exact(text, {"x": x, "r": r}, weights, {"rows": rows}), rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("peers", [False, True])
@pytest.mark.parametrize("mode", ["plain", "graphs"])
def test_a_transformer_block(mode: str, peers: bool, tmp_path: Path) -> None:
    text, rng = BLOCK.replace('"tp"=4', '"tp"=2'), np.random.default_rng(0)
    module = parse_text(context(), text)
    weights = {n: (0.3 * rng.standard_normal(s)).astype(t) for n, (s, t) in param_types(module).items()}
    ids = rng.integers(0, 32, (2, 5))
    compile_module(module, PEERS if peers else NCCL, output=tmp_path / "block.ait", constants=weights)
    np.savez(tmp_path / "block.ait.npz", ids=ids)
    assert not started(2, mode, tmp_path, "block.ait")
    first, second = outputs(tmp_path, "block.ait")
    assert first.tobytes() == second.tobytes()
    plain = "\n".join(line for line in text.replace(f" {WEIGHT}", "").splitlines() if "sdy" not in line)
    np.testing.assert_allclose(first, exact(plain, {"ids": ids}, weights, {"b": 2, "s": 5}), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("card", {0: "rank 1 of 2: there is no cuda:7"}),
        ("dies first", {0: "rank 0 of 2: "}),
        ("dies", {0: "; rank 1 has ended"}),  # the library says it, or the time is over
    ],
)
@pytest.mark.parametrize("options", [NCCL, PEERS], ids=["nccl", "peers"])
def test_faults_end_every_rank(options: CompileOptions, mode: str, said: dict[int, str], tmp_path: Path) -> None:
    compile_module(parse_text(context(), SMALL), options, output=tmp_path / "small.ait")
    np.savez(tmp_path / "small.ait.npz", x=np.ones((2, 4), np.float32))
    found = started(2, mode, tmp_path, "small.ait")
    for rank, reason in said.items():
        assert reason in found.get(rank, "nothing"), found
