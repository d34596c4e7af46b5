"""The lanes and registers of AMD's matrix instructions: AMD's table against the kernels' map and against the emulator.

The kernels have one map (`mfma_layout.h`), and the emulator has another one (`matrix.cc`). Each is compared with the
table alone, so that a mistake that both share is found, too.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ait_mlir.lowering.toolchain import cpp_root, find_cxx
from tests.emulator.library import CPP

TABLE = Path(__file__).parent / "mfma_registers.txt"
LANES, QUAD = 64, 4
LAYOUT, EMULATOR = "ait/kernels/gpu/mfma_layout.h", "emulator/matrix.cc"
SOURCES = {LAYOUT: cpp_root() / "include" / LAYOUT, EMULATOR: CPP / EMULATOR}
FLAGS = ("-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-Wl,--gc-sections")
"""Leave out the instructions that need the rest of the emulator."""
HARNESS = """
#define EXPORT extern "C" __attribute__((visibility("default")))
#include "ait/kernels/gpu/mfma_layout.h"
#include "emulator/matrix.cc"

namespace ait::emulator {
void* lanes[64];
int here = 0;
/// The last lane that comes runs `combine`, for all.
void meet(Scope, const char*, bool, Combine combine, void* brought, Site, uint64_t) {
  // the caller's struct is gone when the next lane comes
  static char kept[64][256];
  memcpy(kept[here], brought, sizeof(Square));
  lanes[here] = kept[here];
  if (++here == 64) combine(lanes, 64), here = 0;
}
}  // namespace ait::emulator

template <int kSize>
void tell(int lane, int r, int* found) {
  using Layout = ait::gpu::MfmaLayout<kSize>;
  const int told[] = {Layout::line(lane), Layout::k(lane), Layout::row(lane, r), Layout::kDepth, Layout::kElements};
  for (int i = 0; i < 5; ++i) found[i] = told[i];
}
EXPORT void layout(int size, int lane, int r, int* found) { size == 32 ? tell<32>(lane, r, found) : tell<16>(lane, r, found); }

EXPORT void multiply(int size, int is_half, const uint16_t* a, const uint16_t* b, float* c) {
  using namespace ait::emulator;
  for (int lane = 0; lane < 64; ++lane) {
    uint16_t mine_a[4], mine_b[4];
    memcpy(mine_a, a + 4 * lane, 8), memcpy(mine_b, b + 4 * lane, 8);
    multiply_mfma(size, c + lane * (size * size / 64), mine_a, mine_b, is_half ? Narrow::half : Narrow::bfloat16, {"", 0});
  }
}
"""

Places = np.ndarray[Any, np.dtype[np.int64]]


class Registers(NamedTuple):
    """Of one size: row and column of each element of each lane, as arrays of lanes x elements x 2."""

    a: Places
    b: Places
    d: Places


@functools.cache
def published(size: int) -> Registers:
    """AMD's table."""
    lines = [line.split() for line in TABLE.read_text().splitlines() if line.startswith(f"{size} ")]
    found: list[Places] = []
    for matrix in "ABD":
        rows = [line[3:] for line in lines if line[1] == matrix]
        assert [int(line[2]) for line in lines if line[1] == matrix] == list(range(len(rows)))
        found.append(np.array([[[int(n) for n in cell.split(":")] for cell in row] for row in rows]).swapaxes(0, 1))
    return Registers(*found)


def built(folder: Path, mutant: tuple[str, str, str] | None = None) -> ctypes.CDLL:
    """The map of the kernels and the instruction of the emulator; with `mutant`, a text of a file is another one."""
    for name, path in SOURCES.items():
        text = path.read_text()
        if mutant is not None and mutant[0] == name:
            assert text.count(mutant[1]) == 1, "the text to change is no longer there"
            text = text.replace(*mutant[1:])
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    source, library = folder / "harness.cc", folder / "harness.so"
    source.write_text(HARNESS)
    include = [part for path in (folder, CPP) for part in ("-I", str(path))]
    subprocess.run([str(find_cxx()), *FLAGS, *include, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def check_layout(library: ctypes.CDLL, size: int) -> None:
    """Compare the kernels' map with the table, for every element of every lane."""
    table = published(size)
    found = (ctypes.c_int * 5)()
    for lane in range(LANES):
        for r in range(table.d.shape[1]):
            library.layout(size, lane, r, found)
            line, k, row, depth, elements = found
            assert depth == 256 // size == int(table.a[..., 1].max()) + 1 and elements == table.d.shape[1]
            assert table.a[lane].tolist() == [[line, k + i] for i in range(QUAD)]
            assert table.b[lane].tolist() == [[k + i, line] for i in range(QUAD)]
            assert table.d[lane, r].tolist() == [row, line]


def multiply(library: ctypes.CDLL, size: int, half: bool, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return c + a @ b by the emulated instruction; operands and result lie in registers as the table says."""
    table = published(size)

    def narrow(x: np.ndarray) -> np.ndarray:
        return (
            x.astype(np.float16).view(np.uint16) if half else (x.astype(np.float32).view(np.uint32) >> 16).astype("u2")
        )

    registers = [np.ascontiguousarray(x[tuple(np.moveaxis(places, -1, 0))])
                 for x, places in ((narrow(a), table.a), (narrow(b), table.b), (c.astype(np.float32), table.d))]  # fmt: skip
    library.multiply(size, int(half), *(ctypes.c_void_p(x.ctypes.data) for x in registers))
    result = np.full((size, size), np.nan, np.float32)
    result[tuple(np.moveaxis(table.d, -1, 0))] = registers[2]
    return result


def check_instruction(library: ctypes.CDLL, size: int) -> None:
    """Compare the emulated instruction with the product of matrices of small integers, which is exact."""
    random = np.random.default_rng(0)
    shapes = ((size, 256 // size), (256 // size, size), (size, size))
    a, b, c = (random.integers(-8, 9, shape) for shape in shapes)
    for half in (True, False):
        np.testing.assert_array_equal(multiply(library, size, half, a, b, c), c + a @ b)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return built(tmp_path_factory.mktemp("mfma"))


@pytest.mark.parametrize("size", [32, 16])
def test_kernels_and_emulator_have_the_published_registers(library: ctypes.CDLL, size: int) -> None:
    table = published(size)
    for places, shape in ((table.a, (size, 256 // size)), (table.b, (256 // size, size)), (table.d, (size, size))):
        assert len({tuple(place) for place in places.reshape(-1, 2)}) == shape[0] * shape[1]
    check_layout(library, size)
    check_instruction(library, size)


PERMUTED = {
    "kernels: rows in the order of lanes": (LAYOUT, "8 * (r / 4) + 4 * (lane / kSize)", "4 * (r / 4) + 16 * (lane / kSize)"),
    "kernels: two rows change places": (LAYOUT, "+ r % 4; }", "+ (r ^ 1) % 4; }"),
    "kernels: k in the order of lanes": (LAYOUT, "4 * (lane / kSize); }", "lane / kSize; }"),
    "kernels: lines in pairs": (LAYOUT, "return lane % kSize", "return (lane ^ 1) % kSize"),
    "emulator: rows in the order of lanes": (
        EMULATOR, "8 * (r / 4) + 4 * (lane / size)", "4 * (r / 4) + 16 * (lane / size)"
    ),
    "emulator: two rows change places": (EMULATOR, "(lane / size) + r % 4", "(lane / size) + (r ^ 1) % 4"),
    "emulator: two rows of a change places": (EMULATOR, "a[lane % size]", "a[(lane ^ 1) % size]"),
    "emulator: k of b in another order": (EMULATOR, "b[lane % size][4 * (lane / size) + i]", "b[lane % size][4 * (lane / size) + (i ^ 1)]"),
}  # fmt: skip


@pytest.mark.parametrize("name", PERMUTED)
def test_a_permuted_row_is_found(name: str, tmp_path: Path) -> None:
    wrong = built(tmp_path, PERMUTED[name])
    check = check_layout if PERMUTED[name][0] == LAYOUT else check_instruction
    with pytest.raises(AssertionError):
        check(wrong, 32)


@pytest.mark.parametrize("size", [32, 16])
@pytest.mark.parametrize(("half", "smallest"), [(True, 2.0**-14), (False, 2.0**-126)])
def test_subnormal_operands_and_sums_are_zero(library: ctypes.CDLL, size: int, half: bool, smallest: float) -> None:
    depth = 256 // size
    a, b, c = np.zeros((size, depth)), np.zeros((depth, size)), np.zeros((size, size))
    a[0, 0], a[1, 0], b[0] = smallest, smallest / 2, 1.0
    result = multiply(library, size, half, a, b, c)
    assert (result[0] == smallest).all() and not result[1].any()
    result = multiply(library, size, half, b.T, a.T, c)
    assert (result[:, 0] == smallest).all() and not result[:, 1].any()
    c[0], c[1] = 2.0**-126, 2.0**-127
    result = multiply(library, size, half, 0 * a, b, c)
    assert (result[0] == np.float32(2.0**-126)).all() and not result[1].any()
