"""Bufferises scans as loops of launches.

A carried value has two slots in one allocation: a step reads the slot `step mod 2` and writes the other, so nothing is
copied between steps, and within a step each buffer is still written once. A step reads a scanned tensor through a view
that moves with the step, and writes its slice of a stacked result through another.
"""

from __future__ import annotations

from xdsl.ir import Block, Region, SSAValue

from ait_mlir.dialects.ait.scan import ScanOp
from ait_mlir.dialects.ait.strided import ONE, ZERO, Strided, contiguous_strides
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dialects.ait_rt import buffers as rt
from ait_mlir.dialects.ait_rt.loop import LoopOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, ceildiv, mod, sym
from ait_mlir.passes.bufferizer import Bufferizer, Place

SLOT_ALIGNMENT = 64
"""Slots begin at multiples of this many elements, so that every kernel can access them."""


def bufferize_scan(b: Bufferizer, scan: ScanOp) -> None:
    """Add the loop of a scan to the program and record the locations of its results."""
    scanned, carry = len(scan.scanned), len(scan.init)
    carried = [_carry(b, value) for value in scan.init]
    stacked = [b.emit(rt.AllocOp(BufferType.of(tensor_type(r)))) for r in scan.results[carry:]]
    for value in scan.captured:
        if not isinstance(b.places[value].root.owner, rt.ConstantOp):
            b.row_major(value)  # once, instead of in each step
    outside, b.block = b.block, Block()
    step = b.enter(scan.length)
    now = sym(step.name)
    index = now if scan.reverse is None else scan.length - 1 - now
    arguments = scan.block.args
    for argument, value in zip(arguments, scan.scanned, strict=False):
        place = b.places[value]
        b.places[argument] = Place(place.root, _slice(place.view, scan.axis, index))
    for argument, slots in zip(arguments[scanned:], carried, strict=False):
        b.places[argument] = Place(slots, _slot(tensor_type(argument), mod(now, 2)))
    for argument, value in zip(arguments[scanned + carry :], scan.captured, strict=True):
        place = b.places[value]
        b.places[argument] = Place(place.root, place.view, place.whole)
    b.run_ops(scan.block)
    targets = [
        *(Place(slots, _slot(tensor_type(v), mod(now + 1, 2))) for slots, v in zip(carried, scan.init, strict=True)),
        *(Place(s, _slice(Strided.whole(_dims(s)), scan.axis, index)) for s in stacked),
    ]
    for value, target in zip(scan.yielded, targets, strict=True):
        b.copy(b.places[value], b.view_of(target, tensor_type(value).element_type))
    b.leave()
    body, b.block = b.block, outside
    loop = LoopOp(step.name, scan.length, carried, Region(body))
    loop.location = scan.location
    outside.add_op(loop)
    for result, slots in zip(scan.results, carried, strict=False):
        b.places[result] = Place(slots, _slot(tensor_type(result), mod(scan.length, 2)))
    for result, buffer in zip(scan.results[carry:], stacked, strict=True):
        b.define(result, buffer)


def _carry(b: Bufferizer, value: SSAValue) -> SSAValue:
    """Two slots for a carried value; the first holds the initial value."""
    t = tensor_type(value)
    slots = b.emit(rt.AllocOp(BufferType.get((2, _slot_size(t)), t.element_type)))
    slots.name_hint = value.name_hint
    b.copy(b.places[value], b.view_of(Place(slots, _slot(t, ZERO)), t.element_type))
    return slots


def _slot_size(t: TensorType) -> Expr:
    return ceildiv(t.num_elements(), SLOT_ALIGNMENT) * SLOT_ALIGNMENT


def _slot(t: TensorType, number: Expr) -> Strided:
    """The view of slot `number` of a carried value of this type."""
    return Strided(t.dims, number * _slot_size(t), contiguous_strides(t.dims))


def _slice(view: Strided, axis: int, index: Expr) -> Strided:
    """The slice at an index along an axis, without the axis."""
    dims = (*view.dims[:axis], ONE, *view.dims[axis + 1 :])
    part = view.slice(tuple(index if i == axis else ZERO for i in range(len(dims))), dims)
    return Strided((*dims[:axis], *dims[axis + 1 :]), part.offset, (*part.strides[:axis], *part.strides[axis + 1 :]))


def _dims(buffer: SSAValue) -> tuple[Expr, ...]:
    t = buffer.type
    assert isinstance(t, BufferType)
    return t.dims
