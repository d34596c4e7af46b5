"""Loops with carried values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait import scan as ait
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.frontend.intvar import Symbols, merge_symbols
from ait_mlir.frontend.operator import Operator, calls_of_its_own
from ait_mlir.frontend.tensor import STEP, Tensor, handle_of

__all__ = ["scan"]

Step = Callable[..., tuple[Sequence[Tensor], Sequence[Tensor]]]


class scan(Operator):
    """Run `step` once for each index along `dim`, in order, and carry values from one step to the next.

    >>> def cell(x, h):
    ...     h = ops.tanh(x + ops.gemm_rcr()(h, weight))
    ...     return [h], [h]
    >>> [last], [states] = ops.scan(cell)([sequence], [initial])

    `step` is called once, with a slice of each scanned tensor, without the dim, and the carried values. It returns the
    carried values of the next step, of the same types, and slices of the stacked results. Tensors from outside may be
    used in it. `reverse` begins at the last index; slices stay where their index is. A call returns the carried values
    after the last step and the stacked results. Raises `BuildError` for a carried value that changes its type, and
    tensors of different lengths.
    """

    def __init__(self, step: Callable[..., object], dim: int = 0, reverse: bool = False):
        self.step = cast(Step, step)
        self.dim = dim
        self.reverse = reverse

    def __call__(self, xs: Sequence[Tensor], init: Sequence[Tensor] = ()) -> tuple[list[Tensor], list[Tensor]]:
        if not xs:
            raise self.fail("needs a tensor to take slices of")
        axis = self.axis(xs[0], self.dim)
        slices = [self._slice(x, axis) for x in xs]
        carried = [_placeholder(t.type, t.symbols) for t in init]
        carried_next, outputs = self._called(slices, carried)
        results = [*carried_next, *outputs]
        body, captured = step_region([t.value for t in (*slices, *carried)], [t.value for t in results])
        operands = [*xs, *init, *(cast(Tensor, handle_of(v)) for v in captured)]
        segments = DenseArrayBase.from_list(i32, [len(xs), len(init), len(captured)])
        properties = {"dim": axis, "reverse": self.reverse, "operandSegmentSizes": segments}
        length = xs[0].type.dims[axis]
        types = [t.type for t in init]
        for t in (output.type for output in outputs):
            types.append(TensorType.get((*t.dims[:axis], length, *t.dims[axis:]), t.element_type))
        symbols = merge_symbols(*(t.symbols for t in results))
        made = self.emit(ait.ScanOp, operands, properties, types, [body], symbols)
        self.outputs = made
        return made[: len(init)], made[len(init) :]

    def _slice(self, x: Tensor, axis: int) -> Tensor:
        if x.rank <= axis:
            raise self.fail(f"dim {axis} is out of range for a tensor of rank {x.rank}")
        dims = x.type.dims
        return _placeholder(TensorType.get((*dims[:axis], *dims[axis + 1 :]), x.type.element_type), x.symbols)

    def _called(self, slices: list[Tensor], carried: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        with calls_of_its_own():
            found = self.step(*slices, *carried)
        if not isinstance(found, tuple) or len(found) != 2:  # pyright: ignore[reportUnnecessaryComparison, reportUnnecessaryIsInstance]
            raise self.fail(f"a step returns two lists, carried values and slices of results; found {found!r}")
        parts = [list(part) for part in found]
        for tensor in (*parts[0], *parts[1]):
            if not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise self.fail(f"a step returns tensors, found {tensor!r}")
        if len(parts[0]) != len(carried):
            raise self.fail(f"{len(carried)} values are carried, a step returns {len(parts[0])}")
        return parts[0], parts[1]


def step_region(arguments: Sequence[SSAValue], results: Sequence[SSAValue]) -> tuple[Region, list[SSAValue]]:
    """The region of a step that computes `results` of `arguments`, and the values that it captures.

    Ops that depend on no argument stay outside and run once; constants are copied into the region.
    """
    from ait_mlir.frontend.wiring import reachable  # imported here, because `wiring` imports tensors

    ops, _ = reachable(results)
    given = set(arguments)
    inside: dict[Operation, None] = {}
    known: set[SSAValue] = set(given)
    for op in ops:
        if any(v in known for v in op.operands):
            inside[op] = None
            known.update(op.results)
    used = [v for op in inside for v in op.operands] + list(results)
    constants = dict.fromkeys(v.owner for v in used if v not in known and isinstance(v.owner, ConstantOp))
    known.update(op.output for op in constants)
    captured = list(dict.fromkeys(v for v in used if v not in known))
    block = Block(arg_types=[v.type for v in (*arguments, *captured)])
    values: dict[SSAValue, SSAValue] = dict(zip((*arguments, *captured), block.args, strict=True))
    for op in (*constants, *inside):
        block.add_op(op.clone(values))
    block.add_op(YieldOp(*(values[v] for v in results)))
    return Region(block), captured


def _placeholder(t: TensorType, symbols: Symbols) -> Tensor:
    tensor = Tensor.of(Block(arg_types=[t]).args[0], symbols)
    tensor.extra[STEP] = True
    return tensor
