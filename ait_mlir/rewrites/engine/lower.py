"""Lowers one `pdl.pattern` to a list of matching steps, outward from its root.

Operands are followed to their definitions, depth first. A constraint is tested as soon as all its arguments are bound.
An any-of becomes a `Choice`: each alternative has its own steps, and exports its values under names that do not depend
on the alternative, as None if the alternative lacks a value. Operands in any order become a choice between two orders.
A range of operands that is not the last becomes a `Loop` over the positions of the operands after it, and a finder a
`Loop` over its candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import pdl
from xdsl.ir import Operation, SSAValue

from ait_mlir.rewrites.engine.errors import PatternError
from ait_mlir.rewrites.engine.pattern_parts import Call, Parts, is_constant, is_either, is_range
from ait_mlir.rewrites.engine.registry import Entry
from ait_mlir.rewrites.engine.steps import (
    Alternative,
    AnyStep,
    Choice,
    Constants,
    Loop,
    PatternSteps,
    Step,
    Universe,
)

Todo: TypeAlias = "Callable[[], list[Todo]]"
"""A part of the match that is not lowered yet; a call lowers it and returns the parts to lower next."""

State: TypeAlias = "tuple[list[AnyStep], dict[SSAValue, str], set[SSAValue], list[Call], set[SSAValue]]"
"""Steps, bound values, bound values that may be missing, untested constraints, values whose definition is deferred."""


@dataclass(frozen=True)
class Branch:
    """A lowered alternative: its steps, and the state after them."""

    steps: list[AnyStep]
    bound: dict[SSAValue, str]
    optional: set[SSAValue]
    pending: list[Call]


def lower(pattern: pdl.PatternOp, universe: Universe, constants: Constants) -> PatternSteps:
    """The steps of a pattern; PatternError for an unknown name or a part that is not reachable from the root."""
    return _Lowering(pattern, universe, constants).run()


class _Lowering:
    def __init__(self, pattern: pdl.PatternOp, universe: Universe, constants: Constants) -> None:
        self.pattern = pattern
        self.block = pattern.body.block
        self.constants = constants
        self.parts = Parts(pattern, universe)
        self.reached: set[Operation] = set()
        self.choices: set[str] = set()
        # State that each alternative has separately.
        self.steps: list[AnyStep] = []
        self.bound: dict[SSAValue, str] = {}
        self.optional: set[SSAValue] = set()
        self.pending: list[Call] = []
        self.deferred: set[SSAValue] = set()

    def run(self) -> PatternSteps:
        name = "unnamed" if self.pattern.sym_name is None else self.pattern.sym_name.data
        root = self.parts.root()
        self.parts.collect()
        self.pending = list(self.parts.constraints)
        roots = self.parts.classes(root)
        self.match([lambda: self.match_one(root, "o")])
        self.find()
        for op in self.block.ops:
            if isinstance(op, pdl.OperationOp) and op not in self.reached:
                raise PatternError(
                    op, "this operation cannot be reached from the root through operands; match from its users"
                )
            if is_either(op) and op not in self.reached:
                raise PatternError(op, "no operand of the match is this any-of")
        if self.pending:
            raise PatternError(self.pending[0][0], "an argument of this constraint is not bound by the match")
        return PatternSteps(name, roots, self.steps, self.bound, frozenset(self.optional))

    # ---- the match, outward from the root

    def test(self, condition: str, subject: str = "", constant: str = "") -> None:
        self.steps.append(Step(condition, subject, constant))

    def match(self, agenda: list[Todo]) -> None:
        """Lower parts of the match depth first: each part and all parts that it returns before the next."""
        agenda.reverse()
        while agenda:
            agenda.extend(reversed(agenda.pop()()))
            self.settle()

    def match_one(self, op: pdl.OperationOp, name: str) -> list[Todo]:
        """Add steps for the results and attributes of an operation; returns its operands as parts to lower."""
        self.bound[op.op] = name
        self.reached.add(op)
        self.settle()
        self.count_results(op, name)
        for key, value in zip(op.attributeValueNames, op.attribute_values, strict=True):
            self.match_attribute(op, name, key.data, value)
        values = list(op.operand_values)
        if len(values) == 1 and isinstance(values[0].owner, pdl.ResultsOp):
            return self.match_all_results(op, name, values[0].owner)
        ranges = sum(is_range(value) for value in values)
        if ranges == 0:
            self.test(f"len({name}._operands) == {len(values)}")
        elif len(values) > ranges:
            self.test(f"len({name}._operands) >= {len(values) - ranges}")
        if ranges > 1:
            return [lambda: self.match_operands(op, name)]
        if op.op in self.parts.in_any_order:
            return self.match_in_any_order(op, name)
        return self.match_operands(op, name)

    def test_class(self, op: pdl.OperationOp, name: str) -> None:
        classes = self.parts.classes(op)
        if op.opName is None and op.op not in self.parts.traits:
            self.test(f"isinstance({name}, {self.constants.name(Operation)})")
        elif len(classes) == 1:
            constant = self.constants.name(next(iter(classes)))
            self.test(f"type({name}) is {constant}", f"type({name})", constant)
        else:
            self.test(f"type({name}) in {self.constants.name(classes)}")

    def match_operands(self, op: pdl.OperationOp, name: str) -> list[Todo]:
        """Add steps for operands in order; those after a range may be at any position after the operands before it."""
        blocks: list[list[SSAValue]] = [[]]
        ranges: list[SSAValue] = []
        for value in op.operand_values:
            if not is_range(value):
                blocks[-1].append(value)
                continue
            if ranges and not blocks[-1]:
                raise PatternError(op, "two ranges of operands stand next to each other: where does the first end?")
            ranges.append(value)
            blocks.append([])
        todo = self.match_block(op, name, blocks[0], [str(i) for i in range(len(blocks[0]))])
        start = str(len(blocks[0]))
        for k, value in enumerate(ranges):
            block, behind = blocks[k + 1], sum(map(len, blocks[k + 2 :]))
            if k == len(ranges) - 1:
                end = f"len({name}._operands) - {len(block)}" if block else ""
                places = [str(i - len(block)) for i in range(len(block))]
            else:
                end = f"{name}_p{k}"
                self.steps.append(Loop(end, f"range({start}, len({name}._operands) - {len(block) + behind - 1})"))
                places = [f"{end} + {i}" for i in range(len(block))]
            self.match_range(value, f"{name}._operands[{start}:{end}]")
            todo += self.match_block(op, name, block, places, f"p{k}_")
            start = f"{end} + {len(block)}"
        return todo

    def match_block(
        self, op: pdl.OperationOp, name: str, block: Sequence[SSAValue], places: Sequence[str], prefix: str = ""
    ) -> list[Todo]:
        """Add steps for some operands of an operation, at the given indices."""
        todo: list[Todo] = []
        for i, (value, place) in enumerate(zip(block, places, strict=True)):
            operand = f"{name}_{prefix}{i}"
            self.test(f"({operand} := {name}._operands[{place}]) is not None")
            todo += self.match_value(op, value, operand)
        return todo

    def match_in_any_order(self, op: pdl.OperationOp, name: str) -> list[Todo]:
        """Add a choice between the two orders of two operands."""
        found = (f"{name}_0", f"{name}_1")
        for i, operand in enumerate(found):
            self.test(f"({operand} := {name}._operands[{i}]) is not None")
        a, b = op.operand_values
        first, second = f"{name}_e0", f"{name}_e1"

        def choose() -> list[Todo]:
            self.steps.append(Choice((first, second), (Alternative((), found), Alternative((), found[::-1]))))
            return [*self.match_value(op, a, first), *self.match_value(op, b, second)]

        return [choose]

    def match_all_results(self, op: pdl.OperationOp, name: str, results: pdl.ResultsOp) -> list[Todo]:
        """Add steps for an operation whose operands are all results of another operation, in order."""
        source = results.parent_.owner
        if results.index is not None or not isinstance(source, pdl.OperationOp):
            raise PatternError(results, "pdl.results stands for all results of an operation that the pattern describes")
        if source.op in self.bound:
            self.test(f"same_values({name}._operands, {self.must_exist(op, source.op)}.results)")
            return []
        self.test(f"{name}._operands")
        owner = f"{name}_0d"
        self.test(f"({owner} := {name}._operands[0].owner) is not None")
        self.test_class(source, owner)
        self.test(f"same_values({name}._operands, {owner}.results)")
        self.bound[source.op] = owner
        return [lambda: self.match_one(source, owner)]

    def match_range(self, value: SSAValue, found: str) -> None:
        if isinstance(value.owner, pdl.ResultsOp):
            raise PatternError(value.owner, "all results of an operation are all operands of another, or none")
        if value in self.bound:
            self.test(f"same_values({found}, {self.bound[value]})")
        else:
            self.bound[value] = found

    def count_results(self, op: pdl.OperationOp, name: str) -> None:
        types = list(op.type_values)
        if types and isinstance(types[-1].type, pdl.RangeType):
            types.pop()
            if types:
                self.test(f"len({name}.results) >= {len(types)}")
        else:
            self.test(f"len({name}.results) == {len(types)}")
        for index, value in enumerate(types):
            self.match_type(op, value, f"{name}.results[{index}].type")
        self.bind_results(op.op, name, len(types))

    def bind_results(self, op: SSAValue, name: str, counted: int) -> None:
        """Bind the results of an operation that the pattern uses; the first `counted` results exist for certain."""
        for use in op.uses:
            found = use.operation
            if found.parent is not self.block:
                continue
            if isinstance(found, pdl.ResultsOp):
                self.bound[found.val] = f"{name}.results"
            if isinstance(found, pdl.ResultOp) and found.val not in self.bound:
                if found.index.value.data >= counted:
                    self.test(f"len({name}.results) > {found.index.value.data}")
                self.bound[found.val] = f"{name}.results[{found.index.value.data}]"

    def match_attribute(self, op: pdl.OperationOp, name: str, key: str, value: SSAValue) -> None:
        found = f"attr({name}, {self.constants.name(key)})"
        define = value.owner
        assert isinstance(define, pdl.AttributeOp)
        if define.value is not None:
            constant = self.constants.name(define.value)
            self.test(f"{found} == {constant}", found, constant)
            self.bound.setdefault(value, constant)
        elif value in self.bound:
            self.test(f"{found} == {self.must_exist(op, value)}")
        else:
            self.bound[value] = variable = f"{name}_a{self.constants.name(key)[1:]}"
            self.test(f"({variable} := {found}) is not None")
        if define.value_type is not None:
            raise PatternError(define, "an attribute's type cannot be matched; give the attribute, or leave it open")

    def match_value(self, user: Operation, value: SSAValue, name: str) -> list[Todo]:
        """Add steps for a value reached as `name`; returns its definition as parts to lower next."""
        if value in self.bound:
            self.test(f"{name} is {self.must_exist(user, value)}")
            return []
        self.bound[value] = name
        return [] if value in self.deferred else self.match_definition(user, value, name)

    def match_definition(self, user: Operation, value: SSAValue, name: str) -> list[Todo]:
        """Add steps for the definition of a value that was reached as `name`."""
        define = value.owner
        if isinstance(define, pdl.OperandOp):
            if define.value_type is not None:
                self.match_type(define, define.value_type, f"{name}.type")
            return []
        if is_either(define):
            self.reached.add(define)
            return [lambda: self.choose(define, name)]
        if not isinstance(define, pdl.ResultOp) or not isinstance(define.parent_.owner, pdl.OperationOp):
            raise PatternError(user, "an operand must be a pdl.operand, a pdl.result of an operation, or an any-of")
        op, owner, index = define.parent_.owner, f"{name}d", define.index.value.data
        if op.op in self.bound:
            self.must_exist(user, op.op)
            self.test(f"len({self.bound[op.op]}.results) > {index}")
            self.test(f"{name} is {self.bound[op.op]}.results[{index}]")
            return []
        self.test(f"({owner} := {name}.owner) is not None")
        self.bound[op.op] = owner
        self.test_class(op, owner)
        if index or len(op.type_values) != 1 or isinstance(op.type_values[0].type, pdl.RangeType):
            self.test(f"{name}.index == {index}")
        return [lambda: self.match_one(op, owner)]

    def match_type(self, user: Operation, value: SSAValue, found: str) -> None:
        define = value.owner
        assert isinstance(define, pdl.TypeOp)
        if define.constantType is not None:
            constant = self.constants.name(define.constantType)
            self.test(f"{found} == {constant}", found, constant)
            self.bound.setdefault(value, constant)
        elif value in self.bound:
            self.test(f"{found} == {self.must_exist(user, value)}")
        else:
            self.bound[value] = found

    def must_exist(self, user: Operation, value: SSAValue) -> str:
        """The name of a bound value; PatternError if the value may be missing."""
        if value in self.optional:
            raise PatternError(user, "this needs a value that only some alternatives of an any-of have")
        return self.bound[value]

    # ---- alternatives

    def choose(self, either: pdl.ApplyNativeConstraintOp, name: str) -> list[Todo]:
        """Add a choice between the alternatives of an any-of at `name`.

        A value that all alternatives lead to is bound in each of them; its definition is matched once, after the
        choice.
        """
        state = (self.steps, self.bound, self.optional, self.pending, self.deferred)
        steps, bound, optional, pending, deferred = state
        common = set[SSAValue].intersection(*(self.parts.leads_to(value) for value in either.args)) - set(bound)
        while True:
            branches = [self.branch(either, value, name, state, deferred | common) for value in either.args]
            new = list(dict.fromkeys(v for b in branches for v in b.bound if v not in bound and not is_constant(v)))
            partly = {v for v in new if any(v not in b.bound or v in b.optional for b in branches)}
            if not partly & common:
                break
            # A value that leads to a value bound only in some alternatives is not deferred.
            common = {v for v in common if not self.parts.leads_to(v) & partly}
        while name in self.choices:
            name += "x"
        self.choices.add(name)
        exported = tuple(f"{name}_e{i}" for i in range(len(new)))
        exports = [tuple(b.bound.get(v, "None") for v in new) for b in branches]
        alternatives = [Alternative(tuple(b.steps), e) for b, e in zip(branches, exports, strict=True)]
        self.steps = [*steps, Choice(exported, tuple(alternatives))]
        self.bound = bound | dict(zip(new, exported, strict=True))
        self.optional = optional | partly
        self.deferred = deferred

        def settled(call: Call) -> bool:
            """Whether every branch has tested the constraint, or lacks an argument that only other branches bind."""
            return all(
                call not in b.pending or any(v in new and v not in b.bound for v in call[0].args) for b in branches
            )

        self.pending = [call for call in pending if not settled(call)]
        later = [v for v in new if v in common and v not in deferred]
        return [lambda v=v: self.match_definition(either, v, self.bound[v]) for v in later]

    def branch(
        self, either: pdl.ApplyNativeConstraintOp, value: SSAValue, name: str, state: State, deferred: set[SSAValue]
    ) -> Branch:
        """One alternative, lowered from the state before the choice."""
        _, bound, optional, pending, _ = state
        self.steps, self.bound, self.optional = [], dict(bound), set(optional)
        self.pending, self.deferred = list(pending), deferred
        self.match([lambda: self.match_value(either, value, name)])
        return Branch(self.steps, self.bound, self.optional, self.pending)

    # ---- constraints, as soon as their values are bound; finders after the rest of the match

    def settle(self) -> None:
        waiting: list[Call] = []
        for op, entry in self.pending:
            arguments = [self.argument(value) for value in op.args]
            if None in arguments:
                waiting.append((op, entry))
                continue
            call = self.call(entry, [a for a in arguments if a is not None])
            test = f"not {call}" if op.is_negated.value.data else call
            missing = [
                f"{argument} is None"
                for i, (value, argument) in enumerate(zip(op.args, arguments, strict=True))
                if value in self.optional and i not in entry.optional
            ]
            self.test(f"({' or '.join([*missing, test])})" if missing else test)
        self.pending = waiting

    def find(self) -> None:
        """Add a loop for each finder, in the order in which their arguments get bound."""
        self.settle()
        waiting = list(self.parts.finders)
        while waiting:
            ready = [c for c in waiting if None not in [self.argument(value) for value in c[0].args]]
            if not ready:
                raise PatternError(waiting[0][0], "an argument of this finder is not bound by the match")
            op, entry = ready[0]
            waiting.remove(ready[0])
            for value in op.args:
                if value in self.bound:
                    self.must_exist(op, value)
            name = f"f{len(self.parts.finders) - len(waiting) - 1}"
            self.steps.append(Loop(name, self.call(entry, [str(self.argument(value)) for value in op.args])))
            self.bound[op.res[0]] = name
            self.bind_results(op.res[0], name, 0)
            self.settle()

    def argument(self, value: SSAValue) -> str | None:
        define = value.owner
        if isinstance(define, pdl.AttributeOp) and define.value is not None:
            return self.constants.name(define.value)
        if isinstance(define, pdl.TypeOp) and define.constantType is not None:
            return self.constants.name(define.constantType)
        return self.bound.get(value)

    def call(self, entry: Entry, arguments: list[str]) -> str:
        function = self.constants.name(entry.function)
        return f"{function}({', '.join(['r', *arguments] if entry.takes_rewriter else arguments)})"
