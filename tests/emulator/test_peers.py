"""All-reduces through memory of the cards (`peers.cuh`) on an emulated card: what a member sends, and how it joins what the others have sent.

The others are this test: it writes their shares, and reads what they would get. `tests/ranks/test_peers.py` has the order
of all members' steps.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ait_mlir.reference.norm import layer_norm, rms_norm
from tests.emulator.library import EmulatedLibrary
from tests.kernels.harness import PRELUDE

MOST, BLOCKS, SLOT = 8, 128, 1 << 15
"""Members, blocks of a launch (`ait/peers_service.h`), and bytes of a slot here."""
HEAD = 4 * MOST * BLOCKS
ROOM = HEAD + 4 * 1024
TYPES = {"f16": ("ait::half", np.float16), "f32": ("float", np.float32), "i32": ("int32_t", np.int32)}
JOINS = {"Sum": np.add, "Max": np.maximum}


def function(join: str, name: str) -> str:
    t = TYPES[name][0]
    compute = "float" if name == "f16" else t
    return f"""
extern "C" int32_t {join}_{name}(const ait_peer_memory_v1* memory, int64_t count, const void* x, void* y, char* message) {{
  const ait_host_v1 host = {{message, test_fail}};
  return ait::gpu::launch_all_reduce<ait::{join}, {compute}>(ait::Context{{nullptr, &host}}, *memory, count,
                                                            static_cast<const {t}*>(x), static_cast<{t}*>(y));
}}
"""


NORMS = {"rms": ("f16", 4096, "false"), "layer": ("f32", 4100, "true"), "small": ("f16", 24, "true")}
"""Element type, elements of a row, and whether the mean becomes 0."""


def norm_function(norm: str) -> str:
    name, length, centred = NORMS[norm]
    t = TYPES[name][0]
    pointers = [f"static_cast<const {t}*>({n})" for n in ("x", "r", "g", "b")]
    return f"""
extern "C" int32_t {norm}(const ait_peer_memory_v1* memory, int64_t rows, const void* x, const void* r, const void* g, const void* b,
                          void* y, void* sum, char* message) {{
  const ait_host_v1 host = {{message, test_fail}};
  return ait::gpu::launch_reduced_norm<{length}, {centred}>(ait::Context{{nullptr, &host}}, *memory, rows, {", ".join(pointers)}, 1e-5,
                                                           static_cast<{t}*>(y), static_cast<{t}*>(sum));
}}
"""


SOURCE = (
    PRELUDE
    + '#include "ait/kernels/gpu/peers.cuh"\n'
    + "".join(function(join, name) for join in JOINS for name in TYPES)
    + "".join(map(norm_function, NORMS))
)


class Memory(ctypes.Structure):
    """`ait_peer_memory_v1`"""

    _fields_ = (
        ("members", ctypes.c_int32),
        ("place", ctypes.c_int32),
        ("bytes", ctypes.c_int64),
        ("rooms", ctypes.c_void_p * MOST),
        ("stop", ctypes.c_void_p),
    )


class Group:
    """The rooms of all members."""

    def __init__(self, members: int, slot: int = SLOT) -> None:
        self.members, self.slot = members, slot
        self.rooms = [np.zeros(ROOM + 2 * members * slot, np.uint8) for _ in range(members)]

    def memory(self, place: int) -> Memory:
        rooms = (ctypes.c_void_p * MOST)(*(room.ctypes.data for room in self.rooms))
        return Memory(self.members, place, self.slot, rooms, None)

    def arrived(self, room: int, member: int) -> Any:
        return self.rooms[room][:HEAD].view(np.uint32).reshape(MOST, BLOCKS)[member]

    def counts(self, room: int) -> list[int]:
        """The launches of a member that have ended, and the blocks of the one under way."""
        return self.rooms[room][HEAD:ROOM].view(np.uint32)[:2].tolist()

    def sent(self, room: int, launch: int, member: int, like: Any) -> Any:
        """What a member sends to another one in a launch."""
        at = ROOM + (launch % 2 * self.members + member) * self.slot
        return self.rooms[room][at : at + like.nbytes].view(like.dtype)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> EmulatedLibrary:
    return EmulatedLibrary([], tmp_path_factory.mktemp("peers"), "cuda", sources={"peers.cc": SOURCE})


def launch(
    library: EmulatedLibrary, name: str, group: Group, place: int, size: int, ins: Sequence[Any], outs: Sequence[Any]
) -> str:
    """Run a member on operands, of which None are null; why it failed, or an empty text."""
    library.use()
    library.forget_buffers()
    for i, room in enumerate(group.rooms):
        library.buffer(room.ctypes.data, room.nbytes, "updated", i)
    for i, array in enumerate((*ins, *outs), MOST):
        if array is not None:
            library.buffer(array.ctypes.data, array.nbytes, "result" if i >= MOST + len(ins) else "operand", i)
    message = ctypes.create_string_buffer(512)
    places = [ctypes.c_void_p(None if array is None else array.ctypes.data) for array in (*ins, *outs)]
    status = library.lib[name](ctypes.byref(group.memory(place)), ctypes.c_int64(size), *places, message)
    return message.value.decode() if status else ""


def values(name: str, count: int, rng: np.random.Generator) -> Any:
    """Elements off the boundary of 16 bytes."""
    dtype = TYPES[name][1]
    made = rng.integers(-1000, 1000, count + 1) if name == "i32" else rng.standard_normal(count + 1)
    return made.astype(dtype)[1:]


@pytest.mark.parametrize(
    ("join", "name", "members", "place", "count"),
    [
        ("Sum", "f16", 2, 0, 1),
        ("Sum", "f16", 2, 1, 4100),
        ("Max", "f16", 3, 1, 4096),
        ("Sum", "f32", 8, 7, 2053),
        ("Sum", "i32", 3, 2, 4099),
    ],
)
def test_shares_are_sent_and_joined_in_the_order_of_members(
    library: EmulatedLibrary, join: str, name: str, members: int, place: int, count: int
) -> None:
    group, rng, dtype = Group(members), np.random.default_rng(count), TYPES[name][1]
    for turn in (1, 2, 3):
        shares = [values(name, count, rng) for _ in range(members)]
        for member in set(range(members)) - {place}:
            group.sent(place, turn, member, shares[member])[:] = shares[member]
            group.arrived(place, member)[:] = turn + (member % 2)  # some have begun the next launch
        y = np.zeros(count, dtype)
        assert not launch(library, f"{join}_{name}", group, place, count, [shares[place]], [y])
        total = shares[0].astype(np.float32 if name == "f16" else dtype)
        for share in shares[1:]:
            total = JOINS[join](total, share.astype(total.dtype))
        np.testing.assert_array_equal(y, total.astype(dtype))
        blocks = -(-count * y.itemsize // (512 * 16))
        for member in set(range(members)) - {place}:
            np.testing.assert_array_equal(group.sent(member, turn, place, y), shares[place])
            assert group.arrived(member, place).tolist() == [turn] * blocks + [0] * (BLOCKS - blocks)
        assert group.counts(place) == [turn, 0]


def test_many_chunks_for_few_blocks(library: EmulatedLibrary) -> None:
    count = 4 * (BLOCKS + 1) * 512 + 3
    group, rng = Group(2, 4 * count + 4), np.random.default_rng(0)
    shares = [values("f32", count, rng) for _ in range(2)]
    group.sent(0, 1, 1, shares[1])[:] = shares[1]
    group.arrived(0, 1)[:] = 1
    y = np.zeros(count, np.float32)
    assert not launch(library, "Sum_f32", group, 0, count, [shares[0]], [y])
    np.testing.assert_array_equal(y, shares[0] + shares[1])
    assert group.arrived(1, 0).tolist() == [1] * BLOCKS


def test_a_member_waits_for_each_block_of_the_others(library: EmulatedLibrary) -> None:
    group, x = Group(2), np.ones(5000, np.float32)
    group.arrived(0, 1)[:] = [1, 0] * (BLOCKS // 2)
    said = launch(library, "Sum_f32", group, 0, x.size, [x], [np.zeros_like(x)])
    assert "waits for member 1, which has not written launch 1" in said


@pytest.mark.parametrize(
    ("norm", "members", "place", "rows", "has_scale", "has_bias"),
    [
        ("rms", 2, 0, 1, True, False),
        ("rms", 3, 2, 3, False, False),
        ("layer", 2, 1, 2, True, True),
        ("small", 8, 3, BLOCKS + 5, True, True),
    ],
)
def test_a_residual_is_added_and_the_sum_is_normalised(
    library: EmulatedLibrary, norm: str, members: int, place: int, rows: int, has_scale: bool, has_bias: bool
) -> None:
    name, length, centred = NORMS[norm]
    dtype, count = TYPES[name][1], rows * length
    group, rng = Group(members, 4 * count), np.random.default_rng(rows)
    shares = [values(name, count, rng) for _ in range(members)]
    residual = values(name, count, rng) + dtype(3)
    scale = values(name, length, rng) if has_scale else None
    bias = values(name, length, rng) if has_bias else None
    for member in set(range(members)) - {place}:
        group.sent(place, 1, member, shares[member])[:] = shares[member]
        group.arrived(place, member)[:] = 1
    y, total = np.zeros(count, dtype), np.zeros(count, dtype)
    assert not launch(library, norm, group, place, rows, [shares[place], residual, scale, bias], [y, total])
    added = np.zeros(count, np.float32)
    for part in (*shares, residual):
        added = added + part.astype(np.float32)
    np.testing.assert_array_equal(total, added.astype(dtype))
    normalise, ulp = layer_norm if centred == "true" else rms_norm, np.finfo(dtype).eps
    want = normalise(added.astype(np.float64).reshape(rows, length), 1, 1e-5)
    want = (want if scale is None else want * scale) + (0 if bias is None else bias)
    np.testing.assert_allclose(y.reshape(rows, length), want, rtol=4 * ulp, atol=8 * ulp)
    for member in set(range(members)) - {place}:
        np.testing.assert_array_equal(group.sent(member, 1, place, y), shares[place])
        assert group.arrived(member, place).tolist() == [1] * min(rows, BLOCKS) + [0] * (BLOCKS - min(rows, BLOCKS))
    assert group.counts(place) == [1, 0]
