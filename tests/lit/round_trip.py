"""Print and parse again: the text must come back the same, in the pretty and in the generic form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff
from io import StringIO
from pathlib import Path

import pytest
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


def check_round_trip(text: str, name: str = "the module") -> None:
    """Fail unless a module prints to text that parses to the same text, in both forms and from one to the other."""
    module = parse_text(context(), text)
    forms = {"pretty": False, "generic": True}
    for form, generic in forms.items():
        try:
            again = parse_text(context(), text_of(module, generic))
        except SourceError as error:
            pytest.fail(f"{name}: the {form} form is printed as text that does not parse:\n{error}", pytrace=False)
        for other, into in forms.items():
            before, after = text_of(module, into).splitlines(), text_of(again, into).splitlines()
            if before != after:
                changed = "\n".join(
                    unified_diff(before, after, "printed", "parsed and printed again", lineterm="", n=1)
                )
                how = f"once its {form} form is parsed, its {other} form is another one"
                pytest.fail(f"{name}: {how}:\n{changed}", pytrace=False)


def valid_chunks(path: Path) -> Iterator[str]:
    """Yield the parts of a file that parse and verify; parts that announce an error must not."""
    for part in re.split(r"^// -----[^\n]*\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        try:
            parse_text(context(), part)
        except SourceError:
            assert "expected-error" in part or not part.strip() or "--allow-unregistered-dialect" in path.read_text()
            continue
        of_a_pass = " -p " in path.read_text().partition("\n")[0]
        assert of_a_pass or "expected-error" not in part, "announces an error, but is valid"
        yield part
