"""Mistakes planted into a small product of Hopper's: bulk copies into a ring of two stages, wgmma,
a bulk store of the result.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.library import EmulatedLibrary
from tests.emulator.test_findings import plant
from tests.kernels.harness import PRELUDE

K = 256
"""Four steps of 64: the ring goes round twice."""
SHARED = 1024 + 2 * 16384 + 8192 + 4 * 8
INCLUDES = """
#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/tma.cuh"
#include "ait/kernels/gpu/wgmma.cuh"
using namespace ait::gpu;
"""
SOURCE = """
namespace NAME {
struct Maps {
  CUtensorMap a, b, d;
};
__global__ void planted_kernel(const __grid_constant__ Maps maps) {
  AIT_DYNAMIC_SHARED(16, shared);
  const uint32_t stages = (shared_address(shared) + 1023u) & ~1023u, staging = stages + 2 * 16384;
  const uint32_t full = staging + 8192, empty = full + 16;
  const int thread = int(threadIdx.x);
  if (thread == 0) {
    for (int s = 0; s < 2; ++s) barrier_init(full + s * 8, 1), barrier_init(empty + s * 8, 4);
    barrier_init_fence();
  }
  __syncthreads();  // made
  RingPlace<2> place;
  if (thread >= 128) {
    if (thread > 128) return;
    for (int k = 0; k < 256; k += 64) {
      const uint32_t at = stages + place.stage * 16384, barrier = full + place.stage * 8;
      barrier_wait(empty + place.stage * 8, place.parity ^ 1);
      barrier_expect(barrier, 16384);
      copy_box<false>(at, &maps.a, barrier, k, 0, 0, 0, 0);
      copy_box<false>(at + 8192, &maps.b, barrier, k, 0, 0, 0, 0);
      place.next();
    }
    return;
  }
  float acc[32];
  for (int step = 0; step < 4; ++step) {
    barrier_wait(full + place.stage * 8, place.parity);
    const uint32_t at = stages + place.stage * 16384;
    wgmma_fence();
    for (int k = 0; k < 4; ++k) {
      const uint64_t a = wgmma_operand(at + k * 32, 0), b = wgmma_operand(at + 8192 + k * 32, 0);
      Wgmma<64>::run<ait::half, 0, 0>(acc, a, b, step + k > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    if (thread % 32 == 0) barrier_arrive(empty + place.stage * 8);
    place.next();
  }
  for (int i = 0; i < 32; i += 2) {
    const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, col = i / 4 * 8 + thread % 4 * 2;
    const uint32_t to = staging + row * 128 + (col / 8 ^ row % 8) * 16 + col % 8 * 2;
    *reinterpret_cast<uint32_t*>(shared + (to - shared_address(shared))) = pack_pair<ait::half>(acc[i], acc[i + 1]);
  }
  publish_to_copies();
  named_barrier_wait(1, 128);
  if (thread == 0) {
    store_box(&maps.d, staging, 0, 0, 0, 0);
    store_commit();
    store_wait<0>();
  }
}
}  // namespace NAME
extern "C" int32_t run_NAME(const ait::half* a, const ait::half* b, ait::half* d, char* message, uint32_t shared) {
  const ait_host_v1 host = {message, test_fail};
  const ait::Context ctx{nullptr, &host};
  NAME::Maps maps;
  const bool mapped = tensor_map(&maps.a, a, 256, 50, 256, 1, 0, 1, 0, 64) &&  // rows 50 and up read as zero
                      tensor_map(&maps.b, b, 256, 64, 256, 1, 0, 1, 0, 64) && tensor_map(&maps.d, d, 56, 64, 64, 1, 0, 1, 0, 64);
  if (!mapped) return ctx.fail("no map");
  LaunchConfig config;
  config.grid = dim3(1);
  config.block = dim3(160);
  config.shared_bytes = shared;
  return launch(ctx, config, NAME::planted_kernel, maps);
}
"""


@dataclass(frozen=True)
class Mistake:
    """A replacement in the source, and the message that it must cause; None for a wrong result."""

    right: str
    wrong: str
    message: str | None


STALE = r"which a (?:copy|store) that is counted at the barrier at byte \d+ wrote and nobody waited for"
MISTAKES = {
    "no_wait": Mistake("    barrier_wait(full + place.stage * 8, place.parity);\n", "", f"({STALE}|which nothing wrote)"),
    "other_parity": Mistake("place.parity);\n", "place.parity ^ 1);\n", f"({STALE}|which nothing wrote)"),
    "bytes_too_many": Mistake(
        "barrier, 16384", "barrier, 16400",
        r"threads 0, 1, 2.* wait at barrier_wait \(planted\d.cc:\d+\), the barrier at byte \d+, "
        r"of which phase 0 lacks 0 arrivals and 16 bytes",
    ),
    "bytes_too_few": Mistake("barrier, 16384", "barrier, 8192", STALE),
    "stage_not_free": Mistake(
        "      barrier_wait(empty + place.stage * 8, place.parity ^ 1);\n", "",
        r"bulk write of .*, which (a wgmma of warpgroup 0 read|a copy that is counted .* wrote) and nobody waited for",
    ),
    "one_warp_releases": Mistake(
        "thread % 32 == 0) barrier_arrive", "thread % 128 == 0) for (int w = 0; w < 4; ++w) barrier_arrive",
        r"bulk write of .*, which a wgmma of warpgroup 0 read and nobody waited for",
    ),
    "released_early": Mistake(
        "wgmma_wait<0>();\n    if (thread % 32 == 0) barrier_arrive(empty + place.stage * 8);",
        "if (thread % 32 == 0) barrier_arrive(empty + place.stage * 8);\n    wgmma_wait<0>();",
        r"bulk write of .*, which a wgmma of warpgroup 0 read and nobody waited for",
    ),
    "never_released": Mistake(
        "if (thread % 32 == 0) barrier_arrive", "if (thread % 32 == 0 && step == 4) barrier_arrive",
        r"threads 128 wait at barrier_wait \(.*\), the barrier at byte \d+, of which phase 0 lacks 4 arrivals and 0 bytes",
    ),
    "no_products_wait": Mistake(
        "wgmma_wait<0>();", "if (step < 3) wgmma_wait<0>();", "read of an accumulator of a wgmma that was not waited for"
    ),
    "written_accumulator": Mistake("wgmma_commit();", "wgmma_commit();\n    acc[5] = 0.f;", "accumulator"),
    "no_fence": Mistake("    wgmma_fence();\n", "", "wgmma with no wgmma.fence after its registers were accessed"),
    "no_commit": Mistake("    wgmma_commit();\n", "", "(accumulator|wgmma.* nobody waited for)"),
    "other_swizzle": Mistake("wgmma_operand(at + k * 32, 0),", "wgmma_operand(at + k * 32, 0) ^ (3ull << 62),", None),
    "no_swizzle": Mistake("(col / 8 ^ row % 8)", "(col / 8)", None),
    "across_lines": Mistake("at + k * 32, 0), b", "at + 16 + k * 32, 0), b", "wgmma: operand a crosses the end of its lines"),
    "off_the_pattern": Mistake("at + k * 32, 0), b", "at + 128 + k * 32, 0), b", "starts inside of a swizzle pattern"),
    "no_proxy_fence": Mistake("  publish_to_copies();\n", "", "bulk read of .* with no fence.proxy.async"),
    "late_proxy_fence": Mistake(
        "  publish_to_copies();\n  named_barrier_wait(1, 128);\n", "  named_barrier_wait(1, 128);\n  publish_to_copies();\n",
        r"bulk read of .*, which thread \d+ wrote with no fence.proxy.async and barrier between",
    ),
    "no_barrier_of_writers": Mistake("  named_barrier_wait(1, 128);\n", "", r"bulk read of .*, which (nothing wrote|thread \d+ wrote)"),
    "unwritten_staging": Mistake("for (int i = 0; i < 32; i", "for (int i = 0; i < 26; i", "bulk read of .*, which nothing wrote"),
    "store_left": Mistake("    store_wait<0>();\n", "", "the thread ends, but a bulk store of it may still read shared memory"),
    "init_not_fenced": Mistake("    barrier_init_fence();\n", "", "whose making no fence.mbarrier_init followed"),
    "init_not_known": Mistake("  __syncthreads();  // made\n", "", "(where no barrier was made|which thread 0 made with no barrier between)"),
    "barrier_overwritten": Mistake("empty = full + 16", "empty = full + 8", "which is a barrier that thread 0 made"),
    "absent_threads": Mistake("wait(1, 128)", "wait(1, 160)", r"threads 0, 1, .* wait at bar.sync \(planted\d.cc:\d+\)"),
    "arrival_too_many": Mistake(
        "barrier_expect(barrier, 16384);", "barrier_expect(barrier, 16384), barrier_arrive(barrier);",
        "which takes 1 arrivals a phase, and has them: it lacks 16384 bytes",
    ),
    "other_descriptor": Mistake("at + 8192 + k * 32,", "at + 8192 + k * 32 + (thread == 77) * 1024,", "thread 77 of the warpgroup describes other"),
    "turn_left": Mistake(
        "  if (thread == 0) {\n    store_box", "  named_barrier_arrive(2, 160);\n  if (thread == 0) {\n    store_box",
        "the block ends while named barrier 2 has 128 of 160 arrivals",
    ),
    "copy_left": Mistake("k < 256; k += 64", "k < 320; k += 64", "nobody waited for a copy that is counted at the barrier"),
}  # fmt: skip


class Planted:
    """All of them in one library."""

    def __init__(self, workdir: Path) -> None:
        texts = [SOURCE.replace("NAME", "right")]
        for name, mistake in MISTAKES.items():
            assert SOURCE.count(mistake.right) == 1, f"{name}: {SOURCE.count(mistake.right)} places"
            texts.append(SOURCE.replace(mistake.right, mistake.wrong).replace("NAME", name))
        sources = {f"planted{i}.cc": PRELUDE + INCLUDES + "".join(texts[i::2]) for i in range(2)}
        self.library = EmulatedLibrary([], workdir, "cuda", sources=sources)
        rng = np.random.default_rng(0)
        self.a, self.b = (rng.integers(-3, 4, (64, K)).astype(np.float16) for _ in range(2))

    def run(self, name: str, shared: int = SHARED) -> np.ndarray:
        """The result: 64 x 64, of which 56 columns are written."""
        d = np.zeros((64, 64), np.float16)
        self.library.use()
        self.library.forget_buffers()
        for i, x in enumerate((self.a, self.b, d)):
            self.library.buffer(x.ctypes.data, x.nbytes, "result" if x is d else "operand", i)
        message = ctypes.create_string_buffer(512)
        places = [ctypes.c_void_p(x.ctypes.data) for x in (self.a, self.b, d)]
        if self.library.lib[f"run_{name}"](*places, message, ctypes.c_uint32(shared)) != 0:
            raise RuntimeError(message.value.decode())
        return d

    def expected(self) -> np.ndarray:
        a = self.a.astype(np.float32)
        a[50:] = 0
        d = a @ self.b.astype(np.float32).T
        d[:, 56:] = 0
        return d


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return Planted(tmp_path_factory.mktemp("planted"))


def test_right(planted: Planted) -> None:
    np.testing.assert_array_equal(planted.run("right"), planted.expected())


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(planted: Planted, name: str) -> None:
    message = MISTAKES[name].message
    if message is None:
        assert (planted.run(name) != planted.expected()).sum() > 100
        return
    with pytest.raises(RuntimeError, match=message):
        planted.run(name)


def test_too_little_shared_memory(planted: Planted) -> None:
    with pytest.raises(RuntimeError, match=r"of dynamic shared memory, which has \d+"):
        planted.run("right", SHARED - 1024)


ONES = """
  AIT_DYNAMIC_SHARED(16, memory);
  const uint32_t b = (shared_address(memory) + 1023u) & ~1023u;
  uint32_t* const words = reinterpret_cast<uint32_t*>(memory + (b - shared_address(memory)));
  for (int i = threadIdx.x; i < 512; i += 128) words[i] = 0x3c003c00;  // ones
  PUBLISH
  __syncthreads();
  uint32_t a[4];
  for (int i = 0; i < 4; ++i) a[i] = pack_pair<ait::half>(in[threadIdx.x / 4], in[threadIdx.x / 4]);
  float d[32] = {};
  wgmma_fence();
  WgmmaFromRegisters<64>::run<ait::half>(d, a, wgmma_operand(b, 0));
  wgmma_commit();
  AFTER
  wgmma_wait<0>();
  out[threadIdx.x] = d[0];
"""


def test_operands_in_registers(tmp_path: Path) -> None:
    include = '#include "ait/kernels/gpu/wgmma_registers.cuh"\n'
    right = ONES.replace("PUBLISH", "publish_to_copies();")
    got = plant(right.replace("AFTER", ""), "cuda", tmp_path / "right", include).run(shared=3072)
    np.testing.assert_array_equal(got[:128], np.repeat(np.arange(32), 4) * 16)
    with pytest.raises(RuntimeError, match="write of an operand register of a wgmma that was not waited for"):
        plant(right.replace("AFTER", "a[1] = 0;"), "cuda", tmp_path / "written", include).run(shared=3072)
    with pytest.raises(RuntimeError, match=r"wgmma: read of .* with no fence.proxy.async and barrier between"):
        unfenced = ONES.replace("PUBLISH", "").replace("AFTER", "")
        plant(unfenced, "cuda", tmp_path / "unfenced", include).run(shared=3072)


SENT = """
  AIT_DYNAMIC_SHARED(16, memory);
  const uint32_t inbox = shared_address(memory), received = inbox + 2048;
  if (threadIdx.x == 0) {
    barrier_init(received, 1);
    barrier_init_fence();
    barrier_expect(received, 2048);
  }
  cluster_barrier();
  const uint32_t other = 1 - blockIdx.x, mine = inbox + threadIdx.x * 16;
  const float x = in[blockIdx.x * 128 + threadIdx.x];
  send(address_in(mine, other), address_in(received, OTHER), x, x, x, x);
  WAIT
  float v[4];
  load_shared_floats(v, mine);
  out[blockIdx.x * 128 + threadIdx.x] = v[3];
"""


def test_sums_of_other_blocks_are_waited_for(tmp_path: Path) -> None:
    right = SENT.replace("OTHER", "other").replace("WAIT", "barrier_wait(received, 0);")
    got = plant(right, "cuda", tmp_path / "right").run(2, 2056, 2)
    np.testing.assert_array_equal(got, np.roll(np.arange(256), 128))
    with pytest.raises(RuntimeError, match=f"({STALE}|which nothing wrote|, which has 0)"):
        plant(SENT.replace("OTHER", "other").replace("WAIT", ""), "cuda", tmp_path / "no_wait").run(2, 2056, 2)
    with pytest.raises(RuntimeError, match=r"st.async to one block, counted in another"):
        plant(right.replace("address_in(received, other)", "received"), "cuda", tmp_path / "here").run(2, 2056, 2)
    with pytest.raises(RuntimeError, match=r"st.async in a cluster of one block: it takes two"):
        plant(right.replace("1 - blockIdx.x", "0"), "cuda", tmp_path / "alone").run(1, 2056, 1)


COPIED = """
  AIT_DYNAMIC_SHARED(16, memory);
  const uint32_t words = shared_address(memory), arrived = words + 512;
  if (threadIdx.x == 0) {
    barrier_init(arrived, 1);
    barrier_init_fence();
    barrier_expect(arrived, 512);
    copy_bulk(words, in, 512, arrived);
  }
  __syncthreads();
  barrier_wait(arrived, 0);
  out[threadIdx.x] = reinterpret_cast<const float*>(memory)[threadIdx.x];
"""
COPIED_WRONG = {
    "no_wait": ("barrier_wait(arrived, 0);", "", f"({STALE}|which nothing wrote)"),
    "between": ("copy_bulk(words, in,", "copy_bulk(words, in + 1,", "which are not both aligned to 16 bytes"),
    "part": ("in, 512,", "in, 508,", "of 508 bytes, which are no multiple of 16"),
    "too_much": (
        "copy_bulk(words, in, 512",
        "copy_bulk(words, in + 160, 512",
        "read of 16 bytes at byte 1024 of buffer 0",
    ),
    "too_few": ("in, 512,", "in, 496,", "lacks 0 arrivals and 16 bytes"),
}


def test_copies_of_neighbouring_bytes(tmp_path: Path) -> None:
    include = '#include "ait/kernels/gpu/bulk_copy.cuh"\n'
    got = plant(COPIED, "cuda", tmp_path / "right", include).run(1, 520)
    np.testing.assert_array_equal(got[:128], np.arange(128))
    for name, (right, wrong, message) in COPIED_WRONG.items():
        assert COPIED.count(right) == 1, name
        with pytest.raises(RuntimeError, match=message):
            plant(COPIED.replace(right, wrong), "cuda", tmp_path / name, include).run(1, 520)
