"""Operators that a test adds are gone after it."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from ait_mlir import outside


@pytest.fixture(autouse=True)
def _own_table(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    table = dict(outside.rows())
    monkeypatch.setattr(outside, "_table", table)
    monkeypatch.setattr(outside, "_loaded", {})
    yield
    for name in list(table):
        outside.remove(name)  # what is compiled for the table of this test is out of date
