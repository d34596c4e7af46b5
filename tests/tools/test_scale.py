"""`ait scale`: rows, formulas, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.collective import CollectiveOp
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.links import Cluster, Link, collective_seconds, sent_bytes
from ait_mlir.tools.cli import main

FFN = """
ait.graph @ffn(%x: !ait.tensor<batch x 256 x f16>) dims {batch = 1 to 64} {
  %up = ait.param "up" : !ait.tensor<1024 x 256 x f16>
  %0 = ait.gemm rcr %x, %up : !ait.tensor<batch x 1024 x f16>
  %1 = ait.gelu %0 : !ait.tensor<batch x 1024 x f16>
  %down = ait.param "down" : !ait.tensor<256 x 1024 x f16>
  %2 = ait.gemm rcr %1, %down : !ait.tensor<batch x 256 x f16>
  ait.output "y" %2 : !ait.tensor<batch x 256 x f16>
}
"""
PLAN = ["--plan", "up=colwise,down=rowwise"]


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "ffn.mlir").write_text(FFN)
    return str(tmp_path / "ffn.mlir")


def test_rows(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    meshes = ["--mesh", "tp=1", "--mesh", "tp=16", "--mesh", "tp=3"]
    assert main(["scale", file, *PLAN, *meshes, "--dim", "batch=4", "--cards", "64", "--json"]) == 0
    printed = capsys.readouterr()
    one, sixteen = json.loads(printed.out)
    assert "tp=3 is left out: pass 'partition': dim 0 of param 'up', 1024, is not proved to be a multiple of 3" in printed.err
    assert (one["weights"], sixteen["weights"]) == (1 << 20, 1 << 16)
    assert (one["replicas"], sixteen["replicas"]) == (64, 4)
    assert one["exchanging"] == one["sent"] == 0
    size = 4 * 256 * 2  # the operand of the all-reduce
    assert sixteen["sent"] == round(2 * size * 15 / 16)
    inside = 21e-6 + 2 * size * 7 / 8 / 292e9
    assert sixteen["exchanging"] == pytest.approx(inside + 30e-6 + 2 * size / 8 / 2 / 50e9)
    assert sixteen["seconds"] == pytest.approx(sixteen["computing"] + sixteen["exchanging"])
    assert sixteen["runs_per_second"] == pytest.approx(4 / sixteen["seconds"])


def test_a_table(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", file, *PLAN, "--mesh", "tp=2", "--link", "100,0"]) == 0
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["mesh", "ranks", "ms"] and row.split()[:2] == ["tp=2", "2"]


@pytest.mark.parametrize(
    ("kind", "result", "share"),
    [
        ("all_reduce sum", "4 x 8", 2 * 3 / 4),
        ("all_gather dim 0", "16 x 8", 3 / 4),
        ("reduce_scatter sum dim 0", "1 x 8", 3 / 4),
        ("all_to_all split 0 concat 1", "1 x 32", 3 / 4),
        ("broadcast root 0", "4 x 8", 1),
        ("all_slice dim 0", "1 x 8", 0),
    ],
)
def test_the_formulas(kind: str, result: str, share: float) -> None:
    name, _, rest = kind.partition(" ")
    word, rest = (rest.split()[0], " ".join(rest.split()[1:])) if name in ("all_reduce", "reduce_scatter") else ("", rest)
    text = f"""ait.graph @g(%x: !ait.tensor<4 x 8 x f32>) {{
  %0 = ait.{name} {word} %x {rest} over ["tp"] of <["tp"=4]> : !ait.tensor<{result} x f32>
  ait.output "y" %0 : !ait.tensor<{result} x f32>
}}"""
    module: ModuleOp = parse_text(context(), text)
    (op,) = (op for op in module.walk() if isinstance(op, CollectiveOp))
    assert sent_bytes(op, 1000) == pytest.approx(1000 * share)
    found = collective_seconds(op, 1000, Cluster(8, Link(1e6, 1e-3), Link(1e3, 1.0)))
    assert found == pytest.approx(1e-3 + (2 if name == "all_reduce" else 1) * 750 / 1e6 if share else 0)


@pytest.mark.parametrize(
    ("pairs", "seconds"),
    [("[0 -> 1, 1 -> 0]", 1e-3 + 1000 / 1e6), ("[0 -> 1, 1 -> 2]", 1.0 + 1000 / 1e3), ("[3 -> 0]", 1.0 + 1000 / 1e3)],
)
def test_messages_take_as_long_as_the_slowest(pairs: str, seconds: float) -> None:
    """Of four members on two nodes."""
    text = f"""ait.graph @g(%x: !ait.tensor<4 x 8 x f32>) {{
  %0 = ait.collective_permute %x {pairs} over ["pp"] of <["pp"=4]> : !ait.tensor<4 x 8 x f32>
  ait.output "y" %0 : !ait.tensor<4 x 8 x f32>
}}"""
    (op,) = (op for op in parse_text(context(), text).walk() if isinstance(op, CollectiveOp))
    assert sent_bytes(op, 1000) == 1000
    assert collective_seconds(op, 1000, Cluster(2, Link(1e6, 1e-3), Link(1e3, 1.0))) == pytest.approx(seconds)
    few = Cluster(2, Link(1e6, 1e-3), Link(1e3, 1.0), few=Link(1e5, 0.0))
    assert collective_seconds(op, 10, few) == pytest.approx(1e-4 if "2" not in pairs and "3" not in pairs else 1.01)


@pytest.mark.parametrize(
    ("members", "size", "micros"),
    [(2, 8 << 10, 9), (2, 1 << 20, 16), (2, 8 << 20, 50), (2, 16 << 20, 78), (6, 1 << 19, 23), (6, 1 << 20, 25)],
)
def test_estimates_are_near_what_was_measured(members: int, size: int, micros: float) -> None:
    """All-reduces of NCCL, of two cards H200 and of six H100."""
    text = f"""ait.graph @g(%x: !ait.tensor<{size} x ui8>) {{
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"={members}]> : !ait.tensor<{size} x ui8>
  ait.output "y" %0 : !ait.tensor<{size} x ui8>
}}"""
    (op,) = (op for op in parse_text(context(), text).walk() if isinstance(op, CollectiveOp))
    assert collective_seconds(op, size) == pytest.approx(micros * 1e-6, rel=0.1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--mesh", "tp=2048"], "has 2048 ranks, expected at most 1024"),
        (["--mesh", "tp"], "mesh 'tp': expected axes with their numbers of ranks"),
        (["--cards", "0"], "--cards 0: expected a number from 1 to 1024"),
        (["--node", "0"], "--node 0: expected a number from 1 to 1024"),
        (["--link", "0,3"], "--link '0,3': expected GB/s above 0 and microseconds, as in 417,21"),
        (["--network", "fast"], "--network 'fast': expected GB/s above 0"),
        (["--dim", "seq=3"], "there is no dim 'seq'; the dims are batch"),
        (["--dim", "batch=65"], "expected a whole number from 1 to 64"),
        (["--mesh", "tp=2"], "no mesh divides the model; tp=2: mesh 'tp=2' divides nothing"),
        (["--mesh", "tp=2", "--plan", "ups=colwise"], "no mesh divides the model; tp=2: plan: unknown module or param"),
        (["--mesh", "tp=4", "--cards", "2"], "no mesh divides the model; tp=4: it has 4 ranks, there are 2 cards"),
    ],
)
def test_wrong_input_is_refused(given: list[str], said: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", file, *given]) == 1
    assert said in capsys.readouterr().err


def test_a_missing_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "none.mlir"]) == 1
    assert "cannot read none.mlir" in capsys.readouterr().err
