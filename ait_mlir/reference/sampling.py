"""Random inputs, random parameters and test dims, for checking one module against another.

All are drawn from a seed and a name, so that the same graph gets the same numbers in every process.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ait_mlir.dialects.ait.elementwise import CastOp
from ait_mlir.dialects.ait.index import EmbeddingOp, GroupedEmbeddingOp, IndexedOp, UpdateSliceOp
from ait_mlir.dialects.ait.jagged import EmbeddingBagOp
from ait_mlir.dialects.ait.loops import AtOp, FoldOp, Nested
from ait_mlir.dialects.ait.quantize import ScaledOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dialects.ait.scan import ScanOp
from ait_mlir.dialects.ait.sorting import OrderOp
from ait_mlir.dialects.ait.traits import Cost, HasOffsets
from ait_mlir.dialects.ait.types import ShapedType, TensorType, scope_of, tensor_type
from ait_mlir.dialects.ait_rt.loop import LoopOp
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, program_around
from ait_mlir.dims import Expr, Scope, total
from ait_mlir.reference.core import Array, DType, is_integer, storage_dtype

ELEMENT_WORK = 16
"""The cost of one element of a result in NumPy, in operations of a matrix product."""

SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the random generator of a name."""
    return np.random.default_rng((seed, zlib.crc32(name.encode())))


def random_values(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, below: int, spread: float = 1.0
) -> Array:
    """Return normal floats of a spread, rounded to the dtype, integers in [0, below), booleans, or powers of 2 for a
    type that has no other numbers."""
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.name == "float8_e8m0fnu":
        return np.exp2(rng.integers(-4, 5, shape)).astype(dtype)
    if is_integer(dtype):
        return rng.integers(0, max(1, below), shape).astype(dtype)
    return (rng.standard_normal(shape, np.float32) * np.float32(spread)).astype(dtype)


class RandomParams(Mapping[str, Array]):
    """Parameters by name, drawn at the first access and kept. A matrix has spread 1 / sqrt(its last dim), a vector
    spread 1/2 around 1/2."""

    def __init__(self, types: Mapping[str, ShapedType], seed: int) -> None:
        self.types = dict(types)
        self.seed = seed
        self._drawn: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        found = self._drawn.get(name)
        if found is None:
            type_ = self.types[name]
            shape, dtype = type_.static_shape(), storage_dtype(type_.element_type)
            if shape is None:
                raise KeyError(name)
            rng = generator(self.seed, "param " + name)
            if len(shape) > 1:
                found = random_values(rng, shape, dtype, 2, 1.0 / max(1, shape[-1]) ** 0.5)
            else:
                values = random_values(rng, shape, dtype, 2, 0.5)
                if dtype != np.bool_ and dtype.name != "float8_e8m0fnu" and not is_integer(dtype):
                    values = (values.astype(np.float32) + np.float32(0.5)).astype(dtype)
                found = values
            self._drawn[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)


def random_input(
    name: str,
    shape: tuple[int, ...],
    type_: ShapedType,
    below: int,
    seed: int,
    special: bool = False,
    is_scale: bool = False,
) -> Array:
    """Return the values of an input: floats that their element type can hold, integers in [0, below).

    With `special`, up to four floats, at most every fourth, are NaN, the infinities and a negative zero. The numbers of
    a scale are finite and above 0 in any case.
    """
    rng = generator(seed, f"input {name} {shape}")
    dtype = storage_dtype(type_.element_type)
    values = random_values(rng, shape, dtype, below)
    if is_scale:
        return np.maximum(np.abs(values.astype(np.float64)), 2.0**-6).astype(dtype)
    if special and values.dtype != np.bool_ and not is_integer(values.dtype):
        places = rng.permutation(values.size)[: min(len(SPECIAL), values.size // 4)]
        values.reshape(-1)[places] = SPECIAL[: len(places)]
    return values


def is_scale(value: SSAValue) -> bool:
    """Whether an op reads an input as a scale, whose numbers are finite and above 0."""
    return any(isinstance(use.operation, ScaledOp) and use.operation.scale is value for use in value.uses)


def index_bound(value: SSAValue) -> int:
    """Return the exclusive upper bound of an integer input, so that it is a valid index into every table it reaches.

    Follows integer values through a graph, or from a program into its kernels; each arithmetic op on the way divides
    the bound by four. The bound is 8 if the input indexes nothing.
    """
    bound = 1 << 40
    seen: set[SSAValue] = {value}
    work = [(value, 1)]
    while work:
        current, part = work.pop()
        for use in current.uses:
            op = use.operation
            if isinstance(op, EmbeddingOp | GroupedEmbeddingOp) and use.index % 2:
                rows = cast(TensorType, op.operands[use.index - 1].type).dims[0].as_int() or 1
                bound = min(bound, max(1, rows // part))
                continue
            if isinstance(op, HasOffsets) and use.index in op.offset_positions():
                bound = 1  # sequences without rows, which fit any data
                continue
            if isinstance(op, EmbeddingBagOp) and use.index == 1:
                bound = min(bound, max(1, (cast(TensorType, op.table.type).dims[0].as_int() or 1) // part))
                continue
            if isinstance(op, UpdateSliceOp) and use.index == 2:
                bound = min(bound, max(1, places_of(op) // part))
                continue
            if isinstance(op, IndexedOp) and current in op.indices:
                bound = min(bound, max(1, extent_indexed(op, current) // part))
                continue
            if isinstance(op, OrderOp):
                bound = min(bound, max(1, scope_of(op).bounds(op.sizes.data[use.index])[0] // part))
                continue
            if isinstance(op, AtOp) and use.index:
                bound = bound if op.otherwise is not None else min(bound, max(1, extent_read(op, use.index) // part))
                continue
            computes = isinstance(op, Cost) and not op.MOVES_ONLY and not isinstance(op, CastOp | Nested)
            for result in reached(op, use.index):
                if result not in seen and is_integer(storage_dtype(element(result))):
                    seen.add(result)
                    work.append((result, part * 4 if computes else part))
    return 8 if bound == 1 << 40 else min(bound, 1000)


def places_of(op: UpdateSliceOp) -> int:
    """Return the exclusive upper bound of the positions of an update, for any dims and for all of its rows."""
    extent, count = (cast(TensorType, v.type).dims[op.axis] for v in (op.input, op.rows))
    scope = scope_of(op)
    one_by_one = cast(TensorType, op.position.type).rank > 0
    return scope.bounds(extent)[0] if one_by_one else scope.bounds(extent - count)[0] + 1


def extent_indexed(op: IndexedOp, index: SSAValue) -> int:
    """Return the least extent, for any dims, of the dims that an index tensor indexes."""
    whole, scope = cast(TensorType, op.operands[0].type), scope_of(op)
    used = [d for d, i in zip(op.places()[0], op.indices, strict=True) if i is index]
    return min(scope.bounds(whole.dims[d])[0] for d in used)


def extent_read(op: AtOp, operand: int) -> int:
    """Return the least extent, for any dims, of the dim that a value indexes."""
    dims = [d for d, e in zip(tensor_type(op.tensor).dims, op.indices.data, strict=True) if e is None]
    return scope_of(op).bounds(dims[operand - 1])[0]


def element(value: SSAValue) -> Attribute:
    """Return the element type of a tensor or buffer, or the type of a scalar."""
    return value.type.element_type if isinstance(value.type, ShapedType) else value.type


def reached(op: Operation, operand: int) -> Sequence[SSAValue]:
    """Return the values that an operand flows into: the results of an op, the argument of a launched kernel, of a
    scan's step or of a loop nest, the result of the op around it for a yielded value, and the scan's next carried
    value."""
    if isinstance(op, Nested):
        argument = op.argument(operand)
        return op.results if argument is None else [argument]
    if isinstance(op, ScanOp):
        return [op.block.args[operand]]
    scan = op.parent_op()
    if isinstance(scan, Nested | FoldOp):
        return [scan.results[operand]] if isinstance(op, YieldOp) else op.results
    if isinstance(op, YieldOp) and isinstance(scan, ScanOp):
        carried = scan.block.args[len(scan.scanned) :][: len(scan.init)]
        return [scan.results[operand], *carried[operand : operand + 1]]
    if not isinstance(op, LaunchOp):
        return [r for r in op.results if isinstance(r.type, ShapedType)]
    program = program_around(op)
    kernel = kernels_around(program).get(op.kernel_name) if program is not None else None
    return [] if kernel is None or operand >= len(op.ins) else [kernel.block.args[operand]]


def work_of(op: Operation) -> Expr:
    """Return the cost of one op: its arithmetic operations, and `ELEMENT_WORK` for each element of a result."""
    elements = total([r.type.num_elements() for r in op.results if isinstance(r.type, TensorType)])
    return elements * ELEMENT_WORK + (op.flops() if isinstance(op, Cost) else 0)


def kernels_around(program: Operation) -> dict[str, KernelOp]:
    """Return the kernels of the module that a program is in, by name."""
    module = program.parent_op()
    return {} if module is None else {k.sym_name.data: k for k in module.regions[0].ops if isinstance(k, KernelOp)}


def works(block: Block, kernels: Mapping[str, KernelOp]) -> Iterator[Expr]:
    """Yield the work of each op of a block; an op in a scan or a loop counts once for each step."""
    for op in block.ops:
        if isinstance(op, ScanOp):
            yield from (op.length * work for work in works(op.block, kernels))
        elif isinstance(op, LoopOp):
            yield from (op.count * work for work in works(op.block, kernels))
        elif not isinstance(op, LaunchOp):
            yield work_of(op)
        elif op.kernel_name in kernels:
            yield work_of(kernels[op.kernel_name].compute_op())


def reduced_maximum(root: Operation, scope: Scope, budget: int) -> dict[str, int]:
    """Return the largest dims whose work stays within a budget.

    Starting at the declared maximum, the dim farthest from its minimum moves half of that distance, repeatedly, until
    the work fits or all dims are at their minimum.
    """
    dims = scope.maximum_env()
    low = scope.minimum_env()
    work = list(works(root.regions[0].block, kernels_around(root)))
    while sum(expr.evaluate(dims) for expr in work) > budget:
        name = max(dims, key=lambda n: dims[n] - low[n], default=None)
        if name is None or dims[name] == low[name]:
            break
        dims[name] = low[name] + (dims[name] - low[name]) // 2
    return dims


def middle(scope: Scope, maximum: Mapping[str, int], seed: int) -> dict[str, int]:
    """Return dims drawn between the minimum and a maximum."""
    rng = generator(seed, "middle " + str(scope))
    return {name: int(rng.integers(low, max(low, maximum[name]) + 1)) for name, low in scope.minimum_env().items()}
