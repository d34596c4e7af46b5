"""Matrix products by the ranks and element types of their operands."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.dialects.ait.dtypes import accumulator_type, is_byte, is_float
from ait_mlir.dialects.ait.elementwise import CastOp, MulOp, SubOp
from ait_mlir.dialects.ait.gemm import BmmOp, GemmOp, ScaledGemmOp, StoredGemmOp
from ait_mlir.dialects.ait.index import EmbeddingOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.dims import const
from ait_mlir.dims import product as extent

ONE = const(1)


def product(w: Writer, x: SSAValue, y: SSAValue, tf32: bool = False) -> SSAValue:
    """x @ y, of at least 2 dims each, batches broadcast."""
    rank, element = tensor_type(y).rank, tensor_type(x).element_type
    if is_byte(element):
        return w.cast(product_of_bytes(w, x, y), element)
    if not is_float(element):
        return _integer_product(w, x, w.permute(y, [*range(rank - 2), rank - 1, rank - 2]))
    op = GemmOp if rank == 2 else BmmOp
    return w.op(op, x, y, properties={"layout": "rrr", "tf32": tf32}, regions=1)


def product_with_rows(w: Writer, x: SSAValue, weight: SSAValue, tf32: bool = False) -> SSAValue:
    """x @ weight^T, for a weight of 2 dims."""
    element = tensor_type(x).element_type
    if is_byte(element):
        return w.cast(product_of_bytes(w, x, weight, rows=True), element)
    if not is_float(element):
        return _integer_product(w, x, weight)
    return w.op(GemmOp, x, weight, properties={"layout": "rcr", "tf32": tf32}, regions=1)


def product_of_bytes(w: Writer, x: SSAValue, y: SSAValue, rows: bool = False) -> SSAValue:
    """x @ y of integers of 8 bits in i32, of at least 2 dims each; with `rows` x @ y^T."""
    op = GemmOp if tensor_type(y).rank == 2 else BmmOp
    return w.op(op, x, y, properties={"layout": "rcr" if rows else "rrr"}, regions=1)


def stored_product(
    w: Writer, x: SSAValue, numbers: SSAValue, scale: SSAValue, zero: SSAValue | None, group: int, signed: bool
) -> SSAValue:
    """x @ weight^T for a weight of 2 dims in 4 or 8 bits, as `ait.stored_gemm` has it, in the type of x."""
    dims = tensor_type(x).dims
    flat = w.reshape(x, (extent(dims[:-1]), dims[-1]))
    y = w.put(StoredGemmOp(flat, numbers, scale, zero, group, signed))
    return w.reshape(y, (*dims[:-1], tensor_type(numbers).dims[0]))


def block_scaled_product(
    w: Writer,
    x: SSAValue,
    y: SSAValue,
    rows: SSAValue,
    columns: SSAValue,
    group: int,
    block: int,
    element: Attribute,
) -> SSAValue:
    """x @ y^T of 8-bit floats with scales of blocks, as `ait.scaled_gemm` has it, in a float type; y has 2 dims."""
    dims = tensor_type(x).dims
    flat = w.reshape(x, (extent(dims[:-1]), dims[-1]))
    scales = w.cast(w.reshape(rows, (extent(dims[:-1]), tensor_type(rows).dims[-1])), f32)
    made = ScaledGemmOp(flat, y, scales, w.cast(columns, f32), group, block)
    if element != f32:
        inner = Block(arg_types=[f32])
        inner.args[0].name_hint = "acc"
        inner.add_op(YieldOp(inner.args[0]))
        plain, made = made, made.with_epilogue((), Region(inner), element)
        plain.erase()
    return w.reshape(w.put(made, infer=False), (*dims[:-1], tensor_type(y).dims[0]))


def for_columns(w: Writer, value: SSAValue, rows: bool) -> SSAValue:
    """A number for each column of y, reshaped from broadcasting to y to broadcasting to the product x @ y.

    With `rows`, a number for each row of y, and the product x @ y^T.
    """
    dims = tensor_type(value).dims
    return w.reshape(value, (*dims[:-2], dims[-1], dims[-2])) if rows and len(dims) > 1 else value


def centred_product(
    w: Writer,
    x: SSAValue,
    y: SSAValue,
    x_zero: SSAValue | None,
    y_zero: SSAValue | None,
    rows: bool = False,
    scales: Sequence[SSAValue] = (),
    element: Attribute = i32,
) -> SSAValue:
    """(x - x_zero) @ (y - y_zero) of 8-bit integers, summed in i32; with `rows` (x - x_zero) @ (y - y_zero)^T.

    With `scales` the product is multiplied by them, and has the float type `element`. The zero points broadcast to x
    and y and are equal along the summed dim; the scales broadcast to the product. Floats of 8 bits have no zero points.
    The zero points are subtracted after the product, by sums of rows and columns: those of a weight are known before
    the run.
    """
    op_class = GemmOp if tensor_type(y).rank == 2 else BmmOp
    plain = op_class("rcr" if rows else "rrr", x, y)
    sum_type = accumulator_type(tensor_type(x).element_type)
    block, beside = Block(arg_types=[sum_type]), list[SSAValue]()
    value: SSAValue = block.args[0]
    value.name_hint = "acc"

    def scalar(tensor: SSAValue) -> SSAValue:
        beside.append(tensor)
        return block.insert_arg(tensor_type(tensor).element_type, len(block.args))

    def put(op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    if y_zero is not None:
        sums = w.reduce("sum", w.cast(x, i32), [tensor_type(x).rank - 1])
        sums = w.reshape(sums, (*tensor_type(sums).dims, ONE))
        moved = put(MulOp(scalar(sums), scalar(for_columns(w, w.cast(y_zero, i32), rows))))
        value = put(SubOp(value, moved))
    if x_zero is not None:
        wide = w.cast(y, i32)
        if y_zero is not None:
            wide = w.sub(wide, w.cast(y_zero, i32))
        sums = w.reduce("sum", wide, [tensor_type(y).rank - (1 if rows else 2)])
        dims = tensor_type(sums).dims
        moved = put(MulOp(scalar(w.cast(x_zero, i32)), scalar(w.reshape(sums, (*dims[:-1], ONE, dims[-1])))))
        value = put(SubOp(value, moved))
    if element != i32:
        wide_element = f64 if element == f64 else f32
        if sum_type != wide_element:
            value = put(CastOp(value, wide_element))
        for scale in scales:
            value = put(MulOp(value, scalar(w.cast(scale, wide_element))))
    if value is block.args[0]:
        return w.put(plain)
    block.add_op(YieldOp(value))
    product = plain.with_epilogue(beside, Region(block), element)
    plain.erase()
    return w.put(product)


def _integer_product(w: Writer, x: SSAValue, y: SSAValue) -> SSAValue:
    """x [..., m, k] @ y^T, y [..., n, k], of integers, which wrap: sums of elementwise products."""
    s, t = tensor_type(x).dims, tensor_type(y).dims
    products = w.mul(w.reshape(x, (*s[:-1], ONE, s[-1])), w.reshape(y, (*t[:-2], ONE, *t[-2:])))
    return w.reduce("sum", products, [tensor_type(products).rank - 1])


def product_along(w: Writer, x: SSAValue, axis: int, matrix: SSAValue) -> SSAValue:
    """The product of x and a matrix over any axis of x."""
    rank = tensor_type(x).rank
    order = [*(a for a in range(rank) if a != axis), axis]
    turned = w.permute(x, order)
    y = product(w, w.reshape(turned, (ONE, *tensor_type(turned).dims)) if rank == 1 else turned, matrix)
    y = w.reshape(y, tensor_type(y).dims[1:]) if rank == 1 else y
    return w.permute(y, [order.index(a) for a in range(rank)])


def einsum(w: Writer, terms: Sequence[str], result: str, values: Sequence[SSAValue]) -> SSAValue:
    """The sum of products over all letters that the result lacks; a term has a letter for each dim of its value.

    Operands are joined from the left, each two by one batched product.
    """
    parts = [_without_repeats(w, term, value) for term, value in zip(terms, values, strict=True)]
    term, value = parts[0]
    for i, (other, next_value) in enumerate(parts[1:], 1):
        later = set(result).union(*(t for t, _ in parts[i + 1 :]))
        term, value = _joined(w, term, value, other, next_value, later)
    term, value = _summed(w, term, value, set(result))
    if set(term) != set(result) or len(term) != len(result):
        raise w.unsupported(f"the result {result!r} of an einsum has letters that no operand has, or one twice")
    return w.permute(value, [term.index(letter) for letter in result])


def _without_repeats(w: Writer, term: str, value: SSAValue) -> tuple[str, SSAValue]:
    """An operand with the diagonal of dims that have the same letter."""
    while twice := next((letter for letter in term if term.count(letter) > 1), None):
        first = term.index(twice)
        second = term.index(twice, first + 1)
        dims = tensor_type(value).dims
        others = [a for a in range(len(term)) if a not in (first, second)]
        moved = w.permute(value, [first, second, *others])
        size, rest = dims[first], [dims[a] for a in others]
        rows = w.reshape(moved, (size * size, *rest))
        places = w.mul(w.places(size), w.number(size + 1, i64))
        value = w.reshape(w.put(EmbeddingOp(w.reshape(rows, (size * size, extent(rest))), places)), (size, *rest))
        term = twice + "".join(term[a] for a in others)
    return term, value


def _summed(w: Writer, term: str, value: SSAValue, kept: Collection[str]) -> tuple[str, SSAValue]:
    """An operand summed over the letters that nothing else has."""
    axes = [a for a, letter in enumerate(term) if letter not in kept]
    return "".join(letter for letter in term if letter in kept), w.reduce("sum", value, axes) if axes else value


def _joined(w: Writer, s: str, x: SSAValue, t: str, y: SSAValue, later: Collection[str]) -> tuple[str, SSAValue]:
    """Two operands as one: a batched product over the letters that both have and nothing else."""
    s, x = _summed(w, s, x, {*t, *later})
    t, y = _summed(w, t, y, {*s, *later})
    batch = [letter for letter in s if letter in t and letter in later]
    inner = [letter for letter in s if letter in t and letter not in later]
    rows, columns = ([letter for letter in a if letter not in b] for a, b in ((s, t), (t, s)))
    sizes = dict(zip(t, tensor_type(y).dims, strict=True))
    sizes |= {
        letter: d
        for letter, d in zip(s, tensor_type(x).dims, strict=True)
        if sizes.get(letter, ONE) is ONE or d is not ONE
    }

    def flat(term: str, value: SSAValue, order: Sequence[Sequence[str]]) -> SSAValue:
        """The value with its dims in groups; a dim of 1 that broadcasts is expanded."""
        letters = [letter for group in order for letter in group]
        moved = w.permute(value, [term.index(letter) for letter in letters])
        whole = w.expand(moved, [sizes[letter] for letter in letters])
        return w.reshape(whole, [extent([sizes[letter] for letter in group]) for group in order])

    a = flat(s, x, (batch, rows, inner))
    b = flat(t, y, (batch, inner, columns))
    z = product(w, a, b)
    return "".join((*batch, *rows, *columns)), w.reshape(z, [sizes[n] for n in (*batch, *rows, *columns)])
