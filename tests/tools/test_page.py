"""`ait compile --report`: the page, its parts, and that a browser shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ait_mlir.tools.cli import main

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


def test_the_page_shows_passes_patterns_launches_and_the_arena(tmp_path: Path):
    text = write_page(tmp_path, "planned").read_text()
    launches = (tmp_path / "out.mlir").read_text().count("ait_rt.launch ")
    assert launches > 1
    assert text.count('class="launch"') == launches
    assert text.count('class="buffer"') == (tmp_path / "out.mlir").read_text().count("ait_rt.alloc ")
    assert 'class="added"' in text and 'class="removed"' in text
    patterns = text.split('<h2 id="patterns">')[1].split("</table>")[0]
    assert re.search(r'<td class="n">[1-9]\d*</td>', patterns)
    assert "batch = 4" in text and "not measured" in text


def test_the_page_shows_why_each_kernel_was_chosen(tmp_path: Path):
    text = write_page(tmp_path, "planned").read_text()
    rows = re.findall(
        r'<tr class="choice"><td class="n">(\d+)</td><td>([\w.]+)</td><td>.*?</td><td>([\w ]+)</td>', text
    )
    assert [row for row in rows if row[1] == "ait.gemm"] == [("1", "ait.gemm", "estimate")]
    assert f"{len(rows)} ops that differ: 0 by time" in text


def test_names_are_escaped(tmp_path: Path):
    text = write_page(tmp_path, "planned").read_text()
    assert "&lt;b&gt;w" in text and "<b>" not in text


def test_a_graph_without_a_plan_has_a_page_without_launches(tmp_path: Path):
    text = write_page(tmp_path, "simplified").read_text()
    assert 'id="passes"' in text and 'id="arena"' not in text


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "tiny.mlir").write_text(MODEL)
    output = tmp_path / "out.mlir"
    report = tmp_path / "none" / "out.html"
    command = ["compile", str(tmp_path / "tiny.mlir"), "--to", "planned", "--report", str(report), "-o", str(output)]
    assert main(command) != 0
    assert "there is no such folder" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_shows_the_page(tmp_path: Path):
    page, picture = write_page(tmp_path, "planned"), tmp_path / "page.png"
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    where = [f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={picture}", "--window-size=1100,900"]
    done = subprocess.run([*command, *where, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "CONSOLE" not in done.stderr
