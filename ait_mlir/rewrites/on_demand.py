"""Compiles the patterns of the package as far as a module needs them: those whose roots are ops of its classes.

All patterns take 0.4 s in each process, as long as it takes to plan one op otherwise. Which ops are roots of which
family is known once the set was compiled; the cache keeps this, by the sources of the package.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import cast

from xdsl.dialects import pdl
from xdsl.ir import Operation

from ait_mlir.errors import AitError
from ait_mlir.host.cache import cache_dir, is_kept, keep_bytes
from ait_mlir.host.sources import package_digest
from ait_mlir.rewrites.engine.compile import compile_patterns
from ait_mlir.rewrites.engine.driver import Matcher
from ait_mlir.rewrites.engine.language import PatternFamily, PatternSet
from ait_mlir.rewrites.engine.steps import Universe


class OnDemand:
    """Compiled patterns of a set: `roots` has the names of the ops that each family may match."""

    def __init__(self, patterns: PatternSet, universe: Universe, roots: Sequence[Collection[str]]) -> None:
        self._families = list(zip(patterns.families, map(frozenset, roots), strict=True))
        self._universe = universe
        self._traced: dict[int, list[pdl.PatternOp]] = {}
        self._matchers: dict[type[Operation], Matcher | None] = {}

    @property
    def dispatch(self) -> OnDemand:
        """The matchers by class of root operation."""
        return self

    def get(self, cls: type[Operation], /) -> Matcher | None:
        """The matcher of a class of operations; None if no pattern has such a root."""
        if cls not in self._matchers:
            self.prepare({cls})
        return self._matchers[cls]

    def prepare(self, classes: Collection[type[Operation]]) -> None:
        """Compile the matchers of these classes together, which takes less time than one by one."""
        missing = [cls for cls in classes if cls not in self._matchers]
        names = {cls.name for cls in missing}
        wanted = [i for i, (_, roots) in enumerate(self._families) if not names.isdisjoint(roots)]
        found = compile_patterns((p for i in wanted for p in self._patterns(i)), self._universe) if wanted else None
        for cls in missing:
            self._matchers[cls] = None if found is None else found.dispatch.get(cls)

    def _patterns(self, number: int) -> list[pdl.PatternOp]:
        if number not in self._traced:
            self._traced[number] = self._families[number][0].trace()
        return self._traced[number]


def known_roots(patterns: PatternSet, dialect: str) -> list[list[str]] | None:
    """The roots of each family of a set, if the cache has them."""
    with contextlib.suppress(AitError, OSError):
        if (path := _path(patterns, dialect)) is not None and is_kept(path, path.name):
            return cast("list[list[str]]", json.loads(path.read_bytes()))
    return None


def keep_roots(patterns: PatternSet, dialect: str, roots_of: dict[str, frozenset[str]]) -> None:
    """Keep the roots of each family of a set, from the roots of each pattern by its name."""
    roots = [sorted(set[str]().union(*(roots_of[name] for name in family.names))) for family in patterns.families]
    with contextlib.suppress(AitError, OSError):
        if (path := _path(patterns, dialect)) is not None:
            keep_bytes(json.dumps(roots).encode(), path, path.name)


def _path(patterns: PatternSet, dialect: str) -> Path | None:
    """The file in the cache with the roots of the patterns; None if the sources of the package do not determine the
    roots.

    This is so without a digest of the sources, with families from outside of the package, and with families that are
    made by a function in a function.
    """
    names = [_name(family) for family in patterns.families]
    sources = package_digest()
    if sources is None or not all(name.startswith("ait_mlir.") and "<locals>" not in name for name in names):
        return None
    key = hashlib.sha256("\0".join((sources, dialect, *names)).encode()).hexdigest()
    return cache_dir() / "patterns" / key


def _name(family: PatternFamily) -> str:
    return f"{family.function.__module__}.{family.function.__qualname__} {len(family.over)}"
