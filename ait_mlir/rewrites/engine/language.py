"""The pattern language: Python functions that trace into `pdl.pattern` IR.

A pattern function receives a `PatternBuilder` and describes first the match, then the replacement::

    @pattern()
    def double_negation(p):
        x = p.value()
        inner = p.op("ait.neg", [x])
        root = p.op("ait.neg", [inner])
        p.require("same_type", p.result(root), x)
        p.replace(root, x)

The trace is ordinary PDL: it prints, verifies and parses back; `compile.py` turns it into a matcher. PDL has no
operations for alternatives, operands in any order and traits; they are native constraints of reserved names
(`RESERVED`).
`over=` makes a family: one pattern for each parameter tuple.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar, cast

from xdsl.builder import Builder
from xdsl.dialects import pdl
from xdsl.dialects.builtin import BoolAttr, FileLineColLoc, IntAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ait_mlir.rewrites.engine.errors import PatternError

AttrLike: TypeAlias = Attribute | SSAValue | str | bool | int
"""An attribute, a `pdl.attribute` value of the pattern, or a Python constant that becomes an attribute."""

OpName: TypeAlias = "str | type[Operation]"


OpT = TypeVar("OpT", bound=Operation)

HAS_TRAIT = "has_trait"
EITHER = "either"
IN_ANY_ORDER = "in_any_order"
RESERVED = (HAS_TRAIT, EITHER, IN_ANY_ORDER)
"""Native constraints of PDL text that the compiler itself understands."""


def as_attribute(value: Attribute | str | bool | int) -> Attribute:
    """The attribute for a Python constant: strings, booleans (i1) and integers (i64)."""
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    return StringAttr(value)


class PatternBuilder:
    """Records the match and the rewrite of a pattern function. Handles are SSA values of the traced PDL.

    The match side is `value`, `values`, `rest`, `op`, `result`, `results`, `either`, `maybe`, `find`, `attr`, `type`
    and `require`; the first call of `new`, `native`, `replace`, `apply` or `erase` starts the rewrite side, after which
    the match side is closed. An operation given in place of a value means its first result.
    """

    VALUE = pdl.ValueType()
    ATTRIBUTE = pdl.AttributeType()

    def __init__(self) -> None:
        self._match = Block()
        self._rewrite = Block()
        self._root: SSAValue | None = None
        self._results: dict[tuple[SSAValue, int], SSAValue] = {}

    # ---- the match

    def value(self) -> SSAValue:
        """Any value."""
        return self._add(pdl.OperandOp()).results[0]

    def values(self, count: int) -> list[SSAValue]:
        """`count` values, each of which matches any value."""
        return [self.value() for _ in range(count)]

    def rest(self) -> SSAValue:
        """Any number of operands. A list of operands may contain it several times, but not twice in a row."""
        return self._add(pdl.OperandsOp(None)).results[0]

    def type(self, constant: Attribute | None = None) -> SSAValue:
        """A type that the match binds, or exactly `constant`."""
        return self._add(pdl.TypeOp(constant)).results[0]

    def attr(self, constant: AttrLike | None = None) -> SSAValue:
        """An attribute that the match binds (it must be present), or exactly `constant`."""
        if isinstance(constant, SSAValue):
            return constant
        return self._add(pdl.AttributeOp(None if constant is None else as_attribute(constant))).results[0]

    def op(
        self,
        name: OpName | None = None,
        operands: Sequence[SSAValue] | None = None,
        attrs: dict[str, AttrLike] | None = None,
        *,
        trait: str | None = None,
        in_any_order: bool = False,
        results: int | None = 1,
        types: Sequence[SSAValue] | None = None,
    ) -> SSAValue:
        """An operation called `name`, or any operation with `trait`.

        `operands` must match in number and order, or `in_any_order` for a commutative operation; None matches any
        operands. `results` is the number of results, None for any; `types` binds their types.
        """
        if (name is None) == (trait is None):
            raise self._error("a matched operation needs either a name or a trait")
        operands = [self.rest()] if operands is None else [self._value(operand) for operand in operands]
        if types is None:
            types = [self._add(pdl.TypesOp()).results[0]] if results is None else [self.type() for _ in range(results)]
        attrs = attrs or {}
        operation = self._add(
            pdl.OperationOp(
                None if name is None else _op_name(name),
                [StringAttr(key) for key in attrs],
                operands,
                [self.attr(value) for value in attrs.values()],
                types,
            )
        )
        if trait is not None:
            self.require(HAS_TRAIT, operation.results[0], trait)
        if in_any_order:
            self.require(IN_ANY_ORDER, operation.results[0])
        return operation.results[0]

    def either(self, *alternatives: SSAValue) -> SSAValue:
        """A value that is one of the alternatives, tried in this order.

        A value that only some alternatives bind is missing in the others; constraints on it are not tested there.
        Raises PatternError for fewer than two alternatives.
        """
        if len(alternatives) < 2:
            raise self._error(f"an any-of needs at least two alternatives, got {len(alternatives)}")
        values = [self._value(alternative) for alternative in alternatives]
        return self._add(pdl.ApplyNativeConstraintOp(EITHER, values, [self.VALUE])).results[0]

    def maybe(self, value: SSAValue, without: SSAValue) -> SSAValue:
        """An optional part: `value`, or `without` if the part is missing."""
        return self.either(value, without)

    def find(self, finder: str, *args: AttrLike, value: bool = False) -> SSAValue:
        """The first operation (or `value`) from a registered finder for which the rest of the pattern matches."""
        kind = self.VALUE if value else pdl.OperationType()
        return self._add(pdl.ApplyNativeConstraintOp(finder, [self._arg(a) for a in args], [kind])).results[0]

    def result(self, op: SSAValue, index: int = 0) -> SSAValue:
        """Result `index` of a matched or new operation."""
        key = (op, index)
        if key not in self._results:
            self._results[key] = self._add(pdl.ResultOp(index, op)).results[0]
        return self._results[key]

    def results(self, op: SSAValue) -> SSAValue:
        """All results of an operation, in order; as operands of an operation they must be its only operands."""
        return self._add(pdl.ResultsOp(op)).results[0]

    def require(self, constraint: str, *args: AttrLike, negated: bool = False) -> None:
        """Match only if the registered constraint holds (or, `negated`, does not)."""
        self._add(pdl.ApplyNativeConstraintOp(constraint, [self._arg(a) for a in args], [], negated))

    # ---- the rewrite

    def new(
        self,
        name: OpName,
        operands: Sequence[SSAValue],
        attrs: dict[str, AttrLike] | None = None,
        types: Sequence[SSAValue] = (),
    ) -> SSAValue:
        """A new operation before the root. Result types are inferred without `types`; missing operands are dropped."""
        self._start_rewrite()
        attrs = attrs or {}
        names = [StringAttr(key) for key in attrs]
        values = [self._arg(value) for value in attrs.values()]
        operands = [self._value(operand) for operand in operands]
        return self._add(pdl.OperationOp(_op_name(name), names, operands, values, types)).results[0]

    def native(self, name: str, *args: AttrLike, results: Sequence[Attribute] = (pdl.OperationType(),)) -> SSAValue:
        """Call a registered native rewrite; it has one result, an operation, unless `results` gives other types."""
        self._start_rewrite()
        return self._add(pdl.ApplyNativeRewriteOp(name, [self._arg(a) for a in args], list(results))).results[0]

    def replace(self, root: SSAValue, by: SSAValue | Sequence[SSAValue] | str, *args: AttrLike) -> None:
        """Replace `root` by values, by the results of an operation, or by the result of the native rewrite `by`."""
        self._start_rewrite(root)
        if isinstance(by, str):
            by = self.native(by, *args)
        if isinstance(by, SSAValue) and isinstance(by.type, pdl.OperationType):
            self._add(pdl.ReplaceOp(root, by))
        else:
            values = [by] if isinstance(by, SSAValue) else [self._value(value) for value in by]
            self._add(pdl.ReplaceOp(root, None, values))

    def apply(self, root: SSAValue, native: str, *args: AttrLike) -> None:
        """Pass the match to a native rewrite, which replaces or erases operations itself."""
        self._start_rewrite(root)
        self._add(pdl.ApplyNativeRewriteOp(native, [self._arg(a) for a in args], []))

    def erase(self, op: SSAValue) -> None:
        """Erase a matched operation whose results have no uses left."""
        self._start_rewrite(op if self._root is None else None)
        self._add(pdl.EraseOp(op))

    # ---- the trace

    def finish(self, name: str, benefit: int) -> pdl.PatternOp:
        """The `pdl.pattern`; raises PatternError if the pattern has no rewrite side."""
        if self._root is None:
            raise PatternError(
                self._match.last_op or pdl.OperandOp(),
                f"pattern '{name}' never replaces or erases its root; end it with p.replace(root, ...)",
            )
        Builder(InsertPoint.at_end(self._match)).insert(pdl.RewriteOp(self._root, Region(self._rewrite)))
        return pdl.PatternOp(benefit, name, Region(self._match))

    def _add(self, op: OpT) -> OpT:
        block = self._rewrite if self._root is not None or self._rewrite.first_op is not None else self._match
        op.location = _place()
        block.add_op(op)
        return op

    def _error(self, message: str) -> PatternError:
        """An error at the current line of the pattern function."""
        at = pdl.OperandOp()
        at.location = _place()
        return PatternError(at, message)

    def _value(self, value: SSAValue) -> SSAValue:
        """The first result of an operation; a value stays itself."""
        return self.result(value) if isinstance(value.type, pdl.OperationType) else value

    def _arg(self, value: AttrLike) -> SSAValue:
        return value if isinstance(value, SSAValue) else self.attr(value)

    def _start_rewrite(self, root: SSAValue | None = None) -> None:
        if self._root is not None:
            return
        # The root of a pattern whose rewrite side starts with `new` is the last operation matched.
        if root is None:
            root = next(op.op for op in reversed(list(self._match.ops)) if isinstance(op, pdl.OperationOp))
        self._root = root


def _place() -> FileLineColLoc:
    """The file and line of the pattern function that called this module."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return FileLineColLoc(StringAttr(frame.f_code.co_filename), IntAttr(frame.f_lineno), IntAttr(1))


def _op_name(name: OpName) -> str:
    return name if isinstance(name, str) else name.name


@dataclass(frozen=True)
class PatternFamily:
    """A pattern function and its parameters; it yields one `pdl.pattern` for each entry of `over`."""

    function: Callable[..., None]
    benefit: int
    over: tuple[tuple[object, ...], ...]

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def names(self) -> list[str]:
        """The names of its patterns, in the order of `over`."""
        return [self.name + "".join(f"_{_identifier(param)}" for param in params) for params in self.over]

    @property
    def law(self) -> str:
        """The first paragraph of the function's docstring, as one line."""
        return " ".join((self.function.__doc__ or "").strip().partition("\n\n")[0].split())

    @property
    def place(self) -> tuple[str, int]:
        """File and line of the function."""
        return self.function.__code__.co_filename, self.function.__code__.co_firstlineno

    def trace(self) -> list[pdl.PatternOp]:
        """Trace the family, in the order of `over`."""
        patterns: list[pdl.PatternOp] = []
        for name, params in zip(self.names, self.over, strict=True):
            p = PatternBuilder()
            self.function(p, *params)
            patterns.append(p.finish(name, self.benefit))
        return patterns


def _identifier(param: object) -> str:
    return "".join(c if c.isalnum() else "_" for c in str(param))


def pattern(*, benefit: int = 1, over: Iterable[object] = ((),)) -> Callable[[Callable[..., None]], PatternFamily]:
    """Turn a function into a pattern family. Of the patterns that match an operation, the pattern with the highest
    benefit is applied, and among equals the first declared. Each entry of `over` is a parameter or a tuple of them."""
    entries = tuple(cast("tuple[object, ...]", e) if isinstance(e, tuple) else (e,) for e in over)

    def make(function: Callable[..., None]) -> PatternFamily:
        return PatternFamily(function, benefit, entries)

    return make


@dataclass(frozen=True)
class PatternSet:
    """Pattern families that are applied together, in order of declaration. `+` joins two sets."""

    families: tuple[PatternFamily, ...]

    def __add__(self, other: PatternSet) -> PatternSet:
        return PatternSet(self.families + other.families)

    @cached_property
    def patterns(self) -> tuple[pdl.PatternOp, ...]:
        """The traced patterns; traced once."""
        return tuple(pattern for family in self.families for pattern in family.trace())

    def module(self) -> ModuleOp:
        """The patterns as a module that prints, verifies, and can be given to `apply-patterns`."""
        return ModuleOp([pattern.clone() for pattern in self.patterns])


def patterns(*families: PatternFamily) -> PatternSet:
    """A set of pattern families."""
    return PatternSet(families)
