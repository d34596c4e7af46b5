"""Multiplies images whose channels come first without turning them.

A convolution with a window of one element is a product of each pixel with a weight, and pixels are rows only if the
channels come last. The planes of an image that are flattened are the rows of the other factor: weight @ planes gives
the planes of the result.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.elementwise import ElementwiseOp
from ait_mlir.dialects.ait.gemm import BmmOp, GemmOp
from ait_mlir.dialects.ait.syntax import rounding
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dialects.ait.view import PermuteOp, to_first, to_last
from ait_mlir.dims import const, product
from ait_mlir.rewrites.engine.driver import Rewriter
from ait_mlir.rewrites.engine.language import PatternBuilder, pattern, patterns
from ait_mlir.rewrites.engine.registry import constraint, native

LEAST_PLACES = 64
"""The fewest places of a plane: an image is a batch of its own, and a tile has so many columns."""
SPAN_BYTES = 16
"""The bytes of a whole access."""


@pattern()
def product_of_pixels(p: PatternBuilder) -> None:
    """permute(f(permute(x) @ w^T + b)) = f(w @ x + b'), where x and the result are channels-first images"""
    w = p.value()
    root = p.op("ait.gemm", [p.value(), w], {"layout": "rcr"})
    p.require("no_region", root)
    p.require("no_attribute", root, "kernel")
    p.require("follows_from_params", w)
    p.require("is_between_planes", root)
    p.apply(root, "product_of_planes", root)


PLANES = patterns(product_of_pixels)


# ** constraints and natives **


def ops_before(gemm: GemmOp) -> list[ElementwiseOp]:
    """The elementwise ops between the image and the product, the last one first. Each reads only the image and single
    numbers, and has one user.
    """
    found: list[ElementwiseOp] = []
    value = gemm.a
    while isinstance(op := value.owner, ElementwiseOp) and value.get_user_of_unique_use() is not None:
        images = [v for v in op.operands if not is_single(v)]
        if len(images) != 1 or images[0].type != value.type:
            break
        found.append(op)
        (value,) = images
    return found


def ops_behind(gemm: GemmOp) -> list[ElementwiseOp]:
    """The elementwise ops behind the product. Each is the only user of its predecessor and keeps its type; other
    operands have one element, or one for each channel."""
    found: list[ElementwiseOp] = []
    value: SSAValue = gemm.output
    while isinstance(op := value.get_user_of_unique_use(), ElementwiseOp) and op.results[0].type == value.type:
        if not all(v is value or is_single(v) or is_row(v, gemm) for v in op.operands):
            break
        found.append(op)
        value = op.results[0]
    return found


def is_single(value: SSAValue) -> bool:
    """Whether a value has one element."""
    return all(d.as_int() == 1 for d in tensor_type(value).dims)


def is_row(value: SSAValue, gemm: GemmOp) -> bool:
    """Whether a value has one element for each channel of the result."""
    *lead, last = tensor_type(value).dims or [const(1)]
    return all(d.as_int() == 1 for d in lead) and last is tensor_type(gemm.output).dims[-1]


def image_before(gemm: GemmOp) -> SSAValue | None:
    """The channels-first image [N, C, sizes...] of which each pixel is multiplied; None if there is none."""
    before, rank = ops_before(gemm), tensor_type(gemm.a).rank
    turned = next(v for v in before[-1].operands if not is_single(v)) if before else gemm.a
    turn = turned.owner
    return turn.input if isinstance(turn, PermuteOp) and rank > 2 and list(turn.order()) == to_last(rank) else None


def turn_behind(gemm: GemmOp) -> PermuteOp | None:
    """The permute to channels-first that alone reads the result; None if there is none."""
    last = [gemm, *ops_behind(gemm)][-1].results[0].get_user_of_unique_use()
    rank = tensor_type(gemm.output).rank
    return last if isinstance(last, PermuteOp) and list(last.order()) == to_first(rank) else None


def span_of(gemm: GemmOp) -> int:
    """The elements in a whole access."""
    return SPAN_BYTES // BY_IR[tensor_type(gemm.a).element_type].bytes


@constraint
def is_between_planes(gemm: GemmOp) -> bool:
    """The product reads pixels of a channels-first image, and its result becomes one. Rows of both images are whole
    accesses of 16 bytes, and so are rows or columns of the weight."""
    if image_before(gemm) is None or turn_behind(gemm) is None:
        return False
    scope, span, places = scope_of(gemm), span_of(gemm), product(tensor_type(gemm.a).dims[1:-1])
    whole = any(scope.divisible(d, span) for d in tensor_type(gemm.b).dims)
    return whole and scope.divisible(places, span) and scope.le(const(LEAST_PLACES), places)


@native
def product_of_planes(r: Rewriter, gemm: GemmOp) -> None:
    """Replace the product by one of the weight and the planes of the image, with the elementwise ops around it."""
    image, turn, before, behind = image_before(gemm), turn_behind(gemm), ops_before(gemm), ops_behind(gemm)
    assert image is not None and turn is not None, "product_of_planes needs is_between_planes"
    if behind:  # whose other operands may be defined after the product
        r.move(gemm, before=behind[-1])
    for op in reversed(before):
        operands = [v if is_single(v) else image for v in op.operands]
        image = r.create(type(op), operands, [image.type], op.properties | op.attributes).results[0]
    batch, depth, *sizes = tensor_type(image).dims
    planes = r.reshape(image, (*([] if batch.as_int() == 1 else [batch]), depth, product(sizes)))
    # The folded weight has rows that are whole accesses, along either of its dims.
    along = scope_of(gemm).divisible(depth, span_of(gemm))
    weight, layout = (gemm.b, "rrr") if along else (r.permute(gemm.b, [1, 0]), "crr")
    product_op = GemmOp if batch.as_int() == 1 else BmmOp
    y = r.op(product_op, weight, planes, properties={"layout": layout} | rounding(gemm), regions=1)
    channels = tensor_type(gemm.output).dims[-1]
    read: SSAValue = gemm.output
    for op in behind:
        operands = [y if v is read else v if is_single(v) else r.reshape(v, (channels, 1)) for v in op.operands]
        y = r.create(type(op), operands, [y.type], op.properties | op.attributes).results[0]
        read = op.results[0]
    r.replace(turn, [r.reshape(y, (batch, channels, *sizes))])
    replaced: list[Operation] = [gemm, *behind]
    for op in reversed(replaced):
        r.erase(op)
