"""The program of docs/runtime.md runs as written."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.examples.support import ROOT, make_tools, run


def test_the_page_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/runtime.md").read_text(), re.S)
    assert len(blocks) >= 7
    (tmp_path / "page.py").write_text("".join(blocks))
    told = run("python page.py", tmp_path, make_tools(tmp_path / "bin"))
    assert re.fullmatch(r"0 gemm.*1\n", told), told
    assert next(iter(json.loads((tmp_path / "report.json").read_text()))).startswith("gemm_")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
