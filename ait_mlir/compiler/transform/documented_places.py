"""Operators of the documented graph that read and write parts of other tensors, as they do in AITemplate's graph.

A reshape is left out if the operator next to it can address the elements by strides. A slice, and a split read by
products or concatenations, are also left out: their users read the original tensor. A result used only by a
concatenation is written directly into the concatenation's result: then several operators compute one tensor, and the
concatenation reads the remaining inputs, marked in its `_attrs["input_masks"]`. Elementwise operators that compute the
same function of the same elements become one. This graph is only for reading. The compiled program avoids more copies:
it works on buffers, with strides of any form (`transform_strided_ops`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, OpResult

from ait_mlir.compiler.transform.read_types import ReadTypes
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.view import ConcatOp, SliceOp, SplitOp
from ait_mlir.dims import Expr
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort
from ait_mlir.utils.graph_utils import get_sorted_ops

Dims = tuple[Expr, ...]

# AITemplate's operators, by the accesses in place that they support there.
VIEWS = frozenset({"reshape", "flatten", "squeeze", "unsqueeze"})
ROWS = ("fused_elementwise", "layernorm", "group_layernorm")
PRODUCTS = ("gemm_", "bmm_", "perm102_bmm_r")
ROW_MAJOR_BATCHES = ("bmm_rcr", "bmm_crr", "bmm_ccr", "bmm_rrr")
"""Batched products that write rows into a concatenation."""
REDUCTIONS = frozenset({"reduce_sum", "reduce_mean", "var", "vector_norm"})
OTHERWISE = ("permute", "softmax", "small_nk")
"""Parts of the names of products that accept only whole tensors."""
READ_SPLITS = frozenset({"bmm_rcr", "bmm_rcr_n1", "bmm_rrr_permute"})
"""Products that read the parts of a split in place."""


def place_operators(graph: Sequence[Tensor]) -> list[Tensor]:
    """The sorted graph with operators that read and write in place; its outputs stay the same tensors.

    Operators and tensors are those of `graph`; their inputs, outputs, sources and users change.
    """
    last = [t for t in graph if t.is_output] or [graph[-1]]
    places = _Places(get_sorted_ops(graph))
    while places.join_views():
        pass
    places.write_into_concatenations()
    places.read_splits()
    places.read_slices()
    places.merge_duplicates()
    places.name_apart()
    places.set_read_types()
    return toposort(last)


class _Places:
    """The operators of one graph, with the dims of each operator's inputs and outputs as it addresses them."""

    def __init__(self, operators: Sequence[Operator]):
        self.operators = list(operators)
        self.read = {op: [t.type.dims for t in op.inputs] for op in operators}
        self.made = {op: [t.type.dims for t in op.outputs] for op in operators}
        self.parts: dict[Operator, list[tuple[tuple[int, int], ...]]] = {op: [()] * len(op.inputs) for op in operators}
        """The axis and the start of each part that an operator reads, by the position of the input."""
        self.written: dict[Operator, list[tuple[int, int]]] = {op: [] for op in operators}
        """The axis and the start of each part that an operator writes."""
        self.joined: set[Tensor] = set()
        """The tensors that operators write in parts."""

    def named(self, *names: str) -> Iterator[Operator]:
        return (op for op in self.operators if op.attrs["op"] in names)

    def let_read(self, operator: Operator, before: Tensor, after: Tensor, *part: tuple[int, int]) -> None:
        """Let an operator read `after` instead of `before`, which is a view of it or the given `part` of it."""
        parts = self.parts[operator]
        for place, tensor in enumerate(operator.inputs):
            if tensor is before:
                parts[place] += part
        operator.replace_input_tensor(before, after)
        before.users.discard(operator)
        after.users.add(operator)

    def let_make(self, operator: Operator, before: Tensor, after: Tensor) -> None:
        """Let an operator compute `after` instead of its view `before`."""
        operator.outputs = [after if t is before else t for t in operator.outputs]
        before.sources.discard(operator)
        after.sources.add(operator)

    def remove(self, operator: Operator) -> None:
        for tensor in operator.inputs:
            tensor.users.discard(operator)
        for tensor in operator.outputs:
            tensor.sources.discard(operator)
        self.operators.remove(operator)

    # ** views **

    def join_views(self) -> bool:
        """Leave out reshapes next to operators that read or write by strides; returns whether there were any."""
        return any([self.join_view(op) for op in list(self.named(*VIEWS))])

    def join_view(self, view: Operator) -> bool:
        (source,), (result,) = view.inputs, view.outputs
        if _dynamic(source.type.dims) != _dynamic(result.type.dims):
            return False
        maker = _maker(source)
        if maker is not None and _writes(maker) and len(source.users) == 1 and not source.is_output:
            self.remove(view)
            self.let_make(maker, source, result)
            result.made_by = maker
            return True
        if result.is_output or (maker is not None and maker.attrs["op"].startswith("group_gemm")):
            return False
        readers = [user for user in result.users if _reads(user)]
        for user in readers:
            self.let_read(user, result, source)
        if not result.users:
            self.remove(view)
        return bool(readers)

    # ** concatenations **

    def write_into_concatenations(self) -> None:
        """Let operators write results used only by a concatenation directly into the concatenation's result."""
        for concat in list(self.named("concatenate")):
            (joined,) = concat.outputs
            axis = _axis(concat, joined)
            if axis is None or any(dim.as_int() is None for dim in joined.type.dims[axis:]):
                continue
            masks: list[bool] = []
            start = 0
            for tensor, dims in zip(concat.inputs, self.read[concat], strict=True):
                maker = _maker(tensor)
                once = concat.inputs.count(tensor) == 1 and len(tensor.users) == 1 and not tensor.is_output
                whole = once and dims == tensor.type.dims
                masks.append(not (maker is not None and whole and self.may_write(maker, tensor, axis)))
                if maker is not None and not masks[-1]:
                    tensor.users.discard(concat)
                    self.let_make(maker, tensor, joined)
                    self.joined.add(joined)
                    self.written[maker].append((axis, start))
                start += dims[axis].as_int() or 0
            concat.attrs["input_masks"] = masks
            concat.inputs = [t for t, reads in zip(concat.inputs, masks, strict=True) if reads]
            if not concat.inputs:
                self.remove(concat)

    def may_write(self, maker: Operator, tensor: Tensor, axis: int) -> bool:
        """Whether an operator can write its result into a part of a tensor that is longer along an axis."""
        name, dims = maker.attrs["op"], self.made[maker][maker.outputs.index(tensor)]
        if name.startswith("group_gemm"):
            return _rows_keep_their_stride(dims, tensor.type.dims, axis)
        if not _writes(maker):
            return False
        if name.startswith("gemm_"):
            inner = len(dims) <= 2 or axis == len(dims) - 1 or all(d.as_int() == 1 for d in dims[axis:-1])
            return inner and _rows_keep_their_stride(dims, tensor.type.dims, axis)
        if name.startswith("bmm_"):
            return name.startswith(ROW_MAJOR_BATCHES) and _rows_keep_their_stride(dims, tensor.type.dims, axis)
        if name.startswith("perm102_bmm_r"):
            return tensor.rank == 2 and axis == 1 and tensor.type.dims[0] is maker.inputs[0].type.dims[0]
        if name == "reduce_sum":
            before = self.read[maker][0]
            return dims[: len(before) - 1] == before[:-1]
        return True

    # ** splits and slices **

    def read_splits(self) -> None:
        """Let products and concatenations read the parts of a split in place, if that is possible for all parts."""
        for split in list(self.named("split")):
            (source,) = split.inputs
            axis = _axis(split, split.outputs[0])
            if axis is None or any(dim.as_int() is None for dim in source.type.dims[axis:]):
                continue
            start = 0
            reads: list[tuple[Operator, Tensor, int]] = []
            for part in split.outputs:
                reads += [(user, part, start) for user in part.users]
                start += part.type.dims[axis].as_int() or 0
            stays = any(part.is_output for part in split.outputs)
            if not stays and all(self.may_read_part(user, part, source, axis, at) for user, part, at in reads):
                for user, part, at in reads:
                    self.let_read(user, part, source, (axis, at))
                self.remove(split)

    def may_read_part(self, user: Operator, part: Tensor, source: Tensor, axis: int, start: int) -> bool:
        name, place = user.attrs["op"], user.inputs.index(part)
        if name == "concatenate":
            return self.read[user][place] == part.type.dims and _axis(user, user.outputs[0]) == axis
        if len(part.users) != 1:
            return False
        if name.startswith("group_gemm_r"):
            return axis == 1 and all(_maker(t) is _maker(part) for t in user.inputs[:: 3 if "bias" in name else 2])
        if name not in READ_SPLITS or not _rows_keep_their_stride(self.read[user][place], part.type.dims, axis):
            return False
        columns = [dims[-1].as_int() or 1 for dims in self.read[user][: 1 + (name == "bmm_rrr_permute")]]
        return name == "bmm_rcr_n1" or _aligned(part, start * _stride(source.type.dims, axis), *columns)

    def read_slices(self) -> None:
        """Let operators read slices along one constant dim in place."""
        for cut in list(self.named("dynamic_slice")):
            (source,), (result,) = cut.inputs, cut.outputs
            for user in list(result.users):
                if _reads(user) and (part := self.part_of_slice(user, source, result)) is not None:
                    self.let_read(user, result, source, part)
            if not result.users and not result.is_output:
                self.remove(cut)

    def part_of_slice(self, user: Operator, source: Tensor, result: Tensor) -> tuple[int, int] | None:
        """The axis and the start of a slice that an operator can read in place."""
        whole, part, name = source.type.dims, result.type.dims, user.attrs["op"]
        axes = [axis for axis, (w, p) in enumerate(zip(whole, part, strict=True)) if w is not p]
        if len(axes) != 1 or any(dim.as_int() is None for dim in whole[axes[0] :]):
            return None
        (axis,), place = axes, user.inputs.index(result)
        start = _start(result, axis)
        if start is None or not name.startswith(PRODUCTS):
            return None if start is None else (axis, start)
        if not name.startswith(("gemm_rcr", "bmm_")) or place > 1 or len(part) < 2:
            return None
        if name.startswith("gemm_") and len(self.made[user][0]) > 2 and axis != len(whole) - 1:
            return None
        aligned = _aligned(result, start * _stride(whole, axis), whole[-1].as_int() or 1)
        return (axis, start) if aligned and _rows_keep_their_stride(self.read[user][place], part, axis) else None

    # ** duplicates **

    def merge_duplicates(self) -> None:
        """Merge elementwise operators that compute the same function of the same elements."""
        found: dict[object, Operator] = {}
        for operator in list(self.named("fused_elementwise")):
            read = zip(operator.inputs, self.read[operator], self.parts[operator], strict=True)
            kept = found.setdefault((operator.attrs["name"], *read), operator)
            if kept is not operator:
                self.remove(operator)
                for tensor, same in zip(operator.outputs, kept.outputs, strict=False):
                    self.take_over(kept, tensor, same)

    def take_over(self, kept: Operator, tensor: Tensor, same: Tensor) -> None:
        """Let the users of `tensor` read the equal `same`; if that is not possible, `kept` computes both."""
        apart = self.joined.isdisjoint((tensor, same)) and tensor.type == same.type and not tensor.is_output
        if not apart:
            kept.outputs = [*kept.outputs, tensor]
            tensor.sources.add(kept)
            return
        for user in list(tensor.users):
            self.let_read(user, tensor, same)

    # ** read types **

    def set_read_types(self) -> None:
        """Set `max_read_t`, `read_types`, `op_t` and `data_t` of elementwise operators."""
        for op in self.named("fused_elementwise"):
            numbers: list[int] = []
            for tensor, dims, parts in zip(op.inputs, self.read[op], self.parts[op], strict=True):
                for axis, start in parts:
                    whole = tensor.type.dims
                    numbers += [start * _stride(whole, axis), _stride(whole, axis - 1), _stride(dims, axis - 1)]
            for axis, start in self.written[op]:
                whole, dims = op.outputs[0].type.dims, self.made[op][0]
                numbers += [start * _stride(whole, axis), _stride(whole, axis - 1), _stride(dims, axis - 1)]
            funcs = [inner.attrs.get("func") for inner in op.attrs.get("elementwise_ops") or ()]
            dtype = op.inputs[0].dtype() if op.inputs else op.outputs[0].dtype()
            if (found := ReadTypes.of(dtype, self.read[op], self.made[op][0], numbers, funcs)) is not None:
                op.attrs.update(vars(found))

    # ** names **

    def name_apart(self) -> None:
        """Restore the original names of operators whose parts differ from those of another operator of the same
        name."""
        found: dict[str, object] = {}
        for operator in self.operators:
            where = self.parts[operator], self.written[operator]
            if found.setdefault(operator.attrs["name"], where) != where:
                operator.attrs["name"] = operator.attrs.get("original_name") or operator.attrs["name"]


def _maker(tensor: Tensor) -> Operator | None:
    """The operator that computes a tensor; None for an input, and for a tensor that several operators write."""
    return next(iter(tensor.sources)) if len(tensor.sources) == 1 else None


def _writes(operator: Operator) -> bool:
    """Whether the operator writes its result by strides."""
    name: str = operator.attrs["op"]
    products = name.startswith(PRODUCTS) and not any(word in name for word in OTHERWISE)
    return products or name.startswith(ROWS) or name in REDUCTIONS


def _reads(operator: Operator) -> bool:
    """Whether the operator reads its operands by strides."""
    name: str = operator.attrs["op"]
    products = name.startswith(PRODUCTS) and not any(word in name for word in OTHERWISE)
    return products or name.startswith(ROWS) or name in ("concatenate", "permute021")


def _dynamic(dims: Dims) -> set[Expr]:
    return {dim for dim in dims if dim.as_int() is None}


def _op(tensor: Tensor) -> Operation | None:
    return tensor.value.owner if isinstance(tensor.value, OpResult) else None


def _axis(operator: Operator, result: Tensor) -> int | None:
    """The dim along which a concatenation joins, or a split cuts."""
    op = _op(result)
    return op.dim.value.data if isinstance(op, ConcatOp | SplitOp) else None


def _start(result: Tensor, axis: int) -> int | None:
    op = _op(result)
    return op.offsets.data[axis].as_int() if isinstance(op, SliceOp) else None


def _stride(dims: Dims, axis: int) -> int:
    """The elements from one index of a constant dim to the next."""
    return math.prod(dim.as_int() or 0 for dim in dims[axis + 1 :])


def _aligned(tensor: Tensor, *elements: int) -> bool:
    """Whether loads of 4 bytes may start at these distances in elements."""
    return BY_IR[tensor.type.element_type].bytes >= 4 or math.gcd(*elements) % 2 == 0


def _rows_keep_their_stride(seen: Dims, stored: Dims, axis: int) -> bool:
    """Whether rows of a tensor that an operator sees with the dims `seen` stay equally far apart in memory, if the
    tensor is stored as a part, along `axis`, of a larger tensor.

    `stored` are the dims in memory. The steps in memory at `axis` must be those of a dim in `seen`, and a row must not
    cross the end of a part.
    """
    if any(dim.as_int() is None for dim in stored[axis:]):
        return False
    ends = {_stride(stored, i - 1) for i in range(axis, len(stored))}
    row = seen[-1].as_int()
    if row not in ends and row != 1:
        return False
    for first in reversed(range(len(seen))):
        if any(dim.as_int() is None for dim in seen[first:]):
            return False
        if _stride(seen, first - 1) == _stride(stored, axis - 1):
            return True
    return False
