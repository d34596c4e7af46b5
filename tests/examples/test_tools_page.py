"""The commands of docs/tools.md run as written, and print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ait_mlir.tools import ait_opt, cli
from tests.examples.support import ROOT

PAGE = (ROOT / "docs/tools.md").read_text()
TOOLS = {"ait": cli.main, "ait-opt": ait_opt.main}


@pytest.mark.usefixtures("built_runtime")
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    files = re.findall(r"`(\w+\.mlir)`:\n\n```mlir\n(.*?)```", PAGE, re.S)
    assert [name for name, _ in files] == ["twice.mlir", "mine.mlir", "wrong.mlir"]
    for name, text in files:
        Path(name).write_text(text)
    blocks = re.findall(r"```sh\n(.*?)```(?:\n```text\n(.*?)```)?", PAGE, re.S)
    assert len(blocks) == 7 and sum(bool(shown) for _, shown in blocks) == 2
    for commands, shown in blocks:
        printed = ""
        for command in commands.splitlines():
            tool, *words = shlex.split(command)
            if tool == "lit":
                continue
            try:
                code = TOOLS[tool](words)
            except SystemExit as ended:
                code = ended.code
            captured = capsys.readouterr()
            printed += captured.out
            assert code == 0, f"{command}\n{captured.out}{captured.err}"
        if shown:
            assert re.sub(r"\d+\.\d ms", "T ms", printed) == shown
    (beginning,) = re.findall(r"begins with\n\n```text\n(.*?)```", PAGE, re.S)
    assert Path("test.mlir").read_text() == beginning + files[0][1]
    assert Path("page.html").read_text().count('<section class="pass"') == 2
