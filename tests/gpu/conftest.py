"""Which tests of this folder a session has: all that were collected, and those of `--sample`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gpu.libraries import COLLECTED
from tests.gpu.sampling import keep_sample


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """The sample is of the tests that `-k`, `-m` and `--shard` select."""
    config.stash[COLLECTED] = list(items)
    yield
    if (drawn := config.getoption("sample")) is not None:
        keep_sample(config, items, drawn)
