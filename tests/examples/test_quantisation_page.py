"""The program of docs/quantisation.md runs as written."""

from __future__ import annotations

import re
from pathlib import Path

from tests.examples.support import ROOT, make_tools, run


def test_the_page_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/quantisation.md").read_text(), re.S)
    assert len(blocks) >= 2
    (tmp_path / "page.py").write_text("".join(blocks))
    assert run("python page.py", tmp_path, make_tools(tmp_path / "bin")) == ""
