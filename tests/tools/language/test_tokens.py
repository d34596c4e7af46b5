"""Colours: the tokens of any text, Pygments, and modules in notebooks."""

from __future__ import annotations

import html
import random
import re
from pathlib import Path

import pytest
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.token import Error
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import Lexer, parse_text
from ait_mlir.tools.language.pygments_lexer import AitLexer
from ait_mlir.tools.language.tokens import scan, tokens_of

ROOT = Path(__file__).parents[3]
FILES = [*(ROOT / "examples").glob("*.mlir"), *(ROOT / "lit_tests" / "dialects").rglob("*.mlir")]
TEXTS = sorted(path for path in FILES if "invalid" not in path.name)


def kinds(line: str) -> dict[str, str]:
    return {token.text: token.kind for token in tokens_of(line)}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_values_and_symbols_are_those_of_the_parsers_lexer(path: Path) -> None:
    text = path.read_text()
    lexer, wanted = Lexer(Input(text, "text")), list[tuple[int, str]]()
    while (token := lexer.lex()).kind is not MLIRTokenKind.EOF:
        if token.kind in (MLIRTokenKind.PERCENT_IDENT, MLIRTokenKind.AT_IDENT, MLIRTokenKind.STRING_LIT):
            wanted.append((token.span.start, token.text))
    found = [(at + t.start, t.text) for at, t in scan(text) if t.kind in ("value", "symbol", "string")]
    assert found == wanted


def test_the_roles_of_names() -> None:
    found = kinds("ait.graph @f(%x: !ait.tensor<batch x (2*seq) x f16>) dims {batch = 1 to 64 hints [seq]} {  // x")
    assert (found["batch"], found["seq"], found["f16"], found["x"]) == ("dim", "dim", "element", "word")
    assert (found["dims"], found["to"], found["hints"], found["64"]) == ("word", "word", "word", "number")
    assert (found["ait.graph"], found["@f"], found["%x"], found["// x"]) == ("op", "symbol", "value", "comment")
    assert kinds("%y = ait.slice %x dim 1 [0, seq - 1] {layout = 3}")["seq"] == "dim"
    assert kinds("} {kernel = #ait.kernel<" + '"native"' + ", {axis = 2}>}")["axis"] == "word"
    assert kinds("ait.loops(%x) for (d0 = rows, d1 = 4) {") == {
        **{"ait.loops": "op", "(": "mark", "%x": "value", ")": "mark", "for": "word", "d0": "dim", "=": "mark"},
        **{"rows": "dim", ",": "mark", "d1": "dim", "4": "number", "{": "mark"},
    }


def test_any_text_is_coloured_whole() -> None:
    rng = random.Random(1)
    lexer = AitLexer()
    for _ in range(200):
        text = "".join(rng.choice('%@^!#"\\/<>(){}[]=:,. \n\tax1é\0') for _ in range(80))
        tokens = list(lexer.get_tokens_unprocessed(text))
        assert "".join(part for _, _, part in tokens) == text
        assert all(text.startswith(part, at) and kind is not Error for at, kind, part in tokens)


def test_pygments_colours_a_page() -> None:
    page = highlight("%y = ait.relu %x : !ait.tensor<b x f16>", AitLexer(), HtmlFormatter())
    assert '<span class="nb">ait.relu</span>' in page and '<span class="no">b</span>' in page
    assert {"ait", "mlir"} == set(AitLexer.aliases)


def test_a_long_line_costs_one_token() -> None:
    assert len(tokens_of("1, " * 10_000)) == 1


def test_a_module_shows_itself_in_notebooks() -> None:
    numbers = ", ".join(map(str, range(100)))
    module = parse_text(
        context(),
        f"""ait.graph @f(%x: !ait.tensor<b x 100 x i64>) dims {{b = 1 to 4}} {{
          %c = ait.constant [{numbers}] : !ait.tensor<100 x i64>
          %y = ait.add %x, %c : !ait.tensor<b x 100 x i64>
          ait.output "<y>" %y : !ait.tensor<b x 100 x i64>
        }}""",
    )
    page = getattr(module, "_repr_html_")()  # noqa: B009
    assert f"<details><summary>[0, &hellip; 100 numbers]</summary>[{numbers}]</details>" in page
    assert "<span class='op'>ait.add</span>" in page and "<span class='dim'>b</span>" in page
    assert "&lt;y&gt;" in page
    body = re.sub(r"<summary>.*?</summary>", "", page.partition("</style>")[2])
    assert html.unescape(re.sub(r"<[^>]*>", "", body)) == str(module)
