"""Alternatives, optional parts, operands in any order, ranges of operands and finders: each, and nested."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from xdsl.dialects import pdl
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser

from ait_mlir.dialects.ait import AIT
from ait_mlir.ir.context import context
from ait_mlir.rewrites import families
from ait_mlir.rewrites.apply import universe
from ait_mlir.rewrites.engine.compile import CompiledPatterns, compile_patterns
from ait_mlir.rewrites.engine.driver import Match, Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, PatternFamily, pattern, patterns
from ait_mlir.rewrites.engine.registry import Registry, constraint, finder, native
from ait_mlir.rewrites.engine.steps import Universe
from tests.rewrites.support import parse, rewritten

T = "!ait.tensor<4 x f32>"


def graph(lines: list[str], *outputs: str) -> str:
    """A graph on %x and %y of operations without their types."""
    body = [f"{line} : {T}" for line in lines] + [f'ait.output "{name}" %{name} : {T}' for name in outputs]
    return f"ait.graph @f(%x: {T}, %y: {T}) {{\n" + "\n".join(body) + "\n}\n"


def graphs(count: int, size: int, unary: Sequence[str], binary: Sequence[str]) -> Iterator[str]:
    """Random graphs of which each operation reads some of the last few."""
    for seed in range(count):
        rng = random.Random(seed)
        values, lines = ["%x", "%y"], list[str]()
        for i in range(size):
            if rng.random() < 0.5:
                lines.append(f"%v{i} = ait.{rng.choice(unary)} {rng.choice(values[-3:])}")
            else:
                lines.append(f"%v{i} = ait.{rng.choice(binary)} {rng.choice(values[-3:])}, {rng.choice(values[-3:])}")
            values.append(f"%v{i}")
        yield graph(lines, f"v{size - 1}")


Found = tuple[str, tuple[object, ...]]


def found(compiled: CompiledPatterns, op: Operation) -> Found | None:
    """The pattern that matches an operation, and the arguments of its rewrite."""
    matcher = compiled.dispatch.get(type(op))
    result: tuple[int, Match, tuple[object, ...]] | None = None if matcher is None else matcher(Rewriter(), op)
    return None if result is None else (result[1].pattern, result[2])


def first_of(sets: list[CompiledPatterns], op: Operation) -> tuple[object, ...] | None:
    """The arguments of the first of some patterns that matches."""
    return next((match[1] for one in sets if (match := found(one, op)) is not None), None)


def same_matches(whole: PatternFamily, variants: list[PatternFamily], unary: int = 4) -> None:
    """One pattern finds, on random graphs, what its variants find that are tried in turn."""
    (traced,) = patterns(whole).patterns
    again = Parser(context(), str(patterns(whole).module())).parse_module()
    again.verify()
    compiled = compile_patterns([traced], universe())
    text = compile_patterns([op for op in again.body.block.ops if isinstance(op, pdl.PatternOp)], universe())
    singles = [compile_patterns(patterns(variant).patterns, universe()) for variant in variants]
    hits = 0
    for text_of_graph in graphs(100, 40, ("exp", "tanh", "neg", "relu")[:unary], ("add", "mul")):
        for op in parse(text_of_graph).walk():
            expected = first_of(singles, op)
            for form in (compiled, text):
                match = found(form, op)
                assert (None if match is None else match[1]) == expected
            hits += expected is not None
    assert hits > 10


def variant(function: Callable[[PatternBuilder], None], name: str = "variant") -> PatternFamily:
    function.__name__ = name
    return pattern()(function)


def test_either_is_its_alternatives_in_turn() -> None:
    @pattern()
    def whole(p: PatternBuilder) -> None:
        """relu(exp(x) or tanh(x) or neg(x)) + y"""
        x, y = p.values(2)
        inner = p.either(*(p.op(f"ait.{m}", [x]) for m in ("exp", "tanh", "neg")))
        root = p.op("ait.add", [p.op("ait.relu", [inner]), y])
        p.require("one_use", inner)
        p.replace(root, p.new("ait.mul", [x, y, inner]))

    def alone(mnemonic: str) -> PatternFamily:
        def function(p: PatternBuilder) -> None:
            x, y = p.values(2)
            inner = p.op(f"ait.{mnemonic}", [x])
            root = p.op("ait.add", [p.op("ait.relu", [inner]), y])
            p.require("one_use", p.result(inner))
            p.replace(root, p.new("ait.mul", [x, y, inner]))

        return variant(function)

    same_matches(whole, [alone(m) for m in ("exp", "tanh", "neg")])


def test_an_alternative_that_fails_later_makes_way_for_the_next() -> None:
    """Both operands are negations, but only the second one has no other use."""

    @pattern()
    def whole(p: PatternBuilder) -> None:
        x, y = p.values(2)
        inner = p.op("ait.neg", [x])
        root = p.op("ait.add", [inner, y], in_any_order=True)
        p.require("one_use", p.result(inner))
        p.replace(root, p.new("ait.sub", [y, x]))

    lines = ["%a = ait.neg %x", "%b = ait.neg %y", "%c = ait.add %a, %b"]
    for order in (lines[:2], lines[1::-1]):
        module, statistics = rewritten(graph([*order, lines[2]], "c", "a"), patterns(whole).patterns)
        assert statistics.applied == {"whole": 1}
        assert "ait.sub %a, %y" in str(module)


def test_any_order_is_both_orders() -> None:
    @pattern()
    def whole(p: PatternBuilder) -> None:
        """exp(x) * (y + tanh(z)), each in any order"""
        x, y, z = p.values(3)
        total = p.op("ait.add", [y, p.op("ait.tanh", [z])], in_any_order=True)
        root = p.op("ait.mul", [p.op("ait.exp", [x]), total], in_any_order=True)
        p.replace(root, p.new("ait.sub", [x, y, z]))

    def alone(outer: bool, inner: bool) -> PatternFamily:
        def function(p: PatternBuilder) -> None:
            x, y, z = p.values(3)
            tanh = p.op("ait.tanh", [z])
            total, exp = p.op("ait.add", [y, tanh] if inner else [tanh, y]), p.op("ait.exp", [x])
            root = p.op("ait.mul", [exp, total] if outer else [total, exp])
            p.replace(root, p.new("ait.sub", [x, y, z]))

        return variant(function)

    same_matches(whole, [alone(o, i) for o, i in product((True, False), repeat=2)], unary=2)


def test_choices_nest() -> None:
    """(exp(x) or exp(x) + c in any order, or x) inside of either of two operations, then a range."""

    @pattern()
    def whole(p: PatternBuilder) -> None:
        x, c, d = p.values(3)
        exp = p.op("ait.exp", [x])
        shifted = p.maybe(p.op("ait.add", [exp, c], in_any_order=True), p.result(exp))
        inner = p.either(p.op("ait.neg", [shifted]), p.op("ait.mul", [shifted, d]), x)
        root = p.op("ait.sub", [inner, p.rest()])
        p.require("one_use", shifted)
        p.apply(root, "note", root, x, c, d)

    def alone(kind: str, shift: str) -> PatternFamily:
        def function(p: PatternBuilder) -> None:
            x = inner = p.value()
            if kind:
                inner = p.op("ait.exp", [x])
                if shift:
                    inner = p.op("ait.add", [inner, p.value()] if shift == "right" else [p.value(), inner])
                p.require("one_use", p.result(inner))
                inner = p.op("ait.neg", [inner]) if kind == "neg" else p.op("ait.mul", [inner, p.value()])
            root = p.op("ait.sub", [inner, p.rest()])
            p.apply(root, "replace_by", root, x)

        return variant(function)

    kinds = [*product(("neg", "mul"), ("right", "left", "")), ("", "")]
    compiled = compile_patterns(patterns(whole).patterns, with_notes())
    singles = [compile_patterns(patterns(alone(*kind)).patterns, with_notes()) for kind in kinds]
    seen = set[int]()
    for text in graphs(300, 40, ("exp", "neg"), ("add", "mul", "sub")):
        for op in parse(text).walk():
            expected = [i for i, one in enumerate(singles) if found(one, op) is not None]
            match = found(compiled, op)
            assert (match is None) == (not expected)
            if match is not None:
                kind, shift = kinds[expected[0]]
                root, x, c, d = match[1]
                assert root is op and x is not None
                assert (c is not None) == bool(shift) and (d is not None) == (kind == "mul")
                seen.add(expected[0])
    assert len(seen) >= 6


@native
def replace_by(root: Operation, x: SSAValue) -> None:
    """Never called: only what it would be given matters."""


@native
def note(root: Operation, x: SSAValue, c: SSAValue | None, d: SSAValue | None) -> None:
    """Never called: only what it would be given matters."""


@finder
def users_of(value: SSAValue) -> Iterator[Operation]:
    """The users of a value, the latest first."""
    yield from reversed([use.operation for use in value.uses])


@constraint
def is_called(op: Operation, name: IntegerAttr) -> bool:
    """Whether the mnemonic of an operation has this many letters."""
    CALLS.append(op)
    return len(op.name) - len("ait.") == name.value.data


CALLS: list[Operation] = []


@native
def note_any(x: SSAValue, c: SSAValue, d: SSAValue) -> SSAValue:
    """Never called: only its match matters."""
    return x


@constraint
def differ(a: SSAValue, b: SSAValue) -> bool:
    """Whether two values are not the same."""
    return a is not b


def with_notes() -> Universe:
    """All that patterns may name, and the functions of this file."""
    operations = {op.name: op for op in AIT.operations}
    modules = (*families._MODULES, __name__)
    tables = [Registry(what, modules) for what in ("constraint", "native rewrite", "finder")]
    return Universe(operations, *tables)


def test_a_missing_value_is_left_out_and_not_asked_about() -> None:
    @pattern()
    def optional(p: PatternBuilder) -> None:
        x, c = p.values(2)
        exp = p.result(p.op("ait.exp", [x]))
        root = p.op("ait.relu", [p.maybe(p.op("ait.add", [exp, c]), exp)])
        p.require("differ", x, c)
        p.replace(root, p.new("ait.add", [x, x]))

    compiled = compile_patterns(patterns(optional).patterns, with_notes())
    lines = ["%a = ait.exp %x", "%b = ait.relu %a", "%c = ait.add %a, %y", "%d = ait.relu %c"]
    module = parse(graph([*lines, "%e = ait.add %a, %x", "%g = ait.relu %e"], "b", "d", "g"))
    assert [found(compiled, op) is not None for op in module.walk() if op.name == "ait.relu"] == [True, True, False]


def test_ranges_of_operands_hold_what_is_around() -> None:
    @pattern()
    def whole(p: PatternBuilder) -> None:
        """A concat with a negation anywhere starts with what comes after it"""
        before, after = p.rest(), p.rest()
        x = p.value()
        root = p.op("ait.concat", [before, p.op("ait.neg", [x]), after], {"dim": 0})
        p.replace(root, p.new("ait.concat", [after, x, before], {"dim": 0}))

    lines = ["%a = ait.neg %x", "%b = ait.exp %x", "%c = ait.tanh %y"]
    for order, expected in (("abc", "%b, %c, %x"), ("bac", "%c, %x, %b"), ("cba", "%x, %c, %b")):
        text = graph(lines, "a", "b", "c").replace(
            "ait.output",
            f"%o = ait.concat {', '.join(f'%{v}' for v in order)} dim 0 : {T.replace('4', '12')}\nait.output",
            1,
        )
        text = text.replace("\n}\n", f'\nait.output "o" %o : {T.replace("4", "12")}\n}}\n')
        module, statistics = rewritten(text, patterns(whole).patterns)
        assert statistics.applied == {"whole": 1}
        assert f"ait.concat {expected} dim 0" in str(module)


def test_all_results_are_all_operands() -> None:
    @pattern()
    def rejoin(p: PatternBuilder) -> None:
        x, dim = p.value(), p.attr()
        split = p.op("ait.split", [x], {"dim": dim}, results=None)
        root = p.op("ait.concat", [p.results(split)], {"dim": dim})
        p.replace(root, x)

    for order, count in (("%a, %b", 1), ("%b, %a", 0), ("%a", 0), ("%a, %b, %b", 0)):
        size = 2 * (order.count(",") + 1)
        text = f"""ait.graph @f(%x: {T}) {{
          %a, %b = ait.split %x dim 0 : !ait.tensor<2 x f32>, !ait.tensor<2 x f32>
          %c = ait.concat {order} dim 0 : !ait.tensor<{size} x f32>
          ait.output "c" %c : !ait.tensor<{size} x f32>
        }}"""
        assert rewritten(text, patterns(rejoin).patterns)[1].rewrites == count


def test_a_finder_is_tried_until_all_holds() -> None:
    @pattern()
    def whole(p: PatternBuilder) -> None:
        """exp(x), where x has another user with a name of four letters"""
        x = p.value()
        root = p.op("ait.exp", [x])
        other = p.find("users_of", x)
        p.require("is_called", other, IntegerAttr(4, i64))
        p.require("one_use", p.result(other))
        p.replace(root, p.result(other))

    compiled = compile_patterns(patterns(whole).patterns, with_notes())
    lines = ["%a = ait.tanh %x", "%b = ait.exp %x", "%c = ait.relu %x", "%d = ait.relu %y", "%e = ait.exp %y"]
    module = parse(graph([*lines, "%g = ait.neg %c", "%h = ait.neg %c"], "a", "b", "g", "h", "e", "d"))
    ops = {op.results[0].name_hint: op for op in module.walk() if op.results}
    matched = found(compiled, ops["b"])
    assert matched is not None and ops["a"].results[0] in matched[1]  # %c is used twice
    matched = found(compiled, ops["e"])
    assert matched is not None and ops["d"].results[0] in matched[1]
    text = Parser(context(), str(patterns(whole).module())).parse_module()
    text.verify()
    again = compile_patterns([op for op in text.body.block.ops if isinstance(op, pdl.PatternOp)], with_notes())
    assert found(again, ops["b"]) is not None and found(again, ops["h"]) is None


def test_priorities_hold_across_choices() -> None:
    """Patterns with the same alternatives share them; of those that match the highest benefit wins,
    whatever comes first.
    """

    def family(name: str, benefit: int, root: str, last: str) -> PatternFamily:
        def function(p: PatternBuilder) -> None:
            x = p.value()
            inner = p.either(*(p.op(f"ait.{m}", [x]) for m in ("exp", last)))
            p.replace(p.op(f"ait.{root}", [inner]), x)

        function.__name__ = name
        return pattern(benefit=benefit)(function)

    sets = [
        [family("low", 1, "relu", "tanh"), family("high", 2, "relu", "neg"), family("same", 1, "relu", "tanh")],
        [family("high", 2, "relu", "neg"), family("same", 1, "relu", "tanh"), family("low", 1, "relu", "tanh")],
    ]
    lines = ["%a = ait.exp %x", "%b = ait.tanh %x", "%c = ait.neg %x"]
    module = parse(graph([*lines, "%d = ait.relu %a", "%e = ait.relu %b", "%g = ait.relu %c"], "d", "e", "g"))
    roots = [op for op in module.walk() if op.name == "ait.relu"]
    for group, first in zip(sets, ("low", "same"), strict=True):
        compiled = compile_patterns(patterns(*group).patterns, universe())
        matched = [match[0] for op in roots if (match := found(compiled, op)) is not None]
        assert matched == ["high", first, "high"]


def test_what_follows_a_choice_stands_in_the_source_once() -> None:
    """Eight sums in any order in a row: the source grows by a piece for each, and matching tries each order once."""

    def family(depth: int) -> PatternFamily:
        def chain(p: PatternBuilder) -> None:
            value = x = p.value()
            for _ in range(depth):
                value = p.op("ait.add", [p.op("ait.exp", [value]), p.value()], in_any_order=True)
            p.replace(value, x)

        return pattern()(chain)

    sizes = [len(compile_patterns(patterns(family(depth)).patterns, universe()).source) for depth in (2, 4, 8)]
    assert sizes[2] - sizes[1] < 3 * (sizes[1] - sizes[0])
    compiled = compile_patterns(patterns(family(8)).patterns, universe())
    lines, value = list[str](), "x"
    for i in range(8):
        lines += [f"%e{i} = ait.exp %{value}", f"%a{i} = ait.add " + (f"%e{i}, %y" if i % 2 else f"%y, %e{i}")]
        value = f"a{i}"
    module = parse(graph(lines, value))
    assert found(compiled, [op for op in module.walk() if op.name == "ait.add"][-1]) is not None
