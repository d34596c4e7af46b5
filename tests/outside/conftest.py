"""Operators that a test adds, the modules that it loads and the paths that it adds are gone after it."""

from __future__ import annotations

import sys
from collections.abc import Generator

import pytest

from ait_mlir import outside
from ait_mlir.rewrites.families import CONSTRAINTS, FINDERS, NATIVES


@pytest.fixture(autouse=True)
def _own_table(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    table = dict(outside.rows())
    modules = set(sys.modules)
    monkeypatch.setattr(outside, "_table", table)
    monkeypatch.setattr(outside, "_loaded", {})
    monkeypatch.setattr(sys, "path", sys.path[:])
    for registry in (CONSTRAINTS, FINDERS, NATIVES):
        monkeypatch.setattr(registry, "_entries", dict(registry.entries))
    yield
    for module in outside._loaded.values():
        if module.__name__ not in modules:
            sys.modules.pop(module.__name__, None)
    for name in list(table):
        outside.remove(name)  # what is compiled for the table of this test is out of date
