"""Views: identities disappear, compositions become one, inverses cancel, transposes become layouts."""

from __future__ import annotations

from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns


@pattern(over=("reshape", "expand", "slice"))
def identity_view(p: PatternBuilder, mnemonic: str) -> None:
    """A reshape, expand or slice to the type it has already; a slice of full size starts at 0."""
    x = p.value()
    root = p.op(f"ait.{mnemonic}", [x])
    p.require("same_type", p.result(root), x)
    p.replace(root, x)


@pattern()
def identity_permute(p: PatternBuilder) -> None:
    """permute(x, [0, 1, 2]) = x"""
    x, order = p.value(), p.attr()
    root = p.op("ait.permute", [x], {"permutation": order})
    p.require("is_identity", order)
    p.replace(root, x)


@pattern()
def split_into_one(p: PatternBuilder) -> None:
    """split(x) into one part = x"""
    x = p.value()
    root = p.op("ait.split", [x], results=1)
    p.replace(root, x)


@pattern()
def concat_of_one(p: PatternBuilder) -> None:
    """concat(x) = x"""
    x = p.value()
    root = p.op("ait.concat", [x])
    p.replace(root, x)


@pattern(over=("reshape", "expand"))
def same_view_twice(p: PatternBuilder, mnemonic: str) -> None:
    """reshape(reshape(x)) = reshape(x), expand(expand(x)) = expand(x)"""
    x, t = p.value(), p.type()
    inner = p.op(f"ait.{mnemonic}", [x])
    root = p.op(f"ait.{mnemonic}", [p.result(inner)], types=[t])
    p.replace(root, p.new(f"ait.{mnemonic}", [x], types=[t]))


@pattern()
def permute_of_permute(p: PatternBuilder) -> None:
    """permute(permute(x, p), q) = permute(x, p[q])"""
    inner = p.op("ait.permute", [p.value()])
    root = p.op("ait.permute", [p.result(inner)])
    p.replace(root, "compose_permutes", inner, root)


@pattern()
def slice_of_slice(p: PatternBuilder) -> None:
    """slice(slice(x, p), q) = slice(x, p + q)"""
    inner = p.op("ait.slice", [p.value()])
    root = p.op("ait.slice", [p.result(inner)])
    p.replace(root, "compose_slices", inner, root)


@pattern()
def concat_of_split(p: PatternBuilder) -> None:
    """concat(split(x)) = x, of all parts in order and along the same dim"""
    x = p.value()
    split = p.op("ait.split", [x], results=None)
    root = p.op("ait.concat", [p.result(split), p.rest()])
    p.require("concatenates_all_of", root, split)
    p.replace(root, x)


@pattern()
def split_of_concat(p: PatternBuilder) -> None:
    """split(concat(x, y)) = x, y, where the parts are the operands"""
    concat = p.op("ait.concat")
    root = p.op("ait.split", [p.result(concat)], results=None)
    p.require("splits_back", root, concat)
    p.apply(root, "replace_by_operands", root, concat)


@pattern(over=(("gemm", 0), ("gemm", 1), ("bmm", 0), ("bmm", 1)))
def transpose_into_layout(p: PatternBuilder, mnemonic: str, position: int) -> None:
    """A contraction reads a transposed operand in the other layout instead."""
    order = p.attr()
    permute = p.op("ait.permute", [p.value()], {"permutation": order})
    operand = p.result(permute)
    root = p.op(f"ait.{mnemonic}", [*([p.value()] if position else []), operand, p.rest()])
    p.require("transposes_last_two", order)
    if (mnemonic, position) == ("gemm", 0):
        # The leading dims of A belong to M in layout r only.
        p.require("has_rank", operand, 2)
    p.require("no_attribute", root, "kernel")
    p.replace(root, "fold_transpose", permute, root)


VIEWS = patterns(
    identity_view,
    identity_permute,
    split_into_one,
    concat_of_one,
    same_view_twice,
    permute_of_permute,
    slice_of_slice,
    concat_of_split,
    split_of_concat,
    transpose_into_layout,
)
