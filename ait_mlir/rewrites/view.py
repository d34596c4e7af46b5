"""Views: identities disappear, compositions become one, inverses cancel, transposes become layouts."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.dialects.ait.dtypes import is_float8
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.syntax import int_list, int_list_attr
from ait_mlir.dialects.ait.types import ShapeAttr, tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, ReshapeOp, SliceOp
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native


@pattern(over=("reshape", "expand", "slice"))
def identity_view(p: PatternBuilder, mnemonic: str) -> None:
    """A reshape, expand or slice whose result has its input's type is the input; a slice of full size starts at 0."""
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
def permute_between_reshapes(p: PatternBuilder) -> None:
    """reshape(permute(reshape(x))) = reshape(permute(x)), if both reshapes only add or remove dims of 1

    Sums of products over several operands (`einsum`) are written so.
    """
    inner = p.op("ait.reshape", [p.value()])
    permute = p.op("ait.permute", [p.result(inner)])
    root = p.op("ait.reshape", [p.result(permute)])
    p.require("keeps_long_dims", inner)
    p.require("keeps_long_dims", root)
    p.replace(root, "permute_long_dims", inner, permute, root)


@pattern()
def slice_of_slice(p: PatternBuilder) -> None:
    """slice(slice(x, p), q) = slice(x, p + q)"""
    inner = p.op("ait.slice", [p.value()])
    root = p.op("ait.slice", [p.result(inner)])
    p.replace(root, "compose_slices", inner, root)


@pattern()
def concat_of_split(p: PatternBuilder) -> None:
    """concat(split(x)) = x, of all parts in order and along the same dim"""
    x, dim = p.value(), p.attr()
    split = p.op("ait.split", [x], {"dim": dim}, results=None)
    root = p.op("ait.concat", [p.results(split)], {"dim": dim})
    p.replace(root, x)


@pattern(over=(("gemm", 0), ("gemm", 1), ("bmm", 0), ("bmm", 1)))
def transpose_into_layout(p: PatternBuilder, mnemonic: str, position: int) -> None:
    """A contraction reads a transposed operand in the other layout instead."""
    order = p.attr()
    permute = p.op("ait.permute", [p.value()], {"permutation": order})
    operand = p.result(permute)
    root = p.op(f"ait.{mnemonic}", [*([p.value()] if position else []), operand, p.rest()])
    if mnemonic == "bmm":  # two dims can only be transposed, or stay, which `identity_permute` removes
        p.require("transposes_last_two", order)
    if (mnemonic, position) == ("gemm", 0):
        # The leading dims of A belong to M in layout r only.
        p.require("has_rank", operand, 2)
    p.require("no_attribute", root, "kernel")
    p.require("may_turn", root, position)
    p.replace(root, "fold_transpose", permute, root)


VIEWS = patterns(
    identity_view,
    identity_permute,
    split_into_one,
    concat_of_one,
    same_view_twice,
    permute_of_permute,
    permute_between_reshapes,
    slice_of_slice,
    concat_of_split,
    transpose_into_layout,
)


# ** constraints **


@constraint
def is_identity(permutation: ArrayAttr[Attribute]) -> bool:
    """The permutation moves nothing."""
    order = int_list(permutation)
    return order == tuple(range(len(order)))


@constraint
def transposes_last_two(permutation: ArrayAttr[Attribute]) -> bool:
    """The permutation reverses the order of the two dims that it puts last."""
    order = int_list(permutation)
    return len(order) >= 2 and order[-2] > order[-1]


def _long_dims(value: SSAValue) -> list[int]:
    """The dims that are not always 1."""
    return [i for i, d in enumerate(tensor_type(value).dims) if d.as_int() != 1]


@constraint
def keeps_long_dims(reshape: ReshapeOp) -> bool:
    """The reshape only adds or removes dims of 1: the others stay in their order."""
    before, after = ([tensor_type(v).dims[i] for i in _long_dims(v)] for v in (reshape.operands[0], reshape.results[0]))
    return before == after


@constraint
def along_last_dim(op: Operation) -> bool:
    """A concat or split along the last dim."""
    dim = op.properties.get("dim")
    return isinstance(dim, IntegerAttr) and dim.value.data == tensor_type(op.operands[0]).rank - 1


# ** natives **


@native
def compose_permutes(r: Rewriter, inner: PermuteOp, outer: PermuteOp) -> Operation:
    """One permute for a permute of a permute."""
    first, second = inner.order(), outer.order()
    order = int_list_attr([first[i] for i in second])
    return r.create(PermuteOp, [inner.operands[0]], [outer.results[0].type], {"permutation": order})


@native
def permute_long_dims(r: Rewriter, inner: ReshapeOp, permute: PermuteOp, root: ReshapeOp) -> Operation:
    """One reshape of the first input, permuted with its dims of 1 last unless the other dims stay in order."""
    x = inner.operands[0]
    of_x, of_inner = _long_dims(x), _long_dims(inner.results[0])
    order = [of_x[of_inner.index(i)] for i in permute.order() if i in of_inner]
    if order != of_x:
        x = r.permute(x, [*order, *(i for i in range(tensor_type(x).rank) if i not in of_x)])
    return r.create(ReshapeOp, [x], [root.results[0].type])


@native
def compose_slices(r: Rewriter, inner: SliceOp, outer: SliceOp) -> Operation:
    """One slice for a slice of a slice: the offsets add up."""
    offsets = [a + b for a, b in zip(inner.offsets.data, outer.offsets.data, strict=True)]
    return r.create(SliceOp, [inner.operands[0]], [outer.results[0].type], {"offsets": ShapeAttr(tuple(offsets))})


@constraint
def may_turn(root: ContractionOp, position: IntegerAttr) -> bool:
    """An operand may be read in the other layout: one of 8-bit floats must have rows along k."""
    along_k = root.layout.data[position.value.data] == "rc"[position.value.data]
    return not (along_k and is_float8(tensor_type(root.a).element_type))


@native
def fold_transpose(r: Rewriter, permutation: PermuteOp, root: ContractionOp) -> Operation:
    """A contraction that reads its operand, transposed in the last two dims, in the other layout.

    The permutation's last two dims are exchanged; an identity permutation that results disappears.
    """
    order = list(permutation.order())
    order[-2:] = [order[-1], order[-2]]
    source = permutation.results[0]
    layout = list(root.layout.data)
    position = 0 if root.operands[0] is source else 1
    layout[position] = "r" if layout[position] == "c" else "c"
    operands = list(root.operands)
    operands[position] = r.permute(permutation.operands[0], order)
    attributes = root.properties | root.attributes | {"layout": StringAttr("".join(layout))}
    return r.create(type(root), operands, [root.output.type], attributes, [root.detach_region(root.epilogue)])
