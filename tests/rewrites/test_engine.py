"""The pattern language, its compiler and the worklist."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from xdsl.dialects import pdl
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.parser import Parser

from ait_mlir.ir.context import context
from ait_mlir.passes.pipelines import patterns_of
from ait_mlir.rewrites.apply import rewrite, universe
from ait_mlir.rewrites.attention import ATTENTION
from ait_mlir.rewrites.elementwise.merge import ELEMENTWISE
from ait_mlir.rewrites.engine.compile import CompiledPatterns, compile_patterns
from ait_mlir.rewrites.engine.driver import Rewriter, apply_patterns
from ait_mlir.rewrites.engine.language import PatternBuilder, PatternFamily, PatternSet, pattern, patterns
from ait_mlir.rewrites.families import CONSTRAINTS, NATIVES
from ait_mlir.rewrites.file import load_patterns
from ait_mlir.rewrites.gemm.epilogue import EPILOGUE
from ait_mlir.rewrites.gemm.products import PARALLEL_GEMMS
from ait_mlir.rewrites.norm import NORM
from tests.rewrites.support import names, parse, rewritten

SIMPLIFY = patterns_of("simplify")
OURS = SIMPLIFY + ATTENTION + PARALLEL_GEMMS + EPILOGUE + NORM + ELEMENTWISE
T = "!ait.tensor<4 x f32>"


def unary_chain(*mnemonics: str) -> str:
    """A graph of unary operations in a row."""
    lines = [f"%v{i + 1} = ait.{m} %v{i} : {T}" for i, m in enumerate(mnemonics)]
    return f"ait.graph @f(%v0: {T}) {{\n" + "\n".join(lines) + f'\nait.output "y" %v{len(mnemonics)} : {T}\n}}\n'


def chain_pattern(name: str, benefit: int, matched: Sequence[str], by: str) -> PatternFamily:
    """The last of a chain of unary operations, innermost first, is replaced by one operation on the chain's operand."""

    def function(p: PatternBuilder) -> None:
        x = value = p.value()
        op = None
        for mnemonic in matched:
            op = p.op(f"ait.{mnemonic}", [value])
            value = p.result(op)
        assert op is not None
        p.replace(op, p.new(f"ait.{by}", [x]))

    function.__name__ = name
    return pattern(benefit=benefit)(function)


# ** the language **


def test_patterns_are_pdl_that_reads_back() -> None:
    module = OURS.module()
    module.verify()
    again = Parser(context(), str(module)).parse_module()
    again.verify()
    assert module.is_structurally_equivalent(again)
    assert all(isinstance(op, pdl.PatternOp) for op in again.body.block.ops)


def test_text_of_a_pattern_applies_as_the_pattern() -> None:
    again = Parser(context(), str(SIMPLIFY.module())).parse_module()
    read = [op for op in again.body.block.ops if isinstance(op, pdl.PatternOp)]
    module, _ = rewritten(unary_chain("neg", "neg", "exp"), read)
    assert names(module) == ["ait.exp", "ait.output"]


def test_family_is_one_pattern_for_each_parameter() -> None:
    @pattern(over=(("add", 0), ("mul", 1)), benefit=3)
    def neutral(p: PatternBuilder, mnemonic: str, number: int) -> None:
        x, n = p.values(2)
        root = p.op(f"ait.{mnemonic}", [x, n])
        p.require("is_splat", n, number)
        p.replace(root, x)

    traced = patterns(neutral).patterns
    assert [p.sym_name.data for p in traced if p.sym_name] == ["neutral_add_0", "neutral_mul_1"]
    assert {p.benefit.value.data for p in traced} == {3}


def test_pattern_without_rewrite_is_refused() -> None:
    @pattern()
    def forgets(p: PatternBuilder) -> None:
        p.op("ait.neg", [p.value()])

    with pytest.raises(ValueError, match="'forgets' never replaces or erases its root"):
        patterns(forgets).patterns  # noqa: B018


def test_names_are_unique() -> None:
    found = [p.sym_name.data for p in OURS.patterns if p.sym_name]
    assert len(found) == len(OURS.patterns) == len(set(found))


@pytest.mark.parametrize("registry", [CONSTRAINTS, NATIVES], ids=["constraints", "natives"])
def test_registered_functions_say_what_they_do(registry: object) -> None:
    assert registry in (CONSTRAINTS, NATIVES)
    for entry in (CONSTRAINTS if registry is CONSTRAINTS else NATIVES).entries.values():
        assert entry.summary.endswith((".", ":", ",")) or len(entry.summary) > 20, entry.name


# ** which pattern applies **


def test_highest_benefit_wins_whatever_the_order() -> None:
    short = chain_pattern("short", 1, ["relu"], "tanh")
    long = chain_pattern("long", 2, ["exp", "relu"], "sigmoid")
    for families in ((short, long), (long, short)):
        module, statistics = rewritten(unary_chain("exp", "relu"), patterns(*families).patterns)
        assert statistics.applied == {"long": 1}
        assert names(module) == ["ait.sigmoid", "ait.output"]


def test_wrong_benefits_change_the_result() -> None:
    # what test_highest_benefit_wins_whatever_the_order checks, with the benefits exchanged
    short = chain_pattern("short", 2, ["relu"], "tanh")
    long = chain_pattern("long", 1, ["exp", "relu"], "sigmoid")
    module, statistics = rewritten(unary_chain("exp", "relu"), patterns(short, long).patterns)
    assert statistics.applied == {"short": 1}
    assert names(module) == ["ait.exp", "ait.tanh", "ait.output"]


def test_first_declared_wins_between_equals() -> None:
    first = chain_pattern("first", 1, ["exp", "relu"], "sigmoid")
    second = chain_pattern("second", 1, ["relu"], "tanh")
    for families in ((first, second), (second, first)):
        _, statistics = rewritten(unary_chain("exp", "relu"), patterns(*families).patterns)
        assert list(statistics.applied) == [families[0].name]


def matching(compiled: CompiledPatterns, op: Operation) -> str | None:
    """The name of the pattern that a compiled set would apply."""
    rewriter = Rewriter()
    matcher = compiled.dispatch.get(type(op))
    found = None if matcher is None else matcher(rewriter, op)
    return None if found is None else found[1].pattern


MNEMONICS = ("exp", "relu", "tanh", "neg")


@pytest.mark.parametrize("seed", range(20))
def test_merged_tree_agrees_with_patterns_one_by_one(seed: int) -> None:
    """Random overlapping patterns with random benefits, on random graphs: the tree finds what a search of all would."""
    rng = random.Random(seed)
    families: list[PatternFamily] = []
    for i in range(40):
        mnemonics = [rng.choice(MNEMONICS) for _ in range(rng.randint(1, 4))]
        families.append(constrained(f"p{i}", rng.randint(1, 4), mnemonics, rng.randint(0, 7)))
    traced = patterns(*families).patterns
    everything = compile_patterns(traced, universe())
    ranked = sorted(traced, key=lambda p: -p.benefit.value.data)
    singles = [compile_patterns([p], universe()) for p in ranked]
    module = parse(random_graph(rng, 80))
    hits = 0
    for op in module.walk():
        expected = next((name for s in singles if (name := matching(s, op)) is not None), None)
        assert matching(everything, op) == expected
        hits += expected is not None
    assert hits > 10


def constrained(name: str, benefit: int, matched: Sequence[str], flags: int) -> PatternFamily:
    """A chain with some constraints on its values and a fixed attribute on its root."""

    def function(p: PatternBuilder) -> None:
        x = value = p.value()
        op = None
        for depth, mnemonic in enumerate(matched):
            attrs = {"tag": flags & 1} if flags & 2 and depth == len(matched) - 1 else {}
            op = p.op(f"ait.{mnemonic}", [value], attrs)
            value = p.result(op)
            if flags >> depth & 1:
                p.require("one_use", value)
        if flags & 4:
            p.require("one_use", x)
        assert op is not None
        p.replace(op, x)

    function.__name__ = name
    return pattern(benefit=benefit)(function)


def random_graph(rng: random.Random, size: int) -> str:
    values = ["%x"]
    lines: list[str] = []
    for i in range(size):
        tag = f" {{tag = {rng.randint(0, 1)} : i64}}" if rng.random() < 0.5 else ""
        lines.append(f"%v{i} = ait.{rng.choice(MNEMONICS)} {rng.choice(values[-4:])}{tag} : {T}")
        values.append(f"%v{i}")
    return f"ait.graph @f(%x: {T}) {{\n" + "\n".join(lines) + f'\nait.output "y" {values[-1]} : {T}\n}}\n'


# ** the generated code **


def test_common_prefix_is_tested_once() -> None:
    families = [chain_pattern(f"p{i}", 1, [m, "exp", "tanh", "relu"], "neg") for i, m in enumerate(MNEMONICS)]
    compiled = compile_patterns(patterns(*families).patterns, universe())
    condition = "(o_0d_0d := o_0d_0.owner) is not None"
    assert sum(condition in line for line in compiled.source.splitlines()) == 1


def test_long_and_deeply_branching_patterns_compile() -> None:
    """A chain of 300 operations, and 120 patterns each of which leaves it one operation later than the one before."""
    length = 120
    families = [chain_pattern(f"p{i}", 1 + i, ["neg"] + ["exp"] * i, "tanh") for i in range(length)]
    families.append(chain_pattern("longest", 1_000, ["exp"] * 300, "sigmoid"))
    compiled = compile_patterns(patterns(*families).patterns, universe())
    module = parse(unary_chain("neg", *["exp"] * (length - 1)))
    ops = [op for op in module.walk() if op.name in ("ait.exp", "ait.neg")]
    assert [matching(compiled, op) for op in ops] == [f"p{i}" for i in range(length)]
    module = parse(unary_chain(*["exp"] * 300))
    assert matching(compiled, [op for op in module.walk() if op.name == "ait.exp"][-1]) == "longest"


HOSTILE = (
    *('"', "'", "\\", "\n", '"""', "'''", "{0}", "%s", "K1", "\0"),
    '" + __import__("os").system("touch owned") + "',
)


@pytest.mark.parametrize("text", HOSTILE)
def test_strings_never_become_code(text: str) -> None:
    """Attribute values and names and the pattern's name come from IR; none of them is in the generated source."""
    block_text = unary_chain("exp")

    @pattern()
    def hostile(p: PatternBuilder) -> None:
        x = p.value()
        root = p.op("ait.exp", [x], {text: StringAttr(text)})
        p.replace(root, p.new("ait.tanh", [x], {text: StringAttr(text)}))

    traced = list(patterns(hostile).patterns)
    traced[0].sym_name = StringAttr(text)
    compiled = compile_patterns(traced, universe())
    if text not in ("'", '"', "\\", "\n", "K1"):
        assert text not in compiled.source
    compile(compiled.source, "<test>", "exec")
    module = parse(block_text)
    (op,) = [op for op in module.walk() if op.name == "ait.exp"]
    assert matching(compiled, op) is None
    op.attributes[text] = StringAttr(text)
    assert matching(compiled, op) == text
    apply_patterns(module, compiled)
    (new,) = [op for op in module.walk() if op.name == "ait.tanh"]
    assert new.attributes[text] == StringAttr(text)


def test_strings_of_a_pattern_file_never_become_code(tmp_path: Path) -> None:
    """The same from text: an attribute that would touch a file if it were run as Python."""
    target = tmp_path / "owned"
    evil = f"\\22 + __import__(\\22os\\22).system(\\22touch {target}\\22) + \\22"
    file = tmp_path / "evil.mlir"
    file.write_text(
        f"""pdl.pattern @"{evil}" : benefit(1) {{
          %x = pdl.operand
          %t = pdl.type
          %a = pdl.attribute = "{evil}"
          %root = pdl.operation "ait.neg" (%x : !pdl.value) {{"{evil}" = %a}} -> (%t : !pdl.type)
          pdl.rewrite %root {{ pdl.replace %root with (%x : !pdl.value) }}
        }}"""
    )
    compiled = load_patterns(context(), file)
    assert "__import__" not in compiled.source and "touch" not in compiled.source
    module = parse(unary_chain("neg"))
    (neg,) = [op for op in module.walk() if op.name == "ait.neg"]
    apply_patterns(module, compiled)
    assert names(module) == ["ait.neg", "ait.output"]
    text = evil.replace("\\22", '"')
    neg.attributes[text] = StringAttr(text)
    apply_patterns(module, compiled)
    assert names(module) == ["ait.output"]
    assert not target.exists()


# ** the worklist **


def test_new_operations_stand_at_the_root_with_its_location() -> None:
    module = parse(unary_chain("neg", "neg", "exp", "sigmoid"))
    exp = next(op for op in module.walk() if op.name == "ait.exp")
    location = exp.location
    assert isinstance(location, FileLineColLoc)
    to_tanh = chain_pattern("to_tanh", 1, ["neg", "exp"], "tanh")
    apply_patterns(module, compile_patterns(patterns(to_tanh).patterns, universe()))
    (tanh,) = [op for op in module.walk() if op.name == "ait.tanh"]
    assert tanh.location == location
    assert names(module) == ["ait.neg", "ait.tanh", "ait.sigmoid", "ait.output"]


def test_regions_are_moved() -> None:
    module = parse(
        f"""ait.graph @f(%x: !ait.tensor<4 x 4 x f32>) {{
          %0 = ait.gemm rcr %x, %x epilogue() {{
          ^bb0(%acc: f32):
            %r = ait.relu %acc : f32
            ait.yield %r : f32
          }} : !ait.tensor<4 x 4 x f32>
          %1 = ait.exp %0 : {T.replace("4 x", "4 x 4 x")}
          ait.output "y" %1 : {T.replace("4 x", "4 x 4 x")}
        }}"""
    )
    before = next(op for op in module.walk() if op.name == "ait.relu")
    rewrite(module, EPILOGUE)
    after = next(op for op in module.walk() if op.name == "ait.relu")
    assert before is after


def test_long_chains_need_no_recursion_and_little_time() -> None:
    """A limit of 200 frames, and a chain of 4,000 operations that becomes one region."""
    module = parse(unary_chain(*["exp", "tanh"] * 2_000))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        statistics = rewrite(module, ELEMENTWISE)
    finally:
        sys.setrecursionlimit(limit)
    assert statistics.applied == {"outline": 4_000, "merge_with_producer": 3_999}
    assert names(module) == ["ait.fused_elementwise", "ait.output"]


def test_positions_stay_in_order() -> None:
    """Inserting 1,000 operations at one place, more often than the gap between two numbers can be halved."""
    module = parse(unary_chain("exp", "tanh"))
    tanh = next(op for op in module.walk() if op.name == "ait.tanh")
    rewriter = Rewriter()
    rewriter.root = tanh
    block = tanh.parent
    assert block is not None
    ops = list(block.ops)
    assert rewriter.is_before(ops[0], tanh)
    place = tanh
    for i in range(1_000):
        new = rewriter.create(type(ops[0]), [ops[0].results[0]], before=place)
        place = new if i % 2 else tanh
    assert all(rewriter.is_before(a, b) for a, b in pairwise(block.ops))


def test_dead_operations_go_and_others_stay() -> None:
    module, statistics = rewritten(
        f'ait.graph @f(%x: {T}) {{ %0 = ait.exp %x : {T}\n %1 = ait.tanh %0 : {T}\n ait.output "y" %x : {T} }}', []
    )
    assert names(module) == ["ait.output"]
    assert statistics.removed == 2


def test_a_use_that_goes_lets_another_pattern_match() -> None:
    """The relu can only join when the second use of its operand has gone, which happens after it was visited."""

    @pattern()
    def joins(p: PatternBuilder) -> None:
        inner = p.op("ait.exp", [p.value()])
        root = p.op("ait.relu", [p.result(inner)])
        p.require("one_use", p.result(inner))
        p.replace(root, p.new("ait.tanh", [p.result(inner)]))

    double = chain_pattern("double", 1, ["neg", "neg"], "sigmoid")
    text = f"""ait.graph @f(%x: {T}) {{
      %0 = ait.exp %x : {T}
      %1 = ait.relu %0 : {T}
      %2 = ait.neg %0 : {T}
      %3 = ait.max %2, %2 : {T}
      ait.output "y" %1 : {T}
    }}"""
    module, _ = rewritten(text, patterns(joins, double).patterns)
    assert names(module) == ["ait.exp", "ait.tanh", "ait.output"]


def test_sets_add_up() -> None:
    a, b = patterns(chain_pattern("a", 1, ["exp"], "tanh")), patterns(chain_pattern("b", 1, ["tanh"], "relu"))
    assert isinstance(a + b, PatternSet)
    module, _ = rewritten(unary_chain("exp"), (a + b).patterns)
    assert names(module) == ["ait.relu", "ait.output"]


def test_source_of_all_our_patterns_is_readable() -> None:
    compiled = compile_patterns(OURS.patterns, universe())
    assert isinstance(OURS.module(), ModuleOp)
    assert max(len(line) - len(line.lstrip()) for line in compiled.source.splitlines()) < 100
    assert len(compiled.names) == len(OURS.patterns)
