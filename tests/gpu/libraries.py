"""Libraries of the cases that the tests of a session need, compiled for the card at hand.

A test needs the cases that its parameters name: a value of a parameter, or all values as a tuple, is the key of the case.
Other cases are compiled when a test calls them. With `--build-only`, which calls none, a test whose parameters name no case
needs all cases that no test names.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pytest

from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.toolchain import default_arch
from tests.kernels.harness import Case, Library

COLLECTED = pytest.StashKey[Sequence[pytest.Item]]()
"""All tests of the session, before some were deselected."""
Suite = Mapping[Any, Case]


class OnDemand(Library):
    """The cases of suites: those of selected tests in one library, each other in its own when it is called."""

    def __init__(
        self, request: pytest.FixtureRequest, suites: Sequence[Suite], kind: type[Library], target: Target
    ) -> None:
        self.target = target
        self.kind = kind
        self.paths: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        self.libraries: dict[int, Library] = {}
        self.compile(needed(request, suites))

    def compile(self, cases: Sequence[Case]) -> None:
        if cases:
            library = self.kind(cases, self.paths.mktemp("library"), self.target)
            self.libraries |= dict.fromkeys(map(id, cases), library)

    def call(
        self, case: Case, env: Mapping[str, int], pointers: Sequence[int], stream: int = 0, workspace: int = 0
    ) -> None:
        if id(case) not in self.libraries:
            self.compile([case])
        self.libraries[id(case)].call(case, env, pointers, stream, workspace)


def library_of(
    request: pytest.FixtureRequest, *suites: Suite, kind: type[Library] = Library, target: Target | None = None
) -> Library:
    """The cases of `suites`, by key, for the tests that use the fixture of this `request`."""
    return OnDemand(request, suites, kind, target or Target("cuda", default_arch("cuda")))


def hopper_library(request: pytest.FixtureRequest, *suites: Suite) -> Library:
    """`library_of` for a card of Hopper's; the test is skipped where the card is another."""
    if default_arch("cuda") != "sm_90a":
        pytest.skip("needs a card of compute capability 9.0")
    return library_of(request, *suites, target=Target("cuda", "sm_90a"))


def needed(request: pytest.FixtureRequest, suites: Sequence[Suite]) -> list[Case]:
    """The cases of `suites` that the selected tests with the fixture of `request` need, in the order of the suites."""

    def named(items: Sequence[pytest.Item]) -> list[set[Hashable]]:
        """For each test with the fixture, in the file of the request: the keys that it names."""
        users = [
            item
            for item in items
            if isinstance(item, pytest.Function)
            and item.path == request.path
            and request.fixturename in item.fixturenames
        ]
        return [{key for suite in suites for key in suite if key in _values(item)} for item in users]

    session = request.session
    selected = named(session.items)
    keys = set[Hashable]().union(*selected)
    if session.config.getoption("--build-only") and not all(selected):
        collected = set[Hashable]().union(*named(session.config.stash[COLLECTED]))
        keys |= {key for suite in suites for key in suite if key not in collected}
    return [case for suite in suites for key, case in suite.items() if key in keys]


def _values(item: pytest.Function) -> set[Hashable]:
    """The values of a test's parameters, and all of them as a tuple in their order in `parametrize`."""
    values = list(item.callspec.params.values()) if hasattr(item, "callspec") else []
    return {value for value in (*values, tuple(values)) if isinstance(value, Hashable)}
