"""`ait-opt --generate-checks` and `ait update-checks`: the checks pass, fail after a change, and stay where they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ait_mlir.tools import ait_opt
from ait_mlir.tools.checks import MARK, without_checks
from ait_mlir.tools.cli import main
from ait_mlir.tools.run_lines import run_ait_opt, run_filecheck
from tests.lit.runner import check_file

ROOT = Path(__file__).parents[2]
T = "!ait.tensor<b x 4 x f32>"
BODY = f"""ait.graph @g(%x: {T}, %z: {T}) dims {{b = 1 to 8}} {{
  %0 = ait.softmax %x dim 1 : {T}
  %1 = ait.sub %0, %z : {T}
  %2 = ait.mul %1, %0 : {T}
  ait.output "y" %2 : {T}
}}
"""
RUN = "// RUN: ait-opt %s -p simplify | filecheck %s\n"


def generated(text: str, *options: str) -> str:
    outcome = run_ait_opt(["-", *options, "--generate-checks"], text)
    assert outcome.code == 0, outcome.stderr
    return outcome.stdout


def passes(checks: Path, output: str) -> bool:
    return run_filecheck([str(checks)], output).code == 0


def changed(output: str) -> Iterator[str]:
    """The output with one change each: another operand, another number, two ops swapped, an op removed or repeated."""
    lines = output.splitlines()
    for i, line in enumerate(lines):
        used = re.findall(r"%[\w.]+", line.partition(" = ")[2] or line)
        other = [name for name in re.findall(r"(%[\w.]+) = ", "\n".join(lines[:i])) if name not in used]
        if " = " in line and used and other:
            head, _, tail = line.partition(" = ")
            yield "\n".join([*lines[:i], f"{head} = {tail.replace(used[0], other[0], 1)}", *lines[i + 1 :]])
        if (number := re.search(r"(?<![\w%@])\d+(?![\w.])", line)) is not None:
            yield "\n".join(
                [*lines[:i], f"{line[: number.start()]}{int(number[0]) + 1}{line[number.end() :]}", *lines[i + 1 :]]
            )
        if " = " in line and " = " in lines[i + 1] and line != lines[i + 1]:
            yield "\n".join([*lines[:i], lines[i + 1], line, *lines[i + 2 :]])
        if " = " in line or "output" in line:
            yield "\n".join([*lines[:i], *lines[i + 1 :]])
            yield "\n".join([*lines[:i], line, *lines[i:]])


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("rewrites/epilogue.mlir", ["-p", "fuse-epilogue"]),
        ("dialects/ait/data.mlir", []),
        ("dialects/ait/data.mlir", ["--print-op-generic"]),
        ("rewrites/buffers.mlir", ["-p", "remove-copies"]),
        ("passes/in_place.mlir", ["-p", 'select{target="cpu"},bufferize,plan-memory']),
    ],
)
def test_generated_checks_pass_and_fail_after_a_change(file: str, options: list[str], tmp_path: Path) -> None:
    source = without_checks((ROOT / "lit_tests" / file).read_text(), ["CHECK"], by_hand=True)
    source = source.partition("// -----")[0]
    output = run_ait_opt(["-", *options], source).stdout
    checks = tmp_path / "checks.mlir"
    checks.write_text(generated(source, *options))
    assert passes(checks, output)
    found = list(changed(output))
    assert len(found) > 20
    for other in found[:: max(1, len(found) // 40)]:
        assert not passes(checks, other), other


def test_other_names_of_values_change_nothing(tmp_path: Path) -> None:
    checks = tmp_path / "checks.mlir"
    checks.write_text(generated(BODY))
    for renamed in (BODY.replace("%0", "%first"), BODY.replace("%1", "%9"), BODY.replace("%2", "%x_1")):
        assert passes(checks, run_ait_opt(["-"], renamed).stdout)
    assert generated(BODY.replace("%1", "%9")).replace("%9", "%1") == checks.read_text()


def test_a_text_becomes_a_test(tmp_path: Path) -> None:
    test = tmp_path / "mine.mlir"
    test.write_text(generated(BODY, "-p", "simplify,cse"))
    assert test.read_text().startswith("// RUN: ait-opt %s -p simplify,cse | filecheck %s\n\n" + MARK)
    assert "// CHECK-NEXT:   [[SUB:%.*]] = ait.sub [[SOFTMAX]], %z : " in test.read_text()
    check_file(test)
    assert main(["update-checks", "--diff", str(test)]) == 0


def test_the_run_line_finds_the_files_beside_the_test(tmp_path: Path) -> None:
    (tmp_path / "mine.mlir").write_text("pdl.pattern")
    (tmp_path / "model.mlir").write_text(BODY)
    for file, shown in (("mine.mlir", "%S/mine.mlir"), ("other.mlir", "other.mlir"), ("/a/mine.mlir", "/a/mine.mlir")):
        options = ait_opt.argument_parser().parse_args(
            [str(tmp_path / "model.mlir"), "-p", f'apply-patterns{{file="{file}"}}'], namespace=ait_opt.Options()
        )
        assert ait_opt.run_line_of(options, BODY) == [
            f"// RUN: ait-opt %s -p 'apply-patterns{{file=\"{shown}\"}}' | filecheck %s\n\n"
        ]


def write(folder: Path, text: str) -> Path:
    (folder / "a.mlir").write_text(text)
    return folder / "a.mlir"


def test_new_output_is_written_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = write(tmp_path, RUN + "\n// Why.\n" + BODY)
    assert main(["update-checks", str(test)]) == 0
    first = test.read_text()
    assert "a.mlir: 6 checks written" in capsys.readouterr().out and first.startswith(f"{RUN}\n// Why.\n{MARK}\n")
    check_file(test)
    test.write_text(stale := first.replace("  %1 = ait.sub %0, %z", "  %1 = ait.add %0, %z"))
    assert main(["update-checks", "--diff", str(test)]) == 1 and test.read_text() == stale
    shown = [line for line in capsys.readouterr().out.splitlines() if re.match(r"[-+] *//", line)]
    assert shown[0] == f"-// CHECK-NEXT:   [[SUB:%.*]] = ait.sub [[SOFTMAX]], %z : {T}"
    assert main(["update-checks", str(test)]) == 0
    check_file(test)
    assert test.read_text() == stale.replace("SUB", "ADD").replace("ait.sub", "ait.add")


def test_checks_by_hand_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_hand = f"{RUN}// CHECK-LABEL: @g\n{BODY}"
    test = write(tmp_path, by_hand)
    assert main(["update-checks", str(test)]) == 0 and test.read_text() == by_hand
    assert "line 1: the checks of CHECK are written by hand" in capsys.readouterr().err
    assert main(["update-checks", "--all", str(test)]) == 0
    assert "// CHECK-LABEL: @g\n" not in test.read_text() and test.read_text().count(MARK) == 1
    check_file(test)
    both = test.read_text() + "// CHECK-NOT: ait.relu\n"
    test.write_text(both.replace("ait.mul [[", "ait.div [["))
    assert main(["update-checks", str(test)]) == 0 and test.read_text() == both


def test_each_prefix_and_each_part_has_its_own_checks(tmp_path: Path) -> None:
    runs = [
        "// RUN: ait-opt %s --split-input-file | filecheck %s",
        "// RUN: ait-opt %s --split-input-file --print-op-generic | filecheck %s --check-prefix=SOFTMAX",
        "// RUN: ait-opt %s --split-input-file -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SAME",
        "// SAME: semantics: nothing was compared",
    ]
    parts = BODY + "\n// -----  the same\n\n" + BODY.replace("@g", "@h")
    test = write(tmp_path, "\n".join(runs) + "\n\n" + parts)
    assert main(["update-checks", str(test)]) == 0
    text = test.read_text()
    for prefix, name in (("CHECK-LABEL: ait.graph", "g"), ("CHECK-LABEL: ait.graph", "h"), ("SOFTMAX-LABEL", "h")):
        assert len(re.findall(f"// {prefix}.*(?:@{name}|sym_name = .{name})", text)) == 1
    assert "// -----  the same\n" in text and text.index("SOFTMAX-LABEL") < text.index("// -----")
    check_file(test)
    assert main(["update-checks", "--diff", str(test)]) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{RUN}{BODY.replace('dim 1', 'dim 5')}", "a.mlir:3:3: error: ait.softmax: dim 5"),
        (f"// RUN: ait-opt %s -p no-such-pass | filecheck %s\n{BODY}", "no-such-pass"),
        (f"{RUN}// RUN: ait-opt %s | filecheck %s --check-prefix=HAND\n// HAND: ait.relu\n{BODY}", "another reason"),
        (f"{RUN}// RUN: ait-opt %s -p simplify --print-op-generic | filecheck %s\n{BODY}", "two RUN lines print"),
        (f"{RUN}// RUN: rm -rf %s\n{BODY}", "a.mlir:2: RUN: rm -rf %s: found the command 'rm'"),
        (f"// RUN: ait-opt %s && filecheck %s\n{BODY}", "found '&&'"),
        (f"// RUN: ait-opt <%s | filecheck %s\n{BODY}", "found '<'"),
        (f"// RUN: | filecheck %s\n{BODY}", "found no command"),
        (f"{RUN[:-1]} --nonsense\n{BODY}", "a.mlir --nonsense` gave exit code 2"),
        (f"{RUN[:-1]} --check-prefix\n{BODY}", "a.mlir --check-prefix` gave exit code 2"),
        (f"// RUN: ait-opt %s --nonsense | filecheck %s\n{BODY}", "line 1: `ait-opt "),
        (f"// RUN: ait-opt %s --help | filecheck %s\n{BODY}", "it prints no IR"),
        (f"// RUN: ait-opt %s --list-passes | filecheck %s\n{BODY}", "it prints no IR"),
        (f"// RUN: ait-opt '%s | filecheck %s\n{BODY}", "No closing quotation"),
        (BODY, "no RUN line"),
        (f"// RUN: ait-opt %s -p \\\n{BODY}", "goes on after its backslash"),
        (f"{RUN}{BODY}\r\n", "some lines end with a carriage return"),
    ],
)
def test_a_test_that_fails_for_another_reason_is_left_alone(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (test := tmp_path / "a.mlir").write_bytes(text.encode())
    assert main(["update-checks", str(test)]) == 1 and test.read_bytes() == text.encode()
    out, err = capsys.readouterr()
    assert out == "" and said in err and "Traceback" not in err and "internal error" not in err, err
    assert "ait_checks_" not in err  # the scratch folder


@pytest.mark.parametrize("name", ["-a.mlir", ".a.mlir", "a b.mlir", "%S%s.mlir", "a"])
def test_the_name_of_a_test_is_no_option(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(RUN + BODY)
    assert main(["update-checks", f"./{name}"]) == 0 and MARK in Path(name).read_text()


def test_carriage_returns_stay(tmp_path: Path) -> None:
    (test := tmp_path / "a.mlir").write_bytes((RUN + BODY).replace("\n", "\r\n").encode())
    assert main(["update-checks", str(test)]) == 0
    lines = test.read_bytes().decode().split("\n")
    assert len(lines) == 15 and all(line.endswith("\r") for line in lines[:-1])
    check_file(test)
    assert main(["update-checks", "--diff", str(test)]) == 0


def test_json_has_an_object_for_each_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = write(tmp_path, RUN + BODY)
    assert main(["update-checks", "--json", str(test), str(tmp_path / "none.mlir")]) == 1
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["state"] == "changed" and "+// CHECK-LABEL: ait.graph @g" in first["diff"]
    assert second["state"] == "failed" and "No such file" in second["notes"][0]


def test_brackets_are_literal(tmp_path: Path) -> None:
    graph = 'ait.graph @"g"(%x: !ait.tensor<2 x f32>) {\n  %w = ait.param "[[w]] {{.*}}" : !ait.tensor<2 x f32>\n'
    graph += '  %0 = ait.add %x, %w : !ait.tensor<2 x f32>\n  ait.output "y" %0 : !ait.tensor<2 x f32>\n}\n'
    checks = write(tmp_path, generated(graph))
    output = run_ait_opt(["-"], graph).stdout
    assert passes(checks, output) and not passes(checks, output.replace("[[w]]", "[[W]]"))
    assert not passes(checks, output.replace(".*", "abc"))
