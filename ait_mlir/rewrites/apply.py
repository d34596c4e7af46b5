"""Applies our own pattern sets, which are compiled as far as they are used."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from ait_mlir import outside
from ait_mlir.dialects.ait import AIT
from ait_mlir.ir.context import DIALECTS
from ait_mlir.rewrites.engine.compile import CompiledPatterns, compile_patterns
from ait_mlir.rewrites.engine.driver import Statistics, apply_patterns
from ait_mlir.rewrites.engine.language import PatternSet
from ait_mlir.rewrites.engine.steps import Universe
from ait_mlir.rewrites.families import CONSTRAINTS, FINDERS, NATIVES
from ait_mlir.rewrites.on_demand import OnDemand, keep_roots, known_roots

Applies = Callable[[Operation], bool]


def universe(operations: Mapping[str, type[Operation]] | None = None) -> Universe:
    """The names that patterns may use: these operations (by default all of `ait`) and all registered functions."""
    if operations is None:
        operations = {op.name: op for op in AIT.operations} | outside_operations()
    return Universe(operations, CONSTRAINTS, NATIVES, FINDERS)


@cache
def _compiled(patterns: PatternSet, dialect: str, generation: int) -> CompiledPatterns | OnDemand:
    operations = {op.name: op for op in DIALECTS[dialect]().operations}
    from_outside = outside_operations()
    names = universe(operations | (from_outside if dialect == "ait" else {}))
    if not from_outside and (roots := known_roots(patterns, dialect)) is not None:
        return OnDemand(patterns, names, roots)
    found = compile_patterns(patterns.patterns, names)
    if not from_outside:
        keep_roots(patterns, dialect, found.roots)
    return found


def compiled(patterns: PatternSet, dialect: str = "ait") -> CompiledPatterns | OnDemand:
    """The compiled form of a set of patterns over the operations of the dialect of this name; operators from outside
    count as operations of `ait`. A set of the package that the cache knows is compiled on demand."""
    return _compiled(patterns, dialect, outside.generation())


def outside_operations() -> dict[str, type[Operation]]:
    """The op classes of the operators from outside the package, by name."""
    return {name: row.op for name, row in outside.rows().items()}


def rewrite(scope: Operation, patterns: PatternSet, *, dialect: str = "ait", reverse: bool = False) -> Statistics:
    """Apply a set of patterns to everything nested in `scope` until none matches."""
    found = compiled(patterns, dialect)
    if isinstance(found, OnDemand):
        found.prepare({type(op) for op in scope.walk()})
    return apply_patterns(scope, found, reverse=reverse)


@contextmanager
def held(scope: Operation, only: Applies | None) -> Generator[None]:
    """A context in which patterns skip ops for which `only` is False: these ops have a kernel until it ends."""
    pinned = [] if only is None else [op for op in scope.walk() if not only(op) and "kernel" not in op.attributes]
    for op in pinned:
        op.attributes["kernel"] = UnitAttr()
    try:
        yield
    finally:
        for op in scope.walk():
            if op.attributes.get("kernel") == UnitAttr():
                del op.attributes["kernel"]
