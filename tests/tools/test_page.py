"""`ait compile --report`: the page, its parts, and that a browser shows it."""

from __future__ import annotations

import base64
import gzip
import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.tools.cli import main
from ait_mlir.tools.steady import Names, steady_text

ROOT = Path(__file__).parents[2]
MODEL = """
ait.graph @tiny(%x: !ait.tensor<batch x 8 x f32>) dims {batch = 1 to 6 hints [2, 4]} {
  %w = ait.param "<b>w" : !ait.tensor<8 x 8 x f32>
  %0 = ait.relu %x : !ait.tensor<batch x 8 x f32>
  %1 = ait.relu %0 : !ait.tensor<batch x 8 x f32>
  %2 = ait.gemm rcr %1, %w : !ait.tensor<batch x 8 x f32>
  %3 = ait.softmax %2 dim 1 : !ait.tensor<batch x 8 x f32>
  ait.output "y" %3 : !ait.tensor<batch x 8 x f32>
}
"""


def write_page(folder: Path, to: str) -> Path:
    (folder / "tiny.mlir").write_text(MODEL)
    page = folder / "out.html"
    command = ["compile", str(folder / "tiny.mlir"), "--to", to, "--report", str(page)]
    assert main([*command, "-o", str(folder / "out.mlir")]) == 0
    return page


def unpacked(page: str) -> list[str]:
    """The packed parts: the first IR, the changes of each pass that changed something, then the IR at the end."""
    return [gzip.decompress(base64.b64decode(found)).decode() for found in re.findall('data-packed="([^"]*)"', page)]


def test_the_page_shows_passes_patterns_launches_and_the_arena(tmp_path: Path):
    text = write_page(tmp_path, "planned").read_text()
    launches = (tmp_path / "out.mlir").read_text().count("ait_rt.launch ")
    assert launches > 1
    assert text.count('class="launch"') == launches
    assert text.count('class="buffer"') == (tmp_path / "out.mlir").read_text().count("ait_rt.alloc ")
    first, *changes, ir = unpacked(text)
    assert first.startswith("builtin.module {\n  ait.graph @tiny") and ir + "\n" == (tmp_path / "out.mlir").read_text()
    assert text.count('<section class="pass"') - text.count("; no change") == len(changes)
    assert all({line[0] for line in change.split("\n")} <= set("+-@ ") for change in changes)
    assert any("+    %0 = ait.relu %x" in change for change in changes) or any(
        "-    %1 = ait.relu %0" in change for change in changes
    )
    patterns = text.split('<h2 id="patterns">')[1].split("</table>")[0]
    assert re.search(r'<td class="n">[1-9]\d*</td>', patterns)
    assert "batch = 4" in text and "not measured" in text


def test_the_changes_of_a_pass_are_those_of_the_program(tmp_path: Path):
    _, change, *_ = unpacked(text := write_page(tmp_path, "simplified").read_text())
    t = "!ait.tensor<batch x 8 x f32>"
    assert [line for line in change.split("\n") if line[0] in "+-"] == [
        f"-    %1 = ait.relu %0 : {t}\tidempotent_relu",
        f"-    %2 = ait.gemm rcr %1, %w : {t}",
        f"+    %2 = ait.gemm rcr %0, %w : {t}",
    ]
    laws = re.findall(r"<tr><td>(\w+)</td><td class=.n.>(\d+)</td><td>(.*?) <span class=.place.>(.*?)</span>", text)
    assert [law[:3] for law in laws] == [("idempotent_relu", "1", "relu(relu(x)) = relu(x)")]
    file, _, line = laws[0][3].partition(":")
    assert "def idempotent" in "".join((ROOT / file).read_text().splitlines(True)[int(line) - 1 : int(line) + 2])


def test_a_name_belongs_to_one_value():
    module = parse_text(context(), MODEL.replace("%0", "%h"))
    names = Names()
    before = steady_text(module, names)
    first, second = (op for op in module.walk() if op.name == "ait.relu")
    clone = first.clone()
    second.parent.insert_op_before(clone, second)  # type: ignore[union-attr]
    second.operands[0] = clone.results[0]
    after = steady_text(module, names)
    assert set(before.splitlines()) - set(after.splitlines()) == {"    %0 = ait.relu %h : !ait.tensor<batch x 8 x f32>"}
    added = {line.partition(" :")[0].strip() for line in set(after.splitlines()) - set(before.splitlines())}
    assert added == {"%h_0 = ait.relu %x", "%0 = ait.relu %h_0"}


def test_the_page_shows_why_each_kernel_was_chosen(tmp_path: Path):
    text = write_page(tmp_path, "planned").read_text()
    rows = re.findall(
        r'<tr class="choice"><td class="n">(\d+)</td><td>([\w.]+)</td><td>.*?</td><td>([\w ]+)</td>', text
    )
    assert [row for row in rows if row[1] == "ait.gemm"] == [("1", "ait.gemm", "estimate")]
    assert f"{len(rows)} ops that differ: 0 by time" in text


def test_names_are_escaped(tmp_path: Path):
    text = write_page(tmp_path, "planned").read_text()
    assert "<b>" not in text and any("<b>w" in part for part in unpacked(text))
    (tmp_path / "tiny.mlir").rename(tmp_path / "<i>.mlir")
    page = tmp_path / "escaped.html"
    command = ["compile", str(tmp_path / "<i>.mlir"), "--to", "simplified", "--report", str(page)]
    assert main([*command, "-o", str(tmp_path / "out.mlir")]) == 0
    assert "<title>&lt;i&gt;.mlir</title>" in page.read_text() and "<i>" not in page.read_text()


def test_a_graph_without_a_plan_has_a_page_without_launches(tmp_path: Path):
    text = write_page(tmp_path, "simplified").read_text()
    assert 'id="passes"' in text and 'id="arena"' not in text


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "tiny.mlir").write_text(MODEL)
    output = tmp_path / "out.mlir"
    report = tmp_path / "none" / "out.html"
    command = ["compile", str(tmp_path / "tiny.mlir"), "--to", "planned", "--report", str(report), "-o", str(output)]
    assert main(command) != 0
    assert f"{report} cannot be written: {report.parent} does not exist" in capsys.readouterr().err
    assert not output.exists()


LAYER = """
  %w{i} = ait.param "w{i}" : !ait.tensor<8 x 8 x f32>
  %g{i} = ait.gemm rcr %v{i}, %w{i} : !ait.tensor<batch x 8 x f32>
  %r{i} = ait.relu %g{i} : !ait.tensor<batch x 8 x f32>
  %v{j} = ait.softmax %r{i} dim 1 : !ait.tensor<batch x 8 x f32>
"""


def test_the_page_of_many_launches_is_small(tmp_path: Path):
    """Of a page of 875 launches, 3 MB allow 3.4 kB for each; the changes and the IR take a fraction of their text."""
    layers = "".join(LAYER.format(i=i, j=i + 1) for i in range(60))
    (tmp_path / "deep.mlir").write_text(
        "ait.graph @deep(%v0: !ait.tensor<batch x 8 x f32>) dims {batch = 1 to 6} {"
        f'{layers}  ait.output "y" %v60 : !ait.tensor<batch x 8 x f32>\n}}\n'
    )
    page = tmp_path / "deep.html"
    command = ["compile", str(tmp_path / "deep.mlir"), "--to", "planned", "--report", str(page)]
    assert main([*command, "-o", str(tmp_path / "out.mlir")]) == 0
    count = (tmp_path / "out.mlir").read_text().count("ait_rt.launch ")
    assert count == 120
    assert page.stat().st_size < 3_000_000 * count / 875
    text = page.read_text()
    assert sum(map(len, unpacked(text))) > 6 * sum(map(len, re.findall('data-packed="([^"]*)"', text)))


def browse(page: Path, fragment: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    where = [f"--user-data-dir={page.parent / 'profile'}", "--window-size=1100,900", "--virtual-time-budget=10000"]
    arguments = [*command, *where, *options, page.as_uri() + fragment]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_shows_the_page(tmp_path: Path):
    page, picture = write_page(tmp_path, "planned"), tmp_path / "page.png"
    done = browse(page, "", f"--screenshot={picture}")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "CONSOLE" not in done.stderr


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_unpacks_what_it_shows(tmp_path: Path):
    page = write_page(tmp_path, "planned")
    text = page.read_text()
    _, change, *_, ir = unpacked(text)
    packed = text.count("data-packed=")
    shown = browse(page, "#ir", "--dump-dom")
    assert html.escape(ir, quote=False) in shown.stdout and shown.stdout.count("data-packed=") == packed - 1
    number = re.findall(r'<section class="pass" id="pass-(\d+)" data-packed', text)[0]
    shown = browse(page, f"#pass-{number}:2", "--dump-dom")
    lines = [line.partition("\t")[0] for line in change.split("\n")]
    for mark, kind in (("-", "removed"), ("+", "added")):
        cells = cells_of(shown.stdout, kind)
        assert cells == [line[1:] for line in lines if line[0] == mark]
    assert shown.stdout.count('class="named">%2</a>') == change.count("%2") + change.count(" ait.softmax %2")
    assert '<span class="by">idempotent_relu</span>' in shown.stdout and "CONSOLE" not in shown.stderr


def cells_of(page: str, kind: str) -> list[str]:
    """The texts of the cells of a kind, without the names of patterns."""
    found = re.findall(rf'<td class="{kind}">(.*?)</td>', page)
    return [html.unescape(re.sub(r"<[^>]*>", "", re.sub('<span class="by">.*?</span>', "", cell))) for cell in found]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_shows_the_whole_ir_before_and_after_a_pass(tmp_path: Path):
    page = write_page(tmp_path, "planned")
    first, *_, ir = unpacked(text := page.read_text())
    page.write_text(text.replace("arrive();\n</script>", '$("all").checked = true; arrive();\n</script>'))
    numbers = re.findall(r'<section class="pass" id="pass-(\d+)" data-packed', text)
    sides: list[tuple[list[str], list[str]]] = []
    for number in (numbers[0], numbers[1], numbers[-1]):
        shown = browse(page, f"#pass-{number}", "--dump-dom").stdout
        section = shown.split(f'id="pass-{number}"')[1].partition("</section>")[0]
        rows = re.findall(r"<tr[^>]*>(<td.*?</td>)(<td.*?</td>)</tr>", section.partition('class="sides"')[2])
        sides.append(tuple([text for row in rows for text in texts_of(row[i])] for i in (0, 1)))  # type: ignore[arg-type]
    assert "\n".join(sides[0][0]) == first and sides[0][1] == sides[1][0] != sides[0][0]
    assert len(sides[2][1]) == len(ir.splitlines())


def texts_of(cell: str) -> list[str]:
    """The text of a cell, none if there is no line on its side."""
    return [] if cell == "<td></td>" else cells_of(re.sub("<td[^>]*>", '<td class="x">', cell), "x")
