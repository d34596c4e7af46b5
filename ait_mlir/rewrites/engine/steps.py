"""One `pdl.pattern` as a list of matching steps: conditions in Python over canonical names.

A name is a path from the root `o`: `o_1` is its operand 1, `o_1d` the operation that defines that value, `o_1d_0` its
operand 0. So two patterns that ask the same question ask it in the same words, and `compile.py` merges common prefixes
by comparing text. All that comes from IR (names, attributes, types) enters through the constants table and appears as
`K0`, `K1`, ...
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import pdl
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.dialects.ait.traits import INTERFACES
from ait_mlir.rewrites.engine.errors import PatternError, unknown
from ait_mlir.rewrites.engine.registry import Entry, Registry

HAS_TRAIT = "has_trait"


class Constants:
    """The table through which values reach the generated code; equal attributes share an entry."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self._names: dict[Hashable, str] = {}

    def name(self, value: Hashable) -> str:
        """The name of a value in the generated code."""
        entry: Hashable = (type(value), value)
        name = self._names.get(entry)
        if name is None:
            name = self._names[entry] = f"K{len(self._names)}"
            self.namespace[name] = value
        return name


@dataclass(frozen=True)
class Universe:
    """What a pattern may name: operation classes, constraints and native rewrites."""

    operations: Mapping[str, type[Operation]]
    constraints: Registry
    natives: Registry

    def with_trait(self, trait: str) -> frozenset[type[Operation]]:
        """The operations that have a trait of this class name, or implement the interface of this name."""
        return frozenset(cls for cls in self.operations.values() if trait in names_of_traits(cls))

    def trait_names(self) -> set[str]:
        return {name for cls in self.operations.values() for name in names_of_traits(cls)}


def names_of_traits(cls: type[Operation]) -> set[str]:
    """The class names of the traits and interfaces of an operation."""
    interfaces = {name for name, interface in INTERFACES.items() if issubclass(cls, interface)}
    return {type(t).__name__ for t in cls.traits} | interfaces


@dataclass(frozen=True)
class Step:
    """One condition; `subject` and `constant` are set where it is `SUBJECT == CONSTANT`: siblings become a switch."""

    condition: str
    subject: str = ""
    constant: str = ""


@dataclass
class PatternSteps:
    """A pattern ready to be merged with others."""

    name: str
    roots: frozenset[type[Operation]]
    steps: list[Step] = field(default_factory=list[Step])
    bound: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])


def lower(pattern: pdl.PatternOp, universe: Universe, constants: Constants) -> PatternSteps:
    """The steps of a pattern; PatternError where it names what does not exist or cannot be matched from its root."""
    return _Lowering(pattern, universe, constants).run()


class _Lowering:
    def __init__(self, pattern: pdl.PatternOp, universe: Universe, constants: Constants) -> None:
        self.pattern = pattern
        self.universe = universe
        self.constants = constants
        self.bound: dict[SSAValue, str] = {}
        self.steps: list[Step] = []
        self.traits: dict[SSAValue, list[str]] = {}
        self.pending: list[tuple[pdl.ApplyNativeConstraintOp, Entry]] = []

    def run(self) -> PatternSteps:
        name = "unnamed" if self.pattern.sym_name is None else self.pattern.sym_name.data
        root = self.find_root()
        self.collect_constraints()
        roots = self.classes(root)
        self.match_operation(root, "o")
        for op in self.pattern.body.block.ops:
            if isinstance(op, pdl.OperationOp) and op.op not in self.bound:
                raise PatternError(
                    op, "this operation cannot be reached from the root through operands; match from its users"
                )
        self.bind_results()
        self.settle()
        if self.pending:
            raise PatternError(self.pending[0][0], "an argument of this constraint is not bound by the match")
        return PatternSteps(name, roots, self.steps, self.bound)

    # ---- roots, traits, constraints

    def find_root(self) -> pdl.OperationOp:
        rewrite = self.pattern.body.block.last_op
        assert isinstance(rewrite, pdl.RewriteOp)
        if rewrite.root is not None:
            assert isinstance(rewrite.root.owner, pdl.OperationOp)
            return rewrite.root.owner
        block = self.pattern.body.block
        operations = [op for op in block.ops if isinstance(op, pdl.OperationOp)]
        roots = [op for op in operations if not any(self.is_operand(use.operation) for use in op.op.uses)]
        if len(roots) != 1:
            raise PatternError(self.pattern, f"the pattern has {len(roots)} possible roots; name one after pdl.rewrite")
        return roots[0]

    def is_operand(self, op: Operation) -> bool:
        return isinstance(op, pdl.ResultOp) and any(isinstance(u.operation, pdl.OperationOp) for u in op.val.uses)

    def collect_constraints(self) -> None:
        for op in self.pattern.body.block.ops:
            if isinstance(op, pdl.ResultsOp):
                raise PatternError(op, "pdl.results is not supported; name each result with pdl.result")
            if not isinstance(op, pdl.ApplyNativeConstraintOp):
                continue
            name = op.constraint_name.data
            if name == HAS_TRAIT:
                self.collect_trait(op)
                continue
            entry = self.universe.constraints.get(name)
            if entry is None:
                raise PatternError(op, unknown("constraint", name, [*self.universe.constraints.entries, HAS_TRAIT]))
            if op.res:
                raise PatternError(op, f"constraint '{name}' tests and returns nothing")
            check_arguments(op, entry, list(op.args), "constraint")
            self.pending.append((op, entry))

    def collect_trait(self, op: pdl.ApplyNativeConstraintOp) -> None:
        if len(op.args) == 2 and not op.is_negated.value.data:
            trait = op.args[1].owner
            if isinstance(trait, pdl.AttributeOp) and isinstance(trait.value, StringAttr):
                self.traits.setdefault(op.args[0], []).append(trait.value.data)
                if trait.value.data not in self.universe.trait_names():
                    raise PatternError(op, unknown("trait", trait.value.data, self.universe.trait_names()))
                return
        raise PatternError(op, 'has_trait takes an operation and a constant name: "has_trait"(%op, %name)')

    def classes(self, op: pdl.OperationOp) -> frozenset[type[Operation]]:
        """The classes a matched operation may have."""
        name = None if op.opName is None else op.opName.data
        if name is not None:
            classes = frozenset([operation_class(op, name, self.universe)])
        else:
            classes = frozenset(self.universe.operations.values())
        for trait in self.traits.get(op.op, []):
            classes &= self.universe.with_trait(trait)
        if not classes:
            raise PatternError(op, f"no operation has the traits {', '.join(self.traits[op.op])}")
        return classes

    # ---- the match, outward from the root

    def test(self, condition: str, subject: str = "", constant: str = "") -> None:
        self.steps.append(Step(condition, subject, constant))

    def match_operation(self, root: pdl.OperationOp, name: str) -> None:
        """Steps for the root and, operand by operand, for what defines its operands."""
        agenda: list[tuple[pdl.OperationOp, str]] = [(root, name)]
        while agenda:
            op, name = agenda.pop()
            agenda.extend(reversed(self.match_one(op, name)))

    def match_one(self, op: pdl.OperationOp, name: str) -> list[tuple[pdl.OperationOp, str]]:
        self.bound[op.op] = name
        self.settle()
        operands, rest = self.count_operands(op, name)
        self.count_results(op, name)
        for key, value in zip(op.attributeValueNames, op.attribute_values, strict=True):
            self.match_attribute(name, key.data, value)
        inner: list[tuple[pdl.OperationOp, str]] = []
        for index, value in enumerate(operands):
            operand = f"{name}_{index}"
            self.test(f"({operand} := {name}._operands[{index}]) is not None")
            inner += self.match_value(value, operand)
        if rest is not None:
            self.bound[rest] = f"{name}._operands[{len(operands)}:]"
        self.settle()
        return inner

    def test_class(self, op: pdl.OperationOp, name: str) -> None:
        classes = self.classes(op)
        if op.opName is None and op.op not in self.traits:
            self.test(f"isinstance({name}, {self.constants.name(Operation)})")
        elif len(classes) == 1:
            constant = self.constants.name(next(iter(classes)))
            self.test(f"type({name}) is {constant}", f"type({name})", constant)
        else:
            self.test(f"type({name}) in {self.constants.name(classes)}")

    def count_operands(self, op: pdl.OperationOp, name: str) -> tuple[list[SSAValue], SSAValue | None]:
        operands, rest = list(op.operand_values), None
        if operands and isinstance(operands[-1].type, pdl.RangeType):
            rest = operands.pop()
        if any(isinstance(v.type, pdl.RangeType) for v in operands):
            raise PatternError(op, "a range of operands must come last")
        if rest is None:
            self.test(f"len({name}._operands) == {len(operands)}")
        elif operands:
            self.test(f"len({name}._operands) >= {len(operands)}")
        return operands, rest

    def count_results(self, op: pdl.OperationOp, name: str) -> None:
        types = list(op.type_values)
        if types and isinstance(types[-1].type, pdl.RangeType):
            types.pop()
            if types:
                self.test(f"len({name}.results) >= {len(types)}")
        else:
            self.test(f"len({name}.results) == {len(types)}")
        for index, value in enumerate(types):
            self.match_type(value, f"{name}.results[{index}].type")

    def match_attribute(self, name: str, key: str, value: SSAValue) -> None:
        found = f"attr({name}, {self.constants.name(key)})"
        define = value.owner
        assert isinstance(define, pdl.AttributeOp)
        if define.value is not None:
            constant = self.constants.name(define.value)
            self.test(f"{found} == {constant}", found, constant)
            self.bound.setdefault(value, constant)
        elif value in self.bound:
            self.test(f"{found} == {self.bound[value]}")
        else:
            self.bound[value] = variable = f"{name}_a{self.constants.name(key)[1:]}"
            self.test(f"({variable} := {found}) is not None")
        if define.value_type is not None:
            raise PatternError(define, "an attribute's type cannot be matched; give the attribute, or leave it open")

    def match_value(self, value: SSAValue, name: str) -> list[tuple[pdl.OperationOp, str]]:
        """Steps for a value reached as `name`; returns the operation to match next, if it is a result of one."""
        if value in self.bound:
            self.test(f"{name} is {self.bound[value]}")
            return []
        self.bound[value] = name
        define = value.owner
        if isinstance(define, pdl.OperandOp):
            if define.value_type is not None:
                self.match_type(define.value_type, f"{name}.type")
            return []
        if not isinstance(define, pdl.ResultOp) or not isinstance(define.parent_.owner, pdl.OperationOp):
            raise PatternError(self.pattern, "an operand must be a pdl.operand or a pdl.result")
        op, owner, index = define.parent_.owner, f"{name}d", define.index.value.data
        if op.op in self.bound:
            self.test(f"len({self.bound[op.op]}.results) > {index}")
            self.test(f"{name} is {self.bound[op.op]}.results[{index}]")
            return []
        self.test(f"({owner} := {name}.owner) is not None")
        self.bound[op.op] = owner
        self.test_class(op, owner)
        if index or len(op.type_values) != 1 or isinstance(op.type_values[0].type, pdl.RangeType):
            self.test(f"{name}.index == {index}")
        return [(op, owner)]

    def match_type(self, value: SSAValue, found: str) -> None:
        define = value.owner
        assert isinstance(define, pdl.TypeOp)
        if define.constantType is not None:
            constant = self.constants.name(define.constantType)
            self.test(f"{found} == {constant}", found, constant)
            self.bound.setdefault(value, constant)
        elif value in self.bound:
            self.test(f"{found} == {self.bound[value]}")
        else:
            self.bound[value] = found

    def bind_results(self) -> None:
        """Values of results that only constraints or the rewrite name."""
        for op in self.pattern.body.block.ops:
            if isinstance(op, pdl.ResultOp) and op.val not in self.bound:
                owner = self.bound[op.parent_]
                operation = op.parent_.owner
                if not isinstance(operation, pdl.OperationOp) or not self.is_counted(operation, op.index.value.data):
                    self.test(f"len({owner}.results) > {op.index.value.data}")
                self.bound[op.val] = f"{owner}.results[{op.index.value.data}]"

    # ---- constraints, as soon as their values are bound

    def settle(self) -> None:
        waiting: list[tuple[pdl.ApplyNativeConstraintOp, Entry]] = []
        for op, entry in self.pending:
            arguments = [self.argument(value) for value in op.args]
            if None in arguments:
                waiting.append((op, entry))
                continue
            call = self.call(entry, [a for a in arguments if a is not None])
            self.test(f"not {call}" if op.is_negated.value.data else call)
        self.pending = waiting

    def argument(self, value: SSAValue) -> str | None:
        if value in self.bound:
            return self.bound[value]
        define = value.owner
        if isinstance(define, pdl.AttributeOp) and define.value is not None:
            return self.constants.name(define.value)
        if isinstance(define, pdl.TypeOp) and define.constantType is not None:
            return self.constants.name(define.constantType)
        if isinstance(define, pdl.ResultOp) and define.parent_ in self.bound:
            owner, index = self.bound[define.parent_], define.index.value.data
            operation = define.parent_.owner
            if isinstance(operation, pdl.OperationOp) and self.is_counted(operation, index):
                return f"{owner}.results[{index}]"
        return None

    def is_counted(self, op: pdl.OperationOp, index: int) -> bool:
        """Whether the results of an operation have been counted, so that it surely has this one."""
        known = [v for v in op.type_values if not isinstance(v.type, pdl.RangeType)]
        counted = any(step.condition.startswith(f"len({self.bound[op.op]}.results)") for step in self.steps)
        return counted and index < len(known)

    def call(self, entry: Entry, arguments: list[str]) -> str:
        function = self.constants.name(entry.function)
        return f"{function}({', '.join(['r', *arguments] if entry.takes_rewriter else arguments)})"


def operation_class(op: Operation, name: str, universe: Universe) -> type[Operation]:
    """The class of a named operation; PatternError if there is none."""
    found = universe.operations.get(name)
    if found is None:
        raise PatternError(op, unknown("operation", name, universe.operations))
    return found


def check_arguments(op: Operation, entry: Entry, arguments: list[SSAValue], what: str) -> None:
    """Raise PatternError unless a call from a pattern fits the registered function."""
    kinds: dict[type[Attribute], str] = {
        pdl.OperationType: "operation",
        pdl.ValueType: "value",
        pdl.AttributeType: "attribute",
        pdl.TypeType: "attribute",
    }
    found = tuple(kinds.get(type(argument.type), str(argument.type)) for argument in arguments)
    if found != entry.params:
        want = ", ".join(entry.params) or "nothing"
        raise PatternError(op, f"{what} '{entry.name}' takes ({want}), got ({', '.join(found)})")


def attr(op: Operation, name: str) -> Attribute | None:
    """A property or attribute of an operation, as generated matchers look it up."""
    found = op.properties.get(name)
    return op.attributes.get(name) if found is None else found
