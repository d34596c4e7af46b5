"""Removes each constraint of each pattern in turn: some test must fail for each. Prints those that no test misses.

    python -m tests.mutate.run [FAMILY ...]

A mutant is a set of patterns with one precondition less: a constraint, a trait, a fixed attribute, or that two
operands are the same value. It is compiled and put in place of the family's set, and the family's tests run in this
process until one fails.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects import pdl
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation

from ait_mlir.dialects.ait_rt import AIT_RT
from ait_mlir.passes import remove_copies
from ait_mlir.rewrites.attention import ATTENTION, PIECES
from ait_mlir.rewrites.attention_heads import HEADS
from ait_mlir.rewrites.attention_masks import MASKS, TRIANGLES
from ait_mlir.rewrites.buffers import REMOVE_COPIES
from ait_mlir.rewrites.elementwise import ELEMENTWISE
from ait_mlir.rewrites.engine import apply
from ait_mlir.rewrites.engine.compile import CompiledPatterns, compile_patterns
from ait_mlir.rewrites.engine.errors import PatternError
from ait_mlir.rewrites.engine.language import PatternSet
from ait_mlir.rewrites.epilogue import EPILOGUE
from ait_mlir.rewrites.gemm import GATED_PRODUCTS, PARALLEL_GEMMS
from ait_mlir.rewrites.narrow import NARROW
from ait_mlir.rewrites.norm import NORM
from ait_mlir.rewrites.siblings import SIBLINGS
from ait_mlir.rewrites.simplify import SIMPLIFY
from tests.lit.runner import run_command, run_lines
from tests.rewrites.attention_cases import matching
from tests.rewrites.test_attention import VARIANTS, check_variant

LIT = Path(__file__).parents[2] / "lit_tests" / "rewrites"


@dataclass(frozen=True)
class Family:
    """A set of patterns and the text tests that must notice a change in it."""

    patterns: PatternSet
    tests: tuple[str, ...]
    operations: Iterable[type[Operation]] = ()
    """What the patterns match if not operations of `ait`."""

    def compile(self, patterns: Sequence[pdl.PatternOp]) -> CompiledPatterns:
        operations = {op.name: op for op in self.operations}
        return compile_patterns(patterns, apply.universe(operations or None))


FAMILIES = {
    "simplify": Family(
        SIMPLIFY, ("simplify.mlir", "views.mlir", "spellings.mlir", "rms_norm.mlir", "rotary.mlir", "rows.mlir")
    ),
    "narrow": Family(NARROW, ("narrow.mlir", "rms_norm.mlir", "rows.mlir")),
    "attention_heads": Family(HEADS, ("attention_heads.mlir",)),
    "attention_masks": Family(MASKS, ("attention_masks.mlir",)),
    "attention_triangles": Family(TRIANGLES, ("attention_masks.mlir",)),
    "epilogue": Family(EPILOGUE, ("epilogue.mlir",)),
    "norm": Family(NORM, ("norm.mlir",)),
    "gemm": Family(PARALLEL_GEMMS, ("gemm.mlir",)),
    "gates": Family(GATED_PRODUCTS, ("gate_products.mlir",)),
    "elementwise": Family(ELEMENTWISE, ("elementwise.mlir",)),
    "siblings": Family(SIBLINGS, ("siblings.mlir",)),
    "pieces": Family(PIECES, ("attention_pieces.mlir",)),
    "buffers": Family(REMOVE_COPIES, ("buffers.mlir",), tuple(AIT_RT.operations)),
}


@dataclass(frozen=True)
class Mutant:
    """A pattern with one precondition less."""

    what: str
    pattern: pdl.PatternOp


def mutants(pattern: pdl.PatternOp) -> Iterator[Mutant]:
    """All mutants of a pattern."""
    for index, op in enumerate(pattern.body.block.ops):
        if isinstance(op, pdl.ApplyNativeConstraintOp):
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
    names = list(target.attributeValueNames.data)
    values = list(target.attribute_values)
    name = names.pop(position)
    values.pop(position)
    new = pdl.OperationOp(target.opName, names, list(target.operand_values), values, list(target.type_values))
    copy.body.block.insert_op_before(new, target)
    target.op.replace_all_uses_with(new.op)
    target.detach()
    target.erase()
    assert isinstance(new.attributeValueNames, ArrayAttr)
    return Mutant(f"attribute {name.data} of {op_name(new)}", copy)


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
    original, original_copies = apply.compiled, remove_copies._compiled
    apply.compiled = lambda patterns: compiled if patterns is family.patterns else original(patterns)
    if family.patterns is REMOVE_COPIES:
        remove_copies._compiled = lambda: compiled
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
        apply.compiled, remove_copies._compiled = original, original_copies
    return True


def survivors_of(
    patterns: tuple[pdl.PatternOp, ...], survives: Callable[[int, pdl.PatternOp], bool]
) -> tuple[int, list[str]]:
    """How many mutants there are, and those that survive."""
    count, survivors = 0, []
    for index, pattern in enumerate(patterns):
        name = "" if pattern.sym_name is None else pattern.sym_name.data
        for mutant in mutants(pattern):
            count += 1
            try:
                alive = survives(index, mutant.pattern)
            except (PatternError, AssertionError):
                alive = False
            if alive:
                survivors.append(f"{name}: without '{mutant.what}' every test passes")
    return count, survivors


def run_lit_family(family: Family) -> tuple[int, list[str]]:
    """Mutate a family that text tests cover."""
    patterns = family.patterns.patterns
    assert lit_tests_pass(family, family.compile(patterns)), f"{family.tests} fail unchanged"

    def survives(index: int, mutant: pdl.PatternOp) -> bool:
        changed = [mutant if i == index else p for i, p in enumerate(patterns)]
        return lit_tests_pass(family, family.compile(changed))

    return survivors_of(patterns, survives)


def run_attention() -> tuple[int, list[str]]:
    """Mutate the attention patterns, each against the graphs of its variant."""

    def survives(index: int, mutant: pdl.PatternOp) -> bool:
        try:
            check_variant(mutant, matching(*VARIANTS[index]))
        except Exception:
            return False
        return True

    return survivors_of(ATTENTION.patterns, survives)


def main(arguments: list[str]) -> int:
    """Mutate the named families, or all; returns 1 if a mutant survives."""
    known = [*FAMILIES, "attention"]
    if unknown := set(arguments) - set(known):
        print(f"error: no family {', '.join(sorted(unknown))}; there are {', '.join(known)}", file=sys.stderr)
        return 1
    total, survivors = 0, []
    for name in arguments or known:
        start = time.perf_counter()
        count, found = run_attention() if name == "attention" else run_lit_family(FAMILIES[name])
        print(f"{name:12} {count:4} mutants, {len(found)} survive ({time.perf_counter() - start:.1f} s)")
        total += count
        survivors += found
    for line in survivors:
        print(f"  {line}")
    print(f"{total} mutants, {len(survivors)} survivors")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
