"""Rows of measurements in files, and the page that is made of them."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from ait_mlir.errors import AitError
from benchmarks import page, record
from benchmarks.record import FOLDER, Run, read, show, text, write

ONE = Run("python -m benchmarks.one", "a card", "a driver", "", "", ["op", "us", "ratio"], [["a", "1.0", "0.50"]])
OTHER = dataclasses.replace(ONE, command="python -m benchmarks.one --more", rows=[["b", "4.0", "2.00"]])


def test_the_page_is_what_the_files_make():
    assert page.PAGE.read_text() == page.page(), "old: python -m benchmarks.page writes it again"


README_ROWS = {
    "BERT-base": [("bert", "1 x 128"), ("bert", "32 x 384")],
    "ViT-B/16": [("vit", "1 x 197"), ("vit", "32 x 197")],
    "GPT-2": [("gpt2", "1 x 128"), ("gpt2", "32 x 128")],
    "Llama-2, 4 layers, prefill": [("llama", "1 x 512"), ("llama", "4 x 512")],
    "one step of its decoding": [("llama-decode", "1 x 2048"), ("llama-decode", "16 x 2048")],
    "ResNet-50": [("resnet50", "1"), ("resnet50", "32")],
    "MobileNetV3": [("mobilenetv3", "1"), ("mobilenetv3", "32")],
    "UNet of Stable Diffusion 1.5": [("unet", "2")],
}


def test_the_table_of_the_readme_has_rows_of_the_files():
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for run in (run for name in ("models-h200", "networks-h200") for run in read(FOLDER / f"{name}.json")):
        rows |= {(cells[0], cells[1]): dict(zip(run.heads, cells, strict=True)) for cells in run.rows}
    lines = (FOLDER.parents[1] / "README.md").read_text().split("## How fast")[1].split("\n## ")[0].splitlines()
    table = {cells[0]: cells[2:] for line in lines if line.startswith("|") and (cells := line.strip("| ").split(" | "))}
    assert set(README_ROWS) <= set(table)
    for name, keys in README_ROWS.items():
        found = [rows[key] for key in keys]
        best = [min(row["eager ms"], row["compile ms"], key=float) for row in found]
        made = [", ".join(row[c] for row in found) for c in ("ours ms", "ours / best peer")]
        assert table[name] == [made[0], ", ".join(best), made[1]], name
    ratios = sorted(float(x) for cells in (table[name] for name in README_ROWS) for x in cells[2].split(", "))
    first = (FOLDER.parents[1] / "README.md").read_text().split("\n## ")[0]
    assert f"{ratios[0]:.2f} to {ratios[-1]:.2f} of the time" in " ".join(first.split())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_file_of_rows_is_as_the_benchmarks_write_it(path: Path):
    runs = read(path)
    assert path.read_text() == text(runs)
    for run in runs:
        name = run.command.split()[2].removeprefix("benchmarks.")
        assert run.command.startswith("python -m benchmarks.") and (FOLDER.parent / f"{name}.py").exists()
        assert run.machine and run.rows


def test_a_run_replaces_the_one_with_its_command(tmp_path: Path):
    path = tmp_path / "new" / "rows.json"
    write(path, ONE)
    write(path, OTHER)
    again = dataclasses.replace(ONE, rows=[["a", "0.9", "0.45"]])
    write(path, again)
    assert read(path) == [again, OTHER]


def test_show_writes_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "rows.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks/one.py", "--only", "a b", "--save", str(path)])
    show(path, ["op", "us"], [["a", "1.0"]], "cpu", "9 GB/s")
    assert capsys.readouterr().out.splitlines()[-1].split() == ["a", "1.0"]
    (saved,) = read(path)
    assert (saved.command, saved.limits) == ("python -m benchmarks.one --only 'a b'", "9 GB/s")
    assert (saved.heads, saved.rows) == (["op", "us"], [["a", "1.0"]])
    monkeypatch.setattr(sys, "argv", ["benchmarks/one.py", f"--save={path}", "--only", "a b"])
    assert record.command() == saved.command


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("{", "has no rows of a benchmark"),
        ('{"runs": [{"command": "x"}]}', "has no rows of a benchmark"),
        (text([dataclasses.replace(ONE, rows=[["a"]])]), r"expected 3 cells in a row, found \['a'\]"),
    ],
)
def test_a_broken_file_is_told_by_name(tmp_path: Path, content: str, error: str):
    path = tmp_path / "rows.json"
    path.write_text(content)
    with pytest.raises(AitError, match=f"rows.json.*{error}"):
        read(path)


def made(monkeypatch: pytest.MonkeyPatch, folder: Path, template: str) -> str:
    write(folder / "one-card.json", ONE)
    write(folder / "one-card.json", OTHER)
    (folder / "page.md").write_text(template)
    monkeypatch.setattr(page, "FOLDER", folder)
    monkeypatch.setattr(page, "TEMPLATE", folder / "page.md")
    return page.page()


def test_lines_of_the_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = made(
        monkeypatch,
        tmp_path,
        "# Title\n:: software\n:: ratios\n:: ratio both | one-card | ratio\n:: table one-card#2 | op, machine\n",
    )
    assert found == (
        "# Title\nUnless a table says otherwise: a driver.\n\n"
        "| measured | rows | mean | smallest | largest | above 1 | machine | `python -m` |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| both | 2 | 1.00 | 0.50 | 2.00 | 1 | a card | `benchmarks.one`, `benchmarks.one --more` |\n"
        "`python -m benchmarks.one --more`: a card.\n\n| op | machine |\n| --- | --- |\n| b | a card |\n"
    )


def test_rows_that_summarise_ratios_are_pooled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    heads = ["seed", "networks", "geometric mean", "smallest", "largest", "above 1"]
    first = dataclasses.replace(ONE, heads=heads, rows=[["7", "1", "4.0", "", "4.0", "1"]])
    again = dataclasses.replace(OTHER, command="python -m benchmarks.one --seed 3 --peers a,b --budget 2", heads=heads)
    again = dataclasses.replace(again, rows=[["3", "3", "0.5", "0.25", "0.75", "0"]])
    write(tmp_path / "many-card.json", first)
    write(tmp_path / "many-card.json", again)
    found = made(monkeypatch, tmp_path, ":: ratio all | many-card | geometric mean\n")
    assert found == "| all | 4 | 0.84 |  | 4.0 | 1 | a card | `benchmarks.one` |\n"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (":: table one-card | op, ms", "no run of one-card has the column 'ms'"),
        (":: table one-card | op | c", "has no such rows"),
        (":: table one-card#3 | op", "one-card has 2 runs"),
        (":: chart one-card | op", "expected `:: table FILE"),
        (":: ratio all | one-card", "expected `:: table FILE"),
        (":: table two-card | op", "No such file"),
    ],
)
def test_a_wrong_line_of_the_template_is_told_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, error: str
):
    with pytest.raises(AitError, match=f"page.md:2: .*{error}"):
        made(monkeypatch, tmp_path, f"# Title\n{line}\n")
