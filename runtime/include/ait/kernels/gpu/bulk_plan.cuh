/// @file bulk_plan.cuh
/// @brief Which rows pass through shared memory by bulk copies into the registers of blocks, and in the hands of how many threads.
#ifndef AIT_KERNELS_GPU_BULK_PLAN_CUH_
#define AIT_KERNELS_GPU_BULK_PLAN_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/gpu/ring_plan.cuh"
#include "ait/kernels/gpu/row_read.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief How rows of one length pass through the shared memory of a block into its registers.
struct BulkPlan {
  int cluster;  ///< blocks that share a row; 0: these rows do not pass in this way
  int threads;  ///< of a block that have chunks of the row
  int turns;    ///< chunks that a thread has
  int own;      ///< chunks that a block has
  int places;   ///< turns that the ring has room for
  bool kept;    ///< factors lie in shared memory shifted as the rows are, which all begin alike; otherwise they are shifted where they are used

  constexpr int warps() const { return threads / kWarpSize; }
  /// Chunks of a row of factors in shared memory.
  constexpr int factor_chunks() const { return kept ? turns * threads : own + 2; }
};

namespace detail {
/// Registers of a thread besides the row that it has.
inline constexpr int kBulkRegisters = 40;

/// Fewer bytes on their way do not keep the memory of a card busy.
inline constexpr int kBulkAhead = 64 * 1024;

/// Where what lies in shared memory begins: places of `ins` operands, factors, what two rows are, barriers.
constexpr int bulk_factors_at(const BulkPlan& plan, int ins) { return plan.places * ins * plan.threads * 16; }
constexpr int bulk_exchange_at(const BulkPlan& plan, int ins, int factors) {
  return bulk_factors_at(plan, ins) + factors * plan.factor_chunks() * 16;
}
constexpr int bulk_bytes(const BulkPlan& plan, int ins, int factors) {
  return bulk_exchange_at(plan, ins, factors) + exchange_bytes(plan.cluster, plan.threads) + 2 * plan.places * 8;
}

/// Rows of at most so many chunks in the hands of so many blocks: as many threads as have room for their chunks in registers.
constexpr BulkPlan plan_bulk_blocks(int cluster, int64_t chunks, int ins, int factors, bool kept) {
  const int own = static_cast<int>((chunks + cluster - 1) / cluster);
  for (int turns = 1; turns <= 16; ++turns) {
    const int threads = ((own + turns - 1) / turns + kWarpSize - 1) / kWarpSize * kWarpSize;
    if (threads + kWarpSize > 1024) continue;
    const int registers = 64 * 1024 / (threads + kWarpSize) / 8 * 8;
    if (turns * ins * 4 + kBulkRegisters > registers) continue;
    BulkPlan plan{cluster, threads, turns, own, 0, kept};
    while (bulk_bytes(plan, ins, factors) <= kRingBytes) ++plan.places;
    --plan.places;
    if (plan.places < 2 || plan.places * ins * threads * 16 < kBulkAhead) continue;
    return plan;
  }
  return BulkPlan{0, 0, 0, 0, 0, false};
}

/// The fewest blocks that have room for the row in their registers, and for their factors beside the ring.
constexpr BulkPlan plan_bulk(int64_t chunks, int ins, int factors, bool kept) {
  for (int cluster = 1; cluster <= 2; cluster *= 2) {
    const BulkPlan plan = plan_bulk_blocks(cluster, chunks, ins, factors, kept);
    if (plan.cluster > 0) return plan;
  }
  return BulkPlan{0, 0, 0, 0, 0, false};
}

/// `kChunks` is what a row has that begins where it takes the most.
template <int kVec, Cut kCut, int64_t kLengthOf, int kIns, int kFactors, RingUse kUse>
struct BulkOf {
  static constexpr int64_t kLength = kLengthOf;
  static constexpr int64_t kChunks = kCut == Cut::whole ? kLength / kVec : (kLength + 2 * kVec - 2) / kVec;
  /// Rows that registers of a block do not hold by other ways (row.cuh), but for softmax of those that its shared memory holds.
  static constexpr bool kGains = kChunks * 16 * kIns > (kUse == RingUse::softmax ? kRingBytes : 64 * 1024);
  static constexpr BulkPlan value = kGains ? plan_bulk(kChunks, kIns, kFactors, kCut != Cut::whole) : BulkPlan{0, 0, 0, 0, 0, false};
};
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_BULK_PLAN_CUH_
