"""The pages of the site that are made from the code; the site itself where MkDocs is installed."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import pytest

from docs.site import build as site
from docs.site.op_pages import op_page, ops, refused, syntax_text
from docs.site.pages import COPIED, GUIDES, all_pages, navigation

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return all_pages(with_playground=True)


@pytest.mark.parametrize("op", ops(), ids=lambda op: op.name)
def test_page_of_an_op(op: type) -> None:
    page = op_page(op)
    assert page.startswith(f"# {op.name}\n")
    assert "```mlir" in page and "## Kernels" in page
    assert "## Example" in page or op.name.removeprefix("ait.") in (
        *("at", "call_ffi", "constant", "fold", "graph", "index", "loops", "output", "param", "scan", "yield"),
    )
    assert ("## Rules of the verifier" in page) or op.name == "ait.jagged_to_padded" or op.name == "ait.yield"


def test_pages_say_what_the_classes_say(pages: dict[str, str]) -> None:
    assert "%output = ait.softmax %input dim INTEGER : TYPES" in pages["ops/softmax.md"]
    assert "dim 2 is out of range for shape [4, 8]" in pages["ops/softmax.md"]
    assert "| `r0` | 2 x 3 |" in pages["ops/softmax.md"]
    assert "split(gemm(x, concat(w0, w1)))" in pages["reference/passes.md"]
    assert "In the phase `fused`." in pages["reference/passes.md"]


def test_no_clause_of_a_syntax_is_unknown() -> None:
    for op in ops():
        assert not re.search(r"[A-Z]+CLAUSE", syntax_text(op)), op.name


def test_tested_errors_name_ops() -> None:
    assert {"ait.gemm", "ait.softmax", "ait.attention", "ait.conv"} <= set(refused())
    assert sum(map(len, refused().values())) > 300


def test_links_between_pages_lead_somewhere(pages: dict[str, str]) -> None:
    for place, text in pages.items():
        if place.startswith("source/"):
            continue
        plain = re.sub(r"(```+).*?\1|`[^`\n]*`", "", text, flags=re.S)
        for link in re.findall(r"\]\(([^)\s#]+)", plain):
            if "://" not in link and link.endswith(".md"):
                assert posixpath.normpath(posixpath.join(posixpath.dirname(place), link)) in pages, f"{place}: {link}"


def test_menu_has_every_page(pages: dict[str, str]) -> None:
    """Each page is in the menu, or is the text of a file that a page links to; each guide of `docs/` is among them."""
    listed = set(re.findall(r"'([\w/]+\.(?:md|html))'", str(navigation(with_playground=True))))
    assert listed - {"playground/index.html"} == {place for place in pages if not place.startswith("source/")}
    assert {place for _, place in GUIDES} <= set(COPIED.values())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<a href="b.html#here">', []),
        ('<a href="b.html#there">', ["a.html: no place b.html#there"]),
        ('<a href="c.html">', ["a.html: no page c.html"]),
        ('<script src="https://host.example/x.js"></script>', ["a.html: loads https://host.example/x.js"]),
        ('<a href="https://host.example/">', []),
        ('<img src="d.png">', ["a.html: no page d.png"]),
    ],
)
def test_broken_links_are_found(tmp_path: Path, text: str, found: list[str]) -> None:
    (tmp_path / "a.html").write_text(text)
    (tmp_path / "b.html").write_text('<h1 id="here">')
    assert site.broken_links(tmp_path) == found


@pytest.mark.full
def test_site_is_built_without_broken_links(tmp_path: Path) -> None:
    try:
        assert site.build(tmp_path / "site", tmp_path / "pages") == []
    except site.Missing as missing:
        pytest.skip(str(missing))
    assert (tmp_path / "site" / "search" / "search_index.json").is_file()
