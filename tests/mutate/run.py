"""Removes each constraint of each pattern in turn: some test must fail. Prints constraints whose removal no test
detects.

    python -m tests.mutate.run [PASS | PATTERN ...]

A mutant is a set of patterns with one precondition less: a constraint, a trait, a fixed attribute, or that two
operands are the same value. It is compiled and put in place of the pass's set, and the text tests of the pass run in
this process until one fails. With names of patterns, only these are mutated.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects import pdl
from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from ait_mlir.ir.context import DIALECTS
from ait_mlir.passes.pipelines import PASSES, Patterns, patterns_of
from ait_mlir.rewrites import apply
from ait_mlir.rewrites.engine.compile import CompiledPatterns, compile_patterns
from ait_mlir.rewrites.engine.errors import PatternError
from ait_mlir.rewrites.engine.language import EITHER, PatternSet
from tests.lit.runner import run_command, run_lines
from tests.rewrites.attention_cases import VARIANTS, matching
from tests.rewrites.test_attention import check_variant

LIT = Path(__file__).parents[2] / "lit_tests" / "rewrites"


def tests_of(name: str) -> tuple[str, ...]:
    """The text tests with a RUN line that names the pass."""
    named = re.compile(rf"RUN:.*[ ,'\"]{re.escape(name)}(?![\w-])")
    return tuple(file.name for file in sorted(LIT.glob("*.mlir")) if named.search(file.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Family:
    """The patterns of a pass and the text tests that must notice a change in it."""

    patterns: PatternSet
    dialect: str
    tests: tuple[str, ...]

    def compile(self, patterns: Sequence[pdl.PatternOp]) -> CompiledPatterns:
        operations = {op.name: op for op in DIALECTS[self.dialect]().operations}
        return compile_patterns(patterns, apply.universe(operations))


def families() -> dict[str, Family]:
    """The passes of patterns; shared patterns are mutated once, with the first pass. Each pass has tests."""
    rows = {name: row for name, row in PASSES.items() if isinstance(row, Patterns)}
    found = {name: Family(patterns_of(name), row.dialect, tests_of(name)) for name, row in rows.items()}
    assert all(family.tests for family in found.values()), [name for name, row in found.items() if not row.tests]
    return found


@dataclass(frozen=True)
class Mutant:
    """A pattern with one precondition less."""

    what: str
    pattern: pdl.PatternOp


def mutants(pattern: pdl.PatternOp) -> Iterator[Mutant]:
    """All mutants of a pattern."""
    for index, op in enumerate(pattern.body.block.ops):
        if isinstance(op, pdl.ApplyNativeConstraintOp) and op.constraint_name.data == EITHER:
            for position in range(len(op.args)):
                yield without_alternative(pattern, index, position)
        elif isinstance(op, pdl.ApplyNativeConstraintOp) and not op.res:
            copy, target = cloned(pattern, index)
            target.detach()
            target.erase()
            yield Mutant(f"require {op.constraint_name.data}", copy)
        if not isinstance(op, pdl.OperationOp):
            continue
        for position, value in enumerate(op.attribute_values):
            if isinstance(value.owner, pdl.AttributeOp) and value.owner.value is not None:
                yield without_attribute(pattern, index, position)
        for position, value in enumerate(op.operand_values):
            if isinstance(value.owner, pdl.OperandOp) and is_repeated(op, position):
                copy, target = cloned(pattern, index)
                fresh = pdl.OperandOp()
                copy.body.block.insert_op_before(fresh, target)
                target.operands[position] = fresh.value
                yield Mutant(f"operand {position} of {op_name(op)} is the same value", copy)


def cloned(pattern: pdl.PatternOp, index: int) -> tuple[pdl.PatternOp, Operation]:
    """A copy of a pattern, and its operation at `index`."""
    copy = pattern.clone()
    return copy, list(copy.body.block.ops)[index]


def without_attribute(pattern: pdl.PatternOp, index: int, position: int) -> Mutant:
    """The pattern without a fixed attribute of an operation."""
    copy, target = cloned(pattern, index)
    assert isinstance(target, pdl.OperationOp)
    attributes = attributes_of(target)
    name, _ = attributes.pop(position)
    return Mutant(f"attribute {name.data} of {op_name(with_attributes(target, attributes))}", copy)


def without_alternative(pattern: pdl.PatternOp, index: int, position: int) -> Mutant:
    """The pattern without an alternative of an any-of; one that is an operation of its own asks for an attribute that
    no operation has, so that what the rewrite does with its parts stays well-formed."""
    copy, either = cloned(pattern, index)
    owner = either.operands[position].owner
    op = owner.parent_.owner if isinstance(owner, pdl.ResultOp) else None
    if isinstance(op, pdl.OperationOp) and not is_operand(op):
        nothing = pdl.AttributeOp(UnitAttr())
        copy.body.block.insert_op_before(nothing, op)
        with_attributes(op, [*attributes_of(op), (StringAttr("no_operation_has_this"), nothing.output)])
    else:
        either.operands = [value for i, value in enumerate(either.operands) if i != position]
    return Mutant(f"alternative {position} of an any-of", copy)


def attributes_of(op: pdl.OperationOp) -> list[tuple[StringAttr, SSAValue]]:
    """The attributes that a matched operation has."""
    return list(zip(op.attributeValueNames.data, op.attribute_values, strict=True))


def with_attributes(op: pdl.OperationOp, attributes: Sequence[tuple[StringAttr, SSAValue]]) -> pdl.OperationOp:
    """Give a matched operation other attributes; returns its replacement."""
    names, values = [name for name, _ in attributes], [value for _, value in attributes]
    new = pdl.OperationOp(op.opName, names, list(op.operand_values), values, list(op.type_values))
    block = op.parent
    assert block is not None
    block.insert_op_before(new, op)
    op.op.replace_all_uses_with(new.op)
    op.detach()
    op.erase()
    return new


def is_operand(op: pdl.OperationOp) -> bool:
    """Whether another matched operation reads a result of this one."""
    results = [use.operation for use in op.op.uses if isinstance(use.operation, pdl.ResultOp)]
    return any(isinstance(use.operation, pdl.OperationOp) for result in results for use in result.val.uses)


def is_repeated(op: pdl.OperationOp, position: int) -> bool:
    """Whether an operand of a matched operation is also an operand of another, or an earlier one of this."""
    value = op.operand_values[position]
    matched = [u for u in value.uses if isinstance(u.operation, pdl.OperationOp) and u.operation.parent is op.parent]
    first = min(matched, key=lambda use: (not use.operation.is_before_in_block(op), use.index))
    return len(matched) > 1 and (first.operation is not op or first.index != position)


def op_name(op: pdl.OperationOp) -> str:
    return "any operation" if op.opName is None else op.opName.data


def lit_tests_pass(family: Family, compiled: CompiledPatterns) -> bool:
    """Whether the family's text tests pass with other patterns in place of its own."""
    original = apply.compiled

    def mutated(patterns: PatternSet, dialect: str = "ait") -> CompiledPatterns:
        return compiled if patterns is family.patterns else original(patterns, dialect)

    apply.compiled = mutated  # type: ignore[assignment]
    try:
        # What compares meaning is slower and runs last.
        lines = [line for test in family.tests for line in run_lines(LIT / test)]
        for line in sorted(lines, key=lambda line: "--check-semantics" in line.text):
            stream = ""
            for command in line.pipe:
                outcome = run_command(command, stream)
                if outcome.code != 0:
                    return False
                stream = outcome.stdout
    finally:
        apply.compiled = original
    return True


def variants_pass(pattern: pdl.PatternOp) -> bool:
    """Whether an attention pattern matches its intended graphs and no other graphs."""
    try:
        for variant in VARIANTS:
            check_variant(pattern, matching(*variant))
    except Exception:
        return False
    return True


def mutate(family: Family, chosen: Mapping[str, Collection[int] | None]) -> tuple[int, dict[str, dict[int, str]]]:
    """Mutates the chosen patterns, by name with the mutants to try (None: all): how many there were, and those that
    survive, by pattern, number of the mutant, and what it misses."""
    patterns = family.patterns.patterns
    assert lit_tests_pass(family, family.compile(patterns)), f"{family.tests} fail unchanged"
    assert not lit_tests_pass(family, family.compile(())), (
        f"{family.tests} pass without any pattern: is another set used?"
    )
    count, survivors = 0, dict[str, dict[int, str]]()
    for index, pattern in enumerate(patterns):
        name = "" if pattern.sym_name is None else pattern.sym_name.data
        for number, mutant in enumerate(mutants(pattern) if name in chosen else ()):
            tried = chosen[name]
            if tried is not None and number not in tried:
                continue
            changed = [mutant.pattern if i == index else p for i, p in enumerate(patterns)]
            try:
                compiled = family.compile(changed)
            except PatternError:  # not a precondition, but what binds a value that the rest needs
                continue
            count += 1
            try:
                alive = lit_tests_pass(family, compiled)
                if alive and name.startswith("softmax_attention"):
                    alive = variants_pass(mutant.pattern)
            except (PatternError, AssertionError):
                alive = False
            if alive:
                survivors.setdefault(name, {})[number] = mutant.what
    return count, survivors


def is_asked_for(pattern: str, pass_name: str, arguments: list[str], families_of: set[str]) -> bool:
    """Whether the arguments name the pass, the pattern, or the function that makes it; without arguments all are."""
    return not arguments or any(
        a in (pass_name, pattern) or (a in families_of and pattern.startswith(a)) for a in arguments
    )


def main(arguments: list[str]) -> int:
    """Mutate the named passes or patterns, or all; returns 1 if a mutant survives."""
    known = families()
    names = {p.sym_name.data for f in known.values() for p in f.patterns.patterns if p.sym_name is not None}
    families_of = {family.name for f in known.values() for family in f.patterns.families}
    if unknown := set(arguments) - set(known) - names - families_of:
        print(f"error: no pass or pattern {', '.join(sorted(unknown))}; passes: {', '.join(known)}", file=sys.stderr)
        return 1
    patterns = {
        name: [p.sym_name.data for p in f.patterns.patterns if p.sym_name is not None] for name, f in known.items()
    }
    left = {p for name, own in patterns.items() for p in own if is_asked_for(p, name, arguments, families_of)}
    total, survivors = 0, dict[str, dict[int, str]]()
    # passes with most tests first; what survives there is tried with the other passes that have the pattern
    for name, family in sorted(known.items(), key=lambda row: -len(row[1].tests)):
        start = time.perf_counter()
        fresh = [p for p in patterns[name] if p in left]
        again = {p: survivors.pop(p) for p in patterns[name] if p in survivors}
        if not fresh and not again:
            continue
        left -= set(fresh)
        count, found = mutate(family, dict.fromkeys(fresh) | again)
        survivors |= found
        alive = sum(map(len, found.values()))
        print(f"{name:24} {count:4} mutants, {alive} survive ({time.perf_counter() - start:.1f} s)", flush=True)
        total += count - sum(map(len, again.values()))
    for pattern, found in survivors.items():
        for what in found.values():
            print(f"  {pattern}: without '{what}' every test passes")
    alive = sum(map(len, survivors.values()))
    print(f"{total} mutants, {alive} survivors")
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
