"""A pass of patterns that is run twice changes nothing the second time, on all graphs of its text tests."""

from __future__ import annotations

import pytest

from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import parse_passes, run_passes
from ait_mlir.universe import context
from tests.mutate.run import LIT, families


@pytest.mark.parametrize(("name", "files"), [(name, family.tests) for name, family in families().items()])
def test_the_second_run_changes_nothing(name: str, files: tuple[str, ...]) -> None:
    for file in files:
        module = parse_text(context(), (LIT / file).read_text())
        run_passes(context(), module, parse_passes(name))
        once = str(module)
        run_passes(context(), module, parse_passes(name))
        assert str(module) == once, file
