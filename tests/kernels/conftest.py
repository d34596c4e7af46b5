"""Kernels are tested as they are shipped, whichever tier runs."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests import tiers


@pytest.fixture(scope="module", autouse=True)
def as_shipped() -> Generator[None]:
    """Before the fixtures of a module that build libraries."""
    with pytest.MonkeyPatch.context() as patch:
        tiers.as_shipped(patch)
        yield
