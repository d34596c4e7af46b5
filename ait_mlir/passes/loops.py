"""Bufferises scans as loops of launches.

A carried value has two slots in one allocation: a step reads the slot `step mod 2` and writes the other, so nothing is
copied between steps, and within a step each buffer is still written once. A step reads a scanned tensor through a view
that moves with the step, and writes its slice of a stacked result through another. A carried value that is also
stacked, such as the hidden state of a recurrent layer, has a slot for each step and one for its initial value: the
slots are the stacked result.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Region, SSAValue

from ait_mlir.dialects.ait.scan import ScanOp
from ait_mlir.dialects.ait.strided import ONE, ZERO, Strided, contiguous_strides
from ait_mlir.dialects.ait.types import TensorType, tensor_type
from ait_mlir.dialects.ait_rt import buffers as rt
from ait_mlir.dialects.ait_rt.loop import LoopOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import Expr, ceildiv, const, mod, sym
from ait_mlir.passes.bufferizer import Bufferizer, Place

SLOT_ALIGNMENT = 64
"""Slots begin at multiples of this many elements, so that every kernel can access them."""


def bufferize_scan(b: Bufferizer, scan: ScanOp) -> None:
    """Add the loop of a scan to the program and record the locations of its results."""
    scanned, carry = len(scan.scanned), len(scan.init)
    kept = _kept(scan)
    carries = [Carry(scan, i, kept.get(i)) for i in range(carry)]
    carried = [each.allocate(b) for each in carries]
    others = [r for i, r in enumerate(scan.results[carry:]) if i not in kept.values()]
    stacked = {r: b.emit(rt.AllocOp(BufferType.of(tensor_type(r)))) for r in others}
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
    for argument, each, slots in zip(arguments[scanned:], carries, carried, strict=False):
        b.places[argument] = Place(slots, each.before(now))
    for argument, value in zip(arguments[scanned + carry :], scan.captured, strict=True):
        place = b.places[value]
        b.places[argument] = Place(place.root, place.view, place.whole)
    b.run_ops(scan.block)
    targets = [
        *(Place(slots, each.before(now + 1)) for slots, each in zip(carried, carries, strict=True)),
        *(
            Place(stacked[r], _slice(Strided.whole(_dims(stacked[r])), scan.axis, index)) if r in stacked else None
            for r in scan.results[carry:]
        ),
    ]
    for value, target in zip(scan.yielded, targets, strict=True):
        if target is not None:
            b.copy(b.places[value], b.view_of(target, tensor_type(value).element_type))
    b.leave()
    body, b.block = b.block, outside
    loop = LoopOp(step.name, scan.length, carried, Region(body))
    loop.location = scan.location
    outside.add_op(loop)
    for result, each, slots in zip(scan.results, carries, carried, strict=False):
        b.places[result] = Place(slots, each.before(scan.length))
    for result, buffer in stacked.items():
        b.define(result, buffer)
    for i, position in kept.items():
        b.places[scan.results[carry + position]] = Place(carried[i], carries[i].stacked())


def _kept(scan: ScanOp) -> dict[int, int]:
    """The position of the stacked result for each carried value that is also stacked, if the stacked result is used."""
    carry, found = len(scan.init), dict[int, int]()
    for position, value in enumerate(scan.yielded[carry:]):
        if value in scan.yielded[:carry] and scan.results[carry + position].uses:
            found.setdefault(scan.yielded[:carry].index(value), position)
    return found


@dataclass(frozen=True)
class Carry:
    """The slots of carried value `number` of a scan: two, or one more than steps if they are the stacked result at
    `position`."""

    scan: ScanOp
    number: int
    position: int | None

    @property
    def type(self) -> TensorType:
        return tensor_type(self.scan.init[self.number])

    def allocate(self, b: Bufferizer) -> SSAValue:
        """The slots, which hold the initial value."""
        value, count = self.scan.init[self.number], const(2) if self.position is None else self.scan.length + 1
        slots = b.emit(rt.AllocOp(BufferType.get((count, self._size), self.type.element_type)))
        slots.name_hint = value.name_hint
        b.copy(b.places[value], b.view_of(Place(slots, self.before(ZERO)), self.type.element_type))
        return slots

    def before(self, step: Expr) -> Strided:
        """The view of the value before a step."""
        length = self.scan.length
        slot = mod(step, 2) if self.position is None else step if self.scan.reverse is None else length - step
        return Strided(self.type.dims, slot * self._size, contiguous_strides(self.type.dims))

    def stacked(self) -> Strided:
        """The view of the values after all steps."""
        assert self.position is not None, "the slots of two steps are no stack"
        dims = tensor_type(self.scan.results[len(self.scan.init) + self.position]).dims
        own, axis = contiguous_strides(self.type.dims), self.scan.axis
        first = ZERO if self.scan.reverse is not None else self._size
        return Strided(dims, first, (*own[:axis], self._size, *own[axis:]))

    @property
    def _size(self) -> Expr:
        """The elements from one slot to the next."""
        return ceildiv(self.type.num_elements(), SLOT_ALIGNMENT) * SLOT_ALIGNMENT


def _slice(view: Strided, axis: int, index: Expr) -> Strided:
    """The slice at an index along an axis, without the axis."""
    dims = (*view.dims[:axis], ONE, *view.dims[axis + 1 :])
    part = view.slice(tuple(index if i == axis else ZERO for i in range(len(dims))), dims)
    return Strided((*dims[:axis], *dims[axis + 1 :]), part.offset, (*part.strides[:axis], *part.strides[axis + 1 :]))


def _dims(buffer: SSAValue) -> tuple[Expr, ...]:
    t = buffer.type
    assert isinstance(t, BufferType)
    return t.dims
