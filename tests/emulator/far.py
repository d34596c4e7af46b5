"""Cases whose tensors are far larger than they look: one dim steps more than 2^32 elements, so that offsets of 32 bits go wrong.

Their memory is reserved and never filled. Only the pages that a kernel touches exist.
"""

from __future__ import annotations

import copy
import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ait_mlir.dialects.ait.traits import BindsDim, UpdatesOperand
from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.dims import Expr, const
from ait_mlir.lowering.kernels import Arg
from tests.emulator.library import TARGETS, EmulatedLibrary, Kind, Role, extent_bytes
from tests.kernels.harness import Case, scratch, storage_dtype

APART = (1 << 32) + 4096
"""Elements from one index of a far dim to the next. An offset of 32 bits, with or without a sign, leads somewhere else."""
NO_RESERVE = 0x4000
"""`MAP_NORESERVE` of Linux."""
MOST = 1 << 40
"""The most bytes of a reservation, and with it of a stride, for which the copy engine of a card takes no more."""
MOST_OF_CASE = 1 << 45
"""The most bytes of all reservations of a case; a process has 2^47 bytes of addresses."""


def far_strides(arg: Arg, dim: int) -> list[Expr]:
    """The strides of an operand or result with one far dim; the dims before it lie around it."""
    strides = [*arg.strides]
    strides[dim] = const(APART)
    for d in range(dim - 1, -1, -1):
        strides[d] = strides[d + 1] * arg.type.dims[d + 1]
    return strides


def far_case(case: Case, kind: Kind, number: int) -> Case | None:
    """The case with every operand and result far along the dim that is its `number`th with several indices, where its
    kernel takes that; None if it takes none."""
    target = TARGETS[kind]
    if case.within:
        return None
    kernel, _ = case.chosen(target)
    ins, outs = case.args()
    found, reserved = dict[int, list[str]](), 0
    for i, arg in enumerate((*ins, *outs)):
        several = [d for d, e in enumerate(arg.type.dims) if any(e.evaluate(env) > 1 for env in case.envs)]
        if i >= len(case.op.operands) + len(case.op.results) or len(several) <= max(number, 1):
            continue
        strides = far_strides(arg, several[number])
        size = reserved_bytes(replace(arg, strides=tuple(strides)), case)
        if size > MOST or reserved + size > MOST_OF_CASE:
            continue
        if kernel.accepts(case.op, i, tuple(strides), scope_of(case.op)):
            found[i] = [str(s) for s in strides]
            reserved += size
    if not found:
        return None
    far = copy.copy(case)
    far.strides = {**case.strides, **found}
    return far


def reserved_bytes(arg: Arg, case: Case) -> int:
    """The most bytes that an operand or result spans."""
    return max(extent(arg, env) for env in case.envs)


class FarLibrary(EmulatedLibrary):
    """Compiled cases whose buffers are pieces of a reservation."""

    def run(self, case: Case, env: Mapping[str, int], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results of a case. The emulator knows the touched pieces alone, so it refuses each other access."""
        self.use()
        self.forget_buffers()
        ins, outs = case.args()
        views = [reserve(arg, env, case.offset) for arg in (*ins, *outs)]
        for view, array in zip(views, inputs, strict=False):
            view[...] = array
        if isinstance(case.op, UpdatesOperand):
            views[len(ins)][...] = inputs[0]
        for i, view in enumerate(views):
            written: Role = "updated" if isinstance(case.op, UpdatesOperand) else "result"
            role: Role = written if i >= len(ins) else "constant" if i in case.constants else "operand"
            for address, size in pieces(view):
                self.buffer(address, size, role, i)
        workspace = scratch(case.workspace_bytes(self.target, env))
        self.buffer(workspace.ctypes.data, workspace.nbytes, "result", len(views))
        try:
            self.call(case, env, [view.ctypes.data for view in views], workspace=workspace.ctypes.data)
        finally:
            self.note_executed()
        results = [view.copy() for view in views[len(ins) :]]
        if isinstance(case.op, BindsDim):
            results[0] = results[0][: int(results[-1])]
        return results


def extent(arg: Arg, env: Mapping[str, int]) -> int:
    """The bytes from the first element to the last one."""
    shape = [d.evaluate(env) for d in arg.type.dims]
    if not all(shape):
        return 0
    last = sum((n - 1) * s.evaluate(env) for n, s in zip(shape, arg.strides, strict=True))
    return (1 + last) * storage_dtype(arg.type.element_type).itemsize


def reserve(arg: Arg, env: Mapping[str, int], offset: int) -> np.ndarray:
    """A tensor with the strides of `arg` in memory of its own, whose pages exist once they are touched."""
    dtype = storage_dtype(arg.type.element_type)
    shape = [d.evaluate(env) for d in arg.type.dims]
    if not all(shape):
        return np.empty(shape, dtype)
    strides = [s.evaluate(env) * dtype.itemsize for s in arg.strides]
    size = extent(arg, env) + offset * dtype.itemsize
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    return np.ndarray(shape, dtype, memory, offset * dtype.itemsize, strides)


def pieces(view: np.ndarray) -> Iterator[tuple[int, int]]:
    """The address and the bytes of each part of a tensor between its far dims.

    Kernels read whole aligned words of 16 bytes, so a part has these, but for what lies before or behind the tensor.
    """
    if view.size == 0:
        return
    first, last = view.ctypes.data, view.ctypes.data + extent_bytes(view)
    far = [d for d in range(view.ndim) if view.strides[d] >= APART * view.itemsize]
    for index in np.ndindex(*(view.shape[d] for d in far)):
        part = view
        for d, i in zip(far, index, strict=True):
            part = part[(slice(None),) * d + (slice(i, i + 1),)]
        begin, end = part.ctypes.data, part.ctypes.data + extent_bytes(part)
        begin, end = max(begin // 16 * 16, first), min(-(-end // 16) * 16, last)
        yield begin, end - begin
