"""Print and parse again: the text must come back the same, in the pretty and in the generic form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.source import SourceError


def text_of(module: ModuleOp, generic: bool) -> str:
    """Print a module in one of the two forms."""
    stream = StringIO()
    Printer(stream=stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


def check_round_trip(text: str) -> None:
    """Assert that a module prints to text that parses to the same text, in both forms and from one to the other."""
    module = parse_text(context(), text)
    pretty, generic = text_of(module, False), text_of(module, True)
    from_pretty, from_generic = parse_text(context(), pretty), parse_text(context(), generic)
    assert text_of(from_pretty, False) == pretty
    assert text_of(from_generic, True) == generic
    assert text_of(from_pretty, True) == generic
    assert text_of(from_generic, False) == pretty


def valid_chunks(path: Path) -> Iterator[str]:
    """Yield the parts of a file that parse and verify; those that announce an error must not."""
    for part in re.split(r"^// -----[^\n]*\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        try:
            parse_text(context(), part)
        except SourceError:
            assert "expected-error" in part or not part.strip() or "--allow-unregistered-dialect" in path.read_text()
            continue
        of_a_pass = " -p " in path.read_text().partition("\n")[0]
        assert of_a_pass or "expected-error" not in part, "announces an error, but is valid"
        yield part
