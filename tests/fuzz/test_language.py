"""Malformed texts in the language server: a sample of the loop."""

from __future__ import annotations

import asyncio

import pytest

from tests.fuzz.language import run


@pytest.mark.parametrize("texts", [15, pytest.param(400, marks=pytest.mark.full)])
def test_the_server_answers_for_any_text(texts: int) -> None:
    assert asyncio.run(run(0, seed=1, least=texts)).startswith(f"{texts} texts; ")
