/// @file row_told.cuh
/// @brief Partial results of a row that the warps of a block or cluster send each other, counted at a barrier in shared memory (sm_90 and later).
///
/// A barrier of the cluster would make each thread wait until what it has stored before, and what it copies, has come to memory: its release is a
/// fence of all of that, and its acquire empties the L1 cache. Here nothing is released but 16 bytes.
#ifndef AIT_KERNELS_GPU_ROW_TOLD_CUH_
#define AIT_KERNELS_GPU_ROW_TOLD_CUH_

#include <stdint.h>

#include "ait/kernels/gpu/bulk.cuh"
#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

namespace detail {
/// What so many warps of each of `kCluster` blocks know of a row, in turns of two slots. A warp sends what it knows of the next row to no slot that
/// a warp still reads: it has collected this row, for which all have arrived that had collected the one before.
template <class Policy, int kWarps, int kCluster>
struct RowTold {
  using Part = typename Policy::Part;
  static constexpr int kParts = kWarps * kCluster, kPartsOfLane = (kParts + kWarpSize - 1) / kWarpSize;
  static constexpr int kBytes = 2 * kParts * 16 + 2 * 8;
  static constexpr bool kAlone = kCluster == 1;  ///< nothing is sent: a cluster of one block cannot

  float4* exchange;       ///< kBytes of shared memory
  int rank;               ///< of this block
  uint32_t parities = 0;  ///< a bit for each slot

  __device__ __forceinline__ RowTold(char* shared, int rank_of_block) : exchange(reinterpret_cast<float4*>(shared)), rank(rank_of_block) {}
  __device__ __forceinline__ uint32_t barrier(int slot) const { return shared_address(exchange + 2 * kParts) + slot * 8; }

  /// What is sent to a slot is counted in bytes.
  __device__ __forceinline__ void expect(int slot) const {
    if constexpr (!kAlone) barrier_expect(barrier(slot), kParts * 16);
  }
  /// One thread makes the barriers, before a barrier of the cluster.
  __device__ __forceinline__ void make() const {
    for (int slot = 0; slot < 2; ++slot) barrier_init(barrier(slot), kParts + (kAlone ? 0 : 1));
    barrier_init_fence();
    for (int slot = 0; slot < 2; ++slot) expect(slot);
  }
  /// Tells all blocks what this warp knows.
  __device__ __forceinline__ void publish(const Part& part, int slot) const {
    const int lane = threadIdx.x % kWarpSize, from = rank * kWarps + threadIdx.x / kWarpSize;
    const float4 known = part.packed();
    __syncwarp();  // all lanes have collected the row before
    if constexpr (kAlone) {
      if (lane == 0) exchange[slot * kParts + from] = known, barrier_arrive(barrier(slot));
    } else if (lane < kCluster) {
      const uint32_t to = static_cast<uint32_t>(lane);
      send(address_in(shared_address(exchange + slot * kParts + from), to), address_in(barrier(slot), to), known.x, known.y, known.z, known.w);
      barrier_arrive(barrier(slot), to);
    }
  }
  /// Waits for what all warps know: the row, of `total` elements.
  __device__ __forceinline__ Part collect(const Policy& policy, int slot, float total) {
    barrier_wait(barrier(slot), parities >> slot & 1);
    parities ^= 1u << slot;
    if (threadIdx.x == 0) expect(slot);  // the row after the next
    Part parts[kPartsOfLane];
#pragma unroll
    for (int p = 0; p < kPartsOfLane; ++p) {
      const int part = p * kWarpSize + threadIdx.x % kWarpSize;
      if (part < kParts) parts[p] = Part(exchange[slot * kParts + part]);
    }
    return policy.join(parts, total);
  }
};
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ROW_TOLD_CUH_
