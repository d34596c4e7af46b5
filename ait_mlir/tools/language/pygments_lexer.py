"""A lexer for Pygments, which colours texts of the IR on pages: `ait` and `mlir`, in Markdown "```mlir"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pygments import token as t
from pygments.lexer import Lexer

from ait_mlir.tools.language.tokens import Kind, scan

TYPES: dict[Kind, Any] = {
    "comment": t.Comment.Single,
    "string": t.String,
    "value": t.Name.Variable,
    "symbol": t.Name.Function,
    "block": t.Name.Label,
    "type": t.Keyword.Type,
    "element": t.Keyword.Type,
    "attribute": t.Name.Attribute,
    "number": t.Number,
    "op": t.Name.Builtin,
    "dim": t.Name.Constant,
    "word": t.Keyword,
    "mark": t.Punctuation,
}


class AitLexer(Lexer):
    """Colours by the tokens that the language server uses."""

    name = "ait_mlir IR"
    aliases: ClassVar[Sequence[str]] = ["ait", "mlir"]
    filenames: ClassVar[Sequence[str]] = ["*.mlir"]
    mimetypes: ClassVar[Sequence[str]] = ["text/x-mlir"]
    url = "https://mlir.llvm.org/docs/LangRef/"

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        at = 0
        for offset, token in scan(text):
            start = offset + token.start
            if start > at:
                yield at, t.Whitespace, text[at:start]
            yield start, TYPES[token.kind], token.text
            at = start + len(token.text)
        if at < len(text):
            yield at, t.Whitespace, text[at:]
