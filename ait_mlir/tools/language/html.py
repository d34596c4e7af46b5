"""A module as HTML, for notebooks: colours, and long constants and kernel configurations folded."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp

from ait_mlir.tools.language.tokens import Token, tokens_of

FOLDED = 80
"""Groups in brackets of more characters are folded."""
LINES = 5_000
"""A notebook shows this many lines; the rest is a sentence."""

STYLE = """<style>
.ait-ir { font: 12px/1.5 ui-monospace, monospace; white-space: pre; overflow-x: auto; color: #24292f }
.ait-ir details { display: inline } .ait-ir summary { display: inline; cursor: pointer; color: #6e7781 }
.ait-ir details[open] summary::after { content: " " }
.ait-ir .comment { color: #6e7781 } .ait-ir .string { color: #0a3069 } .ait-ir .value { color: #953800 }
.ait-ir .symbol { color: #8250df } .ait-ir .op { color: #cf222e } .ait-ir .dim { color: #116329; font-weight: 600 }
.ait-ir .type, .ait-ir .element { color: #0550ae } .ait-ir .attribute, .ait-ir .block { color: #8250df }
@media (prefers-color-scheme: dark) {
.ait-ir { color: #e6edf3 } .ait-ir .string { color: #a5d6ff } .ait-ir .value { color: #ffa657 }
.ait-ir .symbol, .ait-ir .attribute, .ait-ir .block { color: #d2a8ff } .ait-ir .op { color: #ff7b72 }
.ait-ir .dim { color: #7ee787 } .ait-ir .type, .ait-ir .element { color: #79c0ff } }
</style>"""
_CLOSING = {"[": "]", "{": "}", "(": ")"}


def module_html(module: ModuleOp) -> str:
    """The text of a module as HTML with its own colours for light and dark pages."""
    lines = str(module).split("\n")
    shown = "\n".join("".join(_line(line)) for line in lines[:LINES])
    rest = len(lines) - LINES
    more = f"\n<span class='comment'>// {rest} more lines; print(module) shows them</span>" if rest > 0 else ""
    return f"{STYLE}<div class='ait-ir'>{shown}{more}</div>"


def _line(line: str) -> Iterator[str]:
    tokens = tokens_of(line)
    at, i = 0, 0
    while i < len(tokens):
        yield line[at : tokens[i].start]
        last = _folded_end(tokens, i)
        if last is None:
            yield _span(tokens[i])
            at = tokens[i].end
        else:
            group = tokens[i : last + 1]
            inside = line[tokens[i].start : tokens[last].end]
            yield f"<details><summary>{_summary(group)}</summary>{html.escape(inside)}</details>"
            i, at = last, tokens[last].end
        i += 1
    yield html.escape(line[at:])


def _span(token: Token) -> str:
    text = html.escape(token.text)
    return text if token.kind in ("mark", "word", "number") else f"<span class='{token.kind}'>{text}</span>"


def _folded_end(tokens: Sequence[Token], first: int) -> int | None:
    """The index of the token that closes the long bracket at `first`; None if nothing is folded there."""
    opening = tokens[first].text
    closing = _CLOSING.get(opening)
    if closing is None or tokens[-1].end - tokens[first].start <= FOLDED:
        return None
    depth = 0
    for i in range(first, len(tokens)):
        depth += (tokens[i].text == opening) - (tokens[i].text == closing)
        if depth == 0:
            long = tokens[i].end - tokens[first].start > FOLDED
            return i if long and all(t.kind not in ("value", "op") for t in tokens[first:i]) else None
    return None


def _summary(group: Sequence[Token]) -> str:
    """The text of a folded group: its ends, and what it holds."""
    opening, closing = group[0].text, group[-1].text
    numbers = sum(t.kind == "number" for t in group)
    if opening == "[" and numbers > 3:
        return f"[{html.escape(group[1].text)}, &hellip; {numbers} numbers]"
    named = next((t.text for t in group if t.kind in ("word", "attribute")), "")
    return f"{opening}{html.escape(named)} &hellip;{closing}"
