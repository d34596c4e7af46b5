"""Numbers with a scale, as torch.export writes them for models quantised by pt2e: `quantized_decomposed`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import bf16, f16, f32, i32
from xdsl.ir import Attribute, SSAValue

from ait_mlir.building.formulas import Value
from ait_mlir.compositions import functions
from ait_mlir.compositions.contraction import product
from ait_mlir.dialects.ait.dtypes import LARGEST, integer_range, is_float
from ait_mlir.dialects.ait.quantize import QUANTIZED, DequantizeOp, QuantizeOp, blocks_along
from ait_mlir.dialects.ait.types import shape_text, tensor_type
from ait_mlir.dims import Expr, const
from ait_mlir.importers.torch.call import Call, NotSupported, Row

Places = tuple[SSAValue, SSAValue | None, "Sequence[Expr] | None"]
"""A scale, a zero point, and the sizes of a block."""


def for_all(c: Call) -> Places:
    """One scale and one zero point, as numbers or as tensors of one element."""
    scale, zero = c["scale"], c["zero_point"]
    if isinstance(scale, float | int):
        if not scale > 0:
            raise NotSupported(f"the scale is {scale}, expected a number above 0")
        return c.w.scalar(float(scale), f32), None if zero == 0 else c.w.scalar(int(zero), i32), None
    return c.w.reshape(c.tensor("scale"), ()), c.w.reshape(c.tensor("zero_point"), ()), None


def for_slices(c: Call) -> Places:
    """A scale for each index of an axis."""
    x = tensor_type(c.tensor("input"))
    axis = c.axis("axis", x.rank)

    def along(value: SSAValue) -> SSAValue:
        return c.w.reshape(value, (x.dims[axis], *(1 for _ in range(x.rank - axis - 1))))

    zero = c.optional("zero_points")
    return along(c.tensor("scales")), None if zero is None else along(zero), None


def for_tokens(c: Call) -> Places:
    """A scale for each row."""
    return c.tensor("scales"), c.tensor("zero_points"), None


def for_groups(c: Call) -> Places:
    """A scale for each group of neighbours in a row."""
    rank = tensor_type(c.tensor("input")).rank
    blocks = (*(const(1) for _ in range(rank - 1)), c.size("group_size"))
    return c.tensor("scales"), c.optional("zero_points"), blocks


def _limits(c: Call, element: Attribute) -> tuple[int, int] | None:
    """The range of the stored numbers, if it is less than that of their type."""
    low, high = c["quant_min"], c["quant_max"]
    if not isinstance(low, int) or not isinstance(high, int):
        raise NotSupported("quant_min and quant_max are tensors, expected numbers")
    if is_float(element):
        if low > -LARGEST[element] or high < LARGEST[element]:
            raise NotSupported(f"numbers of {element} from {low} to {high} are not supported; leave out the limits")
        return None
    ends = integer_range(element) or (low, high)
    return None if low <= ends[0] and high >= ends[1] else (max(low, ends[0]), min(high, ends[1]))


def quantize(places: Callable[[Call], Places]) -> Row:
    """A row that quantises with the scales that `places` finds."""

    def row(c: Call) -> Value:
        element = c.element
        if element not in QUANTIZED:
            known = ", ".join(map(str, QUANTIZED))
            raise NotSupported(f"quantised numbers of {element} are not supported; expected one of {known}")
        x = c.tensor("input")
        scale, zero, blocks = places(c)
        made = c.w.put(QuantizeOp(x, scale, element, _zero(element, zero), blocks))
        limits = _limits(c, element)
        return made if limits is None else functions.clamp(c.w, made, *limits)

    return row


def _zero(element: Attribute, zero: SSAValue | None) -> SSAValue | None:
    """The zero point of integers; floats have none."""
    if zero is None or is_float(element):
        return None
    if is_float(tensor_type(zero).element_type):
        raise NotSupported("a zero point is a float, expected an integer")
    return zero


def dequantize(places: Callable[[Call], Places]) -> Row:
    """A row that gives the values of stored numbers, with the scales that `places` finds."""

    def row(c: Call) -> Value:
        x = c.tensor("input")
        scale, zero, blocks = places(c)
        return c.w.put(DequantizeOp(x, scale, c.element, _zero(tensor_type(x).element_type, zero), blocks))

    return row


def scaled_mm(c: Call) -> Value:
    """`torch._scaled_mm`: the product of the values of two matrices, with a scale for each whole, for rows of the first
    and columns of the second, or for blocks of 128."""
    if c.optional("scale_result") is not None:
        raise NotSupported("scale_result is not supported; scale the result by a product")
    return _scaled_product(c, c.tensor("scale_a"), c.tensor("scale_b"))


def scaled_mm_of_recipes(c: Call) -> Value:
    """`torch.nn.functional.scaled_mm`: as `scaled_mm`, with one scale for each matrix, in the order of its rows."""
    if c["contraction_dim"]:
        raise NotSupported("contraction_dim is not supported; transpose the matrices")
    scales: list[SSAValue] = []
    for name in ("a", "b"):
        if any(c[f"swizzle_{name}"]):
            raise NotSupported(f"swizzle_{name} is not supported; expected scales in the order of the matrix's rows")
        given = c[f"scale_{name}"]
        if len(given) != 1:
            raise NotSupported(f"scale_{name} has {len(given)} tensors, expected one")
        scales.append(c.w.full(given[0]))
    return _scaled_product(c, *scales)


def _scaled_product(c: Call, first: SSAValue, second: SSAValue) -> Value:
    """The product of the values of `self` and `mat2`, plus the bias if there is one."""
    operands = [_values(c, "self", "scale_a", first), _values(c, "mat2", "scale_b", second)]
    y = product(c.w, *operands, tf32=c.element in (f16, bf16))  # where the numbers are not multiplied as stored
    if (bias := c.optional("bias")) is not None:
        y = c.w.add(y, c.w.cast(bias, f32))
    return c.w.cast(y, c.element)


def _values(c: Call, name: str, scale_name: str, scale: SSAValue) -> SSAValue:
    """The values in f32 of a matrix with a scale."""
    x = c.tensor(name)
    dims, own = tensor_type(x).dims, tensor_type(scale).dims
    if tensor_type(scale).element_type != f32:
        raise NotSupported(f"{scale_name} has {tensor_type(scale).element_type}, expected f32")
    if all(d.as_int() == 1 for d in own):
        return c.w.put(DequantizeOp(x, c.w.reshape(scale, ()), f32))
    blocks: list[Expr] = []
    for dim, count in zip(dims, own, strict=False):
        sizes = [dim, const(1), const(128)]
        blocks += [size for size in sizes if c.w.scope.equal(blocks_along(dim, size), count)][:1]
    if len(blocks) != 2 or len(own) != 2:
        raise NotSupported(
            f"{scale_name} has shape {shape_text(own)} for {name} of {shape_text(dims)}; expected a scale for all, for "
            "each row or column, or for blocks of 128"
        )
    return c.w.put(DequantizeOp(x, scale, f32, blocks=blocks))


PLACES: dict[str, Callable[[Call], Places]] = {
    "per_tensor.default": for_all,
    "per_tensor.tensor": for_all,
    "per_channel.default": for_slices,
    "per_token.default": for_tokens,
    "per_channel_group.default": for_groups,
}
"""By the name of an overload, without the direction."""
ROWS: dict[str, Row] = {
    "aten._scaled_mm.default": scaled_mm,
    "aten._scaled_mm_v2.default": scaled_mm_of_recipes,
    **{f"quantized_decomposed.quantize_{name}": quantize(places) for name, places in PLACES.items()},
    **{f"quantized_decomposed.dequantize_{name}": dequantize(places) for name, places in PLACES.items()},
}
