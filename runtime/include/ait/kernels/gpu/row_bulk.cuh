/// @file row_bulk.cuh
/// @brief Norms and softmax of many long rows by blocks that stay: bulk copies bring rows to come while one is in registers (sm_90 and later).
///
/// A row belongs to the blocks of a cluster, its factors lie in their shared memory. One thread starts the copies of rows to come into a ring;
/// the others take a row out of it into registers, so that its places are free at once, and all of the ring is on its way. Copies pass by the queue
/// in which an SM answers the loads of its threads. What the warps know of a row they send to each other, counted at a barrier: no thread waits
/// for what it has stored before.
#ifndef AIT_KERNELS_GPU_ROW_BULK_CUH_
#define AIT_KERNELS_GPU_ROW_BULK_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/bulk_plan.cuh"
#include "ait/kernels/gpu/bulk_row.cuh"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/resident.cuh"
#include "ait/kernels/gpu/ring_policies.cuh"
#include "ait/kernels/gpu/row_told.cuh"
#include "ait/kernels/operand.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// Blocks stay: a cluster has the rows as far apart as there are clusters. The last warp copies.
template <class F, class Plan, int kVec, detail::Cut kCut, class Policy, class Ins, class Outs>
__global__ void __launch_bounds__(Plan::value.threads + kWarpSize, 1) row_bulk_kernel(int64_t rows, Ins ins, Outs outs, Policy policy) {
  using R = detail::BulkRow<F, Plan, kVec, kCut, Policy, Ins, Outs>;
  using Part = typename Policy::Part;
  constexpr BulkPlan kPlan = Plan::value;
  AIT_DYNAMIC_SHARED(16, bulk_shared);
  R row;
  row.rank = blockIdx.x % kPlan.cluster, row.thread = threadIdx.x;
  row.ring = reinterpret_cast<uint4*>(bulk_shared);
  row.factors = reinterpret_cast<uint4*>(bulk_shared + R::kFactorsAt);
  detail::RowTold<Policy, R::kWarps, kPlan.cluster> told(bulk_shared + R::kExchangeAt, row.rank);
  row.full = shared_address(bulk_shared + R::kExchangeAt + told.kBytes);
  row.empty = row.full + kPlan.places * 8;
  if (threadIdx.x == 0) {
    for (int place = 0; place < kPlan.places; ++place) barrier_init(row.full + place * 8, 1), barrier_init(row.empty + place * 8, R::kWarps);
    told.make();
  }
  wait_for_previous();
  allow_next();
  cluster_barrier();  // barriers are made
  const int64_t first = blockIdx.x / kPlan.cluster, step = gridDim.x / kPlan.cluster;
  if (threadIdx.x >= kPlan.threads) {
    if (threadIdx.x == kPlan.threads) row.copy_rows(ins, first, rows, step, typename R::InIndices{});
    return;
  }
  if (first >= rows) return;
  row.outs = row.row.outs = outs;
  row.move(first);
  row.keep_factors(policy);
  if constexpr (R::kFactors > 0 && !kPlan.kept) named_barrier_wait(1, kPlan.threads);
  const float all = static_cast<float>(R::kLength);
  int slot = 0;
  for (int64_t index = first; index < rows; index += step, slot ^= 1) {
    row.move(index);
    const Part own[1] = {row.read(policy)};
    float count = 0;
    if constexpr (Policy::kUse == RingUse::centred_norm) count = detail::over_warp(own[0].count, Plus{});
    told.publish(policy.join(own, count), slot);
    row.finish(policy, policy.result(told.collect(policy, slot, all), all));
  }
}

namespace detail {
/// Launches what is done with rows where bulk copies bring them; `done` says whether they do.
template <class F, int kVec, Cut kCut, int64_t kLength, class Policy, class... Ins, size_t... I, class... Outs, size_t... O>
int32_t launch_bulk(const Context& ctx, int64_t rows, const Pack<Ins...>& ins, std::index_sequence<I...>, const Pack<Outs...>& outs,
                    std::index_sequence<O...>, const Policy& of_rows, bool& done) {
  using Out = std::decay_t<decltype(get<0>(outs))>;
  using OfRing = RingPolicy<Policy, is_narrow_float<typename Out::Value>>;
  constexpr bool kWords = ((Ins::kInner == Inner::unit && sizeof(typename Ins::Value) * kVec == 16) && ...) &&
                          ((Outs::kInner == Inner::unit && sizeof(typename Outs::Value) * kVec == 16) && ...) &&
                          sizeof(typename OfRing::Factor) * kVec == 16 && std::is_same<typename Out::Compute, float>::value;
  if constexpr (kHasClusters && kWords) {
    using Plan = BulkOf<kVec, kCut, kLength, static_cast<int>(sizeof...(Ins)), OfRing::kFactors, OfRing::kUse>;
    constexpr BulkPlan kPlan = Plan::value;
    if constexpr (kPlan.cluster > 0) {
      // Words around a row exist if rows do not overlap.
      if (!((get<I>(ins).strides[0] >= kLength) && ...) || !((get<O>(outs).strides[0] >= kLength) && ...)) return 0;
      const auto kernel = row_bulk_kernel<F, Plan, kVec, kCut, OfRing, Pack<Ins...>, Pack<Outs...>>;
      const OfRing policy(of_rows);
      LaunchConfig config;
      config.block = dim3(static_cast<uint32_t>(kPlan.threads + kWarpSize));
      config.cluster = kPlan.cluster;
      config.dependent = true;
      config.shared_bytes = static_cast<uint32_t>(bulk_bytes(kPlan, static_cast<int>(sizeof...(Ins)), OfRing::kFactors));
      if (config.shared_bytes > shared_limit() || !policy.fits()) return 0;
      // What else costs most where a block has a row is the factors, which it reads for each.
      if (!Plan::kEdges && sizeof...(Ins) == 1 && Plan::kChunks * 16 <= kRingBytes && policy.plain()) return 0;
      static const int together = resident_clusters(config, kernel);
      int64_t clusters = together;
      if (clusters == 0) return 0;
      if constexpr (kPlan.kept && OfRing::kFactors > 0) {  // rows of a cluster lie alike
        int64_t period = 1;
        while (get<0>(outs).strides[0] * period % kVec != 0) period *= 2;
        if (clusters > period) clusters -= clusters % period;
        if (clusters % period != 0) return 0;
      }
      if (rows < 2 * clusters) return 0;
      config.grid = dim3(grid_size(clusters * kPlan.cluster));
      done = true;
      return launch(ctx, config, kernel, rows, ins, outs, policy);
    }
  }
  return 0;
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ROW_BULK_CUH_
