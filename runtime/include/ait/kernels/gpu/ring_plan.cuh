/// @file ring_plan.cuh
/// @brief Which rows pass through a ring in shared memory, and in the hands of how many threads.
#ifndef AIT_KERNELS_GPU_RING_PLAN_CUH_
#define AIT_KERNELS_GPU_RING_PLAN_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/gpu/row_read.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief How rows of one length pass through the shared memory of a block.
struct RingPlan {
  int cluster;  ///< blocks that share a row; 0: these rows do not pass through a ring
  int group;    ///< threads of a block that share a row
  int groups;   ///< rows of a block at a time
  int turns;    ///< chunks of a row that a thread has
  int places;   ///< chunks that a thread has room for

  constexpr int threads() const { return group * groups; }
};

/// @brief The computation on rows.
enum class RingUse { softmax, norm, centred_norm };

namespace detail {
/// Shared memory of a block on the architectures that have clusters.
inline constexpr int kRingBytes = 227 * 1024;

/// What the warps of a cluster tell each other of two rows.
constexpr int exchange_bytes(int cluster, int group) { return cluster * (group / kWarpSize) * 2 * 16 + 2 * 8; }

/// The plan with as many places as there is room for: as many as two rows and a half need let one row be stored while the next is reduced and the one
/// after it read.
constexpr RingPlan fill_ring(RingPlan plan, int chunk_bytes, int factor_bytes) {
  const int free = kRingBytes - exchange_bytes(plan.cluster, plan.group) - plan.turns * plan.group * factor_bytes;
  plan.places = free > 0 ? free / (plan.group * plan.groups * chunk_bytes) : 0;
  return plan;
}

/// Rows of so many chunks in the hands of blocks, each of which has some of them in so many turns; no plan if that takes more than `most_threads`.
constexpr RingPlan plan_blocks(int cluster, int64_t chunks, int64_t turns, int most_threads, int chunk_bytes, int factor_bytes) {
  const int64_t own = (chunks + cluster - 1) / cluster;
  const int group = static_cast<int>(((own + turns - 1) / turns + kWarpSize - 1) / kWarpSize * kWarpSize);
  if (group > most_threads) return RingPlan{0, 0, 0, 0, 0};
  const RingPlan plan = fill_ring(RingPlan{cluster, group, 1, static_cast<int>(turns), 0}, chunk_bytes, factor_bytes);
  return 2 * plan.places >= 5 * turns ? plan : RingPlan{0, 0, 0, 0, 0};
}

/// Rows of so many chunks, of which each has `chunk_bytes` and needs `factor_bytes` of factors. Blocks that tell each other what they know have few
/// threads, since each warp reads what all warps know; and blocks share a row only where one could not hold it, and it has no edges.
constexpr RingPlan plan_ring(int64_t chunks, int chunk_bytes, int factor_bytes, bool edges) {
  if (chunks <= 1100) {  // a warp has a row
    const int turns = static_cast<int>((chunks + kWarpSize - 1) / kWarpSize);
    const RingPlan plan = fill_ring(RingPlan{1, kWarpSize, chunks <= 640 ? 16 : 8, turns, 0}, chunk_bytes, factor_bytes);
    if (4 * plan.places >= 5 * plan.turns) return plan;
  }
  if (chunks <= 4 * 1024) {
    const RingPlan plan = plan_blocks(1, chunks, (chunks + 1023) / 1024, 1024, chunk_bytes, factor_bytes);
    if (plan.cluster > 0) return plan;
  }
  for (int cluster = 4; cluster <= 8 && chunks * chunk_bytes > kRingBytes && !edges; cluster *= 2) {
    for (int threads = 512; threads <= 1024; threads *= 2) {
      for (int turns = 4; turns <= 8; turns *= 2) {
        const RingPlan plan = plan_blocks(cluster, chunks, turns, threads, chunk_bytes, factor_bytes);
        if (plan.cluster > 0) return plan;
      }
    }
  }
  return RingPlan{0, 0, 0, 0, 0};
}

/// The rows of `kLength` elements are cut at sectors of memory.
inline constexpr size_t kRingBoundary = 32;

/// Whether rows of `ins` operands gain: norms of one operand whose rows registers would hold, but whose factors not, and all that no block could hold.
/// `chunks` is what registers would hold.
constexpr bool gains(int64_t chunks, int ins, RingUse use) {
  return chunks * 16 * ins > kRingBytes || (use != RingUse::softmax && ins == 1 && chunks > 256 && chunks <= 2048);
}

template <int kVec, Cut kCut, int64_t kLengthOf, int kIns, int kFactors, RingUse kUse, int64_t kHeldChunks>
struct RingOf {
  static constexpr int64_t kLength = kLengthOf;
  static constexpr RingPlan kPlan = plan_ring(chunks_of<kVec, kCut>(kLengthOf, kRingBoundary / 16), 16 * kIns, 16 * kFactors, kCut != Cut::whole);
  static constexpr RingPlan value = gains(kHeldChunks, kIns, kUse) ? kPlan : RingPlan{0, 0, 0, 0, 0};
};
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_RING_PLAN_CUH_
