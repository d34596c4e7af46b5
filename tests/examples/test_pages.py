"""Links and paths in the pages: they name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.support import ROOT

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks/results/page.md"]
FOLDERS = ("ait_mlir", "benchmarks", "docs", "examples", "lit_tests", "runtime", "tests")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    folder = ROOT / "docs" if page.name == "page.md" else page.parent  # docs/results.md is made of it
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = folder / path if path else page
        assert target.exists(), f"{page.name}: no file {link}"
        if anchor:
            heads = re.findall(r"^#+ (.*)$", target.read_text(), re.M)
            assert anchor in {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}, link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_exist(page: Path):
    """`ait_mlir/dtypes.py`; capitals such as `FAMILY` and braces stand for names."""
    for path in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[a-z0-9_./-]+)`", page.read_text()):
        assert (ROOT / path).exists(), f"{page.name}: no file {path}"
