"""Mistakes between threads and bulk copies, which reach shared memory by different proxies: only a fence orders one after the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ait_mlir.lowering.toolchain import cpp_root
from tests.emulator.library import TARGETS, EmulatedLibrary
from tests.emulator.test_findings import plant
from tests.kernels import rows
from tests.kernels.harness import check, source_of

REUSED = """
  AIT_DYNAMIC_SHARED(16, memory);
  float* const place = reinterpret_cast<float*>(memory);
  const uint32_t at = shared_address(memory), full = at + 512, empty = full + 8;
  if (threadIdx.x == 0) {
    barrier_init(full, 1);
    barrier_init(empty, 4);
    barrier_init_fence();
  }
  __syncthreads();
  for (uint32_t round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) {
      barrier_wait(empty, round ^ 1);
      barrier_expect(full, 512);
      copy_bulk(at, in + round * 128, 512, full);
    }
    barrier_wait(full, round);
    out[round * 128 + threadIdx.x] = place[threadIdx.x];
    BEFORE
    publish_to_copies();
    AFTER
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(empty);
  }
"""
FENCED = "publish_to_copies();\n"
UNFENCED = r"bulk write of dynamic shared memory, byte \d+, which thread \d+(?: of block \d+)? {} with no fence.proxy.async and barrier between"
REUSED_WRONG = {
    "no_fence": ((FENCED, "\n"),),
    "of_one_lane": ((FENCED, "\n"), ("barrier_arrive(empty);", "publish_to_copies(), barrier_arrive(empty);")),
    "behind_the_arrival": ((FENCED, "\n"), ("barrier_arrive(empty);", "barrier_arrive(empty);\n    publish_to_copies();")),
    "of_who_copies": ((FENCED, "\n"), ("barrier_expect(full", "publish_to_copies();\n      barrier_expect(full")),
}  # fmt: skip
ACCESSES = {
    "load": ("if (place[0] < 0.f) out[threadIdx.x] = 0.f;", "read"),
    "ldmatrix": ("uint32_t r[4]; load_matrix_x4(r, at + threadIdx.x % 32 * 16);", "read"),
    "store": ("place[threadIdx.x] = 0.f;", "wrote"),
    "stmatrix": (
        "const uint32_t w[4] = {}; __syncthreads(); if (threadIdx.x < 32) store_matrix_x4(at + threadIdx.x * 16, w);",
        "wrote",
    ),
}
"""Of a place that the next copy takes."""
BULK = '#include "ait/kernels/gpu/bulk_copy.cuh"\n'


def reused(before: str = "", after: str = "") -> str:
    return REUSED.replace("BEFORE", before).replace("AFTER", after)


def test_places_are_reused(tmp_path: Path) -> None:
    got = plant(reused(), "cuda", tmp_path, BULK).run(1, 528)
    np.testing.assert_array_equal(got, np.arange(256))


@pytest.mark.parametrize("name", REUSED_WRONG)
def test_copies_come_before_what_is_read(name: str, tmp_path: Path) -> None:
    """Arrivals order what the proxy of threads does; copies are made by another, in spite of them."""
    body = reused()
    for right, wrong in REUSED_WRONG[name]:
        assert body.count(right) == 1
        body = body.replace(right, wrong)
    with pytest.raises(RuntimeError, match=UNFENCED.format("read")):
        plant(body, "cuda", tmp_path, BULK).run(1, 528)


@pytest.mark.parametrize("name", ACCESSES)
def test_copies_follow_ordinary_accesses(name: str, tmp_path: Path) -> None:
    access, did = ACCESSES[name]
    plant(reused(before=access), "cuda", tmp_path / "right", BULK).run(1, 528)
    with pytest.raises(RuntimeError, match=UNFENCED.format(did)):
        plant(reused(after=access), "cuda", tmp_path / "wrong", BULK).run(1, 528)


SENT_OVER = """
  AIT_DYNAMIC_SHARED(16, memory);
  const uint32_t inbox = shared_address(memory), received = inbox + 2048, copied = received + 8;
  if (threadIdx.x == 0) {
    barrier_init(received, 1);
    barrier_init(copied, 1);
    barrier_init_fence();
    barrier_expect(received, 2048);
  }
  cluster_barrier();
  const uint32_t other = 1 - blockIdx.x, mine = inbox + threadIdx.x * 16;
  send(address_in(mine, other), address_in(received, other), 1.f, 2.f, 3.f, 4.f);
  barrier_wait(received, 0);
  PUBLISH
  __syncthreads();
  if (threadIdx.x == 0) {
    barrier_expect(copied, 1024);
    copy_bulk(inbox, in, 1024, copied);
  }
  barrier_wait(copied, 0);
  out[blockIdx.x * 128 + threadIdx.x] = reinterpret_cast<const float*>(memory)[blockIdx.x * 128 + threadIdx.x];
"""


def test_copies_follow_what_was_sent(tmp_path: Path) -> None:
    """st.async writes by the proxy of threads."""
    right = SENT_OVER.replace("PUBLISH", "if (threadIdx.x == 64) publish_to_copies();")
    got = plant(right, "cuda", tmp_path / "right", BULK).run(2, 2064, 2)
    np.testing.assert_array_equal(got, np.arange(256))
    message = (
        r"bulk write of .*, which a store that is counted at the barrier at byte 2048 wrote with no fence.proxy.async"
    )
    with pytest.raises(RuntimeError, match=message):
        plant(SENT_OVER.replace("PUBLISH", ""), "cuda", tmp_path / "wrong", BULK).run(2, 2064, 2)


REMOVED = {
    "readers": (" Part read(const Policy& policy) {", "publish_to_copies();", "read"),
    "copier": (" void copy(const Op& operand", "if (first || last) publish_to_copies();", "wrote"),
}
"""Of `BulkRow`: the function, its fence, and what then came before the next copy."""


@pytest.mark.parametrize("name", REMOVED)
def test_rows_by_bulk_copies_without_a_fence(name: str, tmp_path: Path) -> None:
    function, fence, did = REMOVED[name]
    header = (cpp_root() / "include/ait/kernels/gpu/bulk_row.cuh").read_text()
    before, found, body = header.partition(function)
    assert found and body.partition("\n  }\n")[0].count(fence) == 1
    case = rows.kept_sum("9 x 26003", "26003", "f16", strides=rows.apart(26008, 0, 3, 4, 5), offset=1)
    # what the kernel includes again is not read again
    source = before + found + body.replace(fence, "", 1) + source_of([case], TARGETS["cuda"])
    library = EmulatedLibrary([case], tmp_path, "cuda", sources={"cases0.cc": source})
    with pytest.raises(RuntimeError, match=f"row_bulk_kernel: .*{UNFENCED.format(did)}"):
        check(library, case, 0)
