"""Random inputs, random parameters and the dims to try, for checking one module against another.

Everything is drawn from a seed and a name, so that the same graph gets the same numbers in every process.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from ait_mlir.dialects.ait.attention import AttentionOp
from ait_mlir.dialects.ait.elementwise import YieldOp
from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.dialects.ait.scan import ScanOp
from ait_mlir.dialects.ait.types import ShapedType, TensorType
from ait_mlir.dialects.ait_rt.loop import LoopOp
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp, program_around
from ait_mlir.dims import Scope
from ait_mlir.reference.core import Array, DType, storage_dtype

ELEMENT_WORK = 8
"""Multiplications that one element of an op other than a contraction is taken to cost."""


SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the random generator of a name."""
    return np.random.default_rng((seed, zlib.crc32(name.encode())))


def random_values(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, below: int, spread: float = 1.0
) -> Array:
    """Return normal floats of a spread, rounded to the dtype, integers in [0, below), or booleans."""
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "i":
        return rng.integers(0, max(1, below), shape).astype(dtype)
    return (rng.standard_normal(shape, np.float32) * np.float32(spread)).astype(dtype)


class RandomParams(Mapping[str, Array]):
    """Parameters by name, drawn when asked for and kept. A matrix has spread 1 / sqrt(its last dim), a vector spread
    1/2 around 1/2."""

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
                found = values if dtype.kind in "ib" else (values.astype(np.float32) + np.float32(0.5)).astype(dtype)
            self._drawn[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)


def random_input(
    name: str, shape: tuple[int, ...], type_: ShapedType, below: int, seed: int, special: bool = False
) -> Array:
    """Return the values of an input: floats that their element type can hold, integers in [0, below).

    With `special`, up to four floats, at most every fourth, are NaN, the infinities and a negative zero.
    """
    rng = generator(seed, f"input {name} {shape}")
    values = random_values(rng, shape, storage_dtype(type_.element_type), below)
    if special and values.dtype.kind not in "ib":
        places = rng.permutation(values.size)[: min(len(SPECIAL), values.size // 4)]
        values.reshape(-1)[places] = SPECIAL[: len(places)]
    return values


MOVES = frozenset(f"ait.{name}" for name in ("reshape", "permute", "expand", "slice", "split", "concat", "cast"))


def index_bound(value: SSAValue) -> int:
    """Return below what an integer input must stay, so that every table it looks into has the row.

    Follows integer values through a graph, or from a program into its kernels; each arithmetic op on the way divides
    the bound by four. It is 8 where nothing is looked up.
    """
    bound = 1 << 40
    seen: set[SSAValue] = {value}
    work = [(value, 1)]
    while work:
        current, part = work.pop()
        for use in current.uses:
            op = use.operation
            if op.name == "ait.embedding" and use.index == 1:
                rows = cast(TensorType, op.operands[0].type).dims[0].as_int() or 1
                bound = min(bound, max(1, rows // part))
                continue
            computes = op.name.startswith("ait.") and op.name not in MOVES
            for result in reached(op, use.index):
                if result not in seen and storage_dtype(cast(ShapedType, result.type).element_type).kind == "i":
                    seen.add(result)
                    work.append((result, part * 4 if computes else part))
    return 8 if bound == 1 << 40 else min(bound, 1000)


def reached(op: Operation, operand: int) -> Sequence[SSAValue]:
    """Return what an operand flows into: the results of an op, the argument of a launched kernel or of a scan's step,
    what becomes of what a step yields."""
    if isinstance(op, ScanOp):
        return [op.block.args[operand]]
    scan = op.parent_op()
    if isinstance(op, YieldOp) and isinstance(scan, ScanOp):
        carried = scan.block.args[len(scan.scanned) :][: len(scan.init)]
        return [scan.results[operand], *carried[operand : operand + 1]]
    if not isinstance(op, LaunchOp):
        return [r for r in op.results if isinstance(r.type, ShapedType)]
    program = program_around(op)
    kernel = kernels_around(program).get(op.kernel_name) if program is not None else None
    return [] if kernel is None or operand >= len(op.ins) else [kernel.block.args[operand]]


def work_of(op: Operation, dims: Mapping[str, int]) -> int:
    """Return the multiplications of one op at some dims, an element of an op other than a contraction counting as
    `ELEMENT_WORK`."""
    elements = sum(r.type.num_elements().evaluate(dims) for r in op.results if isinstance(r.type, TensorType))
    if isinstance(op, ContractionOp):
        return elements * (op.SUMS * op.split_a()[2].evaluate(dims) + ELEMENT_WORK * len(op.operands))
    if isinstance(op, AttentionOp):
        q = cast(TensorType, op.q.type)
        scores = q.dims[0] * q.dims[1] * q.dims[2] * op.length
        return scores.evaluate(dims) * (2 * ELEMENT_WORK + 2 * (q.dims[3].as_int() or 64))
    return elements * ELEMENT_WORK


def kernels_around(program: Operation) -> dict[str, KernelOp]:
    """Return the kernels of the module that a program is in, by name."""
    module = program.parent_op()
    return {} if module is None else {k.sym_name.data: k for k in module.regions[0].ops if isinstance(k, KernelOp)}


def total_work(root: Operation, dims: Mapping[str, int]) -> int:
    """Return the work of all ops in a graph, regions on scalars left out, or of all launches of a program."""
    return _work_in(root.regions[0].block, kernels_around(root), dims)


def _work_in(block: Block, kernels: Mapping[str, KernelOp], dims: Mapping[str, int]) -> int:
    """Return the work of a block; what stands in a scan or a loop counts once for each step."""
    work = 0
    for op in block.ops:
        if isinstance(op, ScanOp):
            work += op.length.evaluate(dims) * _work_in(op.block, kernels, dims)
        elif isinstance(op, LoopOp):
            work += op.count.evaluate(dims) * _work_in(op.block, kernels, dims)
        elif isinstance(op, LaunchOp):
            work += work_of(kernels[op.kernel_name].compute_op(), dims) if op.kernel_name in kernels else 0
        else:
            work += work_of(op, dims)
    return work


def reduced_maximum(root: Operation, scope: Scope, budget: int) -> dict[str, int]:
    """Return the largest dims whose work stays within a budget.

    From the declared maximum, the dim with the longest way to its minimum goes half of that way, again and again,
    until the work fits or all dims are at their minimum.
    """
    dims = scope.maximum_env()
    low = scope.minimum_env()
    while total_work(root, dims) > budget:
        name = max(dims, key=lambda n: dims[n] - low[n], default=None)
        if name is None or dims[name] == low[name]:
            break
        dims[name] = low[name] + (dims[name] - low[name]) // 2
    return dims


def middle(scope: Scope, maximum: Mapping[str, int], seed: int) -> dict[str, int]:
    """Return dims drawn between the minimum and a maximum."""
    rng = generator(seed, "middle " + str(scope))
    return {name: int(rng.integers(low, max(low, maximum[name]) + 1)) for name, low in scope.minimum_env().items()}
