"""The page on patterns, and the command that lists what patterns may call."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

from ait_mlir.ir.context import context
from ait_mlir.rewrites.engine.driver import apply_patterns
from ait_mlir.rewrites.families import CONSTRAINTS, FINDERS, NATIVES
from ait_mlir.rewrites.file import load_patterns
from ait_mlir.tools.ait_opt import Options, argument_parser, run
from tests.rewrites.support import names
from tests.rewrites.test_engine import parse, unary_chain

PAGE = (Path(__file__).parents[2] / "docs" / "patterns.md").read_text()


def test_the_command_that_the_page_names_lists_every_function() -> None:
    """Each with the kinds of its arguments, and what it says."""
    assert "ait-opt --list-constraints" in PAGE
    out = StringIO()
    assert run(argument_parser().parse_args(["--list-constraints"], Options()), out, StringIO()) == 0
    listed = " ".join(out.getvalue().split())
    for registry in (CONSTRAINTS, FINDERS, NATIVES):
        assert f"{registry.what}s" in listed
        for entry in registry.entries.values():
            assert f" {entry.name}({', '.join(entry.params)}) {entry.summary} " in f"{listed} "


def test_the_pattern_in_text_applies(tmp_path: Path) -> None:
    (text,) = re.findall(r"```mlir\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "mine.mlir"
    file.write_text(text)
    module = parse(unary_chain("relu", "relu", "relu"))
    apply_patterns(module, load_patterns(context(), file))
    assert names(module) == ["ait.relu", "ait.output"]
