/// @file row_ring.cuh
/// @brief Norms and softmax of many rows by blocks that stay: rows pass through a ring in shared memory, and factors lie beside it.
///
/// A row belongs to a warp, or to the blocks of a cluster where it is long. Each thread copies its chunks of the rows to come into the places of
/// those that it has just stored, so that memory is read while rows are reduced and stored. All rows of a block begin equally far from a
/// boundary, so that scale and bias are shifted once.
#ifndef AIT_KERNELS_GPU_ROW_RING_CUH_
#define AIT_KERNELS_GPU_ROW_RING_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/resident.cuh"
#include "ait/kernels/gpu/ring_plan.cuh"
#include "ait/kernels/gpu/ring_policies.cuh"
#include "ait/kernels/gpu/ring_row.cuh"
#include "ait/kernels/gpu/row_told.cuh"
#include "ait/kernels/operand.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// Blocks stay: a warp, or a cluster, has the rows `step` apart from its first.
template <class F, class Plan, int kVec, detail::Cut kCut, class Policy, class Ins, class Outs>
__global__ void __launch_bounds__(Plan::value.threads(), 1) row_ring_kernel(int64_t rows, int length, Ins ins, Outs outs, Policy policy) {
  using R = detail::RingRow<F, Plan, kVec, kCut, Policy, Ins, Outs>;
  using Part = typename Policy::Part;
  constexpr RingPlan kPlan = Plan::value;
  constexpr int kThreads = R::kThreads, kWarpsOfRow = kPlan.group / kWarpSize;
  AIT_DYNAMIC_SHARED(16, ring_shared);
  uint4* shared = reinterpret_cast<uint4*>(ring_shared);
  const int rank = blockIdx.x % kPlan.cluster, thread = threadIdx.x % kPlan.group;
  R row;
  row.row.lane = rank * kPlan.group + thread;
  row.ring = shared + threadIdx.x;
  row.factors = shared + Ins::kSize * kPlan.places * kThreads + thread;
  wait_for_previous();
  allow_next();
  const int64_t blocks = gridDim.x / kPlan.cluster, step = blocks * kPlan.groups;
  const int64_t first = blockIdx.x / kPlan.cluster + blocks * (threadIdx.x / kPlan.group);
  row.begin(ins, outs, first < rows ? first : 0, first < rows ? (rows - 1 - first) / step + 1 : 0, step, length);
  row.keep_factors(policy);
  const float all = static_cast<float>(length);
  float warp_count = row.count();
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) warp_count += shuffle_xor(warp_count, mask);
  if constexpr (R::kWarps) {
    for (int64_t index = first; index < rows; index += step) {
      const Part own[1] = {row.template read<0>(policy, index + step < rows)};
      row.template finish<0>(policy, policy.result(policy.join(own, all), all));
    }
  } else {
    char* const exchange = reinterpret_cast<char*>(row.factors - thread + R::kFactors * kPlan.turns * kPlan.group);
    detail::RowTold<Policy, kWarpsOfRow, kPlan.cluster> told(exchange, rank);
    const auto publish = [&](const Part& of_thread, int slot) {
      const Part own[1] = {of_thread};
      told.publish(policy.join(own, warp_count), slot);
    };
    if (first >= rows) return;  // all blocks of the cluster
    if (threadIdx.x == 0) told.make();
    cluster_barrier();  // before a block writes to one that has not begun
    publish(row.template read<0>(policy, first + step < rows), 0);
    const auto turn = [&](auto slot, int64_t index) {
      constexpr int kSlot = decltype(slot)::value;
      const bool more = index + step < rows;
      Part next_row;
      if (more) next_row = row.template read<1 - kSlot>(policy, index + 2 * step < rows);
      const Part total = told.collect(policy, kSlot, all);
      if (more) publish(next_row, 1 - kSlot);
      row.template finish<kSlot>(policy, policy.result(total, all));
    };
    for (int64_t index = first; index < rows; index += 2 * step) {
      turn(std::integral_constant<int, 0>{}, index);
      if (index + step < rows) turn(std::integral_constant<int, 1>{}, index + step);
    }
  }
}

namespace detail {
/// Rows that lie as many elements behind a boundary again, at most.
template <class Op>
bool steps_evenly(const Op& operand, int64_t rows_apart) {
  constexpr int64_t kSector = kRingBoundary / sizeof(typename Op::Value);
  return operand.strides[0] * rows_apart % kSector == 0;
}

/// Launches what is done with rows where they pass through a ring; `done` says whether they do.
template <class F, int kVec, Cut kCut, int64_t kLength, class Policy, class... Ins, size_t... I, class... Outs, size_t... O>
int32_t launch_ring(const Context& ctx, int64_t rows, const Pack<Ins...>& ins, std::index_sequence<I...>, const Pack<Outs...>& outs,
                    std::index_sequence<O...>, const Policy& of_rows, bool& done) {
  using Out = std::decay_t<decltype(get<0>(outs))>;
  using OfRing = RingPolicy<Policy, is_narrow_float<typename Out::Value>>;
  constexpr bool kWords = ((Ins::kInner == Inner::unit && sizeof(typename Ins::Value) * kVec == 16) && ...) &&
                          sizeof(typename OfRing::Factor) * kVec == 16 && sizeof(typename Out::Value) * kVec == 16 &&
                          std::is_same<typename Out::Compute, float>::value;
  if constexpr (kHasClusters && kWords) {
    constexpr int64_t kHeldChunks = chunks_of<kVec, kCut, Pack<Ins...>, Out>(kLength);
    using Plan = RingOf<kVec, kCut, kLength, static_cast<int>(sizeof...(Ins)), OfRing::kFactors, OfRing::kUse, kHeldChunks>;
    constexpr RingPlan kPlan = Plan::value;
    if constexpr (kPlan.cluster > 0) {
      const auto kernel = row_ring_kernel<F, Plan, kVec, kCut, OfRing, Pack<Ins...>, Pack<Outs...>>;
      const OfRing policy(of_rows);
      LaunchConfig config;
      config.block = dim3(static_cast<uint32_t>(kPlan.threads()));
      config.cluster = kPlan.cluster;
      config.dependent = true;
      config.shared_bytes = static_cast<uint32_t>(16 * kPlan.threads() * kPlan.places * sizeof...(Ins) + 16 * kPlan.group * kPlan.turns * OfRing::kFactors +
                                                  exchange_bytes(kPlan.cluster, kPlan.group));
      if (config.shared_bytes > shared_limit() || !policy.fits()) return 0;
      static const int together = resident_clusters(config, kernel);
      int64_t clusters = together;
      if (clusters == 0) return 0;
      int64_t period = 1;  // rows until they lie alike again
      while (kCut != Cut::whole && !((steps_evenly(get<I>(ins), period) && ...) && (steps_evenly(get<O>(outs), period) && ...))) period *= 2;
      if (clusters > period) clusters -= clusters % period;
      if (clusters % period != 0 || rows < 2 * clusters * kPlan.groups) return 0;
      config.grid = dim3(grid_size(clusters * kPlan.cluster));
      done = true;
      return launch(ctx, config, kernel, rows, static_cast<int>(kLength), ins, outs, policy);
    }
  }
  return 0;
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ROW_RING_CUH_
