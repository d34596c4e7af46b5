"""Lowers the rewrite side of a pattern to a Python function of the values that the match bound."""

from __future__ import annotations

from xdsl.dialects import pdl
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, VarOperandDef

from ait_mlir.rewrites.engine.errors import PatternError, unknown
from ait_mlir.rewrites.engine.registry import Entry
from ait_mlir.rewrites.engine.steps import Constants, PatternSteps, Universe, check_arguments, operation_class


def lower_action(
    name: str, pattern: pdl.PatternOp, steps: PatternSteps, universe: Universe, constants: Constants
) -> tuple[str, list[str]]:
    """The source of `def NAME(r, o, ...)`, and its arguments after `r` as expressions over the names of the match."""
    return _Action(steps, universe, constants).run(name, pattern)


class _Action:
    def __init__(self, steps: PatternSteps, universe: Universe, constants: Constants) -> None:
        self.match = steps
        self.universe = universe
        self.constants = constants
        self.arguments: dict[str, str] = {}
        self.names: dict[SSAValue, str] = {}
        self.lines: list[str] = []
        self.optional: set[SSAValue] = set(steps.optional)

    def run(self, name: str, pattern: pdl.PatternOp) -> tuple[str, list[str]]:
        rewrite = pattern.body.block.last_op
        assert isinstance(rewrite, pdl.RewriteOp)
        if rewrite.name_ is not None:
            self.external(rewrite, rewrite.name_.data)
        elif not rewrite.body.blocks or rewrite.body.block.is_empty:
            raise PatternError(rewrite, "the rewrite does nothing; replace or erase the root")
        else:
            for op in rewrite.body.block.ops:
                self.statement(op)
        parameters = ", ".join(["r", *self.arguments.values()])
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def {name}({parameters}):\n{body}", list(self.arguments)

    def value(self, value: SSAValue, user: Operation | None = None) -> str:
        """The name of a value in the action; a matched value becomes a parameter. PatternError if `user` needs the
        value but some alternatives lack it."""
        if user is not None and value in self.optional:
            raise PatternError(user, "this needs a value that only some alternatives of an any-of have")
        if value in self.names:
            return self.names[value]
        if value in self.match.bound:
            expression = self.match.bound[value]
            return self.arguments.setdefault(expression, f"m{len(self.arguments)}")
        define = value.owner
        if isinstance(define, pdl.AttributeOp) and define.value is not None:
            return self.constants.name(define.value)
        if isinstance(define, pdl.TypeOp) and define.constantType is not None:
            return self.constants.name(define.constantType)
        assert isinstance(define, Operation)
        raise PatternError(define, f"'{define.name}' is used by the rewrite but the match does not bind it")

    def define(self, value: SSAValue) -> str:
        name = self.names[value] = f"n{len(self.names)}"
        return name

    def native(self, op: Operation, name: str, arguments: list[SSAValue]) -> Entry:
        entry = self.universe.natives.get(name)
        if entry is None:
            raise PatternError(op, unknown("native rewrite", name, self.universe.natives.entries))
        check_arguments(op, entry, arguments, "native rewrite")
        return entry

    def call(self, op: Operation, entry: Entry, arguments: list[SSAValue]) -> str:
        names = [self.value(a, None if i in entry.optional else op) for i, a in enumerate(arguments)]
        function = self.constants.name(entry.function)
        return f"{function}({', '.join(['r', *names] if entry.takes_rewriter else names)})"

    def external(self, rewrite: pdl.RewriteOp, name: str) -> None:
        arguments = [*([] if rewrite.root is None else [rewrite.root]), *rewrite.external_args]
        self.lines.append(self.call(rewrite, self.native(rewrite, name, arguments), arguments))

    def statement(self, op: Operation) -> None:
        match op:
            case pdl.AttributeOp() | pdl.TypeOp():
                self.value(op.results[0])
            case pdl.OperationOp():
                self.create(op)
            case pdl.ResultOp():
                parent = self.value(op.parent_, op)
                self.lines.append(f"{self.define(op.val)} = {parent}.results[{op.index.value.data}]")
            case pdl.ApplyNativeRewriteOp():
                arguments = list(op.args)
                entry = self.native(op, op.constraint_name.data, arguments)
                call = self.call(op, entry, arguments)
                if op.res and entry.may_lack_result and any(argument in self.optional for argument in arguments):
                    self.optional.add(op.res[0])
                if len(op.res) > 1:
                    raise PatternError(op, "a native rewrite returns one operation or value, or nothing")
                self.lines.append(f"{self.define(op.res[0])} = {call}" if op.res else call)
            case pdl.ReplaceOp():
                self.replace(op)
            case pdl.EraseOp():
                self.lines.append(f"r.erase({self.value(op.op_value, op)})")
            case _:
                raise PatternError(op, f"'{op.name}' is not supported in a rewrite")

    def create(self, op: pdl.OperationOp) -> None:
        assert isinstance(op.opName, StringAttr)
        op_class = operation_class(op, op.opName.data, self.universe)
        cls = self.constants.name(op_class)
        if not has_optional_operands(op_class):
            for value in op.operand_values:
                self.value(value, op)  # such an operation needs all of its operands
        operands = ", ".join(self.operand(v) for v in op.operand_values)
        attributes = ", ".join(
            f"{self.constants.name(key.data)}: {self.value(value, op)}"
            for key, value in zip(op.attributeValueNames, op.attribute_values, strict=True)
        )
        types = ", ".join(self.value(v, op) for v in op.type_values)
        types = f"[{types}]" if types else "None"
        if any(isinstance(value.type, pdl.RangeType) for value in op.type_values):
            raise PatternError(op, "ranges of types are not supported in new operations; name each type")
        self.lines.append(f"{self.define(op.op)} = r.create({cls}, [{operands}], {types}, {{{attributes}}})")

    def operand(self, value: SSAValue) -> str:
        """The code of a value in a list of operands: a range is spread, a missing value left out."""
        name = self.value(value)
        if isinstance(value.type, pdl.RangeType):
            return f"*{name}"
        return f"*(() if {name} is None else ({name},))" if value in self.optional else name

    def replace(self, op: pdl.ReplaceOp) -> None:
        root = self.value(op.op_value, op)
        if op.repl_operation is not None:
            self.lines.append(f"r.replace({root}, {self.value(op.repl_operation, op)}.results)")
            return
        for value in op.repl_values:
            self.value(value, op)
        values = ", ".join(self.operand(v) for v in op.repl_values)
        self.lines.append(f"r.replace({root}, [{values}])")


def has_optional_operands(op_class: type[Operation]) -> bool:
    """Whether operands may be left out of an operation of this class."""
    if not issubclass(op_class, IRDLOperation):
        return True
    return any(isinstance(found, VarOperandDef) for _, found in op_class.get_irdl_definition().operands)
