"""The worklist that applies compiled patterns, and the `Rewriter` through which patterns change the IR.

Every operation is visited once, in program order (or in reverse); operations that a rewrite touched are visited again.
Pure operations without uses are removed on the way. The cost is linear in the number of operations and of rewrites, and
no function recurses on graph depth.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import Protocol

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import Scope
from ait_mlir.rewrites.engine.errors import RewriteError


@dataclass(frozen=True)
class Match:
    """A pattern that matched: its name, its action, and the values the action needs."""

    pattern: str
    action: Callable[..., None]


Matcher = Callable[["Rewriter", Operation], "tuple[int, Match, tuple[object, ...]] | None"]
"""Finds the pattern to apply to an operation: (rank, match, arguments of the action)."""


class Dispatch(Protocol):
    """Finds the matcher of a class of operations."""

    def get(self, cls: type[Operation], /) -> Matcher | None: ...


class Compiled(Protocol):
    """The interface of compiled patterns to the driver: a matcher for each class of root operation."""

    @property
    def dispatch(self) -> Dispatch: ...


@dataclass(frozen=True)
class Application:
    """One application of a pattern: the results of its root, and the operations that it created."""

    pattern: str
    replaced: tuple[SSAValue, ...]
    created: tuple[Operation, ...]


@dataclass
class Statistics:
    """How often each pattern was applied, and how many dead operations were removed; inside `counted_rewrites` also the
    seconds of each pattern's rewrites (matching is one walk for all patterns), and each application."""

    applied: dict[str, int] = field(default_factory=dict[str, int])
    removed: int = 0
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    applications: list[Application] = field(default_factory=list[Application])

    @property
    def rewrites(self) -> int:
        return sum(self.applied.values())

    def add(self, other: Statistics) -> None:
        """Add the counts of another application."""
        for name, count in other.applied.items():
            self.applied[name] = self.applied.get(name, 0) + count
        for name, seconds in other.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.removed += other.removed
        self.applications += other.applications

    def taken(self) -> Statistics:
        """The counts until now; counting starts again from zero."""
        taken = Statistics(dict(self.applied), self.removed, dict(self.seconds), list(self.applications))
        self.applied.clear()
        self.seconds.clear()
        self.applications.clear()
        self.removed = 0
        return taken


_total: ContextVar[Statistics | None] = ContextVar("_total", default=None)


@contextmanager
def counted_rewrites() -> Generator[Statistics]:
    """Count the rewrites of all pattern sets that are applied inside the block."""
    total = Statistics()
    token = _total.set(total)
    try:
        yield total
    finally:
        _total.reset(token)


ORDER_GAP = 1 << 20


class Rewriter(Writer):
    """Changes the IR for patterns and native rewrites. New operations get the root's location and are inserted before
    it.

    As a `Writer` it has a method for each kind of `ait` op (`r.reshape(x, dims)`); a wrong op raises RewriteError.
    """

    root: Operation

    def __init__(self) -> None:
        super().__init__(Block())
        self.created: list[Operation] = []
        """The operations inserted by the running rewrite."""
        self._worklist: list[Operation] = []
        self._pending: set[Operation] = set()
        self._order: dict[Operation, int] = {}
        self._numbered: set[Block] = set()

    # ---- changing

    def create(
        self,
        op_class: type[Operation],
        operands: Sequence[SSAValue],
        result_types: Sequence[Attribute] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
        *,
        before: Operation | None = None,
    ) -> Operation:
        """A new operation before `before` (the root unless given), with its location.

        Without `result_types` they are inferred by its `infer_result_types`; raises RewriteError where that fails.
        """
        types = result_types
        if types is None:
            # Inference looks at the operands and the scope of dims, not at these placeholders.
            types = [operand.type for operand in operands[:1]]
        properties, attributes = split_attributes(op_class, attributes or {})
        op = op_class.create(
            operands=operands, result_types=types, properties=properties, attributes=attributes, regions=regions
        )
        self.insert(op, before=before)
        if result_types is None:
            for result, inferred in zip(op.results, inferred_types(op), strict=True):
                result._type = inferred  # pyright: ignore[reportPrivateUsage]
        return op

    @property
    def scope(self) -> Scope:
        return scope_of(self.root)

    def invalid(self, message: str) -> Exception:
        return _wrong(message)

    def once(self, key: Hashable, make: Callable[[], SSAValue]) -> SSAValue:
        """The value that `make` returns; it is not cached, because other rewrites change and erase operations."""
        return make()

    def check(self, op: AitOp, infer: bool = False) -> None:
        """Infer the result types if `infer` asks for it; new operations are verified after the pass."""
        if infer:
            super().check(op, infer)

    def insert(self, op: Operation, *, before: Operation | None = None) -> Operation:
        """Put a detached operation before `before` (the root unless given), with its location."""
        place = self.root if before is None else before
        block = place.parent
        assert block is not None, "a pattern inserted next to an operation that is not in a block"
        op.location = place.location
        block.insert_op_before(op, place)
        if block in self._numbered:
            self._number(op, block)
        self.created.append(op)
        self.push(op)
        return op

    def replace(self, op: Operation, values: Sequence[SSAValue]) -> None:
        """Replace the results of `op` by `values` and erase `op`."""
        if len(values) != len(op.results):
            raise RewriteError(f"'{op.name}' has {len(op.results)} results, but the pattern gives {len(values)} values")
        for result, value in zip(op.results, values, strict=True):
            self.replace_value(result, value)
        self.erase(op)

    def replace_value(self, old: SSAValue, new: SSAValue) -> None:
        """Replace all uses of `old` by `new`; users are visited again."""
        for use in tuple(old.uses):
            self.push(use.operation)
        if new.name_hint is None:
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)

    def erase(self, op: Operation) -> None:
        """Erase an operation without uses; the operations of its operands, perhaps dead now, are visited again."""
        operands = tuple(op.operands)
        self._forget(op)
        op.detach()
        op.erase()
        for operand in operands:
            owner = operand.owner
            if isinstance(owner, Operation):
                self.push(owner)
                self._push_sole_user(operand)

    def _push_sole_user(self, value: SSAValue) -> None:
        """Visit a value's only remaining user again: it may satisfy one_use or only_user now."""
        first = value.first_use
        if first is not None and all(use.operation is first.operation for use in islice(value.uses, 4)):
            self.push(first.operation)

    def move(self, op: Operation, *, before: Operation) -> None:
        """Move an operation before another operation of its block; the caller keeps definitions before uses."""
        block = before.parent
        assert block is not None and op.parent is block, "an operation can be moved in its own block only"
        op.detach()
        block.insert_op_before(op, before)
        if block in self._numbered:
            self._number(op, block)

    def changed(self, op: Operation) -> None:
        """Report that `op` was changed in place, so that it and its users are visited again."""
        self.push(op)
        for result in op.results:
            for use in result.uses:
                self.push(use.operation)

    def push(self, op: Operation) -> None:
        """Visit `op` (again)."""
        if op not in self._pending:
            self._pending.add(op)
            self._worklist.append(op)

    # ---- order in a block

    def is_before(self, a: Operation, b: Operation) -> bool:
        """Whether `a` comes before `b` in the block they share; amortised constant time."""
        assert a.parent is b.parent, "operations of different blocks have no order"
        return self.position(a) < self.position(b)

    def position(self, op: Operation) -> int:
        """A number that orders the operations of a block; it may change when something is inserted."""
        block = op.parent
        assert block is not None, "an operation outside of a block has no position"
        if block not in self._numbered:
            self._numbered.add(block)
            self._renumber(block)
        return self._order[op]

    def _renumber(self, block: Block) -> None:
        for index, op in enumerate(block.ops):
            self._order[op] = index * ORDER_GAP

    def _number(self, op: Operation, block: Block) -> None:
        low = -ORDER_GAP if op.prev_op is None else self._order[op.prev_op]
        high = low + 2 * ORDER_GAP if op.next_op is None else self._order[op.next_op]
        if high - low < 2:
            self._renumber(block)
        else:
            self._order[op] = (low + high) // 2

    # ---- the worklist

    def _forget(self, op: Operation) -> None:
        self._pending.discard(op)
        self._order.pop(op, None)
        for region in op.regions:
            for inner in region.walk():
                self._pending.discard(inner)

    def remove_dead(self, scope: Operation) -> int:
        """Erase the dead operations in `scope`; returns their number.

        Otherwise the use by a dead operation would keep a pattern from matching, and its root would not be visited
        again.
        """
        removed = 0
        for op in tuple(scope.walk(reverse=True, region_first=True)):
            if op is not scope and is_dead(op):
                self.erase(op)
                removed += 1
        return removed

    def start(self, scope: Operation, reverse: bool) -> int:
        """Queue all operations nested in `scope`; returns their number."""
        self._worklist = [op for op in scope.walk(reverse=not reverse) if op is not scope]
        self._pending = set(self._worklist)
        return len(self._worklist)

    def next(self) -> Operation | None:
        """The next operation to visit, if any is left."""
        while self._worklist:
            op = self._worklist.pop()
            if op in self._pending:
                self._pending.discard(op)
                return op
        return None


def inferred_types(op: Operation) -> Sequence[Attribute]:
    """The result types that the operation infers from its operands; RewriteError if it cannot."""
    infer: Callable[[], Sequence[Attribute]] | None = getattr(op, "infer_result_types", None)
    if infer is None:
        raise RewriteError(f"'{op.name}' does not infer its result types: the pattern must give them")
    try:
        return infer()
    except VerifyException as error:
        raise _wrong(str(error)) from error


def _wrong(message: str) -> RewriteError:
    return RewriteError(f"a pattern writes an operation that is wrong: {message}")


def split_attributes(
    op_class: type[Operation], attributes: Mapping[str, Attribute]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """The entries that the class declares as properties, and the other entries."""
    declared: Mapping[str, object] = {}
    if issubclass(op_class, IRDLOperation):
        declared = op_class.get_irdl_definition().properties
    return (
        {name: value for name, value in attributes.items() if name in declared},
        {name: value for name, value in attributes.items() if name not in declared},
    )


_DEAD_WHEN_UNUSED: dict[type[Operation], bool] = {}


def is_pure(op: Operation) -> bool:
    """Whether an operation may be removed when nothing uses it."""
    cls = type(op)
    pure = _DEAD_WHEN_UNUSED.get(cls)
    if pure is None:
        pure = _DEAD_WHEN_UNUSED[cls] = any(isinstance(trait, NoMemoryEffect) for trait in cls.traits)
    return pure


def is_dead(op: Operation) -> bool:
    """Whether `op` is pure and has results, none of them used."""
    results = op.results
    return bool(results) and all(result.first_use is None for result in results) and is_pure(op)


# Exceptions that a constraint or a native rewrite raises for arguments it is not meant for.
_FAILURES = (
    *(AssertionError, AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError),
    VerifyException,
)


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, RewriteError) else f"{type(error).__name__}: {error}"


def apply_patterns(
    scope: Operation, compiled: Compiled, *, reverse: bool = False, limit: int | None = None
) -> Statistics:
    """Apply patterns to every operation nested in `scope` until none matches.

    Of the patterns that match an operation, the pattern with the highest benefit is applied. `limit` caps the number of
    rewrites (default: 16 for each operation and 1,000 more). RewriteError names the pattern that fails, or, at the cap,
    the most applied pattern.
    """
    rewriter, statistics = Rewriter(), Statistics()
    statistics.removed = rewriter.remove_dead(scope)
    limit = rewriter.start(scope, reverse) * 16 + 1_000 if limit is None else limit
    applied, seconds = statistics.applied, statistics.seconds
    dispatch = compiled.dispatch
    total = _total.get()
    count = cleaned = 0
    while True:
        op = rewriter.next()
        if op is None:
            if count == cleaned:
                break
            # Regions made from other regions may hold operations for results that no longer exist.
            cleaned = count
            statistics.removed += rewriter.remove_dead(scope)
            continue
        if is_dead(op):
            rewriter.erase(op)
            statistics.removed += 1
            continue
        matcher = dispatch.get(type(op))
        if matcher is None:
            continue
        try:
            found = matcher(rewriter, op)
        except _FAILURES as error:
            raise RewriteError(f"a constraint cannot be tested on '{op.name}': {_reason(error)}", op) from error
        if found is None:
            continue
        _, match, values = found
        count += 1
        name = match.pattern
        applied[name] = applied.get(name, 0) + 1
        if count > limit:
            worst = max(applied, key=applied.__getitem__)
            raise RewriteError(
                f"pattern '{worst}' was applied {applied[worst]} times in {count} rewrites and does not come to an end;"
                " does it match what it writes?"
            )
        rewriter.root, replaced = op, tuple(op.results)
        rewriter.created.clear()
        start = perf_counter() if total is not None else 0.0
        try:
            match.action(rewriter, *values)
        except (RewriteError, *_FAILURES) as error:
            raise RewriteError(f"pattern '{name}' cannot be applied to '{op.name}': {_reason(error)}", op) from error
        if total is not None:
            seconds[name] = seconds.get(name, 0.0) + perf_counter() - start
            statistics.applications.append(Application(name, replaced, tuple(rewriter.created)))
    if total is not None:
        total.add(statistics)
    return statistics
