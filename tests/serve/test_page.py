"""The program of docs/serving.md runs as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.support import ROOT, make_tools, run

pytest.importorskip("ray.serve", reason="the extra `ray` is not installed")
pytestmark = pytest.mark.full  # starting and stopping Ray alone takes 20 s


def test_the_page_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/serving.md").read_text(), re.S)
    assert len(blocks) == 6
    (tmp_path / "page.py").write_text("".join(blocks) + '\nprint("ran")\n')
    assert run("python page.py", tmp_path, make_tools(tmp_path / "bin")).splitlines()[-1] == "ran"
