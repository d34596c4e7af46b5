"""Removes each constraint of each pattern in turn: some test must fail. Prints constraints whose removal no test
detects.

    python -m tests.mutate.run [--jobs N] [PASS | PATTERN ...]

A mutant is a set of patterns with one precondition less: a constraint, a trait, a fixed attribute, or that two
operands are the same value. It is compiled and put in place of the pass's set, and the text tests of the pass run in
this process until one fails; then those of the other passes that have the pattern. With names of patterns, only these
are mutated. Mutants that a test noticed are remembered in build/mutate for exactly these sources, so that a run that
was cut off goes on.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import itertools
import re
import sys
import time
from collections.abc import Iterator, Sequence
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
from ait_mlir.tools.run_lines import run_command
from tests.full import ROOT, sources_digest
from tests.lit.runner import lines_of
from tests.rewrites.attention_cases import VARIANTS, matching
from tests.rewrites.test_attention import check_variant

LIT = ROOT / "lit_tests" / "rewrites"


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


@functools.cache
def families() -> dict[str, Family]:
    """The passes of patterns, those with most tests first. Each pass has tests."""
    rows = {name: row for name, row in PASSES.items() if isinstance(row, Patterns)}
    found = {name: Family(patterns_of(name), row.dialect, tests_of(name)) for name, row in rows.items()}
    assert all(family.tests for family in found.values()), [name for name, row in found.items() if not row.tests]
    return dict(sorted(found.items(), key=lambda row: -len(row[1].tests)))


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
        lines = [line for test in family.tests for line in lines_of(LIT / test)]
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


def name_of(pattern: pdl.PatternOp) -> str:
    return "" if pattern.sym_name is None else pattern.sym_name.data


@functools.cache
def mutants_of(name: str) -> list[Mutant]:
    """The mutants of the pattern with this name."""
    patterns = (p for family in families().values() for p in family.patterns.patterns)
    return list(mutants(next(p for p in patterns if name_of(p) == name)))


@dataclass(frozen=True)
class Tried:
    """A mutant by its pattern and number, and what became of it.

    `is_mutant` is False where the removed operation is no precondition: it binds a value that the rest needs.
    """

    pattern: str
    number: int
    is_mutant: bool = True
    survives: bool = False


def try_mutant(name: str, number: int) -> Tried:
    """Run the tests of the passes that have the pattern on its mutant, until one fails."""
    mutant = mutants_of(name)[number].pattern
    for family in families().values():
        patterns = family.patterns.patterns
        if all(name_of(p) != name for p in patterns):
            continue
        try:
            compiled = family.compile([mutant if name_of(p) == name else p for p in patterns])
        except PatternError:
            return Tried(name, number, is_mutant=False)
        try:
            alive = lit_tests_pass(family, compiled)
            if alive and name.startswith("softmax_attention"):
                alive = variants_pass(mutant)
        except (PatternError, AssertionError):
            alive = False
        if not alive:
            return Tried(name, number)
    return Tried(name, number, survives=True)


def check_family(name: str) -> None:
    """Check that the tests of a pass use its patterns: they pass with them, and fail without any."""
    family = families()[name]
    assert lit_tests_pass(family, family.compile(family.patterns.patterns)), f"{family.tests} fail unchanged"
    assert not lit_tests_pass(family, family.compile(())), (
        f"{family.tests} pass without any pattern: is another set used?"
    )


def is_asked_for(pattern: str, pass_name: str, arguments: list[str], families_of: set[str]) -> bool:
    """Whether the arguments name the pass, the pattern, or the function that makes it; without arguments all are."""
    return not arguments or any(
        a in (pass_name, pattern) or (a in families_of and pattern.startswith(a)) for a in arguments
    )


def asked_for(arguments: list[str]) -> dict[str, list[str]]:
    """The patterns to mutate by the first pass that has them; raises `ValueError` for an unknown name."""
    known = families()
    patterns = {name: [name_of(p) for p in f.patterns.patterns] for name, f in known.items()}
    families_of = {family.name for f in known.values() for family in f.patterns.families}
    if unknown := set(arguments) - set(known) - set(itertools.chain(*patterns.values())) - families_of:
        raise ValueError(f"no pass or pattern {', '.join(sorted(unknown))}; passes: {', '.join(known)}")
    wanted = {p for name, own in patterns.items() for p in own if is_asked_for(p, name, arguments, families_of)}
    found: dict[str, list[str]] = {}
    for name, own in patterns.items():
        found[name] = [p for p in dict.fromkeys(own) if p in wanted]
        wanted -= set(own)
    return {name: own for name, own in found.items() if own}


def main(argv: Sequence[str] | None = None, folder: Path = ROOT / "build" / "mutate") -> int:
    """Mutate the named passes or patterns, or all; returns 1 if a mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate.run", description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="PASS | PATTERN", help="default: all")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    args = parser.parse_args(argv)
    try:
        patterns = asked_for(args.names)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / sources_digest()[:16]
    noticed = set(record.read_text().splitlines()) if record.exists() else set[str]()
    names = [p for own in patterns.values() for p in own]
    work = [(p, i) for p in names for i in range(len(mutants_of(p))) if f"{p} {i}" not in noticed]
    print(f"{sum(len(mutants_of(p)) for p in names)} mutants of {len(names)} patterns, {len(work)} to try", flush=True)
    start = time.perf_counter()
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool, record.open("a") as kept:
        checks = [pool.submit(check_family, name) for name in (patterns if work else ())]
        tried: list[Tried] = []
        for future in concurrent.futures.as_completed([pool.submit(try_mutant, *item) for item in work]):
            tried.append(future.result())
            if not tried[-1].survives:
                kept.write(f"{tried[-1].pattern} {tried[-1].number}\n")
                kept.flush()
            if len(tried) % 50 == 0:
                print(f"{len(tried)} tried, {time.perf_counter() - start:.0f} s", flush=True)
        for check in checks:
            check.result()
    survivors = sorted((t.pattern, t.number) for t in tried if t.survives)
    for pattern, number in survivors:
        print(f"  {pattern}: without '{mutants_of(pattern)[number].what}' every test passes")
    count = sum(t.is_mutant for t in tried)
    print(f"{count} mutants, {len(survivors)} survivors, {time.perf_counter() - start:.0f} s")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
