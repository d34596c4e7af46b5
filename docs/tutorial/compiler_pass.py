"""Build a compiler pass in thirty lines.

This page is a program; run it from top to bottom:

    python docs/tutorial/compiler_pass.py

A model arrives with the logistic function written out, 1 / (1 + exp(-x)), because whoever wrote it had nothing better.
That is four ops where the dialect has one. We teach the compiler to see it, prove that nothing changed, and see what
happens to someone who is careless.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import decode
from ait_mlir.passes.checks.check_semantics import SemanticsChecker
from ait_mlir.rewrites.apply import rewrite
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns

# ** The model **
#
# Text is the whole truth about a model: dims, types, ops. `batch` is any number from 1 to 64.

MODEL = b"""
ait.graph @gate(%x: !ait.tensor<batch x 4 x f32>) dims {batch = 1 to 64} {
  %one = ait.constant 1.0 : !ait.tensor<f32>
  %0 = ait.neg %x : !ait.tensor<batch x 4 x f32>
  %1 = ait.exp %0 : !ait.tensor<batch x 4 x f32>
  %2 = ait.add %1, %one : !ait.tensor<batch x 4 x f32>
  %3 = ait.div %one, %2 : !ait.tensor<batch x 4 x f32>
  ait.output "y" %3 : !ait.tensor<batch x 4 x f32>
}
"""

# ** The pattern **
#
# A pattern says what to match, from the operands down to the last op, the root; then what must hold; then what to put
# in the root's place. `values` are any values, `require` names a constraint. Addition commutes but a pattern is taken
# literally, so there is one for each place that the exponential can stand in: `over` makes both.


@pattern(over=(0, 1))
def logistic(p: PatternBuilder, position: int) -> None:
    """1 / (1 + exp(-x)) = sigmoid(x)"""
    x, one, other = p.values(3)
    power = p.result(p.op("ait.exp", [p.result(p.op("ait.neg", [x]))]))
    total = p.result(p.op("ait.add", [other, power] if position else [power, other]))
    root = p.op("ait.div", [one, total])
    p.require("is_splat", one, IntegerAttr(1, i64))
    p.require("is_splat", other, IntegerAttr(1, i64))
    p.require("same_type", p.result(root), x)
    p.replace(root, p.new("ait.sigmoid", [x]))


# ** The pass **
#
# A pass has a name and changes a module. The engine compiles the patterns to one matcher and applies it until nothing
# matches; ops whose results nobody uses any more go away on the way.


class RecogniseSigmoid(ModulePass):
    """Replace written-out logistic functions by `ait.sigmoid`."""

    name = "recognise-sigmoid"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, patterns(logistic))


# ** The proof **
#
# What an op means is executable. The checker runs the model before and after, in float64, on random inputs, at the
# smallest and largest batch and at 0 and 1, and compares.


def apply_and_check(a_pass: ModulePass, model: bytes) -> tuple[ModuleOp, SemanticsChecker]:
    """The model after the pass, and what the checker found."""
    ctx = context()
    module = parse_source(ctx, decode(model, "model.mlir"))
    checker = SemanticsChecker(module)
    a_pass.apply(ctx, module)
    module.verify()
    checker.after(a_pass.name, module, lambda copy: a_pass.apply(ctx, copy))
    return module, checker


# ** The careless one **
#
# The same pattern without its conditions: it takes any numbers for the ones. On the model above it would do no harm,
# and a test with that model alone would never notice. So every constraint of a pattern needs a test that fails
# without it, and `make mutate` looks for those that have none.


@pattern()
def careless(p: PatternBuilder) -> None:
    """a / (exp(-x) + b) = sigmoid(x), which it is not"""
    x, one, other = p.values(3)
    power = p.result(p.op("ait.exp", [p.result(p.op("ait.neg", [x]))]))
    root = p.op("ait.div", [one, p.result(p.op("ait.add", [power, other]))])
    p.replace(root, p.new("ait.sigmoid", [x]))


class Careless(ModulePass):
    """Do not do this."""

    name = "careless"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, patterns(careless))


def main() -> None:
    module, checker = apply_and_check(RecogniseSigmoid(), MODEL)
    print(module)
    print(f"\n{checker.checks} comparisons, {len(checker.differences)} differences\n")

    threes = MODEL.replace(b"constant 1.0", b"constant 3.0")
    _, checker = apply_and_check(Careless(), threes)
    print(checker.differences[0])
    _, checker = apply_and_check(RecogniseSigmoid(), threes)
    print(f"with its conditions: {len(checker.differences)} differences\n")

    # ** From here **
    #
    # The pattern is IR itself. Kept in a file it runs without a line of Python:
    #
    #     ait-opt model.mlir -p 'apply-patterns{file="logistic.mlir"}' --check-semantics
    print(str(patterns(logistic).module()))


if __name__ == "__main__":
    main()
