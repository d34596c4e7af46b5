/// @file bulk.cuh
/// @brief The instructions of Hopper (sm_90 and later) that go on beside the threads: bulk copies, the barriers in shared memory that count their
/// bytes, and named barriers.
#ifndef AIT_KERNELS_GPU_BULK_CUH_
#define AIT_KERNELS_GPU_BULK_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"

#if defined(AIT_CUDA)
#include <cuda.h>

namespace ait::gpu {

/// @brief Prepares a barrier whose phase ends after `arrivals` arrivals and the bytes announced.
__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// @brief Makes the barriers of this thread visible to the cluster and the copy engine.
__device__ __forceinline__ void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory"); }

/// @brief Arrives and announces `bytes` that copies will write.
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes) : "memory");
}

/// @brief Arrives.
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

/// @brief Arrives at the same barrier in block `rank` of the cluster.
__device__ __forceinline__ void barrier_arrive(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

/// @brief Waits until the phase of parity `parity` has ended.
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni DONE;\n"
      "bra.uni WAIT;\n"
      "DONE:\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// @brief Starts the copy of a box to shared memory, to every block of `mask` if `kMulticast`, at the same place in each.
template <bool kMulticast>
__device__ __forceinline__ void copy_box(uint32_t to, const CUtensorMap* map, uint32_t barrier, int unit, int line, int inner, int outer,
                                         uint16_t mask) {
  if constexpr (kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], "
        "%7;\n" ::"r"(to),
        "l"(map), "r"(barrier), "r"(unit), "r"(line), "r"(inner), "r"(outer), "h"(mask)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];\n" ::"r"(to),
        "l"(map), "r"(barrier), "r"(unit), "r"(line), "r"(inner), "r"(outer)
        : "memory");
  }
}

/// @brief Starts the copy of some channels at the places of a window from (`y`, `x`) of an image on, all moved by the offset of a tap.
__device__ __forceinline__ void copy_window(uint32_t to, const CUtensorMap* map, uint32_t barrier, int channel, int x, int y, int image,
                                            uint16_t dx, uint16_t dy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};\n" ::"r"(
          to),
      "l"(map), "r"(barrier), "r"(channel), "r"(x), "r"(y), "r"(image), "h"(dx), "h"(dy)
      : "memory");
}

/// @brief The same for windows over three dims, of which `z` is the first.
__device__ __forceinline__ void copy_window(uint32_t to, const CUtensorMap* map, uint32_t barrier, int channel, int x, int y, int z, int image,
                                            uint16_t dx, uint16_t dy, uint16_t dz) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, "
      "%10};\n" ::"r"(to),
      "l"(map), "r"(barrier), "r"(channel), "r"(x), "r"(y), "r"(z), "r"(image), "h"(dx), "h"(dy), "h"(dz)
      : "memory");
}

/// @brief Starts the copy of a box from shared memory, in the group that the next `store_commit` of this thread closes.
__device__ __forceinline__ void store_box(const CUtensorMap* map, uint32_t from, int unit, int line, int inner, int outer) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];\n" ::"l"(map), "r"(from), "r"(unit),
               "r"(line), "r"(inner), "r"(outer)
               : "memory");
}

/// @brief Closes the group of stores started by this thread since the last call.
__device__ __forceinline__ void store_commit() { asm volatile("cp.async.bulk.commit_group;\n" ::: "memory"); }

/// @brief Waits until all but the newest `kPending` groups of this thread have read shared memory.
template <int kPending>
__device__ __forceinline__ void store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(kPending) : "memory");
}

/// @brief Orders this thread's earlier writes to shared memory before copies that are started after a barrier.
__device__ __forceinline__ void publish_to_copies() { asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory"); }

/// @brief The address in block `rank` of the cluster that corresponds to `address` in this block.
__device__ __forceinline__ uint32_t address_in(uint32_t address, uint32_t rank) {
  uint32_t remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(remote) : "r"(address), "r"(rank));
  return remote;
}

/// @brief Writes 16 bytes to shared memory of a block of the cluster and counts them at a barrier of that block.
__device__ __forceinline__ void send(uint32_t to, uint32_t barrier, float a, float b, float c, float d) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];\n" ::"r"(to), "r"(barrier),
               "f"(a), "f"(b), "f"(c), "f"(d)
               : "memory");
}

/// @brief Brings a tensor map into the cache.
__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
}

/// @brief Waits at named barrier `id` for the arrivals that complete `threads`.
__device__ __forceinline__ void named_barrier_wait(int id, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

/// @brief Arrives at named barrier `id` and goes on.
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_BULK_CUH_
