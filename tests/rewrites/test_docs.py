"""The page on patterns is complete, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ait_mlir.ir.context import context
from ait_mlir.rewrites.apply import universe
from ait_mlir.rewrites.engine.driver import apply_patterns
from ait_mlir.rewrites.engine.registry import Registry
from ait_mlir.rewrites.families import CONSTRAINTS, FINDERS, NATIVES
from ait_mlir.rewrites.file import load_patterns
from tests.rewrites.support import names
from tests.rewrites.test_engine import parse, unary_chain

PAGE = (Path(__file__).parents[2] / "docs" / "patterns.md").read_text()


@pytest.mark.parametrize("registry", [CONSTRAINTS, NATIVES, FINDERS], ids=["constraints", "natives", "finders"])
def test_every_name_is_listed_with_its_arguments(registry: Registry) -> None:
    for entry in registry.entries.values():
        assert f"| `{entry.name}` | {', '.join(entry.params)} |" in PAGE


def test_no_name_is_listed_that_does_not_exist() -> None:
    listed = re.findall(r"^\| `(\w+)` \| (?:operation|value|attribute|values)", PAGE, re.MULTILINE)
    known = universe()
    assert listed and all(
        known.constraints.get(name) or known.natives.get(name) or known.finders.get(name) for name in listed
    )


def test_the_pattern_in_text_applies(tmp_path: Path) -> None:
    (text,) = re.findall(r"```mlir\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "mine.mlir"
    file.write_text(text)
    module = parse(unary_chain("relu", "relu", "relu"))
    apply_patterns(module, load_patterns(context(), file))
    assert names(module) == ["ait.relu", "ait.output"]
