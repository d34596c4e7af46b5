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
  int cluster = 0;    ///< blocks that share a row; 0: these rows do not pass in this way
  int threads = 0;    ///< of a block that have chunks of the row
  int turns = 0;      ///< chunks that a thread has
  int own = 0;        ///< chunks that a block has
  int places = 0;     ///< turns that the ring has room for
  bool kept = false;  ///< factors lie in shared memory shifted as the rows are, which all begin alike; otherwise they are shifted where they are used

  constexpr int warps() const { return threads / kWarpSize; }
  /// Chunks of a row of factors in shared memory.
  constexpr int factor_chunks() const { return kept ? turns * threads : own + 2; }
};

namespace detail {
/// Registers of a thread besides the row that it has.
inline constexpr int kBulkRegisters = 40;

/// The ring has room for this much at least: with 96 KB rms_norm of 131,072 elements took 182 us, without bulk copies 143.
inline constexpr int kBulkAhead = 112 * 1024;

/// Where what lies in shared memory begins: places of `ins` operands, factors, what two rows are, barriers.
constexpr int bulk_factors_at(const BulkPlan& plan, int ins) { return plan.places * ins * plan.threads * 16; }
constexpr int bulk_exchange_at(const BulkPlan& plan, int ins, int factors) {
  return bulk_factors_at(plan, ins) + factors * plan.factor_chunks() * 16;
}
constexpr int bulk_bytes(const BulkPlan& plan, int ins, int factors) {
  return bulk_exchange_at(plan, ins, factors) + exchange_bytes(plan.cluster, plan.threads) + 2 * plan.places * 8;
}

/// Rows of at most so many chunks in the hands of two blocks, of as many threads as have room for their chunks in registers. One block has no room
/// for the factors of a long row beside a ring, and of more there are some for which a card has no room.
constexpr BulkPlan plan_bulk(int64_t chunks, int ins, int factors, bool kept) {
  constexpr int kCluster = 2;
  const int own = static_cast<int>((chunks + kCluster - 1) / kCluster);
  for (int turns = 1; turns <= 16; ++turns) {
    const int threads = ((own + turns - 1) / turns + kWarpSize - 1) / kWarpSize * kWarpSize;
    if (threads + kWarpSize > 1024) continue;
    const int registers = 64 * 1024 / (threads + kWarpSize) / 8 * 8;
    if (turns * ins * 4 + kBulkRegisters > registers) continue;
    BulkPlan plan{kCluster, threads, turns, own, 0, kept};
    while (bulk_bytes(plan, ins, factors) <= kRingBytes) ++plan.places;
    --plan.places;
    if (plan.places >= 2 && plan.places * ins * threads * 16 >= kBulkAhead) return plan;
  }
  return BulkPlan{};
}

/// Whether rows gain that have so many bytes of `ins` operands: of norms those that registers of a block do not hold by other ways (row.cuh), if they
/// are centred, or begin anywhere; all that no block could hold.
constexpr bool bulk_gains(int64_t bytes, int ins, RingUse use, bool edges) {
  if (bytes > kRingBytes) return true;
  if (use == RingUse::centred_norm) return bytes >= (ins == 1 ? 64 : 96) * 1024;
  return use == RingUse::norm && edges && bytes >= 96 * 1024;
}

/// `kChunks` is what a row has that begins where it takes the most. Factors are shifted where they are used if that is less work than there is memory
/// to wait for: no more rows of them than operands.
template <int kVec, Cut kCut, int64_t kLengthOf, int kIns, int kFactors, RingUse kUse>
struct BulkOf {
  static constexpr int64_t kLength = kLengthOf;
  static constexpr bool kEdges = kCut != Cut::whole;
  static constexpr int64_t kChunks = kEdges ? (kLength + 2 * kVec - 2) / kVec : kLength / kVec;
  static constexpr BulkPlan value =
      bulk_gains(kChunks * 16 * kIns, kIns, kUse, kEdges) ? plan_bulk(kChunks, kIns, kFactors, kEdges && kFactors > kIns) : BulkPlan{};
};
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_BULK_PLAN_CUH_
