"""The tables of `docs/passes.md`: documented transformations, and other documented functions and classes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Row:
    """A documented name: its module, its passes or the code that it calls, its file and its test.

    `graphless` is the reason why it does not act on a graph, empty for a function that acts on graphs, and None for a
    transformation.
    """

    module: str
    name: str
    calls: str
    file: str
    test: str
    graphless: str | None


def page() -> dict[str, Row]:
    """The rows of the page by name."""
    found: dict[str, Row] = {}
    for line in (ROOT / "docs" / "passes.md").read_text().splitlines():
        if (named := re.match(r"\| `(\w+)\.(\w+)` \|", line)) is None:
            continue
        _, calls, *columns = (cell.strip() for cell in line.strip("|").split(" | "))
        paths = [link[1] for cell in columns[:2] if (link := re.search(r"\(\.\./(.*?)\)", cell))]
        assert len(paths) == 2 and named[2] not in found, line
        graphless = columns[3].removesuffix(" |").strip() if len(columns) > 3 else None
        found[named[2]] = Row(named[1], named[2], calls, paths[0], paths[1], graphless)
    return found


PAGE = page()
