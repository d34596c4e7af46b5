"""`ait reduce`: what remains is small, fails in the same way, and bad calls are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.tools.cli import main
from ait_mlir.tools.reducer import Reducer
from benchmarks.rewrites import bert_stack
from tests.generator import random_graph

CHAIN = "".join(
    f"  %{i} = ait.{('tanh', 'neg', 'sigmoid')[i % 3] if i != 150 else 'erf'} "
    f"%{i - 1 if i else 'x'} : !ait.tensor<n x 8 x f32>\n"
    for i in range(200)
).replace("%x", "%x")
TEXT = (
    "ait.graph @g(%x: !ait.tensor<n x 8 x f32>, %z: !ait.tensor<4 x f32>) dims {n = 1 to 64} {\n"
    f"{CHAIN}"
    '  ait.output "z" %z : !ait.tensor<4 x f32>\n  ait.output "y" %199 : !ait.tensor<n x 8 x f32>\n}\n'
)
CONTAINS = "sh -c '! grep -q {word} {{}}'"


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "chain.mlir"
    path.write_text(TEXT)
    return path


def test_two_hundred_ops_become_one(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reduce", str(chain), "--command", CONTAINS.format(word="ait.erf")]) == 0
    out, err = capsys.readouterr()
    assert out == (
        "builtin.module {\n"
        "  ait.graph @g(%x: !ait.tensor<n x 8 x f32>) dims {n = 1 to 1} {\n"
        "    %0 = ait.erf %x : !ait.tensor<n x 8 x f32>\n"
        '    ait.output "y" %0 : !ait.tensor<n x 8 x f32>\n'
        "  }\n"
        "}\n"
    )
    runs = re.fullmatch(r"ait: note: 204 ops became 4 in (\d+) runs of the command\n", err)
    assert runs is not None and int(runs[1]) < 120


def test_two_ops_far_apart_remain_alone() -> None:
    """Five layers of BERT fail where they have a softmax of dim 3 and a gelu; what lies between them goes."""

    def fails(candidate: ModuleOp) -> bool:
        text = str(candidate)
        return re.search(r"ait\.softmax .* dim 3", text) is not None and "ait.gelu" in text

    module = parse_text(context(), bert_stack(200))
    reducer = Reducer(fails)
    ops = re.findall(r"= (ait\.\w+)", str(reducer.reduce(module)))
    assert sorted(ops) == ["ait.gelu", "ait.softmax"]
    assert reducer.tried < 150


def test_only_the_same_message_counts(chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each op is a failure of the command, but only one of them says what is looked for."""
    out = tmp_path / "small.mlir"
    command = "sh -c 'grep -o ait.erf {}; exit 3'"
    assert main(["reduce", str(chain), "--command", command, "--message", "ait.erf", "-o", str(out)]) == 0
    assert out.read_text().count("= ait.") == 1 and "ait.erf" in out.read_text()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--command", "true"], "the command does not fail on"),
        (["--command", "false", "--message", "x"], "or does not print 'x': there is nothing to reduce"),
        (["--command", "no-such-program"], "--command: no-such-program cannot be run: No such file or directory"),
        (["--command", "'"], "--command: No closing quotation"),
        (["--command", " "], "--command is empty"),
        (["--command", "false", "--timeout", "0"], "--timeout 0.0: expected seconds above 0"),
    ],
)
def test_wrong_calls(chain: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reduce", str(chain), *arguments]) == 1
    err = capsys.readouterr().err
    assert message in err and err.startswith("ait: error: ") and err.count("\n") == 1


def test_what_does_not_parse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text("ait.graph @g(\n")
    assert main(["reduce", str(path), "--command", "false"]) == 1
    assert "wrong.mlir:1" in capsys.readouterr().err


@pytest.mark.parametrize("seed", [3, 17, 40])
def test_random_graphs_stay_valid(seed: int) -> None:
    """Every module that is tried verifies, and the result still has what is looked for."""
    module = parse_text(context(), random_graph(seed))
    ops = [line.split(" = ")[1].split()[0] for line in random_graph(seed).splitlines() if " = ait." in line]
    wanted = next(op for op in reversed(ops) if op not in ("ait.param", "ait.constant"))

    def fails(candidate) -> bool:
        candidate.verify()
        assert str(parse_text(context(), str(candidate))) == str(candidate)
        return f"{wanted} " in str(candidate)

    before = str(module)
    smaller = Reducer(fails).reduce(module)
    assert str(module) == before and f"{wanted} " in str(smaller)
    assert len(list(smaller.walk())) < len(list(module.walk()))


def test_a_run_that_does_not_end_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.mlir"
    path.write_text(
        "ait.graph @g(%x: !ait.tensor<8 x f32>) {\n  %0 = ait.neg %x : !ait.tensor<8 x f32>\n"
        '  %1 = ait.erf %0 : !ait.tensor<8 x f32>\n  ait.output "y" %1 : !ait.tensor<8 x f32>\n}\n'
    )
    command = "sh -c 'if grep -q ait.erf {}; then sleep 5; fi'"
    assert main(["reduce", str(path), "--command", command, "--timeout", "0.3"]) == 0
    assert "ait.neg" not in capsys.readouterr().out
