"""Operators that move elements and compute nothing: reshape, permute, expand, slices, split, concatenate."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.dialects.ait import view as ait
from ait_mlir.dialects.ait.syntax import int_list_attr
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.assume import exact_quotient
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.intvar import (
    DimLike,
    IntImm,
    IntVar,
    IntVarTensor,
    as_dim,
    maximum,
    merge_symbols,
    minimum,
    product,
    scope_from,
)
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "chunk", "concatenate", "concatenate_tanh", "dynamic_slice", "expand", "flatten", "getitem", "identity",
    "list_construct", "permute", "permute021", "permute0213", "permute102", "permute210", "reshape", "size",
    "split", "squeeze", "transpose", "tuple_construct", "unsqueeze",
]  # fmt: skip


class ViewOperator(Operator):
    """Base: helpers that reshape and permute."""

    def reshaped(self, x: Tensor, shape: Sequence[DimLike]) -> Tensor:
        return self.with_shape(ait.ReshapeOp, x, shape)

    def with_shape(
        self, op_class: type[ait.ReshapeOp] | type[ait.ExpandOp], x: Tensor, shape: Sequence[DimLike]
    ) -> Tensor:
        dims = [as_dim(dim) for dim in shape]
        type = TensorType.get([dim.expr for dim in dims], x.type.element_type)
        return self.emit_one(op_class, [x], None, [type], symbols=merge_symbols(*(dim.symbols for dim in dims)))

    def permuted(self, x: Tensor, order: Sequence[int]) -> Tensor:
        axes = [self.axis(x, dim) for dim in order]
        return self.emit_one(ait.PermuteOp, [x], {"permutation": int_list_attr(axes)})


class reshape(ViewOperator):
    """The same elements in row-major order in another shape; one dim may be -1 and follows from the others.

    Dims of `shape` that the input lacks, such as a new `IntVar`, follow from the number of elements.
    """

    def __call__(self, x: Tensor, shape: Sequence[DimLike]) -> Tensor:
        dims = list(shape)
        free = [i for i, dim in enumerate(dims) if dim == -1]
        if len(free) > 1:
            raise self.fail(f"only one dim can be -1, found {len(free)}")
        if free:
            total, known = product(x.shape()), product([dim for i, dim in enumerate(dims) if i != free[0]])
            try:
                dims[free[0]] = exact_quotient(total, known)
            except BuildError as error:
                if (number := _quotient_of_ranges(total, known)) is None:
                    raise self.fail(f"the dim that is -1 is not known: {error}") from None
                dims[free[0]] = number
        return self.finish(self.reshaped(x, dims))

    def _infer_shape(self, x_values: Sequence[int], shape: Sequence[int]) -> list[int]:
        """`shape` for a tensor of sizes `x_values`, with its -1 replaced by the size that follows from the others."""
        return [d.value() for d in reshape()(Tensor(shape=x_values), shape).shape() if isinstance(d, IntImm)]


def _quotient_of_ranges(total: IntVar, known: IntVar) -> int | None:
    """The constant quotient of both bounds of `total` and `known`, if `known` has dims that `total` lacks;
    else None.
    """
    if known.expr.symbols <= total.expr.symbols or not known.lower_bound():
        return None
    least, most = divmod(total.lower_bound(), known.lower_bound()), divmod(total.upper_bound(), known.upper_bound())
    return least[0] if least == most and not least[1] else None


class flatten(ViewOperator):
    """Join the dims from `start_dim` to `end_dim`, both included."""

    def __init__(self, start_dim: int = 0, end_dim: int = -1):
        self.start, self.end = start_dim, end_dim

    def __call__(self, x: Tensor) -> Tensor:
        start, end = self.axis(x, self.start), self.axis(x, self.end)
        if start > end:
            raise self.fail(f"start_dim {self.start} is behind end_dim {self.end}")
        dims = x.shape()
        return self.finish(self.reshaped(x, [*dims[:start], product(dims[start : end + 1]), *dims[end + 1 :]]))


class squeeze(ViewOperator):
    """Drop the dim `dim` if its size is the constant 1; with None, all dims of constant size 1."""

    def __init__(self, dim: int | None):
        self.dim = dim

    def __call__(self, x: Tensor) -> Tensor:
        chosen = range(x.rank) if self.dim is None else [self.axis(x, self.dim)]
        return self.finish(self.reshaped(x, [d for i, d in enumerate(x.shape()) if i not in chosen or d != 1]))


class unsqueeze(ViewOperator):
    """Add a dim of size 1 before `dim`."""

    def __init__(self, dim: int):
        self.dim = dim

    def __call__(self, x: Tensor) -> Tensor:
        dims = x.shape()
        at = self.axis(x, self.dim, extra=1)
        return self.finish(self.reshaped(x, [*dims[:at], 1, *dims[at:]]))


class permute(ViewOperator):
    """Reorder dims: dim i of the result is dim `dims[i]` of the input."""

    def __call__(self, x: Tensor, dims: Sequence[int]) -> Tensor:
        return self.finish(self.permuted(x, dims))


class transpose(ViewOperator):
    """Swap two dims."""

    def __call__(self, x: Tensor, dim0: int, dim1: int) -> Tensor:
        order = list(range(x.rank))
        a, b = self.axis(x, dim0), self.axis(x, dim1)
        order[a], order[b] = b, a
        return self.finish(self.permuted(x, order))


class permute021(ViewOperator):
    """Swap the last two dims."""

    def __call__(self, x: Tensor) -> Tensor:
        return self.finish(self.permuted(x, [*range(x.rank - 2), -1, -2]))


class fixed_permute(ViewOperator):
    """Base of permutes whose name gives the order of the dims."""

    order: tuple[int, ...] = ()

    def __call__(self, x: Tensor) -> Tensor:
        return self.finish(self.permuted(x, self.order))


class permute0213(fixed_permute):
    """(B, N, M, K) to (B, M, N, K)."""

    order = (0, 2, 1, 3)


class permute102(fixed_permute):
    """(B, N, M) to (N, B, M)."""

    order = (1, 0, 2)


class permute210(fixed_permute):
    """(B, N, M) to (M, N, B)."""

    order = (2, 1, 0)


class expand(ViewOperator):
    """Repeat dims of size 1, and add leading dims, to reach `shape`; -1 keeps a dim.

    `index_type` and `optimize_fixed_dims` are hints of AITemplate for its kernel, which the compiler does not need:
    they may be anything.
    """

    def __call__(
        self,
        tensor: Tensor,
        shape: Sequence[DimLike],
        index_type: object = "int64",
        optimize_fixed_dims: object = True,
    ) -> Tensor:
        missing = len(shape) - tensor.rank
        if missing < 0:
            raise self.fail(f"the target has {len(shape)} dims, fewer than the tensor's {tensor.rank}")
        dims = tensor.shape()
        target: list[DimLike] = []
        for i, dim in enumerate(shape):
            if dim == -1:
                if i < missing:
                    raise self.fail(f"dim {i} of the target is new, so it cannot be -1")
                dim = dims[i - missing]
            target.append(dim)
        return self.finish(self.with_shape(ait.ExpandOp, tensor, target))


class dynamic_slice(Operator):
    """The block from `start_indices` to `end_indices`, given for each dim; None means from the start, or to the end.

    Negative integers count from the end, and integers beyond the dim stop at it, as in Python.
    """

    def __call__(
        self, x: Tensor, start_indices: Sequence[DimLike | None], end_indices: Sequence[DimLike | None]
    ) -> Tensor:
        if not len(start_indices) == len(end_indices) == x.rank:
            counts = f"{len(start_indices)} starts and {len(end_indices)} ends"
            raise self.fail(f"needs a start and an end for each of {x.rank} dims, found {counts}")
        bounds = list(zip(start_indices, end_indices, x.shape(), strict=True))
        starts = [self._bound(start, 0, dim) for start, _, dim in bounds]
        ends = [self._bound(end, dim, dim) for _, end, dim in bounds]
        sizes = [self._size(start, end) for start, end in zip(starts, ends, strict=True)]
        type = TensorType.get([size.expr for size in sizes], x.type.element_type)
        offsets = [start.expr for start in starts]
        symbols = merge_symbols(*(dim.symbols for dim in (*starts, *sizes)))
        return self.finish(self.emit_one(ait.SliceOp, [x], {"offsets": offsets}, [type], symbols=symbols))

    @staticmethod
    def normalize_start_end_indices(dim_val: int, start: int, end: int) -> list[int]:
        """The indices counted from the start, with 0 <= start <= end <= dim_val, as Python slices a list.

        >>> dynamic_slice.normalize_start_end_indices(8, -3, 20)
        [5, 8]
        """
        first, last, _ = slice(start, end).indices(dim_val)
        return [first, max(first, last)]

    def _bound(self, index: DimLike | None, default: DimLike, dim: IntVar) -> IntVar:
        if index is None:
            return as_dim(default)
        if not isinstance(index, IntVar) and index < 0:
            return self._at_least(dim + index, 0)
        bound = as_dim(index)
        scope = scope_from(merge_symbols(bound.symbols, dim.symbols))
        return bound if scope.le(bound.expr, dim.expr) else minimum(bound, dim)

    def _at_least(self, dim: IntVar, low: int) -> IntVar:
        return dim if scope_from(dim.symbols).le(low, dim.expr) else maximum(dim, low)

    def _size(self, start: IntVar, end: IntVar) -> IntVar:
        return self._at_least(end - start, 0)


class split(Operator):
    """Cut along `dim`: into pieces of one size, the last one smaller, or into pieces of the given sizes."""

    def __call__(self, x: Tensor, split_size_or_sections: DimLike | Sequence[DimLike], dim: int = 0) -> list[Tensor]:
        axis = self.axis(x, dim)
        if isinstance(split_size_or_sections, IntVar | int):
            sizes = self._sizes(x.shape()[axis], split_size_or_sections)
        else:
            sizes = [as_dim(size) for size in split_size_or_sections]
        return self.cut(x, axis, sizes)

    def cut(self, x: Tensor, axis: int, sizes: Sequence[IntVar]) -> list[Tensor]:
        """Split along `axis` into `sizes`."""
        dims = x.type.dims
        types = [TensorType.get((*dims[:axis], size.expr, *dims[axis + 1 :]), x.type.element_type) for size in sizes]
        symbols = merge_symbols(*(size.symbols for size in sizes))
        self.outputs = self.emit(ait.SplitOp, [x], {"dim": axis}, types, symbols=symbols)
        self._attrs["output_masks"] = [True] * len(types)
        return self.outputs

    def remove_output_at(self, indices: int | Sequence[int]) -> None:
        """Drop pieces that nothing reads, by their positions in `_attrs["outputs"]`."""
        dropped = {indices} if isinstance(indices, int) else set(indices)
        if wrong := [i for i in dropped if not 0 <= i < len(self.outputs)]:
            raise self.fail(f"there is no output {wrong[0]}; there are {len(self.outputs)}")
        if used := [i for i in sorted(dropped) if self.outputs[i].users or self.outputs[i].is_output]:
            raise self.fail(f"output {used[0]} is read, so it cannot be removed")
        for i in dropped:
            self.outputs[i].sources.discard(self)
        masks = self._attrs["output_masks"]
        places = [place for place, there in enumerate(masks) if there]
        self._attrs["output_masks"] = [t and p not in {places[i] for i in dropped} for p, t in enumerate(masks)]
        left = [i for i in range(len(self.outputs)) if i not in dropped]
        self.outputs, self.made = [self.outputs[i] for i in left], [self.made[i] for i in left]

    def _sizes(self, dim: IntVar, size: DimLike) -> list[IntVar]:
        total, step = dim.expr.as_int(), as_dim(size).expr.as_int()
        if total is None or step is None:
            raise self.fail(f"the dynamic dim {dim} cannot be cut into pieces of {size}; give the sizes as a list")
        if step < 0 or (step == 0 and total):
            raise self.fail(f"the size of a piece is at least 1, found {step}")
        step = max(step, 1)
        return [as_dim(min(step, total - at)) for at in range(0, max(total, 1), step)]


class chunk(split):
    """Cut along `dim` into at most `chunks` pieces of one size, the last one smaller."""

    def __call__(self, input: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        axis = self.axis(input, dim)
        if chunks < 1:
            raise self.fail(f"the number of pieces is at least 1, found {chunks}")
        size = input.shape()[axis]
        if size.expr.as_int() is None:
            return self.cut(input, axis, [exact_quotient(size, chunks)] * chunks)
        return self.cut(input, axis, self._sizes(size, max(1, -(-size.upper_bound() // chunks))))


class concatenate(Operator):
    """Join tensors along `dim`; their other dims agree. `fast_cat` has no effect: selection chooses the kernel.

    As in PyTorch, an empty tensor of one dim joins tensors of any rank, to which it adds nothing. In a graph that is
    changed by hand, `_attrs["input_masks"]` says which of the inputs of the call remain in `_attrs["inputs"]`; zeros
    take the places of the others.
    """

    def __init__(self, fast_cat: bool = True):
        super().__init__()

    def __call__(self, inputs: Sequence[Tensor], dim: int = 0) -> Tensor:
        if not inputs:
            raise self.fail("needs at least one tensor")
        joined = list(inputs)
        if len({x.rank for x in inputs}) > 1:
            joined = [x for x in inputs if x.rank != 1 or x.type.dims[0].as_int() != 0]
        axis = self.axis(joined[0], dim)
        self._attrs |= {"concat_dim": axis, "input_masks": [True] * len(inputs), "original_inputs": list(inputs)}
        return self.finish(self.emit_one(ait.ConcatOp, joined, {"dim": axis}))


class concatenate_tanh(concatenate):
    """tanh of the joined tensors; arguments as in `concatenate`.

    The tanh of each tensor is written to its place in the result, so nothing is copied.
    """

    def __call__(self, inputs: Sequence[Tensor], dim: int = 0) -> Tensor:
        joined = super().__call__([elementwise(FuncEnum.TANH)(x) for x in inputs], dim)
        self._attrs["original_inputs"] = list(inputs)
        return joined


class identity(Operator):
    """The input itself, as another tensor."""

    def __call__(self, x: Tensor) -> Tensor:
        return self.finish(self.emit_one(ait.ReshapeOp, [x], None, [x.type]))


class size(Operator):
    """The dims of a tensor, or one of them, as values."""

    def __call__(self, x: Tensor, dim: int | None = None) -> list[IntVarTensor] | IntVarTensor:
        found = [IntVarTensor(d) for d in x.shape()]
        return found if dim is None else found[self.axis(x, dim)]


class getitem(Operator):
    """One element of a list or tuple; a negative index counts from the end."""

    def __call__(self, vals: Sequence[object], index: int) -> object:
        if not -len(vals) <= index < len(vals):
            raise BuildError(f"getitem: index {index} is out of range for {len(vals)} elements")
        return vals[index]


class list_construct(Operator):
    """A list of tensors or dims."""

    def __call__(self, *args: Tensor | IntVar) -> list[Tensor | IntVar]:
        return list(args)


class tuple_construct(Operator):
    """A tuple of tensors or dims."""

    def __call__(self, *args: Tensor | IntVar) -> tuple[Tensor | IntVar, ...]:
        return args
