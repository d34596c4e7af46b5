"""The parts of a `pdl.pattern`: its root, and its native constraints sorted by purpose."""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

from xdsl.dialects import pdl
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ait_mlir.rewrites.engine.errors import PatternError, unknown
from ait_mlir.rewrites.engine.language import EITHER, HAS_TRAIT, IN_ANY_ORDER, RESERVED
from ait_mlir.rewrites.engine.registry import Entry
from ait_mlir.rewrites.engine.steps import Universe, check_arguments, operation_class

Call: TypeAlias = "tuple[pdl.ApplyNativeConstraintOp, Entry]"
"""A constraint or finder of a pattern, and the function that it names."""


class Parts:
    """The native constraints of a pattern: traits, operands in any order, constraints to test, finders."""

    def __init__(self, pattern: pdl.PatternOp, universe: Universe) -> None:
        self.pattern = pattern
        self.block = pattern.body.block
        self.universe = universe
        self.traits: dict[SSAValue, list[str]] = {}
        self.in_any_order: set[SSAValue] = set()
        self.constraints: list[Call] = []
        self.finders: list[Call] = []
        self._leads_to: dict[SSAValue, set[SSAValue]] = {}

    def root(self) -> pdl.OperationOp:
        rewrite = self.block.last_op
        assert isinstance(rewrite, pdl.RewriteOp)
        if rewrite.root is not None:
            if not isinstance(rewrite.root.owner, pdl.OperationOp):
                raise PatternError(rewrite, "the root of a pattern is an operation that it describes")
            return rewrite.root.owner
        operations = [op for op in self.block.ops if isinstance(op, pdl.OperationOp)]
        roots = [op for op in operations if not any(self.is_operand(use.operation) for use in op.op.uses)]
        if len(roots) != 1:
            raise PatternError(self.pattern, f"the pattern has {len(roots)} possible roots; name one after pdl.rewrite")
        return roots[0]

    def is_operand(self, op: Operation) -> bool:
        users = [use.operation for use in op.results[0].uses] if isinstance(op, pdl.ResultOp | pdl.ResultsOp) else []
        return any(isinstance(user, pdl.OperationOp) or is_either(user) for user in users)

    def collect(self) -> None:
        for op in self.block.ops:
            if not isinstance(op, pdl.ApplyNativeConstraintOp):
                continue
            match op.constraint_name.data:
                case "has_trait":
                    self.collect_trait(op)
                case "in_any_order":
                    self.collect_order(op)
                case "either":
                    check_either(op)
                case name if op.res:
                    entry = self.universe.finders.get(name)
                    if entry is None:
                        if self.universe.constraints.get(name) is not None:
                            raise PatternError(op, f"constraint '{name}' tests and returns nothing")
                        raise PatternError(op, unknown("finder", name, [*self.universe.finders.entries, EITHER]))
                    check_arguments(op, entry, list(op.args), "finder")
                    if len(op.res) > 1 or op.is_negated.value.data:
                        raise PatternError(op, f"finder '{name}' returns one operation or value, and is not negated")
                    self.finders.append((op, entry))
                case name:
                    entry = self.universe.constraints.get(name)
                    if entry is None:
                        raise PatternError(
                            op, unknown("constraint", name, [*self.universe.constraints.entries, *RESERVED])
                        )
                    check_arguments(op, entry, list(op.args), "constraint")
                    self.constraints.append((op, entry))

    def collect_trait(self, op: pdl.ApplyNativeConstraintOp) -> None:
        if len(op.args) == 2 and not op.is_negated.value.data and isinstance(op.args[0].owner, pdl.OperationOp):
            trait = op.args[1].owner
            if isinstance(trait, pdl.AttributeOp) and isinstance(trait.value, StringAttr):
                self.traits.setdefault(op.args[0], []).append(trait.value.data)
                if trait.value.data not in self.universe.trait_names():
                    raise PatternError(op, unknown("trait", trait.value.data, self.universe.trait_names()))
                return
        raise PatternError(op, f'{HAS_TRAIT} takes an operation and a constant name: "{HAS_TRAIT}"(%op, %name)')

    def collect_order(self, op: pdl.ApplyNativeConstraintOp) -> None:
        described = op.args[0].owner if len(op.args) == 1 else None
        if not isinstance(described, pdl.OperationOp) or op.res or op.is_negated.value.data:
            raise PatternError(
                op, f'{IN_ANY_ORDER} takes an operation that the pattern describes: "{IN_ANY_ORDER}"(%op)'
            )
        if len(described.operand_values) != 2 or any(is_range(v) for v in described.operand_values):
            raise PatternError(op, "operands in any order are exactly two")
        self.in_any_order.add(described.op)

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
        if op.op in self.in_any_order:
            for cls in sorted(classes - self.universe.with_trait("Commutative"), key=lambda cls: cls.name):
                raise PatternError(op, f"the operands of '{cls.name}' have an order: it is not Commutative")
        return classes

    def leads_to(self, value: SSAValue) -> set[SSAValue]:
        """The values that every match of `value` binds: `value`, the operands of its operation and what they lead to,
        and the values that all alternatives of an any-of lead to."""
        if value in self._leads_to:
            return self._leads_to[value]
        define, found = value.owner, {value}
        if isinstance(define, pdl.ResultOp) and isinstance(define.parent_.owner, pdl.OperationOp):
            found.update(*(self.leads_to(operand) for operand in define.parent_.owner.operand_values))
        elif is_either(define):
            found |= set[SSAValue].intersection(*(self.leads_to(alternative) for alternative in define.args))
        self._leads_to[value] = found
        return found


def is_range(value: SSAValue) -> bool:
    return isinstance(value.type, pdl.RangeType)


def is_either(op: object) -> TypeGuard[pdl.ApplyNativeConstraintOp]:
    """Whether an operation of a pattern is an any-of."""
    return isinstance(op, pdl.ApplyNativeConstraintOp) and op.constraint_name.data == EITHER


def is_constant(value: SSAValue) -> bool:
    """Whether a bound attribute or type is a constant of the pattern."""
    define = value.owner
    if isinstance(define, pdl.AttributeOp):
        return define.value is not None
    return isinstance(define, pdl.TypeOp) and define.constantType is not None


def check_either(op: pdl.ApplyNativeConstraintOp) -> None:
    """Raise PatternError for a malformed any-of."""
    if not op.args:
        raise PatternError(op, "an any-of without alternatives never matches; give it two values")
    is_value = [isinstance(v.type, pdl.ValueType) for v in (*op.args, *op.res)]
    if len(op.res) != 1 or not all(is_value) or op.is_negated.value.data:
        raise PatternError(op, f'{EITHER} takes values and returns one: "{EITHER}"(%a, %b) : !pdl.value')
