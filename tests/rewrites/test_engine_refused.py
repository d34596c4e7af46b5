"""Patterns that are refused, and those whose application is an error: each with its place or its name."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from xdsl.dialects import pdl
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from ait_mlir.ir.context import context
from ait_mlir.rewrites.apply import universe
from ait_mlir.rewrites.engine.compile import compile_patterns
from ait_mlir.rewrites.engine.errors import PatternError, RewriteError
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from tests.rewrites.support import rewritten
from tests.rewrites.test_engine import chain_pattern, unary_chain
from tests.rewrites.test_engine_choices import T, with_notes


def refused(function: Callable[[PatternBuilder], None], message: str) -> None:
    """The pattern is refused at a line of this file."""
    with pytest.raises(PatternError, match=message) as caught:
        compile_patterns(patterns(pattern()(function)).patterns, with_notes())
    line = re.match(rf"{re.escape(__file__)}:(\d+): ", str(caught.value))
    assert line is not None
    first = function.__code__.co_firstlineno
    assert first < int(line[1]) <= first + 12


def test_fewer_than_two_alternatives_are_refused() -> None:
    for count in (0, 1):

        def few(p: PatternBuilder, count: int = count) -> None:
            x = p.either(*p.values(count))
            p.replace(p.op("ait.exp", [x]), x)

        refused(few, f"an any-of needs at least two alternatives, got {count}")


def test_an_any_of_without_alternatives_in_text_is_refused() -> None:
    text = """pdl.pattern : benefit(1) {
      %t = pdl.type
      %e = pdl.apply_native_constraint "either"( : ) : !pdl.value
      %root = pdl.operation "ait.exp" (%e : !pdl.value) -> (%t : !pdl.type)
      pdl.rewrite %root { pdl.replace %root with (%e : !pdl.value) }
    }"""
    with pytest.raises(PatternError, match="an any-of without alternatives"):
        compile_patterns(
            [op for op in Parser(context(), text).parse_module().walk() if isinstance(op, pdl.PatternOp)], universe()
        )


def optional_sum(p: PatternBuilder) -> tuple[SSAValue, SSAValue, SSAValue]:
    """exp(x) + c or exp(x)."""
    x, c = p.values(2)
    exp = p.result(p.op("ait.exp", [x]))
    return x, c, p.maybe(p.op("ait.add", [exp, c]), exp)


def test_a_missing_value_is_refused_where_it_must_exist() -> None:
    def as_replacement(p: PatternBuilder) -> None:
        _, c, total = optional_sum(p)
        p.replace(p.op("ait.relu", [total]), c)

    def as_operand_of_the_match(p: PatternBuilder) -> None:
        x, c, total = optional_sum(p)
        p.replace(p.op("ait.add", [total, p.op("ait.neg", [c])]), x)

    def as_operand_of_a_new_operation(p: PatternBuilder) -> None:
        x, c, total = optional_sum(p)
        p.replace(p.op("ait.relu", [total]), p.new("ait.mul", [x, c]))

    def as_argument_of_a_native(p: PatternBuilder) -> None:
        x, c, total = optional_sum(p)
        p.replace(p.op("ait.relu", [total]), "note_any", x, x, c)

    def as_argument_of_a_finder(p: PatternBuilder) -> None:
        x, c, total = optional_sum(p)
        root = p.op("ait.relu", [total])
        p.require("one_use", p.result(p.find("users_of", c)))
        p.replace(root, x)

    for function in (
        as_replacement,
        as_operand_of_the_match,
        as_operand_of_a_new_operation,
        as_argument_of_a_native,
        as_argument_of_a_finder,
    ):
        refused(function, "only some alternatives")


def test_order_and_ranges_that_say_nothing_are_refused() -> None:
    def of_a_difference(p: PatternBuilder) -> None:
        x, y = p.values(2)
        p.replace(p.op("ait.sub", [x, y], in_any_order=True), x)

    def of_one_operand(p: PatternBuilder) -> None:
        x = p.value()
        p.replace(p.op("ait.exp", [x], in_any_order=True), x)

    def ranges_in_a_row(p: PatternBuilder) -> None:
        x = p.value()
        p.replace(p.op("ait.concat", [x, p.rest(), p.rest()]), x)

    def unknown_finder(p: PatternBuilder) -> None:
        x = p.value()
        root = p.op("ait.exp", [x])
        p.replace(root, p.result(p.find("user_of", x)))

    refused(of_a_difference, "'ait.sub' have an order")
    refused(of_one_operand, "exactly two")
    refused(ranges_in_a_row, "next to each other")
    refused(unknown_finder, "did you mean 'users_of'")


def test_an_any_of_that_nothing_reads_is_refused() -> None:
    def unread(p: PatternBuilder) -> None:
        x, y = p.values(2)
        chosen = p.either(x, y)
        p.require("one_use", chosen)
        p.replace(p.op("ait.add", [x, y]), x)

    refused(unread, "no operand of the match is this any-of")


# ** in text, and in use **


def expect_error(text: str, message: str) -> None:
    module = Parser(context(), text).parse_module()
    found = [op for op in module.body.block.ops if isinstance(op, pdl.PatternOp)]
    with pytest.raises(PatternError, match=message):
        compile_patterns(found, universe())


def test_operation_out_of_reach() -> None:
    expect_error(
        """pdl.pattern : benefit(1) {
          %x = pdl.operand
          %t = pdl.type
          %a = pdl.operation "ait.neg" (%x : !pdl.value) -> (%t : !pdl.type)
          %b = pdl.operation "ait.exp" (%x : !pdl.value) -> (%t : !pdl.type)
          pdl.rewrite %a { pdl.replace %a with (%x : !pdl.value) }
        }""",
        "cannot be reached from the root",
    )


def test_two_roots() -> None:
    expect_error(
        """pdl.pattern : benefit(1) {
          %x = pdl.operand
          %t = pdl.type
          %a = pdl.operation "ait.neg" (%x : !pdl.value) -> (%t : !pdl.type)
          %b = pdl.operation "ait.exp" (%x : !pdl.value) -> (%t : !pdl.type)
          pdl.rewrite { pdl.replace %a with (%x : !pdl.value) }
        }""",
        "2 possible roots",
    )


def test_runaway_pattern_is_named() -> None:
    forever = chain_pattern("forever", 1, ["neg"], "neg")
    with pytest.raises(RewriteError, match=r"pattern 'forever' was applied .* does not come to an end"):
        rewritten(unary_chain("neg", "exp"), patterns(forever).patterns)


def test_wrong_type_of_a_new_operation_is_an_error() -> None:
    @pattern()
    def mixes(p: PatternBuilder) -> None:
        x = p.value()
        root = p.op("ait.cast", [x])
        p.replace(root, p.new("ait.add", [x, p.result(root)]))

    half = "!ait.tensor<4 x f16>"
    text = f'ait.graph @f(%x: {T}) {{ %0 = ait.cast %x : {half}\n ait.output "y" %0 : {half} }}'
    with pytest.raises(RewriteError, match=r"'mixes' cannot be applied to 'ait.cast': .*rhs has element type f16"):
        rewritten(text, patterns(mixes).patterns)


def test_native_rewrite_on_another_operation_is_an_error() -> None:
    @pattern()
    def misuses(p: PatternBuilder) -> None:
        inner = p.op("ait.neg", [p.value()])
        root = p.op("ait.exp", [p.result(inner)])
        p.replace(root, "compose_permutes", inner, root)

    with pytest.raises(RewriteError, match=r"pattern 'misuses' cannot be applied to 'ait.exp'"):
        rewritten(unary_chain("neg", "exp"), patterns(misuses).patterns)
