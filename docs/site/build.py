"""`make docs`: the documentation as a site, in `build/site`, with every link checked.

The guides are the files of `docs/`; `pages.py` makes the other pages from the code. Nothing that is made is committed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from urllib.parse import unquote, urldefrag, urljoin, urlparse

from docs.site.pages import all_pages, navigation

ROOT = Path(__file__).parents[2]
SITE, STAGED, PLAYGROUND = ROOT / "build" / "site", ROOT / "build" / "site-pages", ROOT / "build" / "playground"
NEEDED = ("mkdocs", "material", "mkdocstrings")
_LOADING = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")}


class Missing(Exception):
    """A package of the extra `docs` is missing."""


def build(output: Path = SITE, staged: Path = STAGED) -> list[str]:
    """Write the site; returns the broken links, none if all is well.

    Raises `Missing` without the extra `docs`, and `CalledProcessError` if MkDocs, which is strict, refuses a page.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise Missing(f"no {', '.join(missing)}: install the extra docs, pip install -c constraints.txt -e '.[docs]'")
    import yaml

    shutil.rmtree(staged, ignore_errors=True)
    pages = staged / "pages"
    has_playground = (PLAYGROUND / "index.html").is_file()
    for place, text in all_pages(has_playground).items():
        (pages / place).parent.mkdir(parents=True, exist_ok=True)
        (pages / place).write_text(text, encoding="utf-8")
    shutil.copy(Path(__file__).with_name("site.css"), pages / "site.css")
    if has_playground:
        shutil.copytree(PLAYGROUND, pages / "playground")
    config = yaml.safe_load(Path(__file__).with_name("mkdocs.yml").read_text(encoding="utf-8"))
    config |= {"docs_dir": str(pages), "site_dir": str(output), "nav": navigation(has_playground)}
    config["plugins"][1]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT)]
    (staged / "mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(staged / "mkdocs.yml")]
    subprocess.run(command, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return broken_links(output)


class _Page(HTMLParser):
    """The addresses, and the places that links can lead to, of one page."""

    def __init__(self, text: str):
        super().__init__()
        self.places: set[str] = set()
        self.links: list[tuple[str, bool]] = []
        """Each with whether the browser loads it by itself."""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            if name in ("href", "src") and value:
                self.links.append((value, (tag, name) in _LOADING and ("rel", "canonical") not in attrs))


def broken_links(site: Path) -> list[str]:
    """The links between pages of a site that lead nowhere, and the files that a page loads from other hosts."""
    pages = {
        path.relative_to(site).as_posix(): _Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    found: list[str] = []
    for name, page in pages.items():
        for link, loads in page.links:
            parts = urlparse(link)
            if parts.scheme or parts.netloc:
                if loads and parts.scheme != "data":
                    found.append(f"{name}: loads {link}")
                continue
            target, anchor = urldefrag(urljoin(f"/{name}", link))
            file = unquote(target).lstrip("/") or "index.html"
            file += "index.html" if file.endswith("/") else ""
            if not (site / file).is_file():
                found.append(f"{name}: no page {link}")
            elif anchor and file in pages and not anchor.startswith("s=") and unquote(anchor) not in pages[file].places:
                found.append(f"{name}: no place {link}")
    return found


def main() -> int:
    start = perf_counter()
    try:
        broken = build()
    except (Missing, subprocess.CalledProcessError) as error:
        print(f"docs: error: {error}", file=sys.stderr)
        return 1
    for line in broken:
        print(f"docs: error: {line}", file=sys.stderr)
    files = [path for path in SITE.rglob("*") if path.is_file()]
    count, size = sum(path.suffix == ".html" for path in files), sum(path.stat().st_size for path in files)
    told = "all links lead somewhere" if not broken else f"{len(broken)} broken links"
    print(f"{SITE.relative_to(ROOT)}: {count} pages, {size / 1e6:.1f} MB in {perf_counter() - start:.0f} s; {told}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
